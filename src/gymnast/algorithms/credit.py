"""What a run's own learner makes of the steps of one episode: shown in traces, computed by the functions that train."""

from __future__ import annotations

from dataclasses import dataclass

from gymnast.algorithms.base import Algorithm, Coefficients
from gymnast.rollout.returns import Floats, Steps, discounted_returns


@dataclass(frozen=True)
class Credit:
    """Returns and advantages by the reward scale, the baseline and the coefficients that a checkpoint holds."""

    algorithm: Algorithm
    coefficients: Coefficients

    def returns(self, steps: Steps) -> Floats:
        """Discounted returns [T, N] in the learner's reward scale, so that they can be compared with the critic's values."""
        return discounted_returns(self.algorithm.scaled(steps.reward), steps.ended, self.coefficients["gamma"])

    @property
    def advantage_name(self) -> str:
        """What an advantage is here: REINFORCE compares the whole return with its baseline."""
        if "gae_lambda" in self.coefficients:
            return "advantage"
        return "return − baseline"

    def td_errors(self, steps: Steps) -> Floats | None:
        """r + γ V(next) − V(here) [T, N]: generalised advantages of one step. None for algorithms without them."""
        if "gae_lambda" not in self.coefficients:
            return None
        return self.algorithm.advantages(steps, {**self.coefficients, "gae_lambda": 0.0})

    def advantages(self, steps: Steps) -> Floats:
        """Advantages [T, N] as training computes them, before they are normalised."""
        return self.algorithm.advantages(steps, self.coefficients)

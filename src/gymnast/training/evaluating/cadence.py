"""When to evaluate, and on how many episodes.

What the config states is obeyed. What it leaves open follows from a budget: evaluations take about a tenth of the env steps
of a run. Only step counts and episode lengths decide, never a clock, so equal seeds evaluate at equal steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gymnast.config.plan import FULL_EPISODES, MOST_EVALUATIONS, Plan
from gymnast.config.schema import RunConfig
from gymnast.evaluation.evaluate import Evaluation

SHARE = 0.1
"""Env steps of all evaluations, as a share of the run's."""
UNKNOWN_HORIZON = 1000
TOLERANCE = 1.05
"""Rounding to whole episodes must not cost the last evaluation but one."""


@dataclass(frozen=True)
class Extent:
    """How much one evaluation plays."""

    episodes: int
    confirm_at: float | None = None
    """A mean return from which on fresh episodes, as many as a whole evaluation has, decide instead: few may be lucky."""
    steps: int | None = None
    """Env steps instead of episodes."""

    @property
    def amount(self) -> int:
        """Episodes or steps: what progress is counted in."""
        if self.steps is None:
            return self.episodes
        return self.steps


@dataclass
class EvalBudget:
    """What evaluations may cost where the config leaves their number or their size open."""

    env_steps: int
    """The run's own budget."""
    every: int | None
    """As the config states it, or None."""
    episodes: int | None
    """As the config states it, or None."""
    time_limit: int | None = None
    """Of an evaluation episode."""
    solved_at: float | None = None
    steps: int | None = None
    """Of one evaluation, where the config states them instead of episodes."""
    settings: int = 1
    """How many settings are evaluated each time."""
    spent: int = 0
    """Env steps of the evaluations whose results are there."""
    length: float = 0.0
    """Mean length of the last evaluation's episodes."""

    def expected_length(self, trained: float | None) -> float | None:
        """Of an episode: the longer mean of training and the last evaluation, where no episode has ended the time limit.

        None if nothing is known. A greedy policy may run to the time limit where the sampled one does not, and the
        reverse; the longer of both never leads to too many evaluations.
        """
        return max(trained or 0.0, self.length) or self.time_limit

    def episodes_of(self, length: float) -> int:
        """Episodes of one evaluation.

        With plenty of steps an evaluation is every twentieth of the run and plays 100 episodes. With fewer, the number of
        evaluations and the number of episodes shrink by the same factor.
        """
        if self.episodes is not None:
            return self.episodes
        if self.every is not None:
            affordable = SHARE * self.every / (length * self.settings)
        else:
            total = SHARE * self.env_steps / (length * self.settings)
            affordable = min(total, FULL_EPISODES * math.sqrt(total / (FULL_EPISODES * MOST_EVALUATIONS)))
        return min(max(1, round(affordable)), FULL_EPISODES)

    def cost_of(self, length: float) -> float:
        """Env steps of one evaluation, under all its settings."""
        if self.steps is not None:
            return float(self.steps * self.settings)
        return self.episodes_of(length) * length * self.settings

    def affords(self, env_steps: int, return_mean: float | None, length: float) -> bool:
        """Whether an evaluation now leaves enough for the one at the end.

        The share grows with the run. A run whose training return has reached the threshold may be over soon: it may
        spend up to half of the whole share ahead of time.
        """
        if self.every is not None:
            return True
        cost, whole = self.cost_of(length), SHARE * self.env_steps
        allowed = SHARE * env_steps
        if self.solved_at is not None and return_mean is not None and return_mean >= self.solved_at:
            allowed = max(allowed, whole / 2)
        return self.spent + cost <= allowed and self.spent + 2 * cost <= TOLERANCE * whole

    def room_after(self, length: float) -> int:
        """Env steps of the run at which its share has room for a further evaluation, if the one that comes now costs as much."""
        if self.every is not None:
            return 0
        return math.ceil((self.spent + 2 * self.cost_of(length)) / SHARE)

    def note(self, evaluation: Evaluation) -> None:
        """Take the cost of an evaluation in."""
        self.spent += evaluation.steps
        self.length = sum(evaluation.lengths) / len(evaluation.lengths)


@dataclass
class EvalCadence:
    """Evaluations every so many env steps, not before the warm-up and not before training looks good enough."""

    every: int
    warmup: int
    start_at: float | None
    budget: EvalBudget | None = None
    """Where the config leaves something open."""
    started: bool = False
    next_at: int = 0
    steps: int | None = None
    """Of an evaluation, where the config states them."""
    undecided: bool = False
    """The run was left at a boundary whose evaluation was not settled: it waited for a result, or failed."""

    def asks(self, env_steps: int, return_mean: float | None) -> bool:
        """Whether it is time for an evaluation, if the budget allows one."""
        if self.started:
            return env_steps >= self.next_at
        if self.start_at is not None:
            return env_steps >= self.warmup and return_mean is not None and return_mean >= self.start_at
        return env_steps >= max(self.warmup, 0 if self._promising(return_mean) else self.every)

    def _promising(self, return_mean: float | None) -> bool:
        """Whether the training return has reached the threshold of a run whose cadence is open."""
        budget = self.budget
        if budget is None or budget.every is not None or budget.solved_at is None:
            return False
        return return_mean is not None and return_mean >= budget.solved_at

    def due(self, env_steps: int, return_mean: float | None, length: float | None = None) -> bool:
        """Whether to evaluate now; the next one then comes `every` steps later at the earliest.

        `length` is the mean length of training episodes. The results of all earlier evaluations must be there.
        """
        if not self.asks(env_steps, return_mean):
            return False
        if self.budget is not None:
            expected = self.budget.expected_length(length)
            if expected is None or not self.budget.affords(env_steps, return_mean, expected):
                return False
            # Not before the share is expected to have room again: until then, this evaluation's result is not waited for.
            self.next_at = self.budget.room_after(expected)
        self.started = True
        self.next_at = max(env_steps + self.every, self.next_at)
        return True

    def extent(self, stated: int | None, length: float | None, vec_steps: int) -> Extent:
        """What the evaluation that comes now plays; `stated` is `eval.episodes`.

        Where no episode has ended yet, one is taken to last as long as the run so far.
        """
        if self.steps is not None:
            return Extent(FULL_EPISODES, steps=self.steps)
        if self.budget is None:
            return Extent(stated or FULL_EPISODES)
        return Extent(self.budget.episodes_of(self.budget.expected_length(length) or max(vec_steps, 1)))

    def worst_steps(self, stated: int | None, horizon: int | None) -> float:
        """Env steps of an evaluation before anything is known of it: within its budget, or the longest episodes."""
        if (
            self.budget is not None
            and self.budget.every is None
            and self.budget.episodes is None
            and self.steps is None
        ):
            return SHARE * self.budget.env_steps
        if self.steps is not None:
            return self.steps
        return (stated or FULL_EPISODES) * (horizon or UNKNOWN_HORIZON)

    def state(self) -> dict[str, Any]:
        """Its state, for the checkpoint."""
        kept: dict[str, Any] = {"started": self.started, "next_at": self.next_at, "undecided": self.undecided}
        if self.budget is not None:
            kept |= {"spent": self.budget.spent, "length": self.budget.length}
        return kept

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from where a checkpoint stood."""
        self.started, self.next_at = bool(state["started"]), int(state["next_at"])
        self.undecided = bool(state.get("undecided", False))
        if self.budget is not None:
            self.budget.spent, self.budget.length = int(state.get("spent", 0)), float(state.get("length", 0.0))


def n_settings(config: RunConfig) -> int:
    """How many settings are evaluated each time: one of a stage, every task of another plan, those of `eval.env` else."""
    if config.plan is None:
        return len(config.eval.env_settings)
    if config.plan.stages:
        return 1
    return len(config.plan.tasks)


def make_cadence(config: RunConfig, plan: Plan, *, time_limit: int | None = None) -> EvalCadence:
    """From the eval section; `time_limit` is that of an evaluation episode."""
    every = None if config.eval.every is None else plan.eval_every
    episodes = config.eval.episodes
    steps = config.eval.steps
    if steps is not None:
        episodes = FULL_EPISODES  # not adapted to anything: the steps are the size
    budget = None
    if every is None or episodes is None:
        budget = EvalBudget(
            plan.env_steps,
            every,
            episodes,
            time_limit,
            config.spec.solved_at,
            steps=steps,
            settings=n_settings(config),
        )
    return EvalCadence(plan.eval_every, plan.eval_warmup, plan.eval_start_at, budget, steps=steps)

"""What a term of the reward is, and the kinds of terms that are shipped besides counting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gymnast.config.expressions import INFO, OBS, Expression
from gymnast.envs.rewards.expressions import function_of, potential_of
from gymnast.envs.rewards.steps import Layout, States, Steps
from gymnast.errors import ConfigError, did_you_mean


class Term(ABC):
    """A part of the reward. Env copies are independent: what a term remembers, it remembers for each of them."""

    reads_info = False
    """Whether it reads `infos`. Env forms that step all copies at once have none."""

    reads_observations = True
    """Whether it reads observations; if no term does, none are copied."""

    @abstractmethod
    def pay(self, steps: Steps) -> np.ndarray:
        """Its value in this step [N], before the weight."""

    def reset(self) -> None:  # noqa: B027 - most terms remember nothing
        """Every copy begins anew."""

    def save(self, slot: int) -> Any:
        """What it remembers for one copy, as JSON values and arrays."""
        return None

    def load(self, slot: int, state: Any) -> None:  # noqa: B027 - most terms remember nothing
        """Continue where `save` was called."""


class Potential(Term):
    """Pays γΦ(next) − Φ(here), which changes the best policy of no env (Ng, Harada, Russell 1999).

    A terminal state has Φ = 0. Where an episode was cut off it would have gone on, so its final state keeps its Φ.
    """

    gamma: float
    """The learner's discount; set by whoever makes it."""

    @abstractmethod
    def potential(self, states: States) -> np.ndarray:
        """Φ [N]."""

    def pay(self, steps: Steps) -> np.ndarray:
        """The discounted gain of potential."""
        following = np.where(steps.terminated, 0.0, self.potential(steps.after))
        gained: np.ndarray = self.gamma * following - self.potential(steps.before)
        return gained


class ExpressionTerm(Term):
    """The value of an expression."""

    def __init__(self, expression: Expression, layout: Layout, name: str) -> None:
        self.reads_info = _reads(expression, INFO)
        self.reads_observations = _reads(expression, OBS)
        self._function = function_of(expression, layout, name)

    def pay(self, steps: Steps) -> np.ndarray:
        """The expression's value."""
        return np.asarray(self._function(steps), np.float64)


class ExpressionPotential(Potential):
    """A potential that is an expression."""

    def __init__(self, expression: Expression, layout: Layout, name: str) -> None:
        self.reads_info = _reads(expression, INFO)
        self._function = potential_of(expression, layout, name)

    def potential(self, states: States) -> np.ndarray:
        """The expression's value."""
        return np.asarray(self._function(states), np.float64)


class ActionCosts(Term):
    """Some actions cost something."""

    reads_observations = False

    def __init__(self, costs: dict[str, float], layout: Layout, name: str) -> None:
        labels = layout.labels
        if not labels:
            raise ConfigError(
                f"env.rewards.terms.{name}: costs are by the labels of discrete actions, and this env has none. An expression "
                "can say the same: -0.1 * abs(action[0])."
            )
        self._paid = np.zeros(len(labels))
        for label, cost in costs.items():
            if label not in labels:
                raise ConfigError(
                    f"env.rewards.terms.{name}: there is no action '{label}'.{did_you_mean(label, labels)} "
                    f"Actions: {', '.join(labels)}."
                )
            self._paid[labels[label]] = -cost

    def pay(self, steps: Steps) -> np.ndarray:
        """Minus the cost of each action."""
        paid: np.ndarray = self._paid[steps.action]
        return paid


class FunctionTerm(Term):
    """A function of the user's own; it may read infos."""

    reads_info = True

    def __init__(self, function: Callable[[Steps], Sequence[float]]) -> None:
        self._function = function

    def pay(self, steps: Steps) -> np.ndarray:
        """What the function says."""
        return np.asarray(self._function(steps), np.float64)


def _reads(expression: Expression, scope: str) -> bool:
    return any(one.scope == scope for one in expression.references())

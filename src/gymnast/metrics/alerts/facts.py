"""What rules may know besides the metrics: the run's own config and what its env is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any


class Facts:
    """A resolved config (as `config.json` has it) and the sizes of its discrete actions.

    Reads plain data, so that the run of an earlier version or of a plug-in that is gone can still be explained: a key that is
    missing is None.
    """

    def __init__(self, config: Mapping[str, Any], actions: Sequence[int] = ()) -> None:
        """`actions` are the numbers of choices, part by part; labels in the spec tell it for single discrete actions."""
        self.config = config
        labels = self.get("spec.actions") or ()
        self.actions = tuple(actions) or ((len(labels),) if labels else ())

    def get(self, key: str) -> Any:
        """The value of a dotted key; None if there is none."""
        node: Any = self.config
        for part in key.split("."):
            if isinstance(node, Mapping):
                node = node.get(part)
            else:
                node = None
        return node

    def number(self, key: str) -> float | None:
        """The largest value a number or a schedule takes; None for anything else."""
        return peak(self.get(key))

    @cached_property
    def algorithm(self) -> str:
        """The algorithm's id, such as `ppo`."""
        return str(self.get("algo.id") or "")

    @cached_property
    def entropy_limit(self) -> float | None:
        """The entropy of uniform play over all discrete actions; None for continuous ones."""
        if self.actions:
            return math.fsum(math.log(size) for size in self.actions)
        return None

    @cached_property
    def action_span(self) -> float | None:
        """Half the width of the narrowest continuous action."""
        components = self.get("spec.action_components") or ()
        widths: list[float] = [
            part["high"] - part["low"]
            for part in components
            if part.get("low") is not None and part.get("high") is not None
        ]
        if widths:
            return min(widths) / 2
        return None

    @cached_property
    def action_bounds(self) -> tuple[float, float] | None:
        """Mean of the lower and of the upper bounds of continuous actions; None if one is open."""
        components = self.get("spec.action_components") or ()
        lows, highs = ([part.get(end) for part in components] for end in ("low", "high"))
        if not components or None in lows or None in highs:
            return None
        return math.fsum(lows) / len(lows), math.fsum(highs) / len(highs)

    @cached_property
    def n_envs(self) -> int:
        """Env slots; 0 where it is not settled."""
        found = self.get("env.n_envs")
        if isinstance(found, int):
            return found
        return 0

    @cached_property
    def rollout(self) -> int | None:
        """Samples of one iteration; None if episodes decide."""
        steps = self.get("algo.n_steps")
        if isinstance(steps, int) and self.n_envs:
            return steps * self.n_envs
        return None

    @cached_property
    def budget(self) -> int | None:
        """Env steps of the whole run."""
        steps, vec_steps = self.get("train.env_steps"), self.get("train.vec_steps")
        if isinstance(steps, int):
            return steps
        if isinstance(vec_steps, int) and self.n_envs:
            return vec_steps * self.n_envs
        return None

    @cached_property
    def batch_size(self) -> int | None:
        """Samples of one minibatch; algorithms without minibatches take the whole rollout."""
        size = self.get("algo.batch_size")
        if isinstance(size, float) and self.rollout and size <= 1:
            return max(1, round(size * self.rollout))
        if isinstance(size, int):
            return size
        return self.rollout

    @cached_property
    def updates_per_iteration(self) -> int | None:
        """Optimizer steps per rollout, if target_kl stops none."""
        if self.rollout is None or not self.batch_size:
            return None
        epochs = self.number("algo.n_epochs") or 1.0
        return max(1, round(epochs)) * math.ceil(self.rollout / self.batch_size)

    @cached_property
    def planned_updates(self) -> int | None:
        """Optimizer steps that the budget allows; None if episodes decide."""
        if self.updates_per_iteration is None or self.rollout is None or self.budget is None:
            return None
        return math.ceil(self.budget / self.rollout) * self.updates_per_iteration

    @cached_property
    def wrappers(self) -> list[Mapping[str, Any]]:
        """The wrappers in order, each with `id` and `args`."""
        return [one for one in self.get("env.wrappers") or () if isinstance(one, Mapping)]

    def wrapper(self, name: str) -> Mapping[str, Any] | None:
        """The arguments of a wrapper; None if the run has it not."""
        for one in self.wrappers:
            if one.get("id") == name:
                return one.get("args") or {}
        return None

    @cached_property
    def same_episodes(self) -> bool:
        """Whether episodes are those the spec describes: no other arguments, no other length."""
        return not self.get("env.kwargs") and self.get("env.time_limit") in (None, self.get("spec.horizon"))

    @cached_property
    def random_score(self) -> float | None:
        """Mean return of uniform random play."""
        return peak(self.get("spec.random_score.score"))

    @cached_property
    def solved_at(self) -> float | None:
        """Mean return at which the env counts as solved."""
        return peak(self.get("spec.solved_at"))

    @cached_property
    def span(self) -> float | None:
        """What there is to gain: from random play to the threshold."""
        if self.random_score is None or self.solved_at is None or self.solved_at <= self.random_score:
            return None
        return self.solved_at - self.random_score

    def share_of_way(self, value: float) -> float | None:
        """Where a return lies between random play (0) and the threshold (1)."""
        if self.span is None or self.random_score is None:
            return None
        return (value - self.random_score) / self.span


def peak(value: Any) -> float | None:
    """The largest value of a number or of a saved schedule; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, Mapping):
        found = [peak(value.get(key)) for key in ("value", "start", "end")]
        found += [peak(point[1]) for point in value.get("points") or ()]
        known = [number for number in found if number is not None]
        if known:
            return max(known)
        return None
    return None

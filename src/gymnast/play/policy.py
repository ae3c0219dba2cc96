"""A trained policy as a player; imports torch."""

from __future__ import annotations

from gymnast.envs.keyboard import Keys
from gymnast.envs.vector import StepRow
from gymnast.evaluation.acting import Actor
from gymnast.play.players import Move
from gymnast.policies.base import Policy


class PolicyPlayer:
    """Plays as in an evaluation, and says what it expects."""

    def __init__(self, policy: Policy, *, deterministic: bool) -> None:
        self._actor = Actor(policy, deterministic=deterministic)

    def begin(self, seed: int) -> None:
        """Samples are drawn from this seed, and nothing is remembered."""
        self._actor.begin(seed)

    def move(self, row: StepRow, keys: Keys) -> Move:
        """The policy's choice. It also sees the steps that others make, so that it remembers them when it takes over."""
        choice = self._actor.act(row)
        value = choice.value if self._actor.has_values else None
        return Move(choice.actions, value, choice.probabilities)

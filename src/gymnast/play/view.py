"""What is shown next to the picture during play: plain data, which a window draws and a WebSocket sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.keyboard import label_of
from gymnast.evaluation.terms import PREFIX, reward_terms

NAMED = 2
"""Numbers of an action that are shown with their names; more would not fit into a line."""
LEARNED_FROM = "after wrappers"
"""The term that shows the reward as wrappers of the config leave it."""


@dataclass(frozen=True)
class Result:
    """An episode that is over."""

    seed: int
    ret: float
    """In the env's own reward."""
    length: int
    """Steps."""
    outcome: str
    """`terminated` or `truncated`."""
    modes: tuple[str, ...]
    """Who played: more than one if control changed."""

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True)
class View:
    """One moment of a session."""

    mode: str
    """Who acts: `human`, `random` or `policy`."""
    paused: bool
    waiting: bool
    """Whether the env waits for a key."""
    speed: float
    """1 is the pace of the game."""
    episode: int
    """From 1."""
    episodes: int | None
    """How many there will be; None without an end."""
    step: int
    ret: float
    """Return of the episode so far, in the env's own reward."""
    reward: float | None = None
    """Of the last step."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """What that reward is made of, where the env says so."""
    action: str = ""
    """The last one."""
    value: float | None = None
    """What the policy expects from here, whoever acts; None without a policy that has a critic."""
    probabilities: Sequence[float] = ()
    """With which the policy would take each action next."""
    outcome: str = ""
    """`terminated` or `truncated` while the end of an episode is shown."""
    note: str = ""
    """Why the last key did nothing."""
    keys: Sequence[str] = ()
    """Those of the game that are down."""
    played: int = 0
    """Episodes that are over."""
    mean: float | None = None
    """Of their returns."""
    last: Result | None = None


def shown_terms(info: Mapping[str, Any]) -> dict[str, float]:
    """What the last reward is made of, by short names."""
    return {name.removeprefix(PREFIX): part for name, part in reward_terms(info).items()}


def action_words(action: np.ndarray, space: spaces.Space, labels: Sequence[str], names: Sequence[str]) -> str:
    """An action [...] as it lies in an array, in words: its label, or its numbers with their names."""
    if isinstance(space, spaces.Discrete):
        return label_of(int(action), labels)
    numbers = np.ravel(action)
    if len(names) == len(numbers) <= NAMED:
        return ", ".join(f"{name} {_short(number)}" for name, number in zip(names, numbers, strict=True))
    return " ".join(_short(number) for number in numbers)


def _short(number: Any) -> str:
    """Whole numbers of choices as they are, quantities with a sign."""
    if np.issubdtype(type(number), np.integer):
        return str(int(number))
    return f"{float(number):+.2f}"

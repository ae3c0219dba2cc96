"""What the keys of a keyboard do in an env (WEB-5, WEB-7): the kinds of maps, which families fill with data.

A key has a name: `left`, `space`, `enter`, `shift`, a letter, a digit. A map turns the keys that are down, in the order in
which they went down, into one action: numbers side by side as the action lies in an array. None means that these keys say
nothing, and that the env has no action for doing nothing: it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gymnasium import spaces

Keys = Sequence[str]
"""Names of keys, the one that went down last at the end."""


class KeyMap(Protocol):
    """What keys do in one env."""

    @property
    def keys(self) -> Mapping[str, object]:
        """By name, all keys that do something."""

    @property
    def turns(self) -> bool:
        """Whether a press is one step and the env waits for the next one; else keys act for as long as they are held."""

    def action(self, keys: Keys) -> Sequence[float] | None:
        """What the keys that are down make."""

    def meaning(self, labels: Sequence[str]) -> dict[str, str]:
        """In words, by key; `labels` are those of the discrete actions, if there are any."""


@dataclass(frozen=True)
class Choices:
    """Every key is an action of its own; of several keys the last one counts."""

    keys: Mapping[str, int]
    idle: int | None = None
    """The action that does nothing."""
    turns: bool = False

    def action(self, keys: Keys) -> Sequence[float] | None:
        """The action of the last key."""
        for key in reversed(keys):
            if key in self.keys:
                return (self.keys[key],)
        if self.idle is None:
            return None
        return (self.idle,)

    def meaning(self, labels: Sequence[str]) -> dict[str, str]:
        """The label of each key's action."""
        return {key: label_of(action, labels) for key, action in self.keys.items()}


@dataclass(frozen=True)
class Buttons:
    """Every key is a button, and an action is a set of buttons: keys together make combinations."""

    keys: Mapping[str, str]
    actions: Sequence[frozenset[str]]
    """What each action presses; the empty set does nothing."""
    turns: bool = False

    def action(self, keys: Keys) -> Sequence[float] | None:
        """The action that presses most of what is down; where not all of it goes together, the last keys count."""
        down = [self.keys[key] for key in reversed(keys) if key in self.keys]
        possible = [action for action in self.actions if action <= set(down)]
        if not possible:
            return None
        best = max(possible, key=lambda action: [button in action for button in down])
        return (self.actions.index(best),)

    def meaning(self, labels: Sequence[str]) -> dict[str, str]:
        """The button of each key that some action presses."""
        used = frozenset().union(*self.actions)
        return {key: button for key, button in self.keys.items() if button in used}


@dataclass(frozen=True)
class Push:
    """What a key does to an action of several numbers."""

    numbers: Mapping[int, float]
    """By place in the action."""
    words: str


@dataclass(frozen=True)
class Axes:
    """Actions of several numbers, each moved by keys of its own; of two keys for one number the last one counts."""

    keys: Mapping[str, Push]
    idle: Sequence[float]
    """The action without a key."""
    turns: bool = False

    def action(self, keys: Keys) -> Sequence[float] | None:
        """Every number as its last key says; an env that takes turns waits for one."""
        pushes = [self.keys[key] for key in keys if key in self.keys]
        if self.turns and not pushes:
            return None
        numbers = list(self.idle)
        for push in pushes:
            for place, number in push.numbers.items():
                numbers[place] = number
        return numbers

    def meaning(self, labels: Sequence[str]) -> dict[str, str]:
        """The words of each key."""
        return {key: push.words for key, push in self.keys.items()}


@dataclass(frozen=True)
class Controls:
    """What a family is asked about: the env, and how it is acted upon."""

    env_id: str
    space: spaces.Space
    labels: Sequence[str]
    """Of the discrete actions; empty if there are none or none are known."""


Keyboard = Callable[[Controls], KeyMap | None]


def by_id(table: Mapping[str, KeyMap]) -> Keyboard:
    """The map whose name the env's id begins with (`CartPole`), the longest name first."""

    def find(controls: Controls) -> KeyMap | None:
        names = [name for name in table if controls.env_id.startswith(name)]
        if names:
            return table[max(names, key=len)]
        return None

    return find


def label_of(action: int, labels: Sequence[str]) -> str:
    """The label of a discrete action; its number where none is known."""
    if action < len(labels):
        return labels[action]
    return f"action {action}"

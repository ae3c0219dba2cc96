"""Which key map an env gets: its family's, its own by Gymnasium's convention, or one made from its action space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.actions import parts
from gymnast.envs.families import family_of_env
from gymnast.envs.keyboard import Axes, Buttons, Choices, Controls, KeyMap, Push, label_of

DIGITS = "0123456789"
LETTERS = "asdfgzxcvbwetyuiojkl"
"""Without those that whoever plays wants for pause, help and the like."""
PAIRS = ("za", "xs", "cd", "vf", "bg", "ju", "ki", "lo")
"""Two keys above each other: the lower one for less, the upper one for more."""
FAR = 1.0e3
"""What replaces an infinite bound."""
NO_KEY = frozenset({"no key"})
"""An action that no key makes."""


def key_map(env: gym.Env, labels: Sequence[str] = (), names: Sequence[str] = ()) -> KeyMap:
    """What keys do in a bare env, by the labels of its discrete actions or the names of an action's numbers."""
    family = family_of_env(env)
    if family is not None and family.keyboard is not None:
        env_id = env.spec.id if env.spec is not None else ""
        found = family.keyboard(Controls(env_id, env.action_space, labels))
        if found is not None:
            return found
    own = getattr(env, "get_keys_to_action", None)
    if callable(own) and isinstance(env.action_space, spaces.Discrete):
        found = from_gymnasium(own(), int(env.action_space.n))
        if found is not None:
            return found
    return for_space(env.action_space, names)


def action_labels(env: gym.Env, known: Sequence[str]) -> list[str]:
    """Labels of the discrete actions: the known ones where they fit, else the env's own; empty without any."""
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        return []
    own = getattr(env, "get_action_meanings", None)
    for labels in (known, own() if callable(own) else ()):
        if len(labels) == int(space.n):
            return list(labels)
    return []


def from_gymnasium(mapping: Any, n_actions: int) -> KeyMap | None:
    """A map as envs give it to `gymnasium.utils.play`: keys (`"wa"`, `("w", "a")` or their codes) to discrete actions."""
    if not isinstance(mapping, Mapping):
        return None
    actions = [NO_KEY] * n_actions
    for keys, action in mapping.items():
        names = _names(keys)
        if names is None or action not in range(n_actions):
            return None
        if actions[action] == NO_KEY:
            actions[action] = names
    return _Combinations({key: key for names in actions if names != NO_KEY for key in sorted(names)}, actions)


class _Combinations(Buttons):
    """Keys are their own buttons, and mean what the action does that they make together."""

    def meaning(self, labels: Sequence[str]) -> dict[str, str]:
        """The label of each combination."""
        return {
            "+".join(sorted(combination)): label_of(number, labels)
            for number, combination in enumerate(self.actions)
            if combination and combination != NO_KEY
        }


def _names(keys: Any) -> frozenset[str] | None:
    """Names of keys as Gymnasium has them: text with one letter per key, or a tuple of letters or codes."""
    pressed: Iterable[Any] = (keys,) if isinstance(keys, int) else keys or ()
    names = []
    for key in pressed:
        letter = chr(key) if isinstance(key, int) and 0 < key < 128 else key
        if not isinstance(letter, str):
            return None
        names.append({" ": "space", "\r": "enter"}.get(letter, letter.lower()))
    return frozenset(names)


def for_space(space: spaces.Space, names: Sequence[str] = ()) -> KeyMap:
    """A map for any action space; `names` are those of its numbers. Where keys run out, the rest of the action stays idle."""
    if isinstance(space, spaces.Discrete):
        return Choices(dict(zip((*DIGITS, *LETTERS), range(int(space.n)), strict=False)), turns=True)
    numbers = [number for part in parts(space) for number in _numbers(part)]
    return _axes([*numbers], [names[i] if i < len(names) else f"number {i}" for i in range(len(numbers))])


@dataclass(frozen=True)
class _Number:
    """One number of an action: a quantity between two bounds, or one of several choices."""

    low: float = 0.0
    high: float = 0.0
    choices: int = 0

    @property
    def idle(self) -> float:
        """No push at all where that is possible."""
        return min(max(0.0, self.low), self.high)


def _numbers(part: spaces.Space) -> list[_Number]:
    """The numbers of one simple space, in their order."""
    if isinstance(part, spaces.Box):
        low, high = np.ravel(np.maximum(part.low, -FAR)), np.ravel(np.minimum(part.high, FAR))
        return [_Number(float(least), float(most)) for least, most in zip(low, high, strict=True)]
    if isinstance(part, spaces.Discrete):
        return [_Number(choices=int(part.n))]
    if isinstance(part, spaces.MultiDiscrete):
        return [_Number(choices=int(n)) for n in np.ravel(part.nvec)]
    return [_Number(choices=2)] * int(np.prod(part.shape or ()))


def _axes(numbers: Sequence[_Number], names: Sequence[str]) -> Axes:
    """Arrows for one or two quantities, else pairs of keys above each other; single keys for choices."""
    quantities = sum(not number.choices for number in numbers)
    pairs = [("left", "right"), ("down", "up")]
    if quantities > len(pairs):
        pairs = [(pair[0], pair[1]) for pair in PAIRS]
    taken = {key for pair in pairs for key in pair}
    singles = [key for key in (*DIGITS[1:], *LETTERS) if key not in taken]
    pushes: dict[str, Push] = {}
    for place, (number, name) in enumerate(zip(numbers, names, strict=True)):
        if not number.choices and pairs:
            less, more = pairs.pop(0)
            pushes[less] = Push({place: number.low}, f"{name} {number.low:+.3g}")
            pushes[more] = Push({place: number.high}, f"{name} {number.high:+.3g}")
        for choice in range(1, number.choices):
            if singles:
                pushes[singles.pop(0)] = Push({place: choice}, f"{name} = {choice}")
    return Axes(pushes, [number.idle for number in numbers], turns=quantities == 0)

"""State of an env's random generators as plain values: numpy's two kinds and Python's own. Nothing is pickled."""

from __future__ import annotations

import random
import weakref
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import gymnasium as gym
import numpy as np

KINDS = (np.random.Generator, np.random.RandomState, random.Random)
SHARED = (np.random.mtrand._rand, random._inst)
"""What `np.random.rand` and `random.random` draw from: everybody's, so no env can be given its own course back."""
MOST_OBJECTS = 2_000
"""Parts of an env that are looked into."""
LONGEST = 64
"""Lists and dicts with more entries hold data and are not searched."""
LOOKS = 3
"""How often the parts of an env are searched when an episode begins: many envs make their generators in the first reset."""
OPAQUE = (
    *(type(None), str, bytes, int, float, complex, np.ndarray, np.generic),
    *(type, ModuleType, FunctionType, MethodType),
    *weakref.ProxyTypes,  # asking one for anything raises when what it stood for is gone
)

Steps = tuple[str | int, ...]
"""The way from an env to a part of it: names of attributes, keys and numbers."""


def save_generator(env: gym.Env) -> dict[str, Any] | None:
    """State of the env's generator; None if it has none, or one of a kind that we do not know."""
    return _state(_generator(env))


def load_generator(env: gym.Env, state: dict[str, Any] | None) -> None:
    """Restore it in place: the env may have handed it to others."""
    if state is not None:
        _set_state(_generator(env), state)


class OwnGenerators:
    """The generators that an env has besides `np_random`, in its attributes or those of its parts and wrappers.

    A reset without a seed goes on drawing from them, so an episode can only be repeated when they are put back too.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env = env
        self._ways: list[Steps] = []
        self._looks = 0

    def save(self, *, search: bool = True) -> dict[str, Any]:
        """The state of each, by its way. Without `search` those that were found before are enough."""
        if search or self._looks < LOOKS:
            self._looks += 1
            self._ways = [way for way, _ in _search(self._env)]
        found = {way: _follow(self._env, way) for way in self._ways}
        return {_name(way): _state(one) for way, one in found.items() if isinstance(one, KINDS)}

    def load(self, states: dict[str, Any]) -> None:
        """Put back those that the env still has where they were."""
        if not states:
            return
        for way, generator in _search(self._env):
            if (state := states.get(_name(way))) is not None:
                _set_state(generator, state)


def _generator(env: gym.Env) -> Any:
    return getattr(env.unwrapped, "np_random", None)


def _state(generator: Any) -> dict[str, Any] | None:
    if isinstance(generator, np.random.Generator):
        return dict(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):  # dm_control's envs
        return dict(generator.get_state(legacy=False))
    if isinstance(generator, random.Random):
        version, numbers, gauss = generator.getstate()
        return {"version": version, "numbers": np.array(numbers, np.int64), "gauss": gauss}
    return None


def _set_state(generator: Any, state: dict[str, Any]) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = _like(generator.bit_generator.state, state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(_like(generator.get_state(legacy=False), state))
    elif isinstance(generator, random.Random):
        generator.setstate((state["version"], tuple(np.asarray(state["numbers"]).tolist()), state["gauss"]))


def _like(present: Any, state: Any) -> Any:
    """Arrays where the generator itself has arrays, of the same type: after a checkpoint they may be something else."""
    if isinstance(state, dict):
        return {key: _like(present.get(key), value) for key, value in state.items()}
    if isinstance(present, np.ndarray):
        return np.asarray(state, present.dtype)
    return state


# --- looking for them ------------------------------------------------------------------------------------------------


def _search(env: gym.Env) -> Iterator[tuple[Steps, Any]]:
    """All generators that belong to the env and are not its `np_random`, the nearest first, each once."""
    seen = {id(_generator(env)), *map(id, SHARED)}
    waiting: deque[tuple[Steps, Any]] = deque([((), env)])
    looked_into = 0
    while waiting and looked_into < MOST_OBJECTS:
        way, thing = waiting.popleft()
        looked_into += 1
        for step, part in _parts(thing):
            kind = type(part)  # not isinstance, which asks the part itself
            if issubclass(kind, OPAQUE) or id(part) in seen:
                continue
            seen.add(id(part))
            if issubclass(kind, KINDS):
                yield (*way, step), part
            else:
                waiting.append(((*way, step), part))


def _parts(thing: Any) -> list[tuple[str | int, Any]]:
    """What a thing holds, with the step that leads there."""
    if isinstance(thing, (list, tuple)):
        if len(thing) <= LONGEST:
            return list(enumerate(thing))
        return []
    if isinstance(thing, dict):
        if len(thing) <= LONGEST:
            return [(key, part) for key, part in thing.items() if isinstance(key, (str, int))]
        return []
    try:
        return list(object.__getattribute__(thing, "__dict__").items())  # runs no code of the thing
    except AttributeError:
        return []


def _follow(thing: Any, way: Steps) -> Any:
    """The part at the end of a way; None if it is gone."""
    for step in way:
        thing = dict(_parts(thing)).get(step)
    return thing


def _name(way: Steps) -> str:
    """Its form in a checkpoint."""
    return "/".join(map(str, way))

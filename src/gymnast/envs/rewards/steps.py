"""One step of all env copies as terms of the reward see it, with its numbers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.config.expressions import identifier
from gymnast.config.rewards import Names
from gymnast.envs.spaces import Observation
from gymnast.errors import ConfigError, EnvError, did_you_mean


class Layout:
    """Where the numbers of observations and actions lie, by the names that expressions have for them."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, names: Names) -> None:
        self.observation_space, self.action_space, self.names = observation_space, action_space, names
        self.parts: dict[str, str] = {}
        """Parts of a Dict by their identifiers."""
        self.components: dict[str, int] = {}
        """Places of the named components of an observation without parts."""
        if isinstance(observation_space, spaces.Dict):
            self.parts = {identifier(part): part for part in observation_space.spaces}
        elif _size(observation_space) == len(names.observation):
            self.components = {identifier(one.name): place for place, one in enumerate(names.observation)}
        self.action_components: dict[str, int] = {}
        if _size(action_space) == len(names.action_components):
            self.action_components = {identifier(name): place for place, name in enumerate(names.action_components)}
        self.labels = _labels(action_space, names.actions)

    def place(self, name: str, index: int | None) -> tuple[str, int]:
        """Part of the observation and number in it; a sentence if there is no such number."""
        if name in self.components and index is None:
            return "", self.components[name]
        if name and name not in self.parts:
            known = [*self.components, *self.parts]
            listed = f" The observation has {', '.join(known)}." if known else self._nameless()
            raise ConfigError(f"there is no '{name}'.{did_you_mean(name, known)}{listed}")
        if not name and self.parts:
            raise ConfigError(f"the observation has parts: write one of {', '.join(self.parts)} with [number]")
        part = self.parts.get(name, "")
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            space = space.spaces[part]
        size = _size(space)
        if index is None and size > 1:
            raise ConfigError(
                f"'{name or 'obs'}' has {size} numbers: write {name or 'obs'}[0] to {name or 'obs'}[{size - 1}]"
            )
        if index is not None and index >= size:
            raise ConfigError(f"'{name or 'obs'}' has {size} numbers, counted from 0")
        return part, index or 0

    def _nameless(self) -> str:
        size = _size(self.observation_space)
        return f" The components of this observation have no names: write obs[0] to obs[{size - 1}]."

    def component(self, name: str) -> Any:
        """What the spec card says of a component; None if it says nothing."""
        if name in self.components:
            return self.names.observation[self.components[name]]
        return None


def _size(space: spaces.Space) -> int:
    if isinstance(space, spaces.Dict):
        return 0
    return int(np.prod(space.shape or ()))


def _labels(space: spaces.Space, labels: Sequence[str]) -> dict[str, int]:
    """Numbers of the actions by label, if there is one for each."""
    if isinstance(space, spaces.Discrete) and len(labels) == space.n:
        return {label: number for number, label in enumerate(labels)}
    return {}


@dataclass(slots=True)
class States:
    """Where all env copies are: observations, and infos next to them."""

    obs: Observation
    """[N, …], or a dict of such arrays."""
    infos: Sequence[Mapping[str, Any]] | None = None
    """Of each copy; None if nobody reads them."""

    def numbers(self, part: str, place: int) -> np.ndarray:
        """One number of each copy's observation [N]."""
        array = self.obs[part] if part else self.obs
        assert isinstance(array, np.ndarray)
        # In memory of its own: numpy may round otherwise where numbers do not lie side by side.
        return np.array(array.reshape(len(array), -1)[:, place], np.float64)

    def told(self, key: str, term: str, otherwise: float | None = None) -> np.ndarray:
        """One number of each copy's info [N] for a term; `otherwise` where it is not there, and without that an error."""
        assert self.infos is not None
        found = np.empty(len(self.infos))
        for i, info in enumerate(self.infos):
            value = info.get(key, otherwise)
            if value is None:
                raise EnvError(
                    f"env.rewards.terms.{term} reads info.{key}, which this env does not tell.{did_you_mean(key, info)} "
                    f"It tells: {', '.join(map(str, info)) or 'nothing'}."
                )
            try:
                found[i] = value
            except (TypeError, ValueError):
                raise EnvError(
                    f"env.rewards.terms.{term} reads info.{key}, which is no number but {value!r}."
                ) from None
        return found


@dataclass(slots=True)
class Steps:
    """One step of all env copies."""

    before: States
    after: States
    """What the step led to: the final state where an episode ended, not the first one of the next."""
    action: np.ndarray
    """[N, …], as the env was given it."""
    reward: np.ndarray
    """[N] the env's own."""
    terminated: np.ndarray
    truncated: np.ndarray
    number: np.ndarray
    """[N] of the step in its episode, from 1."""
    ended: np.ndarray
    """[N] whether the episode is over: a lost life may be `terminated` although it is not."""

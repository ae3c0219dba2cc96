"""Several vector envs as one: each has some of the slots, and its episodes are of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv, some_rows
from gymnast.errors import CheckpointError, EnvError

TASK = "gymnast.task"
"""In the infos of an ended episode: the name of its task."""


class MixedVector(VectorEnv):
    """Slots in groups, one vector env per group. All groups show and take the same; their envs are stepped at the same time."""

    def __init__(self, groups: Mapping[str, VectorEnv]) -> None:
        """Vector envs by the name of their task, in the order of their slots."""
        self._groups = dict(groups)
        first, *_ = self._groups.values()
        self.observation_space, self.action_space = first.observation_space, first.action_space
        sizes = [envs.n_envs for envs in self._groups.values()]
        ends = np.cumsum(sizes).tolist()
        self.n_envs = ends[-1]
        self._slots = {name: slice(end - size, end) for name, size, end in zip(self._groups, sizes, ends, strict=True)}
        self.has_action_mask = any(envs.has_action_mask for envs in self._groups.values())
        self.changes_reward = any(envs.changes_reward for envs in self._groups.values())
        self.exact_resume = _weakest({envs.exact_resume for envs in self._groups.values()})

    @property
    def slots(self) -> dict[str, slice]:
        """The slots of each task."""
        return dict(self._slots)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Start a new episode in every slot."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        for name, envs in self._groups.items():
            try:
                envs.reset(seeds[self._slots[name]], self._part(row, name))
            except EnvError as error:
                raise _of_task(name, error) from error

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot."""
        self.send(actions)
        return self.recv(row)

    def send(self, actions: np.ndarray) -> None:
        """Begin a step of every group, so that those with processes of their own step at the same time."""
        for name, envs in self._groups.items():
            envs.send(actions[self._slots[name]])

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """End the step of every group."""
        ended: list[EndedEpisode] = []
        for name, envs in self._groups.items():
            part = self._part(row, name)
            try:
                episodes = envs.recv(part)
            except EnvError as error:
                raise _of_task(name, error) from error
            if part.own_reward is None and row.own_reward is not None:
                row.own_reward[self._slots[name]] = part.reward
            for episode in episodes:
                episode.index += self._slots[name].start
                episode.infos[TASK] = name
                ended.append(episode)
        return ended or NONE_ENDED

    def _part(self, row: StepRow, name: str) -> StepRow:
        """The rows of one group, with what its envs write."""
        envs, part = self._groups[name], some_rows(row, self._slots[name])
        if part.mask is not None and not envs.has_action_mask:
            part.mask[...] = True  # other tasks have masks; here every action is possible
            part.mask = None
        if not envs.changes_reward:
            part.own_reward = None
        return part

    def save_state(self) -> dict[str, Any]:
        """The state of each group under the name of its task."""
        return {"tasks": {name: envs.save_state() for name, envs in self._groups.items()}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue exactly where `save_state` was called."""
        saved = state.get("tasks", {})
        if list(saved) != list(self._groups):
            raise CheckpointError(
                f"The checkpoint holds envs of the tasks {', '.join(saved) or '(none)'}, this run has {', '.join(self._groups)}: "
                "resume with the plan that was saved."
            )
        for name, envs in self._groups.items():
            envs.load_state(saved[name])

    def rest(self, index: int) -> None:
        """Pause a slot until the next reset."""
        name, own = self._at(index)
        self._groups[name].rest(own)

    def executed(self, index: int = 0) -> list[Any] | None:
        """What a slot's env executed in its last step."""
        name, own = self._at(index)
        return self._groups[name].executed(own)

    def render(self, index: int = 0) -> np.ndarray | None:
        """Frame of one slot."""
        name, own = self._at(index)
        return self._groups[name].render(own)

    def _at(self, index: int) -> tuple[str, int]:
        """The task of a slot, and the slot's number within its group."""
        name = next(name for name, slots in self._slots.items() if index < slots.stop)
        return name, index - self._slots[name].start

    def describe(self) -> str:
        """How the envs are stepped, task by task."""
        return "; ".join(f"{name} {envs.describe()}" for name, envs in self._groups.items())

    def counters(self) -> dict[str, float]:
        """The counters of all groups together."""
        total: dict[str, float] = {}
        for envs in self._groups.values():
            for name, value in envs.counters().items():
                total[name] = total.get(name, 0) + value
        return total

    def close(self) -> None:
        """Close every group."""
        for envs in self._groups.values():
            envs.close()


def _weakest(ways: set[str]) -> str:
    """How all groups together are saved: not at all where one of them cannot be."""
    if "none" in ways:
        return "none"
    if len(ways) == 1:
        return ways.pop()
    return "replay"


def _of_task(name: str, error: EnvError) -> EnvError:
    return EnvError(f"Task '{name}': {error}")

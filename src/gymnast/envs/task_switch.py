"""One env that plays another task in every episode: it holds an env of each, and draws at each reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs import snapshots
from gymnast.envs.closing import close
from gymnast.envs.families.family import Snapshot
from gymnast.envs.generators import load_generator, save_generator
from gymnast.envs.mixed import TASK
from gymnast.envs.spaces import n_masked_actions

MASK = "action_mask"


class TaskSwitch(gym.Env):
    """All tasks show and take the same. Which one comes next is drawn from the env's own generator."""

    def __init__(self, envs: Mapping[str, gym.Env], weights: Sequence[float]) -> None:
        """Envs by the name of their task, and how often each is drawn, relative to the others."""
        self.tasks = dict(envs)
        self._names = list(self.tasks)
        self._ends = np.cumsum(weights) / np.sum(weights)
        first = self.tasks[self._names[0]]
        self.observation_space, self.action_space = first.observation_space, first.action_space
        self.metadata, self.render_mode = first.metadata, first.render_mode
        self._name = self._names[0]
        self._masked = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of the task that is drawn now. A seed begins the episodes of all tasks anew."""
        super().reset(seed=seed)
        if seed is not None:
            # All at once, so that what a task plays does not depend on when it was first drawn.
            seeds = np.random.SeedSequence(seed).generate_state(len(self._names)) >> 1
            infos = [env.reset(seed=int(own))[1] for env, own in zip(self.tasks.values(), seeds, strict=True)]
            self._masked = any(MASK in info for info in infos)
        drawn = int(np.searchsorted(self._ends, self.np_random.random(), side="right"))
        self._name = self._names[min(drawn, len(self._names) - 1)]
        obs, info = self._env.reset(options=options)
        return obs, self._with_mask(info)

    @property
    def _env(self) -> gym.Env:
        """The env of the task that is played; looked up, so that what it keeps has one place in a checkpoint."""
        return self.tasks[self._name]

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        """Every info has a mask as soon as one task gives some."""
        if self._masked and MASK not in info:
            return {**info, MASK: np.ones(n_masked_actions(self.action_space) or 0, np.bool_)}
        return info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step of the task that is played; the last info of an episode names it."""
        obs, reward, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            info = {**info, TASK: self._name}
        return obs, reward, terminated, truncated, self._with_mask(info)

    def render(self) -> Any:
        """What the task that is played draws."""
        return self._env.render()

    def close(self) -> None:
        """Close the env of every task."""
        for env in self.tasks.values():
            close(env)

    # ---- its state -------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot | None:
        """How its state is saved: as the states of all tasks, where every one of them can be."""
        if all(snapshots.method(env) == "snapshot" for env in self.tasks.values()):
            return Snapshot(_save, _load)
        return None


def _save(env: gym.Env) -> dict[str, Any]:
    switch: Any = env.unwrapped
    return {
        "task": switch._name,
        "masked": switch._masked,
        "generator": save_generator(switch),
        "envs": {name: snapshots.save(one) for name, one in switch.tasks.items()},
    }


def _load(env: gym.Env, state: dict[str, Any]) -> None:
    switch: Any = env.unwrapped
    for name, one in switch.tasks.items():
        snapshots.load(one, state["envs"][name])
    switch._masked = bool(state["masked"])
    switch._name = str(state["task"])
    load_generator(switch, state["generator"])

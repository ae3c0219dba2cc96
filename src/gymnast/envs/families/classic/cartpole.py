"""CartPole as one numpy program over all slots.

Gymnasium ships a native vector CartPole, but in NEXT_STEP mode (fake transitions after each end) and with one generator for
all slots. This subclass keeps its constants, resets ended rows at once, and seeds each slot like a single env, so its traces
equal those of in-process envs to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.utils import seeding

from gymnast.config.schema import EnvConfig
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError

if TYPE_CHECKING:
    from gymnast.envs.families.family import NativeForm

ARGUMENTS = {"sutton_barto_reward"}
"""Of the single env, those that the vector form has too."""


def native_cartpole(config: EnvConfig) -> NativeForm | str:
    """Constructor of the vector form, or why there is none."""
    if config.id != "CartPole-v1":
        return ""
    if others := sorted(set(config.kwargs) - ARGUMENTS):
        return f"it does not take env.kwargs.{others[0]}"
    limit = time_limit_of(config)
    if not limit:
        return "it needs a time limit"
    return functools.partial(CartPoleVector, max_episode_steps=limit, **config.kwargs)


class CartPoleVector(VectorEnv):
    """All CartPoles in one [4, N] array."""

    exact_resume = "snapshot"

    def __init__(self, n_envs: int, *, max_episode_steps: int = 500, sutton_barto_reward: bool = False) -> None:
        source = CartPoleVectorEnv(n_envs, max_episode_steps, sutton_barto_reward=sutton_barto_reward)
        self.n_envs = n_envs
        self.observation_space = source.single_observation_space
        self.action_space = source.single_action_space
        self._limit = max_episode_steps
        self._sutton = sutton_barto_reward
        self._source = source
        self._state = np.zeros((4, n_envs))
        self._steps = np.zeros(n_envs, np.int64)
        self._generators: list[np.random.Generator] = []
        self._change = np.empty((4, n_envs))
        self._scratch = np.empty((4, n_envs))
        self._distance = np.empty((2, n_envs))
        self._bounds = np.array([[source.x_threshold], [source.theta_threshold_radians]])
        self._outside = np.empty((2, n_envs), np.bool_)
        self._flags = np.empty((2, n_envs), np.bool_)

    def _start(self, i: int) -> None:
        self._state[:, i] = self._generators[i].uniform(-0.05, 0.05, size=(4,))
        self._steps[i] = 0

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed each slot by itself."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        self._generators = [seeding.np_random(seed)[0] for seed in seeds]
        for i in range(self.n_envs):
            self._start(i)
        row.obs[...] = self._state.T  # type: ignore[index]

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """One Euler step of every pole; the order of operations is the single env's, so the bits are too."""
        constants, state = self._source, self._state
        _, x_dot, theta, theta_dot = state
        change = self._change
        x_acc, theta_acc = change[1], change[3]
        force, cos, sin, temp = self._scratch
        np.multiply(actions, 2.0 * constants.force_mag, out=force)
        force -= constants.force_mag
        np.cos(theta, out=cos)
        np.sin(theta, out=sin)
        # temp = (force + m·l·θ̇²·sin θ) / M
        np.square(theta_dot, out=temp)
        temp *= constants.polemass_length
        temp *= sin
        temp += force
        temp /= constants.total_mass
        # θ̈ = (g·sin θ − cos θ·temp) / (l·(4/3 − m·cos²θ / M))
        np.square(cos, out=x_acc)
        x_acc *= constants.masspole
        x_acc /= constants.total_mass
        np.subtract(4.0 / 3.0, x_acc, out=x_acc)
        x_acc *= constants.length
        np.multiply(sin, constants.gravity, out=theta_acc)
        np.multiply(cos, temp, out=force)
        theta_acc -= force
        theta_acc /= x_acc
        # ẍ = temp − m·l·θ̈·cos θ / M
        np.multiply(theta_acc, constants.polemass_length, out=x_acc)
        x_acc *= cos
        x_acc /= constants.total_mass
        np.subtract(temp, x_acc, out=x_acc)

        change[0] = x_dot
        change[2] = theta_dot
        change *= constants.tau
        state += change

        fell, cut = self._flags
        np.abs(state[::2], out=self._distance)
        np.greater(self._distance, self._bounds, out=self._outside)
        np.logical_or(self._outside[0], self._outside[1], out=fell)
        self._steps += 1
        np.greater_equal(self._steps, self._limit, out=cut)
        row.terminated[...] = fell
        row.truncated[...] = cut
        if self._sutton:
            np.negative(fell, out=row.reward, casting="unsafe", dtype=np.float32)
        else:
            row.reward[...] = 1.0
        row.obs[...] = self._state.T  # type: ignore[index]
        np.logical_or(fell, cut, out=cut)
        if cut.any():
            return self._end(cut, row)
        return NONE_ENDED

    def _end(self, ended: np.ndarray, row: StepRow) -> list[EndedEpisode]:
        episodes = []
        for i in np.flatnonzero(ended).tolist():
            length, fell = int(self._steps[i]), bool(row.terminated[i])
            if self._sutton:
                if fell:
                    ret = -1.0
                else:
                    ret = 0.0
            else:
                ret = float(length)
            episodes.append(EndedEpisode(i, row.obs[i].copy(), ret, length, fell))  # type: ignore[index]
            self._start(i)
            row.obs[i] = self._state[:, i]  # type: ignore[index]
        return episodes

    def save_state(self) -> dict[str, Any]:
        """Physics, step counts and generators."""
        generators = [dict(generator.bit_generator.state) for generator in self._generators]
        return {"state": self._state.copy(), "steps": self._steps.copy(), "generators": generators}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore every slot with its generator."""
        saved_envs = len(state["generators"])
        if saved_envs != self.n_envs:
            raise EnvError(f"The saved state is of {saved_envs} envs, this run has {self.n_envs}.")
        self._state[...] = state["state"]
        self._steps[...] = state["steps"]
        self._generators = [seeding.np_random(0)[0] for _ in state["generators"]]
        for generator, saved in zip(self._generators, state["generators"], strict=True):
            generator.bit_generator.state = saved

    def describe(self) -> str:
        """How the carts are stepped, in words for the log."""
        return f"{self.n_envs} envs, native vector"

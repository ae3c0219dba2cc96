"""Small scripted envs whose every number is known in advance."""

from __future__ import annotations

import os
import random
import signal
import time
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

LENGTHS = (3, 1, 5, 2, 7)
HIGHEST = 1e6


class CounterEnv(gym.Env):
    """Observation [episode, step in the episode, seed of the slot]; the final one is [episode, -length, seed].

    Episode e of a slot with seed s has length LENGTHS[(s + e) % 5]. Even episodes end by termination, odd ones by
    truncation, every fourth by both. The reward of step t is 10 t + action.
    """

    def __init__(self, reuse_buffer: bool = False) -> None:
        self.observation_space: spaces.Space = spaces.Box(-HIGHEST, HIGHEST, (3,), np.float32)
        self.action_space: spaces.Space = spaces.Discrete(4)
        self.seed, self.episode, self.steps, self.total = 0, -1, 0, 0.0
        self._buffer = np.zeros(3, np.float32) if reuse_buffer else None

    def observe(self, second: int) -> Any:
        """The observation as this variant gives it."""
        values = (self.episode, second, self.seed)
        if self._buffer is None:
            return np.array(values, np.float32)
        self._buffer[:] = values
        return self._buffer

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict[str, Any]]:
        """A seed starts the count of episodes anew."""
        super().reset(seed=seed)
        if seed is not None:
            self.seed, self.episode = seed, -1
        self.episode += 1
        self.steps, self.total = 0, 0.0
        return self.observe(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Count one step; the last info of an episode holds the env's own count."""
        self.steps += 1
        reward = 10.0 * self.steps + float(np.sum(action))
        self.total += reward
        if self.steps < episode_length(self.seed, self.episode):
            return self.observe(self.steps), reward, False, False, {}
        terminated, truncated = episode_end(self.episode)
        info = {"own_return": self.total, "own_length": self.steps, "nested": {"episode": self.episode}}
        return self.observe(-self.steps), reward, terminated, truncated, info


def episode_length(seed: int, episode: int) -> int:
    """Scripted length of one episode."""
    return LENGTHS[(seed + episode) % len(LENGTHS)]


def episode_end(episode: int) -> tuple[bool, bool]:
    """(terminated, truncated) of the last step of one episode."""
    return episode % 2 == 0, episode % 2 == 1 or episode % 4 == 0


class DictCounterEnv(CounterEnv):
    """The same numbers as a Dict of a Box, a Discrete that starts at 10, and a Tuple."""

    def __init__(self) -> None:
        super().__init__()
        parts = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(1000, start=5)))
        self.observation_space = spaces.Dict(
            {"numbers": spaces.Box(-HIGHEST, HIGHEST, (3,)), "place": spaces.Discrete(1000, start=10), "parts": parts}
        )

    def observe(self, second: int) -> Any:
        """Three views of the same count."""
        numbers = np.array((self.episode, second, self.seed), np.float32)
        return {"numbers": numbers, "place": np.int64(10 + abs(second)), "parts": (int(second < 0), 5 + self.episode)}


class TupleCounterEnv(CounterEnv):
    """A Tuple of Discrete spaces, one of which does not start at zero: (is final, step, 7 + episode)."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Tuple(
            (spaces.Discrete(2), spaces.Discrete(1000), spaces.Discrete(100000, start=7))
        )

    def observe(self, second: int) -> Any:
        """Three integers."""
        return int(second < 0), abs(second), 7 + self.episode


class MaskedCounterEnv(CounterEnv):
    """Only action (episode + step) % 4 is forbidden; a forbidden one raises."""

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        mask = np.ones(4, np.int8)
        mask[(self.episode + self.steps) % 4] = 0
        return {**info, "action_mask": mask}

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict[str, Any]]:
        """The first mask is in the reset's info."""
        obs, info = super().reset(seed=seed)
        return obs, self._with_mask(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Refuse a masked action."""
        if (self.episode + self.steps) % 4 == action:
            raise ValueError(f"action {action} is masked")
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, self._with_mask(info)


class ShiftedActionEnv(CounterEnv):
    """Actions start at 3, and the env counts by what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(4, start=3)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Refuse an action outside the space."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action} is not in {self.action_space}")
        return super().step(action)


class WalkEnv(gym.Env):
    """An env unknown to the snapshots: a noisy walk with continuous actions that remembers its last action.

    Where the walk starts is drawn once per seed, so only a seeded reset repeats the first episode.
    """

    def __init__(self, shifted: bool = False) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        box = spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.action_space: spaces.Space = spaces.MultiDiscrete([3, 4], start=[-1, 5]) if shifted else box

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """A seed draws a new home, every reset a new start near it."""
        super().reset(seed=seed)
        if seed is not None:
            self.home = self.np_random.normal(size=2) * 10
        self.place = self.home + self.np_random.normal(size=2)
        self.last_action: np.ndarray | None = None
        self.steps = 0
        return self.place.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move by the difference to the last action, plus noise."""
        self.steps += 1
        before = np.zeros(2) if self.last_action is None else self.last_action
        self.place = self.place + (action - before) / 3 + self.np_random.normal(size=2)
        self.last_action = action  # kept without a copy on purpose
        return self.place.copy(), float(self.place.sum()), bool(self.np_random.random() < 0.05), self.steps >= 30, {}


GENERATORS: dict[str, Callable[[int | None], Any]] = {
    "RandomState": np.random.RandomState,
    "MT19937": lambda seed: np.random.Generator(np.random.MT19937(seed)),
    "Philox": lambda seed: np.random.Generator(np.random.Philox(seed)),
    "SFC64": lambda seed: np.random.Generator(np.random.SFC64(seed)),
    "Python": random.Random,
}


class OtherRandomEnv(gym.Env):
    """A walk whose `np_random` is not the kind that Gymnasium makes; dm_control's is a RandomState."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.generator = GENERATORS[kind](None)

    @property
    def np_random(self) -> Any:
        """The one that it draws from."""
        return self.generator

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Anywhere."""
        if seed is not None:
            self.generator = GENERATORS[self.kind](seed)
        self.place = self.generator.uniform(-1, 1)
        return np.array([self.place]), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Drift, and fall now and then."""
        self.place += action - 0.5 + self.generator.uniform(-1, 1)
        return np.array([self.place]), self.place, self.generator.random() < 0.08, False, {}


class Bag:
    """A part of an env that draws for it, as the pieces of tetris-gymnasium are drawn."""

    def __init__(self, generator: Any) -> None:
        self.sources = {"pieces": [generator]}

    def draw(self) -> float:
        """From -1 to 1."""
        return float(self.sources["pieces"][0].uniform(-1, 1))


class PartsRandomEnv(gym.Env):
    """A walk that draws nothing from `np_random`: parts of it have generators, some of which no seed ever reaches."""

    def __init__(self, kind: str, seeded: bool = True) -> None:
        self.kind, self.seeded = kind, seeded
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.bag = Bag(GENERATORS[kind](None))
        self.parts = (self, weakref.proxy(self.bag), weakref.proxy(Bag(None)), np.random, np.random.mtrand._rand)
        """A circle, a proxy of what is gone, and everybody's generator: nothing to stumble over."""

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Anywhere."""
        super().reset(seed=seed)
        if seed is not None and self.seeded:
            self.bag = Bag(GENERATORS[self.kind](seed))
        self.place = self.bag.draw()
        return np.array([self.place]), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Drift, and fall now and then."""
        self.place += action - 0.5 + self.bag.draw()
        return np.array([self.place]), self.place, self.bag.draw() < -0.85, False, {}


class UnknownRandomEnv(OtherRandomEnv):
    """Nobody knows how to save its generator; it begins every episode at the same place and draws nothing."""

    def __init__(self) -> None:
        super().__init__("Python")

    @property
    def np_random(self) -> Any:
        """A key, as jax has."""
        return (0, 1)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """At home."""
        self.place, self.steps = 0.0, 0
        return np.array([self.place]), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step, of twelve."""
        self.place, self.steps = self.place + action - 0.5, self.steps + 1
        return np.array([self.place]), self.place, self.steps == 12, False, {}


class UnrepeatableEnv(WalkEnv):
    """Draws from the clock, so that repeating its actions gives something else."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Noise no seed can repeat."""
        obs, *rest = super().step(action)
        return (obs + np.frombuffer(os.urandom(2), np.uint8), *rest)  # type: ignore[return-value]


class UnseenChanceEnv(WalkEnv):
    """Always looks the same, and pays what nobody can repeat, as a bandit whose arms no seed reaches."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Noise in the reward alone."""
        obs, _, *rest = super().step(action)
        return (0 * obs, float(os.urandom(1)[0]), *rest)  # type: ignore[return-value]


class FaultyEnv(CounterEnv):
    """A counter env that fails at a given step of a slot with a given seed (or of any slot when the seed is None)."""

    def __init__(self, at_step: int = 2, seed: int | None = None) -> None:
        super().__init__()
        self.at_step, self.faulty_seed, self.count = at_step, seed, 0

    def fail(self) -> None:
        """What goes wrong."""
        raise RuntimeError("the simulator exploded")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Count the steps of all episodes, then fail."""
        self.count += 1
        if self.count == self.at_step and self.faulty_seed in {None, self.seed}:
            self.fail()
        return super().step(action)


class DyingEnv(FaultyEnv):
    """Killed by the system, as for want of memory."""

    def fail(self) -> None:
        """No exception, no goodbye."""
        os.kill(os.getpid(), signal.SIGKILL)


class HangingEnv(FaultyEnv):
    """Never comes back."""

    def fail(self) -> None:
        """Sleep in Python, which other threads survive."""
        time.sleep(1000)


class LockHoldingEnv(FaultyEnv):
    """Never comes back and holds the interpreter lock, as a loop in compiled code does."""

    def fail(self) -> None:
        """Sleep in C without giving the lock away."""
        import ctypes

        ctypes.PyDLL(None).sleep(1000)


class UnmakeableEnv(CounterEnv):
    """Cannot be constructed."""

    def __init__(self) -> None:
        raise RuntimeError("no licence for this simulator")


class UnresettableEnv(CounterEnv):
    """Cannot be reset with the given seeds; -1 stands for every seed."""

    def __init__(self, *seeds: int) -> None:
        super().__init__()
        self.bad_seeds = seeds

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict[str, Any]]:
        """Fail for the bad seeds; 0 is the probe for action masks."""
        if seed in self.bad_seeds or (-1 in self.bad_seeds and seed != 0):
            raise RuntimeError(f"seed {seed} cannot be reset")
        return super().reset(seed=seed)


class PickyInfoEnv(CounterEnv):
    """Its last info holds something that cannot be sent to another process."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A generator object cannot be pickled."""
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, {**info, "generator": (i for i in range(3)), "steps": self.steps}


class ImportsEnv(CounterEnv):
    """Its seed-independent observation says whether torch and the script are loaded in this process."""

    def observe(self, second: int) -> Any:
        """[torch loaded, the main module is a script with a file, 0]."""
        import sys

        has_file = getattr(sys.modules["__main__"], "__file__", None) is not None
        return np.array(("torch" in sys.modules, has_file, 0), np.float32)


class GlobalRandomEnv(CounterEnv):
    """Draws from numpy's global generator, as careless envs do."""

    def observe(self, second: int) -> Any:
        """A global random number."""
        return np.array((np.random.random(), 0, 0), np.float32)  # noqa: NPY002

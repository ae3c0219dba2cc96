"""Envs that break one promise each, marked on the line that `gymnast env check` must name: `# fault: ID`."""

from __future__ import annotations

import random
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

LENGTH = 10
Step = tuple[Any, Any, Any, Any, Any]


class Sound(gym.Env):
    """Keeps every promise: a point wanders, and the episode is cut off after `LENGTH` steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's convention

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space: spaces.Space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space: spaces.Space = spaces.Discrete(3)
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Somewhere near the middle."""
        super().reset(seed=seed)
        self.left = LENGTH
        self.place = self.np_random.uniform(-0.1, 0.1, 2).astype(np.float32)
        return self.place.copy(), {}

    def step(self, action: Any) -> Any:
        """A small move."""
        self.move(action)
        return self.place.copy(), 1.0, False, self.left == 0, {}

    def move(self, action: Any) -> None:
        """Drift within the square."""
        self.left -= 1
        drift = 0.05 * (float(np.mean(action)) - 1) + 0.01 * self.np_random.normal(size=2)
        self.place = np.clip(self.place + drift, -1, 1).astype(np.float32)

    def render(self) -> Any:
        """A grey picture."""
        return np.full((16, 16, 3), 128, np.uint8)


class WrongDtype(Sound):
    """float64 where the space says float32."""

    def step(self, action: Any) -> Step:
        """Python floats make float64."""
        self.move(action)
        return np.array([float(x) for x in self.place]), 1.0, False, self.left == 0, {}  # fault: obs-dtype


class WrongShape(Sound):
    """One number too many."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """With the time left."""
        obs, info = super().reset(seed=seed)
        return np.append(obs, np.float32(self.left)), info  # fault: obs-shape


class ListObservation(Sound):
    """A list instead of an array."""

    def step(self, action: Any) -> Step:
        """A list."""
        self.move(action)
        if self.left > 5:
            return self.place.copy(), 1.0, False, False, {}
        return self.place.tolist(), 1.0, False, self.left == 0, {}  # fault: obs-type


class OutOfSpace(Sound):
    """Larger than the bounds."""

    def step(self, action: Any) -> Step:
        """Without the clip."""
        self.move(action)
        far = self.place + np.float32(2 * (LENGTH - self.left))
        return (  # fault: obs-range
            far,
            1.0,
            False,
            self.left == 0,
            {},
        )


class NanObservation(Sound):
    """A root of a negative number."""

    def step(self, action: Any) -> Step:
        """NaN now and then."""
        self.move(action)
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.place), 1.0, False, self.left == 0, {}  # fault: obs-nan


class SharedBuffer(Sound):
    """Every observation lies in one array."""

    buffer = np.zeros(2, np.float32)

    def step(self, action: Any) -> Step:
        """Saves an allocation and costs a day."""
        self.move(action)
        self.buffer[:] = self.place
        return self.buffer, 1.0, False, self.left == 0, {}  # fault: obs-shared


class TwoBuffers(Sound):
    """Two arrays in turn: an observation is overwritten two steps later."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Fresh buffers."""
        self.buffers = np.zeros((2, 2), np.float32)
        return super().reset(seed=seed)

    def step(self, action: Any) -> Step:
        """Into the one that is free."""
        self.move(action)
        self.buffers[self.left % 2] = self.place
        return self.buffers[self.left % 2], 1.0, False, self.left == 0, {}  # fault: obs-changes


class GlobalNumpy(Sound):
    """numpy's global generator in the step."""

    def step(self, action: Any) -> Step:
        """Slippery."""
        slips = np.random.rand() < 0.5  # noqa: NPY002  # fault: unseeded-random
        self.move(0 if slips else action)
        return self.place.copy(), 1.0, False, self.left == 0, {}


class GlobalRandom(Sound):
    """Python's global generator in a helper of the reset."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Somewhere."""
        super().reset(seed=seed)
        self.left, self.place = LENGTH, self.somewhere()
        return self.place.copy(), {}

    def somewhere(self) -> np.ndarray:
        """Not seeded."""
        return np.full(2, random.uniform(-0.1, 0.1), np.float32)  # fault: unseeded-random


class OwnGenerator(Sound):
    """A generator that nobody seeds."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.dice = np.random.default_rng()  # fault: unseeded-random

    def step(self, action: Any) -> Step:
        """Slippery."""
        self.move(0 if self.dice.random() < 0.5 else action)
        return self.place.copy(), 1.0, False, self.left == 0, {}


class Clock(Sound):
    """The time of day in the reward."""

    def step(self, action: Any) -> Step:
        """Never the same."""
        self.move(action)
        bonus = time.perf_counter() % 1  # fault: unseeded-random
        return self.place.copy(), bonus, False, self.left == 0, {}


class SharedCount(Sound):
    """A count that all copies in a process share."""

    moves = 0

    def step(self, action: Any) -> Step:
        """The more copies, the more reward."""
        self.move(action)
        SharedCount.moves += 1
        return self.place.copy(), float(SharedCount.moves), False, self.left == 0, {}  # fault: step-not-repeatable


class SharedStart(Sound):
    """Where it starts depends on how often any copy was reset."""

    resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """One further each time."""
        _, info = super().reset(seed=seed)
        SharedStart.resets += 1
        self.place = np.full(2, np.sin(SharedStart.resets), np.float32)
        return self.place.copy(), info  # fault: reset-not-repeatable


class SeedIgnored(Sound):
    """The seed is not passed on."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Forgets it."""
        return super().reset()  # fault: seed-ignored


class NoSeed(Sound):
    """The signature of the old gym."""

    def reset(self) -> Any:  # type: ignore[override]  # fault: reset-arguments
        """Takes nothing."""
        return super().reset()


class NoInfo(Sound):
    """reset without info."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """As the old gym did."""
        return super().reset(seed=seed)[0]  # fault: reset-returns


class OnlySeeded(Sound):
    """A reset without a seed fails at first."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Needs a home that only a seed gives."""
        obs, info = super().reset(seed=seed)
        if seed is not None:
            self.home = seed % 2
        return (obs + 0.1 * self.home).astype(np.float32), info  # fault: reset-crash


class FourValues(Sound):
    """The step of the old gym."""

    def step(self, action: Any) -> Any:
        """done instead of terminated and truncated."""
        self.move(action)
        return self.place.copy(), 1.0, self.left == 0, {}  # fault: step-returns


class ArrayReward(Sound):
    """An array of one number."""

    def step(self, action: Any) -> Step:
        """Shape (1,)."""
        self.move(action)
        return self.place.copy(), self.place[:1], False, self.left == 0, {}  # fault: reward-type


class TextReward(Sound):
    """A number that was read from a file."""

    def step(self, action: Any) -> Any:
        """Text."""
        self.move(action)
        return self.place.copy(), "1.0", False, self.left == 0, {}  # fault: reward-type


class NoReward(Sound):
    """A task without rewards."""

    def step(self, action: Any) -> Any:
        """None."""
        self.move(action)
        return self.place.copy(), None, False, self.left == 0, {}  # fault: reward-type


class NanReward(Sound):
    """0/0 when it stands still."""

    def step(self, action: Any) -> Step:
        """NaN at the end."""
        self.move(action)
        if self.left == 0:
            return self.place.copy(), float("nan"), False, True, {}  # fault: reward-nan
        return self.place.copy(), 1.0, False, False, {}


class IntTerminated(Sound):
    """0 and 1 instead of False and True."""

    def step(self, action: Any) -> Step:
        """An int."""
        self.move(action)
        return self.place.copy(), 1.0, int(self.place[0] > 0.5), self.left == 0, {}  # fault: terminated-type


class NoneTruncated(Sound):
    """None instead of False."""

    def step(self, action: Any) -> Step:
        """None until the end."""
        self.move(action)
        return self.place.copy(), 1.0, False, True if self.left == 0 else None, {}  # fault: truncated-type


class ListInfo(Sound):
    """info is a list."""

    def step(self, action: Any) -> Step:
        """Wrong brackets."""
        self.move(action)
        return self.place.copy(), 1.0, False, self.left == 0, []  # fault: info-type


class StateLeaks(Sound):
    """Fuel that no reset fills up."""

    fuel = 500.0

    def step(self, action: Any) -> Step:
        """Less and less."""
        self.move(action)
        self.fuel -= 1.0  # fault: state-leaks
        return self.place.copy(), self.fuel, False, self.left == 0, {}


class NeverEnds(Sound):
    """Neither terminated nor truncated, ever."""

    def step(self, action: Any) -> Step:
        """On and on."""
        self.move(action)
        return self.place.copy(), 1.0, False, False, {}  # fault: never-ends


class LimitAsTerminated(Sound):
    """A time limit that claims that all is lost."""

    def step(self, action: Any) -> Step:
        """terminated at the limit."""
        self.move(action)
        return self.place.copy(), 1.0, self.left == 0, False, {}  # fault: limit-as-terminated


class ActionCrash(Sound):
    """A choice that was forgotten."""

    def step(self, action: Any) -> Step:
        """Only two of three."""
        push = {0: -1.0, 1: 1.0}[action]  # fault: step-crash
        self.move(push)
        return self.place.copy(), 1.0, False, self.left == 0, {}


class MutatesAction(Sound):
    """Clips the caller's array."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def step(self, action: Any) -> Step:
        """In place."""
        np.clip(action, -0.5, 0.5, out=action)  # fault: action-mutated
        self.move(action)
        return self.place.copy(), 1.0, False, self.left == 0, {}


class SpacesChange(Sound):
    """A wider observation space with every level."""

    level = 1.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Wider."""
        self.level += 1.0
        self.observation_space = spaces.Box(-self.level, self.level, (2,), np.float32)  # fault: spaces-change
        return super().reset(seed=seed)


class NoSpace(Sound):
    """A space that networks cannot read."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = spaces.Text(10)  # fault: obs-space


class NoActions(Sound):
    """A number instead of a space."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.action_space = 3  # type: ignore[assignment]  # fault: action-space


class MakeCrash(Sound):
    """A constructor that needs a file."""

    def __init__(self, render_mode: str | None = None) -> None:
        raise FileNotFoundError("level.txt")  # fault: make-crash


class MaskMissing(Sound):
    """A mask at the start only."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """With a mask."""
        return super().reset(seed=seed)[0], {"action_mask": np.ones(3, np.int8)}

    def step(self, action: Any) -> Step:
        """Without."""
        self.move(action)
        return self.place.copy(), 1.0, False, self.left == 0, {}  # fault: mask-missing


class MaskShape(Sound):
    """A mask for another action space."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Two of three."""
        return super().reset(seed=seed)[0], {"action_mask": np.ones(2, np.int8)}  # fault: mask-shape


class MaskEmpty(Sound):
    """Nothing left to do, and yet the episode goes on."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """All is possible."""
        return super().reset(seed=seed)[0], {"action_mask": np.ones(3, np.int8)}

    def step(self, action: Any) -> Step:
        """Nothing is, before the end."""
        self.move(action)
        mask = np.full(3, self.left != 1)
        return self.place.copy(), 1.0, False, self.left == 0, {"action_mask": mask}  # fault: mask-empty


class RenderCrash(Sound):
    """The window was never made."""

    def render(self) -> Any:
        """No such attribute."""
        return self.screen.copy()  # type: ignore[attr-defined]  # fault: render-crash


class RenderFrame(Sound):
    """Floats between 0 and 1."""

    def render(self) -> Any:
        """Not uint8."""
        return np.full((16, 16, 3), 0.5)  # fault: render-frame


class RenderChanges(Sound):
    """Draws the picture's stars from the env's generator."""

    def render(self) -> Any:  # fault: render-changes
        """Another episode with every picture."""
        return self.np_random.integers(0, 255, (16, 16, 3), np.uint8)


class CloseTwice(Sound):
    """Releases what is released already."""

    window: Any = "open"

    def close(self) -> None:
        """Works once."""
        self.window = self.window.upper() and None  # fault: close-crash


class SeededOnce(Sound):
    """Numbers from a generator that no attribute leads to, seeded with the env's: a checkpoint does not hold it."""

    def reset(self, **kwargs: Any) -> Any:  # fault: resume-not-exact
        """Seeds it with the first reset."""
        obs, info = super().reset(**kwargs)
        if kwargs.get("seed") is not None:
            self.dice = iter(np.random.default_rng(kwargs["seed"]).random, None)
        return obs, info

    def step(self, action: Any) -> Step:
        """Slippery."""
        self.move(0 if next(self.dice) < 0.5 else action)
        return self.place.copy(), 1.0, False, self.left == 0, {}


class LaterChance(Sound):
    """What the first reset draws is seeded; what every later one draws is not."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """A slope for the whole episode."""
        obs, info = super().reset(seed=seed)
        self.left = 300  # longer than what is repeated, so that only a reset in between shows it
        self.slope = np.random.default_rng(seed).uniform(-0.5, 0.5)  # fault: unseeded-random
        return obs, info

    def move(self, action: Any) -> None:
        """Down the slope."""
        super().move(float(action) + self.slope)


class OwnSeed(Sound):  # fault: own-generator
    """Repeatable, but not by the generator that Gymnasium gives it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Always in the same place."""
        self.left, self.place = LENGTH, np.zeros(2, np.float32)
        return self.place.copy(), {}

    def move(self, action: Any) -> None:
        """Without chance."""
        self.left -= 1
        self.place = np.clip(self.place + 0.05 * (float(action) - 1), -1, 1).astype(np.float32)


def broken() -> list[type[gym.Env]]:
    """All of them."""
    return list(Sound.__subclasses__())


for _kind in (Sound, *broken()):
    gym.register(f"{_kind.__name__}-v0", f"{__name__}:{_kind.__name__}")

"""Small envs whose best behaviour, steps or faults are known; importing this module registers them with Gymnasium."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Identity(gym.Env):
    """The observation is a state, and the action that names it pays 1. Ends after `LENGTH` steps."""

    LENGTH = 10

    def __init__(self, n: int = 4) -> None:
        self.n = n
        self.observation_space: spaces.Space = spaces.Discrete(n)
        self.action_space: spaces.Space = spaces.Discrete(n)

    def draw(self) -> Any:
        """A new state."""
        return self.np_random.integers(self.n)

    def pay(self, action: Any) -> float:
        """1 for the state's own action."""
        return float(action == self.state)

    def observe(self) -> Any:
        """The state as the agent sees it."""
        return self.state

    def info(self) -> dict[str, Any]:
        """Nothing to add."""
        return {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A random state."""
        super().reset(seed=seed)
        self.left, self.state = self.LENGTH, self.draw()
        return self.observe(), self.info()

    def step(self, action: Any) -> Step:
        """Pay and draw the next state."""
        reward = self.pay(action)
        self.left, self.state = self.left - 1, self.draw()
        return self.observe(), reward, self.left == 0, False, self.info()


class MultiIdentity(Identity):
    """Two states and an action for each; both must match. One of the actions does not count from zero."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.MultiDiscrete([3, 2])
        self.action_space = spaces.MultiDiscrete([3, 2], start=[0, 5])

    def draw(self) -> Any:
        """Two numbers."""
        return self.np_random.integers([3, 2])

    def pay(self, action: Any) -> float:
        """1 when both match."""
        return float((action == np.add(self.state, (0, 5))).all())


class BoxIdentity(Identity):
    """A point in a square, to be named by its coordinates; pays 1 minus the squared distance."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def draw(self) -> Any:
        """A point."""
        return self.np_random.uniform(-0.8, 0.8, 2).astype(np.float32)

    def pay(self, action: Any) -> float:
        """Close is good."""
        return 1.0 - float(np.square(action - self.state).sum())


class Shifted(Identity):
    """States and actions that do not count from 0: one number, or two of which the first decides."""

    def __init__(self, kind: str = "discrete") -> None:
        super().__init__()
        self.kind = kind
        one = spaces.Discrete(4, start=3)
        self.observation_space = one if kind == "discrete" else spaces.Tuple((one, spaces.Discrete(2, start=-2)))
        self.action_space = spaces.Discrete(4, start=7)

    def observe(self) -> Any:
        """The state, counted from 3."""
        shown = int(self.state) + 3
        return shown if self.kind == "discrete" else (shown, -2)

    def pay(self, action: Any) -> float:
        """1 for the state's own action, counted from 7."""
        assert self.action_space.contains(action), action
        return float(action - 7 == self.state)


class DictIdentity(Identity):
    """State 0 to 3 told in two parts, of which none is enough."""

    def __init__(self) -> None:
        super().__init__()
        parts = {"half": spaces.Discrete(2, start=1), "side": spaces.Box(-1.0, 1.0, (1,), np.float32)}
        self.observation_space = spaces.Dict(parts)

    def observe(self) -> Any:
        """Upper or lower half, and which side of it."""
        return {"half": 1 + self.state // 2, "side": np.array([2.0 * (self.state % 2) - 1.0], np.float32)}


class SwitchIdentity(Identity):
    """Three switches to be set as shown; each right one pays a third."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.MultiBinary(3)
        self.action_space = spaces.MultiBinary(3)

    def draw(self) -> Any:
        """Three bits."""
        return self.np_random.integers(0, 2, 3, np.int8)

    def pay(self, action: Any) -> float:
        """The share of right switches."""
        assert action.dtype == np.int8
        return float((action == self.state).mean())


class NestedIdentity(DictIdentity):
    """The same two parts, one deep inside a Dict, one inside a Tuple."""

    def __init__(self) -> None:
        super().__init__()
        half, side = self.observation_space["half"], self.observation_space["side"]  # type: ignore[index]
        deep = spaces.Dict({"inner": spaces.Dict({"half": half}), "sides": spaces.Tuple((side, spaces.Discrete(2)))})
        self.observation_space = deep

    def observe(self) -> Any:
        """The parts, nested."""
        parts = super().observe()
        return {"inner": {"half": parts["half"]}, "sides": (parts["side"], 0)}


class TupleIdentity(DictIdentity):
    """The same two parts in a Tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Tuple(tuple(self.observation_space.spaces.values()))  # type: ignore[attr-defined]

    def observe(self) -> Any:
        """Both parts."""
        return tuple(super().observe().values())


class PartsIdentity(Identity):
    """A choice, a point and two switches to be named in one Dict or Tuple action; each pays a third."""

    def __init__(self, kind: str = "dict") -> None:
        super().__init__(n=3)
        state = {"choice": spaces.Discrete(3), "point": spaces.Box(-1.0, 1.0, (2,)), "switches": spaces.MultiBinary(2)}
        self.observation_space = spaces.Dict(state)
        choice = spaces.Discrete(3, start=4)
        inner = spaces.Dict({"point": state["point"], "switches": state["switches"]})
        parts = {"choice": choice, "rest": inner}
        self.action_space = spaces.Dict(parts) if kind == "dict" else spaces.Tuple((choice, inner))

    def draw(self) -> Any:
        """All three."""
        point = self.np_random.uniform(-0.8, 0.8, 2).astype(np.float32)
        choice, switches = self.np_random.integers(3), self.np_random.integers(0, 2, 2, np.int8)
        return {"choice": choice, "point": point, "switches": switches}

    def pay(self, action: Any) -> float:
        """A third for each."""
        assert self.action_space.contains(action), action
        choice, rest = action if isinstance(action, tuple) else (action["choice"], action["rest"])
        close = 1.0 - float(np.square(rest["point"] - self.state["point"]).sum())
        right = float(choice - 4 == self.state["choice"]) + float((rest["switches"] == self.state["switches"]).mean())
        return (close + right) / 3


class MaskedIdentity(Identity):
    """The state's own action would pay 10 but is forbidden, and an error; its successor pays 1."""

    def info(self) -> dict[str, Any]:
        """All but the state's own action."""
        return {"action_mask": np.arange(self.n) != self.state}

    def pay(self, action: Any) -> float:
        """1 for the successor."""
        if action == self.state:
            raise ValueError(f"action {action} is forbidden in state {self.state}")
        return float(action == (self.state + 1) % self.n)


class DrawnMask(MaskedIdentity):
    """The same with a picture: as bright as the state's number."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 - Gymnasium's convention

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()
        self.render_mode = render_mode

    def render(self) -> Any:
        """One colour."""
        return np.full((40, 40, 3), 50 * (1 + int(self.state)), np.uint8)


class Walk(gym.Env):
    """A noisy walk unknown to the snapshots, with any kind of action; restored by replay."""

    def __init__(self, actions: str = "multi") -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        kinds: dict[str, spaces.Space] = {
            "multi": spaces.MultiDiscrete([3, 3]),
            "box": spaces.Box(-1.0, 1.0, (2,), np.float64),
            "discrete": spaces.Discrete(9),
            "switches": spaces.MultiBinary(2),
            "parts": spaces.Dict({"x": spaces.Discrete(3), "y": spaces.Tuple((spaces.Box(-1.0, 1.0, (1,)),))}),
        }
        self.action_space = kinds[actions]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A seed draws a new home, every reset a start near it."""
        super().reset(seed=seed)
        if seed is not None:
            self.home = self.np_random.normal(size=2)
        self.place = self.home + 0.1 * self.np_random.normal(size=2)
        return self.place.copy(), {}

    def step(self, action: Any) -> Step:
        """Move, drift, and sometimes fall."""
        if isinstance(self.action_space, spaces.Discrete):
            action = np.array(divmod(action, 3))
        if isinstance(action, dict):
            assert self.action_space.contains(action), action
            action = np.array([action["x"], 1.0 + float(action["y"][0][0])])
        offset = 0.0 if isinstance(self.action_space, spaces.Box) else 1.0
        self.place = self.place + 0.1 * (action - offset) + 0.05 * self.np_random.normal(size=2)
        distance = float(np.abs(self.place).sum())
        return self.place.copy(), -distance, distance > 4 or self.np_random.random() < 0.03, False, {}


class Paid(Walk):
    """A walk that tells what its reward is made of; from its second step on there is a bonus. It draws nothing."""

    BONUS = 0.25

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """No bonus yet."""
        self.steps = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Step:
        """The walk's reward and, later, the bonus."""
        place, reward, terminated, truncated, _ = super().step(action)
        self.steps += 1
        terms = {"distance": reward}
        if self.steps > 1:
            terms["bonus"] = self.BONUS
        return place, sum(terms.values()), terminated, truncated, {"reward_terms": terms}


class Counting(gym.Env):
    """Knows how often it was stepped and reset, all copies in this process together."""

    steps = 0
    resets = 0

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Count."""
        super().reset(seed=seed)
        Counting.resets += 1
        return self.np_random.random(2, np.float32), {}

    def step(self, action: Any) -> Step:
        """Count; one episode in seven ends here."""
        Counting.steps += 1
        return self.np_random.random(2, np.float32), 1.0, bool(self.np_random.random() < 1 / 7), False, {}


class ShortOrLong(gym.Env):
    """Half of the episodes last 10 steps, half 500; the return is the length: 255 on average."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Toss the coin."""
        super().reset(seed=seed)
        self.left = int(self.np_random.choice([10, 500]))
        self.length = self.left
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Step:
        """1 per step; a long episode is a success."""
        self.left -= 1
        info = {"is_success": self.length == 500} if self.left == 0 else {}
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, info


class Faulty(Counting):
    """Goes wrong at a step of each copy: `nan` and `inf` observations, a `reward` that is NaN, or a `crash`."""

    def __init__(self, how: str = "crash", at: int = 5) -> None:
        super().__init__()
        self.how, self.at, self.count = how, at, 0

    def step(self, action: Any) -> Step:
        """Count, then fail."""
        obs, reward, terminated, truncated, info = super().step(action)
        self.count += 1
        if self.count == self.at:
            if self.how == "crash":
                raise RuntimeError("the simulator\nexploded")
            if self.how == "reward":
                reward = float("nan")
            else:
                obs[0] = float(self.how)
        return obs, reward, terminated, truncated, info


class Pictures(Counting):
    """Ends after `length` steps and renders frames of any size, with the step's number as their brightness."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012 - Gymnasium's convention

    def __init__(
        self,
        render_mode: str | None = None,
        size: tuple[int, ...] = (5, 7),
        length: int = 9,
        blank: bool = False,
        grows: bool = False,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.render_mode, self.size, self.length = render_mode, tuple(size), length
        self.blank, self.grows, self.channels = blank, grows, channels

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start at step 0."""
        self.now = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Step:
        """Count up to the length."""
        obs, reward, *_ = super().step(action)
        self.now += 1
        return obs, reward, self.now == self.length, False, {}

    def render(self) -> Any:
        """A grey picture, or nothing."""
        size = [side + self.now for side in self.size] if self.grows else self.size
        return None if self.blank else np.full((*size, self.channels), 20 * self.now, np.uint8)


class Lives(Pictures):
    """Every third step costs one of three lives; with the last one the game is over. Pays 1 per step."""

    def step(self, action: Any) -> Step:
        """Count up; `life_lost` is how an env says that a termination is no end."""
        obs, reward, over, _, info = super().step(action)
        lost = self.now % 3 == 0
        return obs, reward, over or lost, False, {**info, "life_lost": True} if lost and not over else info


class Screen(Pictures):
    """Draws into a window as games do, and nothing under SDL's `dummy` driver, as highway-env."""

    def render(self) -> Any:
        """A red window."""
        import pygame

        screen = pygame.display.set_mode((64, 48))
        screen.fill((200, 0, 0))
        picture = np.transpose(pygame.surfarray.array3d(screen), (1, 0, 2))
        return picture * np.uint8(os.environ.get("SDL_VIDEODRIVER") != "dummy")


def register() -> None:
    """All envs of this module, under ids that end in -v0."""
    limits = {"Walk": 60, "Paid": 60, "Counting": 50, "Faulty": 50, "Pictures": 50, "Lives": 50, "Screen": 50}
    identities = (
        Identity,
        Shifted,
        MultiIdentity,
        BoxIdentity,
        DictIdentity,
        MaskedIdentity,
        DrawnMask,
        SwitchIdentity,
        NestedIdentity,
    )
    for kind in (
        *identities,
        TupleIdentity,
        PartsIdentity,
        Walk,
        Paid,
        Counting,
        ShortOrLong,
        Faulty,
        Pictures,
        Lives,
        Screen,
    ):
        name = kind.__name__
        limit = limits.get(name, 500 if kind is ShortOrLong else Identity.LENGTH)
        gym.register(f"{name}-v0", f"{__name__}:{name}", max_episode_steps=limit)


if "Identity-v0" not in gym.registry:
    register()

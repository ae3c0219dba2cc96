"""Frame skip: one decision lasts several steps of the env."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.wrappers.parts import changed_parts, is_image
from gymnast.envs.wrappers.single import ActionChanger, Reset, Step
from gymnast.errors import ConfigError


class FrameSkip(ActionChanger):
    """Repeats every action: a fixed number of steps, a random one, or as many as the policy chooses.

    Rewards are summed. The repetition ends with the episode, or when the env's mask forbids the action.
    """

    def __init__(
        self, env: gym.Env, skip: int | list[int] = 4, choices: list[int] | None = None, max_pool: bool = False
    ) -> None:
        super().__init__(env)
        _refuse_two_skips(env)
        self._skip, self._choices = skip, choices
        self._pooled = self._images() if max_pool else None
        self._frames: list[dict[str, np.ndarray]] = []
        """The last frame and the one before it, in memory of their own."""
        if choices is not None:
            self.action_space = _with_choice(env.action_space, len(choices))

    def _images(self) -> list[str]:
        space = self.env.observation_space
        parts = changed_parts(space, "frame_skip with max_pool")
        if not all(is_image(part) for part in parts.values()):
            raise ConfigError(f"Wrapper 'frame_skip' with max_pool needs images, this env has {space}.")
        return list(parts)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """The first frame has none before it."""
        obs, info = super().reset(seed=seed, options=options)
        if self._pooled is not None:
            self._frames = [self._copies(obs)] * 2
        return obs, self._with_mask(info)

    def step(self, action: Any) -> Step:
        """Repeat the action, and add up the rewards."""
        action, repeats = self._split(action)
        self.given = []
        total = 0.0
        for _ in range(repeats):
            obs, reward, terminated, truncated, info = self.pass_on(action)
            total += float(reward)
            if self._pooled is not None:
                self._frames = [self._copies(obs), self._frames[0]]
            if terminated or truncated or not self.possible(action):
                break
        return self._pool(obs), total, terminated, truncated, self._with_mask(info)

    def _split(self, action: Any) -> tuple[Any, int]:
        """The action for the env, and for how many steps."""
        if self._choices is not None:
            space = self.env.action_space
            choice = int(action[-1])
            if isinstance(self.action_space, spaces.Tuple):
                action = action[0]
            elif isinstance(space, spaces.Discrete):
                action = int(action[0])
            else:
                action = action[:-1]
            return action, self._choices[choice]
        if isinstance(self._skip, int):
            return action, self._skip
        return action, int(self.random.integers(self._skip[0], self._skip[1], endpoint=True))

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        """Every number of steps is possible."""
        if self._choices is None or "action_mask" not in info or isinstance(self.action_space, spaces.Tuple):
            return info
        mask = np.asarray(info["action_mask"])
        return {**info, "action_mask": np.concatenate((mask, np.ones(len(self._choices), mask.dtype)))}

    def _copies(self, obs: Any) -> dict[str, np.ndarray]:
        assert self._pooled is not None
        return {key: np.array(obs[key] if key else obs) for key in self._pooled}

    def _pool(self, obs: Any) -> Any:
        if self._pooled is None:
            return obs
        last, before = self._frames
        best = {key: np.maximum(last[key], before[key]) for key in self._pooled}
        if isinstance(obs, dict):
            return {**obs, **best}
        return best[""]

    def save_state(self) -> dict[str, Any]:
        """Generator, mask and the last frame; the one before it is never needed again."""
        return {**super().save_state(), "frame": dict(self._frames[0]) if self._frames else None}

    def load_state(self, state: dict[str, Any]) -> None:
        """Generator, mask and the last frame."""
        super().load_state(state)
        if state["frame"] is not None:
            self._frames = [state["frame"]] * 2
        else:
            self._frames = []


def _refuse_two_skips(env: gym.Env) -> None:
    spec = env.unwrapped.spec
    own = 1
    if spec is not None:
        own = spec.kwargs.get("frameskip", 1)
    if spec is not None and own != 1:
        raise ConfigError(
            f"Wrapper 'frame_skip' would skip twice: {spec.id} already repeats every action (frameskip {own}). "
            "Set env.kwargs.frameskip to 1, or remove the wrapper."
        )


def _with_choice(space: spaces.Space, n: int) -> spaces.Space:
    """The action space with one more choice among n."""
    if isinstance(space, spaces.Discrete):
        return spaces.MultiDiscrete([int(space.n), n], start=[int(space.start), 0])
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return spaces.MultiDiscrete([*space.nvec, n], start=[*space.start, 0])
    return spaces.Tuple((space, spaces.Discrete(n)))

"""Restoring envs whose state is out of reach: the current episode is repeated from its reset.

Exact for envs that are deterministic given their seed; a checksum of the last observation and the sum of the rewards
tell of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs import snapshots
from gymnast.envs.actions import converter, is_composite
from gymnast.envs.generators import OwnGenerators

KEPT_IN_VAIN = 1024
"""Vector steps that no running episode needs any more before their actions are let go."""


class Episodes:
    """How the current episode of each slot began, and all actions since."""

    def __init__(self, envs: Sequence[gym.Env]) -> None:
        self._envs = envs
        self._own_generators = [OwnGenerators(env) for env in envs]
        self._starts: list[dict[str, Any]] = [{} for _ in envs]
        self._first = [0] * len(envs)
        """Number of the vector step with the episode's first action."""
        self._actions: list[np.ndarray] = []
        self._forgotten = 0

    def begin(self, i: int, seed: int | None, *, seeded: bool) -> None:
        """Slot i is about to be reset, with its seed or without."""
        env = self._envs[i]
        # No generator state after a seed: repeating the seeded reset is exact, also for envs that do more when seeded.
        generator = None if seeded else snapshots.save_generator(env)
        self._starts[i] = {
            "seed": seed,
            "generator_at_reset": generator,
            "own_generators_at_reset": self._own_generators[i].save(search=False),
            "layers_at_reset": snapshots.save_layers(env),
        }
        self._first[i] = self._forgotten + len(self._actions)
        needed = min(self._first) - self._forgotten
        if needed > KEPT_IN_VAIN:
            del self._actions[:needed]
            self._forgotten += needed

    def act(self, actions: np.ndarray) -> None:
        """One action per slot, before the envs are stepped."""
        self._actions.append(np.array(actions))

    def save(self, i: int, obs: Any, ret: float) -> dict[str, Any]:
        """What repeats the episode of slot i, and how to know that it came to the same place."""
        env, since = self._envs[i], self._first[i] - self._forgotten
        return {
            **self._starts[i],
            "actions": np.array([row[i] for row in self._actions[since:]]),
            "generator": snapshots.save_generator(env),
            "own_generators": self._own_generators[i].save(),
            "layers": snapshots.save_layers(env),
            "fingerprint": snapshots.fingerprint(obs),
            "return": ret,
        }

    def load(self, states: Sequence[dict[str, Any]]) -> None:
        """Restore the record of each slot's episode, which `replay` has repeated."""
        played = [_actions(env, state) for env, state in zip(self._envs, states, strict=True)]
        longest = max(map(len, played))
        blank = next((np.zeros_like(rows[0]) for rows in played if len(rows)), None)
        self._forgotten, self._first = 0, [longest - len(rows) for rows in played]
        self._actions = [
            np.array(
                [rows[t - first] if t >= first else blank for rows, first in zip(played, self._first, strict=True)]
            )
            for t in range(longest)
        ]
        keys = ("seed", "generator_at_reset", "own_generators_at_reset", "layers_at_reset")
        self._starts = [{key: state.get(key) for key in keys} for state in states]


def replay(env: gym.Env, state: dict[str, Any]) -> tuple[Any, bool]:
    """Repeat one episode; gives the last observation, and whether it and the rewards so far are the saved ones."""
    own_generators = OwnGenerators(env)
    own_at_reset = state.get("own_generators_at_reset") or {}  # older checkpoints have none
    snapshots.load_layers(env, state["layers_at_reset"])
    own_generators.load(own_at_reset)
    obs, _ = env.reset(seed=state["seed"])
    if state["generator_at_reset"] is not None:  # a later episode, reset without a seed
        snapshots.load_layers(env, state["layers_at_reset"])
        snapshots.load_generator(env, state["generator_at_reset"])
        own_generators.load(own_at_reset)
        obs, _ = env.reset()
    ended, ret = False, 0.0
    convert = converter(env.action_space)
    for action in _actions(env, state):
        obs, reward, terminated, truncated, _ = env.step(convert(action[None])[0])
        ret += float(reward)
        if ended := bool(terminated or truncated):  # the saved episode was still running
            obs, _ = env.reset()
            break
    snapshots.load_generator(env, state["generator"])
    own_generators.load(state.get("own_generators") or {})
    snapshots.load_layers(env, state["layers"])
    same_obs = snapshots.fingerprint(obs) == state["fingerprint"]
    saved = state.get("return", ret)  # an env may show the same wherever it is; older checkpoints hold no return
    return obs, not ended and same_obs and (saved == ret or (math.isnan(saved) and math.isnan(ret)))


def _actions(env: gym.Env, state: dict[str, Any]) -> np.ndarray:
    """The recorded actions, one row each, as the policy gave them."""
    return np.asarray(state["actions"], np.float32 if is_composite(env.action_space) else None)

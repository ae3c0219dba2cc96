"""A step in two halves, `send` and `recv`, is the step, through every adapter and wrapper of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.make import make_envs
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.registry import KINDS
from gymnast.envs.wrappers.vector import VectorWrapper

N_ENVS, STEPS = 3, 40
PIXELS = {"id": "Pictures-v0", "wrappers": ["pixels"]}
WRAPPED: dict[str, dict[str, Any]] = {
    "action_clip": {"id": "Pendulum-v1", "time_limit": 12, "wrappers": ["action_clip"]},
    "action_stack": {"id": "CartPole-v1", "wrappers": [{"id": "action_stack", "size": 2}]},
    "array": {"id": "MultiIdentity-v0", "wrappers": ["array"]},
    "crop": {**PIXELS, "wrappers": ["pixels", {"id": "crop", "top": 1}]},
    "frame_stack": {"id": "CartPole-v1", "wrappers": [{"id": "frame_stack", "size": 3}]},
    "gray": {**PIXELS, "wrappers": ["pixels", "gray"]},
    "mask_region": {**PIXELS, "wrappers": ["pixels", {"id": "mask_region", "rectangles": [[0, 0, 2, 2]]}]},
    "observation_noise": {"id": "CartPole-v1", "wrappers": [{"id": "observation_noise", "std": 0.1}]},
    "observation_stack": {"id": "CartPole-v1", "wrappers": [{"id": "observation_stack", "size": 3}]},
    "one_hot": {"id": "FrozenLake-v1", "wrappers": ["one_hot"]},
    "quantise": {**PIXELS, "wrappers": ["pixels", {"id": "quantise", "levels": 4}]},
    "resize": {**PIXELS, "wrappers": ["pixels", {"id": "resize", "width": 4, "height": 3}]},
    "reward_clip": {"id": "Pendulum-v1", "time_limit": 12, "wrappers": ["reward_clip"]},
    "reward_scale": {"id": "Pendulum-v1", "time_limit": 12, "wrappers": [{"id": "reward_scale", "factor": 0.1}]},
    "select": {"id": "CartPole-v1", "wrappers": [{"id": "select", "components": [2, 0]}]},
    "several": {
        "id": "CartPole-v1",
        "vectorization": "workers",
        "n_workers": 2,
        "wrappers": [{"id": "observation_noise", "std": 0.1}, {"id": "frame_stack", "size": 2}, "reward_clip"],
    },
}
ADAPTERS: dict[str, dict[str, Any]] = {
    "native CartPole": {"id": "CartPole-v1", "vectorization": "native"},
    "native bandit": {"id": "gymnast/Bandit-v0", "time_limit": 12},
    "masks": {"id": "Taxi-v4", "time_limit": 12},
    "parts": {"id": "PartsIdentity-v0"},
    "games": {"id": "ALE/Pong-v5", "vectorization": "native", "atari": {"sticky": 0.0, "noops": 0, "frame_cap": 60}},
    "EnvPool": {"id": "CartPole-v1", "vectorization": "envpool"},
}
NEEDS = {"games": "ale_py", "EnvPool": "envpool"}


def made(data: dict[str, Any]) -> VectorEnv:
    """Running envs."""
    return make_envs(EnvConfig.model_validate(data), N_ENVS)


def seen(row: StepRow, ended: Sequence[EndedEpisode]) -> list[Any]:
    """All that a step gives."""
    obs = [row.obs[key] for key in sorted(row.obs)] if isinstance(row.obs, dict) else [row.obs]
    arrays = [array.tobytes() for array in (*obs, row.reward, row.terminated, row.truncated)]
    finals = [
        [e.final_obs[key] for key in sorted(e.final_obs)] if isinstance(e.final_obs, dict) else [e.final_obs]
        for e in ended
    ]
    episodes = [(e.index, e.ret, e.length, e.terminated) for e in ended]
    masks = None if row.mask is None else row.mask.tobytes()
    return [arrays, masks, episodes, [[np.asarray(part).tobytes() for part in final] for final in finals]]


@pytest.mark.parametrize("name", [*WRAPPED, *ADAPTERS])
def test_two_halves_are_a_step(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    data = (WRAPPED | ADAPTERS)[name]
    with closing(made(data)) as whole, closing(made(data)) as halves:
        row, other = whole.new_row(), halves.new_row()
        for envs, first in ((whole, row), (halves, other)):
            envs.reset([4, 5, 6], first)
        rng = np.random.default_rng(0)
        n_ended = 0
        for _ in range(STEPS):
            actions = random_actions(whole.action_space, N_ENVS, rng, row.mask)
            ended = whole.step(actions, row)
            n_ended += len(ended)
            halves.send(actions.copy())
            other = halves.new_row()  # where the outcome goes is said at the end
            assert seen(row, ended) == seen(other, halves.recv(other))
        assert n_ended > 0


def test_every_wrapper_of_the_batch_is_tested_here() -> None:
    assert {name for name, kind in KINDS.items() if kind.batch is not None} <= set(WRAPPED)


def test_a_wrapper_with_a_step_of_its_own_is_refused() -> None:
    """It would silently do nothing inside another wrapper."""
    with pytest.raises(TypeError, match=r"Forgetful is a VectorWrapper with a `step` of its own.*`send`.*`recv`"):

        class Forgetful(VectorWrapper):
            def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
                return self.inner.step(actions, row)

"""What the env itself paid reaches the caller next to what wrappers made of it, however envs are stepped."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from counter_env import CounterEnv

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import make_envs
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.rewards import RewardClip, RewardScale

N = 4
SCALE = {"id": "reward_scale", "factor": 0.1, "offset": 0.5}
CLIP = {"id": "reward_clip", "low": -0.55, "high": 0.55}
PONG = {"id": "ALE/Pong-v5", "atari": {"obs": "ram", "skip": 8}, "time_limit": 60}
WAYS: dict[str, dict[str, Any]] = {
    "native": {"id": "CartPole-v1", "vectorization": "native"},
    "in this process": {"id": "CartPole-v1", "vectorization": "inprocess"},
    "workers": {"id": "CartPole-v1", "vectorization": "workers", "n_workers": 2},
    "EnvPool": {"id": "CartPole-v1", "vectorization": "envpool"},
    "frame skip": {"id": "CartPole-v1", "vectorization": "inprocess", "wrappers": [{"id": "frame_skip", "skip": 3}]},
    "stacked": {
        "id": "CartPole-v1",
        "vectorization": "inprocess",
        "behind": [{"id": "frame_stack"}, {"id": "action_stack"}],
    },
    "lanes": {**PONG, "vectorization": "workers", "n_workers": 2},
    "ALE's vector env": {**PONG, "vectorization": "native", "atari": {"skip": 8}},
}


def made(way: str) -> VectorEnv:
    """Envs whose rewards two wrappers change."""
    section = dict(WAYS[way])
    wrappers = [*section.pop("wrappers", []), SCALE, CLIP, *section.pop("behind", [])]
    return make_envs(EnvConfig.model_validate({**section, "wrappers": wrappers}), N)


def play(envs: VectorEnv, steps: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, EndedEpisode]]]:
    """Own and changed rewards [T, N] of random actions, and the ended episodes with their steps."""
    random, row = np.random.default_rng(0), envs.new_row()
    envs.reset([1, 2, 3, 4], row)
    own, changed, ended = [], [], []
    for t in range(steps):
        ended += [(t, one) for one in envs.step(random_actions(envs.action_space, N, random, row.mask), row)]
        assert row.own_reward is not None
        own.append(row.own_reward.copy())
        changed.append(row.reward.copy())
    return np.array(own), np.array(changed), ended


@pytest.mark.parametrize("way", WAYS)
def test_own_rewards_sum_to_the_returns(way: str) -> None:
    """Returns are counted where the env pays; the other rewards are those, scaled and then clipped."""
    if way == "EnvPool":
        pytest.importorskip("envpool")
    if "atari" in WAYS[way]:
        pytest.importorskip("ale_py")
    with closing(made(way)) as envs:
        assert envs.changes_reward
        assert isinstance(envs, LanePool) == (way == "lanes")
        own, changed, ended = play(envs, 130)
    assert ended
    began = np.zeros(N, int)
    for t, episode in ended:
        assert own[began[episode.index] : t + 1, episode.index].sum() == pytest.approx(episode.ret), way
        began[episode.index] = t + 1
    assert own.any()
    np.testing.assert_allclose(changed, np.clip(own * 0.1 + 0.5, -0.55, 0.55), rtol=1e-6)
    assert (own != changed).any()


def test_nothing_is_kept_where_no_wrapper_changes_rewards() -> None:
    """No second array, and so no second copy."""
    with closing(make_envs(EnvConfig(id="CartPole-v1", wrappers=[{"id": "frame_stack"}]), N)) as envs:  # type: ignore[list-item]
        assert not envs.changes_reward
        assert envs.new_row().own_reward is None


def test_a_lost_lane_has_paid_nothing() -> None:
    """Its steps are truncations without reward, also in the env's own."""

    def make(n: int) -> VectorEnv:
        return RewardClip(RewardScale(InProcessVector(CounterEnv, n), 2.0), 0.0, 1.0)

    with closing(LanePool(make, N, n_workers=2, timeout=20.0)) as envs:
        row = envs.new_row()
        envs.reset([1, 2, 3, 4], row)
        step = np.zeros(N, np.int64)
        over = [episode.index for episode in envs.step(step, row)]
        assert row.own_reward is not None
        assert (row.own_reward != 0).all()
        paid = [0.0 if i in over else float(row.own_reward[i]) for i in range(2)]
        envs._workers[0].process.kill()
        lost = [episode for episode in envs.step(step, row) if "worker_restarted" in episode.infos]
        assert [episode.index for episode in lost] == [0, 1]
        assert (row.own_reward[:2] == 0).all() and (row.own_reward[2:] != 0).all()
        assert [episode.ret for episode in lost] == paid  # by the env, not what was learned from
        assert max(paid) > 1.0


def test_a_caller_that_does_not_ask_gets_the_changed_ones() -> None:
    """Rows without a place for the env's own reward are served as before."""
    envs = RewardScale(InProcessVector(CounterEnv, 1), 2.0)
    row = envs.new_row()
    bare = StepRow(row.obs, row.reward, row.terminated, row.truncated)
    envs.reset([0], bare)
    envs.step(np.zeros(1, np.int64), bare)
    assert bare.own_reward is None
    assert row.reward[0] != 0

"""2N iterations = N + stop + resume + N, to the last bit, for one env of each family (RUN-8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs_alike import Watcher, assert_same_end, differences, resume, run, small

ENVS = {
    "Box2D by replay": {"id": "BipedalWalker-v3", "time_limit": 30, "vectorization": "inprocess"},
    "MuJoCo by snapshot": {"id": "Ant-v5", "time_limit": 30, "vectorization": "inprocess"},
    "MinAtar by snapshot": {"id": "MinAtar/SpaceInvaders-v1", "time_limit": 30, "vectorization": "inprocess"},
    "MiniGrid by replay": {"id": "MiniGrid-DoorKey-5x5-v0", "time_limit": 30, "vectorization": "inprocess"},
    "ViZDoom by replay": {
        "id": "VizdoomDefendCenter-v1",
        "kwargs": {"screen": [36, 48]},
        "time_limit": 30,
        "vectorization": "workers",
        "n_workers": 2,
    },
    "Atari by snapshot": {
        "id": "ALE/Pong-v5",
        "atari": {"obs": "objects", "sticky": 0.25, "frame_cap": 120},
        "vectorization": "inprocess",
    },
    "Atari by replay": {
        "id": "ALE/Qbert-v5",
        "atari": {"obs": "ram", "life_loss": "terminal", "frame_cap": 120},
        "vectorization": "inprocess",
    },
}


@pytest.mark.parametrize("case", ENVS)
def test_stop_and_resume_equals_the_whole_run(case: str, tmp_path: Path) -> None:
    """Weights, moments, statistics, generators, env states, rows and all actions."""
    resolved = small("ppo", ENVS[case], policy={"hidden": [16], "normalize_obs": True})
    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole, stopped = run(resolved, tmp_path, straight), run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not after.warnings
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)
    assert whole.evaluation is not None and finished.evaluation is not None
    assert whole.evaluation.returns == finished.evaluation.returns

"""The exact suite on a GPU, under `train.deterministic` (RUN-8); it needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, resume, run, small

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")

ON_GPU = {"train": {"device": "cuda", "deterministic": True}}
CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
PENDULUM = {"id": "Pendulum-v1", "time_limit": 30}
POLICIES: dict[str, dict[str, Any]] = {
    "plain": {"hidden": [64, 64], "normalize_obs": True},
    "shared trunk": {"hidden": [64], "shared_trunk": True},
    "layer norm": {"hidden": [64], "layer_norm": True},
    "dropout": {"hidden": [64], "dropout": 0.3},
}


def on_gpu(algorithm: str, env: dict[str, Any], policy: str, env_steps: int) -> Any:
    """A small run on the GPU."""
    train = {"env_steps": env_steps, "stop_when_solved": False, "checkpoint_every": 10**9, **ON_GPU["train"]}
    return small(algorithm, env, train=train, policy=POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("env", [CARTPOLE, PENDULUM], ids=["CartPole", "Pendulum"])
@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_stop_and_resume_equals_the_whole_run(algorithm: str, env: dict[str, Any], policy: str, tmp_path: Path) -> None:
    stop_after, env_steps = (2, 15 * PER_ITERATION) if algorithm == "reinforce" else (3, 6 * PER_ITERATION)
    resolved = on_gpu(algorithm, env, policy, env_steps)
    straight, before, after = Watcher(), Watcher(stop_after=stop_after), Watcher()
    whole = run(resolved, tmp_path, straight)
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not differences([a.cpu() for a in straight.actions], [a.cpu() for a in before.actions + after.actions])
    assert_same_end(whole.run, finished.run)

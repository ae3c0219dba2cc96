"""Several seeds of one config: side by side in processes, or one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import trim_mean

import gymnast
from gymnast.errors import UsageError
from gymnast.runs.store import Run

TINY: dict[str, Any] = {
    "env__n_envs": 4,
    "eval__episodes": 3,
    "policy__hidden": [16],
    "algo__n_steps": 16,
    "algo__batch_size": 32,
    "algo__n_epochs": 1,
}


def weights(run: Run) -> bytes:
    """Of the newest checkpoint."""
    newest = max(run.checkpoints.glob("step=*"), key=lambda folder: int(folder.name.partition("=")[2]))
    return (newest / "policy.safetensors").read_bytes()


def test_processes_and_one_after_the_other_give_the_runs_of_single_trainings(tmp_path: Path) -> None:
    side = gymnast.train(
        "CartPole-v1:ppo", env_steps=128, seeds=[3, 1], jobs=2, runs_dir=tmp_path / "side", train__device="cpu", **TINY
    )
    row = gymnast.train("CartPole-v1:ppo", env_steps=128, seeds=[3, 1], jobs=1, runs_dir=tmp_path / "row", **TINY)
    alone = [
        gymnast.train("CartPole-v1:ppo", env_steps=128, seed=seed, runs_dir=tmp_path / "alone", **TINY)
        for seed in (3, 1)
    ]
    assert [run.config()["train"]["seed"] for run in side.runs] == [3, 1]
    bits = [weights(one.run) for one in alone]
    assert bits[0] != bits[1]
    assert [weights(run) for run in side.runs] == bits
    assert [weights(run) for run in row.runs] == bits
    assert not side.failed
    assert side.runs[0].metrics("env_steps")["env_steps"].tolist() == [64, 128]  # type: ignore[attr-defined]
    pids = {run.status().pid for run in side.runs}
    assert len(pids) == 2
    assert os.getpid() not in pids
    means = [one.evaluation.mean for one in alone if one.evaluation is not None]
    assert side.last is not None
    assert row.last is not None
    assert side.last.iqm == pytest.approx(np.mean(means))
    assert side.last == row.last
    assert "over 2 seeds" in side.sentence()


def test_the_interquartile_mean_leaves_out_the_lowest_and_the_highest_quarter(tmp_path: Path) -> None:
    found = gymnast.train("CartPole-v1:ppo", env_steps=64, seeds=4, jobs=1, runs_dir=tmp_path, **TINY)
    assert [run.config()["train"]["seed"] for run in found.runs] == [0, 1, 2, 3]
    scores = [run.status().last_return for run in found.runs]
    assert found.last is not None
    assert found.last.iqm == pytest.approx(trim_mean(scores, 0.25))
    assert found.last.low <= found.last.iqm <= found.last.high


PICKY = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
from gymnast.seeding import env_seeds

NOT_THESE = set(env_seeds(1, "train_envs", 4))

class Picky(CartPoleEnv):
    def reset(self, *, seed=None, options=None):
        if seed in NOT_THESE:
            raise RuntimeError("not with this seed")
        return super().reset(seed=seed, options=options)

gymnasium.register("Picky-v0", Picky, max_episode_steps=10)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_seed_that_fails_does_not_end_the_others(folder: Path, jobs: int) -> None:
    Path("picky.py").write_text(PICKY)
    found = gymnast.train("picky:Picky-v0", env_steps=64, seeds=[0, 1, 2], jobs=jobs, **TINY)
    assert list(found.failed) == [1]
    assert "not with this seed" in found.failed[1]
    assert [one.state for one in found.seeds] == ["finished", "failed", "finished"]
    assert [run.config()["train"]["seed"] for run in found.runs] == [0, 2]
    assert "over 2 of 3 seeds" in found.sentence()


def test_what_is_no_list_of_seeds_is_refused(tmp_path: Path) -> None:
    for wrong, said in ((0, "at least 1"), ([], "at least one"), ([2, 2], "must differ"), ([-1], "from 0 on")):
        with pytest.raises(UsageError, match=said):
            gymnast.train("CartPole-v1:ppo", seeds=wrong, runs_dir=tmp_path, **TINY)
    assert not list(tmp_path.iterdir())


LONG = """
import gymnast
found = gymnast.train("CartPole-v1:ppo", env_steps=50_000_000, seeds=3, jobs=2, runs_dir="runs", train__stop_when_solved=False,
    eval__every=40_000_000)
print([one.state for one in found.seeds], found.interrupted)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_signal_stops_all_seeds_with_a_checkpoint_each(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", LONG], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("runs/*/metrics.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert said.strip() == "['interrupted', 'interrupted', 'waiting'] True"
    for folder in tmp_path.glob("runs/?????"):
        run = Run(folder)
        assert run.status().state == "interrupted"
        assert not run.is_alive()
        assert list(run.checkpoints.glob("step=*"))

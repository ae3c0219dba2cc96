"""Lanes of envs that go on while the policy learns. On the CPU, where everything but the graphs is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs_alike import resume

from gymnast.config.load import Resolved
from gymnast.config.schema import RunConfig
from gymnast.envs import make as making
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.rollout.device import DeviceRollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.runs import checkpoint
from gymnast.timing import StageTimer
from gymnast.training import build
from gymnast.training.keeping import loop
from gymnast.training.keeping.checkpoints import Checkpoints
from gymnast.training.train import train
from gymnast.training.update import Learner

pytest.importorskip("ale_py", reason="ale-py is not installed")
T, N = 16, 9


@pytest.fixture(autouse=True)
def _lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes on every machine."""
    monkeypatch.setattr(making, "LANES_FROM", 1)


def pong(**train_section: Any) -> RunConfig:
    """Pong from RAM with short games, three workers with two lanes each, of unequal sizes."""
    return RunConfig.model_validate(
        {
            "env": {
                "id": "ALE/Pong-v5",
                "n_envs": N,
                "n_workers": 3,
                "vectorization": "workers",
                "atari": {"obs": "ram", "frame_cap": 100},
                "wrappers": ["reward_clip"],
            },
            "policy": {"hidden": [16]},
            "algo": {"id": "ppo", "n_steps": T, "batch_size": 48, "n_epochs": 2},
            "train": {"env_steps": 8 * T * N} | train_section,
            "eval": {"episodes": 2, "every": 10**6},
        }
    )


def collected(*, ahead: bool, runs_on: list[bool]) -> list[tuple[Any, ...]]:
    """Rollouts of a policy that does not learn, and the state of the envs at the end."""
    made = build.build(pong())
    try:
        rollout = DeviceRollout(T, made.envs, made.policy, torch.device("cpu"))
        generator, seen = torch.Generator().manual_seed(3), []
        made.collector = collector = DeviceCollector(
            made.policy, made.flat, made.envs, rollout, generator, by_lanes=True, ahead=ahead
        )
        made.start()
        for goes_on in runs_on:
            ended = collector.collect(StageTimer(), run_on=goes_on)
            rollout = collector.rollout
            seen.append(
                (
                    rollout.host_obs().copy(),
                    *(array.copy() for array in rollout.action_arrays[:T]),
                    rollout.reward.copy(),
                    rollout.truncated.copy(),
                    rollout.host("value").copy(),
                    rollout.next["value"].copy(),
                    np.array([(t, one.index, one.ret, one.length) for t, one in ended]),
                )
            )
            if goes_on and ahead:
                assert collector.ahead
                turns = iter(range(20))
                collector.serve_while(lambda: next(turns, None) is not None)  # noqa: B023
        assert not collector.ahead
        return [*seen, (str(made.envs.save_state()),)]
    finally:
        made.envs.close()


def test_running_ahead_changes_no_sample() -> None:
    """As long as the policy stays the same; which it does not, and that is the lag."""
    together = collected(ahead=False, runs_on=[False] * 5)
    before = collected(ahead=True, runs_on=[True, True, False, True, False])
    for one, other in zip(together, before, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs as on a GPU."""

    def collector(config: RunConfig, n_steps: int, envs: Any, learner: Learner, generator: Any) -> DeviceCollector:
        rollout = DeviceRollout(n_steps, envs, learner.policy, torch.device("cpu"))
        return DeviceCollector(learner.policy, learner.flat, envs, rollout, generator, by_lanes=True, ahead=True)

    monkeypatch.setattr(build, "_make_collector", collector)
    monkeypatch.setattr(loop, "DRAIN_ITERATIONS", 3)


@pytest.mark.usefixtures("on_device")
def test_a_run_saves_where_no_lane_is_ahead(tmp_path: Path) -> None:
    """And goes on from there: all checkpoints but that of the best evaluation hold the envs."""
    result = train(Resolved(pong(checkpoint_every=2 * T * N)), tmp_path)
    assert result is not None
    assert result.env_steps == 8 * T * N
    rows = list(MetricRows(result.run.metrics_path))
    assert [row["env_steps"] for row in rows] == [T * N * k for k in range(1, 9)]
    found, skipped = checkpoint.load_latest(result.run.folder)
    assert not skipped
    assert found.state["session"]["envs"]["exact"]
    again = resume(Resolved(pong(env_steps=10 * T * N)), result.run)
    assert again.env_steps == 10 * T * N


@pytest.mark.usefixtures("on_device")
def test_an_interrupted_run_stops_where_no_lane_is_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal takes effect one iteration later, when all envs stand still; nothing is repeated."""
    told: list[int] = []
    keep = Checkpoints.keep

    def interrupt(self: Checkpoints, row: dict[str, Any], *, asked: bool, stopping: bool) -> bool:
        told.append(int(row["env_steps"]))
        if len(told) == 4:
            assert not self._trainer.stands and not self._trainer.resumable
            os.kill(os.getpid(), signal.SIGINT)
        return keep(self, row, asked=asked, stopping=stopping)

    monkeypatch.setattr(Checkpoints, "keep", interrupt)
    result = train(Resolved(pong(checkpoint_every=10**6)), tmp_path)
    assert result is not None
    assert result.interrupted
    assert result.env_steps == 5 * T * N
    found, _ = checkpoint.load_latest(result.run.folder)
    assert found.manifest.counters["env_steps"] == result.env_steps
    assert found.state["session"]["envs"]["exact"]

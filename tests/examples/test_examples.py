"""The examples as their readers use them: installed by pip, trained, stopped, resumed and looked at by the usual commands."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from installed import pip_install
from launch import PATIENCE, environment, gymnast, start, stop, wait_for_rows

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.policies.base import Field
from gymnast.rollout.replay import Replay
from gymnast.runs import bulk, checkpoint
from gymnast.runs.manifest import Manifest
from gymnast.runs.store import Run

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
ONE_FILE = ("algorithm", "auxiliary-head", "recurrent-policy", "trainer", "sink")
MOST_LINES = {"algorithm": 60, "auxiliary-head": 60, "recurrent-policy": 80, "trainer": 110, "sink": 40}

BLIND = (
    *("blind_cartpole:BlindCartPole-v0", "--algo", "ppo", "-n", 20_000, "-q", "env.n_envs=32", "algo.n_steps=32"),
    *("algo.learning_rate=lin_4e-3", "algo.batch_size=256", "algo.gamma=0.98", "algo.normalize_reward=true"),
    *("eval.every=5000", "eval.episodes=20", "spec.solved_at=200"),
)
DQN = ("CartPole-v1", "--algo", "dqn_example", "env.n_envs=8", "-q")

EXACT = """
from pathlib import Path
import gymnast
from gymnast.config.load import from_saved
from gymnast.runs import checkpoint
from gymnast.training.train import Resume, resume_point, train

def hashes(run):
    manifest = checkpoint.read_manifest(run.checkpoints / checkpoint.read_pointer(run.folder, "last"))
    return manifest.step, {name: file["sha256"] for name, file in manifest.files.items()}

def trained(steps, folder, reference, overrides):
    settings = {"env.n_envs": 4, "algo.n_steps": 16, "train.env_steps": steps, "eval.episodes": 2, "eval.every": 10**6}
    given = [*overrides, *(f"{key}={value}" for key, value in settings.items())]
    return gymnast.train(reference, *given, seed=3, runs_dir=Path(folder)).run

cases = {
    "spo": ("CartPole-v1:spo_example", []),
    "foresight": ("CartPole-v1:foresight_example", ["policy.shared_trunk=true"]),
    "gru": ("CartPole-v1:ppo", ["policy.id=gru_example", "algo.batch_size=32", "algo.learning_rate=1e-3"]),
}
for name, (reference, overrides) in cases.items():
    whole = trained(512, f"{name}-whole", reference, overrides)
    half = trained(256, f"{name}-half", reference, overrides)
    config = half.config()
    config["train"]["env_steps"] = 512
    train(from_saved(config), half.root, resume=Resume(half, resume_point(half)[0]))
    print(name, hashes(whole)[0], hashes(whole) == hashes(half))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What Python imports from: the installed examples, and this folder with the env."""
    folders = [EXAMPLES / name for name in ONE_FILE]
    site = pip_install(folders[0], tmp_path_factory.mktemp("examples"), *folders[1:])
    return os.pathsep.join([str(site), str(HERE), environment()["PYTHONPATH"]])


def only_run(root: Path) -> Run:
    """The one run of a folder."""
    (folder,) = root.glob("[a-z]????")
    return Run(folder)


def last(run: Run) -> Manifest:
    """The checkpoint that a resume would take."""
    return checkpoint.read_manifest(run.checkpoints / str(checkpoint.read_pointer(run.folder, "last")))


@pytest.mark.parametrize("name", ONE_FILE)
def test_each_touches_one_file_of_its_own(name: str) -> None:
    """One file of code, short enough to be read at once."""
    (code,) = (EXAMPLES / name).rglob("*.py")
    assert len(code.read_text().splitlines()) <= MOST_LINES[name]


def test_on_policy_examples_resume_exactly(path: str, tmp_path: Path) -> None:
    """Further fields, further heads and memory are part of a boundary like everything else."""
    done = subprocess.run(
        [sys.executable, "-c", EXACT],
        cwd=tmp_path,
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["spo 512 True", "foresight 512 True", "gru 512 True"]
    losses = [row["train/foresight_loss"] for row in MetricRows(only_run(tmp_path / "foresight-whole").metrics_path)]
    assert all(loss > 0 for loss in losses)


@pytest.mark.learning
def test_an_algorithm_in_one_file_learns_and_a_sink_hears_of_it(path: str, tmp_path: Path) -> None:
    """Also what becomes known late: the evaluation is done in a process next to training."""
    done = gymnast(
        *("train", "CartPole-v1", "--algo", "spo_example", "log.sinks=[csv_example]", "-n", 40_000, "-q"),
        *("env.n_envs=16", "algo.n_steps=64", "algo.learning_rate=2e-3", "spec.solved_at=200"),
        *("eval.every=5000", "eval.episodes=20", "eval.mode=worker"),
        cwd=tmp_path,
        PYTHONPATH=path,
    )
    assert done.returncode == 0 and "solved" in done.stdout and "not solved" not in done.stdout, done.stdout
    run = only_run(tmp_path / "runs")
    rows = list(MetricRows(run.metrics_path))
    with (run.folder / "metrics.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    told: dict[str, dict[str, float]] = {}
    for line in lines:
        told.setdefault(line["env_steps"], {})[line["metric"]] = float(line["value"])
    assert set(told) == {str(row["env_steps"]) for row in rows}
    evaluated = [row for row in rows if row["eval/return_mean"] is not None]
    assert evaluated and all(
        told[str(row["env_steps"])]["eval/return_mean"] == row["eval/return_mean"] for row in evaluated
    )


@pytest.mark.learning
def test_a_policy_that_remembers_learns_what_others_cannot(path: str, tmp_path: Path) -> None:
    """CartPole without velocities: one observation does not say which way the pole falls."""
    assert _best_of_blind("policy.id=gru_example", "gru", path, tmp_path) >= 200
    shown = gymnast("eval", "@last", "--episodes", 2, "--runs-dir", "gru", cwd=tmp_path, PYTHONPATH=path)
    assert shown.returncode == 0 and "over 2 episodes" in shown.stdout, shown.stderr
    exported = gymnast("export", "@last", "--runs-dir", "gru", cwd=tmp_path, PYTHONPATH=path)
    assert exported.returncode == 0 and "next_state" in exported.stdout, exported.stderr


@pytest.mark.full
@pytest.mark.learning
def test_a_policy_without_memory_does_not_learn_it(path: str, tmp_path: Path) -> None:
    """Or else the test above would say nothing."""
    assert _best_of_blind("policy.hidden=[64,64]", "mlp", path, tmp_path) < 100


def _best_of_blind(way: str, name: str, path: str, folder: Path) -> float:
    done = gymnast("train", *BLIND, way, "--runs-dir", name, cwd=folder, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    best = only_run(folder / name).status().best_return
    assert best is not None
    return best


@pytest.mark.learning
def test_a_second_trainer_learns_and_every_command_knows_it(path: str, tmp_path: Path) -> None:
    """Deep Q-learning: 200 points on CartPole, which random actions bring 22."""
    options = ("-n", 10_000, "spec.solved_at=200", "eval.every=2500", "eval.episodes=20")
    done = gymnast("train", *DQN, *options, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0 and "not solved" not in done.stdout, done.stdout + done.stderr
    best = only_run(tmp_path / "runs").status().best_return
    assert best is not None and best >= 200
    again = gymnast("eval", "@last", "--episodes", 20, "--json", cwd=tmp_path, PYTHONPATH=path)
    assert json.loads(again.stdout)["mean"] >= 150, again.stderr
    filmed = gymnast("video", "@last", "-o", "best.mp4", cwd=tmp_path, PYTHONPATH=path)
    assert filmed.returncode == 0 and (tmp_path / "best.mp4").stat().st_size > 0, filmed.stderr
    exported = gymnast("export", "@last", "-o", "best.onnx", cwd=tmp_path, PYTHONPATH=path)
    assert exported.returncode == 0 and "actions equal" in exported.stdout, exported.stderr
    rewound = gymnast("rewind", "@last", "--to", 1000, cwd=tmp_path, PYTHONPATH=path)
    assert "Only updates from rollouts can be repeated" in rewound.stderr


def test_a_second_trainer_is_stopped_and_resumed_exactly(path: str, tmp_path: Path) -> None:
    """By a signal; weights, optimizer, target network, generators and replay are those of a run that was never stopped."""
    options = ("train", *DQN, "-n", 6_400, "eval.every=1000000", "eval.episodes=2", "algo.replay_size=6000")
    whole = gymnast(*options, "--runs-dir", "whole", cwd=tmp_path, PYTHONPATH=path)
    assert whole.returncode == 0, whole.stderr
    process = start(*options, "--runs-dir", "stopped", cwd=tmp_path, PYTHONPATH=path)
    folder = wait_for_rows(process, tmp_path / "stopped", 40)
    output, errors = stop(process, signal.SIGTERM)
    stopped = Run(folder)
    assert stopped.status().state == "interrupted", output + errors
    at = last(stopped).step
    assert 1_000 < at < 6_400
    resumed = gymnast("resume", "@last", "-q", "--runs-dir", "stopped", cwd=tmp_path, PYTHONPATH=path)
    assert resumed.returncode == 0, resumed.stderr
    one, other = only_run(tmp_path / "whole"), stopped
    assert last(one).step == last(other).step == 6_400
    assert last(one).files == last(other).files
    assert _records(one) == _records(other)
    assert {piece.file for piece in last(other).bulk["replay"].pieces} == {"00001.bin", "00002.bin"}
    bytes_each = sum(map(len, _records(one))) // 6_000
    assert (other.folder / "bulk" / "00002.bin").stat().st_size == (6_400 - at) * bytes_each  # what is new, and no more


def _records(run: Run) -> list[bytes]:
    """The newest 6,000 records field by field, whatever the pieces they lie in."""
    seen = [Field("obs", (4,)), Field("action", dtype=torch.int64), Field("reward"), Field("next_obs", (4,))]
    replay = Replay(6_000, [*seen, Field("terminated", dtype=torch.bool)])
    bulk.BulkStore(run.folder).restore(last(run).bulk, {"replay": replay})
    newest = replay.newest(6_000)
    assert len(newest) == 6_000
    return [tensor.numpy().tobytes() for tensor in newest.tensors().values()]

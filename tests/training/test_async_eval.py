"""Evaluation beside training (RUN-5): the same results for the same weights, whatever happens to the worker or the run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gated_env  # noqa: F401 - registers the env
import pytest
import torch
from launch import gymnast, start, wait_for_rows
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, resume, run, small

from gymnast.config.load import Resolved
from gymnast.metrics.history import History
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.policies.actor_critic import ActorCritic
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.build import build
from gymnast.training.evaluating import jobs
from gymnast.training.evaluating.evaluator import Evaluator, EvalWorkerError, weights_digest
from gymnast.training.evaluating.worker import EvalWorker
from gymnast.training.keeping.result import TrainResult
from gymnast.training.trainer import policy_tensors

GATED = {"id": "Gated-v0", "module": "gated_env"}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "normalised, native": ("ppo", {"id": "CartPole-v1", "time_limit": 40}, {"policy": {"normalize_obs": True}}),
    "exact, no critic": (
        "reinforce",
        {"id": "FrozenLake-v1", "time_limit": 30},
        {"algo": {"id": "reinforce", "baseline": "none", "learning_rate": 1e-2}, "train": {"checkpoint_every": 200}},
    ),
    "sampled, envs in workers": (
        "a2c",
        {"id": "Pendulum-v1", "time_limit": 30, "vectorization": "workers", "n_workers": 2},
        {"eval": {"deterministic": False}},
    ),
}


def config(mode: str, env: dict[str, Any] = GATED, algorithm: str = "ppo", **changes: Any) -> Resolved:
    """A run of six iterations with evaluations after the second, fourth and sixth."""
    return small(algorithm, env, **{**changes, "eval": {**changes.get("eval", {}), "mode": mode}})


def gated(gate: Path, mode: str = "worker", **changes: Any) -> Resolved:
    """The same run, whose evaluation envs wait for a file."""
    evaluation = {**changes.pop("eval", {}), "env": {"kwargs": {"gate": str(gate)}}}
    return config(mode, eval=evaluation, **changes)


class At(Watcher):
    """Does something after an iteration, or when training waits for an evaluation."""

    def __init__(self, *, rows: int | None = None, waiting: bool = False, do: Callable[[], Any]) -> None:
        super().__init__()
        self.rows, self.waiting, self.do = rows, waiting, do

    def update(self, history: History, now: float, marks: Any = None) -> None:
        """After an iteration."""
        super().update(history, now, marks)
        if history.rows == self.rows:
            self.do()

    @contextmanager
    def activity(self, description: str, total: int) -> Iterator[None]:
        """Training is held up."""
        if self.waiting and description.startswith("evaluating step"):
            self.do()
        yield None


def interrupt() -> None:
    """Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def open_jobs(run: Run) -> list[tuple[int, int]]:
    """Turn and step of the evaluations that the last checkpoint still owes."""
    saved, _ = checkpoint.load_latest(run.folder)
    return [(job["turn"], job["env_steps"]) for job in saved.state["loop"]["jobs"]]


def best_of(run: Run) -> checkpoint.Checkpoint:
    """The checkpoint `best` points at."""
    name = checkpoint.read_pointer(run.folder, "best")
    assert name is not None
    return checkpoint.load(run.checkpoints / name)


@pytest.mark.parametrize("case", CASES)
def test_the_run_is_the_same_with_evaluations_beside_it(case: str, tmp_path: Path) -> None:
    """Weights, rows, scores at their steps, best checkpoint: all equal to evaluation in the process itself."""
    algorithm, env, changes = CASES[case]
    steps = 15 * PER_ITERATION if algorithm == "reinforce" else 6 * PER_ITERATION
    here = run(config("inprocess", env, algorithm, env_steps=steps, **changes), tmp_path)
    watcher = Watcher()
    beside = run(config("worker", env, algorithm, env_steps=steps, **changes), tmp_path, watcher)
    assert not watcher.warnings
    assert_same_end(here.run, beside.run)
    assert beside.evaluation == here.evaluation
    assert beside.evaluated_at == here.evaluated_at == here.env_steps
    ours, theirs = best_of(here.run), best_of(beside.run)
    assert not differences(ours.policy, theirs.policy)
    assert ours.manifest.metrics["eval/return_mean"] == theirs.manifest.metrics["eval/return_mean"] is not None


def test_training_goes_on_and_is_never_more_than_one_behind(tmp_path: Path) -> None:
    """The evaluation of iteration 2 ends in 3 and is taken in 4, before the next begins; each result is at its own row."""
    gate = tmp_path / "gate"
    result = run(gated(gate), tmp_path, At(rows=3, do=gate.touch))
    lines = [json.loads(line) for line in result.run.metrics_path.read_text().splitlines()]
    order = [(line.get("amends"), line["env_steps"] // PER_ITERATION) for line in lines]
    assert order[:3] == [(None, 1), (None, 2), (None, 3)]
    assert order.index((2 * PER_ITERATION, 2)) < order.index((None, 4))
    assert order.index((4 * PER_ITERATION, 4)) < order.index((None, 6))
    assert order[-1] == (None, 6)  # the last line is a whole row
    rows = list(MetricRows(result.run.metrics_path))
    assert [i for i, row in enumerate(rows, 1) if row["eval/return_mean"] is not None] == [2, 4, 6]
    assert [row["env_steps"] for row in rows] == [i * PER_ITERATION for i in range(1, 7)]


def stopped_early(resolved: Resolved, root: Path, watcher: Watcher, owed: list[tuple[int, int]]) -> TrainResult:
    """A run that a signal stopped while evaluations were open."""
    stopped = run(resolved, root, watcher)
    assert stopped.interrupted
    assert stopped.run.status().state == "interrupted"
    assert open_jobs(stopped.run) == [(turn, i * PER_ITERATION) for turn, i in owed]
    return stopped


@pytest.mark.parametrize(
    ("rows", "owed"), [(3, [(0, 2)]), (None, [(0, 2), (1, 4)])], ids=["while it runs", "while training waits for it"]
)
def test_an_open_evaluation_is_repeated_by_a_resume(
    rows: int | None, owed: list[tuple[int, int]], tmp_path: Path
) -> None:
    """The snapshot is in the checkpoint, so that the result, its row and the best checkpoint are not lost."""
    gate = tmp_path / "gate"
    watcher = At(rows=rows, waiting=rows is None, do=interrupt)
    stopped = stopped_early(gated(gate), tmp_path, watcher, owed)
    gate.touch()
    whole = run(gated(gate, "inprocess"), tmp_path)
    finished = resume(gated(gate), stopped.run)
    assert_same_end(whole.run, finished.run)
    assert not differences(best_of(whole.run).policy, best_of(finished.run).policy)


OPEN: dict[str, Any] = {"every": None, "episodes": 1}
"""How often follows from what evaluations cost; here after the second, fourth, fifth and sixth iteration."""


@pytest.mark.parametrize("rows", [3, None], ids=["while it runs", "while training waits for it"])
def test_an_open_cadence_is_decided_after_a_resume(rows: int | None, tmp_path: Path) -> None:
    """Whether the next evaluation is due depends on the open one, for which a signal does not wait."""
    gate = tmp_path / "gate"
    watcher = At(rows=rows, waiting=rows is None, do=interrupt)
    stopped = stopped_early(gated(gate, eval=OPEN), tmp_path, watcher, [(0, 2)])
    saved, _ = checkpoint.load_latest(stopped.run.folder)
    assert saved.state["loop"]["cadence"]["undecided"] == (rows is None)
    gate.touch()
    whole = run(gated(gate, "inprocess", eval=OPEN), tmp_path)
    scores = [row["eval/return_mean"] is not None for row in MetricRows(whole.run.metrics_path)]
    assert scores == [False, True, False, True, True, True]
    finished = resume(gated(gate, eval=OPEN), stopped.run)
    assert_same_end(whole.run, finished.run)


def test_an_open_cadence_in_its_last_evaluation(tmp_path: Path) -> None:
    """The budget is spent while the evaluation before the last is open."""
    gate = tmp_path / "gate"
    evaluation = {"every": None, "episodes": 1, "warmup": 5 * PER_ITERATION}
    stopped = stopped_early(gated(gate, eval=evaluation), tmp_path, At(waiting=True, do=interrupt), [(0, 5)])
    gate.touch()
    whole = run(gated(gate, "inprocess", eval=evaluation), tmp_path)
    assert_same_end(whole.run, resume(gated(gate, eval=evaluation), stopped.run).run)


def test_a_signal_in_the_last_evaluation_leaves_only_that_to_do(tmp_path: Path) -> None:
    """The budget is spent; the resumed run plays no more steps and ends as the whole one."""
    gate, never = tmp_path / "gate", {"every": 10**9}
    stopped = stopped_early(gated(gate, eval=never), tmp_path, At(waiting=True, do=interrupt), [(0, 6)])
    gate.touch()
    whole = run(gated(gate, "inprocess", eval=never), tmp_path)
    finished = gymnast("resume", stopped.run.id, "--runs-dir", tmp_path, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert f"budget spent after {6 * PER_ITERATION} env steps" in finished.stdout
    assert whole.evaluation is not None
    assert whole.evaluation.sentence() in finished.stdout
    assert_same_end(whole.run, stopped.run)
    assert open_jobs(stopped.run) == []
    assert stopped.run.status().state == "finished"


def test_a_snapshot_that_solves_the_env_ends_the_run(tmp_path: Path) -> None:
    """`best` is the snapshot, the evaluation is about it, and its row says solved."""
    gate = tmp_path / "gate"
    solvable: dict[str, Any] = {"train": {"stop_when_solved": True}, "spec": {"solved_at": 0.0}}
    result = run(gated(gate, **solvable), tmp_path, At(rows=3, do=gate.touch))
    assert result.stop_reason.startswith("solved")
    assert result.solved
    assert result.evaluated_at == 2 * PER_ITERATION < result.env_steps
    assert result.evaluation is not None
    best = best_of(result.run)
    assert best.manifest.step == 2 * PER_ITERATION
    assert best.manifest.metrics["eval/return_mean"] == result.evaluation.mean
    rows = list(MetricRows(result.run.metrics_path))
    assert [row["train/solved"] for row in rows[:2]] == [0.0, 1.0]
    assert rows[-1]["train/solved"] == 1.0
    assert checkpoint.read_pointer(result.run.folder, "last") == f"step={result.env_steps}"
    here = run(gated(gate, "inprocess", **solvable), tmp_path)
    assert not differences(best.policy, best_of(here.run).policy)


@pytest.mark.parametrize(
    ("fault", "words", "every"),
    [("raise", "the emulator is gone", 6), ("hang", "counts as hung", 6), ("exit", "exit code 3", 1)],
)
def test_a_failing_worker_costs_no_evaluation(fault: str, words: str, every: int, tmp_path: Path) -> None:
    """The same snapshots are judged here instead; after three failures there is no fourth worker."""
    faulty = {"env": {"kwargs": {"fault": fault}}, "every": every * PER_ITERATION}
    env = {**GATED, "worker_timeout": 1.0}
    watcher = Watcher()
    result = run(config("worker", env, eval=faulty), tmp_path, watcher)
    assert len(watcher.warnings) == min(6 // every, jobs.MAX_FAILURES)
    assert all(words in warning for warning in watcher.warnings)
    assert ("too often" in watcher.warnings[-1]) == (every == 1)
    assert_same_end(run(config("inprocess", env, eval=faulty), tmp_path).run, result.run)


def test_an_env_that_fails_here_too_ends_the_run(tmp_path: Path) -> None:
    """As it does without a worker."""
    wrong = {"env": {"kwargs": {"gait": "trot"}}}
    with pytest.raises(Exception, match="gait"):
        run(config("worker", eval=wrong), tmp_path, Watcher())


@pytest.fixture
def worker() -> Iterator[EvalWorker]:
    """A worker for CartPole."""
    made = EvalWorker(CARTPOLE)
    yield made
    made.close()


CARTPOLE = small("ppo", {"id": "CartPole-v1", "time_limit": 60}).config


def snapshot(seed: int) -> tuple[bytes, ActorCritic]:
    """Weights of a fresh policy, as a checkpoint holds them, and that policy."""
    trainer = build(CARTPOLE.model_copy(update={"train": CARTPOLE.train.model_copy(update={"seed": seed})}))
    packed = checkpoint.pack(0, policy_tensors(trainer.policy), None, {}, {})
    return packed.blobs[checkpoint.POLICY], trainer.policy


def wait_for(worker: EvalWorker) -> Any:
    """The result."""
    while (found := worker.poll(0.1)) is None:
        pass
    return found


def test_the_worker_judges_the_weights_it_is_given(worker: EvalWorker) -> None:
    """One after the other, by the seeds of their turn; other weights than the snapshot's are noticed; it leaves at once."""
    here = Evaluator(CARTPOLE)
    for turn, seed in enumerate((1, 2, 1)):
        weights, policy = snapshot(seed)
        worker.submit(weights, turn)
        assert wait_for(worker) == here(policy, turn)
    worker.submit(snapshot(1)[0], 0)
    worker._expected = weights_digest(policy_tensors(snapshot(2)[1]))
    with pytest.raises(EvalWorkerError, match="evaluated weights with hash"):
        wait_for(worker)
    worker.close()
    assert worker.pid is not None
    assert not alive(worker.pid)


def test_the_hash_sees_one_bit() -> None:
    """Of any tensor, statistics included."""
    tensors = {name: tensor.clone() for name, tensor in policy_tensors(snapshot(1)[1]).items()}
    before = weights_digest(tensors)
    for name, tensor in tensors.items():
        raw = tensor.view(-1).view(torch.uint8)
        raw[0] ^= 1
        assert weights_digest(tensors) != before, name
        raw[0] ^= 1
    assert weights_digest(tensors) == before


def test_auto_moves_long_evaluations_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones stay; what takes long goes to the worker after the first one, and that is said once."""
    short = run(config("auto"), tmp_path)
    assert "next to training" not in short.run.log_path.read_text()
    assert '"amends"' not in short.run.metrics_path.read_text()
    monkeypatch.setattr(jobs, "LONG_SECONDS", 0.0)
    long = run(config("auto"), tmp_path)
    assert long.run.log_path.read_text().count("from now on a separate process runs them") == 1
    assert long.run.metrics_path.read_text().count('"amends"') == 1
    assert_same_end(short.run, long.run)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """Processes that `pid` started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_no_process_outlives_the_trainer(number: signal.Signals, folder: Path) -> None:
    """A signal ends a run whose evaluation hangs, at once and with a checkpoint where that is possible."""
    gate = json.dumps({"kwargs": {"gate": str(folder / "gate")}})
    words = ("env.module=gated_env", "env.n_envs=4", "algo.n_steps=16", "eval.mode=worker", "eval.every=128")
    trainer = start("train", "Gated-v0", "--algo", "ppo", "-n", 10**7, *words, f"eval.env={gate}", "-q", cwd=folder)
    here = Run(wait_for_rows(trainer, folder / "runs", 3))
    while not (started := children(trainer.pid)):
        time.sleep(0.01)
    time.sleep(1.0)  # long enough for films at the end, which would play in the env that hangs
    os.kill(trainer.pid, number)
    _, err = trainer.communicate(timeout=60)
    assert trainer.returncode == (-9 if number == signal.SIGKILL else 130), err
    end = time.monotonic() + 30
    while any(map(alive, started)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, started))
    if number != signal.SIGKILL:
        assert "Traceback" not in err
        assert open_jobs(here)[0] == (0, 128)

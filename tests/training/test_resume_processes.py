"""Stopping and resuming real processes: signals, kills, damaged files, two at once."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest
from launch import Terminal, gymnast, start, stop, wait_for_rows
from runs_alike import Watcher, assert_same_end, differences, end_of, run

from gymnast.config.load import resolve
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run, last_run

CONFIG = """\
id: CartPole-v1
variants:
  quick_ppo:
    env: {n_envs: 4}
    policy: {hidden: [16], normalize_obs: true}
    algo: {n_steps: 32, batch_size: 64, n_epochs: 4, learning_rate: lin_1e-3, normalize_reward: true}
    train: {env_steps: 12800, checkpoint_every: 1280, stop_when_solved: false}
    eval: {every: 3200, episodes: 5, start_fraction: null}
"""
QUICK = "quick.yaml:quick_ppo"
ITERATIONS = 100


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "quick.yaml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(resolve(QUICK), folder / "runs").run


@pytest.fixture
def quick(folder: Path) -> Path:
    """A working folder with the config."""
    (folder / "quick.yaml").write_text(CONFIG)
    return folder


def interrupted(folder: Path, after: int) -> Run:
    """The same run stopped after some iterations, made in this process to save the start of another."""
    stopped = run(resolve(QUICK), folder / "runs", Watcher(stop_after=after)).run
    assert stopped.status().state == "interrupted"
    return stopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_at_a_random_moment(number: signal.Signals, quick: Path, whole: Run) -> None:
    """A checkpoint, the status, exit code 130, the command to go on with; then the same end as the whole run's."""
    process = start("train", QUICK, cwd=quick)
    here = Run(wait_for_rows(process, quick / "runs", random.randrange(5, ITERATIONS // 2)))
    out, err = stop(process, number)
    assert process.returncode == 130, err
    assert f"gymnast resume {here.id}" in out
    assert "Traceback" not in err
    assert here.status().state == "interrupted"
    assert here.status().stop_reason == f"interrupted ({number.name})"
    done = checkpoint.load_latest(here.folder)[0].manifest.step
    assert done == list(MetricRows(here.metrics_path))[-1]["env_steps"]

    resumed = gymnast("resume", cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    assert "budget spent after 12,800 env steps" in resumed.stdout
    assert_same_end(whole, here)
    assert [folder.name for folder in (quick / "runs").glob("[a-z]????")] == [here.id]


def test_kill_at_a_random_moment(quick: Path, whole: Run) -> None:
    """Falls back to the last checkpoint; what was logged after it is replaced, not repeated."""
    process = start("train", QUICK, "-q", cwd=quick)
    here = Run(wait_for_rows(process, quick / "runs", random.randrange(20, ITERATIONS // 2)))
    stop(process, signal.SIGKILL)
    assert here.status().state == "running"
    assert here.shown_state() == "crashed"
    assert not list(here.folder.glob("checkpoints/best/*"))

    resumed = gymnast("resume", here.id, cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_end(whole, here)
    steps = [row["env_steps"] for row in MetricRows(here.metrics_path)]
    assert steps == [128 * i for i in range(1, ITERATIONS + 1)]
    assert here.status().attempt == 2
    assert not [path for path in here.checkpoints.iterdir() if path.name.startswith(".tmp")]


def test_a_flipped_bit_in_the_newest_checkpoint(quick: Path, whole: Run) -> None:
    """The one before is taken, that is said, and the end is the same."""
    here = interrupted(quick, after=55)
    newest = checkpoint.read_pointer(here.folder, "last")
    assert newest == f"step={55 * 128}"
    flip(here.checkpoints / newest / checkpoint.STATE)
    resumed = gymnast("resume", cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    said = resumed.stdout + resumed.stderr
    assert f"{newest} was skipped" in said
    assert "checksum" in said
    assert_same_end(whole, here)
    assert "was skipped" in here.log_path.read_text()


def test_all_checkpoints_damaged(quick: Path) -> None:
    """One paragraph that names the files; the run is left as it was."""
    here = interrupted(quick, after=12)
    for name in checkpoint.steps(here.folder):
        flip(here.checkpoints / f"step={name}" / checkpoint.POLICY)
    before = here.status()
    resumed = gymnast("resume", cwd=quick)
    assert resumed.returncode == 1
    assert resumed.stderr.startswith("error: ")
    assert "no whole checkpoint" in resumed.stderr
    assert checkpoint.POLICY in resumed.stderr
    assert here.status() == before


def test_a_run_killed_before_its_first_checkpoint(quick: Path) -> None:
    """Nothing to go on from: that is said, with what to do."""
    here = interrupted(quick, after=1)
    for path in here.checkpoints.rglob("*"):
        if path.is_file():
            path.unlink()
    for path in sorted(here.checkpoints.iterdir()):
        path.rmdir()
    resumed = gymnast("resume", cwd=quick)
    assert resumed.returncode == 1
    assert "no checkpoint yet" in resumed.stderr
    assert "Traceback" not in resumed.stderr


def test_two_resumes_at_once(quick: Path) -> None:
    """The second is refused and names the process that holds the run; the first goes on undisturbed."""
    here = interrupted(quick, after=5)
    first = start("resume", "-n", 10_000_000, cwd=quick)
    wait_for_rows(first, quick / "runs", 15)
    second = gymnast("resume", here.id, "-n", 10_000_000, cwd=quick)
    assert second.returncode == 2
    assert str(first.pid) in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    assert first.poll() is None
    assert here.is_alive()
    stop(first, signal.SIGINT)
    assert first.returncode == 130
    assert here.status().attempt == 2
    steps = [row["env_steps"] for row in MetricRows(here.metrics_path)]
    assert steps == [128 * i for i in range(1, len(steps) + 1)]


def test_a_finished_run_needs_a_larger_budget(quick: Path) -> None:
    """Without one the error says how; with one the run goes on, in the same folder, with one course of rows."""
    small = ("train.env_steps=2560", "train.checkpoint_every=1280", "eval.every=1280")
    here = run(resolve(QUICK, small), quick / "runs").run
    refused = gymnast("resume", cwd=quick)
    assert refused.returncode == 2
    assert f"gymnast resume {here.id} -n" in refused.stderr
    assert here.status().state == "finished"

    longer = gymnast("resume", "-n", "5120", cwd=quick)
    assert longer.returncode == 0, longer.stderr
    assert "budget spent after 5,120 env steps" in longer.stdout
    assert [row["env_steps"] for row in MetricRows(here.metrics_path)] == [128 * i for i in range(1, 41)]
    assert here.config()["train"]["env_steps"] == 5120


def test_a_larger_budget_outlives_an_interruption(quick: Path) -> None:
    """What a resume was told belongs to the run: the next plain `resume` goes on to the new budget."""
    here = run(resolve(QUICK, ("train.env_steps=2560",)), quick / "runs").run
    process = start("resume", "-n", 6_400, "--with", "algo.gamma=0.5", "-q", cwd=quick)
    wait_for_rows(process, quick / "runs", 25)
    stop(process, signal.SIGINT)
    assert process.returncode == 130
    resumed = gymnast("resume", cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    rows = list(MetricRows(here.metrics_path))
    assert rows[-1]["env_steps"] == 6_400
    assert [row["train/gamma"] for row in rows] == [0.99] * 20 + [0.5] * 30


@pytest.mark.parametrize("how", ["--with", "plain"])
def test_another_hyperparameter(how: str, quick: Path, whole: Run) -> None:
    """The setting holds from the first resumed iteration on, and changes the end."""
    here = interrupted(quick, after=95)
    setting = ["--with", "algo.ent_coef=0.25"] if how == "--with" else ["ent_coef=0.25"]
    resumed = gymnast("resume", here.id, *setting, "-q", cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    rows = list(MetricRows(here.metrics_path))
    assert [row["train/ent_coef"] for row in rows] == [0.0] * 95 + [0.25] * 5
    first, second = end_of(whole), end_of(here)
    assert not differences(first["rows"][:95], second["rows"][:95])
    assert differences(first["policy"], second["policy"])


@pytest.mark.parametrize(
    ("setting", "words"),
    [("policy.hidden=[8]", "does not fit"), ("env.n_envs=3", "4 envs"), ("algo.batchsize=3", "Unknown key")],
)
def test_a_setting_that_cannot_be_resumed_leaves_the_run_as_it_was(setting: str, words: str, quick: Path) -> None:
    """One sentence, and the run can still be resumed without it."""
    here = interrupted(quick, after=3)
    before = {path: path.read_bytes() for path in here.folder.rglob("*") if path.is_file() and path.name != "lock"}
    refused = gymnast("resume", here.id, "--with", setting, cwd=quick)
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("error: ")
    assert words in refused.stderr
    assert here.status().state == "interrupted"
    after = {path: path.read_bytes() for path in here.folder.rglob("*") if path.is_file() and path.name != "lock"}
    assert {path.name for path in after if after[path] != before.get(path)} <= {"log.txt"}


def test_ctrl_c_reaches_the_workers_too_and_harms_nothing(quick: Path) -> None:
    """A terminal sends the signal to the whole group; the envs still give their state for the checkpoint."""
    words = ("env.vectorization=workers", "env.n_workers=2", "train.env_steps=3840", "-q")
    expected = run(resolve(QUICK, words[:3]), quick / "expected").run
    terminal = Terminal("train", QUICK, *words, cwd=quick)
    here = Run(wait_for_rows(terminal, quick / "runs", 4))
    terminal.interrupt()
    assert terminal.end() == 130
    assert f"gymnast resume {here.id}" in terminal.output
    resumed = gymnast("resume", "-q", cwd=quick)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_end(expected, here)


def flip(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_last_points_at_the_resumed_run(quick: Path) -> None:
    """`@last` is what was worked on last, not what was created last."""
    older = interrupted(quick, after=2)
    newer = run(resolve(QUICK, ("train.env_steps=256",)), quick / "runs").run
    assert last_run(quick / "runs") == newer
    gymnast("resume", older.id, "-q", "train.env_steps=512", cwd=quick)
    found = last_run(quick / "runs")
    assert found is not None
    assert found.id == older.id


def test_unknown_run(quick: Path) -> None:
    """No folder is made for a name that does not exist."""
    answers: list[Any] = [gymnast("resume", "zzzzz", cwd=quick), gymnast("resume", cwd=quick)]
    for refused in answers:
        assert refused.returncode == 2
        assert refused.stderr.startswith("error: There ")
    assert not (quick / "runs").exists()

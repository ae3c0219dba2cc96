"""A run folder that vanishes while its training goes on."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from launch import PATIENCE, start, until, wait_for_rows

from gymnast.errors import UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run, last_run

TRAIN = (
    *("train", "CartPole-v1:a2c", "-n", "100000000", "train.stop_when_solved=false", "eval.every=1000000000"),
    *("train.keep_checkpoints=1", "algo.n_steps=256"),
)


@contextmanager
def training(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Run]]:
    """A run that has logged some iterations and has saved nothing yet."""
    process = start(*TRAIN, cwd=folder)
    try:
        wait_for_rows(process, folder / "runs", 20)
        run = last_run(folder / "runs")
        assert run is not None
        yield process, run
    finally:
        process.kill()  # it would train for hours
        process.wait()


def moved_away(root: Path) -> Path:
    """The folder of all runs under another name, for deleting it: whoever deletes it in its place races with the training."""
    return root.rename(root.with_name("gone"))


def test_a_deleted_run_is_made_again(tmp_path: Path) -> None:
    """Within a heartbeat: config, all rows so far, log and a checkpoint; the run is still locked, and goes on."""
    with training(tmp_path) as (process, run):
        before = len(MetricRows(run.metrics_path))
        kept = run.config()
        shutil.rmtree(moved_away(run.root))
        until(lambda: checkpoint.read_pointer(run.folder, "last") is not None or process.poll() is not None)
        with pytest.raises(UsageError, match="is being trained by process"):
            run.lock()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        assert "had vanished" in out and "had vanished" in run.log_path.read_text()
        assert "Traceback" not in err
        rows = list(MetricRows(run.metrics_path))
        assert len(rows) > before and rows[0]["iteration"] == 1
        assert [row["iteration"] for row in rows] == list(range(1, len(rows) + 1))
        assert run.config() == kept
        assert run.status().state == "interrupted"
        assert checkpoint.load_latest(run.folder)[0].manifest.step == rows[-1]["env_steps"]


def test_a_folder_that_cannot_be_made_again_ends_the_training(tmp_path: Path) -> None:
    """A file where the folder of runs was: one sentence, within a heartbeat, and not after the whole budget."""
    with training(tmp_path) as (process, run):
        gone = moved_away(run.root)
        run.root.write_text("no folder")
        shutil.rmtree(gone)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert f"The folder of run {run.id} has vanished" in err and "cannot be made again" in err
        assert err.count("error: ") == 1 and "Traceback" not in err

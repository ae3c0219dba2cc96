"""Removing and pruning: what goes, what stays, and that nothing goes by half."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from made_runs import add_checkpoints, contents, finished_run, make_run

from gymnast.errors import UsageError
from gymnast.runs import checkpoint
from gymnast.runs.housekeeping import Rules, discard, remove, size_of, take, victims
from gymnast.runs.index import list_runs, upsert
from gymnast.runs.labels import change_tags
from gymnast.runs.store import Run, last_run

HOLDER = """
import sys, time
from pathlib import Path
from gymnast.runs.store import Run
lock = Run(Path(sys.argv[1])).lock()
print("locked", flush=True)
time.sleep(60)
"""


def ids(found: list) -> set[str]:
    return {one.run.id for one in found}


def test_a_removed_run_is_gone_everywhere(tmp_path: Path) -> None:
    """Folder, index row, `@last`; the others are untouched."""
    first, second, third = (finished_run(tmp_path, seed=seed) for seed in range(3))
    before = contents(first.folder)
    assert last_run(tmp_path) == third
    remove([third, third])
    assert last_run(tmp_path) == second, "the newest of the others"
    remove([first])
    assert last_run(tmp_path) == second, "it was not the removed one"
    assert [row.id for row in list_runs(tmp_path)] == [second.id]
    assert before and not first.folder.exists() and not third.folder.exists()
    remove([second])
    assert last_run(tmp_path) is None and not (tmp_path / "@last").is_symlink()
    assert not [entry for entry in tmp_path.iterdir() if "removed" in entry.name]


def test_a_live_run_keeps_all_of_them(tmp_path: Path) -> None:
    """By its status, or because another process holds its lock; then nothing is removed at all."""
    ended, live = finished_run(tmp_path), make_run(tmp_path)
    with pytest.raises(UsageError, match=f"process {os.getpid()}"):
        remove([ended, live])
    held = finished_run(tmp_path)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(held.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        with pytest.raises(UsageError, match=f"process {holder.pid}"):
            remove([ended, held])
    finally:
        holder.kill()
        holder.communicate()
    assert ended.exists() and live.exists() and held.exists()
    remove([ended, held])
    assert [row.id for row in list_runs(tmp_path)] == [live.id]


def test_what_a_killed_removal_left_is_swept(tmp_path: Path) -> None:
    """A half-removed folder is no run, and the next removal takes it away."""
    (tmp_path / ".removed-abcde-1" / "checkpoints").mkdir(parents=True)
    run = finished_run(tmp_path)
    assert len(list_runs(tmp_path)) == 1
    remove([run])
    assert not (tmp_path / ".removed-abcde-1").exists()


def test_a_folder_that_is_no_run_is_never_deleted(tmp_path: Path) -> None:
    """Two files of the right name do not make a home folder a run."""
    (tmp_path / "home").mkdir()
    for name in ("config.json", "status.json"):
        (tmp_path / "home" / name).write_text("{}")
    with pytest.raises(UsageError, match="delete it yourself"):
        remove([Run(tmp_path / "home")])
    assert (tmp_path / "home" / "config.json").exists()


def test_discard_leaves_nothing_of_a_first_run(tmp_path: Path) -> None:
    """Not even the folder of the runs, when it was made for this run; with another run in it, it stays."""
    root = tmp_path / "runs"
    discard(make_run(root), with_root=True)
    assert not root.exists()
    other, run = finished_run(root), make_run(root)
    discard(run, with_root=True)
    assert [row.id for row in list_runs(root)] == [other.id] and last_run(root) == other


# --- prune ----------------------------------------------------------------------------------------------------------


def test_the_best_of_each_config_stay(tmp_path: Path) -> None:
    """By evaluated return; runs that were never evaluated go first, other configs have their own best."""
    scores: list[float | None] = [5.0, -1.0, 9.0, None]
    low, lowest, high, none = (finished_run(tmp_path, score) for score in scores)
    alone = finished_run(tmp_path, -200.0, env="MountainCar-v0")
    assert ids(victims(tmp_path, Rules(keep_best=1))) == {low.id, lowest.id, none.id}
    assert ids(victims(tmp_path, Rules(keep_best=2))) == {lowest.id, none.id}
    assert ids(victims(tmp_path, Rules(keep_best=0))) == {low.id, lowest.id, high.id, none.id, alone.id}
    assert ids(victims(tmp_path, Rules(keep_best=0, env="mountain*"))) == {alone.id}


def test_rules_must_agree(tmp_path: Path) -> None:
    """Old, failed, and not among the best: all of it, or the run stays."""
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat(timespec="microseconds")
    old_failed, new_failed, old_good = (
        finished_run(tmp_path, 1.0, state) for state in ("failed", "failed", "finished")
    )
    for run in (old_failed, old_good):
        run.update(ended=old)
    crashed = make_run(tmp_path)
    crashed.update(process_start="1")
    for run in (old_failed, new_failed, old_good, crashed):
        upsert(run)
    month = timedelta(days=30)
    assert ids(victims(tmp_path, Rules(older_than=month))) == {old_failed.id, old_good.id}
    assert ids(victims(tmp_path, Rules(status=("failed",)))) == {old_failed.id, new_failed.id}
    assert ids(victims(tmp_path, Rules(older_than=month, status=("failed",)))) == {old_failed.id}
    assert ids(victims(tmp_path, Rules(status=("crashed", "failed")))) == {old_failed.id, new_failed.id, crashed.id}
    with pytest.raises(UsageError, match="Did you mean 'failed'"):
        victims(tmp_path, Rules(status=("fail",)))


def test_live_and_kept_runs_always_stay(tmp_path: Path) -> None:
    """Whatever the rules say, and also when a run comes to life between the preview and the removal."""
    live, kept, ended = make_run(tmp_path), finished_run(tmp_path), finished_run(tmp_path)
    change_tags(kept, ["keep"])
    everything = Rules(keep_best=0)
    found = victims(tmp_path, everything)
    assert ids(found) == {ended.id}
    assert found[0].frees == size_of(ended.folder) > 0
    sentences: list[str] = []
    with ended.lock():
        assert take(found, skipped=sentences.append) == []
    assert len(sentences) == 1 and str(os.getpid()) in sentences[0]
    assert take(found, skipped=sentences.append) == found
    assert {row.id for row in list_runs(tmp_path)} == {live.id, kept.id}


def test_checkpoints_are_thinned_to_best_and_last(tmp_path: Path) -> None:
    """The run stays; without pointers its newest checkpoint does."""
    run, bare, thin = (finished_run(tmp_path) for _ in range(3))
    add_checkpoints(run, 10, 20, 30, 40, best=20)
    add_checkpoints(bare, 10, 20)
    add_checkpoints(thin, 10, 20)
    for name in ("best", "last"):
        (bare.checkpoints / name).unlink()
    found = victims(tmp_path, Rules(), only_checkpoints=True)
    assert {one.run.id: one.checkpoints for one in found} == {run.id: ("step=30", "step=10"), bare.id: ("step=10",)}
    freed = sum(one.frees for one in found)
    before = size_of(tmp_path)
    take(found, skipped=pytest.fail)
    lock_files = sum((one.run.folder / "lock").stat().st_size for one in found)
    assert before - size_of(tmp_path) == freed - lock_files
    assert checkpoint.steps(run.folder) == [20, 40] and checkpoint.steps(bare.folder) == [20]
    assert checkpoint.steps(thin.folder) == [10, 20]
    assert victims(tmp_path, Rules(), only_checkpoints=True) == []

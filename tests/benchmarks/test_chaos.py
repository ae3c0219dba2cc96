"""The judge of `benchmarks/chaos.py` must see a loss when there is one."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
import saved as saved_checkpoints
from chaos import Course, Injected, Outcome, Reference, _check, _draw_fault, fingerprint, steps_of, summary
from faults.points import POINTS
from runs_alike import PER_ITERATION, run, small

from gymnast.runs import checkpoint
from gymnast.runs.store import Run

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
END = 6 * PER_ITERATION


@pytest.fixture
def trained(tmp_path: Path) -> Run:
    """A finished run with two checkpoints."""
    often = {"checkpoint_every": 2 * PER_ITERATION, "keep_checkpoints": 9}
    return run(small("ppo", CARTPOLE, train=often), tmp_path).run


def losses(trained: Run | None, committed: int, steps: list[int], *, spoiled: bool = False) -> list[str]:
    """What the judge says."""
    outcome = Outcome("0:0", "a plan", 0)
    _check(trained, Course(committed, spoiled), Reference("", steps, 1.0, {}), outcome)
    return outcome.lost


def test_losses_are_seen(trained: Run) -> None:
    steps = steps_of(trained)
    assert steps[-1] == END
    assert losses(trained, END, steps) == []
    assert len(losses(None, END, steps)) == 1, "the whole run is gone"
    rows = trained.metrics_path.read_text().splitlines(keepends=True)
    trained.metrics_path.write_text("".join(rows[:2] + rows[3:]))
    assert len(losses(trained, END, steps)) == 1
    trained.metrics_path.write_text("".join(rows))
    for path in (trained.checkpoints / f"step={END}").iterdir():
        path.unlink()
    assert len(losses(trained, END, steps)) == 1
    assert losses(trained, 4 * PER_ITERATION, steps, spoiled=True) == [], "damaged on purpose: the one before counts"
    assert len(losses(trained, 4 * PER_ITERATION, steps)) == 1
    for step in checkpoint.steps(trained.folder):
        (trained.checkpoints / f"step={step}" / checkpoint.STATE).write_bytes(b"")
    assert len(losses(trained, END, steps)) == 1


def test_a_loss_in_a_later_attempt_is_one(trained: Run) -> None:
    """What an earlier attempt committed counts until another checkpoint takes its place."""
    course = Course()
    course.after([64, 128])
    course.after([])
    assert course == Course(128)
    course.spoiled = True
    course.after([])
    assert course.spoiled
    course.after([192])
    assert course == Course(192)


def test_the_hash_covers_weights_state_and_pointers(trained: Run) -> None:
    before = fingerprint(trained)
    saved = checkpoint.load(trained.checkpoints / f"step={END}")
    found = {before}
    for change in ("policy", "moment", "counter", "best"):
        if change == "policy":
            next(iter(saved.policy.values())).view(-1)[0] += 1e-7
        elif change == "moment":
            saved.state["session"]["optimizer"]["mean"][0] += 1e-7
        elif change == "counter":
            saved.state["loop"]["next_save"] += 1
        else:
            saved_checkpoints.mark_best(trained.folder, 2 * PER_ITERATION)
        saved_checkpoints.save(trained.folder, END, saved.policy, saved.state, {}, saved.manifest.counters)
        found.add(fingerprint(trained))
    assert len(found) >= 4  # the best may have been there before


def test_faults_are_drawn_at_every_place() -> None:
    entries = dict.fromkeys((name for name in POINTS if name not in ("video", "frame")), 10)
    reference = Reference("", [64, 128], 2.0, entries)
    drawn = [_draw_fault(random.Random(number), reference, 64 * (number % 2)) for number in range(2000)]
    assert {fault.point for fault, _ in drawn if fault} == set(entries)
    walls = [wall for _, wall in drawn if wall is not None]
    assert min(walls) < 0.1
    assert 1.9 < max(walls) <= 2.2
    assert {fault.kind.partition("=")[0] for fault, _ in drawn if fault} >= {
        "SIGKILL",
        "ENOSPC",
        "nan",
        "memory",
        "clock",
    }


def test_the_table_adds_up() -> None:
    faults = [vars(Injected("SIGKILL", "update", "train", -9, redone)) for redone in (0, 64, 128)]
    good = {**vars(Outcome("0:0", "a", 0, recovered=True, equal=True)), "faults": faults}
    bad = {**vars(Outcome("0:1", "a", 0, recovered=True, lost=["x"])), "faults": []}
    table = summary([good, bad])
    assert (table["runs"], table["faults"], table["recovered"]) == (2, 3, 2)
    assert (table["equal_to_uninterrupted"], table["lost"]) == (1, 1)
    assert table["redone_env_steps"] == {"median": 64, "p90": 128, "max": 128}

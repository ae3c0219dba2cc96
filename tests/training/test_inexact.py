"""Envs that cannot be saved: an exact resume repeats what came after their last reset, an inexact one goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import PER_ITERATION, Watcher, run
from test_resume_boundary import EVERY, KINDS, _native_walk, config  # noqa: F401 - a fixture

from gymnast.config.plan import REPEATED, make_plan
from gymnast.runs import checkpoint
from gymnast.runs.refs import resolve_checkpoint
from gymnast.training.train import Resume, resume_point, train

STOP_AFTER = 2 * EVERY - 1


@pytest.fixture(params=KINDS)
def env(request: pytest.FixtureRequest) -> dict[str, Any]:
    """An env without a state that could be saved."""
    return dict(request.param)


def test_newest_weights_are_kept_and_can_be_named(env: dict[str, Any], tmp_path: Path) -> None:
    watcher = Watcher(stop_after=STOP_AFTER)
    stopped = run(config(env), tmp_path, watcher)
    reset, newest = EVERY * PER_ITERATION, STOP_AFTER * PER_ITERATION
    assert (stopped.env_steps, stopped.weights_at) == (reset, newest)
    assert checkpoint.read_pointer(stopped.run.folder, "last") == f"step={reset}"
    found, name = resolve_checkpoint(tmp_path, f"{stopped.run.id}/newest")
    assert (found.id, name) == (stopped.run.id, f"step={newest}")
    saved = checkpoint.load(stopped.run.checkpoints / name)
    assert watcher.trainer is not None
    for key, tensor in watcher.trainer.policy.state_dict().items():
        assert torch.equal(tensor, saved.policy[key])


def test_inexact_resume_repeats_nothing(env: dict[str, Any], tmp_path: Path) -> None:
    stopped = run(config(env), tmp_path, Watcher(stop_after=STOP_AFTER)).run
    point, said = resume_point(stopped, inexact=True)
    assert point.manifest.step == STOP_AFTER * PER_ITERATION
    assert len(said) == 1 and "fresh episodes" in said[0]
    watcher = Watcher()
    result = train(config(env), tmp_path, reporter=watcher, resume=Resume(stopped, point))
    assert result is not None and result.env_steps == 6 * PER_ITERATION
    assert len(watcher.actions) == 6 - STOP_AFTER
    assert checkpoint.read_pointer(stopped.folder, checkpoint.NEWEST) is None  # `last` has moved beyond it


def test_exact_resume_forgets_what_it_repeats(env: dict[str, Any], tmp_path: Path) -> None:
    """It may come there by another way, under other settings."""
    stopped = run(config(env), tmp_path, Watcher(stop_after=STOP_AFTER)).run
    point, _ = resume_point(stopped)
    assert point.manifest.step == EVERY * PER_ITERATION
    seen: list[str | None] = []

    class Looks(Watcher):
        def update(self, history: Any, now: float, marks: Any = None) -> None:
            super().update(history, now, marks)
            seen.append(checkpoint.read_pointer(stopped.folder, checkpoint.NEWEST))

    train(config(env), tmp_path, reporter=Looks(), resume=Resume(stopped, point))
    assert seen and set(seen) == {None}


def test_a_stop_repeats_at_most_a_twentieth_of_the_budget() -> None:
    base = {"id": "CartPole-v1", "vectorization": "envpool", "resume_every": None}
    for iterations in (20, 100, 10_000):
        resolved = config(base, train={"env_steps": iterations * PER_ITERATION})
        assert make_plan(resolved.config, horizon=40).resume_every <= max(1, iterations // REPEATED)

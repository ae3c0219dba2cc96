"""A call from Python leaves its process as it was; trainings follow each other, and run side by side in threads."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gymnast
from gymnast.errors import UsageError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


def process() -> dict[str, Any]:
    """What of a process a library must not change."""
    return {
        "threads of torch": torch.get_num_threads(),
        "handlers": [signal.getsignal(number) for number in SIGNALS],
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "path": list(sys.path),
        "generators": (
            torch.random.get_rng_state().tolist(),
            repr(np.random.get_state()),  # noqa: NPY002 - the very one that others use
            random.getstate(),
        ),
        "logging": (
            logging.root.level,
            list(logging.root.handlers),
            logging.getLogger("gymnast").handlers[:],
            logging.getLogger("gymnast").level,
        ),
        "warnings": list(warnings.filters),
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook),
        "torch": (torch.get_default_dtype(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()),
        "living threads": threading.active_count(),
    }


def test_calls_leave_the_process_as_it_was(
    folder: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    settings = {"env_steps": 128, **tiny}
    first = gymnast.train("CartPole-v1", **settings)  # what is imported now may set what it likes
    gymnast.load(first.run).record("warm.gif")
    gymnast.train("Hopper-v5", **settings)
    capfd.readouterr()
    torch.set_num_threads(2)
    before = process()
    run = gymnast.train("CartPole-v1", **settings).run
    assert process() == before
    gymnast.train("CartPole-v1", env__vectorization="workers", env__n_workers=2, train__deterministic=True, **settings)
    assert process() == before
    gymnast.resume(run, env_steps=192)
    gymnast.train("Hopper-v5", **settings)
    assert process() == before
    agent = gymnast.load(run)
    agent.evaluate(3)
    agent.record("a.gif")
    agent.trace(frames=True)
    assert process() == before
    with pytest.raises(UsageError):
        gymnast.train("CartPole-v1", "nope=1")
    assert process() == before
    assert capfd.readouterr() == ("", "")  # quiet
    torch.set_num_threads(1)


def test_trainings_in_threads_are_those_of_one_after_the_other(folder: Path, tiny: dict[str, Any]) -> None:
    found: dict[int, gymnast.api.TrainResult] = {}
    torch.set_num_threads(2)

    def one(seed: int) -> None:
        found[seed] = gymnast.train("CartPole-v1", seed=seed, env_steps=1024, **tiny)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    for seed, result in found.items():
        alone = gymnast.train("CartPole-v1", seed=seed, env_steps=1024, **tiny)
        mine, theirs = (gymnast.load(run, checkpoint="last").policy.state_dict() for run in (result.run, alone.run))
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert [run.id for run in gymnast.runs(seed=1)]

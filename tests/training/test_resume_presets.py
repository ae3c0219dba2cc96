"""The exact-resume contract over every shipped preset: a new env family or algorithm is held to it by shipping one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_alike import Watcher, assert_same_end, differences, resume, run

from gymnast.config.algorithms import CONFIGS
from gymnast.config.files import SHIPPED, known_envs, variant_names
from gymnast.config.load import Resolved, resolve

SIZES = {"algo.n_steps": 16, "algo.batch_size": 16, "algo.n_epochs": 2, "algo.max_steps": None}
LIMIT = 24
ITERATIONS, STOP_AFTER = 5, 2
PRESETS = [
    f"{env_id}:{variant}"
    for env_id, files in known_envs()
    for variant in variant_names([file for file in files if file.path.is_relative_to(SHIPPED)])
]


def tiny(preset: str) -> Resolved:
    """The preset with everything that makes it what it is, and sizes that take a moment."""
    config = resolve(preset).config
    fields = type(config.algo).model_fields
    settings = {key: value for key, value in SIZES.items() if key.removeprefix("algo.") in fields}
    if config.policy.sequence_length is not None:
        settings["policy.sequence_length"] = 8
    whole_episodes = "n_steps" not in fields
    per_iteration = 2 * (LIMIT if whole_episodes else 16)
    settings |= {"env.n_envs": 2, "env.time_limit": LIMIT, "eval.episodes": 2, "eval.every": 2 * per_iteration}
    settings |= {"eval.warmup": 0, "eval.start_at": None, "eval.start_fraction": None, "eval.n_envs": 2}
    settings |= {"train.stop_when_solved": False, "train.checkpoint_every": 10**9, "log.window": 5, "log.report": False}
    settings |= {"train.env_steps": ITERATIONS * per_iteration, "train.threads": 1}  # two beside other tests crawl
    return resolve(preset, settings=settings)


def _marked(preset: str) -> Any:
    """Pixels take seconds; those of one game are held to it every time."""
    rarely = ":rgb" in preset and preset != "ALE/Pong-v5:rgb_ppo"
    return pytest.param(preset, marks=pytest.mark.full) if rarely else preset


@pytest.mark.parametrize("preset", [_marked(preset) for preset in PRESETS])
def test_stop_and_resume_equals_the_whole_run(preset: str, tmp_path: Path) -> None:
    """Weights, moments, statistics, generators, env states, rows and all actions."""
    resolved = tiny(preset)
    straight, before, after = Watcher(), Watcher(stop_after=STOP_AFTER), Watcher()
    whole = run(resolved, tmp_path, straight)
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not after.warnings
    assert len(after.actions) >= 2
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)


def test_every_algorithm_is_held_to_it() -> None:
    assert {resolve(preset).config.algo.id for preset in PRESETS} == set(CONFIGS)

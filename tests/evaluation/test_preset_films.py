"""Films of every shipped preset that draws, decoded: a few kinds in every test run, all of them in `make test-full`."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from test_video import decode

from gymnast.algorithms import policy_for
from gymnast.config.files import SHIPPED, known_envs, variant_names
from gymnast.config.load import resolve
from gymnast.envs.make import make_envs
from gymnast.evaluation.overlay import Captioned
from gymnast.evaluation.trace import record_episode
from gymnast.evaluation.video import VideoWriter
from gymnast.training.evaluating.setup import eval_env_config

KINDS = ["CartPole-v1:ppo", "FrozenLake-v1:ppo", "Pendulum-v1:ppo"]
PRESETS = [
    f"{env_id}:{variant}"
    for env_id, files in known_envs()
    for variant in variant_names([file for file in files if file.path.is_relative_to(SHIPPED)])
]
MOST_SECONDS = 3.0


def check(preset: str, path: Path) -> None:
    """One episode of a fresh policy: a picture per step and one for the end, at the env's pace, none of them empty."""
    config = resolve(preset).config
    env, _ = eval_env_config(config)
    envs = make_envs(env.model_copy(update={"vectorization": "inprocess"}), 1)
    policy = policy_for(config, envs.observation_space, envs.action_space)
    envs.close()
    with VideoWriter(path) as video:
        film = Captioned(video, config.spec)
        deadline = time.perf_counter() + MOST_SECONDS
        trace = record_episode(policy, env, seed=1, deterministic=False, film=film, deadline=deadline)
    frames, facts = decode(path)
    assert len(frames) == len(trace) + 1 == video.count
    assert not film.black
    game = [frame[: frame.shape[0] * 4 // 5] for frame in frames]  # without the caption
    assert all(picture.max() > 30 for picture in game)
    assert np.std([picture.mean() for picture in game]) > 0 or len({picture.tobytes() for picture in game}) > 1
    assert facts["rate"] == pytest.approx(trace.fps, rel=0.15)


@pytest.mark.parametrize("preset", KINDS)
def test_a_few_kinds(preset: str, tmp_path: Path) -> None:
    check(preset, tmp_path / "film.mp4")


@pytest.mark.full
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset(preset: str, tmp_path: Path) -> None:
    check(preset, tmp_path / "film.mp4")

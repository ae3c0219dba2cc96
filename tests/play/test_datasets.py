"""Minari datasets of what was played, loaded by Minari and replayed in plain Gymnasium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from launch import gymnast

from gymnast.config.schema import EnvConfig
from gymnast.config.spec import EnvSpec
from gymnast.envs.families.atari.game import AtariGame
from gymnast.envs.make import make_envs
from gymnast.errors import UsageError
from gymnast.play import commands
from gymnast.play.datasets import DatasetRecorder, free_id
from gymnast.play.opening import open_session

minari = pytest.importorskip("minari", reason="pip install minari[hdf5]")


@pytest.fixture(autouse=True)
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its datasets here."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def recorded(env: dict[str, Any], steps: int, *, seed: int = 3) -> tuple[list[Any], Any]:
    """Episodes of random play, as Minari reads them, and the dataset."""
    recorder = DatasetRecorder("play/test")
    session = open_session(
        EnvConfig.model_validate(env), EnvSpec(), "random", drawn=False, seed=seed, recorders=[recorder]
    )
    while session.steps + sum(result.length for result in session.results) < steps:
        session.next()
    session.close()
    recorder.close()
    dataset = minari.load_dataset(recorder.dataset_id)
    return list(dataset.iterate_episodes()), dataset


def replayed(env: gym.Env, seed: int, actions: Any) -> tuple[list[Any], list[float], bool]:
    """What plain Gymnasium gives for the same actions."""
    observations, rewards, terminated = [env.reset(seed=seed)[0]], [], False
    for action in actions:
        obs, reward, terminated, _, _ = env.step(action)
        observations.append(obs)
        rewards.append(reward)
    return observations, rewards, terminated


def test_wrappers_leave_no_trace() -> None:
    """Skipped and stacked frames: the dataset holds each step of the bare env, with the action it was given."""
    wrapped = {"id": "CartPole-v1", "wrappers": [{"id": "frame_skip", "skip": 3}, {"id": "frame_stack", "size": 4}]}
    episodes, dataset = recorded(wrapped, 40)
    assert dataset.observation_space.shape == (4,) and len(episodes) > 2
    for k, episode in enumerate(episodes):
        observations, rewards, terminated = replayed(gym.make("CartPole-v1"), 3 + k, episode.actions)
        np.testing.assert_array_equal(np.stack(observations), episode.observations)
        assert episode.rewards.tolist() == rewards
        assert (episode.terminations[-1], episode.truncations[-1]) == (terminated, not terminated)
        assert not episode.terminations[:-1].any() and not episode.truncations[:-1].any()
    actions = episodes[0].actions
    assert all(len(set(actions[i : i + 3])) == 1 for i in range(0, len(actions), 3)), "held for the frames of a step"


def test_an_image_is_kept_pixel_by_pixel_and_unstacked() -> None:
    """JPEG, Minari's default for images, would change them; the newest frame of a stack is what the env showed."""
    pytest.importorskip("ale_py")
    config = {"id": "ALE/Pong-v5", "atari": {"stack": 4}}
    (episode,), dataset = recorded(config, 12)
    assert dataset.observation_space.shape == (84, 84) and episode.truncations[-1], "cut short"
    envs = make_envs(EnvConfig.model_validate({**config, "vectorization": "inprocess"}), 1)
    game = envs.envs[0].unwrapped  # type: ignore[attr-defined]
    assert isinstance(game, AtariGame)
    observations, _, _ = replayed(game, 3, episode.actions)
    np.testing.assert_array_equal(np.stack(observations)[:, -1], episode.observations)


def test_parts_and_texts_are_kept() -> None:
    pytest.importorskip("minigrid")
    (episode,), _ = recorded({"id": "MiniGrid-Empty-5x5-v0"}, 9)
    observations, _, _ = replayed(gym.make("MiniGrid-Empty-5x5-v0"), 3, episode.actions)
    for key in ("image", "direction", "mission"):
        np.testing.assert_array_equal([obs[key] for obs in observations], episode.observations[key])


def test_an_episode_that_is_restarted_is_kept_as_truncated() -> None:
    recorder = DatasetRecorder("play/restarted")
    session = open_session(EnvConfig(id="CartPole-v1"), EnvSpec(), "random", drawn=False, seed=0, recorders=[recorder])
    for _ in range(3):
        session.next()
    session.command(commands.RESTART)
    for _ in range(2):
        session.next()
    session.stop_recording(recorder)
    session.next()
    recorder.close()
    session.close()
    lengths = [len(episode.actions) for episode in minari.load_dataset(recorder.dataset_id).iterate_episodes()]
    assert lengths[0] == 3 and lengths[1] == 2


@pytest.mark.parametrize("wrong", ["", "../outside", "/etc/x", "a b", "x/y/../z", "-v0", "é", "a" * 200])
def test_an_id_that_is_none_is_a_sentence(wrong: str) -> None:
    with pytest.raises(UsageError, match="no id of a dataset"):
        free_id(wrong)


def test_the_command_writes_one_and_never_over_another(tmp_path: Path, datasets: Path) -> None:
    play = ["play", "CartPole-v1", "--headless", "--json", "--record-dataset"]
    changes = {"MINARI_DATASETS_PATH": str(datasets)}
    for version in (0, 1):
        done = gymnast(*play, "cart/chance", cwd=tmp_path, **changes)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["dataset"] == f"cart/chance-v{version}"
        assert minari.load_dataset(told["dataset"]).total_steps == told["episodes"][0]["length"]
    done = gymnast(*play, "cart/chance-v1", cwd=tmp_path, **changes)
    assert done.returncode == 2 and "already" in done.stderr

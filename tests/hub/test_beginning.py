"""Runs that begin with a Stable-Baselines3 model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sb3_models import OBSERVATIONS, env_id, make, normalised, observations
from stable_baselines3 import DQN

import gymnast
from gymnast.config.schema import RunConfig
from gymnast.errors import CheckpointError, UsageError
from gymnast.hub.beginning import model_source
from gymnast.policies.actor_critic import ActorCritic
from gymnast.runs import lineage
from gymnast.training.transfer.fitting import fit

TINY = ("env.n_envs=2", "algo.n_steps=16", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=2", "hidden=[64,64]")


def config(path: Path, env: str = "CartPole-v1") -> RunConfig:
    """One that begins with a file."""
    train = {"env_steps": 64, "init_from": str(path)}
    return RunConfig.model_validate({"env": {"id": env}, "algo": {"id": "ppo"}, "train": train})


def started(path: Path, root: Path, *overrides: str, env: str = "CartPole-v1", **settings: Any) -> Any:
    """A very short training from a file."""
    return gymnast.train(env, *TINY, *overrides, env_steps=32, init_from=str(path), runs_dir=root, **settings)


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_the_loaded_policy_acts_as_the_model_does(kind: str, tmp_path: Path) -> None:
    """Every kind of observation, with its statistics where there are any."""
    env = env_id(kind, "Discrete")
    vector = normalised(env, clip_obs=4.0) if kind in ("Box", "Matrix") else None
    make("ppo", vector or env).save(tmp_path / "model.zip")
    if vector is not None:
        vector.save(str(tmp_path / "vecnormalize.pkl"))
    source = model_source(config(tmp_path / "model.zip", env))
    assert source is not None
    agent = gymnast.load(tmp_path / "model.zip", env=env)
    space = agent.policy.encoder.space
    policy = ActorCritic(source.policy, space, agent.action_space)
    assert not any(part.why for part in fit(policy.state_dict(), source.tensors))
    policy.load_state_dict(dict(source.tensors))
    assert all(torch.equal(tensor, agent.policy.state_dict()[name]) for name, tensor in policy.state_dict().items())
    assert agent.predict(observations(OBSERVATIONS[kind], 3)) is not None


def test_a_run_that_begins_with_a_model(tmp_path: Path) -> None:
    """The file and its hash are in the lineage, the path in the config; the head that does not fit is new."""
    make("ppo", "CartPole-v1").save(tmp_path / "model.zip")
    result = started(tmp_path / "model.zip", tmp_path / "runs")
    parent = lineage.read(result.run.folder).parent
    assert parent is not None
    assert not {name for name in parent["skipped"] if name.startswith(("actor", "critic"))}
    assert parent["file"] == result.run.config()["train"]["init_from"] == str((tmp_path / "model.zip").resolve())
    assert len(parent["sha256"]) == 64
    assert parent["comparison"].startswith("source not evaluated · here before training ")
    other = started(tmp_path / "model.zip", tmp_path / "runs", env="Acrobot-v1")
    skipped = lineage.read(other.run.folder).parent["skipped"]  # type: ignore[index]
    assert skipped["actor.layers.2"] == "2×64 in the source, 3×64 here"
    with pytest.raises(UsageError, match="a model file holds none that could be read"):
        started(tmp_path / "model.zip", tmp_path / "runs", "train.init_optimizer=true")
    with pytest.raises(UsageError, match="only `gymnast train` and gymnast.train"):
        gymnast.training.train.train(gymnast.config.load.from_saved(result.run.config()), tmp_path / "runs")


def test_noise_that_cannot_be_taken_over_is_new(tmp_path: Path) -> None:
    """gSDE has no spread of ours: the run explores as one from nothing."""
    make("ppo", "Pendulum-v1", use_sde=True).save(tmp_path / "model.zip")
    result = started(tmp_path / "model.zip", tmp_path / "runs", env="Pendulum-v1")
    parent = lineage.read(result.run.folder).parent
    assert parent is not None
    assert parent["skipped"]["log_std"] == "missing in the source"
    assert "actor.layers.2" in parent["loaded"]


def test_other_models_are_refused_before_a_run_is_made(tmp_path: Path) -> None:
    DQN("MlpPolicy", "CartPole-v1", buffer_size=10, device="cpu").save(tmp_path / "dqn.zip")
    (tmp_path / "bad.zip").write_bytes(b"not a zip at all")
    for name, words in (("dqn.zip", "is a DQN model: only PPO and A2C"), ("bad.zip", "is not a zip file")):
        with pytest.raises(CheckpointError, match=words):
            started(tmp_path / name, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()

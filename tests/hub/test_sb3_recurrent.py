"""Models of sb3-contrib's RecurrentPPO act here as they act there, step after step and over the ends of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from launch import gymnast as run_gymnast
from sb3_models import OBSERVATIONS, env_id, observations, shake

import gymnast
from gymnast.errors import CheckpointError

contrib = pytest.importorskip("sb3_contrib")
STEPS, EPISODES = 12, 6


def saved(path: Path, observation: str, action: str, kwargs: dict[str, Any]) -> Any:
    """A model whose memory matters."""
    policy = "MultiInputLstmPolicy" if observation == "Dict" else "MlpLstmPolicy"
    sizes = {"lstm_hidden_size": 8, "net_arch": [6]}
    model = contrib.RecurrentPPO(
        policy, env_id(observation, action), n_steps=8, batch_size=8, seed=1, policy_kwargs={**sizes, **kwargs}
    )
    shake(model, 0.4)
    model.save(path)
    return model


SHAPES: dict[str, dict[str, Any]] = {
    "an LSTM each": {},
    "two layers": {"n_lstm_layers": 2},
    "shared": {"shared_lstm": True, "enable_critic_lstm": False, "net_arch": {"pi": [5], "vf": []}},
}


@pytest.mark.parametrize(
    ("observation", "action"), [("Box", "Box"), ("Dict", "Discrete"), ("Discrete", "MultiDiscrete")]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_actions(observation: str, action: str, shape: str, tmp_path: Path) -> None:
    model = saved(tmp_path / "model.zip", observation, action, SHAPES[shape])
    agent = gymnast.load(tmp_path / "model.zip", env=env_id(observation, action))
    all_obs = observations(OBSERVATIONS[observation], STEPS * EPISODES)
    random = np.random.default_rng(0)
    theirs = ours = None
    for t in range(STEPS):
        rows = slice(t * EPISODES, (t + 1) * EPISODES)
        obs = {key: part[rows] for key, part in all_obs.items()} if isinstance(all_obs, dict) else all_obs[rows]
        starts = random.random(EPISODES) < 0.2
        wanted, theirs = model.predict(obs, state=theirs, episode_start=starts, deterministic=True)
        got, ours = agent.predict(obs, state=ours, start=starts)
        if isinstance(model.action_space, spaces.Box):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)
        else:
            np.testing.assert_array_equal(got, wanted)
    assert agent.config.policy.memory == "lstm" and agent.config.algo.id == "ppo"


def test_it_is_evaluated_by_a_command(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip", "Box", "Discrete", {})
    agent = gymnast.load(tmp_path / "model.zip", env=env_id("Box", "Discrete"))
    assert agent.evaluate(2).lengths == [20, 20]
    shown = run_gymnast("model", "CartPole-v1:position_recurrent_ppo", cwd=tmp_path)
    assert shown.returncode == 0 and "gru" in shown.stdout, shown.stderr


def test_a_critic_without_memory_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip", "Box", "Discrete", {"enable_critic_lstm": False})
    with pytest.raises(CheckpointError, match=r"has a critic without LSTM next to an actor with one"):
        gymnast.load(tmp_path / "model.zip", env=env_id("Box", "Discrete"))

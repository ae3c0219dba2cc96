"""Models that Stable-Baselines3 saved act here as they act there (PUB-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_models import ACTIONS, ALGORITHMS, OBSERVATIONS, env_id, make, normalised, observations, rewritten
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.torch_layers import FlattenExtractor

import gymnast
from gymnast.errors import CheckpointError, GymnastError, UsageError

COUNT = 1_000


def assert_same_actions(agent: Any, model: Any, obs: Any, read: Any = None) -> None:
    """Deterministic actions of both on the same observations; `read` is what theirs is given instead."""
    theirs, _ = model.predict(obs if read is None else read, deterministic=True)
    ours = agent.predict(obs)
    if isinstance(model.action_space, spaces.Box):
        assert len(np.unique(theirs[:, 0])) > 3
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5)
    else:
        assert len(np.unique(theirs, axis=0)) > 1
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_actions(algorithm: str, observation: str, action: str, tmp_path: Path) -> None:
    """Every kind of observation with every kind of action."""
    env = env_id(observation, action)
    model = make(algorithm, env)
    model.save(tmp_path / "model.zip")
    agent = gymnast.load(tmp_path / "model.zip", env=env)
    obs = observations(OBSERVATIONS[observation], COUNT)
    assert_same_actions(agent, model, obs)
    assert agent.config.algo.id == algorithm
    assert agent.run is None
    one = {key: part[0] for key, part in obs.items()} if isinstance(obs, dict) else obs[0]
    assert agent.action_space.contains(agent.predict(one))
    with pytest.raises(UsageError, match=r"neither an observation nor a batch of them.* Give an? "):
        agent.predict([np.zeros((17, 3))])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"net_arch": []},
        {"net_arch": [7]},
        {"net_arch": {"pi": [9, 5], "vf": [4]}},
        {"net_arch": {"vf": [6]}},
        {"net_arch": [8, 8, 8], "activation_fn": torch.nn.ReLU},
        {"activation_fn": torch.nn.ELU, "ortho_init": False},
        {"activation_fn": torch.nn.LeakyReLU, "log_std_init": -1.0},
        {"activation_fn": torch.nn.SiLU, "features_extractor_class": FlattenExtractor},
        {"activation_fn": torch.nn.GELU, "optimizer_kwargs": {"weight_decay": 0.1}},
    ],
    ids=str,
)
@pytest.mark.parametrize("action", ["Discrete", "Box"])
def test_networks(kwargs: dict[str, Any], action: str, tmp_path: Path) -> None:
    """Sizes come from the tensors, the activation from the pickled class; values are the same too."""
    env = env_id("Box", action)
    model = make("ppo", env, policy_kwargs=kwargs)
    model.save(tmp_path / "model.zip")
    agent = gymnast.load(tmp_path / "model.zip", env=env)
    obs = observations(OBSERVATIONS["Box"], COUNT)
    assert_same_actions(agent, model, obs)
    with torch.no_grad():
        theirs = model.policy.predict_values(torch.from_numpy(obs))[:, 0]
        torch.testing.assert_close(agent.policy.values(torch.from_numpy(obs)), theirs, rtol=1e-4, atol=1e-4)
    if action == "Box":
        torch.testing.assert_close(agent.policy.log_std, model.policy.log_std)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("action", ["Discrete", "Box"])
@pytest.mark.parametrize(
    ("observation", "settings"),
    [
        ("Box", {}),
        ("Box", {"clip_obs": 0.75, "epsilon": 0.5}),
        ("Box", {"norm_obs": False}),
        ("Box", {"clip_obs": np.inf}),
        ("Matrix", {}),
        ("Dict", {"norm_obs_keys": ["z", "m"]}),
        ("Dict", {"norm_obs_keys": ["m"]}),
    ],
    ids=str,
)
def test_vecnormalize(algorithm: str, action: str, observation: str, settings: dict[str, Any], tmp_path: Path) -> None:
    """Observations are normalised as theirs are, from the file that lies beside the model."""
    env = env_id(observation, action)
    vector = normalised(env, **settings)
    model = make(algorithm, vector)
    model.save(tmp_path / "model.zip")
    vector.save(str(tmp_path / "vecnormalize.pkl"))
    agent = gymnast.load(tmp_path / "model.zip", env=env)
    obs = observations(OBSERVATIONS[observation], COUNT)
    assert_same_actions(agent, model, obs, read=vector.normalize_obs(obs))
    assert str(tmp_path / "vecnormalize.pkl") in agent.notices[0]
    assert agent.config.policy.normalize_obs is settings.get("norm_obs", True)
    assert agent.config.algo.normalize_reward


def test_a_trained_model_plays_as_well_as_there(tmp_path: Path) -> None:
    """Weights after learning, hyperparameters, whole episodes."""
    vector = normalised("CartPole-v1")
    model = PPO("MlpPolicy", vector, n_steps=64, batch_size=32, gamma=0.97, gae_lambda=0.9, device="cpu", seed=0)
    model.learn(192)
    model.save(tmp_path / "CartPole-v1.zip")
    (tmp_path / "CartPole-v1").mkdir()
    vector.save(str(tmp_path / "CartPole-v1" / "vecnormalize.pkl"))
    agent = gymnast.load(tmp_path / "CartPole-v1.zip", env="CartPole-v1")
    assert (agent.config.algo.gamma, agent.config.algo.gae_lambda) == (0.97, 0.9)  # type: ignore[attr-defined]
    env = gym.make("CartPole-v1")
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = agent.predict(obs)
            assert action == int(model.predict(vector.normalize_obs(obs), deterministic=True)[0])
            obs, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated


def test_sampled_actions_have_the_same_distribution(tmp_path: Path) -> None:
    """Means and spreads of 4,000 sampled actions for one observation."""
    env = env_id("Box", "Box")
    model = make("a2c", env, policy_kwargs={"log_std_init": -2.0})
    with torch.no_grad():
        model.policy.action_net.weight.mul_(0.01)
        model.policy.action_net.bias.copy_(torch.tensor([0.0, 0.1, 1.0]))
    model.save(tmp_path / "model.zip")
    obs = np.repeat(observations(OBSERVATIONS["Box"], 1), 4_000, 0)
    ours = gymnast.load(tmp_path / "model.zip", env=env).predict(obs, deterministic=False)
    theirs, _ = model.predict(obs, deterministic=False)
    np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.03)
    np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.1)


def test_shared_layers_of_old_versions(tmp_path: Path) -> None:
    """`mlp_extractor.shared_net` of versions before 1.8, here as the first layer of two equal ones."""
    env = env_id("Box", "Discrete")
    model = make("ppo", env, policy_kwargs={"net_arch": [6, 5]})
    policy = model.policy
    policy.mlp_extractor.value_net[0].load_state_dict(policy.mlp_extractor.policy_net[0].state_dict())
    obs = observations(OBSERVATIONS["Box"], COUNT)
    theirs, _ = model.predict(obs, deterministic=True)
    old = {
        name.replace("policy_net.0", "shared_net.0").replace("_net.2", "_net.0"): tensor
        for name, tensor in policy.state_dict().items()
        if "value_net.0" not in name
    }
    model.save(tmp_path / "new.zip")
    torch.save(old, tmp_path / "policy.pth")
    path = rewritten(tmp_path / "new.zip", tmp_path / "old.zip", {"policy.pth": (tmp_path / "policy.pth").read_bytes()})
    agent = gymnast.load(path, env=env)
    np.testing.assert_array_equal(agent.predict(obs), theirs)
    with torch.no_grad():
        torch.testing.assert_close(
            agent.policy.values(torch.from_numpy(obs)), policy.predict_values(torch.from_numpy(obs))[:, 0]
        )


# ---- gSDE ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full_std", [True, False])
def test_state_dependent_noise_leaves_deterministic_actions_alone(full_std: bool, tmp_path: Path) -> None:
    """gSDE changes the noise only: deterministic actions are equal, sampled ones are refused."""
    env = env_id("Box", "Box")
    model = make("ppo", env, use_sde=True, policy_kwargs={"full_std": full_std})
    model.save(tmp_path / "model.zip")
    agent = gymnast.load(tmp_path / "model.zip", env=env)
    obs = observations(OBSERVATIONS["Box"], COUNT)
    assert_same_actions(agent, model, obs)
    with pytest.raises(UsageError, match=r"can only act deterministically.*gSDE"):
        agent.predict(obs, deterministic=False)


def test_squashed_actions_are_refused(tmp_path: Path) -> None:
    env = env_id("Box", "Box")
    make("ppo", env, use_sde=True, policy_kwargs={"squash_output": True}).save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match="squash_output"):
        gymnast.load(tmp_path / "model.zip", env=env)


# ---- what cannot be read, says why -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "action"), [(DQN, "Discrete"), (SAC, "Box"), (TD3, "Box")])
def test_other_algorithms(kind: Any, action: str, tmp_path: Path) -> None:
    env = env_id("Box", action)
    kind("MlpPolicy", gym.make(env), device="cpu", buffer_size=10).save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match=f"is a {kind.__name__}.* model: only PPO and A2C"):
        gymnast.load(tmp_path / "model.zip", env=env)


class Pictures(gym.Env):
    """An env of images."""

    observation_space = spaces.Box(0, 255, (36, 36, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, True, False, {}


class OwnExtractor(FlattenExtractor):
    """Has no parameters, and yet computes something else."""

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return -super().forward(observations)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"activation_fn": torch.nn.Softplus}, "activation torch.nn.modules.activation.Softplus"),
        ({"features_extractor_class": OwnExtractor}, "its own features extractor"),
    ],
)
def test_networks_that_ours_cannot_be(kwargs: dict[str, Any], words: str, tmp_path: Path) -> None:
    env = env_id("Box", "Discrete")
    make("ppo", env, policy_kwargs=kwargs).save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match=words):
        gymnast.load(tmp_path / "model.zip", env=env)


@pytest.mark.parametrize(
    "other", [("Matrix", "Discrete"), ("Box", "Box"), ("Dict", "Discrete"), ("Discrete", "Discrete")]
)
def test_spaces_of_another_env(other: tuple[str, str], tmp_path: Path) -> None:
    """Both spaces are named."""
    make("ppo", env_id("Box", "Discrete")).save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError) as caught:
        gymnast.load(tmp_path / "model.zip", env=env_id(*other))
    what = (OBSERVATIONS["Box"], OBSERVATIONS[other[0]]) if other[0] != "Box" else (ACTIONS["Discrete"], ACTIONS["Box"])
    assert f"{what[0]}, but {env_id(*other)} has {what[1]}." in str(caught.value)


class Shifted(Pictures):
    """Actions that count from 5, which Stable-Baselines3 does not know."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2, start=5)


def test_actions_that_do_not_count_from_zero(tmp_path: Path) -> None:
    if "Sb3Shifted-v0" not in gym.registry:
        gym.register("Sb3Shifted-v0", Shifted, max_episode_steps=5)
    PPO("MlpPolicy", Shifted(), device="cpu", n_steps=8, batch_size=8).save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match="do not count from 0"):
        gymnast.load(tmp_path / "model.zip", env="Sb3Shifted-v0")


def test_references(tmp_path: Path) -> None:
    """A model needs its env, a run has one."""
    make("ppo", env_id("Box", "Discrete")).save(tmp_path / "model.zip")
    path = tmp_path / "model.zip"
    with pytest.raises(UsageError, match=r"name it with --env"):
        gymnast.load(path)
    with pytest.raises(UsageError, match=r"'@last' is a run"):
        gymnast.load("@last", env="CartPole-v1")
    with pytest.raises(UsageError, match=r"'@last' is a run"):
        gymnast.load("@last", vecnormalize=False)
    with pytest.raises(UsageError, match=r"There is no file"):
        gymnast.load(tmp_path / "other.zip", env="CartPole-v1")
    with pytest.raises(UsageError, match=r"Unknown environment 'CartPoel-v1'"):
        gymnast.load(path, env="CartPoel-v1")
    with pytest.raises(GymnastError, match=r"There is no file .*none\.pkl"):
        gymnast.load(path, env=env_id("Box", "Discrete"), vecnormalize=tmp_path / "none.pkl")


def test_the_bare_env_is_played(tmp_path: Path) -> None:
    """A preset's wrappers, arguments and masks are not those of Stable-Baselines3; a variant that is named counts."""
    model = PPO("MlpPolicy", gym.make("FrozenLake-v1"), device="cpu", n_steps=8, batch_size=8)
    model.save(tmp_path / "model.zip")
    bare = gymnast.load(tmp_path / "model.zip", env="FrozenLake-v1").config
    assert (bare.env.kwargs, bare.env.wrappers, bare.env.action_mask) == ({}, [], "off")
    assert bare.spec.solved_at is not None
    with pytest.raises(CheckpointError, match=r"Discrete\(16\), but FrozenLake-v1 has Discrete\(64\)"):
        gymnast.load(tmp_path / "model.zip", env="FrozenLake-v1:ppo_8x8")

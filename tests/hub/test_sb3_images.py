"""Stable-Baselines3's image policies act here as they act there (PUB-3)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from launch import gymnast as command
from sb3_models import ALGORITHMS, AnySpaces, make, observations, rewritten
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize, VecTransposeImage

import gymnast
from gymnast.errors import CheckpointError
from gymnast.runs import lineage

COUNT = 200


def image(*shape: int, high: int = 255) -> spaces.Box:
    return spaces.Box(0, high, shape, np.uint8)


CHOICE, FORCE = spaces.Discrete(4), spaces.Box(-9.0, 9.0, (2,), np.float32)
SPACES: dict[str, spaces.Space] = {
    "first": image(3, 40, 44),
    "last": image(40, 44, 3),
    "byte range": image(1, 36, 36, high=200),
    "floats": spaces.Box(0.0, 1.0, (2, 36, 40), np.float32),
    # Not in alphabetical order, and the images neither first nor together.
    "parts": spaces.Dict(
        [
            ("z", spaces.Box(-9.0, 9.0, (3,), np.float32)),
            ("front", image(36, 40, 3)),
            ("m", spaces.Discrete(5)),
            ("back", image(40, 36, 1)),
            ("a", image(6)),
        ]
    ),
    # SB3 lays the last one out flat: bytes that are no image to it, floats that have the axes of one.
    "no image": spaces.Dict([("eye", image(36, 36, 3)), ("heat", image(36, 36, 3, high=99))]),
    "field": spaces.Dict([("eye", image(36, 36, 3)), ("field", spaces.Box(-1.0, 1.0, (2, 3, 4), np.float32))]),
}


def env_id(kind: str, action: spaces.Space = CHOICE) -> str:
    name = f"Sb3Image{kind.title().replace(' ', '')}{type(action).__name__}-v0"
    if name not in gym.registry:
        gym.register(name, lambda: AnySpaces(SPACES[kind], action), max_episode_steps=5)
    return name


def saved(kind: str, path: Path, action: spaces.Space = CHOICE, algorithm: str = "ppo", **settings: Any) -> Any:
    """A model for an env with the named observations, saved to `path`."""
    policy = "MultiInputPolicy" if isinstance(SPACES[kind], spaces.Dict) else "CnnPolicy"
    model = make(algorithm, env_id(kind, action), shake_by=0.02, **{"policy": policy, **settings})
    model.save(path)
    return model


def assert_alike(agent: Any, model: Any, obs: Any, read: Any = None) -> None:
    """Greedy actions, distribution parameters and values on the same observations; `read` is what theirs is given."""
    read = obs if read is None else read
    theirs, _ = model.predict(read, deterministic=True)
    ours = agent.predict(obs)
    tensor, _ = model.policy.obs_to_tensor(read)
    batch = {k: torch.from_numpy(v) for k, v in obs.items()} if isinstance(obs, dict) else torch.from_numpy(obs)
    with torch.no_grad():
        params, heads, _ = agent.policy(batch)
        distribution = model.policy.get_distribution(tensor).distribution
        expected = model.policy.predict_values(tensor)[:, 0]
    torch.testing.assert_close(heads["value"], expected, rtol=1e-4, atol=1e-4)
    assert expected.std() > 1e-3
    if isinstance(model.action_space, spaces.Box):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(params[:, :2], distribution.mean, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(ours, theirs)
        torch.testing.assert_close(torch.log_softmax(params, -1), distribution.logits, rtol=1e-4, atol=1e-4)
        assert len(np.unique(theirs)) > 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("kind", "action", "kwargs"),
    [
        ("first", CHOICE, {}),
        ("last", FORCE, {}),
        ("first", FORCE, {"net_arch": {"pi": [7], "vf": [5, 6]}, "activation_fn": torch.nn.ELU}),
        ("last", CHOICE, {"normalize_images": False, "features_extractor_kwargs": {"features_dim": 33}}),
        ("byte range", CHOICE, {"normalize_images": False}),
        ("floats", CHOICE, {"normalize_images": False}),
        ("parts", CHOICE, {}),
        ("parts", FORCE, {"net_arch": [], "features_extractor_kwargs": {"cnn_output_dim": 20}}),
        ("field", CHOICE, {"net_arch": [8]}),
    ],
    ids=str,
)
def test_the_same_actions_and_values(
    kind: str, action: spaces.Space, kwargs: dict[str, Any], algorithm: str, tmp_path: Path
) -> None:
    """Channels first and last, scaled or not, alone and beside other parts, in any order."""
    model = saved(kind, tmp_path / "model.zip", action, algorithm, policy_kwargs=kwargs)
    agent = gymnast.load(tmp_path / "model.zip", env=env_id(kind, action))
    assert_alike(agent, model, observations(SPACES[kind], COUNT))
    assert agent.policy.encoder.learns


def test_images_without_a_cnn(tmp_path: Path) -> None:
    """MlpPolicy lays an image out flat, though ours would take a CNN by itself."""
    model = saved("first", tmp_path / "model.zip", policy="MlpPolicy")
    agent = gymnast.load(tmp_path / "model.zip", env=env_id("first"))
    assert not agent.policy.encoder.learns
    assert_alike(agent, model, observations(SPACES["first"], COUNT))
    with pytest.raises(CheckpointError, match="was made for observations"):
        gymnast.load(tmp_path / "model.zip", env=env_id("last"))


def test_images_beside_normalised_parts(tmp_path: Path) -> None:
    """VecNormalize leaves images alone; its statistics are those of the parts it names."""
    vector = VecNormalize(VecTransposeImage(DummyVecEnv([lambda: gym.make(env_id("parts"))])), norm_obs_keys=["z"])
    vector.obs_rms["z"].update(np.random.default_rng(0).normal(3.0, 2.0, (100, 3)))
    vector.training = False
    model = make("ppo", vector, shake_by=0.02)
    model.save(tmp_path / "model.zip")
    vector.save(str(tmp_path / "vecnormalize.pkl"))
    obs = observations(SPACES["parts"], COUNT)
    read = vector.normalize_obs(obs)
    for key in ("front", "back"):
        read[key] = read[key].transpose(0, 3, 1, 2)
    assert_alike(gymnast.load(tmp_path / "model.zip", env=env_id("parts")), model, obs, read)


# ---- Atari ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pong(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """PPO after a few updates on Pong, wrapped as rl-zoo wraps it."""
    import ale_py

    gym.register_envs(ale_py)
    path = tmp_path_factory.mktemp("pong") / "model.zip"
    one = lambda: AtariWrapper(gym.make("PongNoFrameskip-v4"))  # noqa: E731
    vector = VecTransposeImage(VecFrameStack(DummyVecEnv([one]), 4))
    model = PPO("CnnPolicy", vector, n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0)
    model.learn(16)
    model.save(path)
    vector.close()
    return path, model


def test_stacked_frames_of_atari(pong: tuple[Path, Any]) -> None:
    """Played by our own Atari protocol; other observations and actions are refused."""
    path, model = pong
    agent = gymnast.load(path, env="ALE/Pong-v5:rgb_ppo")
    obs = np.random.default_rng(0).integers(0, 256, (COUNT, 4, 84, 84), np.uint8)
    with torch.no_grad():
        tensor = torch.from_numpy(obs)
        params, heads, _ = agent.policy(tensor)
        theirs = model.policy.get_distribution(tensor).distribution.logits
        torch.testing.assert_close(torch.log_softmax(params, -1), theirs, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(heads["value"], model.policy.predict_values(tensor)[:, 0], rtol=1e-4, atol=1e-4)
    with pytest.raises(CheckpointError, match="made for observations"):
        gymnast.load(path, env="ALE/Pong-v5:ram_ppo")
    with pytest.raises(CheckpointError, match="made for actions"):
        gymnast.load(path, env="ALE/Breakout-v5:rgb_ppo")


def test_commands_and_the_start_of_a_run(pong: tuple[Path, Any], tmp_path: Path) -> None:
    """All of the network is taken over."""
    path, _ = pong
    told = command("model", path, "--env", "ALE/Pong-v5:rgb_ppo", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "conv 8×8, stride 4, relu" in told.stdout
    result = gymnast.train(
        "ALE/Pong-v5:rgb_ppo", "policy.background=0", "env.n_envs=2", "algo.n_steps=8", "algo.batch_size=16", "algo.n_epochs=1",
        "eval.episodes=1", "env.atari.frame_cap=200", "train.threads=1", "eval.mode=inprocess", "env.vectorization=inprocess",
        env_steps=16, init_from=str(path), runs_dir=tmp_path / "runs",
    )  # fmt: skip
    parent = lineage.read(result.run.folder).parent
    assert parent is not None
    assert not [name for name in parent["skipped"] if name != "optimizer"]
    assert parent["parameters"][0] == parent["parameters"][1]
    assert parent["notes"] == []


# ---- what cannot be read, says why -----------------------------------------------------------------------------------


def test_a_cnn_of_the_critics_own(tmp_path: Path) -> None:
    saved("first", tmp_path / "model.zip", policy_kwargs={"share_features_extractor": False})
    with pytest.raises(CheckpointError, match="share_features_extractor=False"):
        gymnast.load(tmp_path / "model.zip", env=env_id("first"))


class OwnCnn(NatureCNN):
    """Has the same tensors, and yet computes something else."""

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return -super().forward(observations)


def test_an_extractor_of_ones_own(tmp_path: Path) -> None:
    saved("first", tmp_path / "model.zip", policy_kwargs={"features_extractor_class": OwnCnn})
    with pytest.raises(CheckpointError, match="its own features extractor"):
        gymnast.load(tmp_path / "model.zip", env=env_id("first"))


def test_images_laid_out_flat_beside_a_cnn(tmp_path: Path) -> None:
    saved("no image", tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match="reads eye by a CNN and lays heat out flat"):
        gymnast.load(tmp_path / "model.zip", env=env_id("no image"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features_extractor.cnn.2.bias": None}, "'body.1' of its CNN"),
        ({"features_extractor.cnn.0.weight": torch.zeros(32, 4, 8, 8)}, "a CNN for 4 channels"),
        ({"features_extractor.cnn.0.weight": torch.zeros(32)}, "'body.0' of its CNN"),
        ({"features_extractor.linear.0.weight": torch.zeros(512, 9)}, "'linear' of its CNN"),
        ({"features_extractor.linear.0.bias": torch.tensor(1.0)}, "'body.0' of its CNN"),
        ({"features_extractor.cnn.6.weight": torch.zeros(9)}, "'features_extractor.cnn.6.weight' that its policy"),
        ({"features_extractor.extractors.a.cnn.0.weight": torch.zeros(9)}, "its own observation space"),
    ],
    ids=str,
)
def test_tensors_that_do_not_fit(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    saved("first", tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        state = torch.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)
    state = {name: tensor for name, tensor in (state | change).items() if not name.startswith(("pi_", "vf_"))}
    buffer = io.BytesIO()
    torch.save({name: tensor for name, tensor in state.items() if tensor is not None}, buffer)
    bad = rewritten(tmp_path / "model.zip", tmp_path / "bad.zip", {"policy.pth": buffer.getvalue()})
    with pytest.raises(CheckpointError, match=words):
        gymnast.load(bad, env=env_id("first"))

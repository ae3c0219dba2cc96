"""Policies with a CNN leave gymnast: as ONNX and torch.export programs in float32, and not as a script."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_models import AnySpaces

import gymnast
from gymnast.api import Agent
from gymnast.errors import UsageError
from gymnast.hub.eject import eject
from gymnast.hub.export import METADATA, SUFFIXES, export
from gymnast.hub.export_check import random_observations

IMAGE = spaces.Box(0, 255, (36, 40, 3), np.uint8)
SMALL = spaces.Box(0, 255, (12, 10, 3), np.uint8)
SENSES = spaces.Dict({"front": SMALL, "speed": spaces.Box(-9.0, 9.0, (3,), np.float32), "gear": spaces.Discrete(4)})
CASES: dict[str, tuple[spaces.Space, spaces.Space, dict[str, Any]]] = {
    "nature, bf16": (IMAGE, spaces.Discrete(3), {"policy__precision": "bf16", "policy__hidden": []}),
    "impala, parts, normaliser": (
        SENSES,
        spaces.Box(-1.0, 1.0, (2,), np.float32),
        {
            "policy__cnn": "impala",
            "policy__cnn_features": 16,
            "policy__normalize_obs": True,
            "policy__precision": "float32",
        },
    ),
    "layers, shared trunk": (
        spaces.Box(0, 255, (2, 9, 8), np.uint8),
        spaces.Discrete(3),
        {
            "policy__cnn": [{"channels": 4, "kernel": 3, "stride": 2, "padding": 1}],
            "policy__shared_trunk": True,
            "policy__precision": "float32",
        },
    ),
}


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agent]:
    """One agent per case, after an update."""
    root = tmp_path_factory.mktemp("runs")
    found = {}
    for i, (case, (observation, action, settings)) in enumerate(CASES.items()):
        env = f"ExportImages{i}-v0"
        if env not in gym.registry:
            gym.register(env, lambda o=observation, a=action: AnySpaces(o, a), max_episode_steps=5)  # type: ignore[misc]
        sizes = {"env__n_envs": 2, "algo__n_steps": 8, "algo__batch_size": 16, "algo__n_epochs": 1, "eval__episodes": 1}
        fixed: dict[str, Any] = {"env__vectorization": "inprocess", "policy__hidden": [8], "algo__learning_rate": 0.01}
        fixed |= {"train__threads": 1, "eval__mode": "inprocess"}
        run = gymnast.train(f"{env}:ppo", env_steps=32, runs_dir=root, **{**sizes, **fixed, **settings}).run
        found[case] = gymnast.load(run.id, runs_dir=root)
    return found


@pytest.mark.parametrize("format", SUFFIXES)
@pytest.mark.parametrize("case", CASES)
def test_a_file_acts_as_predict(case: str, format: Any, agents: dict[str, Agent], tmp_path: Path) -> None:
    """uint8 goes in, float32 is computed, actions are equal; a CNN that was trained in bf16 says so."""
    agent = agents[case]
    written = export(agent, tmp_path / f"policy{SUFFIXES[format]}", format)
    assert written.check is not None
    assert written.check.ties == 0
    bf16 = agent.config.policy.precision == "bf16"
    assert written.notes == (("The CNN was trained in bf16 and computes in float32 in this file.",) if bf16 else ())
    assert (written.metadata["precision"], written.metadata["trained_in"]) == ("float32", "bf16" if bf16 else "float32")
    assert agent.policy.encoder.nets[0].dtype == (torch.bfloat16 if bf16 else torch.float32)
    obs = random_observations(agent.policy.encoder.space, 50, np.random.default_rng(3))
    outputs = _run(written.path, format, obs)
    if isinstance(agent.action_space, spaces.Box):
        np.testing.assert_allclose(outputs["action"], agent.predict(obs), atol=1e-5)
        return
    assert outputs["action"].dtype == np.int64
    probabilities = torch.softmax(torch.from_numpy(outputs["logits"]), -1)
    with torch.inference_mode():
        own = torch.softmax(agent.policy.act(torch.from_numpy(np.asarray(obs)), None)["params"], -1)
    # bf16 keeps three digits, so only the float32 runs are equal to rounding.
    torch.testing.assert_close(probabilities, own, rtol=0, atol=0.02 if bf16 else 1e-6)
    if not bf16:
        np.testing.assert_array_equal(outputs["action"], agent.predict(obs))


def _run(path: Path, format: str, obs: Any) -> dict[str, np.ndarray]:
    """The file's outputs, by the programs that read such files."""
    if format == "torch":
        batch = {k: torch.from_numpy(v) for k, v in obs.items()} if isinstance(obs, dict) else torch.from_numpy(obs)
        with zipfile.ZipFile(path) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(METADATA)]
            assert json.loads(archive.read(name))["precision"] == "float32"
        with torch.no_grad():
            return {name: value.numpy() for name, value in torch.export.load(path).module()(batch).items()}
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    inputs = session.get_inputs()
    assert inputs[0].type == "tensor(uint8)"
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, obs if isinstance(obs, dict) else {inputs[0].name: obs})))


def test_images_are_not_ejected(agents: dict[str, Agent]) -> None:
    """Neither a CNN that the config names nor one that `auto` takes."""
    for case in ("nature, bf16", "layers, shared trunk"):
        run = agents[case].run
        assert run is not None
        with pytest.raises(UsageError, match="reads images by a CNN, which an ejected script cannot follow yet"):
            eject(run)

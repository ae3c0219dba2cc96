"""Exported policies: run by onnxruntime and torch in a process that cannot import gymnast, they act as `predict` does."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch
from gymnasium import spaces
from launch import environment, gymnast

import gymnast as library
from gymnast.api import Agent
from gymnast.envs.actions import executed
from gymnast.errors import GymnastError, MissingPackageError
from gymnast.hub.export import METADATA, SUFFIXES, Format, PolicyProgram, export
from gymnast.hub.export_check import OBSERVATIONS, check_export, random_masks, random_observations
from gymnast.policies.activations import ACTIVATIONS

PPO: dict[str, Any] = {"env__n_envs": 4, "eval__episodes": 2, "algo__n_steps": 16, "algo__batch_size": 32}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Box observation, Discrete action": ("CartPole-v1:ppo", {}),
    "normaliser, bounded Box action": ("Pendulum-v1:ppo", {"policy__normalize_obs": True, "policy__log_std_init": 1.0}),
    "Discrete observation, masks": ("MaskedIdentity-v0:ppo", {"env__module": "small_envs"}),
    "MultiDiscrete, actions from 5, no critic": ("MultiIdentity-v0:reinforce", {"algo__baseline": "none"}),
    "Dict observation, normaliser, shared trunk": (
        "DictIdentity-v0:ppo",
        {"policy__normalize_obs": True, "policy__shared_trunk": True, "policy__activation": "gelu"},
    ),
    "layer norm, dropout, float64 action bounds": (
        "Walk-v0:ppo",
        {"policy__layer_norm": True, "policy__dropout": 0.2, "env__kwargs": {"actions": "box"}},
    ),
    "batch norm": ("CartPole-v1:ppo", {"policy__batch_norm": True}),
    "Discrete observation from 3, Discrete action from 7": ("Shifted-v0:ppo", {}),
    "Tuple of numbers that start elsewhere": ("Shifted-v0:ppo", {"env__kwargs": {"kind": "tuple"}}),
    "Dict action, squashed, std by state": (
        "PartsIdentity-v0:ppo",
        {"policy__squash_actions": True, "policy__state_dependent_std": True},
    ),
}


STARTS: dict[str, dict[str, Any]] = {
    "Dict observation, normaliser, shared trunk": {"half": 1},
    "Discrete observation from 3, Discrete action from 7": {"obs": 3},
    "Tuple of numbers that start elsewhere": {"obs": [3, -2]},
}
"""Where observations do not count from 0: a file takes what the env gives."""


def trained(case: str, root: Path) -> Agent:
    """An agent after a few updates, so that nothing is at its initial value."""
    reference, settings = CASES[case]
    sizes = PPO if reference.endswith("ppo") else {"env__n_envs": 4, "eval__episodes": 2}
    return library.load(
        library.train(reference, env_steps=192, runs_dir=root, policy__hidden=[16, 8], **{**sizes, **settings}).run.id,
        runs_dir=root,
    )


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agent]:
    """One trained agent per case."""
    root = tmp_path_factory.mktemp("runs")
    return {case: trained(case, root) for case in CASES}


@pytest.fixture(scope="module")
def outside(agents: dict[str, Agent], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Inputs, and what each exported file gave for them in a fresh process without gymnast."""
    folder = tmp_path_factory.mktemp("exported")
    rng = np.random.default_rng(7)
    inputs: dict[str, dict[str, np.ndarray]] = {}
    for number, (case, agent) in enumerate(agents.items()):
        obs = random_observations(agent.policy.encoder.space, OBSERVATIONS, rng)
        for format in SUFFIXES:
            written = export(agent, folder / f"{number}{SUFFIXES[format]}", format)  # type: ignore[arg-type]
            assert written.check is not None
            assert written.check.ties <= 2
        arrays = dict(obs) if isinstance(obs, dict) else {"obs": obs}
        for name, start in STARTS.get(case, {}).items():  # what the env gives
            arrays[name] = arrays[name] + start
        if "mask" in written.inputs:
            arrays["mask"] = random_masks(agent.action_space, OBSERVATIONS, rng)
        assert list(arrays) == written.inputs
        inputs[case] = arrays
        np.savez(folder / f"{number}.npz", **arrays)
    code = (Path(__file__).parent / "run_exported.py").read_text()
    bare = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(len(agents))],
        cwd=folder, env=bare, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = {}
    for number, case in enumerate(agents):
        outputs = {
            format: dict(np.load(folder / f"{number}.{format}.npz"))
            for format in (*SUFFIXES, *(f"{format}.one" for format in SUFFIXES))
        }
        found[case] = {"inputs": inputs[case], **outputs, "files": folder / str(number)}
    return found


@pytest.mark.parametrize("format", SUFFIXES)
@pytest.mark.parametrize("case", CASES)
def test_a_file_acts_as_predict(
    case: str, format: Format, agents: dict[str, Agent], outside: dict[str, dict[str, Any]]
) -> None:
    """All outputs on 1,000 observations, and for a batch of one."""
    agent, arrays, outputs = agents[case], dict(outside[case]["inputs"]), outside[case][format]
    mask = arrays.pop("mask", None)
    raw = dict(arrays)
    for name, start in STARTS.get(case, {}).items():
        arrays[name] = arrays[name] - start
    obs = arrays if isinstance(agent.policy.encoder.space, spaces.Dict) else arrays["obs"]
    batch = (
        {key: torch.from_numpy(part) for key, part in arrays.items()}
        if isinstance(obs, dict)
        else torch.from_numpy(obs)
    )
    masks = None if mask is None else torch.from_numpy(mask)
    with torch.inference_mode():
        acted = agent.policy.act(batch, None, masks)
        value = agent.policy.values(batch).numpy()
    params = acted["params"].numpy()
    chosen = executed(acted["action"].numpy(), agent.action_space)
    if isinstance(agent.action_space, spaces.Dict):
        np.testing.assert_array_equal(outputs["action.choice"], chosen["choice"])
        np.testing.assert_array_equal(outputs["action.rest.switches"], chosen["rest"]["switches"])
        np.testing.assert_allclose(outputs["action.rest.point"], chosen["rest"]["point"], atol=1e-5)
        np.testing.assert_allclose(outputs["params"], params, atol=1e-5)
    elif isinstance(agent.action_space, spaces.Box):
        np.testing.assert_allclose(outputs["action"], chosen, atol=1e-5)
        assert agent.action_space.contains(outputs["action"][0].astype(agent.action_space.dtype))
        np.testing.assert_allclose(np.hstack((outputs["mean"], outputs["log_std"])), params, atol=1e-5)
    else:
        np.testing.assert_array_equal(outputs["action"], chosen)
        assert outputs["action"].dtype == np.int64
        np.testing.assert_allclose(outputs["logits"], params, atol=1e-5)
    if mask is not None and isinstance(agent.action_space, spaces.Discrete):
        assert mask[np.arange(OBSERVATIONS), outputs["action"]].all()
    if agent.policy.has_critic:
        np.testing.assert_allclose(outputs["value"], value, atol=1e-4)
    else:
        assert "value" not in outputs
    for name, one in outside[case][f"{format}.one"].items():
        np.testing.assert_allclose(one, outputs[name][:1], atol=1e-5)
    if case in STARTS:
        np.testing.assert_array_equal(agent.predict(raw if isinstance(obs, dict) else raw["obs"]), outputs["action"])


def test_the_cases_are_hard_enough(agents: dict[str, Agent], outside: dict[str, dict[str, Any]]) -> None:
    """Actions differ from each other, some are clipped, some count from 5: a wrong export would be seen."""
    for case, found in outside.items():
        for name in found["onnx"]:
            if name.startswith("action"):
                assert len(np.unique(found["onnx"][name], axis=0)) > 1, (case, name)
    bound = outside["normaliser, bounded Box action"]["onnx"]
    assert (np.abs(bound["mean"]) < 2).any()
    norm = agents["normaliser, bounded Box action"].policy.encoder.norm
    assert norm is not None
    assert float(norm.count) > 0
    assert outside["MultiDiscrete, actions from 5, no critic"]["torch"]["action"][:, 1].min() >= 5
    assert outside["Discrete observation from 3, Discrete action from 7"]["onnx"]["action"].min() >= 7


def test_actions_beyond_the_bounds_are_clipped(agents: dict[str, Agent]) -> None:
    """As `predict` clips them."""
    agent = agents["layer norm, dropout, float64 action bounds"]
    program = PolicyProgram(agent.policy, agent.observation_space, agent.action_space)
    obs = np.array([[9.0, -9.0], [-9.0, 9.0]], np.float32)
    with torch.no_grad():
        agent.policy.actor.layers[-1].bias += torch.tensor([3.0, 0.0])
        out = program(torch.from_numpy(obs))
        agent_action = agent.predict(obs)
        agent.policy.actor.layers[-1].bias -= torch.tensor([3.0, 0.0])
    assert float(out["mean"].max()) > 1.5
    assert float(out["action"].max()) == 1.0
    np.testing.assert_allclose(out["action"].numpy(), agent_action, atol=1e-6)


def test_metadata_and_nothing_of_this_machine(agents: dict[str, Agent], outside: dict[str, dict[str, Any]]) -> None:
    """Where the policy came from is in both files; paths of the machine are in neither."""
    import onnxruntime

    case = "Discrete observation, masks"
    agent, files = agents[case], outside[case]["files"]
    session = onnxruntime.InferenceSession(files.with_suffix(".onnx"))
    told = session.get_modelmeta().custom_metadata_map
    assert [(part.name, part.shape) for part in session.get_inputs()] == [("obs", ["batch"]), ("mask", ["batch", 4])]
    assert session.get_outputs()[1].shape == ["batch", 4]
    with zipfile.ZipFile(files.with_suffix(".pt2")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert json.loads(next(raw for name, raw in members.items() if name.endswith(METADATA))) == told
    assert told["run"] == agent.run.id
    assert (told["config"], told["env"]) == ("MaskedIdentity-v0:ppo", "MaskedIdentity-v0")
    assert told["checkpoint"] == f"step={told['step']}"
    assert told["action_space"] == "Discrete(4)"
    here = str(Path(library.__file__).parent).encode()
    assert here not in files.with_suffix(".onnx").read_bytes()
    assert not [name for name, raw in members.items() if here in raw]


@pytest.mark.parametrize("format", SUFFIXES)
def test_the_check_sees_another_policy(format: Format, agents: dict[str, Agent], tmp_path: Path) -> None:
    """A file of other weights is refused, also where the actions happen to agree."""
    agent = agents["Box observation, Discrete action"]
    written = export(agent, tmp_path / "file", format, check=False)
    assert written.check is None
    raw = written.path.read_bytes()
    assert check_export(raw, format, agent, written.inputs, written.outputs).ties == 0
    bias = agent.policy.actor.layers[-1].bias
    with torch.no_grad():
        bias += 1e-3
        with pytest.raises(GymnastError, match=r"logits differs by up to 0\.001"):
            check_export(raw, format, agent, written.inputs, written.outputs)
        bias -= 1e-3


def with_activation(agent: Agent, plain: Any) -> Agent:
    """The agent with another activation; `forward` is what the fast path uses."""
    for chain in (agent.policy.actor, agent.policy.critic):
        assert chain is not None
        chain._activation = dataclasses.replace(ACTIVATIONS["relu"], plain=plain, forward=plain)
    return agent


def branching(x: torch.Tensor) -> torch.Tensor:
    """An activation that looks at its values."""
    return x if float(x.sum()) > 0 else -x


def test_operations_that_cannot_be_exported(tmp_path: Path) -> None:
    """A sentence that names the operation or the function; no file, not even an older one touched."""
    agent = with_activation(trained("Box observation, Discrete action", tmp_path / "runs"), torch.special.bessel_j0)
    path = tmp_path / "out" / "policy.onnx"
    with pytest.raises(GymnastError, match=r"bessel_j0.*--format torch"):
        export(agent, path)
    assert not path.parent.exists()
    assert export(agent, tmp_path / "policy.pt2", "torch").check is not None
    with_activation(agent, branching)
    before = (tmp_path / "policy.pt2").read_bytes()
    with pytest.raises(GymnastError, match=r"in branching, test_export\.py line \d+") as caught:
        export(agent, tmp_path / "policy.pt2", "torch")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "policy.pt2").read_bytes() == before


def test_missing_packages(agents: dict[str, Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact line to type; torch's own format needs none of them."""
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingPackageError, match=r'pip install "gymnast\[export\]"'):
        export(agents["Box observation, Discrete action"], tmp_path / "a.onnx")
    assert export(agents["Box observation, Discrete action"], tmp_path / "a.pt2", "torch", check=False).size > 0


def test_the_command(agents: dict[str, Agent], tmp_path: Path) -> None:
    """Says where the file is and that it was checked, and nothing else; the ending chooses the format."""
    run = agents["Discrete observation, masks"].run
    done = gymnast("export", run.id, "--runs-dir", run.root, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    path, names, check = done.stdout.splitlines()
    assert path.startswith(str(run.folder / "exports" / "step="))
    assert names == "inputs: obs, mask   outputs: action, logits, value"
    assert check.startswith("1,000 observations: actions equal, largest difference of logits ")
    done = gymnast("export", run.id, "-o", "p.pt2", "--no-verify", "--runs-dir", run.root, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert zipfile.is_zipfile(tmp_path / "p.pt2")
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.pt2"]

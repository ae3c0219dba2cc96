"""Damaged and hostile model files: one sentence each, and nothing in them is ever run."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_models import env_id, make, rewritten

import gymnast
from gymnast.errors import CheckpointError, GymnastError
from gymnast.hub import archives, sb3

ENV = env_id("Box", "Box")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that can be read."""
    path = tmp_path_factory.mktemp("good") / "model.zip"
    make("a2c", ENV, policy_kwargs={"activation_fn": torch.nn.ReLU, "net_arch": [4]}).save(path)
    gymnast.load(path, env=ENV)
    return path


def member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def refused(path: Path, words: str) -> None:
    """One sentence that names the file."""
    with pytest.raises(CheckpointError, match=words) as caught:
        gymnast.load(path, env=ENV)
    assert path.name in str(caught.value)


# ---- damaged -------------------------------------------------------------------------------------------------------


def test_not_a_model(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    path.write_bytes(b"not a zip at all")
    refused(path, "is not a zip file")
    path.write_bytes(b"")
    refused(path, "is not a zip file")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("holiday.jpg", b"x" * 1000)
    refused(path, "is not a Stable-Baselines3 model: it has no 'data' inside")
    refused(rewritten(good, path, {"policy.pth": None}), "it has no 'policy.pth' inside")
    refused(rewritten(good, path, {"policy.pth": b"text"}), "is not a zip file")


def test_cut_off(good: Path, tmp_path: Path) -> None:
    """A zip's directory is at its end, so every cut loses it; the end of an inner zip must not pass for it."""
    whole = good.read_bytes()
    path = tmp_path / "cut.zip"
    inner_end = whole.index(b"policy.pth") + len(member(good, "policy.pth")) + len(b"policy.pth")
    for length in (10, len(whole) // 3, len(whole) // 2, inner_end, inner_end + 1, len(whole) - 30, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(path, "only a part of")


def test_what_is_not_needed_may_be_missing(good: Path, tmp_path: Path) -> None:
    names = ("policy.optimizer.pth", "pytorch_variables.pth", "system_info.txt", "_stable_baselines3_version")
    gymnast.load(rewritten(good, tmp_path / "small.zip", dict.fromkeys(names)), env=ENV)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: "{", "its 'data' is not JSON"),
        (lambda data: "[1]", "not a JSON object"),
        (lambda data: "[" * 100_000, "its 'data' is not JSON"),
        (lambda data: "\xff", "its 'data' is not JSON"),
        (lambda data: {}, "a model of an unknown algorithm"),
        (lambda data: {**data, "clip_range_": 1, "cg_max_steps": 15}, "is a TRPO model"),
        (lambda data: {k: v for k, v in data.items() if k != "action_space"}, "has no 'action_space'"),
        (lambda data: {**data, "observation_space": 5}, "a space of kind a int"),
        (lambda data: {**data, "observation_space": {":serialized:": "§"}}, "is not base64"),
        (lambda data: {**data, "observation_space": {":serialized:": 5}}, "is not base64"),
        (lambda data: {**data, "observation_space": {":serialized:": "AAAA"}}, r"\(observation_space\) "),
        (lambda data: {**data, "observation_space": data["action_space"]}, "made for observations"),
        (lambda data: {**data, "action_space": data["observation_space"]}, "made for actions"),
        (lambda data: {**data, "policy_class": "MlpPolicy"}, "its policy_class is a str"),
        (lambda data: {**data, "policy_class": data["rollout_buffer_class"]}, "policy of class stable_baselines3"),
        (lambda data: {**data, "policy_kwargs": [1]}, "where a mapping should be"),
        (lambda data: {**data, "policy_kwargs": {"new_thing": 1}}, "policy_kwargs 'new_thing'"),
        (lambda data: {**data, "policy_kwargs": {"activation_fn": "tanh"}}, "the activation a str"),
    ],
)
def test_broken_data(good: Path, tmp_path: Path, change: Callable[[Any], Any], words: str) -> None:
    data = change(json.loads(member(good, "data")))
    raw = data.encode("latin1") if isinstance(data, str) else json.dumps(data).encode()
    refused(rewritten(good, tmp_path / "bad.zip", {"data": raw}), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action_net.weight": None}, "has no layer 'action_net'"),
        ({"action_net.bias": None}, "'action_net.weight' does not fit"),
        ({"action_net.weight": torch.zeros(3, 9)}, "'action_net.weight' does not fit"),
        ({"action_net.weight": torch.zeros(2, 4), "action_net.bias": torch.zeros(2)}, "its own action space"),
        ({"value_net.weight": torch.zeros(2, 4), "value_net.bias": torch.zeros(2)}, "its own action space"),
        ({"mlp_extractor.policy_net.0.weight": torch.zeros(4, 9)}, "its own observation space"),
        ({"mlp_extractor.policy_net.0.weight": torch.zeros(4)}, "does not fit the others"),
        ({"mlp_extractor.policy_net.0.weight": None}, "a tensor 'mlp_extractor.policy_net.0.bias' that its policy"),
        (
            {"mlp_extractor.policy_net.1.weight": torch.eye(4), "mlp_extractor.policy_net.1.bias": torch.zeros(4)},
            "not fit",
        ),
        ({"value_net.bias": torch.tensor([torch.nan])}, "NaN or infinity in 'value_net.bias'"),
        ({"log_std": None}, "no 'log_std'"),
        ({"log_std": torch.zeros(4, 3)}, "no 'log_std'"),
        ({"features_extractor.linear.weight": torch.zeros(1)}, "a tensor 'features_extractor.linear.weight'"),
        ({"lstm_actor.weight_ih_l0": torch.zeros(1)}, "a tensor 'lstm_actor.weight_ih_l0'"),
    ],
    ids=str,
)
def test_tensors_that_do_not_fit(good: Path, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    state = torch.load(io.BytesIO(member(good, "policy.pth")), weights_only=True)
    state = {name: tensor for name, tensor in (state | change).items() if tensor is not None}
    buffer = io.BytesIO()
    torch.save(state, buffer)
    refused(rewritten(good, tmp_path / "bad.zip", {"policy.pth": buffer.getvalue()}), words)


def test_bombs(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are checked before anything is unpacked."""
    path = tmp_path / "bomb.zip"
    rewritten(good, path, {})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(4 << 20))
    gymnast.load(path, env=ENV)
    monkeypatch.setattr(archives, "MAX_TOTAL", 3 << 20)
    refused(path, "larger than any model")
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MAX_MEMBERS", 6)
    refused(path, "larger than any model")


def test_members_in_unusual_compression(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        for name in ("data", "policy.pth"):
            archive.writestr(name, member(good, name))
    refused(path, "unusual compression")


# ---- hostile -------------------------------------------------------------------------------------------------------


class Evil:
    """Runs a shell command when unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._canary}",)


def evil_tensors(good: Path, content: bytes) -> bytes:
    """policy.pth with another data.pkl."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(member(good, "policy.pth"))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name.endswith("/data.pkl") else old.read(name))
    return buffer.getvalue()


@pytest.mark.parametrize("whole", [True, False])
def test_hostile_tensors(good: Path, tmp_path: Path, whole: bool) -> None:
    canary = tmp_path / "canary"
    content = pickle.dumps(Evil(canary) if whole else {"action_net.weight": Evil(canary)}, 2)
    refused(rewritten(good, tmp_path / "evil.zip", {"policy.pth": evil_tensors(good, content)}), r"holds \w+\.system")
    assert not canary.exists()
    pickle.loads(content)
    assert canary.exists(), "the file would not have done anything"


@pytest.mark.parametrize(
    ("field", "needed"),
    [
        ("policy_class", True),
        ("observation_space", True),
        ("action_space", True),
        ("policy_kwargs", True),
        ("lr_schedule", False),
        ("_last_obs", False),
        ("ep_info_buffer", False),
    ],
)
def test_hostile_fields(good: Path, tmp_path: Path, field: str, needed: bool) -> None:
    canary = tmp_path / "canary"
    content = pickle.dumps(Evil(canary))
    data = json.loads(member(good, "data"))
    data[field] = {":type:": "<class 'dict'>", ":serialized:": base64.b64encode(content).decode()}
    path = rewritten(good, tmp_path / "evil.zip", {"data": json.dumps(data).encode()})
    if needed:
        refused(path, r"\.system")
    else:
        gymnast.load(path, env=ENV)
    assert not canary.exists()
    pickle.loads(content)
    assert canary.exists(), "the file would not have done anything"


def test_a_real_model_is_read_without_an_unpickler(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was unpickled")

    for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
        monkeypatch.setattr(module, name, refuse)
    gymnast.load(good, env=ENV)


# ---- fuzzing -------------------------------------------------------------------------------------------------------


def scrambled(content: bytes, data: Any) -> bytes:
    """A few bytes changed."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    return bytes(changed)


def loaded_or_refused(path: Path) -> None:
    try:
        gymnast.load(path, env=ENV)
    except GymnastError as error:
        assert path.name in str(error)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_of_the_file(good: Path, data: Any) -> None:
    path = good.with_name("fuzzed.zip")
    path.write_bytes(scrambled(good.read_bytes(), data))
    try:
        sb3.read_model(path)
    except CheckpointError as error:
        assert path.name in str(error)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_changed_bytes_of_the_pickles_and_the_json(good: Path, data: Any) -> None:
    """With checksums that are right, as a forger would have them."""
    path = good.with_name("forged.zip")
    place = data.draw(st.sampled_from(["policy.pth", "data", "observation_space", "policy_kwargs", "data.pkl"]))
    if place == "data.pkl":
        with zipfile.ZipFile(io.BytesIO(member(good, "policy.pth"))) as inner:
            (name,) = [name for name in inner.namelist() if name.endswith("data.pkl")]
            changed = {"policy.pth": evil_tensors(good, scrambled(inner.read(name), data))}
    elif place in ("policy.pth", "data"):
        changed = {place: scrambled(member(good, place), data)}
    else:
        fields = json.loads(member(good, "data"))
        raw = scrambled(base64.b64decode(fields[place][":serialized:"]), data)
        fields[place][":serialized:"] = base64.b64encode(raw).decode()
        changed = {"data": json.dumps(fields).encode()}
    loaded_or_refused(rewritten(good, path, changed))

"""Tensors of torch files, without torch's own reader; whatever does not fit its bytes is refused."""

from __future__ import annotations

import collections
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from gymnast.errors import CheckpointError
from gymnast.hub.torch_files import read_tensors


def saved(value: Any) -> bytes:
    """What torch.save writes."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def changed(data: bytes, **members: bytes | None) -> bytes:
    """A torch file with members replaced or left out (dots in names as __)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = members.get(name.partition("/")[2].replace(".", "__").replace("/", "_"), old.read(name))
            if content is not None:
                new.writestr(name, content)
    return buffer.getvalue()


def test_all_kinds_of_tensors() -> None:
    """Types, views, transposes, offsets, scalars and tensors that share bytes."""
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    tensors = {
        "plain": base,
        "transposed": base.t(),
        "part": base[1:3, 2:5],
        "strided": base[::2, ::3],
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "half": torch.tensor([1.0, -2.0], dtype=torch.float16),
        "bfloat": torch.tensor([1.0, -2.0], dtype=torch.bfloat16),
        "long": torch.tensor([1, 2]),
        "parameter": torch.nn.Linear(3, 2).weight.detach(),
    }
    for container in (tensors, collections.OrderedDict(tensors), torch.nn.Linear(2, 3).state_dict()):
        found = read_tensors(saved(container), "a test")
        assert list(found) == list(container)
        for name, tensor in container.items():
            assert found[name].dtype == tensor.dtype
            assert torch.equal(found[name], tensor)


@pytest.mark.parametrize(
    "value",
    [
        {"a": torch.tensor([True])},
        {"a": 1},
        {"a": torch.nn.Parameter(torch.zeros(2))},
        {"a": torch.empty(0)},
        {1: torch.zeros(1)},
        [torch.zeros(1)],
        "text",
    ],
    ids=str,
)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(CheckpointError, match="a test "):
        read_tensors(saved(value), "a test")


class Storage:
    """Pickles as a persistent id."""

    def __init__(self, *identity: Any) -> None:
        self.identity = identity


class Rebuild:
    """Pickles as the call that makes a tensor."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __reduce__(self) -> Any:
        return torch._utils._rebuild_tensor_v2, self.args


class TorchPickler(pickle.Pickler):
    """Writes `data.pkl` by hand."""

    def persistent_id(self, obj: Any) -> Any:
        return obj.identity if isinstance(obj, Storage) else None


def described(*args: Any) -> bytes:
    """A `data.pkl` with one tensor."""
    buffer = io.BytesIO()
    TorchPickler(buffer, 2).dump({"a": Rebuild(*args)})
    return buffer.getvalue()


FLOATS = ("storage", torch.FloatStorage, "0", "cpu", 6)


def test_the_hand_written_file_is_a_real_one() -> None:
    """Else the refusals below would prove nothing."""
    data = saved({"a": torch.arange(6.0)})
    found = read_tensors(changed(data, data__pkl=described(Storage(*FLOATS), 1, (2, 2), (2, 1), False, {})), "a test")
    assert found["a"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "args",
    [
        (Storage(*FLOATS), 0, (7,), (1,), False, {}),  # beyond the end
        (Storage(*FLOATS), 5, (2,), (1,), False, {}),
        (Storage(*FLOATS), 0, (2, 3), (4, 1), False, {}),
        (Storage(*FLOATS), -1, (2,), (1,), False, {}),
        (Storage(*FLOATS), 0, (2,), (-1,), False, {}),
        (Storage(*FLOATS), 0, (10**9, 10**9), (0, 0), False, {}),  # a few bytes that pose as many
        (Storage(*FLOATS), 0, (-2, -3), (1, 1), False, {}),
        (Storage(*FLOATS), 0, (2,), (1, 1), False, {}),
        (Storage(*FLOATS), 0, (2.0,), (1,), False, {}),
        (Storage(*FLOATS), 0, [2], [1], False, {}),
        (Storage(*FLOATS), 0, (1,) * 70, (1,) * 70, False, {}),
        (Storage(*FLOATS), 0, (2,), (1,)),
        (Storage("storage", torch.FloatStorage, "0", "cpu", 7), 0, (7,), (1,), False, {}),
        (Storage("storage", torch.DoubleStorage, "0", "cpu", 6), 0, (6,), (1,), False, {}),
        (Storage("storage", torch.FloatStorage, "9", "cpu", 6), 0, (6,), (1,), False, {}),
        (Storage("storage", torch.FloatStorage, "../data.pkl", "cpu", 6), 0, (6,), (1,), False, {}),
        (Storage("storage", torch.FloatStorage, "0", "cpu", -6), 0, (6,), (1,), False, {}),
        (Storage("storage", os.system, "0", "cpu", 6), 0, (6,), (1,), False, {}),
        (Storage("other", torch.FloatStorage, "0", "cpu", 6), 0, (6,), (1,), False, {}),
        ("text", 0, (6,), (1,), False, {}),
    ],
)
def test_tensors_that_do_not_fit_their_bytes(args: tuple[Any, ...]) -> None:
    data = saved({"a": torch.arange(6.0)})
    with pytest.raises(CheckpointError, match="a test "):
        read_tensors(changed(data, data__pkl=described(*args)), "a test")


def test_other_files() -> None:
    data = saved({"a": torch.arange(6.0)})
    with pytest.raises(CheckpointError, match="big-endian"):
        read_tensors(changed(data, byteorder=b"big"), "a test")
    with pytest.raises(CheckpointError, match=r"not a file that torch\.save wrote"):
        read_tensors(changed(data, data__pkl=None), "a test")
    with pytest.raises(CheckpointError, match="data/0 cannot be unpacked"):
        read_tensors(changed(data, data_0=None), "a test")
    with pytest.raises(CheckpointError, match="fewer than it says"):
        read_tensors(changed(data, data_0=b"1234"), "a test")
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(2)}, buffer, _use_new_zipfile_serialization=False)
    with pytest.raises(CheckpointError, match="not a zip file"):
        read_tensors(buffer.getvalue(), "a test")


def test_it_needs_no_reader_of_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = saved({"a": torch.arange(6.0)})

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was unpickled")

    for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
        monkeypatch.setattr(module, name, refuse)
    assert read_tensors(data, "a test")["a"].tolist() == [0, 1, 2, 3, 4, 5]

"""Pickles are read as data: equal to what unpickling gives for plain values, and nothing is ever run."""

from __future__ import annotations

import ast
import collections
import os
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymnast import hub
from gymnast.errors import CheckpointError
from gymnast.hub.arrays import array, number
from gymnast.hub.nodes import Node, attributes, mapping
from gymnast.hub.pickles import MAX_MARKS, MAX_OPCODES, read

PROTOCOLS = (2, 3, 4, 5)
SCALARS = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from(PROTOCOLS))
def test_plain_values(value: Any, protocol: int) -> None:
    found = read(pickle.dumps(value, protocol), "a test")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("protocol", [4, 5])
def test_bytes_and_sets(protocol: int) -> None:
    value = [b"ab", b"x" * 300, {1, "two", None}, frozenset({2.5}), bytearray(b"abc")][: None if protocol == 5 else -1]
    assert read(pickle.dumps(value, protocol), "a test") == value


def test_values_that_contain_themselves() -> None:
    value: list[Any] = [1]
    value.append(value)
    found = read(pickle.dumps(value), "a test")
    assert found[0] == 1
    assert found[1] is found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_mappings_and_objects(protocol: int) -> None:
    ordered = collections.OrderedDict(b=1, a=[2])
    assert list(mapping(read(pickle.dumps(ordered, protocol), "a test"), "a test").items()) == [("b", 1), ("a", [2])]
    node = read(pickle.dumps(Thing(), protocol), "a test")
    assert node.path == f"{Thing.__module__}.Thing"
    assert attributes(node, "a test", "a thing") == {"colour": "red", "inner": [1.5]}


class Thing:
    """An ordinary object."""

    def __init__(self) -> None:
        self.colour, self.inner = "red", [1.5]


# ---- numbers of numpy ----------------------------------------------------------------------------------------------

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    np.arange(5, dtype=">i4"),
    np.array([True, False]),
    np.array(2.5),
    np.arange(10, dtype=np.int64)[::2],
]


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype.str}{value.shape}")
def test_arrays(value: np.ndarray, protocol: int) -> None:
    for spelling in (pickle.dumps(value, protocol), _as_numpy_1(pickle.dumps(value, protocol))):
        found = array(read(spelling, "a test"), "a test")
        assert found.dtype == value.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", [np.float32(1.5), np.int64(-3), np.bool_(True), np.float64("nan"), 7, 2.5])
def test_numbers(value: Any, protocol: int) -> None:
    assert str(number(read(pickle.dumps(value, protocol), "a test"), "a test")) == str(
        getattr(value, "item", lambda: value)()
    )


def _as_numpy_1(data: bytes) -> bytes:
    """The same pickle with the module names of numpy 1."""
    plain = pickle.loads(data)
    for new, old in (
        (b"numpy._core.multiarray", b"numpy.core.multiarray"),
        (b"numpy._core.numeric", b"numpy.core.numeric"),
    ):
        data = data.replace(bytes([len(new)]) + new, bytes([len(old)]) + old).replace(b"c" + new, b"c" + old)
    if data[2:3] == pickle.FRAME:  # frames know their length
        data = data[:3] + struct.pack("<Q", len(data) - 11) + data[11:]
    assert b"_core" not in data
    np.testing.assert_array_equal(pickle.loads(data), plain)  # numpy still knows its old names
    return data


@pytest.mark.parametrize("value", [np.array([{}], object), np.array(["text"]), np.array([1j]), np.zeros(2, "f4,i4")])
def test_arrays_of_other_things_are_refused(value: np.ndarray) -> None:
    with pytest.raises(CheckpointError, match="a test holds"):
        array(read(pickle.dumps(value), "a test"), "a test")


def test_an_array_cannot_be_larger_than_its_bytes() -> None:
    data = pickle.dumps(np.zeros(3, np.uint8), 4)
    assert data.count(b"K\x03\x85") == 1
    with pytest.raises(CheckpointError, match="shape does not fit"):
        array(read(data.replace(b"K\x03\x85", b"K\x04\x85"), "a test"), "a test")


# ---- nothing is run ------------------------------------------------------------------------------------------------


class Evil:
    """Runs a shell command when unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._canary}",)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_is_not_made(protocol: int, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    data = pickle.dumps([Evil(canary)], protocol)
    (found,) = read(data, "a test")
    assert isinstance(found, Node)
    assert found.name == "system"
    assert found.args == (f"touch {canary}",)
    assert not canary.exists()
    pickle.loads(data)
    assert canary.exists(), "the pickle would not have done anything"


def test_no_module_is_imported() -> None:
    before = set(sys.modules)
    node = read(b"\x80\x02cantigravity\nfly\n)R.", "a test")
    assert (node.module, node.name, node.args) == ("antigravity", "fly", ())
    assert set(sys.modules) == before


FORBIDDEN = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "copyreg"}
CALLS = {"eval", "exec", "__import__", "import_module"}


@pytest.mark.parametrize("path", sorted(Path(hub.__file__).parent.rglob("*.py")), ids=lambda path: path.name)
def test_the_hub_knows_no_unpickler(path: Path) -> None:
    """Neither an import of one nor `torch.load`, `np.load` and friends, not even with weights_only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            assert not FORBIDDEN & {module.split(".")[0] for module in modules}
            assert not (isinstance(node, ast.ImportFrom) and modules[0] in ("torch", "numpy") and "load" in names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert not (node.value.id in ("torch", "np", "numpy", "jit", "serialization") and node.attr == "load")
            assert node.value.id not in FORBIDDEN
        assert not (isinstance(node, ast.Name) and node.id in CALLS)
        assert not (isinstance(node, ast.Attribute) and node.attr in {"import_module", "Unpickler"})


# ---- damaged and hostile files ---------------------------------------------------------------------------------------


def test_cut_anywhere() -> None:
    data = pickle.dumps({"a": [np.arange(3), 1.5, "text"], "b": (1, 2, 3, 4)}, 4)
    for length in range(len(data)):
        with pytest.raises(CheckpointError, match="a test"):
            read(data[:length], "a test")


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_changed_bytes_give_a_value_or_a_sentence(data: Any) -> None:
    changed = bytearray(pickle.dumps([np.arange(3), Thing(), {"a": {1, 2}}, collections.OrderedDict(x=1)], 4))
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(changed), "a test")
    except CheckpointError as error:
        assert str(error).startswith("a test ")


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_sentence(data: bytes) -> None:
    try:
        read(b"\x80\x04" + data + b".", "a test")
    except CheckpointError as error:
        assert str(error).startswith("a test ")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a whole pickle"),
        (b"PK\x03\x04", "a test"),
        (b"\x80\x06N.", "protocol 6"),
        (b"\x80\x04I12\n.", "instruction INT"),
        (b"\x80\x02(ios\nsystem\n.", "instruction INST"),
        (b"\x80\x02\x82\x01.", "instruction EXT1"),
        (b"\x80\x05\x97.", "instruction NEXT_BUFFER"),
        (b"\x80\x04N", "not a whole pickle"),
        (b"\x80\x04NN.", "ends too early"),
        (b"\x80\x04.", "ends too early"),
        (b"\x80\x04K\x01)R.", "not a function"),
        (b"\x80\x04K\x01}b.", "has none"),
        (b"\x80\x04K\x01K\x02a.", "not a list"),
        (b"\x80\x04K\x01K\x02K\x03s.", "not a mapping"),
        (b"\x80\x04}]K\x01s.", "a list as a key"),
        (b"\x80\x04}N\x85K\x01s.", "a tuple as a key"),
        (b"\x80\x04(0.", "a test"),
        (b"\x80\x04h\x05.", "a test"),
        (b"\x80\x04K\x01K\x02\x93.", "not text"),
        (b"\x80\x04\x8b" + struct.pack("<i", 600) + b"\x7f" * 600 + b".", "whole number"),
        (b"\x80\x04" + b"(" * (MAX_MARKS + 1) + b".", "nested"),
        (b"\x80\x04" + b"N0" * (MAX_OPCODES // 2 + 1) + b"N.", "instructions"),
    ],
)
def test_refusals(data: bytes, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        read(data, "a test")


DEEP = 70_000
NESTS = {
    "tuples": b"N" + b"\x85" * DEEP,
    "lists": b"]" * DEEP + b"a" * (DEEP - 1),
    "dicts": b"}" + b"K\x01}" * DEEP + b"s" * DEEP,
    "calls": b"cos\nsystem\n\x940" + b"h\x00" * DEEP + b"N" + b"\x85R" * DEEP,
}


@pytest.mark.parametrize("kind", NESTS)
def test_deep_nests_do_no_harm(kind: str) -> None:
    """Built and thrown away without recursion."""
    read(b"\x80\x04" + NESTS[kind] + b".", "a test")


def test_shared_parts_are_not_copied() -> None:
    """Forty doublings would be a trillion elements."""
    doublings = b"".join(b"h%ch%c\x86\x94" % (i, i) for i in range(40))
    found = read(b"\x80\x04(N\x94" + doublings + b"t.", "a test")
    assert len(found) == 41
    assert found[-1][0] is found[-1][1] is found[-2]

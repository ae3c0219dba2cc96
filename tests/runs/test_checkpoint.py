"""Checkpoints: exact, atomic, and never silently wrong."""

import hashlib
import json
import math
import random
import resource
import shutil
import subprocess
import sys
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from launch import environment
from saved import mark_best, save

from gymnast.errors import CheckpointError
from gymnast.runs import checkpoint as ck
from gymnast.runs import durable
from gymnast.runs.checkpoint import load, load_latest, prune, read_manifest, read_pointer, steps
from gymnast.runs.manifest import SEAL, sealed

FILES = (ck.POLICY, ck.STATE, ck.MANIFEST)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    return tmp_path


def put(run, step, value=None, **kwargs):
    value = step if value is None else value
    policy = {"weight": torch.full((3, 2), float(value))}
    state = {"moment": torch.arange(4) + value, "value": value}
    return save(run, step, policy, state, {"eval/return_mean": float(value)}, {"env_steps": step}, **kwargs)


def names(run):
    return sorted(entry.name for entry in (run / "checkpoints").iterdir())


def same(a, b):
    """Equal to the bit, types included."""
    if isinstance(b, dict):
        assert type(a) is dict and list(a) == list(b)
        for key in b:
            same(a[key], b[key])
    elif isinstance(b, list | tuple):
        assert type(a) is type(b) and len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
    elif isinstance(b, torch.Tensor):
        assert type(a) is torch.Tensor and a.dtype == b.dtype and a.shape == b.shape
        raw = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
        assert torch.equal(*raw)
    elif isinstance(b, np.ndarray | np.generic):
        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    else:
        assert type(a) is type(b)
        assert a == b or (math.isnan(a) and math.isnan(b))
        assert repr(a) == repr(b), "the sign of zero"


# --- round trip ------------------------------------------------------------------------------------------------

TORCH_TYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.complex128),
    torch.float8_e4m3fn,
]
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
numpy_types = st.one_of(
    *(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes()),
    *(hnp.complex_number_dtypes(), hnp.unicode_string_dtypes(max_len=4), hnp.datetime64_dtypes()),
)


@st.composite
def torch_tensors(draw):
    dtype, shape = draw(st.sampled_from(TORCH_TYPES)), draw(shapes)
    if dtype is torch.bool:
        return torch.tensor(draw(hnp.arrays(bool, shape)))
    size = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
    raw = draw(st.binary(min_size=size, max_size=size))
    flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
    return flat.view(dtype).reshape(shape)


arrays = st.tuples(numpy_types, shapes).flatmap(lambda pair: hnp.arrays(*pair))
scalars = arrays.filter(lambda array: array.ndim == 0).map(lambda array: array[()])
integers = st.one_of(st.integers(), st.integers(-(2**130), 2**130), st.sampled_from([2**53, -(2**53), 2**127]))
leaves = st.one_of(
    *(st.none(), st.booleans(), st.text(), st.floats(), integers, st.binary(max_size=9)),
    *(torch_tensors(), arrays, scalars, st.sampled_from(["\ud800", "", "__metadata__"])),
)
keys = st.one_of(st.text(max_size=4), st.sampled_from(["$tensor", "$dict", "$float", "__metadata__", "a/b", "a", "b"]))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(keys, inner, max_size=4),
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=12,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(tree=trees)
def test_any_tree_survives(run, tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = save(run, 1, {"w": torch.ones(1)}, tree, {}, {}, sync=False)
        same(load(folder).state, tree)
    json.loads((folder / ck.MANIFEST).read_text(), parse_constant=pytest.fail)


def test_generators_go_on_where_they_were(run):
    mersenne, philox, own = np.random.RandomState(3), np.random.Generator(np.random.Philox(5)), torch.Generator()
    pcg = np.random.default_rng(1)
    state = {
        "mersenne": mersenne.get_state(legacy=False),
        "philox": philox.bit_generator.state,
        "pcg": pcg.bit_generator.state,
        "torch": own.get_state(),
        "python": random.Random(8).getstate(),
    }
    assert state["pcg"]["state"]["state"] > 2**64
    back = load(save(run, 0, {}, state, {}, {})).state
    same(back, state)
    expected = pcg.random(5)
    pcg.bit_generator.state = back["pcg"]
    assert np.array_equal(pcg.random(5), expected)
    twin = torch.Generator()
    twin.set_state(back["torch"])
    assert torch.equal(torch.rand(4, generator=twin), torch.rand(4, generator=own))


def test_policy_layouts_and_shared_memory(run):
    flat = torch.arange(12.0)
    policy = OrderedDict(
        image=torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        first=flat[:6].view(2, 3),
        second=flat[6:],
        overlap=flat[3:9],
        tied=flat,
        turned=torch.randn(3, 5).t(),
        parameter=torch.nn.Parameter(torch.randn(2)),
        expanded=torch.ones(1).expand(4),
    )
    with torch.inference_mode():
        policy["inference"] = torch.ones(2)
    back = load(save(run, 5, policy, {"twice": [flat, flat], "fortran": np.asfortranarray(np.eye(3))}, {}, {}))
    same(back.policy, {name: value.contiguous().detach() for name, value in policy.items()})
    same(back.state, {"twice": [flat, flat], "fortran": np.eye(3)})
    back.policy["tied"].add_(1)
    assert back.policy["first"][0, 0] == 0, "loaded tensors own their memory"


def test_loaded_tensors_can_be_trained_and_written(run):
    folder = save(run, 1, {"w": torch.ones(2)}, {"a": np.zeros(3), "o": np.zeros(2, ">f4")}, {}, {})
    with torch.inference_mode():
        back = load(folder)
    weight = back.policy["w"].requires_grad_()
    (weight * weight).sum().backward()
    assert torch.equal(weight.grad, torch.full((2,), 2.0))
    back.state["a"][0] = back.state["o"][0] = 1


def test_read_only_and_strided_arrays(run):
    array = np.arange(10.0)
    array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = load(save(run, 1, {}, [array, array[::-2], np.broadcast_to(np.int8(3), (2, 2))], {}, {})).state
    same(back, [array, array[::-2], np.full((2, 2), 3, np.int8)])


def test_manifest_is_readable_without_the_tensors(run):
    metrics = {"eval/return_mean": np.float32(1.5), "loss": float("nan"), "kl": torch.tensor(0.25), "absent": None}
    folder = save(run, 9, {"w": torch.ones(1)}, {}, metrics, {"env_steps": np.int64(9), "updates": 3})
    manifest = read_manifest(folder)
    assert math.isnan(manifest.metrics.pop("loss"))
    assert manifest.metrics == {"eval/return_mean": 1.5, "kl": 0.25, "absent": None}
    assert manifest.counters == {"env_steps": 9, "updates": 3} and manifest.step == 9
    assert set(manifest.versions) == {"gymnast", "torch", "numpy", "gymnasium", "python", "cpu"}
    assert manifest.files[ck.POLICY]["size"] == (folder / ck.POLICY).stat().st_size
    (folder / ck.STATE).unlink()
    only_policy = load(folder, with_state=False)
    assert list(only_policy.policy) == ["w"] and only_policy.state is None


class Odd:
    pass


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"optimizer": {0: 1}}, r"'state/optimizer'.*key 0 is a int.*str\(key\)"),
        ({"a": [1, {None: 1}]}, r"'state/a/1'.*NoneType"),
        ({"a": {1, 2}}, r"'state/a'.*builtins\.set"),
        ({"a": Odd()}, r"'state/a'.*Odd"),
        ({"a": np.array([object()])}, r"'state/a'.*ndarray"),
        ({"a": np.zeros(2, [("x", int)])}, "'state/a'"),
        ({"a": np.ma.zeros(2)}, "'state/a'.*MaskedArray"),
        ({"a": torch.eye(3).to_sparse()}, "'state/a'"),
        ({"a": torch.empty(2, device="meta")}, "'state/a'"),
        ({"a": torch.Size([1])}, "'state/a'"),
    ],
)
def test_what_cannot_be_saved_is_named_and_leaves_nothing(run, state, message):
    with pytest.raises(CheckpointError, match=message):
        save(run, 1, {}, state, {}, {})
    assert names(run) == []


def test_other_refusals(run):
    with pytest.raises(CheckpointError, match="'metrics/x'"):
        save(run, 1, {}, {}, {"x": torch.ones(2)}, {})
    with pytest.raises(CheckpointError, match=r"policy tensor 'w'.*ndarray"):
        save(run, 1, {"w": np.ones(2)}, {}, {}, {})
    with pytest.raises(CheckpointError, match="0 or more"):
        put(run, -1)
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        load_latest(run)
    with pytest.raises(CheckpointError, match="no checkpoint '"):
        load(run / "checkpoints" / "step=1")


# --- damage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_bit_is_found(run, name):
    folder = put(run, 1)
    path = folder / name
    whole = path.read_bytes()
    generator = random.Random(name)
    offsets = {0, len(whole) - 1, len(whole) - 70, *(generator.randrange(len(whole)) for _ in range(150))}
    for offset in offsets:
        broken = bytearray(whole)
        broken[offset] ^= 1 << generator.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match=name):
            load(folder)
    path.write_bytes(whole)
    load(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["truncated", "empty", "zeros", "missing", "longer"])
def test_damaged_files_are_named_and_skipped(run, name, damage):
    put(run, 100)
    path = put(run, 200) / name
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        shorter = {
            "truncated": whole[: len(whole) // 2],
            "empty": b"",
            "zeros": bytes(len(whole)),
            "longer": whole + b" ",
        }
        path.write_bytes(shorter[damage])
    with pytest.raises(CheckpointError, match=name):
        load(path.parent)
    good, skipped = load_latest(run)
    assert good.manifest.step == 100 and good.state["value"] == 100
    assert len(skipped) == 1 and "step=200" in skipped[0] and name in skipped[0]


def test_all_damaged(run):
    for step in (1, 2):
        (put(run, step) / ck.STATE).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no whole checkpoint.*step=2.*step=1"):
        load_latest(run)


def test_a_file_of_another_checkpoint_does_not_pass(run):
    shutil.copy(put(run, 1) / ck.POLICY, put(run, 2) / ck.POLICY)
    with pytest.raises(CheckpointError, match=ck.POLICY):
        load(run / "checkpoints" / "step=2")


def test_a_hostile_manifest_with_a_true_checksum_is_an_error_not_a_crash(run):
    folder = put(run, 1)
    content = json.loads((folder / ck.MANIFEST).read_text())
    del content["sha256"]
    hostile = [
        {"files": []},
        {"files": {ck.POLICY: 5}},
        {"files": {}},
        {"policy": ["other"]},
        {"policy": 5},
        {"metrics": {"a": {"$tensor": "x"}}},
        {"format": 99},
        {"format": None},
        {"state": {"$tensor": "nowhere"}},
        {"state": {"$tensor": ["x"]}},
        {"state": {"$dict": 5}},
        {"state": {"$float": "x"}},
        {"state": {"$tensor": "state/moment", "dtype": "load"}},
        {"state": {"$tensor": "state/moment", "dtype": "O", "kind": "numpy", "shape": [1]}},
        {"state": {"$tensor": "state/moment", "dtype": "<f8", "kind": "numpy", "shape": [10**12]}},
        {"state": {"$tensor": "state/moment", "dtype": "<f8", "kind": "numpy", "shape": "x"}},
    ]
    for change in hostile:
        (folder / ck.MANIFEST).write_bytes(sealed(**content | change))
        with pytest.raises(CheckpointError):
            pytest.fail(f"{change} was loaded as {load(folder)}")
    deep = sealed(**content | {"state": 0}).replace(b'"state": 0', b'"state": ' + b"[" * 10**5 + b"]" * 10**5)
    body = deep[: -len(SEAL % ("0" * 64))]
    (folder / ck.MANIFEST).write_bytes(body + (SEAL % hashlib.sha256(body).hexdigest()).encode())
    with pytest.raises(CheckpointError):
        load(folder)


# --- files and pointers ----------------------------------------------------------------------------------------


def test_best_last_and_prune(run):
    for step in (10, 20, 30, 40, 50):
        put(run, step)
        if step == 20:
            mark_best(run, step)
    assert (read_pointer(run, "best"), read_pointer(run, "last")) == ("step=20", "step=50")
    assert prune(run, 2) == ["step=30", "step=10"]
    assert names(run) == ["best", "last", "step=20", "step=40", "step=50"] and steps(run) == [20, 40, 50]
    assert prune(run, 2) == []
    assert prune(run, 0) == ["step=40"]
    assert load(run / "checkpoints" / "step=20").state["value"] == 20


def test_a_rewound_run_keeps_what_it_is_at(run):
    for step in (10, 20, 30):
        put(run, step)
    put(run, 15)
    assert load_latest(run)[0].manifest.step == 15, "not the highest step: the attempt that wrote 20 and 30 is gone"
    assert prune(run, 2) == ["step=30", "step=20"]
    (run / "checkpoints" / "last").unlink()
    assert load_latest(run)[0].manifest.step == 15


@pytest.mark.parametrize("text", ["", "step=7", "../x", "step=../1", "\udcff"])
def test_a_wrong_pointer_points_at_nothing(run, text):
    put(run, 1)
    (run / "checkpoints" / "last").write_bytes(text.encode(errors="surrogateescape"))
    assert read_pointer(run, "last") is None
    assert load_latest(run)[0].manifest.step == 1


@pytest.mark.parametrize("atomic", [True, False])
def test_the_same_step_again_replaces(run, monkeypatch, atomic):
    if not atomic:
        monkeypatch.setattr(durable, "_swap", lambda *_: False)
    put(run, 5, 1)
    mark_best(run, 5)
    folder = put(run, 5, 2)
    assert load(folder).state["value"] == 2 and load(folder).policy["weight"][0, 0] == 2
    assert names(run) == ["best", "last", "step=5"]


def test_a_replaced_step_is_there_at_every_moment(run, monkeypatch):
    folder = put(run, 5, 1)
    with monkeypatch.context() as patch:
        patch.setattr(ck.Path, "rename", lambda *_: pytest.fail("moved away before the new one is in place"))
        put(run, 5, 2)
    assert load(folder).state["value"] == 2


def test_the_system_swaps_atomically(run):
    one, two = put(run, 1), put(run, 2)
    assert durable._swap(one, two)
    assert load(one).state["value"] == 2 and load(two).state["value"] == 1
    assert not durable._swap(one, run / "nowhere")


def test_a_failed_replacement_keeps_the_old_one(run, monkeypatch):
    put(run, 5, 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "move", full)
    with pytest.raises(CheckpointError, match=r"step=5 could not be written.*No space left on device.*intact"):
        put(run, 5, 2)
    assert load_latest(run)[0].state["value"] == 1 and names(run) == ["last", "step=5"]


def test_full_disk(run):
    put(run, 1)
    before = names(run)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 100, 5000):  # not even a pointer; cut in the policy; cut in the state
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(CheckpointError, match=r"step=2 could not be written in .*File too large.*intact"):
                save(run, 2, {"w": torch.ones(100)}, {"m": torch.ones(5000)}, {}, {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert names(run) == before
        latest, skipped = load_latest(run)
        assert latest.manifest.step == 1 and skipped == []
    put(run, 2)
    assert load_latest(run)[0].manifest.step == 2


def test_unwritable_place(run):
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").write_text("a file")
    with pytest.raises(CheckpointError, match="could not be written"):
        put(run, 1)


def test_leftovers_of_the_dead_are_removed_and_work_of_the_living_is_not(run):
    living = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        checkpoints = run / "checkpoints"
        alive = checkpoints / f".tmp-{living.pid}-{durable.start_of(living.pid)}-0"
        reused = checkpoints / f".tmp-{living.pid}-12-0"
        for folder in (alive, reused):
            folder.mkdir()
            (folder / ck.POLICY).write_bytes(b"half")
        (checkpoints / ".tmp-4194304-99-3").write_text("a pointer")
        (checkpoints / "notes.txt").write_text("mine")
        put(run, 1)
        assert names(run) == [alive.name, "last", "notes.txt", "step=1"]
    finally:
        living.kill()
        living.wait()
    put(run, 2)
    assert names(run) == ["last", "notes.txt", "step=1", "step=2"]


# One process imports torch and forks a saver for each kill: 50 imports would take minutes.
KILLER = """
import itertools, os, random, signal, sys, time
from pathlib import Path
import torch
from gymnast.runs.checkpoint import load, load_latest, prune, read_pointer, steps
from saved import mark_best, save

run, kills = Path(sys.argv[1]), int(sys.argv[2])
(run / "checkpoints").mkdir()
generator = random.Random(11)

def write(step, sync):
    tensor = torch.full((20000,), float(step))
    save(run, step, {"w": tensor}, {"m": tensor, "step": step}, {"x": step}, {"env_steps": step}, sync=sync)

def cycle(step, sync):
    write(step, sync)
    write(step, sync)  # again: replaced in place
    mark_best(run, step, sync=sync)
    prune(run, 2)

def check(checkpoint):
    step = checkpoint.manifest.step
    assert checkpoint.state["step"] == step == checkpoint.manifest.metrics["x"] == checkpoint.state["m"][-1], step
    assert checkpoint.folder.name == f"step={step}"
    return step

highest, leftovers = 5, 0
for step in range(1, highest + 1):
    begin = time.perf_counter()
    cycle(step, False)
    duration = time.perf_counter() - begin
for number in range(kills):
    sync = number % 5 == 0  # what a killed process leaves does not depend on fsync, and the disk of a test may be slow
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        for step in itertools.count(highest + 1):
            os.write(tell, b".")
            cycle(step, sync)
    os.read(ready, 1)
    time.sleep(generator.uniform(0, 3 * duration))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready), os.close(tell)
    leftovers += any(name.startswith(".") for name in os.listdir(run / "checkpoints"))
    last = read_pointer(run, "last")
    assert last is not None, "last points nowhere"
    step = check(load(run / "checkpoints" / last))
    latest, skipped = load_latest(run)
    assert check(latest) == step and not skipped, skipped
    check(load(run / "checkpoints" / read_pointer(run, "best")))
    for other in steps(run):
        check(load(run / "checkpoints" / f"step={other}"))
    assert step >= highest, "went back"
    highest = step
write(highest + 1, True)
assert not [name for name in os.listdir(run / "checkpoints") if name.startswith(".")]
print(leftovers, highest)
"""


def test_sigkill_at_random_moments(tmp_path):
    kills = 60
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), str(kills)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    leftovers, highest = map(int, done.stdout.split())
    assert leftovers > kills // 8, "too few kills fell into a save for this to prove anything"
    assert highest > 2, "and too few after one"


def test_an_earlier_boundary_is_written_when_it_turns_out_to_be_the_best(run):
    """With what became known of it, without moving `last`; on disk it is again what was packed."""
    policy, state = {"weight": torch.ones(2)}, {"value": torch.arange(3)}
    packed = ck.pack(100, policy, state, {"train/loss": 0.5}, {"env_steps": 100})
    put(run, 200)
    later = ck.with_metrics(packed, {"eval/return_mean": 7.5})
    ck.write(run, later, latest=False)
    mark_best(run, 100)
    assert read_pointer(run, "last") == "step=200" and read_pointer(run, "best") == "step=100"
    found = load(run / "checkpoints" / "step=100")
    same(found.policy, policy)
    same(found.state, state)
    assert found.manifest.metrics == {"train/loss": 0.5, "eval/return_mean": 7.5}
    assert ck.packed_from(run / "checkpoints" / "step=100") == later

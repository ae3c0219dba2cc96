"""Where two checkpoints differ, tensor by tensor and value by value. Pure reading with numpy; torch is not needed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.later import Later
from gymnast.runs.checkpoint import POLICY, STATE, read_manifest, read_verified
from gymnast.runs.diff.text import pair
from gymnast.runs.manifest import Manifest

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Of the safetensors header; others (bfloat16) are compared as whole numbers of their size."""
MISSING = "missing"


@dataclass(frozen=True)
class Difference:
    """One tensor or value that is not the same to the bit."""

    name: str
    """`policy/actor.layers.0.weight`, `state/session/optimizer/mean`, `counters/updates`."""
    a: Any
    """The first differing element, or the value itself."""
    b: Any
    shape: list[int] | None = None
    """None for a plain value."""
    shape_b: list[int] | None = None
    """Only where the shapes differ."""
    differing: int = 0
    """How many elements."""
    largest: float | None = None
    """Largest absolute difference; None when a NaN is involved."""
    index: list[int] | None = None
    """Of the first differing element."""

    @property
    def group(self) -> str:
        """`policy`, `optimizer`, `generators`, `envs` …"""
        parts = self.name.split("/")
        if parts[:2] == ["state", "session"] and len(parts) > 2:
            return parts[2]
        if parts[0] == "state":
            return parts[1]
        return parts[0]

    def sentence(self) -> str:
        """`policy/actor.layers.0.weight [64, 4]: 3 of 256 elements, largest difference 1e-07, first at [0, 2] (0.1, 0.2)`."""
        values = " → ".join(pair(self.a, self.b))
        if self.shape is None:
            return f"{self.name}: {values}"
        if self.shape_b is not None:
            return f"{self.name}: shape {self.shape} → {self.shape_b}"
        largest = "with NaN" if self.largest is None else f"largest difference {self.largest:.2g}"
        first = f"first at {self.index} ({values})"
        return f"{self.name} {self.shape}: {self.differing:,} of {math.prod(self.shape):,} elements, {largest}, {first}"


def compare_checkpoints(first: Path, second: Path, ignored: Callable[[str], bool]) -> list[Difference]:
    """Differences in the order policy, counters, state; a damaged file is a CheckpointError that names it."""
    manifests = read_manifest(first), read_manifest(second)
    found: list[Difference] = []
    policy = [_arrays(folder / POLICY, manifest) for folder, manifest in zip((first, second), manifests)]
    for name in dict.fromkeys([*manifests[0].policy, *manifests[1].policy]):
        found += _compare_arrays(f"policy/{name}", policy[0].get(name), policy[1].get(name))
    found += _compare(manifests[0].counters, manifests[1].counters, "counters", {}, {})
    state = [_arrays(folder / STATE, manifest) for folder, manifest in zip((first, second), manifests)]
    found += _compare(manifests[0].tree, manifests[1].tree, "state", *state)
    return [difference for difference in found if not ignored(difference.name)]


def _arrays(path: Path, manifest: Manifest) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file: eight bytes of length, a JSON header, then the numbers."""
    raw = read_verified(path, manifest)
    start = 8 + int.from_bytes(raw[:8], "little")
    arrays = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            low, high = entry["data_offsets"]
            count = int(np.prod(entry["shape"]))
            dtype = DTYPES.get(entry["dtype"], f"<u{(high - low) // max(count, 1) or 1}")
            arrays[name] = np.frombuffer(raw[start + low : start + high], dtype).reshape(entry["shape"])
    return arrays


def _compare(a: Any, b: Any, name: str, arrays_a: Any, arrays_b: Any) -> Iterator[Difference]:
    """Walk two state trees together (see `runs.tree` for their form)."""
    if isinstance(a, dict) and isinstance(b, dict) and "$tensor" in a and "$tensor" in b:
        yield from _compare_arrays(name, arrays_a.get(a["$tensor"]), arrays_b.get(b["$tensor"]))
    elif isinstance(a, dict) and isinstance(b, dict) and not any(key.startswith("$") for key in (*a, *b)):
        for key in dict.fromkeys([*a, *b]):
            yield from _compare(a.get(key, MISSING), b.get(key, MISSING), f"{name}/{key}", arrays_a, arrays_b)
    elif (
        isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and any(isinstance(x, (dict, list)) for x in a)
    ):
        for i, (left, right) in enumerate(zip(a, b)):
            yield from _compare(left, right, f"{name}/{i}", arrays_a, arrays_b)
    elif json.dumps(a) != json.dumps(b):
        yield Difference(name, _plain(a), _plain(b))


def _plain(value: Any) -> Any:
    """A value as people write it: without the marks of the state tree."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("$int", "$float", "$tuple"):
        return next(iter(value.values()))
    if isinstance(value, dict) and "$tensor" in value:
        return "a tensor"
    return value


def _compare_arrays(name: str, a: np.ndarray | None, b: np.ndarray | None) -> Iterator[Difference]:
    if a is None or b is None:
        told = [MISSING if side is None else f"{side.dtype} {list(side.shape)}" for side in (a, b)]
        yield Difference(name, told[0], told[1])
        return
    if a.dtype != b.dtype:
        yield Difference(name, str(a.dtype), str(b.dtype))
        return
    if a.shape != b.shape:
        yield Difference(name, None, None, shape=list(a.shape), shape_b=list(b.shape))
        return
    bits = f"u{a.dtype.itemsize}"  # so that NaN equals NaN and −0 does not equal 0
    apart = np.flatnonzero(a.reshape(-1).view(bits) != b.reshape(-1).view(bits))
    if len(apart):
        left, right = a.reshape(-1)[apart], b.reshape(-1)[apart]
        largest = float(np.abs(left.astype(np.float64) - right.astype(np.float64)).max())
        index = []
        if a.shape:
            index = [int(i) for i in np.unravel_index(apart[0], a.shape)]
        yield Difference(
            name,
            left[0].item(),
            right[0].item(),
            shape=list(a.shape),
            differing=len(apart),
            largest=largest if np.isfinite(largest) else None,
            index=index,
        )

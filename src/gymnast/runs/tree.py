"""The state tree of a checkpoint: nested dicts and lists of tensors, arrays and JSON values, split into JSON and tensors.

Strict JSON with placeholders (`{"$tensor": name}`) on one side, plain tensors for safetensors on the other; types,
NaN, 128-bit integers and the difference between numpy and torch survive the round trip.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gymnast.errors import CheckpointError
from gymnast.later import Later

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor
else:
    np, torch = Later("numpy"), Later("torch")

PLAIN_TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Types that torch, numpy and safetensors all have; others are stored as bytes with their type in the tree."""


def encode(value: Any, tensors: dict[str, Tensor] | None, path: str) -> Any:
    """Strict JSON of a tree; its tensors and arrays go into `tensors` (or are refused when that is None)."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        # Other JSON readers (browsers) keep 53 bits only; generator states have 128.
        if -(2**53) < value < 2**53:
            return value
        return {"$int": str(value)}
    if kind is float:
        if math.isfinite(value):
            return value
        return {"$float": str(value)}
    if isinstance(value, dict):
        return _encode_dict(value, tensors, path)
    if kind is list:
        return [encode(item, tensors, f"{path}/{index}") for index, item in enumerate(value)]
    if kind is tuple:
        return {"$tuple": [encode(item, tensors, f"{path}/{index}") for index, item in enumerate(value)]}
    return encode_array(value, tensors, path)


def _encode_dict(value: dict[Any, Any], tensors: dict[str, Tensor] | None, path: str) -> Any:
    escape = False
    items = {}
    for key, item in value.items():
        if type(key) is not str:
            raise CheckpointError(
                f"The checkpoint cannot hold '{path}': its key {key!r} is a {type(key).__name__}. "
                "Keys must be text, because JSON has no others: use str(key) and convert back on loading."
            )
        escape = escape or key.startswith("$")
        items[key] = encode(item, tensors, f"{path}/{key}")
    if escape:
        return {"$dict": [[key, item] for key, item in items.items()]}
    return items


def encode_array(value: Any, tensors: dict[str, Tensor] | None, path: str) -> Any:
    if tensors is None:
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray | torch.Tensor) and value.ndim == 0):
            return encode(value.item(), None, path)
        raise _unsupported(value, path)
    if isinstance(value, torch.Tensor):
        entry, tensor = _tensor_entry(value, path)
    elif isinstance(value, np.ndarray | np.generic):
        entry, tensor = _numpy_entry(value, path)
    elif type(value) is bytes:
        entry, tensor = {"kind": "bytes"}, _byte_tensor(value)
    else:
        raise _unsupported(value, path)
    name = path.encode(errors="backslashreplace").decode()
    while name in tensors or name == "__metadata__":  # a key may hold the separator
        name += "#"
    tensors[name] = tensor
    return {"$tensor": name, **entry}


def _unsupported(value: Any, path: str) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint cannot hold '{path}': it is a {type(value).__module__}.{type(value).__qualname__}. "
        "Give tensors, arrays, text, numbers, booleans, None, or dicts, lists and tuples of these."
    )


def _tensor_entry(value: Tensor, path: str) -> tuple[dict[str, Any], Tensor]:
    if value.layout != torch.strided or value.is_meta or value.is_quantized:
        raise _unsupported(value, path)
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if str(tensor.dtype).removeprefix("torch.") in (*PLAIN_TYPES, "bfloat16"):
        return {}, tensor
    raw = tensor.contiguous().reshape(-1).view(torch.uint8)
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}, raw


def _numpy_entry(value: Any, path: str) -> tuple[dict[str, Any], Tensor]:
    array = np.asarray(value)
    entry: dict[str, Any] = {"kind": "scalar" if isinstance(value, np.generic) else "numpy"}
    if array.dtype.hasobject or array.dtype.names is not None or type(value) not in (np.ndarray, array.dtype.type):
        raise _unsupported(value, path)
    if array.dtype.isnative and array.dtype.name in PLAIN_TYPES:
        simple = array.flags.c_contiguous and array.flags.writeable
        return entry, torch.from_numpy(array if simple else np.array(array, order="C"))
    return entry | {"dtype": array.dtype.str, "shape": list(array.shape)}, _byte_tensor(array.tobytes())


def _byte_tensor(raw: bytes) -> Tensor:
    if raw:
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8)
    return torch.empty(0, dtype=torch.uint8)


def decode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The tree that `encode` was given."""
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if "$tensor" in value:
        return _decode_array(value, tensors[value["$tensor"]])
    if "$float" in value:
        return float(value["$float"])
    if "$int" in value:
        return int(value["$int"])
    if "$tuple" in value:
        return tuple(decode(item, tensors) for item in value["$tuple"])
    items = value["$dict"] if "$dict" in value else value.items()
    return {key: decode(item, tensors) for key, item in items}


def _decode_array(entry: dict[str, Any], tensor: Tensor) -> Any:
    kind, dtype = entry.get("kind", "torch"), entry.get("dtype")
    if kind == "torch":
        if dtype is None:
            return tensor
        known = getattr(torch, dtype)
        if not isinstance(known, torch.dtype):
            raise ValueError(f"unknown dtype {dtype!r}")
        return tensor.view(known).reshape(entry["shape"])
    array = tensor.numpy()
    if kind == "bytes":
        return array.tobytes()
    if dtype is not None:
        stored = np.dtype(dtype)
        if stored.hasobject:  # its bytes would be taken for addresses of Python objects
            raise ValueError(f"unknown dtype {dtype!r}")
        array = np.ndarray(entry["shape"], stored, buffer=bytearray(array.tobytes()))
    if kind == "scalar":
        return array[()]
    return array

"""Tensors of a file that `torch.save` wrote, read without running anything in it.

Such a file is a zip: `…/data.pkl` describes the tensors, `…/data/0`, `…/data/1` … hold their bytes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gymnast.errors import CheckpointError
from gymnast.hub.archives import Archive
from gymnast.hub.nodes import PERSISTENT, describe, is_call, mapping
from gymnast.hub.pickles import read

STORAGES = {
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
}


def read_tensors(data: bytes, where: str) -> dict[str, Tensor]:
    """The state dict in the bytes of a torch file, on the CPU."""
    with Archive(data, where) as archive:
        roots = [name.removesuffix("data.pkl") for name in archive.names if name.endswith("/data.pkl")]
        if len(roots) != 1:
            raise CheckpointError(f"{where} is not a file that torch.save wrote (torch 1.6 or newer).")
        root = roots[0]
        if f"{root}byteorder" in archive.names and archive.read(f"{root}byteorder") != b"little":
            raise CheckpointError(f"{where} was saved on a big-endian machine, which is not supported.")
        tree = mapping(read(archive.read(f"{root}data.pkl"), where), where)
        storages = _Storages(archive, root)
        return {_name(key, where): _tensor(value, storages, where) for key, value in tree.items()}


def _name(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise CheckpointError(f"{where} has {describe(key)} for the name of a tensor.")
    return key


class _Storages:
    """The flat blocks of numbers that tensors are views of, read once each."""

    def __init__(self, archive: Archive, root: str) -> None:
        self._archive, self._root = archive, root
        self._known: dict[str, tuple[str, Tensor]] = {}

    def get(self, value: Any) -> Tensor:
        """The block that a persistent id `("storage", type, key, device, length)` names."""
        where = self._archive.where
        identity = None
        if is_call(value, PERSISTENT):
            identity = value.args[0]
        if not (isinstance(identity, tuple) and len(identity) == 5 and identity[0] == "storage"):
            raise CheckpointError(f"{where} holds {describe(value)} where a tensor's storage should be.")
        _, kind, key, _, length = identity  # the device it was saved from does not matter
        path = describe(kind)
        if path not in STORAGES or not isinstance(key, str) or type(length) is not int or length < 0:
            raise CheckpointError(f"{where} holds a tensor of {path}; known: {', '.join(STORAGES)}.")
        if key not in self._known:
            raw = self._archive.read(f"{self._root}data/{key}", weights=True)
            dtype = STORAGES[path]
            if len(raw) < length * dtype.itemsize:
                raise CheckpointError(f"{where} is damaged: a tensor has {len(raw):,} bytes, fewer than it says.")
            if length:
                block = torch.frombuffer(bytearray(raw), dtype=dtype, count=length)
            else:
                block = torch.empty(0)
            self._known[key] = (path, block.to(dtype))
        if self._known[key][0] != path or len(self._known[key][1]) != length:
            raise CheckpointError(f"{where} is damaged: two tensors disagree about the bytes they share.")
        return self._known[key][1]


def _tensor(value: Any, storages: _Storages, where: str) -> Tensor:
    if not is_call(value, "torch._utils._rebuild_tensor_v2") or len(value.args) not in (6, 7):
        raise CheckpointError(f"{where} holds {describe(value)} where a tensor should be.")
    block = storages.get(value.args[0])
    offset, size, stride = value.args[1:4]
    if not (_counts(size) and _counts(stride) and len(size) == len(stride) and _counts((offset,))):
        raise CheckpointError(f"{where} is damaged: a tensor has no proper size.")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    # A stride of 0 would let a few bytes pose as a tensor of any size.
    if not 0 < math.prod(size) <= len(block) or last >= len(block):
        raise CheckpointError(f"{where} is damaged: a tensor is empty or reaches beyond its bytes.")
    return torch.as_strided(block, size, stride, offset).clone()


def _counts(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) <= 8 and all(type(n) is int and 0 <= n < 1 << 62 for n in values)

"""Numbers and number arrays out of pickle nodes, whichever numpy version wrote them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gymnast.errors import CheckpointError
from gymnast.hub.nodes import Node, describe, is_call

KINDS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
MAX_DIMENSIONS = 8
# numpy.core became numpy._core in numpy 2.
_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_FROMBUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
_SCALAR = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")


def array(value: Any, where: str) -> np.ndarray:
    """A number array, as a copy of the bytes in the pickle."""
    if is_call(value, *_RECONSTRUCT) and isinstance(value.state, tuple) and len(value.state) == 5:
        _, shape, kind, fortran, raw = value.state
        return _filled(_bytes(raw, where), dtype(kind, where), shape, "F" if fortran is True else "C", where)
    # Protocol 5. Order K (numpy 2.3) also permutes axes: written for arrays of three and more dimensions only.
    if is_call(value, *_FROMBUFFER) and len(value.args) >= 4 and value.args[3] in ("C", "F"):
        raw, kind, shape, order = value.args[:4]
        return _filled(_bytes(raw, where), dtype(kind, where), shape, order, where)
    raise CheckpointError(f"{where} holds {describe(value)} where an array of numbers should be.")


def number(value: Any, where: str) -> int | float:
    """A plain number, a numpy scalar or an array of one element."""
    if isinstance(value, (int, float)):
        return value
    if is_call(value, *_SCALAR) and len(value.args) == 2:
        return _filled(_bytes(value.args[1], where), dtype(value.args[0], where), (), "C", where).item()  # type: ignore[no-any-return]  # a scalar of a known kind
    if isinstance(value, Node) and (found := array(value, where)).size == 1:
        return found.item()  # type: ignore[no-any-return]
    raise CheckpointError(f"{where} holds {describe(value)} where a number should be.")


def dtype(value: Any, where: str) -> np.dtype:
    """The number type of a pickled dtype."""
    if is_call(value, "numpy.dtype") and value.args and value.args[0] in KINDS:
        state = value.state if isinstance(value.state, tuple) else ()
        order = "="
        if len(state) > 1:
            order = state[1]
        if order in ("<", ">", "|", "="):
            found: np.dtype[Any] = np.dtype(value.args[0]).newbyteorder(order)
            return found
    raise CheckpointError(f"{where} holds {describe(value)} where a number type should be.")


def _bytes(value: Any, where: str) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    # How protocol 2, which has no bytes, writes them.
    if is_call(value, "_codecs.encode") and len(value.args) == 2 and isinstance(value.args[0], str):
        try:
            return value.args[0].encode("latin1")
        except UnicodeEncodeError:
            pass
    raise CheckpointError(f"{where} holds {describe(value)} where the bytes of an array should be.")


def _filled(raw: bytes, kind: np.dtype, shape: Any, order: Any, where: str) -> np.ndarray:
    sound = isinstance(shape, tuple) and len(shape) <= MAX_DIMENSIONS and all(type(n) is int and n >= 0 for n in shape)
    if not sound or math.prod(shape) * kind.itemsize != len(raw):
        raise CheckpointError(f"{where} is damaged: an array's shape does not fit its {len(raw):,} bytes.")
    flat = np.frombuffer(raw, kind).astype(kind.newbyteorder("="))
    return flat.reshape(shape, order=order)

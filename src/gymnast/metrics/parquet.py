"""A Parquet file of nullable whole numbers, floats and texts: what polars, DuckDB, pandas and Arrow read with their types.

The format is Apache Parquet 1 with plain values, one gzip page per column and row group, and a footer in Thrift's compact
protocol (https://parquet.apache.org/docs/file-format/). That is all a table of metrics needs, so no package is.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

Kind = Literal["int", "float", "text"]
MAGIC = b"PAR1"
# Thrift's compact protocol: types of fields.
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
# Parquet's own numbers.
TYPES: dict[Kind, int] = {"int": 2, "float": 5, "text": 6}
REQUIRED, OPTIONAL, UTF8, PLAIN, RLE, GZIP = 0, 1, 0, 0, 3, 2
AS_GZIP = 31  # for zlib: the largest window, in gzip's frame


class Field(NamedTuple):
    """One field of a Thrift struct. A list holds values of one type: (type, values)."""

    number: int
    kind: int
    value: Any


class ParquetWriter:
    """Writes rows into an open file, a row group per call; the file can be read once it was closed."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, Kind]) -> None:
        self._file, self._columns = file, dict(columns)
        self._groups: list[list[Field]] = []
        self._rows = self._at = 0
        self._put(MAGIC)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows; a value that is None or missing is null."""
        chunks = [self._chunk(name, kind, [row.get(name) for row in rows]) for name, kind in self._columns.items()]
        size = sum(size for _, size in chunks)
        group = [Field(1, LIST, (STRUCT, [chunk for chunk, _ in chunks])), Field(2, I64, size)]
        self._groups.append([*group, Field(3, I64, len(rows))])
        self._rows += len(rows)

    def close(self) -> None:
        """Write the footer; the file itself stays open."""
        root = [Field(4, BINARY, b"metrics"), Field(5, I32, len(self._columns))]
        schema = [root, *(_schema(name, kind) for name, kind in self._columns.items())]
        footer = struct(
            [
                Field(1, I32, 1),
                Field(2, LIST, (STRUCT, schema)),
                Field(3, I64, self._rows),
                Field(4, LIST, (STRUCT, self._groups)),
                Field(6, BINARY, b"gymnast"),
            ]
        )
        self._put(footer + len(footer).to_bytes(4, "little") + MAGIC)

    def _chunk(self, name: str, kind: Kind, values: list[Any]) -> tuple[list[Field], int]:
        """One page with the values of a column; what the footer says of it, and its size."""
        known = np.array([value is not None for value in values], np.bool_)
        page = _levels(known) + _plain(kind, [value for value in values if value is not None])
        deflate = zlib.compressobj(wbits=AS_GZIP)
        packed = deflate.compress(page) + deflate.flush()
        about = [Field(1, I32, len(values)), Field(2, I32, PLAIN), Field(3, I32, RLE), Field(4, I32, RLE)]
        header = struct(
            [Field(1, I32, 0), Field(2, I32, len(page)), Field(3, I32, len(packed)), Field(5, STRUCT, about)]
        )
        start = self._at
        self._put(header + packed)
        meta = [
            Field(1, I32, TYPES[kind]),
            Field(2, LIST, (I32, [PLAIN, RLE])),
            Field(3, LIST, (BINARY, [name.encode()])),
            Field(4, I32, GZIP),
            Field(5, I64, len(values)),
            Field(6, I64, len(header) + len(page)),
            Field(7, I64, len(header) + len(packed)),
            Field(9, I64, start),
        ]
        return [Field(2, I64, start), Field(3, STRUCT, meta)], len(header) + len(page)

    def _put(self, raw: bytes) -> None:
        self._file.write(raw)
        self._at += len(raw)


def _schema(name: str, kind: Kind) -> list[Field]:
    fields = [Field(1, I32, TYPES[kind]), Field(3, I32, OPTIONAL), Field(4, BINARY, name.encode())]
    if kind == "text":
        return [*fields, Field(6, I32, UTF8)]
    return fields


def _levels(known: np.ndarray) -> bytes:
    """Which values are not null: bits in groups of eight, behind the size of it all."""
    bits = np.packbits(known, bitorder="little").tobytes()
    run = _varint(len(bits) << 1 | 1) + bits
    return len(run).to_bytes(4, "little") + run


def _plain(kind: Kind, values: list[Any]) -> bytes:
    if kind == "text":
        texts = [str(value).encode() for value in values]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return np.array(values, "<i8" if kind == "int" else "<f8").tobytes()


# ---- Thrift's compact protocol -------------------------------------------------------------------------------------


def struct(fields: Sequence[Field]) -> bytes:
    """A struct whose fields come in the order of their numbers, at most 15 apart."""
    raw, before = b"", 0
    for number, kind, value in fields:
        raw += bytes([(number - before) << 4 | kind]) + _value(kind, value)
        before = number
    return raw + b"\0"


def _value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return struct(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == LIST:
        inner, items = value
        if len(items) < 15:
            size = bytes([len(items) << 4 | inner])
        else:
            size = bytes([0xF0 | inner]) + _varint(len(items))
        return size + b"".join(_value(inner, item) for item in items)
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)  # whole numbers in zigzag


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first."""
    raw = bytearray()
    while value > 0x7F:
        raw.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*raw, value])

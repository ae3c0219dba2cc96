"""Data too big to be written with every checkpoint: append-only files, to which checkpoints refer by offset.

`bulk/<number>.bin` of a run's folder holds pieces one after another. A piece is what came to some data, such as a replay,
between two boundaries; each is written once. A checkpoint's manifest lists the pieces it needs with file, offset, size and
SHA-256, so it says all that must be known to read or verify them, and a tail that nobody refers to does no harm.
Every attempt begins a file of its own: what an interrupted one left is never written to again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from gymnast.errors import CheckpointError

FOLDER = "bulk"
FILE_BYTES = 64 << 20
"""Size after which a new file is started: whole files are removed when nothing refers to them."""
_NAME = re.compile(r"[0-9]{5,12}\.bin")


class Growing(Protocol):
    """Data that grows by records at its end and may forget the oldest, as a replay does."""

    @property
    def total(self) -> int:
        """How many records were ever added."""

    def __len__(self) -> int:
        """How many of the newest are still there."""

    def records(self, first: int) -> bytes:
        """All records from number `first` on."""

    def restore(self, total: int, kept: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Hold the newest `kept` of `total` records again; each piece is its first record's number and `records`."""


@dataclass(frozen=True)
class Piece:
    """Records that were written together."""

    first: int
    """Number of the first record, counted from the beginning of training."""
    count: int
    file: str
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Series:
    """What a checkpoint needs of one kind of data: the newest `kept` of `total` records, and where they are."""

    total: int
    kept: int
    pieces: tuple[Piece, ...]

    def as_json(self) -> dict[str, Any]:
        """Its form in the manifest of a checkpoint."""
        return {"total": self.total, "kept": self.kept, "pieces": [list(astuple(piece)) for piece in self.pieces]}

    @staticmethod
    def from_json(data: Any) -> Series:
        """From a manifest that anybody may have written: a ValueError if it makes no sense."""
        series = Series(data["total"], data["kept"], tuple(Piece(*piece) for piece in data["pieces"]))
        numbers = [series.total, series.kept]
        reached = None
        for piece in series.pieces:
            numbers += [piece.first, piece.count, piece.offset, piece.size]
            named = type(piece.file) is str and _NAME.fullmatch(piece.file) is not None
            if not named or type(piece.sha256) is not str or reached not in (None, piece.first):
                raise ValueError("its pieces of bulk data do not fit together")
            reached = piece.first + piece.count
        if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise ValueError("bulk data is counted in whole numbers")
        oldest = series.total - series.kept
        if series.kept and (not series.pieces or series.pieces[0].first > oldest or reached != series.total):
            raise ValueError("its pieces do not hold the records it needs")
        return series


def read(run_folder: Path, piece: Piece) -> bytes:
    """The records of a piece, verified."""
    path = run_folder / FOLDER / piece.file
    try:
        with path.open("rb") as file:
            file.seek(piece.offset)
            raw = file.read(piece.size)
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    if len(raw) != piece.size:
        raise _damaged(path, f"it ends at byte {piece.offset + len(raw):,} of {piece.offset + piece.size:,}")
    if hashlib.sha256(raw).hexdigest() != piece.sha256:
        raise _damaged(path, f"bytes {piece.offset:,} to {piece.offset + piece.size:,} do not match their checksum")
    return raw


def verify(run_folder: Path, series: Iterable[Series]) -> None:
    """Read everything that a checkpoint refers to; a CheckpointError names the file that is damaged."""
    for one in series:
        for piece in one.pieces:
            read(run_folder, piece)


def files_of(series: Iterable[Series]) -> set[str]:
    """Names of the files that these refer to."""
    return {piece.file for one in series for piece in one.pieces}


def prune(run_folder: Path, needed: set[str]) -> list[str]:
    """Remove the files that are not `needed`; returns their names."""
    removed = []
    for name in _names(run_folder):
        if name not in needed:
            with contextlib.suppress(OSError):  # tried again with the next checkpoint
                (run_folder / FOLDER / name).unlink()
                removed.append(name)
    return removed


def _names(run_folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in (run_folder / FOLDER).iterdir() if _NAME.fullmatch(path.name))
    except OSError:
        return []


def _damaged(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"The file '{path}', which holds data of a checkpoint, is damaged: {what}. Use another checkpoint of the run, or "
        "resume, which takes the newest whole one."
    )


class BulkStore:
    """Writes the bulk data of one attempt. `take` is called by training, `sync` by the thread that saves."""

    def __init__(self, run_folder: Path) -> None:
        self._run = run_folder.absolute()
        self._series: dict[str, Series] = {}
        """What is written, or waits for it, by name of the data."""
        self._lock = threading.Lock()
        self._number, self._end = 0, FILE_BYTES
        """Of the newest file, and its length; the first piece begins another."""
        self._files: dict[str, BinaryIO] = {}
        """Files that may still be written to, or are not yet on the disk itself."""
        self._waiting: list[tuple[str, int, bytes]] = []
        """What is not written yet; it stays here while the disk is full."""

    def restore(self, saved: Mapping[str, Series], data: Mapping[str, Growing]) -> None:
        """Give the data of a checkpoint back; what lies on disk already is not written again."""
        for name, growing in data.items():
            if name not in saved:
                raise CheckpointError(f"The checkpoint has no data '{name}', which the algorithm needs to go on.")
            series = saved[name]
            growing.restore(series.total, series.kept, self._pieces(series))
            self._series[name] = series

    def _pieces(self, series: Series) -> Iterator[tuple[int, bytes]]:
        for piece in series.pieces:
            yield piece.first, read(self._run, piece)

    def take(self, data: Mapping[str, Growing]) -> dict[str, Series]:
        """Where all records are that the data holds now; what is new since the last call goes to the end of a file."""
        with self._lock:
            for name, growing in data.items():
                self._series[name] = self._extended(self._series.get(name, Series(0, 0, ())), growing)
            with contextlib.suppress(OSError):  # it waits, and `sync` says so if it cannot be written then either
                self._write()
            return {name: self._series[name] for name in data}

    def _extended(self, before: Series, growing: Growing) -> Series:
        total, kept = growing.total, len(growing)
        pieces = [piece for piece in before.pieces if piece.first + piece.count > total - kept]
        first = max(before.total, total - kept)
        if first < total:
            pieces.append(self._append(first, total - first, growing.records(first)))
        return Series(total, kept, tuple(pieces))

    def _append(self, first: int, count: int, raw: bytes) -> Piece:
        if self._end >= FILE_BYTES:
            newest = max((int(name.partition(".")[0]) for name in _names(self._run)), default=0)
            self._number, self._end = max(self._number, newest) + 1, 0
        name = f"{self._number:05d}.bin"
        piece = Piece(first, count, name, self._end, len(raw), hashlib.sha256(raw).hexdigest())
        self._waiting.append((name, self._end, raw))
        self._end += len(raw)
        return piece

    def _write(self) -> None:
        """Write what waits. A piece of which a part was written before is written again at the same place."""
        while self._waiting:
            name, offset, raw = self._waiting[0]
            file = self._files.get(name) or self._begin(name)
            file.seek(offset)
            rest = memoryview(raw)
            while rest:  # a nearly full disk takes a part and refuses the rest
                rest = rest[file.write(rest) :]
            del self._waiting[0]

    def _begin(self, name: str) -> BinaryIO:
        folder = self._run / FOLDER
        folder.mkdir(exist_ok=True)
        self._files[name] = (folder / name).open("xb", buffering=0)
        return self._files[name]

    def sync(self) -> None:
        """Everything that was taken is on the disk itself: a checkpoint may now refer to it."""
        with self._lock:
            try:
                self._write()
                for name, file in list(self._files.items()):
                    os.fsync(file.fileno())
                    if name != f"{self._number:05d}.bin":
                        self._files.pop(name).close()
            except OSError as error:
                raise CheckpointError(
                    f"The data of the run could not be written to '{self._run / FOLDER}': {error.strerror or error}. "
                    "The earlier checkpoints are intact. Free some space or check the folder's permissions, then resume."
                ) from error

    def is_whole(self) -> bool:
        """Whether the files that the next checkpoint builds on are still there, as far as they are written."""
        waiting = {name for name, _, _ in self._waiting}
        return all((self._run / FOLDER / name).exists() for name in files_of(self._series.values()) - waiting)

    def forget(self) -> None:
        """The folder vanished: everything is written again with the next checkpoint."""
        with self._lock:
            self._series, self._end = {}, FILE_BYTES
            self._waiting.clear()
        self.close()

    def close(self) -> None:
        """Close every file that is open."""
        with self._lock:
            while self._files:
                self._files.popitem()[1].close()

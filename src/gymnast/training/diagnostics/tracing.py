"""Hashes of what every update saw and did: one line per iteration in `trace.jsonl`, the proof of `gymnast rewind`."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from gymnast.algorithms.base import Coefficients, Loss, Outputs
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch


def digest(*tensors: Tensor) -> str:
    """128 bits over the bytes of tensors, their types and shapes."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        array = tensor.detach().cpu().contiguous().numpy()
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def batch_digest(batch: Batch) -> str:
    """Over all fields of a batch, in a fixed order."""
    return digest(*batch.tensors().values())


@dataclass
class Hashes:
    """Hashes of one iteration."""

    batch: str = ""
    gradients: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)


class HashObserver:
    """Hashes the batch, and the gradient and weights of every update; writes them if there is a file."""

    def __init__(self, flat: FlatParameters, file: TraceFile | None = None) -> None:
        self.hashes = Hashes()
        self._flat, self._file = flat, file

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """Begin a new iteration."""
        self.hashes = Hashes(batch_digest(batch))

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Hash the gradients as they are before clipping."""
        self.hashes.gradients.append(digest(self._flat.grads))

    def stepped(self, number: int) -> None:
        """Hash the weights after a step of the optimizer."""
        self.hashes.weights.append(digest(self._flat.values))

    def finished(self, iteration: int, env_steps: int) -> None:
        """One line for the iteration."""
        if self._file is not None:
            self._file.write(iteration, env_steps, self.hashes)


class TraceFile:
    """Appends the hashes of each iteration; a resumed run repeats the lines after its checkpoint, and the last one counts."""

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                file.write(b"\n")  # torn by a kill: the next line must not be swallowed
        self.path = path
        self._file = path.open("a+b", buffering=0)

    def write(self, iteration: int, env_steps: int, hashes: Hashes) -> None:
        """One line; one that a full disk does not take is left out, and that iteration counts as not traced."""
        line = {"iteration": iteration, "env_steps": env_steps, **vars(hashes)}
        start = os.fstat(self._file.fileno()).st_size
        rest = memoryview(json.dumps(line).encode() + b"\n")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            os.ftruncate(self._file.fileno(), start)

    def fileno(self) -> int:
        """The open file's descriptor."""
        return self._file.fileno()

    def reopen(self) -> None:
        """Go on with the file that has the path now."""
        self._file.close()
        self._file = self.path.open("a+b", buffering=0)

    def close(self) -> None:
        """Close the file of hashes."""
        self._file.close()


HASHES = {"batch", "gradients", "weights"}
"""What a row of the file says of an iteration."""


def read_trace(path: Path, iteration: int) -> Hashes | None:
    """The hashes of an iteration, from the last attempt that ran it; None when there are none."""
    if not path.exists():
        return None
    found: dict[str, Any] | None = None
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue  # torn by a kill
            if isinstance(row, dict) and row.get("iteration") == iteration and row.keys() >= HASHES:
                found = row
    if found:
        return Hashes(found["batch"], found["gradients"], found["weights"])
    return None

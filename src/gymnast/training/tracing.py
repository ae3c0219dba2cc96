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
from gymnast.rollout.buffer import Batch


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
    return digest(*batch_tensors(batch).values())


def batch_tensors(batch: Batch) -> dict[str, Tensor]:
    """A batch as named tensors; parts of an observation are `obs.<part>`."""
    named = {"obs": batch.obs} if isinstance(batch.obs, Tensor) else {f"obs.{k}": v for k, v in batch.obs.items()}
    for name in ("action", "log_prob", "value", "advantage", "target", "mask"):
        if (tensor := getattr(batch, name)) is not None:
            named[name] = tensor
    return named


@dataclass
class Hashes:
    """Hashes of one iteration."""

    batch: str = ""
    gradients: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)


class HashObserver:
    """Hashes the batch, and the gradient and weights of every update."""

    def __init__(self, flat: FlatParameters) -> None:
        self.hashes = Hashes()
        self._flat = flat

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """Begin a new iteration."""
        self.hashes = Hashes(batch_digest(batch))

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Before clipping."""
        self.hashes.gradients.append(digest(self._flat.grads))

    def stepped(self, number: int) -> None:
        """After the step."""
        self.hashes.weights.append(digest(self._flat.values))


class TraceFile:
    """Appends the hashes of each iteration; a resumed run repeats the lines after its checkpoint, and the last one counts."""

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                file.write(b"\n")  # torn by a kill: the next line must not be swallowed
        self._file = path.open("ab", buffering=0)

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

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_trace(path: Path, iteration: int) -> Hashes | None:
    """The hashes of an iteration, from the last attempt that ran it; None when there are none."""
    found: dict[str, Any] | None = None
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # torn by a kill
        if isinstance(row, dict) and row.get("iteration") == iteration:
            found = row
    return Hashes(found["batch"], found["gradients"], found["weights"]) if found else None

"""What a failing run leaves behind: the batch that had bad numbers in it, and a sentence where memory ran out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from gymnast.config.schema import RunConfig
from gymnast.errors import NonFiniteError, OutOfMemoryError
from gymnast.training.trainer import Trainer

_MEMORY_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "Cannot allocate memory")


@contextmanager
def memory_explained(config: RunConfig, *, building: bool = False) -> Iterator[None]:
    """Turn the many ways in which memory runs out into one sentence with advice; `building` makes room for the rollout."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        words = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and not any(one in words for one in _MEMORY_WORDS):
            raise
        n_steps, batch_size = (getattr(config.algo, name, None) for name in ("n_steps", "batch_size"))
        sizes = {"env.n_envs": config.env.n_envs, "algo.n_steps": n_steps, "algo.batch_size": batch_size}
        now = ", ".join(f"{key}={value}" for key, value in sizes.items() if value is not None)
        if "CUDA out of memory" in words:
            large = "an update: lower algo.batch_size first"
            if building:
                large = "the rollout: lower env.n_envs or algo.n_steps"
            raise OutOfMemoryError(
                f"The GPU's memory ran out ({words.partition(' GPU ')[0][:120]}) while allocating {large}. Now: {now}. "
                "Everything saved before is intact, and a resume may change algo.batch_size."
            ) from error
        raise OutOfMemoryError(
            f"Memory ran out ({words[:200] or type(error).__name__}). Smaller sizes need less memory; now they are: {now}; "
            "so does a smaller policy.hidden. Everything saved before is intact, and a resume may change algo.batch_size."
        ) from error


def with_dump(error: NonFiniteError, trainer: Trainer, run_folder: Path) -> NonFiniteError:
    """Write the batch, or the rollout when no batch was made of it, and say in the error where it is."""
    step = trainer.counters.env_steps
    if error.batch is None:
        tensors = trainer.evidence()
    else:
        tensors = error.batch.tensors()
    path = run_folder / "nan" / f"step={step}.safetensors"
    try:
        _write(path, tensors, trainer, str(error))
    except OSError as refused:
        return NonFiniteError(f"{error} The batch could not be written: {refused.strerror or refused}.", error.batch)
    return NonFiniteError(f"{error} The batch is in '{path}'.", error.batch, path)


def _write(path: Path, tensors: dict[str, Tensor], trainer: Trainer, reason: str) -> None:
    path.parent.mkdir(exist_ok=True)
    counters = trainer.counters
    about: dict[str, Any] = {
        "reason": reason,
        "iteration": counters.iteration + 1,
        "env_steps": counters.env_steps,
        "updates": counters.updates,
        "coefficients": {k: v if math.isfinite(v) else str(v) for k, v in trainer.coefficients().items()},
        "tensors": {
            name: {"dtype": str(one.dtype), "shape": list(one.shape), "nonfinite": _bad(one)}
            for name, one in tensors.items()
        },
    }
    save_file({name: one.detach().cpu().contiguous().clone() for name, one in tensors.items()}, path)
    path.with_suffix(".json").write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _bad(tensor: Tensor) -> int:
    if tensor.is_floating_point():
        return int((~torch.isfinite(tensor)).sum())
    return 0

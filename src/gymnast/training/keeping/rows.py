"""The row of one iteration: what the trainer measured, and the progress of the run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import torch

from gymnast.envs.wrappers import frames_per_step
from gymnast.timing import StageTimer
from gymnast.training.trainer import Row, Trainer

__all__ = ["Row", "RowMaker"]


@dataclass
class RowMaker:
    """Completes the rows of one attempt."""

    trainer: Trainer
    timer: StageTimer
    steps_at_start: int
    """Env steps when this attempt began."""
    frames: float | None = field(init=False)
    """Frames of the env per env step; None if the policy decides."""

    def __post_init__(self) -> None:
        self._on_gpu = self.trainer.about.device.type == "cuda"
        self.frames = frames_per_step(self.trainer.config.env)

    def __call__(self, measured: Row, last: Row, *, solved: bool) -> Row:
        """What was measured, with counters, progress, speed since the `last` row and the split of time."""
        counters = self.trainer.counters
        seconds = counters.seconds + self.timer.wall()
        before = last.get("time/seconds") or counters.seconds
        steps_before = last.get("env_steps") or self.steps_at_start
        progress = min(1.0, counters.env_steps / self.trainer.plan.env_steps)
        row: Row = {
            "iteration": counters.iteration,
            "env_steps": counters.env_steps,
            "vec_steps": counters.vec_steps,
            "frames": None if self.frames is None else round(counters.env_steps * self.frames),
            "updates": counters.updates,
            "epoch": counters.epochs,
            "progress": progress,
            "train/solved": float(solved),
            "time/seconds": seconds,
            "time/fps": (counters.env_steps - self.steps_at_start) / self.timer.wall(),
            "time/fps_now": (counters.env_steps - steps_before) / max(seconds - before, 1e-9),
            "time/epochs_per_second": (counters.epochs - (last.get("epoch") or 0)) / max(seconds - before, 1e-9),
            "time/eta": seconds * (1.0 - progress) / max(progress, 1e-9),
            "sys/rss_mb": _rss_mb(),
        }
        if self._on_gpu:
            row["sys/gpu_mb"] = torch.cuda.max_memory_allocated() / 1e6
        row |= {f"time/{name}": share for name, share in self.timer.split().items()}
        return row | measured


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _rss_mb() -> float | None:
    """Resident memory of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - hot path
            return int(file.read().split()[1]) * _PAGE / 1e6
    except OSError:
        return None

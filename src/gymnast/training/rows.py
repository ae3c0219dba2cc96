"""The metrics row of one iteration."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from gymnast.envs.wrappers import frames_per_step
from gymnast.metrics.catalogue import Catalogue
from gymnast.rollout.buffer import Rollout
from gymnast.timing import StageTimer
from gymnast.training.iteration import Iteration
from gymnast.training.session import Session

Row = dict[str, float | None]


@dataclass
class RowMaker:
    """Turns what an iteration did into its row; remembers the last one for rates."""

    session: Session
    timer: StageTimer
    catalogue: Catalogue
    steps_at_start: int
    """Env steps when this attempt began."""
    last: Row = field(default_factory=dict)
    frames: float | None = field(init=False)
    """Frames of the env per env step; None where the policy decides."""

    def __post_init__(self) -> None:
        self.frames = frames_per_step(self.session.config.env)

    def __call__(self, done: Iteration, *, solved: bool) -> Row:
        """All metrics of this iteration by catalogue name."""
        batch, c = done.batch, done.coefficients
        session, counters, rollout = self.session, self.session.counters, self.session.rollout
        t = rollout.length
        seconds = counters.seconds + self.timer.wall()
        before = self.last.get("time/seconds") or counters.seconds
        steps_before = self.last.get("env_steps") or self.steps_at_start
        progress = min(1.0, counters.env_steps / session.plan.env_steps)
        value, target = batch.value, batch.target
        spread = float(target.var()) if len(batch) > 1 else 0.0
        explained = 1.0 - float((target - value).var()) / spread if spread > 0 and session.policy.has_critic else None
        row: Row = {
            "iteration": counters.iteration,
            "env_steps": counters.env_steps,
            "vec_steps": counters.vec_steps,
            "frames": None if self.frames is None else round(counters.env_steps * self.frames),
            "updates": counters.updates,
            "epoch": counters.epochs,
            "progress": progress,
            **session.window.statistics(),
            "rollout/reward_mean": float(rollout.reward[:t].mean()),
            "rollout/diversity": _diversity(rollout),
            **done.result.statistics,
            **{f"train/{name}": value for name, value in c.items()},
            "train/kl_stops": counters.kl_stops,
            "train/explained_variance": explained,
            "train/advantage_mean": float(batch.advantage.mean()),
            "train/advantage_std": float(batch.advantage.std()) if len(batch) > 1 else 0.0,
            "train/value_mean": float(value.mean()) if session.policy.has_critic else None,
            "train/return_target_mean": float(target.mean()),
            "train/solved": float(solved),
            "time/seconds": seconds,
            "time/fps": (counters.env_steps - self.steps_at_start) / self.timer.wall(),
            "time/fps_now": (counters.env_steps - steps_before) / max(seconds - before, 1e-9),
            "time/eta": seconds * (1.0 - progress) / max(progress, 1e-9),
            **{f"time/{name}": share for name, share in self.timer.split().items()},
            "sys/rss_mb": _rss_mb(),
            **session.envs.counters(),
        }
        if session.policy.log_std is not None:
            row["train/action_std"] = float(session.policy.log_std.detach().exp().mean())
        if session.algorithm.reward_scaler is not None:
            row["train/reward_scale"] = 1.0 / session.algorithm.reward_scaler.std
        return {name: value for name, value in row.items() if name in self.catalogue}


def _diversity(rollout: Rollout) -> float:
    """Share of distinct transitions across slots in the last step."""
    return len(set(rollout.slot_keys())) / rollout.n_envs


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _rss_mb() -> float | None:
    """Resident memory of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - hot path
            return int(file.read().split()[1]) * _PAGE / 2**20
    except OSError:
        return None

"""Real, small, mis-configured runs: trained in this process, read back from their files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from gymnast import api
from gymnast.config.load import Resolved
from gymnast.metrics.alerts.watch import Watch, replay
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs.status import Status
from gymnast.runs.trust import usable


class Recorded(NamedTuple):
    """What a run leaves: its config, its rows, its status, and its config as a command may use it."""

    config: dict[str, Any]
    rows: list[dict[str, Any]]
    status: Status
    saved: Resolved

    @property
    def best(self) -> float | None:
        """Its best evaluation."""
        return self.status.best_return

    def watch(self) -> Watch:
        """Its alerts."""
        return replay(self.config, self.rows, actions=self.status.choices)


@cache
def recorded(reference: str, *overrides: str, env_steps: int | None = None, seed: int = 0) -> Recorded:
    """Train and read back; the same run is trained once per test session."""
    with TemporaryDirectory() as folder:
        done = api.train(reference, *overrides, env_steps=env_steps, seed=seed, runs_dir=Path(folder))
        rows = list(MetricRows(done.run.metrics_path))
        saved = usable(done.run, playing=False)
        return Recorded(done.run.config(), rows, done.run.status(), saved)


CARTPOLE = "CartPole-v1:ppo"
GO_ON = "train.stop_when_solved=false"
RAW = "algo.normalize_reward=false"

FAULTS: dict[str, tuple[str, tuple[str, ...], int, tuple[str, ...]]] = {
    "rate too high": (
        CARTPOLE,
        ("algo.learning_rate=lin_0.8",),
        20_000,
        ("entropy_collapse", "kl_high", "kl_spike", "return_plateau"),
    ),
    "rate rises": (
        "CartPole-v1:a2c",
        ("algo.learning_rate=[[0, 3e-3], [0.5, 3e-3], [0.501, 1.0]]", GO_ON),
        40_000,
        ("grad_spike", "value_loss_blowup"),
    ),
    "rate rises, raw rewards": (
        "CartPole-v1:a2c",
        ("algo.learning_rate=[[0, 3e-3], [0.3, 3e-3], [0.301, 0.1]]", GO_ON, RAW),
        40_000,
        ("return_fell",),
    ),
    "saturated": ("CartPole-v1:reinforce", ("algo.learning_rate=1.0",), 20_000, ("grad_vanished",)),
    "clip too narrow": (CARTPOLE, ("algo.clip_range=0.001", GO_ON), 12_000, ("clip_fraction_high",)),
    "gradients clipped away": (
        CARTPOLE,
        ("algo.max_grad_norm=1e-8",),
        12_000,
        ("clip_fraction_zero", "grad_clipped", "policy_frozen"),
    ),
    "rewards too large": (
        CARTPOLE,
        ("env.wrappers=[{id: reward_scale, factor: 10000}]", RAW),
        12_000,
        ("critic_useless", "reward_scale_large"),
    ),
    "rewards too small": (
        CARTPOLE,
        ("env.wrappers=[{id: reward_scale, factor: 0.00001}]", RAW),
        12_000,
        ("reward_scale_small",),
    ),
    "rewards beyond all numbers": (
        CARTPOLE,
        ("env.wrappers=[{id: reward_scale, factor: 1.0e+25}]", RAW, "algo.vf_coef=1.0e-25"),
        3_000,
        ("not_finite",),
    ),
    "bonus too large": (CARTPOLE, ("algo.ent_coef=10",), 12_000, ("entropy_bonus_high",)),
    "actions too narrow": (
        "Pendulum-v1:ppo",
        ("policy.log_std_init=-5",),
        20_000,
        ("action_std_small", "start_off_centre"),
    ),
    "actions too wide": (
        "Pendulum-v1:ppo",
        ("policy.log_std_init=4",),
        12_000,
        ("action_std_large", "start_off_centre"),
    ),
    "no reward": ("MountainCar-v0:ppo", (), 24_000, ("no_reward",)),
    "another evaluation": (CARTPOLE, ("eval.env={time_limit: 20}",), 30_000, ("evaluation_below_training",)),
    "few updates": (
        CARTPOLE,
        ("algo.n_steps=156", "algo.batch_size=1.0", "algo.n_epochs=1"),
        20_000,
        ("few_updates",),
    ),
    "KL limit too small": (
        CARTPOLE,
        ("algo.target_kl=1e-6",),
        15_000,
        ("kl_stops_always", "still_rising"),
    ),
    "wrong spec": (
        CARTPOLE,
        ("spec.return_range=[0, 10]", "spec.reward_range=[2, 3]"),
        3_000,
        ("return_bound", "reward_bound"),
    ),
}
"""Name → preset, what is wrong with it, budget, and the alerts it must raise."""

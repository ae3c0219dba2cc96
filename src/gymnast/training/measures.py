"""What an on-policy iteration did, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gymnast.rollout.buffer import Rollout
from gymnast.training.trainer import Row

if TYPE_CHECKING:
    from gymnast.training.on_policy import Iteration, OnPolicyTrainer


def measures(trainer: OnPolicyTrainer, done: Iteration) -> Row:
    """All that is known of an iteration, by catalogue name."""
    rollout, policy, c = trainer.rollout, trainer.policy, done.coefficients
    t = rollout.length
    row: Row = {
        **trainer.window.statistics(),
        "rollout/reward_mean": float(rollout.own_reward[:t].mean(dtype=np.float64)),
        "rollout/diversity": diversity(rollout),
        **done.result.statistics,
        **{f"train/{name}": value for name, value in c.items()},
        "train/kl_stops": trainer.counters.kl_stops,
        "train/advantage_mean": done.advantage_mean,
        "train/advantage_std": done.advantage_std,
        "train/advantage_min": done.advantage_min,
        "train/advantage_max": done.advantage_max,
        "train/return_target_mean": float(done.batch["target"].mean()),
        **trainer.algorithm.measures(done.batch),
        **trainer.envs.counters(),
    }
    row |= _scaled_losses(row)
    log_std = getattr(policy, "log_std", None)
    if log_std is not None:
        row["train/action_std"] = float(log_std.detach().exp().mean())
    if trainer.algorithm.reward_scaler is not None:
        row["train/reward_scale"] = trainer.algorithm.reward_scaler.std
    if trainer.algorithm.value_scale is not None:
        row["train/value_scale"] = float(trainer.algorithm.value_scale.std)
    if rollout.own_reward is not rollout.reward:
        row["train/reward_mean"] = float(rollout.reward[:t].mean(dtype=np.float64))
    if "n_epochs" in c:
        row["train/n_epochs"] = done.result.epochs  # a schedule is rounded, and target_kl may stop earlier
    return row


def _scaled_losses(row: Row) -> Row:
    """The parts of the loss as they add up to it; the policy's part has no coefficient."""
    found: Row = {}
    for name, loss, weight, sign in (
        ("train/value_loss_scaled", "train/value_loss", "train/vf_coef", 1.0),
        ("train/entropy_loss_scaled", "train/entropy", "train/ent_coef", -1.0),
    ):
        part, coefficient = row.get(loss), row.get(weight)
        if part is not None and coefficient is not None:
            found[name] = sign * coefficient * part + 0.0  # no −0
    return found


def diversity(rollout: Rollout) -> float:
    """Share of distinct transitions in the rollout."""
    hashes = rollout.transition_hashes()
    return len(np.unique(hashes)) / hashes.size

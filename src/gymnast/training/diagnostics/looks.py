"""A closer look at an iteration, once in a while: norms by part of the network, dead units, and how values are spread.

It reads what the update left behind (weights before and after, the last gradient, the rollout) and changes none of it, so a
captured update and one operation after the other give the same, and training is the same to the bit without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from gymnast.algorithms.base import coefficients
from gymnast.config.schedule import Clock
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import choices_of
from gymnast.metrics.histogram import Histogram
from gymnast.policies.distributions import IMPOSSIBLE
from gymnast.policies.flat import FlatParameters
from gymnast.policies.units import dead, rectified
from gymnast.rollout.batch import Batch
from gymnast.rollout.buffer import Rollout, parts
from gymnast.training.trainer import Row

if TYPE_CHECKING:
    from gymnast.training.on_policy import Iteration, OnPolicyTrainer

PASSES = 20_000
"""Samples that were learned from between two looks, each counted in each epoch: the time of a look is about one in a hundred
of theirs."""
VECTORS, IMAGES = 256, 32
"""Observations that units are shown, and of which statistics are taken, evenly spread over the rollout."""
MOST_SHARES = 64
"""Choices of an action whose shares are metrics."""
MOST_VALUES = 20_000
ROWS = 4096
BINS = 32


def cadence(config: RunConfig) -> int | None:
    """Env steps between looks; None for never."""
    every = config.log.diagnostics_every
    if every == "auto":
        passes = coefficients(config.algo, Clock(0, 0, 0.0)).get("n_epochs", 1.0)
        return max(1, round(PASSES / max(1.0, passes)))
    return every


def is_due(every: int | None, before: int, now: int) -> bool:
    """Whether an iteration between these env steps is looked at; the first one always is."""
    if every is None:
        return False
    return before == 0 or now // every > before // every


def look(trainer: OnPolicyTrainer, done: Iteration) -> Row:
    """All that is found out, by catalogue name."""
    return {
        **_norms(trainer, done),
        **_dead_units(trainer, done.batch),
        **_rewards(trainer.rollout),
        **_observations(done.batch),
        **_actions(trainer, done.batch),
        **_outputs(trainer.rollout),
        **_of_the_critic(trainer, done),
    }


def _number(tensor: Tensor) -> float:
    return float(tensor)  # host sync on a GPU, once per look and value


# --- weights and gradients ----------------------------------------------------------------------------------------------


def _norms(trainer: OnPolicyTrainer, done: Iteration) -> Row:
    """Of gradient, weights, and how far the weights moved, by part."""
    flat, result = trainer.flat, done.result
    before = result.before.weights
    unclipped = _unclipped(trainer, done)
    named = {
        "grad_norm": (flat.grads, unclipped),
        "weight_norm": (flat.values, 1.0),
        "update_norm": (flat.values.detach() - before, 1.0),
    }
    row: Row = {}
    for name, (tensor, factor) in named.items():
        for part, norm in norms_by_part(flat, trainer.policy, tensor).items():
            row[f"train/{name}/{part}"] = norm * factor
    row["train/weight_norm"] = _number(flat.values.norm())
    row["train/update_norm"] = _number((flat.values.detach() - before).norm())
    return row


def _unclipped(trainer: OnPolicyTrainer, done: Iteration) -> float:
    """What clipping divided the last gradient by; the gradient itself is kept clipped."""
    limit, norm = done.coefficients.get("max_grad_norm"), done.result.last_norm
    if limit is None:
        return 1.0
    return max(1.0, (norm + 1e-6) / limit)


def norms_by_part(flat: FlatParameters, module: nn.Module, tensor: Tensor) -> dict[str, float]:
    """Euclidean norms of a flat tensor's pieces, grouped as the module's parameters are."""
    with torch.no_grad():
        squares = torch.stack(torch._foreach_norm(flat.split(tensor.detach()))).double().square().tolist()
    return {part: sum(squares[i] for i in numbers) ** 0.5 for part, numbers in flat.by_part(module).items()}


def _dead_units(trainer: OnPolicyTrainer, batch: Batch) -> Row:
    """Share of units that are zero for all of a sample of the rollout: by layer, and of all."""
    row: Row = {}
    total = silent = 0
    for name, layer in rectified(trainer.policy, _sample(trainer, batch)).items():
        found = dead(layer)
        row[f"train/dead_relus/{name}"] = _number(found.float().mean())
        total, silent = total + found.numel(), silent + int(found.sum())
    if total:
        row["train/dead_relus"] = silent / total
    return row


def _sample(trainer: OnPolicyTrainer, batch: Batch) -> Any:
    """Some observations of the rollout, on the device of the policy."""
    most = IMAGES if trainer.policy.encoder.learns else VECTORS
    return parts(lambda tensor: _thinned(tensor, most).to(trainer.device), batch.obs)


def _thinned(tensor: Tensor, most: int) -> Tensor:
    """At most so many rows, evenly spread, the first one among them."""
    return tensor[:: max(1, -(-len(tensor) // most))]


def _of_the_critic(trainer: OnPolicyTrainer, done: Iteration) -> Row:
    """How its predictions and targets are spread, and how many predictions the update moved beyond their clip."""
    batch, policy = done.batch, trainer.policy
    row: Row = {"train/return_target_std": _number(batch["target"].std(correction=0))}
    value = trainer.algorithm.expected(batch)
    if value is None:
        return row
    row |= {
        "train/value_std": _number(value.std(correction=0)),
        "train/value_min": _number(value.min()),
        "train/value_max": _number(value.max()),
    }
    limit = done.coefficients.get("clip_range_vf")
    if limit is not None and policy.state_shape is None:
        with torch.no_grad():
            now = policy.values(_sample(trainer, batch))
        old = _thinned(value, IMAGES if policy.encoder.learns else VECTORS).to(now.device)
        row["train/clip_fraction_vf"] = _number(((now - old).abs() > limit).float().mean())
    return row


# --- what was seen and done ---------------------------------------------------------------------------------------------


def _rewards(rollout: Rollout) -> Row:
    """As the env gave them."""
    reward = rollout.own_reward[: rollout.length]
    if rollout.valid is not None:
        reward = reward[rollout.valid[: rollout.length]]
    return {
        "rollout/reward_std": float(reward.std(dtype=np.float64)),
        "rollout/reward_min": float(reward.min()),
        "rollout/reward_max": float(reward.max()),
    }


def _observations(batch: Batch) -> Row:
    """All components together, as the env gave them."""
    pieces = batch.obs.values() if isinstance(batch.obs, dict) else [batch.obs]
    obs = torch.cat([_thinned(piece, VECTORS).double().flatten() for piece in pieces])
    return {
        "rollout/obs_mean": _number(obs.mean()),
        "rollout/obs_std": _number(obs.std(correction=0)),
        "rollout/obs_min": _number(obs.min()),
        "rollout/obs_max": _number(obs.max()),
    }


def _actions(trainer: OnPolicyTrainer, batch: Batch) -> Row:
    """Of choices: how often each was taken. Of continuous actions: their mean and spread, as the policy chose them."""
    choices, taken = choices_of(trainer.envs.action_space), batch["action"].cpu().numpy()
    if not choices:
        return {
            "rollout/action_mean": float(taken.mean(dtype=np.float64)),
            "rollout/action_std": float(taken.std(axis=0, dtype=np.float64).mean()),
        }
    columns = taken.reshape(len(taken), -1).astype(np.int64)
    counts = [np.bincount(columns[:, i], minlength=n) for i, n in enumerate(choices)]
    row: Row = {
        "rollout/action_entropy": sum(_entropy(count) for count in counts),
        "rollout/action_masked": _masked(batch),
    }
    if len(counts) == 1 and choices[0] <= MOST_SHARES:
        labels = trainer.config.spec.actions
        if len(labels) != choices[0]:
            labels = [str(i) for i in range(choices[0])]
        shares = counts[0] / counts[0].sum()
        row |= {f"rollout/action_share/{label}": float(share) for label, share in zip(labels, shares, strict=True)}
    return row


def _masked(batch: Batch) -> float:
    """Share of the choices that masks ruled out; 0 without masks."""
    if batch.mask is None:
        return 0.0
    return 1.0 - int(batch.mask.count_nonzero()) / batch.mask.numel()


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return max(0.0, float(-(shares * np.log(shares)).sum()))


def _outputs(rollout: Rollout) -> Row:
    """The parameters of the action distribution: logits, or means and log standard deviations."""
    params = _params(rollout)
    if params is None:
        return {}
    return {
        "train/output_mean": _number(params.mean()),
        "train/output_std": _number(params.std(correction=0)),
        "train/output_max": _number(params.abs().max()),
    }


def _params(rollout: Rollout) -> Tensor | None:
    """What the network said of actions while collecting, impossible ones left out."""
    if "params" not in rollout:
        return None
    all_rows = rollout["params"][: rollout.length].flatten(0, 1)
    if rollout.valid is not None:
        counts = torch.from_numpy(np.flatnonzero(rollout.valid[: rollout.length]))
        all_rows = all_rows[counts.to(all_rows.device)]
    params = _thinned(all_rows, ROWS).double().flatten()
    possible = params[params > IMPOSSIBLE / 2]
    return possible if possible.numel() else None


# --- for trackers -------------------------------------------------------------------------------------------------------


def histograms(trainer: OnPolicyTrainer, done: Iteration) -> dict[str, Histogram]:
    """How gradients, weights, actions, outputs, values and advantages are spread."""
    flat, found = trainer.flat, dict[str, Histogram]()
    pieces = {"gradients": flat.split(flat.grads), "weights": flat.split(flat.values.detach())}
    factor = _unclipped(trainer, done)
    for part, numbers in flat.by_part(trainer.policy).items():
        for name, split in pieces.items():
            values = torch.cat([split[i].detach().flatten() for i in numbers])
            scaled = _values(values) * (factor if name == "gradients" else 1.0)
            found[f"histograms/{name}/{part}"] = spread(scaled)
    choices, taken = choices_of(trainer.envs.action_space), done.batch["action"].cpu().numpy()
    if len(choices) == 1:
        counts = np.bincount(taken.astype(np.int64).ravel(), minlength=choices[0])
        found["histograms/actions"] = Histogram(counts.tolist(), (np.arange(len(counts) + 1) - 0.5).tolist())
    else:
        found["histograms/actions"] = spread(taken.ravel()[:MOST_VALUES])
    params = _params(trainer.rollout)
    if params is not None:
        found["histograms/outputs"] = spread(_values(params))
    for name, column in (("values", trainer.algorithm.expected(done.batch)), *_targets(done.batch)):
        if column is not None:
            found[f"histograms/{name}"] = spread(_values(column))
    return found


def _targets(batch: Batch) -> list[tuple[str, Tensor]]:
    """What an algorithm of advantages learns from."""
    return [(f"{name}s", batch[name]) for name in ("advantage", "target") if name in batch]


def _values(tensor: Tensor) -> np.ndarray:
    values: np.ndarray = _thinned(tensor.flatten(), MOST_VALUES).double().cpu().numpy()
    return values


def spread(values: np.ndarray) -> Histogram:
    """Counts in bins of equal width; what is not finite is left out."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return Histogram([0.0], [0.0, 1.0])
    counts, edges = np.histogram(finite, BINS)
    return Histogram(counts.tolist(), edges.tolist())

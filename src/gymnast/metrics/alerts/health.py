"""Whether updates move the policy as far as they should: KL, clipping, gradients, dead units."""

from __future__ import annotations

import math

from gymnast.metrics.alerts.alert import Numbers, rule
from gymnast.metrics.alerts.course import Now
from gymnast.metrics.alerts.ordinary import budget, learning_rate

_ENOUGH_UPDATES = 1000
"""Optimizer steps below which a budget itself may be why little is learnt."""
FAIR_START = 0.3
"""Share of the budget after which a run should show what it does."""


def _move_less(now: Now, numbers: Numbers) -> tuple[str, ...]:
    facts = now.facts
    lines = []
    rate, good = facts.number("algo.learning_rate"), learning_rate(facts)
    if rate is not None and rate > 2 * good:
        lines.append(f"algo.learning_rate={good:g} (now {rate:g}).")
    elif rate is not None:
        lines.append(f"algo.learning_rate={rate / 3:.1g} (now {rate:g}).")
    epochs = facts.number("algo.n_epochs")
    if epochs is not None and epochs > 4:
        lines.append(
            f"algo.n_epochs=4 (now {epochs:g}): every further pass moves the policy away from its own samples."
        )
    if facts.algorithm == "ppo" and facts.number("algo.target_kl") is None:
        lines.append("algo.target_kl=0.02: ends the epochs of an iteration when the policy has moved enough.")
    return tuple(lines)


def _move_more(now: Now, numbers: Numbers) -> tuple[str, ...]:
    facts = now.facts
    lines = []
    rate, good = facts.number("algo.learning_rate"), learning_rate(facts)
    if rate is not None and rate < good / 3:
        lines.append(f"algo.learning_rate={good:g} (now {rate:g}).")
    limit, norm = facts.number("algo.max_grad_norm"), now.get("train/grad_norm")
    if limit is not None and norm is not None and norm.recent_mean() > 100 * limit:
        lines.append(
            f"algo.max_grad_norm=0.5 (now {limit:g}): gradients of {norm.recent_mean():.2g} are cut down to that."
        )
    clip = facts.number("algo.clip_range")
    if clip is not None and clip < 0.05:
        lines.append(f"algo.clip_range=0.2 (now {clip:g}): outside the clip there is no gradient.")
    targets = now.get("train/return_target_mean")
    if targets is not None and abs(targets.recent_mean()) > 100:
        lines.append("algo.normalize_reward=true: the critic's huge errors use up the clipped gradient.")
    if facts.planned_updates is not None and facts.planned_updates < _ENOUGH_UPDATES:
        lines.append(
            f"train.env_steps={budget(facts)}: this budget has {facts.planned_updates:,} optimizer steps in all."
        )
    return (*lines, "If returns are all equal, there is nothing to learn from yet: see the alert no_reward.")


@rule(
    "kl_high",
    "warning",
    "train/approx_kl",
    says="The policy moves by a KL of {kl:.3g} per iteration (mean of 10); 0.005 to 0.05 is usual.",
    means="Each update leaves the region in which its samples say anything, so it destroys as much as it learns.",
    advise=_move_less,
    threshold=0.15,
)
def kl_high(now: Now, threshold: float) -> Numbers | None:
    """Updates that are too large, ten iterations long."""
    kl = now["train/approx_kl"]
    if not kl.full() or kl.recent_mean() <= threshold or now.solved():
        return None
    return {"kl": kl.recent_mean()}


@rule(
    "kl_spike",
    "info",
    "train/approx_kl",
    says="One update moved the policy by a KL of {kl:.3g}.",
    means="A single step that large can throw a good policy away. Once is no harm; look at what the return did next.",
    advise=_move_less,
    threshold=0.5,
)
def kl_spike(now: Now, threshold: float) -> Numbers | None:
    """One update that is far too large."""
    kl = now["train/approx_kl"].last
    if kl > threshold:
        return {"kl": kl}
    return None


def _clip_advice(now: Now, numbers: Numbers) -> tuple[str, ...]:
    if numbers["clip"] < 0.05:
        return (f"algo.clip_range=0.2 (now {numbers['clip']:g}): so narrow a clip stops nearly every sample.",)
    return _move_less(now, numbers)


@rule(
    "clip_fraction_high",
    "warning",
    "train/clip_fraction",
    says="{fraction:.0%} of the samples leave the clip range of {clip:g} (mean of 10 iterations); up to 30% is usual.",
    means=(
        "Clipped samples have no gradient. Either the policy moves too far per iteration, or the clip is too narrow "
        "to move at all."
    ),
    advise=_clip_advice,
    threshold=0.5,
)
def clip_fraction_high(now: Now, threshold: float) -> Numbers | None:
    """Most samples are clipped."""
    fraction = now["train/clip_fraction"]
    if not fraction.full() or fraction.recent_mean() <= threshold:
        return None
    return {"fraction": fraction.recent_mean(), "clip": now.facts.number("algo.clip_range") or math.nan}


@rule(
    "clip_fraction_zero",
    "info",
    "train/clip_fraction",
    says="Hardly any sample ({fraction:.3%}) leaves the clip range of {clip:g} (mean of 10 iterations).",
    means="Updates are so small that clipping plays no part: there is room for larger ones.",
    advise=_move_more,
    threshold=0.0005,
)
def clip_fraction_zero(now: Now, threshold: float) -> Numbers | None:
    """No sample is clipped, in a policy that has far to go. Near the end a falling rate makes it so on purpose."""
    fraction = now["train/clip_fraction"]
    early = FAIR_START / 3 <= now.progress <= 1.0 - FAIR_START
    moves_once = now.facts.updates_per_iteration == 1  # the ratio is 1 before the first optimizer step of a rollout
    if not early or moves_once or not fraction.full() or fraction.recent_mean() >= threshold or now.learned():
        return None
    return {"fraction": fraction.recent_mean(), "clip": now.facts.number("algo.clip_range") or math.nan}


@rule(
    "policy_frozen",
    "warning",
    "train/approx_kl",
    says="All updates so far moved the policy by less than {path:.2g} in total, after {progress:.0%} of the budget.",
    means=(
        "The policy has hardly changed since the start: whatever the gradients are, little of them reaches the weights."
    ),
    advise=_move_more,
    threshold=0.3,
)
def policy_frozen(now: Now, threshold: float) -> Numbers | None:
    """The policy has hardly moved since the start.

    The square root of twice a KL bounds a distance, and distances add up: `rows · √(2 · mean)` is at least their sum.
    """
    kl = now["train/approx_kl"]
    one_update = now.facts.algorithm == "ppo" and now.facts.updates_per_iteration == 1
    if (
        now.progress < FAIR_START or not kl.full() or one_update
    ):  # with one update the ratio is still 1 when it is measured
        return None
    path = kl.count * math.sqrt(2.0 * max(0.0, kl.mean))
    if path >= threshold or now.learned():
        return None
    return {"path": path, "progress": now.progress}


def _clip_gradients(now: Now, numbers: Numbers) -> tuple[str, ...]:
    facts = now.facts
    lines = []
    if numbers["limit"] < 0.05:
        lines.append(f"algo.max_grad_norm=0.5 (now {numbers['limit']:g}).")
    weight = facts.number("algo.vf_coef")
    if weight is not None and weight > 2:
        lines.append(f"algo.vf_coef=0.5 (now {weight:g}): the critic's gradient takes all of the norm.")
    targets = now.get("train/return_target_mean")
    if targets is not None and abs(targets.recent_mean()) > 100:
        lines.append("algo.normalize_reward=true: returns of that size make the critic's gradient huge.")
    return (*lines, "Or algo.max_grad_norm=null, which lets Adam do the scaling.")


@rule(
    "grad_clipped",
    "warning",
    "train/grad_norm",
    says="The gradient's norm is {norm:.3g}, {times:,.0f} times the limit of {limit:g} (algo.max_grad_norm).",
    means=(
        "Clipping is meant for outliers. When it cuts every gradient by thousands, the larger part (mostly the "
        "critic's) drowns the other."
    ),
    advise=_clip_gradients,
    threshold=1000,
)
def grad_clipped(now: Now, threshold: float) -> Numbers | None:
    """Gradients are a thousand times as long as what clipping leaves of them."""
    norm, limit = now["train/grad_norm"], now.facts.number("algo.max_grad_norm")
    if not limit or not norm.full() or norm.recent_mean() <= threshold * limit:
        return None
    return {"norm": norm.recent_mean(), "limit": limit, "times": norm.recent_mean() / limit}


@rule(
    "grad_spike",
    "info",
    "train/grad_norm",
    says="The gradient's norm is {norm:.3g}, {times:.0f} times its mean so far.",
    means="The gradient of one batch is much larger than all before it: a new kind of episode, or the start of divergence.",
    advise=_move_less,
    threshold=30,
)
def grad_spike(now: Now, threshold: float) -> Numbers | None:
    """One gradient that is far longer than those before."""
    norm = now["train/grad_norm"]
    before = (norm.mean * norm.count - norm.last) / max(1, norm.count - 1)
    if not norm.full() or before <= 0 or norm.last <= threshold * before:
        return None
    return {"norm": norm.last, "times": norm.last / before}


@rule(
    "grad_vanished",
    "warning",
    "train/grad_norm",
    "rollout/return_std",
    says="The gradient's norm is {norm:.2g} although returns differ.",
    means=(
        "Nothing is learnt from what the episodes show: the policy is certain of every action, or its units are dead."
    ),
    advise=lambda now, numbers: (
        (
            f"algo.learning_rate={learning_rate(now.facts):g}: a rate that is too high saturates the policy in a few "
            "updates."
        ),
        "policy.activation=tanh: ReLUs that output zero for every input pass no gradient on.",
        "algo.ent_coef=0.01 keeps the policy from becoming certain.",
    ),
    threshold=1e-6,
)
def grad_vanished(now: Now, threshold: float) -> Numbers | None:
    """No gradient, while episodes do differ."""
    norm, spread = now["train/grad_norm"], now["rollout/return_std"]
    if not norm.full() or norm.recent_mean() >= threshold or spread.recent_mean() <= 0 or now.solved():
        return None
    return {"norm": norm.recent_mean()}


@rule(
    "dead_relus",
    "warning",
    "train/dead_relus",
    says="{share:.0%} of the hidden units are zero for every input.",
    means=(
        "A dead ReLU has no gradient and never comes back; the network that learns is smaller than the one you asked "
        "for."
    ),
    advise=lambda now, numbers: (
        f"algo.learning_rate={learning_rate(now.facts):g} (now {now.facts.number('algo.learning_rate'):g}).",
        "policy.activation=tanh, or leaky_relu, which has a gradient everywhere.",
        "policy.normalize_obs=true: inputs of large size push units to one side.",
    ),
    threshold=0.5,
)
def dead_relus(now: Now, threshold: float) -> Numbers | None:
    """Most ReLUs output zero for the whole rollout."""
    share = now["train/dead_relus"]
    if share.last > threshold:
        return {"share": share.last}
    return None


@rule(
    "kl_stops_always",
    "info",
    "train/kl_stops",
    "iteration",
    says="algo.target_kl={target:g} cut {stopped:.0%} of the iterations short.",
    means="The limit, not the number of epochs, decides how much is learnt from each rollout.",
    advise=lambda now, numbers: (
        f"algo.target_kl=0.02 (now {numbers['target']:g}) if it is smaller than that; else a lower algo.learning_rate.",
    ),
    threshold=0.9,
)
def kl_stops_always(now: Now, threshold: float) -> Numbers | None:
    """Nearly every iteration is ended by target_kl."""
    stops, iterations = now["train/kl_stops"].last, now["iteration"].last
    target = now.facts.number("algo.target_kl")
    if target is None or iterations < 20 or stops <= threshold * iterations:
        return None
    return {"stopped": stops / iterations, "target": target}


RULES = (
    kl_high,
    kl_spike,
    clip_fraction_high,
    clip_fraction_zero,
    policy_frozen,
    grad_clipped,
    grad_spike,
    grad_vanished,
    dead_relus,
    kl_stops_always,
)

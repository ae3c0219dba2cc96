"""Whether the policy still tries actions, and not only that."""

from __future__ import annotations

import math

from gymnast.metrics.alerts.alert import Finding, Numbers, rule
from gymnast.metrics.alerts.course import Now
from gymnast.metrics.alerts.ordinary import learning_rate

_LOOKS = 3
"""Closer looks at the rollout's actions in a row: they come once in a while, not in every row."""
_SAMPLES = 100
_PER_CHOICE = 10
"""Env steps, in all and per choice, before the first rollout is checked."""
_SPREADS = (0.1, 10.0)
"""Times the std of uniform play within which a first policy's is fine: Gaussians begin with 1, whatever the bounds are."""
_TRIED = 0.3
"""Share of the budget after which exploration alone is too little."""


def _explore_more(now: Now, numbers: Numbers) -> tuple[str, ...]:
    facts = now.facts
    lines = []
    rate, good = facts.number("algo.learning_rate"), learning_rate(facts)
    if rate is not None and rate > 3 * good:
        lines.append(
            f"algo.learning_rate={good:g} (now {rate:g}): large steps make a policy certain before it has seen much."
        )
    bonus = facts.number("algo.ent_coef")
    if bonus is not None and bonus < 0.01:
        lines.append(f"algo.ent_coef=0.01 (now {bonus:g}): rewards the policy for staying undecided.")
    return (
        *lines,
        "A collapsed policy does not recover: start again. `gymnast rewind` shows the update that did it.",
    )


@rule(
    "entropy_collapse",
    "warning",
    "train/entropy",
    says="The entropy is {entropy:.2g} of at most {limit:.3g}, but returns are poor.",
    means=(
        "The policy is certain of its actions without having found good ones. Without exploration it cannot find any."
    ),
    advise=_explore_more,
    threshold=0.02,
)
def entropy_collapse(now: Now, threshold: float) -> Numbers | None:
    """A policy over discrete actions that hardly chooses any more, and is not good."""
    limit, entropy = now.facts.entropy_limit, now["train/entropy"]
    if not limit or not entropy.full() or entropy.recent_mean() >= threshold * limit:
        return None
    score = now.score()
    if score is None or score > 0.5:  # without a threshold a certain policy may well be a good one
        return None
    return {"entropy": entropy.recent_mean(), "limit": limit}


@rule(
    "entropy_bonus_high",
    "warning",
    "train/entropy",
    "train/ent_coef",
    says=(
        "After {progress:.0%} of the budget the policy still plays at {share:.0%} of full randomness; algo.ent_coef "
        "is {bonus:g}."
    ),
    means="The bonus for being random outweighs what the advantages say, so the policy stays random on purpose.",
    advise=lambda now, numbers: (
        f"algo.ent_coef=0.005 (now {numbers['bonus']:g}); with normalised advantages 0 to 0.02 is usual.",
        "Or let it fall: algo.ent_coef=lin_0.01.",
    ),
    threshold=0.95,
)
def entropy_bonus_high(now: Now, threshold: float) -> Numbers | None:
    """The policy stays near uniform play under a bonus that can hold it there."""
    facts, bonus = now.facts, now["train/ent_coef"].last
    limit, entropy = facts.entropy_limit, now["train/entropy"]
    if not limit or now.progress < _TRIED or not entropy.full() or entropy.recent_mean() < threshold * limit:
        return None
    if bonus <= 0.1 * _advantage_scale(now):
        return None
    return {"share": entropy.recent_mean() / limit, "bonus": bonus, "progress": now.progress}


def _advantage_scale(now: Now) -> float:
    """Size of the advantages as the loss sees them."""
    if now.facts.get("algo.normalize_advantage") in ("batch", "rollout"):
        return 1.0
    spread = now.get("train/advantage_std")
    if spread is None:
        return 1.0
    return spread.recent_mean()


@rule(
    "action_std_small",
    "warning",
    "train/action_std",
    says=(
        "Actions vary by {std:.2g} around their mean, {share:.1%} of what the action space allows, and returns are "
        "poor."
    ),
    means="A policy that always does nearly the same cannot find out what else would pay.",
    advise=lambda now, numbers: (
        f"policy.log_std_init=0 (now {now.facts.number('policy.log_std_init') or 0:g}).",
        *_explore_more(now, numbers)[:-1],
    ),
    threshold=0.05,
)
def action_std_small(now: Now, threshold: float) -> Numbers | None:
    """Gaussian actions that hardly vary, while returns are poor."""
    std, span = now["train/action_std"], now.facts.action_span or 1.0
    score = now.score()
    if std.count < 5 or std.last >= threshold * span or score is None or score > 0.5:
        return None
    return {"std": std.last, "share": std.last / span}


@rule(
    "action_std_large",
    "warning",
    "train/action_std",
    says="Actions vary by {std:.3g} around their mean, {times:.1f} times half the width of the action space.",
    means=("Nearly every action is clipped to a bound, so the mean, which is what the policy learns, hardly matters."),
    advise=lambda now, numbers: (
        f"policy.log_std_init=0 (now {now.facts.number('policy.log_std_init') or 0:g}).",
        f"algo.ent_coef=0 (now {now.facts.number('algo.ent_coef') or 0:g}): the bonus widens Gaussians without end.",
    ),
    threshold=4,
)
def action_std_large(now: Now, threshold: float) -> Numbers | None:
    """Gaussian actions so wide that most are clipped."""
    std, span = now["train/action_std"], now.facts.action_span
    if not span or std.count < 5 or std.last <= threshold * span or now.facts.get("policy.squash_actions"):
        return None
    return {"std": std.last, "times": std.last / span}


@rule(
    "constant_action",
    "warning",
    "rollout/action_entropy",
    says=(
        "The policy plays nearly always the same action: the rollout's actions have an entropy of {entropy:.2g} of at "
        "most {limit:.3g}."
    ),
    means="The policy does the same whatever it observes, so it no longer learns what other actions would bring.",
    advise=_explore_more,
    threshold=0.01,
)
def constant_action(now: Now, threshold: float) -> Numbers | None:
    """The rollout's action histogram has one bar, and the policy is not good."""
    limit, entropy = now.facts.entropy_limit, now["rollout/action_entropy"]
    if not limit or entropy.count < _LOOKS or now.learned():
        return None
    latest = list(entropy.recent)[-_LOOKS:]
    if max(latest) < threshold * limit:
        return {"entropy": latest[-1], "limit": limit}
    return None


def _begins_free(now: Now) -> bool:
    """Whether this row is the first rollout of new weights, long enough to check, and no mask ruled an action out.

    What `env.action_mask` says does not tell whether the env gives masks; the rollout does. A run of a version that did not
    log it is not checked.
    """
    facts = now.facts
    if now.rows > 1 or facts.get("train.init_from"):
        return False
    if now.step < max(_SAMPLES, _PER_CHOICE * max(facts.actions, default=0)):
        return False
    return not facts.actions or now.row.get("rollout/action_masked") == 0


@rule(
    "start_not_uniform",
    "warning",
    "rollout/action_entropy",
    says="The first rollout's actions have an entropy of {entropy:.3g}; uniform play has {limit:.3g}.",
    means=(
        "A fresh policy should try all actions alike. One that begins with a preference explores the others late or "
        "never."
    ),
    advise=lambda now, numbers: (
        "policy.init=orthogonal: its small last layer makes the first policy uniform.",
        "policy.normalize_obs=true: with huge observations even small weights decide the action.",
    ),
    threshold=0.85,
)
def start_not_uniform(now: Now, threshold: float) -> Numbers | None:
    """The first rollout of a policy that begins from nothing is far from uniform play."""
    entropy, limit = now["rollout/action_entropy"], now.facts.entropy_limit
    if not limit or not _begins_free(now) or entropy.last >= threshold * limit:
        return None
    return {"entropy": entropy.last, "limit": limit}


def _discrete_start(now: Now) -> Numbers | None:
    """Mean and std of the numbers of the first actions, next to those of uniform play; None unless there is one action."""
    if len(now.facts.actions) != 1 or now.facts.actions[0] < 2:
        return None
    n = now.facts.actions[0]
    labels = now.facts.get("spec.actions") or ()
    if len(labels) != n:
        labels = range(n)
    found = [now.row.get(f"rollout/action_share/{label}") for label in labels]
    shares = [share for share in found if share is not None]
    if len(shares) != n:  # there are too many to log them
        return None
    mean = math.fsum(number * share for number, share in enumerate(shares))
    variance = math.fsum((number - mean) ** 2 * share for number, share in enumerate(shares))
    middle = (n - 1) / 2
    return {
        "mean": mean,
        "std": math.sqrt(variance),
        "middle": middle,
        "uniform": math.sqrt((n * n - 1) / 12),
        "reach": middle,
    }


def _continuous_start(now: Now) -> Numbers | None:
    """Mean and std of the first continuous actions, next to those of uniform play; None if a bound is open."""
    mean, std, bounds = now.row.get("rollout/action_mean"), now.row.get("rollout/action_std"), now.facts.action_bounds
    if mean is None or std is None or bounds is None:
        return None
    low, high = bounds
    return {
        "mean": mean,
        "std": std,
        "middle": (low + high) / 2,
        "uniform": (high - low) / math.sqrt(12),
        "reach": (high - low) / 2,
    }


@rule(
    "start_off_centre",
    "warning",
    "env_steps",
    says=(
        "The first rollout's actions have a mean of {mean:.3g} and a std of {std:.3g}; uniform play has {middle:.3g} "
        "and {uniform:.3g}."
    ),
    means="A fresh policy should be in the middle of its actions and reach all of them; this one starts off to one side.",
    advise=lambda now, numbers: (
        "policy.init=orthogonal: its small last layer puts the first policy in the middle.",
        "policy.log_std_init=0, where actions are continuous: a spread of 1.",
        "policy.normalize_obs=true: with huge observations even small weights decide the action.",
    ),
    threshold=0.3,
    every_row=True,
)
def start_off_centre(now: Now, threshold: float) -> Finding | None:
    """The first rollout of a policy that begins from nothing has another mean or another spread than uniform play."""
    if not _begins_free(now):
        return None
    if now.facts.actions:
        found, metric = _discrete_start(now), "rollout/action_entropy"
    else:
        found, metric = _continuous_start(now), "rollout/action_mean"
    if found is None:
        return None
    chance = 3 * found["uniform"] / math.sqrt(now.step)
    centred = abs(found["mean"] - found["middle"]) <= threshold * found["reach"] + chance
    narrowest, widest = _SPREADS
    if centred and narrowest <= found["std"] / found["uniform"] <= widest:
        return None
    return Finding(found, (metric,))


RULES = (
    entropy_collapse,
    entropy_bonus_high,
    action_std_small,
    action_std_large,
    constant_action,
    start_not_uniform,
    start_off_centre,
)

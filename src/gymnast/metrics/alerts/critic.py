"""Whether the critic predicts returns."""

from __future__ import annotations

from gymnast.metrics.alerts.alert import Numbers, rule
from gymnast.metrics.alerts.course import Now
from gymnast.metrics.alerts.ordinary import learning_rate

_LATE = 0.6
"""Share of the budget after which a critic should predict something."""


def _better_critic(now: Now, numbers: Numbers) -> tuple[str, ...]:
    facts = now.facts
    lines = []
    targets = now.get("train/return_target_mean")
    if targets is not None and abs(targets.recent_mean()) > 100 and not facts.get("algo.normalize_reward"):
        lines.append(f"algo.normalize_reward=true: the critic must reach values of {targets.recent_mean():.3g}.")
    gamma = facts.number("algo.gamma")
    if gamma is not None and gamma > 0.999:
        lines.append(f"algo.gamma=0.99 (now {gamma:g}): nearer returns are easier to predict.")
    weight = facts.number("algo.vf_coef")
    if weight is not None and weight < 0.1:
        lines.append(f"algo.vf_coef=0.5 (now {weight:g}).")
    rate = facts.number("algo.learning_rate")
    if rate is not None and not learning_rate(facts) / 5 <= rate <= learning_rate(facts) * 5:
        lines.append(f"algo.learning_rate={learning_rate(facts):g} (now {rate:g}).")
    if not facts.get("policy.normalize_obs") and facts.get("policy.hidden"):
        lines.append("policy.normalize_obs=true: features of very different size are hard to learn from.")
    return (*lines, "policy.critic_hidden: a larger critic, where the settings above are as they should be.")


@rule(
    "critic_useless",
    "warning",
    "train/explained_variance",
    says=(
        "The critic explains {explained:.2f} of the returns' variance (mean of 10) after {progress:.0%} of the "
        "budget; 1 is perfect."
    ),
    means=(
        "At 0 or below, a constant would predict as well. Advantages are then mostly noise, and the policy learns "
        "slowly or not at all."
    ),
    advise=_better_critic,
    threshold=0.02,
)
def critic_useless(now: Now, threshold: float) -> Numbers | None:
    """Explained variance at or below zero when half of the run is over.

    On a bandit every state is alike, so that there is nothing to explain; a return that never changes has no variance either.
    """
    explained = now["train/explained_variance"]
    bandit = now.get("rollout/regret") is not None
    if bandit or now.progress < _LATE or not explained.full() or now.learned():
        return None
    if explained.recent_mean() > threshold:
        return None
    return {"explained": explained.recent_mean(), "progress": now.progress}


@rule(
    "value_loss_blowup",
    "warning",
    "train/value_loss",
    "train/explained_variance",
    says=(
        "The value loss rose to {loss:.3g}, {times:,.0f} times its lowest, and the critic explains {explained:.2g} "
        "of the variance."
    ),
    means="The critic diverges: its errors grow faster than it can follow, and every advantage is computed from them.",
    advise=lambda now, numbers: (
        f"algo.learning_rate={learning_rate(now.facts):g}.",
        "algo.clip_range_vf=0.2 (PPO) or algo.value_loss=huber bound what one batch can do to the critic.",
        *_better_critic(now, numbers)[:1],
    ),
    threshold=100,
)
def value_loss_blowup(now: Now, threshold: float) -> Numbers | None:
    """The value loss has left its lowest level far behind while the critic got worse than a constant."""
    loss, explained = now["train/value_loss"], now["train/explained_variance"]
    if not loss.full() or not explained.full() or loss.best_low <= 0:
        return None
    if loss.smooth <= threshold * loss.best_low or explained.recent_mean() > -1.0:
        return None
    return {"loss": loss.smooth, "times": loss.smooth / loss.best_low, "explained": explained.recent_mean()}


RULES = (critic_useless, value_loss_blowup)

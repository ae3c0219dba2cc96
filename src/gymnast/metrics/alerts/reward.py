"""Whether there is a reward to learn from, and whether it and the observations have a size that networks can learn."""

from __future__ import annotations

from gymnast.metrics.alerts.alert import Numbers, rule
from gymnast.metrics.alerts.course import Now

_FAIR_TRY = 0.35
"""Share of the budget after which chance should have met a reward."""


def _scale(now: Now, numbers: Numbers) -> tuple[str, ...]:
    lines = []
    given = now.facts.wrapper("reward_scale")
    if given is not None:
        lines.append(
            f"env.wrappers: reward_scale multiplies by {given.get('factor'):g}; use a factor that brings returns "
            "to 1 … 10."
        )
    if not now.facts.get("algo.normalize_reward"):
        lines.append(
            "algo.normalize_reward=true divides rewards by the running spread of returns; what is reported stays "
            "as it is."
        )
    return tuple(lines)


@rule(
    "reward_scale_large",
    "warning",
    "train/return_target_mean",
    says="The critic's targets are {target:.3g} on average.",
    means=(
        "Networks begin near 0 and move by the learning rate, so targets of thousands take very long, and their "
        "gradients drown the policy's."
    ),
    advise=_scale,
    threshold=1000,
)
def reward_scale_large(now: Now, threshold: float) -> Numbers | None:
    """Targets that a critic cannot reach in a reasonable time."""
    target = now["train/return_target_mean"]
    if now.get("train/value_loss") is None or target.count < 5 or abs(target.recent_mean()) <= threshold:
        return None
    return {"target": target.recent_mean()}


@rule(
    "reward_scale_small",
    "warning",
    "rollout/return_std",
    says="As the learner sees them, returns have never differed by more than {spread:.2g}.",
    means="Differences that small drown in the critic's random first values, in the optimizer's eps and in the entropy bonus.",
    advise=_scale,
    threshold=0.01,
)
def reward_scale_small(now: Now, threshold: float) -> Numbers | None:
    """Returns that differ, but by next to nothing once wrappers have changed the reward."""
    spread, seen = now["rollout/return_std"], now.get("train/reward_mean")
    if now.facts.get("algo.normalize_reward") or spread.count < 5 or spread.high <= 0 or now.learned():
        return None
    size = spread.high
    own = now.get("rollout/reward_mean")
    if seen is not None and own is not None and own.mean != 0:
        size *= abs(seen.mean / own.mean)
    if size < threshold:
        return {"spread": size}
    return None


@rule(
    "no_reward",
    "warning",
    "rollout/return_max",
    "rollout/return_min",
    "rollout/episodes",
    says="All {episodes:,.0f} episodes so far returned {value:g}.",
    means=(
        "Episodes that are all worth the same say nothing about which actions are better. Nothing can be learnt "
        "until one differs."
    ),
    advise=lambda now, numbers: (
        "algo.ent_coef=0.01 or more: keep exploring until a reward is found.",
        "A longer env.time_limit, or an easier variant of the env first, makes the first reward more likely.",
        (
            "algo.normalize_reward=true and policy.normalize_obs=true keep the critic's noise, and with it "
            "exploration, alive."
        ),
        f"gymnast env audit {now.facts.get('env.id')} shows how often random play meets a reward.",
    ),
    threshold=50,
)
def no_reward(now: Now, threshold: float) -> Numbers | None:
    """Every episode so far had the same return, and the env is not solved by it."""
    high, low, episodes = now["rollout/return_max"], now["rollout/return_min"], now["rollout/episodes"].last
    if now.progress < _FAIR_TRY or episodes < threshold or high.high > low.low:
        return None
    if now.solved() or now.facts.solved_at is None:
        return None
    return {"episodes": episodes, "value": high.last}


@rule(
    "observations_large",
    "warning",
    "rollout/obs_max",
    "rollout/obs_min",
    says="Observations reach {largest:.3g}, and they are not normalised.",
    means="Inputs of that size saturate tanh units or kill ReLUs, and the largest feature hides all others.",
    advise=lambda now, numbers: ("policy.normalize_obs=true.",),
    threshold=100,
)
def observations_large(now: Now, threshold: float) -> Numbers | None:
    """Raw observations far from 1 without normalisation. Images and one-hot states are not meant."""
    facts, largest = now.facts, max(now["rollout/obs_max"].high, -now["rollout/obs_min"].low)
    if facts.get("policy.normalize_obs") or facts.get("env.atari") is not None or not facts.get("policy.hidden"):
        return None
    if largest > threshold:
        return {"largest": largest}
    return None


@rule(
    "observations_tiny",
    "warning",
    "rollout/obs_std",
    says="Observations vary by {spread:.2g} only, and they are not normalised.",
    means="The network sees nearly the same in every state and cannot tell them apart.",
    advise=lambda now, numbers: ("policy.normalize_obs=true.",),
    threshold=0.01,
)
def observations_tiny(now: Now, threshold: float) -> Numbers | None:
    """Raw observations that hardly vary, without normalisation; one state that never changes is a bandit's."""
    spread = now["rollout/obs_std"]
    if now.facts.get("policy.normalize_obs") or now.get("rollout/regret") is not None or spread.count < 3:
        return None  # observations are looked at once in a while, not in every row
    if 0 < spread.recent_mean() < threshold:
        return {"spread": spread.recent_mean()}
    return None


RULES = (reward_scale_large, reward_scale_small, no_reward, observations_large, observations_tiny)

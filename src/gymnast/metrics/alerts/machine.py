"""Speed, memory, and envs that are copies of each other."""

from __future__ import annotations

from gymnast.metrics.alerts.alert import Numbers, rule
from gymnast.metrics.alerts.course import Now

_SETTLED = 30.0
"""Seconds until caches are warm and speeds mean something."""


@rule(
    "fps_decay",
    "info",
    "time/fps_now",
    "time/seconds",
    says="Training runs at {now:,.0f} steps/s; it was {best:,.0f} at best.",
    means="Something takes more and more time: longer episodes to reset, a full machine, or an env that grows.",
    advise=lambda now, numbers: (
        "gymnast train … --profile writes where the time goes.",
        "time/env, time/learn and time/eval say whether envs, updates or evaluations became slow.",
    ),
    threshold=0.33,
)
def fps_decay(now: Now, threshold: float) -> Numbers | None:
    """Speed far below its best, after the start; rows with an evaluation are slow by themselves, so that means count."""
    speed = now["time/fps_now"]
    if now["time/seconds"].last < _SETTLED or not speed.full() or speed.recent_mean() >= threshold * speed.best_high:
        return None
    return {"now": speed.recent_mean(), "best": speed.best_high}


@rule(
    "memory_growth",
    "info",
    "sys/rss_mb",
    "time/seconds",
    says="The training process takes {now:,.0f} MB; it was {first:,.0f} MB at the start.",
    means="Memory that grows all the time ends in a killed process. Envs and renderers are the usual leaks.",
    advise=lambda now, numbers: (
        f"gymnast env check {now.facts.get('env.id')} watches one env alone.",
        "env.vectorization=workers keeps a leak out of the training process.",
    ),
    threshold=3,
)
def memory_growth(now: Now, threshold: float) -> Numbers | None:
    """A process several times as large as at its start, and by gigabytes."""
    memory = now["sys/rss_mb"]
    grown = memory.last - memory.first
    if now["time/seconds"].last < _SETTLED or memory.last <= threshold * memory.first or grown < 1000:
        return None
    return {"now": memory.last, "first": memory.first}


@rule(
    "identical_envs",
    "warning",
    "rollout/diversity",
    says="Only {share:.1%} of the transitions are distinct: {envs} envs give no more than one would.",
    means=(
        "Envs that play the same episode in lockstep cost time and teach nothing new; the batch is smaller than it looks."
    ),
    advise=lambda now, numbers: (
        "Look whether the env ignores reset(seed=…), or shares one random generator among its copies.",
        f"gymnast env check {now.facts.get('env.id')} tests exactly that.",
    ),
    threshold=0.01,
)
def identical_envs(now: Now, threshold: float) -> Numbers | None:
    """As many distinct transitions as one env gives, three iterations in a row."""
    envs, diversity = now.facts.n_envs, now["rollout/diversity"]
    bandit = now.get("rollout/regret") is not None  # a few arms and rewards are all the transitions there are
    if bandit or envs < 4 or diversity.count < 3:
        return None
    latest = [diversity.recent[-1], diversity.recent[-2], diversity.recent[-3]]
    if any(abs(value * envs - 1.0) > threshold for value in latest):
        return None
    return {"share": latest[0], "envs": envs}


RULES = (fps_decay, memory_growth, identical_envs)

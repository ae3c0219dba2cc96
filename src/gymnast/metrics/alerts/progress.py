"""Whether the run gets anywhere with its budget."""

from __future__ import annotations

from gymnast.metrics.alerts.alert import Numbers, rule
from gymnast.metrics.alerts.course import Now
from gymnast.metrics.alerts.ordinary import budget, learning_rate, n_steps

RETURN = "rollout/return_mean"
_LASTING = 0.15
"""Share of the budget for which a fall must last: runs that learn fall, too, and recover within a tenth of it."""


def _size(now: Now) -> float | None:
    """What counts as much of a return: the way to the threshold, else the spread that the run has seen."""
    if now.facts.span is not None:
        return now.facts.span
    course = now.get(RETURN)
    if course is None or course.high <= course.low:
        return None
    return course.high - course.low


@rule(
    "return_plateau",
    "info",
    RETURN,
    says="Training returns have not risen for {share:.0%} of the budget; the best mean was {best:.4g}, now {now:.4g}.",
    means="The policy goes on changing without getting better: it has converged, or it is stuck.",
    advise=lambda now, numbers: (
        "If the entropy is low: algo.ent_coef=0.01 keeps it exploring.",
        f"If the KL is high: algo.learning_rate=lin_{learning_rate(now.facts):g} lets steps become small.",
        "gymnast diagnose ranks what fits this run.",
    ),
    threshold=0.4,
)
def return_plateau(now: Now, threshold: float) -> Numbers | None:
    """No new best of the smoothed training return for a good part of the budget."""
    course, total = now[RETURN], now.facts.budget
    if not total or not course.full() or now.solved():
        return None
    share = (now.step - course.best_high_step) / total
    if share <= threshold:
        return None
    return {"share": share, "best": course.best_high, "now": course.smooth}


@rule(
    "return_fell",
    "warning",
    RETURN,
    says="Training returns fell from {best:.4g} (at {at:,.0f} env steps) to {now:.4g}.",
    means="The policy has lost what it could do. The best checkpoint still has it; later ones do not.",
    advise=lambda now, numbers: (
        f"algo.learning_rate=lin_{learning_rate(now.facts):g}: a rate that falls to 0 keeps what was learnt.",
        "algo.target_kl=0.02 (PPO) stops updates that go too far.",
        "policy.normalize_obs_steps: statistics that keep moving change a finished policy.",
        "RUN/best is the checkpoint that eval, video and export take.",
    ),
    threshold=0.5,
)
def return_fell(now: Now, threshold: float) -> Numbers | None:
    """More than half of what had been gained over the start is gone, and not just now."""
    course, size, total = now[RETURN], _size(now), now.facts.budget
    if size is None or not total or not course.full() or now.solved():
        return None
    gained = course.best_high - course.best_low
    if course.best_low_step > course.best_high_step:  # what came before the best is what was gained upon
        gained = course.best_high - course.first
    lost = course.best_high - course.smooth
    if gained < 0.3 * size or lost <= threshold * gained or now.step - course.best_high_step < _LASTING * total:
        return None
    return {"best": course.best_high, "at": float(course.best_high_step), "now": course.smooth}


@rule(
    "evaluation_below_training",
    "warning",
    "eval/return_mean",
    RETURN,
    says="Evaluations return {evaluated:.4g}, training {trained:.4g} at the same time.",
    means=(
        "What is evaluated is not what is trained: the most likely actions are worse than sampled ones, or the two "
        "envs differ."
    ),
    advise=lambda now, numbers: (
        "eval.deterministic=false if the task needs random actions (hidden state, symmetric choices).",
        "eval.env and env.wrappers: evaluation may lack what training has, such as a shorter time limit.",
        "More training: greedy play can lag behind while the policy is nearly undecided.",
    ),
    threshold=0.5,
)
def evaluation_below_training(now: Now, threshold: float) -> Numbers | None:
    """Two evaluations in a row that are far worse than training."""
    evaluated, trained, size = now["eval/return_mean"], now[RETURN], _size(now)
    if size is None or evaluated.count < 2 or now.facts.span is None:
        return None
    latest = [evaluated.recent[-1], evaluated.recent[-2]]
    if max(latest) >= trained.smooth - threshold * size or trained.best_low >= trained.smooth:
        return None
    return {"evaluated": latest[0], "trained": trained.smooth}


@rule(
    "few_updates",
    "warning",
    "iteration",
    says="The whole budget of {steps:,.0f} env steps allows {updates:.0f} optimizer steps.",
    means="A network needs hundreds of small steps. With a few, not even a perfect gradient gets it anywhere.",
    advise=lambda now, numbers: (
        f"algo.n_steps={n_steps(now.facts)} (now {now.facts.get('algo.n_steps')}): shorter rollouts, more of them.",
        "algo.batch_size=0.25 and algo.n_epochs=4 (PPO): several updates per rollout.",
        f"train.env_steps={budget(now.facts)}.",
    ),
    threshold=60,
)
def few_updates(now: Now, threshold: float) -> Numbers | None:
    """A budget that is over after a handful of optimizer steps."""
    updates = now.facts.planned_updates
    if updates is None or updates >= threshold:
        return None
    return {"updates": float(updates), "steps": float(now.facts.budget or 0)}


@rule(
    "still_rising",
    "info",
    RETURN,
    says="The budget is nearly over and returns still rise ({gain:.3g} in the last third).",
    means="The run ended while it was still learning.",
    advise=lambda now, numbers: (
        f"train.env_steps={budget(now.facts)}: `gymnast resume` goes on from here, `gymnast train` begins anew "
        "with schedules stretched.",
    ),
    threshold=0.1,
)
def still_rising(now: Now, threshold: float) -> Numbers | None:
    """A best return at the very end, below the threshold."""
    course, size = now[RETURN], _size(now)
    if size is None or now.progress < 0.95 or course.count < 5 or now.solved():
        return None
    before = min(course.recent)
    gain = course.smooth - before
    if course.best_high_step < now.step or gain <= threshold * size / 3:
        return None
    return {"gain": gain}


RULES = (return_plateau, return_fell, evaluation_below_training, few_updates, still_rising)

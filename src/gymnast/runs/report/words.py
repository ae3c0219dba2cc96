"""Sentences that both forms of a report share."""

from __future__ import annotations

import shlex

from gymnast.metrics.drawing import clock
from gymnast.metrics.verdict import shown
from gymnast.runs.report.facts import Film, Report, Scored

SOLVED, LEARNING = "solved", "learning"


def headline(report: Report) -> str:
    """The verdict in one sentence: that of the evaluations if there is one, else the diagnosis."""
    return report.diagnosis.verdict


def ending(report: Report) -> str:
    """`finished: solved, after 19,968 env steps (624 vec steps) in 0:07`."""
    status = report.status
    why = f": {status.stop_reason}" if status.stop_reason else ""
    steps = f"{status.env_steps:,} env steps ({status.vec_steps:,} vec steps)"
    return f"{report.state}{why}, after {steps} in {clock(status.wall_seconds)}"


def score_text(scored: Scored, threshold: float | None) -> str:
    """`500.0, 95 % interval 498.1 to 501.9`."""
    text = shown(scored.score, threshold, digits=4)
    if scored.exact is not None:
        return f"{text} (exact expectation)"
    if scored.interval is None:
        return text
    low, high = (shown(end, threshold, digits=4) for end in scored.interval)
    return f"{text} (95 % interval {low} to {high})"


def quality(report: Report) -> list[tuple[str, str]]:
    """Numbers that say how good the run was."""
    status = report.status
    found = []
    if status.efficiency is not None:
        found.append(("efficiency", f"{status.efficiency:.3f} (random play 0, solved from the start 1)"))
    if status.vec_steps_to_solved is not None:
        found.append(("solved after", f"{status.vec_steps_to_solved:,} vec steps"))
    if status.seconds_to_solved is not None:
        found.append(("solved after", f"{status.seconds_to_solved:.1f} s"))
    return found


def film_text(film: Film) -> str:
    """`best weights (step=19968), seed 12: return 500 in 500 steps`."""
    about = film.about
    episodes = about.get("episodes")
    episode = episodes[0] if isinstance(episodes, list) and episodes and isinstance(episodes[0], dict) else {}
    text = f"{film.label} weights ({about.get('checkpoint', '?')})"
    if episode:
        text += f", seed {episode.get('seed')}: return {episode.get('return')} in {episode.get('length')} steps"
    if about.get("cut") is True:
        text += ", cut short"
    every = about.get("every")
    if isinstance(every, int) and every > 1:
        text += f"; one picture of {every} is shown"
    return text


def next_commands(report: Report) -> list[tuple[str, str]]:
    """What to type next, and why."""
    run = shlex.quote(report.diagnosis.reference)
    found = [(report.command, "repeat this run")]
    experiment = report.diagnosis.experiment
    if experiment is not None:
        found.append((experiment.command, "the next experiment"))
    if report.state in ("interrupted", "failed", "crashed"):
        found.append((f"gymnast resume {run}", "go on where it stopped"))
    found.append((f"gymnast plot {run} -m 'train/*'", "more curves"))
    found.append((f"gymnast video {run}", "the whole episode, every picture"))
    return found

"""Play without a window, as fast as it goes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from gymnast.envs.time_limits import longest_episode
from gymnast.errors import EnvError
from gymnast.play.session import Session
from gymnast.play.view import Result

MOST_STEPS = 1_000_000
"""Steps after which an episode counts as endless."""


def play_headless(session: Session, on_episode: Callable[[Result], None]) -> None:
    """Play until the session is over; report each episode when it ends."""
    most = min(longest_episode(session.stage.config), MOST_STEPS)
    told = 0
    while not session.over:
        session.next()
        for result in session.results[told:]:
            on_episode(result)
        told = len(session.results)
        if session.steps > most:
            raise EnvError(f"The episode did not end within {most:,} steps: set env.time_limit.")


def episode_line(number: int, result: Result) -> str:
    """`episode 1: return 500, 500 steps, truncated, seed 0`."""
    steps = "step" if result.length == 1 else "steps"
    return f"episode {number}: return {result.ret:g}, {result.length:,} {steps}, {result.outcome}, seed {result.seed}"


def summary_line(results: list[Result]) -> str:
    """What the episodes come to."""
    if not results:
        return "no episode was played to its end"
    returns, lengths = [result.ret for result in results], [result.length for result in results]
    mean, spread = statistics.fmean(returns), statistics.pstdev(returns)
    count = "1 episode"
    if len(results) != 1:
        count = f"{len(results)} episodes"
    return f"{count}: return {mean:.4g} ± {spread:.3g}, length {statistics.fmean(lengths):.4g}"

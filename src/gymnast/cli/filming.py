"""What `gymnast video` does once it has its agent; imports torch."""

from __future__ import annotations

from pathlib import Path

from gymnast.api.agent import Agent
from gymnast.api.recording import Cut, Recording, episodes_of, progression_of
from gymnast.cli.options import echo
from gymnast.cli.process import leaving_at_once
from gymnast.console import Console
from gymnast.envs.drawing import why_black
from gymnast.metrics.table import progress
from gymnast.runs import checkpoint


def film(agent: Agent, output: Path | None, cut: Cut) -> None:
    """Record episodes of one agent, one after the other."""
    _make(episodes_of(agent, output, cut))


def film_progression(agent: Agent, output: Path | None, cut: Cut) -> None:
    """Record the same episode, played before training and by every checkpoint of the run."""
    _make(progression_of(agent, output, cut))
    assert agent.run is not None
    number = len(checkpoint.steps(agent.run.folder))
    if number <= agent.config.train.keep_checkpoints + 1:
        echo(f"{number} checkpoints of this run are left. To keep more: gymnast train … train.keep_checkpoints=20")


def _make(recording: Recording) -> None:
    """Film it, and print where the film is and what it shows."""
    with (
        leaving_at_once(recording.unfinished),
        progress(Console(stderr=True), "playing", len(recording)) as bar,
    ):
        made = recording.make(bar.update)
    returns = ", ".join(f"{one:g}" for one in made.returns)
    echo(f"{made.path}  ({made.frames} frames of {sum(made.lengths)} steps, return {returns})")
    for key, value in made.differences.items():
        echo(f"differs from training: {key} = {value}")
    if made.black:
        echo(f"warning: all {made.frames} frames are black.{why_black()}", err=True)

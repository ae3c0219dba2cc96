"""What `gymnast trace` does once it has its agent; imports torch."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gymnast.api import Agent
from gymnast.cli.options import echo
from gymnast.cli.process import leaving_at_once
from gymnast.console import Console
from gymnast.envs.choose import playable
from gymnast.envs.time_limits import longest_episode
from gymnast.errors import UsageError
from gymnast.evaluation.evaluate import MAX_EPISODE_STEPS
from gymnast.inspecting.asked import Asked
from gymnast.inspecting.bundle import write_bundle
from gymnast.metrics.table import progress as progress_bar
from gymnast.training.evaluating.setup import eval_env_config

SAY_EVERY = 0.2
"""Seconds between two words on how far the episode is."""


def record(agent: Agent, output: Path | None, asked: Asked, *, progress: bool) -> None:
    """Play the episode, write the folder and say what it holds. `progress` prints lines for a program that waits."""
    folder = output
    if folder is None:
        if agent.run is None:
            raise UsageError("Say where to write the episode of a model file: --output FOLDER.")
        folder = agent.run.folder / "traces" / f"{agent.checkpoint}-seed{asked.seed}"
    env, differences = eval_env_config(agent.config)
    about = {
        "run": agent.run.id if agent.run else agent.source,
        "checkpoint": agent.checkpoint,
        "config": agent.config.name,
        "env": agent.config.env.id,
        "differences": differences,
    }
    credit = agent.credit() if agent.run else None
    env = playable(env)
    longest = min(longest_episode(env), MAX_EPISODE_STEPS)
    with leaving_at_once(), progress_bar(Console(stderr=True), "playing", asked.most_steps or longest) as bar:
        said = 0.0

        def tell(step: int) -> None:
            nonlocal said
            if progress and time.monotonic() - said > SAY_EVERY:
                said = time.monotonic()
                print(f"step {step}", flush=True)
            bar.update(step)

        trace = write_bundle(
            folder, agent.policy, env, agent.config.spec, asked, credit=credit, about=about, on_step=tell
        )
    echo(f"{folder}  ({len(trace):,} steps, return {trace.ret:g})")
    sys.stdout.flush()

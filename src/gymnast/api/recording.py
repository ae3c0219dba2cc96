"""Episodes of an agent as a film."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.envs.choose import playable
from gymnast.evaluation.trace import record_episode
from gymnast.evaluation.video import VideoWriter, write_about
from gymnast.training.evaluating.setup import eval_env_config

if TYPE_CHECKING:
    from gymnast.api.agent import Agent


@dataclass(frozen=True)
class Film:
    """A film that was written."""

    path: Path
    frames: int
    returns: tuple[float, ...]
    """Of its episodes."""
    lengths: tuple[int, ...]
    differences: dict[str, Any]
    """What the env had other than in training."""
    black: bool
    """Whether no picture has a single light pixel."""


def film_path(agent: Agent, output: str | Path | None, seed: int) -> Path:
    """Where a film goes: where it was asked for, or among the videos of the run."""
    if output is not None:
        return Path(output)
    if agent.run is None:
        return Path(f"{Path(agent.checkpoint).stem}-seed{seed}.mp4")
    return agent.run.videos / f"{agent.checkpoint}-seed{seed}.mp4"


def film(
    agent: Agent,
    path: Path,
    *,
    episodes: int,
    seed: int,
    deterministic: bool,
    on_episode: Callable[[int], None] | None = None,
) -> Film:
    """Play episodes as in an evaluation, and write them one after the other; `.json` next to the film says what it shows."""
    env_config, differences = eval_env_config(agent.config)
    env_config = playable(env_config)
    traces = []
    with VideoWriter(path) as video:
        for number in range(episodes):
            traces.append(
                record_episode(agent.policy, env_config, seed=seed + number, deterministic=deterministic, film=video)
            )
            if on_episode is not None:
                on_episode(number + 1)
    about = {
        "run": agent.source if agent.run is None else agent.run.id,
        "checkpoint": agent.checkpoint,
        "config": agent.config.name,
        "deterministic": deterministic,
        "differences": differences,
    }
    write_about(video.path, traces, about)
    returns, lengths = tuple(trace.ret for trace in traces), tuple(len(trace) for trace in traces)
    return Film(video.path, video.count, returns, lengths, differences, video.black)

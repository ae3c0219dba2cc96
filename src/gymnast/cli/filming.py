"""What `gymnast video` does once it has its agent; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gymnast import seeding
from gymnast.algorithms import make_algorithm, own_trainer
from gymnast.api.agent import Agent
from gymnast.api.loading import load
from gymnast.cli.options import echo
from gymnast.cli.process import leaving_at_once
from gymnast.config.schema import EnvConfig
from gymnast.console import Console
from gymnast.envs.choose import playable
from gymnast.envs.drawing import why_black
from gymnast.errors import UsageError
from gymnast.evaluation.film import Film
from gymnast.evaluation.overlay import Captioned
from gymnast.evaluation.publishing import Published
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.evaluation.video import VideoWriter, write_about
from gymnast.metrics.table import progress
from gymnast.metrics.verdict import shown
from gymnast.policies.base import Policy
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.evaluating.setup import eval_env_config


@dataclass(frozen=True)
class Cut:
    """How a film is made."""

    episodes: int = 1
    seed: int = 0
    deterministic: bool = True
    overlay: bool = True
    """Step, action, reward, return and value below the pictures."""
    publish: bool = False
    """1920×1080 with a title."""


@dataclass(frozen=True)
class Scene:
    """One episode of a film."""

    policy: Policy
    seed: int
    note: str
    """Who plays, for the caption."""
    checkpoint: str | None
    """None for a policy before its training."""


def film(agent: Agent, output: Path | None, cut: Cut) -> None:
    """Record episodes of one agent, one after the other."""
    scenes = [Scene(agent.policy, cut.seed + i, "", agent.checkpoint) for i in range(cut.episodes)]
    if cut.publish:
        note = _score_note(agent)
        scenes = [Scene(scene.policy, scene.seed, note, scene.checkpoint) for scene in scenes]
    name = Path(agent.checkpoint).stem if agent.run is None else agent.checkpoint
    _record(agent, scenes, output or _folder(agent) / f"{name}-seed{cut.seed}{_kind(cut)}.mp4", cut)


def film_progression(agent: Agent, output: Path | None, cut: Cut) -> None:
    """Record the same episode, played before training and by every checkpoint of the run."""
    run = agent.run
    if run is None:
        raise UsageError(f"{agent.source} has no checkpoints: --progression films how a run's policy came about.")
    scenes = [] if own_trainer(agent.config.algo.id) is not None else [_untrained(agent, cut.seed)]
    for step in checkpoint.steps(run.folder):
        one = load(f"{run.folder}/step={step}")
        scenes.append(Scene(one.policy, cut.seed, _when(run, step), f"step={step}"))
    _record(agent, scenes, output or _folder(agent) / f"progression-seed{cut.seed}{_kind(cut)}.mp4", cut)
    number = len(checkpoint.steps(run.folder))
    if number <= agent.config.train.keep_checkpoints + 1:
        echo(f"{number} checkpoints are left of this run. To keep more: gymnast train … train.keep_checkpoints=20")


def _record(agent: Agent, scenes: Sequence[Scene], path: Path, cut: Cut) -> None:
    """Film the scenes, and print where the film is and what it shows."""
    video = VideoWriter(path)
    found, differences = eval_env_config(agent.config)
    env = playable(found)
    traces, black = [], True
    with leaving_at_once(video.temporary), progress(Console(stderr=True), "playing", len(scenes)) as bar, video:
        for number, scene in enumerate(scenes):
            film = _dressed(agent, video, scene.note, cut)
            traces.append(_play(agent, scene, env, film, cut))
            black = black and film.black
            bar.update(number + 1)
    write_about(video.path, traces, _about(agent, scenes, differences, cut))
    returns = ", ".join(f"{trace.ret:g}" for trace in traces)
    echo(f"{video.path}  ({video.count} frames of {sum(len(trace) for trace in traces)} steps, return {returns})")
    for key, value in differences.items():
        echo(f"differs from training: {key} = {value}")
    if black:
        echo(f"warning: all {video.count} frames are black.{why_black()}", err=True)


def _play(agent: Agent, scene: Scene, env: EnvConfig, film: Film, cut: Cut) -> EpisodeTrace:
    return record_episode(scene.policy, env, seed=scene.seed, deterministic=cut.deterministic, film=film)


def _dressed(agent: Agent, video: VideoWriter, note: str, cut: Cut) -> Film:
    """The film with what is written into its pictures."""
    if cut.publish:
        title = f"{agent.config.env.id} · {agent.config.algo.id.upper()}"
        return Published(video, agent.config.spec, title, note)
    return Captioned(video, agent.config.spec, note) if cut.overlay else video


def _about(agent: Agent, scenes: Sequence[Scene], differences: dict[str, Any], cut: Cut) -> dict[str, Any]:
    names = [scene.checkpoint for scene in scenes]
    about: dict[str, Any] = {"run": agent.run.id if agent.run else agent.source, "checkpoint": agent.checkpoint}
    if len(set(names)) > 1:
        about["checkpoints"] = names
    elif agent.run is not None:
        about["env_steps"] = int(agent.checkpoint.removeprefix("step="))
    return {**about, "config": agent.config.name, "deterministic": cut.deterministic, "differences": differences}


def _untrained(agent: Agent, seed: int) -> Scene:
    """The policy that the run began with: its first weights are drawn from the run's seed."""
    config = agent.config
    init = torch.Generator().manual_seed(seeding.integer(config.train.seed, "policy_init"))
    algorithm = make_algorithm(config.algo, 1)
    policy = algorithm.make_policy(config.policy, agent.policy.encoder.space, agent.action_space, generator=init)
    return Scene(policy, seed, "before training", None)


def _when(run: Run, step: int) -> str:
    """`19,456 env steps, best`."""
    best = checkpoint.read_pointer(run.folder, "best") == f"step={step}"
    return f"{step:,} env steps{', best' if best else ''}"


def _score_note(agent: Agent) -> str:
    """The score of the weights, where it is known."""
    if agent.run is None:
        return ""
    status, step = agent.run.status(), int(agent.checkpoint.removeprefix("step="))
    note = f"{step:,} env steps"
    if status.best_at == step and status.best_return is not None:
        note += f", evaluated at {shown(status.best_return, agent.config.spec.solved_at)}"
    return f"{note}, trained with gymnast"


def _folder(agent: Agent) -> Path:
    return agent.run.videos if agent.run else Path()


def _kind(cut: Cut) -> str:
    return "-1080p" if cut.publish else ""

"""Episodes of an agent as a film: what `gymnast video`, `Agent.record` and `Agent.progression` make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gymnast import seeding
from gymnast.algorithms import make_algorithm, own_trainer
from gymnast.envs.choose import playable
from gymnast.errors import UsageError
from gymnast.evaluation.film import Film
from gymnast.evaluation.overlay import Captioned
from gymnast.evaluation.publishing import Published
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.evaluation.video import VideoWriter, write_about
from gymnast.metrics.verdict import shown
from gymnast.policies.base import Policy
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.evaluating.setup import eval_env_config
from gymnast.training.showing.films import policy_at

if TYPE_CHECKING:
    from gymnast.api.agent import Agent


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


@dataclass(frozen=True)
class Recorded:
    """A film that was written."""

    path: Path
    frames: int
    returns: tuple[float, ...]
    """Of its episodes."""
    lengths: tuple[int, ...]
    differences: dict[str, Any]
    """What the env had other than in training."""
    black: bool
    """Whether the env drew nothing in any picture."""


class Recording:
    """A film that is about to be made: its scenes, and the file they go to."""

    def __init__(self, agent: Agent, scenes: Sequence[Scene], path: Path, cut: Cut) -> None:
        self._agent, self._scenes, self._cut = agent, scenes, cut
        self._video = VideoWriter(path)

    def __len__(self) -> int:
        return len(self._scenes)

    @property
    def unfinished(self) -> Path:
        """The file that is written until all of the film is there."""
        return self._video.temporary

    def make(self, on_episode: Callable[[int], None] = lambda number: None) -> Recorded:
        """Play the scenes as in an evaluation, one after the other; `.json` next to the film says what it shows."""
        video, deterministic = self._video, self._cut.deterministic
        found, differences = eval_env_config(self._agent.config)
        env = playable(found)
        traces: list[EpisodeTrace] = []
        black = True
        with video:
            for scene in self._scenes:
                film = self._dressed(scene.note)
                traces.append(
                    record_episode(scene.policy, env, seed=scene.seed, deterministic=deterministic, film=film)
                )
                black = black and film.black
                on_episode(len(traces))
        write_about(video.path, traces, self._about(differences))
        returns, lengths = tuple(trace.ret for trace in traces), tuple(len(trace) for trace in traces)
        return Recorded(video.path, video.count, returns, lengths, differences, black)

    def _dressed(self, note: str) -> Film:
        """The film with what is written into its pictures."""
        config = self._agent.config
        if self._cut.publish:
            return Published(self._video, config.spec, f"{config.env.id} · {config.algo.id.upper()}", note)
        if self._cut.overlay:
            return Captioned(self._video, config.spec, note)
        return self._video

    def _about(self, differences: dict[str, Any]) -> dict[str, Any]:
        agent, names = self._agent, [scene.checkpoint for scene in self._scenes]
        about: dict[str, Any] = {"run": agent.run.id if agent.run else agent.source, "checkpoint": agent.checkpoint}
        if len(set(names)) > 1:
            about["checkpoints"] = names
        elif agent.run is not None:
            about["env_steps"] = int(agent.checkpoint.removeprefix("step="))
        return {
            **about,
            "config": agent.config.name,
            "deterministic": self._cut.deterministic,
            "differences": differences,
        }


def episodes_of(agent: Agent, output: Path | None, cut: Cut) -> Recording:
    """Episodes of one agent."""
    note = _score_note(agent) if cut.publish else ""
    scenes = [Scene(agent.policy, cut.seed + i, note, agent.checkpoint) for i in range(cut.episodes)]
    name = Path(agent.checkpoint).stem if agent.run is None else agent.checkpoint
    return Recording(agent, scenes, output or _folder(agent) / f"{name}-seed{cut.seed}{_kind(cut)}.mp4", cut)


def progression_of(agent: Agent, output: Path | None, cut: Cut) -> Recording:
    """The same episode, played before training and by every checkpoint of the run."""
    run = agent.run
    if run is None:
        raise UsageError(f"{agent.source} has no checkpoints: a progression films how a run's policy came about.")
    scenes = [] if own_trainer(agent.config.algo.id) is not None else [_untrained(agent, cut.seed)]
    for step in checkpoint.steps(run.folder):
        policy = policy_at(run, agent.config, f"step={step}")
        scenes.append(Scene(policy, cut.seed, _when(run, step), f"step={step}"))
    return Recording(agent, scenes, output or _folder(agent) / f"progression-seed{cut.seed}{_kind(cut)}.mp4", cut)


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

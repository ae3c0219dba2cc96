"""Films and tables of the episodes that a run's best and last weights play, made at its end (STO-3, STO-4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from gymnast import seeding
from gymnast.algorithms import own_trainer, policy_for
from gymnast.config.schema import RunConfig
from gymnast.envs.choose import playable
from gymnast.envs.drawing import why_black
from gymnast.envs.make import make_envs
from gymnast.errors import EnvError
from gymnast.evaluation.overlay import Captioned
from gymnast.evaluation.table import columns_of, rows_of
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.evaluation.video import VideoWriter, write_about
from gymnast.policies.base import Policy
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.runs.tables import write_rows
from gymnast.training.evaluating.setup import eval_env_config
from gymnast.training.showing.credit import credit_at
from gymnast.training.showing.pace import Paced
from gymnast.training.trainer import load_policy

SUFFIX = ".mp4"
TABLES = (".parquet", ".csv")
OVERTIME = 1.3
"""Of the time for a film, how long its episode may be played, drawn or not."""


@dataclass(frozen=True)
class Wanted:
    """What is made of each episode."""

    video: bool
    table: bool


def shown_checkpoints(run: Run) -> dict[str, str]:
    """`best` and `last` with the checkpoints they name; where both are the same one, only `best`."""
    best, last = (checkpoint.read_pointer(run.folder, name) for name in ("best", "last"))
    found = {"best": best, "last": None if last == best else last}
    return {name: target for name, target in found.items() if target is not None}


def show_episodes(
    run: Run, config: RunConfig, wanted: Wanted, *, seconds: float, expected: float, hurry: Callable[[], bool]
) -> list[str]:
    """One episode each of the best and the last weights, in the time there is; gives what the user should know."""
    notes: list[str] = []
    checkpoints = shown_checkpoints(run)
    until = time.perf_counter() + seconds
    for number, (label, name) in enumerate(checkpoints.items()):
        left = (until - time.perf_counter()) / (len(checkpoints) - number)
        if left <= 0 or hurry():
            break
        notes += _show(run, config, label, name, wanted, left, expected, hurry)
    for label in {"best", "last"} - checkpoints.keys():  # of an earlier attempt
        for path in (run.videos / f"{label}{SUFFIX}", *(tables_folder(run) / f"{label}{kind}" for kind in TABLES)):
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
    return notes


def tables_folder(run: Run) -> Path:
    """Where rollout tables lie, next to the checkpoints."""
    return run.folder / "rollouts"


def _show(
    run: Run,
    config: RunConfig,
    label: str,
    name: str,
    wanted: Wanted,
    seconds: float,
    expected: float,
    hurry: Callable[[], bool],
) -> list[str]:
    env, differences = eval_env_config(config)
    env = playable(env)
    began = time.perf_counter()
    policy = policy_at(run, config, name)
    seed = seeding.env_seeds(config.train.seed, "video", 1)[0]
    credit = credit_at(config, run.checkpoints / name) if own_trainer(config.algo.id) is None else None
    seconds -= time.perf_counter() - began
    deadline = time.perf_counter() + OVERTIME * seconds

    def play(film: Paced | None) -> EpisodeTrace:
        return record_episode(
            policy, env, seed=seed, deterministic=config.eval.deterministic, credit=credit, film=film, deadline=deadline
        )

    notes = []
    if not wanted.video:
        trace = play(None)
    else:
        video = VideoWriter(run.videos / f"{label}{SUFFIX}", quick=True)
        paced = Paced(Captioned(video, config.spec), seconds, expected, hurry)
        try:
            with video:
                trace = play(paced)
        except EnvError as error:  # some envs cannot be drawn; their episodes are only in the table
            notes.append(f"No video of this run: {error}")
            trace = play(None)
        else:
            about = {
                "run": run.id,
                "checkpoint": name,
                "label": label,
                "env_steps": int(name.removeprefix("step=")),
                "config": config.name,
                "deterministic": config.eval.deterministic,
                "differences": differences,
                "every": paced.every,
                "cut": trace.cut,
                "seconds": round(time.perf_counter() - began, 3),
            }
            write_about(video.path, [trace], about)
            if paced.black:
                notes.append(f"All {video.count} frames of {video.path.name} are black.{why_black()}")
    if wanted.table:
        write_tables(trace, config, [tables_folder(run) / f"{label}{kind}" for kind in TABLES])
    return notes


def write_tables(trace: EpisodeTrace, config: RunConfig, paths: list[Path]) -> None:
    """The episode step by step, in each of these files."""
    columns = columns_of(trace, config.spec)
    for path in paths:
        write_rows(path, columns, rows_of(trace, config.spec))


def policy_at(run: Run, config: RunConfig, name: str) -> Policy:
    """A policy of its own with the weights of a checkpoint."""
    saved = checkpoint.load(run.checkpoints / name, with_state=False)
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        with torch.random.fork_rng(devices=[]):  # its first weights are drawn for nothing
            policy = policy_for(config, envs.observation_space, envs.action_space)
        load_policy(policy, saved.policy)
        return policy
    finally:
        envs.close()

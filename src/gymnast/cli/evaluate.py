"""`gymnast eval` and `gymnast video`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnast.cli import leaving_at_once
from gymnast.cli.agents import Env, NoVecNormalize, Reference, VecNormalize, load_agent
from gymnast.cli.options import AsJson, RunsDir

if TYPE_CHECKING:
    from gymnast.api import Agent

Sampled = Annotated[
    bool | None,
    typer.Option("--stochastic/--deterministic", help="Sample actions, or not (default: as eval.deterministic says)."),
]


def evaluate(
    reference: Reference = "@last",
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Whole episodes to play.")] = 100,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the episodes (default: fresh ones of the run's seed).")
    ] = None,
    stochastic: Sampled = None,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Evaluate a run's best (or a named) checkpoint on fresh episodes."""
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir)
    deterministic = _deterministic(agent, stochastic)

    from rich.console import Console

    from gymnast.envs.choose import playable
    from gymnast.envs.families.atari.protocol import sentence
    from gymnast.metrics.table import progress
    from gymnast.training.evaluator import eval_env_config, make_evaluation, run_evaluation
    from gymnast.training.machine import prepare_acting

    prepare_acting(agent.policy)
    changed = {"episodes": episodes, "deterministic": deterministic}
    config = agent.config.model_copy(update={"eval": agent.config.eval.model_copy(update=changed)})
    env_config, differences = eval_env_config(config)
    envs, tabular = make_evaluation(config, playable(env_config))
    try:
        with progress(Console(stderr=True), "playing", episodes) as bar:
            result = run_evaluation(
                agent.policy,
                config,
                envs,
                tabular,
                turn=1_000_000,
                seed=seed,
                differences=differences,
                on_episode=bar.update,
            )
    finally:
        envs.close()
    if as_json:
        from gymnast.cli.options import echo_json

        where = {"run": agent.run.id if agent.run else None, "source": agent.source, "checkpoint": agent.checkpoint}
        echo_json({**where, "env": config.env.id, **result.as_json()})
        return
    typer.echo(f"{config.name} {agent.source}")
    typer.echo(result.sentence())
    if how := sentence(env_config):
        typer.echo(f"protocol: {how}")
    for key, value in differences.items():
        typer.echo(f"differs from training: {key} = {value}")


def video(
    reference: Reference = "@last",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: the run's videos folder, or here).")
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Episodes, one after the other.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first episode.")] = 0,
    stochastic: Sampled = None,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    runs_dir: RunsDir = None,
) -> None:
    """Record episodes of a run's best (or a named) checkpoint as an MP4."""
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir)
    deterministic = _deterministic(agent, stochastic)

    from rich.console import Console

    from gymnast.evaluation.trace import record_episode
    from gymnast.evaluation.video import write_video
    from gymnast.metrics.table import progress

    folder, name = (agent.run.videos, agent.checkpoint) if agent.run else (Path(), Path(agent.checkpoint).stem)
    path = output or folder / f"{name}-seed{seed}.mp4"
    console = Console(stderr=True)
    traces = []
    with leaving_at_once(), progress(console, "playing", episodes) as bar:
        for i in range(episodes):
            traces.append(
                record_episode(agent.policy, agent.config, seed=seed + i, deterministic=deterministic, frames=True)
            )
            bar.update(i + 1)
    write_video(
        path, traces, agent.config, checkpoint=agent.checkpoint, run_id=agent.run.id if agent.run else agent.source
    )
    returns = ", ".join(f"{trace.ret:g}" for trace in traces)
    typer.echo(f"{path}  ({sum(len(trace) for trace in traces)} steps, return {returns})")


def _deterministic(agent: Agent, stochastic: bool | None) -> bool:
    """As asked for; else as the run's own evaluations were, so that scores can be compared."""
    if stochastic is None:
        return agent.config.eval.deterministic or agent.only_deterministic is not None
    agent.check_sampling(not stochastic)
    return not stochastic

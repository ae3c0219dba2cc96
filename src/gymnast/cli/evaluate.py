"""`gymnast eval` and `gymnast video`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli import imported
from gymnast.cli.options import AsJson, RunsDir

Reference = Annotated[
    str, typer.Argument(metavar="RUN[/CHECKPOINT]", help="@last, an id, @best:ENV, @last/step=5000 …")
]


def evaluate(
    reference: Reference = "@last",
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Whole episodes to play.")] = 100,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the episodes (default: fresh ones of the run's seed).")
    ] = None,
    stochastic: Annotated[bool, typer.Option("--stochastic/--deterministic", help="Sample actions.")] = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Evaluate a run's best (or a named) checkpoint on fresh episodes."""
    from gymnast import api
    from gymnast.training.evaluator import eval_env_config, make_evaluation, run_evaluation
    from gymnast.training.session import prepare_process

    imported()
    prepare_process(1)
    agent = api.load(reference, runs_dir=runs_dir)
    changed = {"episodes": episodes, "deterministic": not stochastic}
    config = agent.config.model_copy(update={"eval": agent.config.eval.model_copy(update=changed)})
    env_config, differences = eval_env_config(config)
    envs, tabular = make_evaluation(config, env_config)
    try:
        result = run_evaluation(agent.policy, config, envs, tabular, turn=1_000_000, seed=seed, differences=differences)
    finally:
        envs.close()
    if as_json:
        from gymnast.cli.options import echo_json

        echo_json({"run": agent.run.id, "checkpoint": agent.checkpoint, "env": config.env.id, **result.as_json()})
        return
    typer.echo(f"{config.name} run {agent.run.id}, {agent.checkpoint}")
    typer.echo(result.sentence())
    for key, value in differences.items():
        typer.echo(f"differs from training: {key} = {value}")


def video(
    reference: Reference = "@last",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: the run's videos folder).")
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Episodes, one after the other.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first episode.")] = 0,
    stochastic: Annotated[bool, typer.Option("--stochastic/--deterministic", help="Sample actions.")] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Record episodes of a run's best (or a named) checkpoint as an MP4."""
    from rich.console import Console

    from gymnast import api
    from gymnast.evaluation.trace import record_episode
    from gymnast.evaluation.video import write_video
    from gymnast.metrics.table import progress

    imported()
    agent = api.load(reference, runs_dir=runs_dir)
    path = output or agent.run.videos / f"{agent.checkpoint}-seed{seed}.mp4"
    console = Console(stderr=True)
    traces = []
    with progress(console, "playing", episodes) as bar:
        for i in range(episodes):
            traces.append(
                record_episode(agent.policy, agent.config, seed=seed + i, deterministic=not stochastic, frames=True)
            )
            bar.update(i + 1)
    write_video(path, traces, agent.config, checkpoint=agent.checkpoint, run_id=agent.run.id)
    returns = ", ".join(f"{trace.ret:g}" for trace in traces)
    typer.echo(f"{path}  ({sum(len(trace) for trace in traces)} steps, return {returns})")

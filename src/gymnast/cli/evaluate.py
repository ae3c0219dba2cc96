"""`gymnast eval` and `gymnast video`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.agents import Env, NoVecNormalize, Reference, VecNormalize, load_agent
from gymnast.cli.options import AsJson, RunsDir, Trust
from gymnast.errors import UsageError
from gymnast.evaluation.formats import format_of

Sampled = Annotated[
    bool | None,
    typer.Option(
        "--stochastic/--deterministic",
        help="Sample actions, or take the most likely one (default: eval.deterministic).",
    ),
]


def evaluate(
    reference: Reference = "@last",
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-e", min=1, help="Whole episodes to play (default: 100).", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            help="Number of env steps to play instead; last episodes are finished.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the episodes (default: fresh episodes from the run's seed).")
    ] = None,
    stochastic: Sampled = None,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    as_json: AsJson = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Evaluate a run's best (or a named) checkpoint on fresh episodes."""
    if steps is not None and episodes is not None:
        raise UsageError("Give --episodes or --steps, not both: one is the size of the evaluation.")
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir, trust)
    deterministic = agent.acts_deterministically(None if stochastic is None else not stochastic)
    from gymnast.cli.evaluating import play_and_tell  # torch, which mistakes do not wait for

    play_and_tell(agent, episodes, steps, seed, deterministic, as_json=as_json)


def video(
    reference: Reference = "@last",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .mp4, .webm or .gif (default: in the run's videos folder)."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Number of episodes.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first episode.")] = 0,
    progression: Annotated[
        bool, typer.Option("--progression", help="Film the same episode before training and with every checkpoint.")
    ] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Film in 1920×1080 with a title, for sharing.")] = False,
    overlay: Annotated[
        bool,
        typer.Option("--overlay/--no-overlay", help="Show step, action, reward, return and value below the picture."),
    ] = True,
    stochastic: Sampled = None,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Record episodes of a run's best (or a named) checkpoint, played as in an evaluation."""
    if output is not None:
        format_of(output)  # report a wrong suffix before anything is loaded
    if progression and episodes > 1:
        raise UsageError("--progression films one episode per checkpoint: leave --episodes out.")
    if publish and not overlay:
        raise UsageError("--publish has its own text: leave --no-overlay out.")
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir, trust)
    deterministic = agent.acts_deterministically(None if stochastic is None else not stochastic)
    from gymnast.api.recording import Cut  # torch, which mistakes do not wait for
    from gymnast.cli.filming import film, film_progression

    cut = Cut(episodes, seed, deterministic, overlay, publish)
    if progression:
        film_progression(agent, output, cut)
    else:
        film(agent, output, cut)

"""`gymnast trace`: one episode with everything that is known of each step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from gymnast.cli.agents import Env, NoVecNormalize, Reference, VecNormalize, load_agent
from gymnast.cli.evaluate import Sampled
from gymnast.cli.options import RunsDir, Trust
from gymnast.errors import UsageError
from gymnast.inspecting.asked import Asked


def trace(
    reference: Reference = "@last",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write (default: in the run's traces folder)."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the episode.")] = 0,
    stochastic: Sampled = None,
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature", min=0, help="Temperature of sampled actions: below 1 more decided, above 1 more random."
        ),
    ] = 1.0,
    max_steps: Annotated[
        int | None,
        typer.Option("--max-steps", min=1, help="Cut the episode off after this many steps.", show_default=False),
    ] = None,
    env_kwargs: Annotated[
        str | None, typer.Option("--env-kwargs", help='Env arguments as JSON: {"gravity": -5}.', show_default=False)
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option("--gamma", min=0, max=1, help="Discount of the returns and advantages shown.", show_default=False),
    ] = None,
    gae_lambda: Annotated[
        float | None, typer.Option("--gae-lambda", min=0, max=1, help="λ of the advantages shown.", show_default=False)
    ] = None,
    force: Annotated[
        list[str] | None,
        typer.Option("--what-if", help="STEP:ACTION to force, whatever the policy chooses.", show_default=False),
    ] = None,
    see: Annotated[bool, typer.Option("--see", help="Also look into the network of an image policy.")] = False,
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Record one episode step by step: observations, probabilities, values, advantages, pictures, tables."""
    coefficients = {name: value for name, value in (("gamma", gamma), ("gae_lambda", gae_lambda)) if value is not None}
    kwargs, forced = _kwargs(env_kwargs), _forced(force or [])
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir, trust)
    wanted = None if stochastic is None else not stochastic
    asked = Asked(seed, agent.acts_deterministically(wanted), temperature, max_steps, kwargs, coefficients, forced, see)
    from gymnast.cli.tracing import record  # torch, which mistakes do not wait for

    record(agent, output, asked, progress=progress)


def _kwargs(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"--env-kwargs is a JSON object such as {{\"gravity\": -5}}, not '{text}'.") from None
    if not isinstance(found, dict):
        raise UsageError(f"--env-kwargs is a JSON object such as {{\"gravity\": -5}}, not '{text}'.")
    return found


def _forced(given: list[str]) -> dict[int, int]:
    found: dict[int, int] = {}
    for text in given:
        if (parts := re.fullmatch(r"(\d+):(-?\d+)", text)) is None:
            raise UsageError(f"--what-if is STEP:ACTION, for example 12:1, not '{text}'.")
        found[int(parts[1])] = int(parts[2])
    return found

"""`gymnast model`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnast.cli import imported
from gymnast.cli.agents import Env, load_agent
from gymnast.cli.options import AsJson, Overrides, RunsDir, echo_json

if TYPE_CHECKING:
    from gymnasium import spaces

    from gymnast.policies.actor_critic import ActorCritic
    from gymnast.policies.summary import Summary


def model(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN|ENV:VARIANT",
            help="A run (@last, an id …), a Stable-Baselines3 model.zip, or a config: CartPole-v1:ppo.",
        ),
    ] = "@last",
    overrides: Overrides = None,
    env: Env = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Layers, shapes, parameters and arithmetic of a run's policy, or of the one a config would train."""
    from gymnast.policies.summary import summarise

    title, policy, action_space = _policy(reference, overrides or [], env, runs_dir)
    summary = summarise(policy, action_space)
    if as_json:
        echo_json({"model": title, **summary.as_json()})
        return
    _print(title, summary)


def _policy(
    reference: str, overrides: list[str], env: str | None, runs_dir: Path | None
) -> tuple[str, ActorCritic, spaces.Space]:
    """The policy of a run, or else of a config; the message of the more likely of the two when it is neither."""
    from gymnast.errors import UsageError

    is_run = reference.startswith("@") or reference.endswith(".zip") or Path(reference).exists()
    is_config = not is_run and (":" in reference or "-v" in reference)
    if is_run and overrides:
        raise UsageError(
            f"'{reference}' is trained already, its layers cannot be changed: remove {' '.join(overrides)}."
        )
    if is_config or overrides:
        return _of_config(reference, overrides)
    try:
        agent = load_agent(reference, env, None, False, runs_dir)
    except UsageError as no_run:
        if is_run:
            raise
        try:
            return _of_config(reference, [])
        except UsageError:
            raise no_run from None
    return f"{agent.config.name} {agent.source}", agent.policy, agent.action_space


def _of_config(reference: str, overrides: list[str]) -> tuple[str, ActorCritic, spaces.Space]:
    from gymnast.cli.start import generic
    from gymnast.config.load import resolve

    config = resolve(reference, overrides, generic=generic).config
    from gymnast.algorithms import make_algorithm
    from gymnast.envs.make import make_envs
    from gymnast.policies.actor_critic import ActorCritic

    imported()
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        critic = make_algorithm(config.algo, 1).uses_critic
        policy = ActorCritic(config.policy, envs.observation_space, envs.action_space, critic=critic)
    finally:
        envs.close()
    return config.name, policy, envs.action_space


def _print(title: str, summary: Summary) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"[bold]{title}[/bold]")
    console.print(f"observation  {summary.observation}", markup=False, soft_wrap=True)
    console.print(f"action       {summary.action}, {summary.distribution}", markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for column in ("part", "layer", "input", "output", "parameters", "FLOPs"):
        table.add_column(column, justify="right" if column in ("parameters", "FLOPs") else "left", no_wrap=True)
    shown = ""
    for layer in summary.layers:
        count = f"{layer.parameters:,}" if layer.parameters else f"({layer.statistics:,})" if layer.statistics else ""
        flops = f"{layer.flops:,}" if layer.flops else ""
        table.add_row("" if layer.part == shown else layer.part, layer.name, layer.input, layer.output, count, flops)
        shown = layer.part
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.width = max(console.width, needed)  # a narrow terminal may break lines, but no number is cut short
    console.print(table)
    parts = ", ".join(f"{part} {count:,}" for part, count in summary.parts().items() if count)
    console.print(f"{summary.parameters:,} parameters ({parts}), {_bytes(summary.size)} on disk")
    console.print(f"{summary.action_flops:,} FLOPs per action")
    if any(layer.statistics for layer in summary.layers):
        console.print("(in parentheses: running statistics, saved but not trained)", style="dim")


def _bytes(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} KB" if size < 10**7 else f"{size / 1e6:,.1f} MB"

"""`gymnast model`: what a policy is made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from gymnast.cli.agents import Env, load_agent, names_config, names_run
from gymnast.cli.options import AsJson, Overrides, RunsDir, Trust, echo_json
from gymnast.cli.process import imported
from gymnast.console import Console
from gymnast.errors import UsageError
from gymnast.service.configs import resolved_config

if TYPE_CHECKING:
    from gymnasium import spaces

    from gymnast.policies.base import Policy
    from gymnast.policies.summary import Layer, Summary


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
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Show layers, shapes, parameters and FLOPs of a run's policy, or of the one a config would train."""
    title, policy, action_space = _policy(reference, overrides or [], env, runs_dir, trust)
    from gymnast.policies.summary import summarise  # torch, which mistakes do not wait for

    summary = summarise(policy, action_space)
    if as_json:
        echo_json({"model": title, **summary.as_json()})
        return
    _print(title, summary)


def _policy(
    reference: str, overrides: list[str], env: str | None, runs_dir: Path | None, trust: bool
) -> tuple[str, Policy, spaces.Space]:
    """The policy of a run, or else of a config; the message of the more likely of the two when it is neither."""
    is_run = names_run(reference)
    if is_run and overrides:
        raise UsageError(
            f"'{reference}' is trained already, its layers cannot be changed: remove {' '.join(overrides)}."
        )
    if names_config(reference) or overrides:
        return _of_config(reference, overrides)
    try:
        agent = load_agent(reference, env, None, False, runs_dir, trust)
    except UsageError as no_run:
        if is_run:
            raise
        try:
            return _of_config(reference, [])
        except UsageError:
            raise no_run from None
    return f"{agent.config.name} {agent.source}", agent.policy, agent.action_space


def _of_config(reference: str, overrides: list[str]) -> tuple[str, Policy, spaces.Space]:
    config = resolved_config(reference, overrides).config
    from gymnast.cli.model_of_config import policy_of  # torch, which a wrong config does not wait for

    imported()
    return config.name, *policy_of(config)


def _print(title: str, summary: Summary) -> None:
    console = Console(highlight=False)
    console.print(title, style="bold", soft_wrap=True)
    console.print(f"observation  {summary.observation}", markup=False, soft_wrap=True)
    console.print(f"action       {summary.action}, {summary.distribution}", markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for column in ("part", "layer", "input", "output"):
        table.add_column(column, no_wrap=True)
    for column in ("parameters", "FLOPs"):
        table.add_column(column, no_wrap=True, justify="right")
    shown = ""
    for layer in summary.layers:
        part = "" if layer.part == shown else layer.part
        flops = f"{layer.flops:,}" if layer.flops else ""
        table.add_row(part, layer.name, layer.input, layer.output, _count(layer), flops)
        shown = layer.part
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.width = max(console.width, needed)  # a narrow terminal may break lines, but no number is cut short
    console.print(table)
    parts = ", ".join(f"{part} {count:,}" for part, count in summary.parts().items() if count)
    console.print(f"{summary.parameters:,} parameters ({parts}), {_bytes(summary.size)} on disk")
    console.print(f"{summary.action_flops:,} FLOPs per action")
    if any(layer.statistics for layer in summary.layers):
        console.print("(in parentheses: running statistics, saved but not trained)", style="dim")


def _count(layer: Layer) -> str:
    """Its parameters, or else its running statistics, which are saved but not trained."""
    if layer.parameters:
        return f"{layer.parameters:,}"
    if layer.statistics:
        return f"({layer.statistics:,})"
    return ""


def _bytes(size: int) -> str:
    if size < 10_000:
        return f"{size:,} bytes"
    if size < 10**7:
        return f"{size / 1000:,.0f} KB"
    return f"{size / 1e6:,.1f} MB"

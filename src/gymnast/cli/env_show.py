"""`gymnast env show`: the spec card."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, echo_json
from gymnast.console import Console
from gymnast.service.env_card import EnvCard, env_card
from gymnast.service.plain import plain


def show(
    env_id: Annotated[
        str, typer.Argument(metavar="ENV", help="Environment id, or ENV:VARIANT for a variant's own spec.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show an env's card: spaces, labels, ranges, thresholds, reference scores, and the order of wrappers."""
    card = env_card(env_id)
    if as_json:
        echo_json(_as_json(card))
    else:
        _print(card)


def _as_json(card: EnvCard) -> dict[str, Any]:
    """The spec's own keys, next to those of the env."""
    data = plain(card)
    keys = (
        "id",
        "observation_space",
        "action_space",
        "wrappers",
        "protocol",
        "reward_terms",
        "randomised",
        "parameters",
    )
    return {**{key: data[key] for key in keys}, **data["spec"]}


def _print(card: EnvCard) -> None:
    spec = card.spec
    console = Console(highlight=False)
    for notice in card.notices:
        console.print(notice, style="yellow")
    console.print(Text.assemble((card.id, "bold"), f"  {spec.description}"))
    console.print(_facts(card))
    for title, components in (("Observation", spec.observation), ("Action", spec.action_components)):
        if components:
            table = Table(title=title, title_justify="left", box=None, pad_edge=False)
            for column in ("component", "low", "high", "unit", "values"):
                table.add_column(column, overflow="fold")
            for part in components:
                table.add_row(part.name, _bound(part.low), _bound(part.high), part.unit, ", ".join(part.values))
            console.print(table)
    if spec.notes:
        console.print(spec.notes, style="dim")


def _facts(card: EnvCard) -> Table:
    """One row per fact that is not a list of components."""
    spec = card.spec
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("observation", card.observation_space)
    facts.add_row("action", card.action_space)
    if spec.actions:
        facts.add_row("actions", ", ".join(f"{i} {label}" for i, label in enumerate(spec.actions)))
    facts.add_row("time limit", str(card.time_limit or "none"))
    if card.protocol_words is not None:
        facts.add_row("protocol", card.protocol_words)
    facts.add_row("reward", _range(spec.reward_range))
    facts.add_row("return", _range(spec.return_range))
    if spec.solved_at is not None or spec.solved_source:
        facts.add_row("solved at", f"{_bound(spec.solved_at)}  ({spec.solved_source})")
    for name, score in [
        ("random", spec.random_score),
        ("optimum", spec.optimal_score),
        *spec.reference_scores.items(),
        ("best published", spec.best_published),
    ]:
        if score is not None:
            facts.add_row(str(name), f"{score.score:g}  ({'; '.join(filter(None, (score.source, score.protocol)))})")
    facts.add_row("vectorization", f"{card.vectorization} ({card.vectorization_reason})")
    terms = [f"{name}: {term}" for name, term in card.reward_terms.items()]
    drawn = [f"{name}: {values}" for name, values in card.randomised.items()]
    parameters = [f"{name} ({about})" for name, about in card.parameters.items()]
    for title, lines in (
        ("wrappers", card.wrapper_lines),
        ("reward terms", terms),
        ("randomised", drawn),
        ("can be drawn", [", ".join(parameters)] if parameters else []),
    ):
        for number, line in enumerate(lines):
            facts.add_row(title if number == 0 else "", line)
    return facts


def _bound(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:g}"


def _range(bounds: Any) -> str:
    if bounds is None:
        return "unknown"
    if tuple(bounds) == (None, None):
        return "unbounded"
    return f"{_bound(bounds[0])} … {_bound(bounds[1])}"

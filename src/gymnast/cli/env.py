"""`gymnast env list | show`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gymnast.cli.options import AsJson, echo_json

app = typer.Typer(help="What environments there are, and their spec cards.", no_args_is_help=True)


@app.command("list")
def list_envs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also installed envs without a preset.")] = False,
    as_json: AsJson = False,
) -> None:
    """Environments with presets; with --all every installed Gymnasium id."""
    from gymnast.config.files import known_envs

    rows: list[dict[str, Any]] = []
    for env_id, files in known_envs():
        variants = list(dict.fromkeys(name for file in files for name in (file.data.get("variants") or {})))
        spec: dict[str, Any] = next((file.data["spec"] for file in reversed(files) if file.data.get("spec")), {})
        rows.append(
            {
                "id": env_id,
                "variants": variants,
                "solved_at": spec.get("solved_at"),
                "description": spec.get("description", ""),
            }
        )
    if everything:
        import gymnasium as gym

        known = {row["id"] for row in rows}
        rows += [
            {"id": i, "variants": [], "solved_at": s.reward_threshold, "description": ""}
            for i, s in sorted(gym.registry.items())
            if i not in known
        ]
    rows = [row for row in rows if all(word.lower() in str(row["id"]).lower() for word in words or [])]
    if as_json:
        echo_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("environment", "solved at", "variants"):
        table.add_column(column, overflow="fold")
    for row in rows:
        solved = "" if row["solved_at"] is None else f"{row['solved_at']:g}"
        table.add_row(row["id"], solved, ", ".join(row["variants"]))
    Console().print(table)


@app.command("show")
def show(
    env_id: Annotated[
        str, typer.Argument(metavar="ENV", help="Environment id, or ENV:VARIANT for a variant's own spec.")
    ],
    as_json: AsJson = False,
) -> None:
    """The spec card: spaces, labels, ranges, thresholds, reference scores, and the order of wrappers."""
    from gymnast.cli.start import generic
    from gymnast.config.load import resolve
    from gymnast.envs.registry import choose_vectorization, make_one

    resolved = resolve(env_id, generic=generic)
    config, spec = resolved.config, resolved.config.spec
    one = make_one(config.env)
    observation, action, limit = (
        one.observation_space,
        one.action_space,
        one.spec.max_episode_steps if one.spec else None,
    )
    one.close()
    if as_json:
        echo_json(
            {
                "id": config.env.id,
                "observation_space": str(observation),
                "action_space": str(action),
                **spec.model_dump(mode="json"),
            }
        )
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for notice in resolved.notices:
        console.print(notice, style="yellow")
    console.print(f"[bold]{config.env.id}[/bold]  {spec.description}")
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("observation", str(observation))
    facts.add_row("action", str(action))
    if spec.actions:
        facts.add_row("actions", ", ".join(f"{i} {label}" for i, label in enumerate(spec.actions)))
    facts.add_row("time limit", str(limit) if limit else "none")
    facts.add_row("reward", _range(spec.reward_range))
    facts.add_row("return", _range(spec.return_range))
    if spec.solved_at is not None:
        facts.add_row("solved at", f"{spec.solved_at:g}  ({spec.solved_source})")
    for name, score in [
        ("random", spec.random_score),
        ("optimum", spec.optimal_score),
        *spec.reference_scores.items(),
        ("best published", spec.best_published),
    ]:
        if score is not None:
            facts.add_row(str(name), f"{score.score:g}  ({'; '.join(filter(None, (score.source, score.protocol)))})")
    kind, reason = choose_vectorization(config.env)
    facts.add_row("vectorization", f"{kind} ({reason})")
    facts.add_row("wrappers", " → ".join(w.id for w in config.env.wrappers) or "none")
    console.print(facts)
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


def _bound(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _range(bounds: Any) -> str:
    return "unknown" if bounds is None else f"{_bound(bounds[0])} … {_bound(bounds[1])}"

"""`gymnast config list | show | check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnast.cli.options import AsJson, Overrides, echo_json

app = typer.Typer(help="List, show and check configurations.", no_args_is_help=True)


@app.command("list")
def list_configs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    as_json: AsJson = False,
) -> None:
    """All presets, shipped and from ./configs."""
    from gymnast.config.files import known_envs

    rows = []
    for env_id, files in known_envs():
        variants = list(dict.fromkeys(name for file in files for name in (file.data.get("variants") or {})))
        rows += [{"config": f"{env_id}:{name}", "files": [file.label for file in files]} for name in variants]
    rows = [row for row in rows if all(_fuzzy(word.lower(), str(row["config"]).lower()) for word in words or [])]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        typer.echo(row["config"])
    if not rows:
        from gymnast.errors import UsageError, did_you_mean

        hint = did_you_mean(
            " ".join(words or []),
            [f"{env}:{v}" for env, fs in known_envs() for f in fs for v in (f.data.get("variants") or {})],
        )
        raise UsageError(f"No config matches {' '.join(words or [])!r}.{hint}")


def _fuzzy(word: str, text: str) -> bool:
    """All characters of `word` in order: `cpppo` finds cartpole-v1:ppo."""
    rest = iter(text)
    return word in text or all(character in rest for character in word)


@app.command("show")
def show(
    reference: Annotated[str, typer.Argument(metavar="ENV:VARIANT", help="e.g. CartPole-v1:ppo")],
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Every value of a config, and where it comes from."""
    from gymnast.cli.start import _generic
    from gymnast.config.load import resolve
    from gymnast.config.plan import make_plan

    resolved = resolve(reference, overrides or [], generic=_generic)
    plan = make_plan(resolved.config)
    data = resolved.config.model_dump(mode="json")
    if as_json:
        echo_json({"config": data, "origins": resolved.origins, "derived": plan.reasons})
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for notice in resolved.notices:
        console.print(notice, style="yellow")
    table = Table(title=resolved.config.name, title_justify="left", box=None, pad_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", style="dim", overflow="fold")
    for key, value in _leaves({k: v for k, v in data.items() if k not in ("spec", "name")}):
        origin = _origin(key, resolved.origins) or "default"
        if key in plan.reasons:
            table.add_row(key, str(plan.reasons[key]).split(":")[0].split(" = ")[0], f"derived: {plan.reasons[key]}")
        else:
            table.add_row(key, _text(value), origin, style=None if origin != "default" else "dim")
    console.print(table)
    console.print(f"The spec of the env: gymnast env show {resolved.config.env.id}", style="dim")


def _leaves(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, dict) and value and "schedule" not in value:
            leaves += _leaves(value, f"{prefix}{key}.")
        else:
            leaves.append((f"{prefix}{key}", value))
    return leaves


def _origin(key: str, origins: dict[str, str]) -> str | None:
    if key in origins:
        return origins[key]
    return next((origin for known, origin in origins.items() if key.startswith(known + ".")), None)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict) and "schedule" in value:
        rest = ", ".join(f"{k} {v}" for k, v in value.items() if k != "schedule" and v is not None)
        return f"{value['schedule']}: {rest}"
    return str(value).lower() if isinstance(value, bool) else str(value)


@app.command("check")
def check(
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV:VARIANT|FILE]...", help="What to check; everything by default.")
    ] = None,
) -> None:
    """Resolve and validate configs: every variant of every shipped file, or the given ones."""
    from gymnast.config.load import resolve
    from gymnast.errors import GymnastError

    ids = _expand(references)
    problems = 0
    for reference in ids:
        try:
            resolve(reference)
        except GymnastError as error:
            problems += 1
            typer.echo(f"✗ {reference}: {error}", err=True)
    typer.echo(f"{len(ids) - problems} of {len(ids)} configs are valid")
    if problems:
        raise typer.Exit(1)


def _expand(references: list[str] | None) -> list[str]:
    from gymnast.config import files
    from gymnast.config.load import _variants

    if not references:
        return [
            f"{env}:{name}"
            for env, fs in files.known_envs()
            for name in dict.fromkeys(v for f in fs for v in _variants(f))
        ]
    ids: list[str] = []
    for reference in references:
        if reference.endswith((".yaml", ".yml")):
            ids += [f"{reference}:{name}" for name in _variants(files.read(Path(reference)))]
        else:
            ids.append(reference)
    return ids

"""`gymnast env list | show`, and the group of commands about environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli import env_audit, env_bench, env_check
from gymnast.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from gymnast.config.files import ConfigFile

app = typer.Typer(
    help="Environments: what there is, spec cards, checks of your own env, speed, and what rewards look like.",
    no_args_is_help=True,
)


@app.command("list")
def list_envs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also installed envs without a preset.")] = False,
    as_json: AsJson = False,
) -> None:
    """Environments with presets; with --all every installed Gymnasium id."""
    rows = _presets(every_game=everything or bool(words))
    if everything:
        known = {row["id"] for row in rows}
        rows += [row for row in _registered() if row["id"] not in known]
    rows = [row for row in rows if all(word.lower() in str(row["id"]).lower() for word in words or [])]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        more = "" if everything else " --all also looks at envs without a preset."
        typer.echo(f"No environment has {' and '.join(repr(word) for word in words or [])} in its id.{more}", err=True)
        raise typer.Exit(1)
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("environment", "family", "solved at", "variants", "installed"):
        table.add_column(column, overflow="fold", no_wrap=column in ("environment", "family"), min_width=len(column))
    for row in rows:
        solved = "" if row["solved_at"] is None else f"{row['solved_at']:g}"
        installed = "yes" if row["installed"] else escape(str(row["install"]))
        table.add_row(row["id"], row["family"], solved, ", ".join(row["variants"]), installed)
    Console(highlight=False).print(table)


def _presets(*, every_game: bool) -> list[dict[str, Any]]:
    """Envs with a file, shipped or the user's own, and those that share a base: each of them, or one row for all."""
    from gymnast.config.files import known_envs, variant_names

    rows = []
    for env_id, files in known_envs():
        spec: dict[str, Any] = next((file.data["spec"] for file in reversed(files) if file.data.get("spec")), {})
        bases = [file.data.get("extends") or (file.path.stem if file.patterns else None) for file in files]
        family = next((str(base) for base in reversed(bases) if base), "")
        rows.append(_row(env_id, family, variant_names(files), spec.get("solved_at"), spec.get("description", "")))
    shared = shared_configs({str(row["id"]) for row in rows}, every_game=every_game)
    return rows + [_row(env_id, base.path.stem, list(base.variants), None, "") for env_id, base in shared]


def shared_configs(but: set[str], *, every_game: bool) -> list[tuple[str, ConfigFile]]:
    """What a base says it is for, besides envs listed already: `ALE/*-v5`, or every installed id like that."""
    from gymnast.config.files import general_bases

    found = [(pattern, base) for base in general_bases() for pattern in base.patterns]
    if every_game:
        from gymnast.envs.registry import ids_like

        found = [(env_id, base) for pattern, base in found for env_id in ids_like(pattern) or [pattern]]
    return [(env_id, base) for env_id, base in dict(found).items() if env_id not in but]


def _registered() -> list[dict[str, Any]]:
    """What Gymnasium knows once the installed families have registered their envs."""
    import gymnasium as gym

    from gymnast.envs.registry import ids_like

    specs = [gym.registry[env_id] for env_id in ids_like()]
    return [_row(spec.id, _family_of(spec), [], spec.reward_threshold, "") for spec in specs]


def _row(env_id: str, family: str, variants: list[str], solved_at: Any, description: str) -> dict[str, Any]:
    install = _install_line(family)
    return {
        "id": env_id,
        "family": family,
        "variants": variants,
        "solved_at": solved_at,
        "description": description,
        "installed": install is None,
        "install": install,
    }


def _family_of(spec: Any) -> str:
    """`box2d` of gymnasium.envs.box2d.lunar_lander, else the package."""
    where = str(spec.entry_point if isinstance(spec.entry_point, str) else spec.entry_point.__module__)
    parts = where.replace(":", ".").split(".")
    name = parts[2] if parts[:2] == ["gymnasium", "envs"] and len(parts) > 2 else parts[0]
    return {"classic_control": "classic", "ale_py": "atari", "gymnast": "bandits"}.get(name, name)


def _install_line(family: str) -> str | None:
    """What to type for a family whose package is missing; None when nothing is."""
    import importlib.util

    from gymnast.cli.doctor import ENV_FAMILIES

    packages = {name.lower(): (module, pip) for name, (module, _, pip) in ENV_FAMILIES.items()}
    module, pip = packages.get(family, ("gymnasium", None))
    return None if importlib.util.find_spec(module) else f'pip install "{pip}"'


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
    from gymnast.envs.choose import choose_vectorization
    from gymnast.envs.families.atari import protocol
    from gymnast.envs.time_limits import time_limit_of
    from gymnast.envs.wrappers.show import layers, lines, short

    resolved = resolve(env_id, generic=generic)
    config, spec = resolved.config, resolved.config.spec
    wrapped, limit = layers(config.env), time_limit_of(config.env)
    observation, action = wrapped[0].observation_space, wrapped[0].action_space
    if as_json:
        echo_json(
            {
                "id": config.env.id,
                "observation_space": str(observation),
                "action_space": str(action),
                "wrappers": [
                    {
                        "wrapper": layer.text,
                        "observation_space": short(layer.observation_space),
                        "action_space": short(layer.action_space),
                    }
                    for layer in wrapped[1:]
                ],
                "protocol": protocol.protocol_of(config.env),
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
    facts.add_row("time limit", str(limit or spec.horizon or "none"))
    if how := protocol.sentence(config.env):
        facts.add_row("protocol", how)
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
    kind, reason = choose_vectorization(config.env)
    facts.add_row("vectorization", f"{kind} ({reason})")
    for i, line in enumerate(lines(wrapped)):
        facts.add_row("" if i else "wrappers", line)
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
    if bounds is None:
        return "unknown"
    return "unbounded" if tuple(bounds) == (None, None) else f"{_bound(bounds[0])} … {_bound(bounds[1])}"


app.command("check")(env_check.check)
app.command("bench")(env_bench.bench)
app.command("audit")(env_audit.audit)

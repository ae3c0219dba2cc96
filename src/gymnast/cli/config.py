"""`gymnast config`: list, show, diff and check here; the commands that write files in `config_files`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnast.cli import config_files
from gymnast.cli.import_zoo import import_zoo
from gymnast.cli.options import AsJson, Overrides, RunsDir, echo_json

if TYPE_CHECKING:
    from gymnast.config.load import Resolved
    from gymnast.config.schema import RunConfig

app = typer.Typer(help="List, show, compare, check, tidy and save configurations.", no_args_is_help=True)
app.command("import-zoo")(import_zoo)
app.command("fmt")(config_files.fmt)
app.command("schema")(config_files.schema)
app.command("save")(config_files.save)


@app.command("list")
def list_configs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    as_json: AsJson = False,
) -> None:
    """All presets, shipped and from ./configs."""
    from gymnast.cli.env import shared_configs
    from gymnast.config.files import known_envs, variant_names

    found = dict(known_envs())
    found |= {env_id: [base] for env_id, base in shared_configs(set(found), every_game=bool(words))}
    rows = []
    for env_id, files in found.items():
        labels = [file.label for file in files]
        rows += [{"config": f"{env_id}:{name}", "files": labels} for name in variant_names(files)]
    for finds in (_inside, _fuzzy):
        if hits := [
            row for row in rows if all(finds(word.lower(), str(row["config"]).lower()) for word in words or [])
        ]:
            break
    rows = hits
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        typer.echo(row["config"])
    if not rows:
        from gymnast.errors import UsageError, did_you_mean

        hint = did_you_mean(
            " ".join(words or []),
            [f"{env}:{name}" for env, files in found.items() for file in files for name in file.variants],
        )
        raise UsageError(f"No config matches {' '.join(words or [])!r}.{hint}")


def _inside(word: str, text: str) -> bool:
    return word in text


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
    from gymnast.cli.start import generic
    from gymnast.config.leaves import leaves, origin_of, text_of
    from gymnast.config.load import resolve
    from gymnast.config.plan import make_plan

    resolved = resolve(reference, overrides or [], generic=generic)
    _refuse_unknown(resolved.config)
    plan = make_plan(resolved.config, recommended=_recommended(resolved.config))
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
    for key, value in leaves({k: v for k, v in data.items() if k not in ("spec", "name")}).items():
        origin = origin_of(key, resolved.origins)
        if key in plan.reasons:
            table.add_row(key, str(plan.reasons[key]).split(":")[0].split(" = ")[0], f"derived: {plan.reasons[key]}")
        else:
            table.add_row(key, text_of(value), origin, style=None if origin != "default" else "dim")
    console.print(table)
    console.print(f"The spec of the env: gymnast env show {resolved.config.env.id}", style="dim")


def _refuse_unknown(config: RunConfig) -> None:
    """Where a base alone speaks for an env, its id may be anything: ask Gymnasium whether there is such an env."""
    from gymnast.config.files import env_files, own_files

    if own_files(config.env.id) or not env_files(config.env.id):
        return
    import contextlib

    from gymnast.envs.registry import env_spec
    from gymnast.errors import MissingPackageError

    with contextlib.suppress(MissingPackageError):  # its settings can be shown all the same
        env_spec(config.env.id, config.env.module)


def _recommended(config: RunConfig) -> tuple[int, str] | None:
    """What `n_envs: auto` becomes on this machine; nothing is imported for configs that say a number."""
    if config.env.n_envs != "auto":
        return None
    from gymnast.runs.bench import recommended
    from gymnast.runs.store import runs_root

    return recommended(runs_root(), config.env)


@app.command("diff")
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="ENV:VARIANT, FILE.yaml:VARIANT, or a run (@last, an id).")],
    second: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    everything: Annotated[bool, typer.Option("--all", help="Differences in the texts of the spec, too.")] = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """What differs between two configs once everything is resolved, and where each value comes from.

    The exit code is 0 whether they differ or not; programs read --json.
    """
    import dataclasses

    from gymnast.config.compare import compare
    from gymnast.config.leaves import text_of

    (name, old), (other, new) = (_side(reference, runs_dir) for reference in (first, second))
    found = compare(old, new, everything=everything)
    if as_json:
        echo_json({"a": name, "b": other, "differences": [dataclasses.asdict(difference) for difference in found]})
        return
    from rich.console import Console
    from rich.table import Table

    if not found:
        typer.echo(f"{name} and {other} are equal.")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True)
    for column, style in ((name, None), (other, None), ("from", "dim")):
        table.add_column(column, style=style, overflow="fold")
    for one in found:
        values = [
            "–" if place is None else text_of(value)
            for value, place in ((one.old, one.old_from), (one.new, one.new_from))
        ]
        places = dict.fromkeys(place or "–" for place in (one.old_from, one.new_from))
        table.add_row(one.key, *values, " → ".join(places))
    Console(highlight=False).print(table)


def _side(reference: str, runs_dir: Path | None) -> tuple[str, Resolved]:
    """A config or a run, with its name for people."""
    from gymnast.cli.start import generic
    from gymnast.config.files import known_env_ids
    from gymnast.config.load import from_saved, resolve
    from gymnast.config.names import RENAMED_ENVS
    from gymnast.errors import UsageError
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    named = not reference.startswith("@") and (":" in reference or reference.endswith((".yaml", ".yml")))
    if not named and reference not in known_env_ids() and reference not in RENAMED_ENVS:
        try:
            run = resolve_run(runs_root(runs_dir), reference)
        except UsageError:
            if "-v" not in reference:
                raise
        else:
            saved = from_saved(run.config())
            saved.origins = dict.fromkeys(saved.origins, f"run {run.id}")
            return f"run {run.id}", saved
    resolved = resolve(reference, generic=generic)
    for notice in resolved.notices:
        typer.echo(notice, err=True)
    return resolved.config.name, resolved


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
            _refuse_unknown(resolve(reference).config)
        except GymnastError as error:
            problems += 1
            typer.echo(f"✗ {reference}: {error}", err=True)
    typer.echo(f"{len(ids) - problems} of {len(ids)} configs are valid")
    if problems:
        raise typer.Exit(1)


def _expand(references: list[str] | None) -> list[str]:
    """Configs to check: a file or an env without a variant stands for all its variants."""
    from gymnast.config import files

    if not references:
        return [f"{env}:{name}" for env, found in files.known_envs() for name in files.variant_names(found)]
    ids: list[str] = []
    for reference in references:
        if reference.endswith((".yaml", ".yml")):
            ids += [f"{reference}:{name}" for name in files.read(Path(reference)).variants]
        elif found := files.env_files(reference):
            ids += [f"{reference}:{name}" for name in files.variant_names(found)]
        else:
            ids.append(reference)
    return ids

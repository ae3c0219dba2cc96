"""`gymnast config fmt | schema | save`: the commands that write files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnast.cli.options import RunsDir

if TYPE_CHECKING:
    from gymnast.runs.store import Run


def fmt(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|ENV]...", help="Files, or envs with a file in ./configs; all of them by default."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 and the files that would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print what would change.")] = False,
) -> None:
    """Put the keys of config files in their canonical order. Comments move with their keys, values stay as written."""
    from gymnast.config.format import format_text
    from gymnast.config.layout import read_text, write_text

    paths = _paths(targets)
    if not paths:
        typer.echo("There are no config files in ./configs. Name a file: gymnast config fmt FILE.yaml")
        return
    texts = {path: read_text(path) for path in paths}
    # All before the first is written: a broken file leaves the others alone.
    new = {path: format_text(text, str(path)) for path, text in texts.items()}
    changed = [path for path in paths if new[path] != texts[path]]
    for path in changed:
        if diff:
            typer.echo(_unified(path, texts[path], new[path]), nl=False)
        elif not check:
            write_text(path, new[path])
        if not diff:
            typer.echo(f"{'would change' if check else 'formatted'} {path}", err=check)
    if not diff:
        typer.echo(f"{len(paths) - len(changed)} of {len(paths)} files {'are' if check else 'were'} in order")
    if check and changed:
        raise typer.Exit(1)


def _paths(targets: list[str] | None) -> list[Path]:
    from gymnast.config.files import USER_FOLDER

    if not targets:
        return sorted([*USER_FOLDER.glob("*.yaml"), *USER_FOLDER.glob("bases/*.yaml")])
    return list(dict.fromkeys(_path(target) for target in targets))


def _path(target: str) -> Path:
    from gymnast.config.files import SHIPPED, USER_FOLDER
    from gymnast.config.names import RENAMED_ENVS
    from gymnast.errors import UsageError, did_you_mean

    if target.endswith((".yaml", ".yml")):
        return Path(target)
    env_id = RENAMED_ENVS.get(target, target)
    name = env_id.replace("/", "_") + ".yaml"
    if (USER_FOLDER / name).is_file():
        return USER_FOLDER / name
    if (SHIPPED / "envs" / name).is_file():
        raise UsageError(
            f"{env_id} has no file in ./configs, and the shipped one belongs to the package: {SHIPPED / 'envs' / name}"
        )
    hint = did_you_mean(target, [path.stem for path in USER_FOLDER.glob("*.yaml")])
    raise UsageError(f"'{target}' is neither a .yaml file nor an env with a file in ./configs.{hint}")


def _unified(path: Path, old: str, new: str) -> str:
    import difflib

    before, after = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(before, after, str(path), f"{path} (formatted)"))


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write (default: print it).")] = None,
) -> None:
    """JSON Schema of config files: completion, hints and checks in editors (docs/config.md has the set-up)."""
    from gymnast.config.jsonschema import schema_text
    from gymnast.config.layout import write_text

    text = schema_text()
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    typer.echo(f"Wrote {output}")


def save(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")],
    name: Annotated[str, typer.Argument(metavar="ENV:VARIANT", help="The new variant, e.g. CartPole-v1:my_ppo.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Config file to write (default: ./configs/ENV.yaml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a variant of the same name.")] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Freeze the settings of a run as a preset: training it again gives the same config, but for the seed."""
    from gymnast.config.layout import write_text
    from gymnast.config.load import from_saved
    from gymnast.config.save import save_variant
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    run = resolve_run(runs_root(runs_dir), reference)
    saved = save_variant(from_saved(run.config()).config, name, [_about(run)], output=output, force=force)
    write_text(saved.path, saved.text)
    typer.echo(f"Saved run {run.id} as {saved.reference} in {saved.path}")
    typer.echo(f"Train it: gymnast train {saved.reference}")


def _about(run: Run) -> str:
    """Where a variant comes from and how good it was."""
    config, status = run.config(), run.status()
    seed = config.get("train", {}).get("seed", 0)
    score = "not evaluated" if status.best_return is None else f"best evaluation {status.best_return:.5g}"
    solved = ", solved" if status.solved else ""
    origin = f"Saved from run {run.id} ({config.get('name', '')}, seed {seed}, {status.created[:10]})"
    return f"{origin}: {score}{solved}, {status.env_steps:,} env steps."

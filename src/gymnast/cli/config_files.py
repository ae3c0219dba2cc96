"""`gymnast config fmt | schema | save`: the commands that write files."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.options import RunsDir, Trust, echo, resolved_run
from gymnast.config.files import SHIPPED, USER_FOLDER
from gymnast.config.format import format_text
from gymnast.config.jsonschema import schema_text
from gymnast.config.layout import read_text, write_text
from gymnast.config.names import RENAMED_ENVS
from gymnast.config.save import save_variant
from gymnast.errors import UsageError, did_you_mean
from gymnast.metrics.verdict import shown, threshold_of
from gymnast.runs.store import Run
from gymnast.runs.trust import usable


def fmt(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE|ENV]...", help="Files, or envs with a file in ./configs (default: all of them)."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; list the files that would change and exit with 1.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print what would change.")] = False,
) -> None:
    """Sort the keys of config files into canonical order. Comments move with their keys; values stay as written."""
    paths = _paths(targets)
    if not paths:
        echo("There are no config files in ./configs. Name a file: gymnast config fmt FILE.yaml")
        return
    texts = {path: read_text(path) for path in paths}
    # All before the first is written: a broken file leaves the others alone.
    new = {path: format_text(text, str(path)) for path, text in texts.items()}
    changed = [path for path in paths if new[path] != texts[path]]
    in_order = f"{len(paths) - len(changed)} of {len(paths)} files"
    if diff:
        for path in changed:
            echo(_unified(path, texts[path], new[path]), nl=False)
    elif check:
        for path in changed:
            echo(f"would change {path}", err=True)
        echo(f"{in_order} are in order")
    else:
        for path in changed:
            write_text(path, new[path])
            echo(f"formatted {path}")
        echo(f"{in_order} were in order")
    if check and changed:
        raise typer.Exit(1)


def _paths(targets: list[str] | None) -> list[Path]:
    if not targets:
        return sorted([*USER_FOLDER.glob("*.yaml"), *USER_FOLDER.glob("bases/*.yaml")])
    return list(dict.fromkeys(_path(target) for target in targets))


def _path(target: str) -> Path:
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
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(before, after, str(path), f"{path} (formatted)"))


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write (default: print it).")] = None,
) -> None:
    """Print the JSON Schema of config files, for completion and checks in editors (see docs/config.md)."""
    text = schema_text()
    if output is None:
        echo(text, nl=False)
        return
    write_text(output, text)
    echo(f"Wrote {output}")


def save(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")],
    name: Annotated[str, typer.Argument(metavar="ENV:VARIANT", help="The new variant, e.g. CartPole-v1:my_ppo.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Config file to write (default: ./configs/ENV.yaml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a variant of the same name.")] = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Save the settings of a run as a preset."""
    run = resolved_run(reference, runs_dir, trust=trust)
    saved = save_variant(usable(run).config, name, [_about(run)], output=output, force=force)
    write_text(saved.path, saved.text)
    echo(f"Saved run {run.id} as {saved.reference} in {saved.path}")
    echo(f"Train it: gymnast train {saved.reference}")


def _about(run: Run) -> str:
    """Where a variant comes from and how good it was."""
    config, status = run.config(), run.status()
    seed = config.get("train", {}).get("seed", 0)
    score = "not evaluated"
    if status.best_return is not None:
        score = f"best evaluation {shown(status.best_return, threshold_of(config), digits=5)}"
    solved = ", solved" if status.solved else ""
    origin = f"Saved from run {run.id} ({config.get('name', '')}, seed {seed}, {status.created[:10]})"
    return f"{origin}: {score}{solved}, {status.env_steps:,} env steps."

"""`gymnast config import-zoo`: hyperparameters of rl-baselines3-zoo as presets of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.options import echo
from gymnast.config import files
from gymnast.config.files import USER_FOLDER, ConfigFile, parse_yaml
from gymnast.config.writing import with_variant
from gymnast.config.zoo import ALGORITHMS, OTHER_ALGORITHMS, TEMPLATES, Translation, known_keys, translate
from gymnast.errors import ConfigError, MissingPackageError, UsageError, did_you_mean


def import_zoo(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A hyperparameter file of the zoo, such as ppo.yml.")],
    entry: Annotated[str | None, typer.Argument(metavar="ENTRY", help="The env; without it, all are listed.")] = None,
    algo: Annotated[str | None, typer.Option(help="ppo or a2c; by default from the name of the file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (a folder with --all); ./configs by default.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Name of the variant; zoo_ppo or zoo_a2c by default.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="KEY", help="Leave this key of the entry out.")] = None,
    template: Annotated[
        str | None, typer.Option("--from", metavar="ENTRY", help="Use this entry (default, atari, ...) for the env.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Import every entry that can be imported.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a variant of the same name.")] = False,
) -> None:
    """Turn rl-baselines3-zoo hyperparameters into presets.

    What an entry leaves out gets Stable-Baselines3's default, so training goes as it does there.
    """
    file = _read(path)
    algorithm = _algorithm(algo, path)
    name = variant or f"zoo_{algorithm}"
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise UsageError(f"'{name}' cannot name a variant: use letters, digits and underscores, a letter first.")
    ignored = _check_ignored(ignore or [], file, algorithm)
    if entry is None:
        if template or (output and not everything):
            raise UsageError("Name the entry to import, or give --all for all of them.")
        found = [translate(file, each, algorithm, ignore=ignored) for each in file.data]
        if everything:
            _write_all(found, file, output, name, force=force)
        else:
            _list(found, file, "can be imported")
        return
    if everything:
        raise UsageError("Give an entry or --all, not both.")
    source = _entry(template or entry, file, asked_for=template is not None)
    one = translate(file, source, algorithm, env_id=entry, ignore=ignored)
    if one.variant is None:
        raise ConfigError("\n".join([*one.refusals, _hint(one)]).rstrip())
    target = _target(one, output)
    _write(one, file, target, name, force=force)
    echo(f"Wrote variant '{name}' of {one.env_id} to {target}")
    for note in filter(None, [*one.notes, _not_installed(one.env_id)]):
        echo(f"  {note}")
    echo(f"Train it: gymnast train {one.env_id if output is None else target}:{name}")


# ---- reading -------------------------------------------------------------------------------------------------------


def _read(path: Path) -> ConfigFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"Cannot read {path}: it is not UTF-8 text.") from None
    data, lines = parse_yaml(text, str(path))
    if data is None or data == {}:
        raise ConfigError(f"{path} is empty: expected entries such as `CartPole-v1:` with their hyperparameters.")
    if not isinstance(data, dict):
        raise ConfigError(
            f"{path} holds no mapping: expected entries such as `CartPole-v1:` with their hyperparameters."
        )
    return ConfigFile(path, data, lines)


def _algorithm(given: str | None, path: Path) -> str:
    name = (given or path.stem).lower()
    if name in ALGORITHMS:
        return name
    can = f"import-zoo reads settings of {' and '.join(ALGORITHMS)}"
    if given is not None:
        raise UsageError(f"Unknown algorithm '{given}'.{did_you_mean(name, ALGORITHMS)} {can[0].upper()}{can[1:]}.")
    if name in OTHER_ALGORITHMS:
        raise UsageError(f"{path} holds settings of {name}, which gymnast does not have: {can}.")
    raise UsageError(f"The name of {path} does not say the algorithm: add --algo {' or --algo '.join(ALGORITHMS)}.")


def _check_ignored(ignore: list[str], file: ConfigFile, algorithm: str) -> list[str]:
    known = {*known_keys(algorithm), *(key for body in file.data.values() if isinstance(body, dict) for key in body)}
    for key in ignore:
        if key not in known:
            raise UsageError(f"--ignore {key}: no entry has such a key.{did_you_mean(key, known)}")
    return ignore


def _entry(name: str, file: ConfigFile, *, asked_for: bool) -> str:
    if name in file.data:
        return name
    told = f"{file.label} has no entry '{name}'." + did_you_mean(name, [e for e in file.data if e not in TEMPLATES])
    if "default" in file.data and not asked_for:
        told += " Its default entry is used with --from default."
    raise UsageError(told)


def _hint(one: Translation) -> str:
    keys = [key for sentence in one.refusals for key in re.findall(r": '(\w+)':", sentence)]
    if not keys:
        return ""
    return f"To import it without them: {' '.join(f'--ignore {key}' for key in dict.fromkeys(keys))}"


def _not_installed(env_id: str) -> str | None:
    """A sentence where the env could not be made here (the preset is as good)."""
    from gymnast.envs.registry import env_spec  # Gymnasium: wrong arguments are reported before it is imported

    try:
        env_spec(env_id)
    except MissingPackageError as error:
        return str(error)
    except UsageError:
        return f"{env_id} is not registered here: install the package that brings it before training."
    return None


# ---- writing -------------------------------------------------------------------------------------------------------


def _target(one: Translation, output: Path | None) -> Path:
    name = one.env_id.replace("/", "_") + ".yaml"
    if output is None:
        return USER_FOLDER / name
    if output.is_dir():
        return output / name
    if output.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--output {output} must end in .yaml, or be a folder that is there.")
    return output


def _write(one: Translation, source: ConfigFile, target: Path, name: str, *, force: bool) -> None:
    assert one.variant is not None
    existing, text = None, ""
    if target.exists():
        existing, text = files.read(target), target.read_text(encoding="utf-8")
    if existing is not None and str(existing.data.get("id", one.env_id)) != one.env_id:
        raise UsageError(f"{target} is for {existing.data['id']}, not {one.env_id}: choose another --output.")
    # On top of a shipped variant of that name, what the zoo does not speak of (eval, log) would be that variant's.
    shipped = [file for file in files.env_files(one.env_id) if file.path.is_relative_to(files.SHIPPED)]
    if existing is not None:
        shipped.append(existing)
    for file in shipped:
        if name in file.variants and not force:
            raise UsageError(
                f"{file.label} has a variant '{name}' already: choose another --variant, or replace it with --force."
            )
    about = (
        f"From {source.path.name} of rl-baselines3-zoo, entry {one.entry}; what it leaves out is Stable-Baselines3's."
    )
    text = with_variant(text, one.env_id, name, one.variant, [about, *one.notes], str(target))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(target)  # never half a file
    except FileExistsError:
        raise UsageError(f"Cannot write {target}: {target.parent} is not a folder.") from None
    except OSError as error:
        raise UsageError(f"Cannot write {target}: {error.strerror}.") from None


def _write_all(found: Sequence[Translation], file: ConfigFile, output: Path | None, name: str, *, force: bool) -> None:
    folder = output or USER_FOLDER
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output {folder} is a file: with --all it is the folder to write to.")
    written: dict[str, str] = {}
    for one in found:
        if one.variant is not None and one.env_id in written:
            one.variant, one.refusals = None, [f"{one.env_id} was imported from entry {written[one.env_id]}."]
        if one.variant is None:
            continue
        try:
            _write(one, file, folder / (one.env_id.replace("/", "_") + ".yaml"), name, force=force)
            written[one.env_id] = one.entry
        except UsageError as error:
            one.variant, one.refusals = None, [str(error)]
    _list(found, file, f"written to {folder}")
    if written:
        env = f"{folder}/ENV.yaml" if output else "ENV"
        echo(f"Train one: gymnast train {env}:{name}")


def _list(found: Sequence[Translation], file: ConfigFile, done: str) -> None:
    for one in found:
        if one.variant is None:
            reasons = " ".join(one.refusals).replace(f"{file.label}:", "line ")
            echo(f"✗ {one.entry}: {reasons}")
        else:
            missing = " (env not installed here)" if _not_installed(one.env_id) else ""
            echo(f"✓ {one.entry}{missing}")
    echo(f"{sum(one.variant is not None for one in found)} of {len(found)} entries {done}")

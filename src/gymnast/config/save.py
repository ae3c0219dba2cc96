"""A run's config as a variant of a config file (CFG-7): sparse, readable, and exactly the run's when it is resolved again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.config import files
from gymnast.config.compare import compare
from gymnast.config.files import ConfigFile
from gymnast.config.layout import read_text
from gymnast.config.load import Resolved, resolve
from gymnast.config.merging import SECTIONS
from gymnast.config.model import Model
from gymnast.config.names import RENAMED_ENVS
from gymnast.config.schedule import SCHEDULES, Linear
from gymnast.config.schema import RunConfig
from gymnast.config.variants import infer_algorithm, split_reference
from gymnast.config.writing import with_variant
from gymnast.errors import ConfigError, UsageError

_NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Saved:
    """A config file as it is to be written."""

    path: Path
    text: str
    reference: str
    """What to train from now on."""


def save_variant(
    run: RunConfig, reference: str, comments: Sequence[str], *, output: Path | None = None, force: bool = False
) -> Saved:
    """The file with `run` frozen as the variant that `reference` names; nothing is written here."""
    env_id, variant = _checked_reference(run, reference)
    run = run.model_copy(update={"env": run.env.model_copy(update={"id": env_id})})  # it may have been renamed since
    usual = files.USER_FOLDER / f"{env_id.replace('/', '_')}.yaml"
    path = output or usual
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--output {path} must end in .yaml.")
    if path.exists():
        existing = files.read(path)
    else:
        existing = ConfigFile(path, {}, {})
    if str(existing.data.get("id", env_id)) != env_id:
        raise UsageError(f"{path} is for {existing.data['id']}, not for {env_id}: choose another --output.")
    _check_free(env_id, variant, existing, force)
    body = _body(run, variant, _inherited(run, env_id, variant, existing))
    text = with_variant(read_text(path) if path.exists() else "", env_id, variant, body, comments, str(path))
    _check_equal(run, env_id, variant, ConfigFile(path, *files.parse_yaml(text, str(path))))
    return Saved(path, text, f"{env_id if path == usual else path}:{variant}")


def _checked_reference(run: RunConfig, reference: str) -> tuple[str, str]:
    env_id, variant = split_reference(reference)
    env_id = RENAMED_ENVS.get(env_id, env_id)
    own = RENAMED_ENVS.get(run.env.id, run.env.id)
    if env_id != own:
        raise UsageError(f"The run trained {own}, not {env_id}: save it as {own}:{variant or f'my_{run.algo.id}'}.")
    if variant is None:
        raise UsageError(f"Name the new variant, for example {env_id}:my_{run.algo.id}.")
    if not _NAME.fullmatch(variant):
        raise UsageError(f"'{variant}' cannot name a variant: use letters, digits and underscores, a letter first.")
    return env_id, variant


def _check_free(env_id: str, variant: str, existing: ConfigFile, force: bool) -> None:
    for file in [existing, *files.env_files(env_id)]:
        if variant in file.variants and not force:
            raise UsageError(
                f"{file.label} has a variant '{variant}' already: choose another name, or replace it with --force."
            )


def _inherited(run: RunConfig, env_id: str, variant: str, existing: ConfigFile) -> dict[str, Any]:
    """What the variant would have if it said nothing but its algorithm and a budget."""
    budget = {key: value for key, value in _budget(run).items() if value is not None}
    empty = {"algo": {"id": run.algo.id}, "train": budget}
    data = existing.data | {"id": env_id, "variants": existing.variants | {variant: empty}}
    file = ConfigFile(existing.path, data, existing.lines)
    return resolve(f"{env_id}:{variant}", unwritten=file).config.model_dump(mode="json")


def _budget(run: RunConfig) -> dict[str, int | None]:
    return {"env_steps": run.train.env_steps, "vec_steps": run.train.vec_steps}


# ---- the body ------------------------------------------------------------------------------------------------------


def _body(run: RunConfig, variant: str, inherited: dict[str, Any]) -> dict[str, Any]:
    """Everything that is not a plain default, so that later changes of the files below do not reach a frozen run.

    Of the spec, which says what the env is and not how to train, only what the files below say otherwise.
    """
    body: dict[str, Any] = {}
    if run.plan is not None:
        body["plan"] = run.plan.model_dump(mode="json", exclude_defaults=True)
    for name in SECTIONS:
        if name == "plan":
            continue  # written whole: a task means nothing without the others
        section: Model = getattr(run, name)
        below = inherited[name]
        chosen = _chosen(section.model_dump(mode="json"), below, below if name == "spec" else _defaults(section))
        body[name] = {key: _written(section, key, value) for key, value in chosen.items()}
    body["train"].pop("seed", None)
    for key, value in _budget(run).items():
        if value is None:
            body["train"].pop(key, None)
    body["env"].pop("id", None)
    if run.algo.id != infer_algorithm(variant):
        body["algo"] = {"id": run.algo.id, **body["algo"]}
    return {name: body[name] for name in SECTIONS if body.get(name)}


def _chosen(values: dict[str, Any], below: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that differ from what lies below or from the defaults, key by key as layers merge."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        under, default = below.get(key), defaults.get(key)
        if isinstance(value, dict) and "schedule" not in value and isinstance(under, dict):
            inner = _chosen(value, under, default if isinstance(default, dict) else {})
            if inner:
                found[key] = inner
        elif value != under or value != default:
            found[key] = value
    return found


def _defaults(section: Model) -> dict[str, Any]:
    """The section as it is when nothing is set."""
    needed = {key: getattr(section, key) for key, info in type(section).model_fields.items() if info.is_required()}
    return type(section)(**needed).model_dump(mode="json")


def _written(section: Model, key: str, value: Any) -> Any:
    """A value in its shortest form that reads back as the same."""
    if key == "wrappers":
        return [_wrapper(wrapper) for wrapper in value]
    if isinstance(value, dict) and "schedule" in value:
        return _schedule(value)
    if isinstance(value, float) and value.is_integer():
        short = type(section).model_validate({**section.model_dump(), key: int(value)})
        return int(value) if repr(getattr(short, key)) == repr(value) else value  # batch_size 1.0 is all, 1 is one
    return value


def _wrapper(wrapper: dict[str, Any]) -> Any:
    name, arguments = wrapper["id"], wrapper["args"]
    if {"id", "args"} & arguments.keys():
        return wrapper
    if arguments:
        return {"id": name, **arguments}
    return name


def _schedule(value: dict[str, Any]) -> Any:
    schedule = SCHEDULES[value["schedule"]].model_validate(value)
    if schedule == Linear(schedule="linear", start=value.get("start", 0.0)):
        return f"lin_{schedule.start!r}"
    short = schedule.model_dump(mode="json", exclude_defaults=True)
    return {"schedule": value["schedule"], **short}


def _check_equal(run: RunConfig, env_id: str, variant: str, file: ConfigFile) -> None:
    """The promise of this module; broken only where a layer below sets something that no variant can take away."""
    saved = resolve(f"{env_id}:{variant}", unwritten=file)
    wanted = Resolved(run.model_copy(update={"train": run.train.model_copy(update={"seed": saved.config.train.seed})}))
    for difference in compare(wanted, saved, everything=True):
        raise ConfigError(
            f"The run cannot be saved exactly: {difference.new_from or 'nothing'} sets '{difference.key}' to "
            f"{difference.new!r}, where the run had {difference.old!r}. Move that key from the defaults to the variants "
            "that need it, or choose another --output."
        )

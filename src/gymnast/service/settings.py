"""The settings of a run, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.config.files import env_files, variant_names
from gymnast.config.leaves import leaves, origin_of, text_of
from gymnast.config.load import Resolved, resolve
from gymnast.config.merging import SAVED_RUN
from gymnast.config.schema import RunConfig
from gymnast.errors import GymnastError, UsageError
from gymnast.runs import lineage
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import Run, runs_root
from gymnast.runs.trust import usable
from gymnast.service.configs import ConfigCard, Setting, card_of, config_card, is_config_reference, resolved_config


@dataclass(frozen=True)
class _Preset:
    """What the config that a run names says today."""

    values: dict[str, Any]
    origins: dict[str, str]


def show_config(reference: str, overrides: Sequence[str] = (), root: Path | None = None) -> ConfigCard:
    """Every value with its origin: of a config, or of a run (@last, an id)."""
    run = _named_run(reference, root)
    if run is None:
        return config_card(reference, overrides)
    return run_card(run, overrides)


def resolved_reference(reference: str, root: Path | None = None) -> tuple[str, Resolved]:
    """A config or a run, resolved, with its name for people."""
    run = _named_run(reference, root)
    if run is None:
        resolved = resolved_config(reference)
        return resolved.config.name, resolved
    saved = usable(run, playing=False)
    saved.origins = dict.fromkeys(saved.origins, f"run {run.id}")
    return f"run {run.id}", saved


def resolved_plan(
    reference: str, overrides: Sequence[str] = (), root: Path | None = None
) -> tuple[str, Resolved, Run | None]:
    """A config or a run, resolved, with its name for people, and the run where it is one."""
    run = _named_run(reference, root)
    if run is None:
        resolved = resolved_config(reference, list(overrides))
        return resolved.config.name, resolved, None
    resolved = usable(run, playing=False)
    return f"{resolved.config.name}, run {run.id}", resolved, run


def _named_run(reference: str, root: Path | None) -> Run | None:
    """The run that a reference means; None if it means a config."""
    if is_config_reference(reference):
        return None
    try:
        return resolve_run(runs_root(root), reference)
    except UsageError:
        if "-v" not in reference:
            raise
        return None  # an env without a preset


def run_card(run: Run, overrides: Sequence[str] = ()) -> ConfigCard:
    """The settings of a run with their origins. One of another version, or that asks for trust, is shown as it was saved.

    A run does not record where its values came from. What equals the preset that it names has that preset's origin;
    what a resume changed says so; the rest was said when the run began, or the preset was another one then.
    """
    try:
        resolved = usable(run, overrides, playing=False)
    except UsageError:
        if overrides:
            raise
        return _as_saved(run)
    if resolved.config.train.env_steps is None and resolved.config.train.vec_steps is None:  # a damaged config
        return _as_saved(run)
    values = leaves(resolved.config.model_dump(mode="json"))
    preset, changes = _preset(resolved.config.name), _changes(run)
    defaults = _defaults(resolved.config)
    origins = {key: _origin(key, values[key], preset, defaults, changes, run) for key in values}
    given = {key: origin for key, origin in resolved.origins.items() if origin != SAVED_RUN}
    merged = {key: origin for key, origin in origins.items() if origin != "default"} | given
    return card_of(Resolved(resolved.config, merged, resolved.notices), run=run.id)


def _origin(
    key: str, value: Any, preset: _Preset | None, defaults: dict[str, Any], changes: dict[str, str], run: Run
) -> str:
    if key in changes:
        return changes[key]
    if preset is None or key not in preset.values:
        if key in defaults and _same(defaults[key], value):
            return "default"
        return f"run {run.id}"
    there = preset.values[key]
    if _same(there, value):
        return origin_of(key, preset.origins)
    if there == "auto":
        return f"run {run.id} (auto, settled when it began)"
    return f"run {run.id} (preset: {text_of(there)})"


def _same(first: Any, second: Any) -> bool:
    """As text: a batch_size of 1 is one sample, 1.0 is the whole rollout."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _defaults(config: RunConfig) -> dict[str, Any]:
    """What a config of this env and algorithm has that says nothing else."""
    ids = {"env": {"id": config.env.id}, "algo": {"id": config.algo.id}}
    return leaves(RunConfig.model_validate({**ids, "train": {}}).model_dump(mode="json"))


def _preset(name: str) -> _Preset | None:
    """The config of that name, from files alone: the name may be anybody's text, and is not to import anything."""
    env_id, _, variant = name.rpartition(":")
    try:
        if variant not in variant_names(env_files(env_id)):
            return None
        resolved = resolve(name)
    except GymnastError:  # another version's, or a broken file of the user's
        return None
    return _Preset(leaves(resolved.config.model_dump(mode="json")), resolved.origins)


def _changes(run: Run) -> dict[str, str]:
    """What resumes changed, by key; the last one counts."""
    found: dict[str, str] = {}
    for attempt in lineage.read(run.folder).attempts:
        if isinstance(attempt.changes, dict):  # not a damaged file
            found |= dict.fromkeys(attempt.changes, f"resume, attempt {attempt.attempt}")
    return found


def _as_saved(run: Run) -> ConfigCard:
    config = run.config()
    flat = leaves({key: value for key, value in config.items() if key not in ("spec", "name")})
    settings = tuple(Setting(key, value, text_of(value), f"run {run.id}", False) for key, value in flat.items())
    env = config.get("env")
    return ConfigCard(
        name=str(config.get("name") or ""),
        run=run.id,
        env=str(env.get("id") or "") if isinstance(env, dict) else "",
        notices=(),
        settings=settings,
        config=config,
        origins={setting.key: setting.origin for setting in settings},
        derived={},
    )

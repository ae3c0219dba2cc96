"""One zoo entry as a variant.

The variant says every learning-relevant key: the entry's value, else Stable-Baselines3's default, else our schema's.
So nothing of the env's other presets, on top of which its file is layered, shows through.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from gymnast.config.files import ConfigFile
from gymnast.config.load import validate
from gymnast.config.names import RENAMED_ENVS
from gymnast.config.schema import RunConfig
from gymnast.config.zoo.atari import atari_id
from gymnast.config.zoo.defaults import TEMPLATES
from gymnast.config.zoo.keys import ALGO_HANDLERS, HANDLERS, Draft
from gymnast.errors import ConfigError, did_you_mean


@dataclass
class Translation:
    """What an entry becomes and what the user should know, or why it cannot be imported (then there is no variant)."""

    entry: str
    env_id: str
    variant: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def translate(
    file: ConfigFile, entry: str, algorithm: str, *, env_id: str | None = None, ignore: Collection[str] = ()
) -> Translation:
    """Entry `entry` of a zoo file; `env_id` is given where the entry is used for another env."""
    asked = env_id or entry
    result = Translation(entry, RENAMED_ENVS.get(asked, asked))
    body, where = file.data[entry], file.where((entry,))
    if not isinstance(body, dict):
        result.refusals.append(f"{where}: entry '{entry}' must be a mapping (got {body!r}).")
        return result
    if asked in TEMPLATES:
        result.refusals.append(
            f"{where}: '{asked}' is not an env but a fallback for others: name an env and add --from {asked}."
        )
        return result
    given = {key: value for key, value in body.items() if key not in ignore}
    draft = Draft(algorithm, given, {key: value for key, value in body.items() if key in ignore})
    result.refusals = _translate_keys(draft, algorithm, file, entry)
    if "atari" in draft.sections["env"]:
        try:
            result.env_id = atari_id(asked)
        except ConfigError as error:
            result.refusals.append(f"{where}: {error}.")
    if result.env_id != asked:
        result.notes.append(f"{asked} is now {result.env_id}.")
    if not result.refusals:
        result.refusals = _finish(draft, result.env_id, file, entry)
    if not result.refusals:
        result.variant = {section: _ordered(section, keys) for section, keys in draft.sections.items()}
    result.notes += draft.notes
    return result


def known_keys(algorithm: str) -> list[str]:
    """The keys of an entry that are understood, if only to say that they are not supported."""
    return [*HANDLERS, *ALGO_HANDLERS[algorithm]]


def _translate_keys(draft: Draft, algorithm: str, file: ConfigFile, entry: str) -> list[str]:
    """Fill the draft; the reasons why it cannot be."""
    if draft.dropped:
        said = ", ".join(f"{key}: {' '.join(str(value).split())}" for key, value in draft.dropped.items())
        draft.note(f"Dropped as asked: {said}.")
    handlers = HANDLERS | ALGO_HANDLERS[algorithm]
    refusals = []
    # In the order of the table: frames are stacked outside other wrappers, policy_kwargs have the last word.
    for key in sorted(draft.given, key=[*handlers, *draft.given].index):
        draft.key, value = key, draft.given[key]
        where = file.where((entry, key))
        if key not in handlers:
            refusals.append(f"{where}: unknown key '{key}' for {algorithm}.{did_you_mean(key, handlers)}")
            continue
        try:
            if not _is_plain(value):
                raise ConfigError("a YAML tag stands there, and only plain values are read")
            handlers[key](draft, value)
        except ConfigError as error:
            refusals.append(f"{where}: '{key}': {error}.")
    if "n_timesteps" not in draft.given:
        refusals.append(f"{file.where((entry,))}: the entry has no n_timesteps, its budget.")
    return refusals


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)


def _finish(draft: Draft, env_id: str, file: ConfigFile, entry: str) -> list[str]:
    """What follows from several keys, then the check of the whole."""
    env, algo = draft.sections["env"], draft.sections["algo"]
    n_envs, n_steps, batch = env["n_envs"], algo["n_steps"], algo.get("batch_size")
    if all(type(size) is int for size in (n_envs, n_steps, batch)) and batch > n_envs * n_steps:
        algo["batch_size"] = n_envs * n_steps
        draft.note(f"batch_size {batch} is more than one rollout: all of its {n_envs * n_steps} samples, as in SB3.")
    origins = {ours: file.where((entry, theirs)) for ours, theirs in draft.origins.items()}
    try:
        validate(draft.sections | {"env": {"id": env_id, **env}}, origins)
    except ConfigError as error:
        return str(error).splitlines()
    return []


def _ordered(section: str, keys: dict[str, Any]) -> dict[str, Any]:
    """In the order of the schema; `algo` has all its keys and that order already."""
    model = RunConfig.model_fields[section].annotation
    if section == "algo":
        names = list(keys)
    else:
        names = list(getattr(model, "model_fields", keys))
    return {name: keys[name] for name in names if name in keys}

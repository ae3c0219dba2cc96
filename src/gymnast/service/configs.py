"""Configs: list and search them, resolve one with the origin of every value, check them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.config import files
from gymnast.config.files import (
    ConfigFile,
    env_files,
    general_bases,
    known_env_ids,
    known_envs,
    own_files,
    variant_names,
)
from gymnast.config.leaves import leaves, origin_of, text_of
from gymnast.config.load import Resolved, resolve
from gymnast.config.names import RENAMED_ENVS
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.errors import GymnastError, MissingPackageError, did_you_mean
from gymnast.runs.store import runs_root


@dataclass(frozen=True)
class ConfigEntry:
    """A config by name, and the files it is made of."""

    config: str
    """`CartPole-v1:ppo`."""
    files: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """One value of a config."""

    key: str
    value: Any
    """As configured: `auto` where that is what the config says."""
    text: str
    """For people: what it comes to, and schedules in words."""
    origin: str
    """File and line, command line, `default`, or `derived: ` with the reason."""
    default: bool
    """No layer of the config says it."""


@dataclass(frozen=True)
class ConfigCard:
    """A config with all its values, or the settings of a run."""

    name: str
    run: str | None
    """The run whose settings these are."""
    env: str
    notices: tuple[str, ...]
    """What the user should be told about how it was found."""
    settings: tuple[Setting, ...]
    """All but the spec of the env."""
    config: dict[str, Any]
    """The same as one tree, with the spec."""
    origins: dict[str, str]
    derived: dict[str, str]
    """What `auto` and open values come to, with the reason."""


@dataclass(frozen=True)
class CheckedConfig:
    """Whether a config is valid."""

    reference: str
    problem: str | None
    """None if it is."""


def list_configs(words: Sequence[str] = ()) -> list[ConfigEntry]:
    """Presets, shipped and from ./configs, whose names contain all words; else those that have their letters in order."""
    every: list[ConfigEntry] = []
    for env_id, layers in _known(every_game=bool(words)).items():
        labels = tuple(file.label for file in layers)
        every += [ConfigEntry(f"{env_id}:{name}", labels) for name in variant_names(layers)]
    asked = [word.lower() for word in words]
    entries = [entry for entry in every if all(word in entry.config.lower() for word in asked)]
    return entries or [entry for entry in every if all(_in_order(word, entry.config.lower()) for word in asked)]


def similar_configs(text: str) -> str:
    """` Did you mean …?` with the configs whose names are like this text, or nothing."""
    known = _known(every_game=bool(text))
    return did_you_mean(
        text, [f"{env}:{name}" for env, files in known.items() for file in files for name in file.variants]
    )


def _known(*, every_game: bool) -> dict[str, list[ConfigFile]]:
    """Env ids with presets, and the files of each; those that share a base have that."""
    found = dict(known_envs())
    return found | {env_id: [base] for env_id, base in shared_configs(set(found), every_game=every_game)}


def shared_configs(but: set[str], *, every_game: bool) -> list[tuple[str, ConfigFile]]:
    """What a base says it is for, next to envs listed already: `ALE/*-v5`, or every installed id like that."""
    found = [(pattern, base) for base in general_bases() for pattern in base.patterns]
    if every_game:
        from gymnast.envs.registry import ids_like  # Gymnasium: not needed for a list of files

        found = [(env_id, base) for pattern, base in found for env_id in ids_like(pattern) or [pattern]]
    return [(env_id, base) for env_id, base in dict(found).items() if env_id not in but]


def resolved_config(reference: str, overrides: Sequence[str] = (), settings: dict[str, Any] | None = None) -> Resolved:
    """Resolve a reference; an env without a file gets settings that fit its spaces. Imports no torch."""
    return resolve(reference, list(overrides), settings=settings, generic=_generic)


def _generic(env_id: str, algorithm: str, env: dict[str, Any]) -> dict[str, Any]:
    from gymnast.envs.defaults import generic_defaults  # Gymnasium: most configs have a file and do not ask it

    return generic_defaults(env_id, algorithm, env)


def config_card(reference: str, overrides: Sequence[str] = ()) -> ConfigCard:
    """Every value of a config, and where it comes from."""
    resolved = resolved_config(reference, overrides)
    refuse_unknown_env(resolved.config)
    return card_of(resolved)


def card_of(resolved: Resolved, *, run: str | None = None) -> ConfigCard:
    """The card of a config that is resolved already."""
    config = resolved.config
    plan = make_plan(config, recommended=_recommended(config))
    data = config.model_dump(mode="json")
    shown = leaves({key: value for key, value in data.items() if key not in ("spec", "name")})
    settings = [_setting(key, value, resolved.origins, plan.reasons) for key, value in shown.items()]
    return ConfigCard(
        name=config.name,
        run=run,
        env=config.env.id,
        notices=tuple(resolved.notices),
        settings=tuple(settings),
        config=data,
        origins=dict(resolved.origins),
        derived=dict(plan.reasons),
    )


def _setting(key: str, value: Any, origins: dict[str, str], reasons: dict[str, str]) -> Setting:
    origin = origin_of(key, origins)
    default = origin == "default"
    if key in reasons:
        text = str(reasons[key]).split(":")[0].split(" = ")[0]
        return Setting(key, value, text, f"derived: {reasons[key]}", default)
    return Setting(key, value, text_of(value), origin, default)


def refuse_unknown_env(config: RunConfig) -> None:
    """Where a base alone speaks for an env, its id may be anything: ask Gymnasium whether there is such an env."""
    if own_files(config.env.id) or not env_files(config.env.id):
        return
    from gymnast.envs.registry import env_spec  # Gymnasium: presets with files of their own do not ask it

    with contextlib.suppress(MissingPackageError):  # its settings can still be shown
        env_spec(config.env.id, config.env.module)


def _recommended(config: RunConfig) -> tuple[int, str] | None:
    """What `n_envs: auto` becomes on this machine; nothing is imported for configs that say a number."""
    if config.env.n_envs != "auto":
        return None
    from gymnast.runs.bench import recommended

    return recommended(runs_root(), config.env)


def is_config_reference(reference: str) -> bool:
    """Whether a reference names a config and not a run: `ENV:VARIANT`, a file, an env that is known."""
    if reference.startswith("@"):
        return False
    written = ":" in reference or reference.endswith((".yaml", ".yml"))
    return written or reference in known_env_ids() or reference in RENAMED_ENVS


def check_configs(references: Sequence[str] = ()) -> list[CheckedConfig]:
    """Resolve and validate configs: every variant of every known file, or the given ones."""
    return [CheckedConfig(reference, _problem(reference)) for reference in _expanded(references)]


def _problem(reference: str) -> str | None:
    try:
        refuse_unknown_env(resolve(reference).config)
    except GymnastError as error:
        return str(error)
    return None


def _expanded(references: Sequence[str]) -> list[str]:
    """Configs to check: a file or an env without a variant means all its variants."""
    if not references:
        return [f"{env}:{name}" for env, found in known_envs() for name in variant_names(found)]
    ids: list[str] = []
    for reference in references:
        if reference.endswith((".yaml", ".yml")):
            ids += [f"{reference}:{name}" for name in files.read(Path(reference)).variants]
        elif found := env_files(reference):
            ids += [f"{reference}:{name}" for name in variant_names(found)]
        else:
            ids.append(reference)
    return ids


def _in_order(word: str, text: str) -> bool:
    """Whether `text` has all characters of `word` in their order: `cpppo` finds cartpole-v1:ppo."""
    rest = iter(text)
    return all(character in rest for character in word)

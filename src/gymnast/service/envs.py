"""Envs: what there is, of which family, and what would have to be installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gymnast.config.files import ConfigFile, known_envs, variant_names
from gymnast.envs import packages
from gymnast.envs.families import family_of, where
from gymnast.service.configs import shared_configs

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec


@dataclass(frozen=True)
class EnvEntry:
    """One env of a list, or a pattern of ids that share their presets (`ALE/*-v5`)."""

    id: str
    family: str
    variants: tuple[str, ...]
    solved_at: float | None
    description: str
    installed: bool
    install: str | None
    """What to type where its package is missing."""


def list_envs(words: Sequence[str] = (), *, everything: bool = False) -> list[EnvEntry]:
    """Envs with presets whose ids contain all words; `everything` adds every installed Gymnasium id."""
    entries = _presets(every_game=everything or bool(words))
    if everything:
        known = {entry.id for entry in entries}
        entries += [entry for entry in _registered() if entry.id not in known]
    return [entry for entry in entries if all(word.lower() in entry.id.lower() for word in words)]


def _presets(*, every_game: bool) -> list[EnvEntry]:
    """Envs with a file, shipped or the user's own, and those that share a base: each of them, or one row for all."""
    entries = []
    for env_id, files in known_envs():
        spec: dict[str, Any] = next((file.data["spec"] for file in reversed(files) if file.data.get("spec")), {})
        about = spec.get("description", "")
        entries.append(_entry(env_id, _base(files), variant_names(files), spec.get("solved_at"), about))
    shared = shared_configs({entry.id for entry in entries}, every_game=every_game)
    return entries + [_entry(env_id, base.path.stem, list(base.variants), None, "") for env_id, base in shared]


def _base(files: Sequence[ConfigFile]) -> str:
    """The base that the last of an env's files extends, or is."""
    for file in reversed(files):
        if file.data.get("extends"):
            return str(file.data["extends"])
        if file.patterns:
            return file.path.stem
    return ""


def _registered() -> list[EnvEntry]:
    """What Gymnasium knows once the installed families have registered their envs."""
    import gymnasium as gym  # not needed for a list of files

    from gymnast.envs.registry import ids_like

    specs = [gym.registry[env_id] for env_id in ids_like()]
    return [_entry(spec.id, _family_of(spec), [], spec.reward_threshold, "") for spec in specs]


def _entry(env_id: str, family: str, variants: Sequence[str], solved_at: float | None, about: str) -> EnvEntry:
    install = _install_line(family)
    return EnvEntry(env_id, family, tuple(variants), solved_at, about, install is None, install)


def _family_of(spec: EnvSpec) -> str:
    """The name of its record; without one `phys2d` of gymnasium.envs.phys2d.cartpole, else the package."""
    family = family_of(spec)
    if family is not None:
        return family.name
    parts = where(spec).split(".")
    if parts[:2] == ["gymnasium", "envs"] and len(parts) > 2:
        return parts[2]
    return parts[0]


def _install_line(family: str) -> str | None:
    """What to type for a family whose package is missing; None when nothing is."""
    known = {name.lower(): (module, pip) for name, (module, _, pip) in packages.ENV_FAMILIES.items()}
    module, pip = known.get(family, ("gymnasium", None))
    if importlib.util.find_spec(module):
        return None
    return f'pip install "{pip}"'

"""The layers that files give a config: of a variant, or of an algorithm that an env has no variant for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from gymnast.config import files
from gymnast.config.algorithms import config_of
from gymnast.config.files import ConfigFile, Path_
from gymnast.config.merging import Merger
from gymnast.config.variants import Choice, chain, variant_algorithm

SPACES = "chosen from the env's spaces"
WHOLE_EPISODES = "whole episodes need an end"
FEWER_ENVS = "fewer than the preset's: an update waits for whole episodes"
GenericDefaults = Callable[[str, str, dict[str, Any]], dict[str, Any]]
OF_THE_SCORE = ("env", "episodes", "deterministic", "standard_errors", "n_envs")
"""What a variant's `eval` says about how the env is scored; the rest is when, which goes with its algorithm and budget."""
MOST_WHOLE_EPISODES = 8
"""Slots of an algorithm that plays whole episodes: each update waits for the longest of them, and keeps them all."""


def add_file_layers(merger: Merger, stack: list[ConfigFile], variant: str, algorithm: str) -> None:
    """Base, env files and variant, in their order."""
    _add_shared(merger, stack, algorithm)
    for file, name in chain(variant, stack):
        body = {key: value for key, value in (file.variants[name] or {}).items() if key != "extends"}
        merger.add(body, _where(file, ("variants", name)))


def generic_origin(path: Path_) -> str:
    """Where a generic setting comes from. Of the env's own there is only one, for algorithms that play whole episodes."""
    if path == ("env", "time_limit"):
        return WHOLE_EPISODES
    return SPACES


def _add_shared(
    merger: Merger, stack: list[ConfigFile], algorithm: str, keep: Callable[[Any], Any] = lambda x: x
) -> None:
    """What all variants have of an algorithm; `keep` takes from a layer what is wanted of it."""
    base = next((files.base_of(file) for file in reversed(stack) if file.data.get("extends")), None)
    if base is not None and base not in stack:
        merger.add(keep(base.data.get("defaults")), _where(base, ("defaults",)))
        if algorithm in base.variants:
            merger.add(base.variants[algorithm], _where(base, ("variants", algorithm)))
    for file in stack:
        merger.add({"spec": file.data["spec"]} if file.data.get("spec") else None, _where(file, ()))
        merger.add(keep(file.data.get("defaults")), _where(file, ("defaults",)))


def add_fallback_layers(
    merger: Merger,
    stack: list[ConfigFile],
    choice: Choice,
    generic: Callable[[dict[str, Any]], dict[str, Any]] | None,
) -> None:
    """The algorithm's defaults under what the files say about the env. `generic` gives them for an env section."""
    assert choice.donor is not None
    donor = Merger()
    add_file_layers(donor, stack, choice.donor, variant_algorithm(choice.donor, stack))
    env = donor.data.get("env", {})
    if generic is not None:
        settings = _settings(generic(copy.deepcopy(env)), donor.data)
        merger.add(settings, lambda path: f"no preset for {choice.algorithm}: {generic_origin(path)}")
    _add_shared(merger, stack, choice.algorithm, keep=lambda layer: _for_algorithm(layer, choice.algorithm))
    kept = {"env": env, "spec": donor.data.get("spec", {})}
    kept["eval"] = {key: value for key, value in donor.data.get("eval", {}).items() if key in OF_THE_SCORE}
    merger.add({name: section for name, section in kept.items() if section}, lambda path: donor.origins[".".join(path)])
    n_envs = env.get("n_envs")
    if _plays_whole_episodes(choice.algorithm) and isinstance(n_envs, int) and n_envs > MOST_WHOLE_EPISODES:
        merger.add({"env": {"n_envs": MOST_WHOLE_EPISODES}}, lambda path: FEWER_ENVS)
    _add_budget(merger, donor)


def _plays_whole_episodes(algorithm: str) -> bool:
    return "episodes_per_env" in getattr(config_of(algorithm), "model_fields", {})


def _settings(generic: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    """Generic settings without what the files know better."""
    settings = {key: value for key, value in generic.items() if key != "spec" or not below.get("spec")}
    settings["env"] = {key: value for key, value in generic.get("env", {}).items() if key != "id"}
    return settings


def _for_algorithm(layer: dict[str, Any] | None, algorithm: str) -> dict[str, Any]:
    """`defaults` without keys that the algorithm does not have."""
    known = getattr(config_of(algorithm), "model_fields", {})
    layer = dict(layer or {})
    if isinstance(layer.get("algo"), dict):
        layer["algo"] = {key: value for key, value in layer["algo"].items() if key in known}
    return layer


def _add_budget(merger: Merger, donor: Merger) -> None:
    """A variant's budget where it is the larger one: what is hard for its algorithm is not easier for another."""
    given = {key: value for key, value in donor.data.get("train", {}).items() if key in ("env_steps", "vec_steps")}
    own = merger.data.get("train", {}).get("env_steps", 0)
    if given.get("env_steps", own + 1) > own:
        merger.add({"train": given}, lambda path: donor.origins[".".join(path)])


def _where(file: ConfigFile, prefix: Path_) -> Callable[[Path_], str]:
    return lambda path: file.where(prefix + path)

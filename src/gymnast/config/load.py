"""From `ENV:VARIANT` and overrides to one typed `RunConfig`, with the origin of every value (CFG-1, CFG-2, RUN-3).

Layers, later ones win: base defaults → base settings of the algorithm → env file defaults → parent variants → variant →
the same from ./configs → command line. A base that says `for:` is the lowest file of those envs, with or without one of their
own, and its variants are theirs. Mappings merge, lists and scalars replace, a schedule replaces a number whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymnast.config import files
from gymnast.config.algorithms import OnPolicyConfig, names
from gymnast.config.files import ConfigFile
from gymnast.config.layers import WHOLE_EPISODES, GenericDefaults, add_fallback_layers, add_file_layers, generic_origin
from gymnast.config.merging import SAVED_RUN, Merger
from gymnast.config.names import RENAMED_ENVS, preset_of
from gymnast.config.overrides import add_overrides, asked_algorithm, known_keys
from gymnast.config.schema import RunConfig
from gymnast.config.tasks import TaskConfig
from gymnast.config.variants import Choice, choose, infer_algorithm, split_reference, with_algorithm
from gymnast.errors import ConfigError, UsageError, did_you_mean
from gymnast.redaction import refuse_secrets

_NAMED = re.compile(r"'([a-z_]+(?:\.[\w-]+)+)'")
"""A dotted key in a message."""


@dataclass
class Resolved:
    """A valid config, where each value came from, and what the user should be told."""

    config: RunConfig
    origins: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def resolve(
    reference: str,
    overrides: Sequence[str] = (),
    *,
    settings: dict[str, Any] | None = None,
    generic: GenericDefaults | None = None,
    unwritten: ConfigFile | None = None,
) -> Resolved:
    """Build the config of one run. `settings` are dotted keys from Python or CLI flags; they win over `overrides`.

    `generic(env_id, algorithm, env)` gives defaults for an env that has no file (ENV-7), or no variant for the algorithm; it may
    raise for unknown envs. `env` is the env section as far as it is known, without which the env cannot be made.
    `unwritten` is a file as it is going to be; it takes the place of the one at its path.
    """
    env_id, variant = split_reference(reference)
    asked = asked_algorithm(overrides, settings)
    env_id, variant, notices = _current(env_id, variant)
    if unwritten is None:
        stack = _file_stack(env_id)
    else:
        stack = _stack_on(unwritten)
    merger = Merger()
    if stack:
        env_id = next((str(file.data["id"]) for file in stack if "id" in file.data), env_id)
        choice = choose(env_id, variant, asked, stack)
        if choice.notice:
            notices.append(choice.notice)
    else:
        choice = _without_files(env_id, variant, asked)
        if generic is None:
            raise UsageError(f"No config for '{env_id}'.{did_you_mean(env_id, files.known_env_ids())}")
    variant, algorithm = choice.variant, choice.algorithm

    def settings_for(env: dict[str, Any]) -> dict[str, Any]:
        """Generic settings for an env section with what is said on the command line."""
        given = Merger()
        given.data |= {"algo": {"id": algorithm}, "env": env}
        add_overrides(given, overrides, settings)
        refuse_secrets(given.data, given.origins)  # before the env is made with it, and complains about it aloud
        assert generic is not None
        return generic(env_id, algorithm, given.data["env"])

    if not stack:
        merger.add(settings_for({}), generic_origin)
    elif choice.donor is None:
        add_file_layers(merger, stack, variant, algorithm)
    else:
        add_fallback_layers(merger, stack, choice, None if generic is None else settings_for)
    for section, value, origin in (("env", env_id, "config id"), ("algo", algorithm, "variant name")):
        if "id" not in merger.data.setdefault(section, {}):
            merger.data[section]["id"] = value
            merger.origins[f"{section}.id"] = origin
    merger.data["name"] = f"{env_id}:{variant}"
    add_overrides(merger, overrides, settings)
    if merger.origins.get("env.time_limit", "").endswith(WHOLE_EPISODES):
        notices.append(
            f"{env_id} has no time limit, and {algorithm} plays whole episodes: they are cut off after "
            f"{merger.data['env']['time_limit']:,} steps (env.time_limit)."
        )
    merger.data.setdefault("train", {})
    if not {"env_steps", "vec_steps"} & merger.data["train"].keys():
        raise ConfigError(f"{env_id}:{variant} has no budget: set train.env_steps (or -n on the command line).")
    return Resolved(validate(merger.data, merger.origins), merger.origins, notices)


def from_saved(data: dict[str, Any], overrides: Sequence[str] = (), settings: dict[str, Any] | None = None) -> Resolved:
    """A run's saved config, optionally continued under new hyperparameters."""
    merger = Merger()
    merger.add(without_retired(data), lambda path: SAVED_RUN)
    add_overrides(merger, overrides, settings)
    return Resolved(validate(merger.data, merger.origins), merger.origins)


def without_retired(data: dict[str, Any]) -> dict[str, Any]:
    """A saved config without keys that no longer exist, if they were not used: a run of an earlier version still opens."""
    env = data.get("env") or {}
    atari = env.get("atari") or {}
    if "sticky_ramp" not in atari or atari["sticky_ramp"] is not None:
        return data
    kept = {key: value for key, value in atari.items() if key != "sticky_ramp"}
    return {**data, "env": {**env, "atari": kept}}


def _current(env_id: str, variant: str | None) -> tuple[str, str | None, list[str]]:
    """What a former id is called today, and which of its variants it stood for; and the sentence that says so."""
    asked = env_id
    env_id = RENAMED_ENVS.get(env_id, env_id)
    preset = None if files.own_files(env_id) else preset_of(env_id)
    if preset is not None:
        env_id, pattern = preset
        if variant is None or infer_algorithm(variant) == variant:
            variant = pattern.format(variant or "ppo")
    if env_id == asked:
        return env_id, variant, []
    if preset is None:
        return env_id, variant, [f"{asked} is now {env_id}; running that."]
    return env_id, variant, [f"{asked} is {env_id}:{variant} here; running that."]


def _without_files(env_id: str, variant: str | None, asked: str | None) -> Choice:
    """The algorithm alone: an env without a file has no variants."""
    variant = variant or asked or "ppo"
    algorithm = infer_algorithm(variant)
    if algorithm is None:
        raise UsageError(
            f"There is no algorithm '{variant}', and {env_id} has no presets.{did_you_mean(variant, names())} "
            f"Algorithms: {', '.join(names())}."
        )
    if asked not in (None, algorithm):
        variant, algorithm = with_algorithm(variant, algorithm, str(asked)), str(asked)
    return Choice(variant, algorithm)


def _file_stack(env_id: str) -> list[ConfigFile]:
    """Files to layer for this env: shipped, ./configs, and a file given by path on top of those of its own id."""
    if not env_id.endswith((".yaml", ".yml")):
        return files.env_files(env_id)
    own = files.read(Path(env_id))
    if "id" not in own.data:
        raise ConfigError(f"{own.label} needs 'id:', the environment it is for.")
    return _stack_on(own)


def _stack_on(own: ConfigFile) -> list[ConfigFile]:
    below = [file for file in files.env_files(str(own.data["id"])) if file.path.resolve() != own.path.resolve()]
    return [*below, own]


# ---- validation ----------------------------------------------------------------------------------------------------


def validate(data: dict[str, Any], origins: dict[str, str]) -> RunConfig:
    """The typed config, or one sentence per problem with file, line and suggestion."""
    refuse_secrets(data, origins)
    try:
        config = RunConfig.model_validate(data)
    except ValidationError as error:
        sentences = [_sentence(problem, data, origins) for problem in error.errors()]
        raise ConfigError("\n".join(_one_per_key(sentences)[:5])) from None
    check_sizes(config, origins)
    return config


def _one_per_key(sentences: list[str]) -> list[str]:
    """A value that fits no member of a union is one mistake, not one per member."""
    first: dict[str, str] = {}
    for sentence in sentences:
        first.setdefault(sentence.split("': ")[0], sentence)
    return list(first.values())


def _sentence(problem: Any, data: dict[str, Any], origins: dict[str, str]) -> str:
    path = [str(part) for part in problem["loc"]]
    parts: list[str] = []
    node: Any = data
    for part in path:  # drop the union tags pydantic puts into the location
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif part != path[-1] or problem["type"] != "missing":
            continue
        parts.append(part)
    key = ".".join(parts) or ".".join(path)
    message = str(problem["msg"]).removeprefix("Value error, ")
    named = _NAMED.search(message)
    if not path and named is not None:  # between sections: the message names the key itself
        key = named[1]
    origin = next((origins[k] for k in (key, f"{key}.id", *_parents(key)) if k in origins), None)
    # A mapping that is wrong as a whole: the newest of its keys is the likeliest culprit.
    origin = origin or next((o for k, o in reversed(origins.items()) if k.startswith(key + ".")), None)
    at = f"{origin}: " if origin else ""
    if problem["type"] == "extra_forbidden":
        algorithm = str(data.get("algo", {}).get("id", "ppo"))
        siblings = [k.removeprefix(_parent(key)) for k in known_keys(algorithm) if k.startswith(_parent(key))]
        if key.startswith("plan.tasks."):
            siblings = list(TaskConfig.model_fields)
        return f"{at}unknown key '{key}'.{did_you_mean(parts[-1], {s.split('.')[0] for s in siblings})}"
    if problem["type"] == "missing":
        return f"{at}'{key}' is missing."
    if not path:
        end = "" if message.endswith("?") else "."
        return f"{at}{_lower_first(message)}{end}"
    # Some rules name the value themselves: that of a schedule's one wrong number, or a word that is not a number.
    said_already = "(got " in message or (isinstance(node, str) and repr(node) in message)
    if said_already or isinstance(node, dict):
        return f"{at}'{key}': {_lower_first(message)}."
    return f"{at}'{key}': {_lower_first(message)} (got {node!r})."


def _parent(key: str) -> str:
    if "." in key:
        return key.rpartition(".")[0] + "."
    return ""


def _parents(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]


def _lower_first(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def check_sizes(config: RunConfig, origins: dict[str, str]) -> None:
    """Relations between values that the schema alone cannot see."""
    if not isinstance(config.algo, OnPolicyConfig):
        return  # a replay has more than the last steps
    n_steps, batch = getattr(config.algo, "n_steps", None), getattr(config.algo, "batch_size", None)
    if isinstance(n_steps, int) and isinstance(config.env.n_envs, int) and isinstance(batch, int):
        rollout = n_steps * config.env.n_envs
        if batch > rollout:
            origin = origins.get("algo.batch_size")
            raise ConfigError(
                f"{origin + ': ' if origin else ''}'algo.batch_size' is {batch}, larger than the rollout of "
                f"{config.env.n_envs} envs × {n_steps} steps = {rollout} samples: lower it, or raise env.n_envs or algo.n_steps."
            )

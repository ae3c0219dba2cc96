"""From `ENV:VARIANT` and overrides to one typed `RunConfig`, with the origin of every value (CFG-1, CFG-2, RUN-3).

Layers, later ones win: base defaults → base settings of the algorithm → env file defaults → parent variants → variant →
the same from ./configs → command line. A base that says `for:` is the lowest file of those envs, with or without one of their
own, and its variants are theirs. Mappings merge, lists and scalars replace, a schedule replaces a number whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any

from pydantic import ValidationError

from gymnast.config import files
from gymnast.config.algorithms import CONFIGS, PPOConfig, config_of, names
from gymnast.config.files import ConfigFile, Path_
from gymnast.config.model import Model
from gymnast.config.names import ALIASES, CONVERSIONS, RENAMED_ENVS
from gymnast.config.schema import RunConfig
from gymnast.errors import ConfigError, UsageError, did_you_mean
from gymnast.redaction import refuse_secrets

SECTIONS = ("env", "policy", "algo", "train", "eval", "log", "spec")
# Free-form mappings: their keys are not ours to check.
OPEN_SECTIONS = (("env", "kwargs"), ("eval", "env"))
GenericDefaults = Callable[[str, str, dict[str, Any]], dict[str, Any]]


@dataclass
class Resolved:
    """A valid config, where each value came from, and what the user should be told."""

    config: RunConfig
    origins: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


class _Merger:
    """Deep merge that remembers the origin of every leaf."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def add(self, data: dict[str, Any] | None, where: Callable[[Path_], str]) -> None:
        data = {key: value for key, value in (data or {}).items() if value is not None or key not in SECTIONS}
        for section, value in data.items():
            if section in SECTIONS and not isinstance(value, dict):
                raise ConfigError(f"{where((section,))}: '{section}' must be a mapping (got {value!r}).")
        train = data.get("train", {})
        for given, other in (("env_steps", "vec_steps"), ("vec_steps", "env_steps")):
            if given in train and other not in train:
                self.data.get("train", {}).pop(other, None)  # one budget: a later layer replaces the other kind
                self.origins.pop(f"train.{other}", None)
        self._merge(self.data, data, (), where)

    def _merge(self, target: dict[str, Any], data: dict[str, Any], path: Path_, where: Callable[[Path_], str]) -> None:
        for key, value in data.items():
            here = (*path, key)
            whole = isinstance(value, dict) and ("schedule" in value or not value)
            if isinstance(value, dict) and not whole:
                if not isinstance(target.get(key), dict):
                    target[key] = {}
                self._merge(target[key], value, here, where)
            elif whole and isinstance(target.get(key), dict) and not value:
                continue
            else:
                target[key] = value
                dotted = ".".join(here)
                for known in [o for o in self.origins if o.startswith(dotted + ".")]:
                    del self.origins[known]
                self.origins[dotted] = where(here)


def split_reference(reference: str) -> tuple[str, str | None]:
    """`CartPole-v1:ppo` → env and variant; a `module:Env-v0` id keeps its colon."""
    head, colon, tail = reference.rpartition(":")
    if not colon:
        return reference, None
    if tail.rpartition("-v")[2].isdigit() and "-v" in tail:
        return reference, None  # module:Env-v0 without a variant
    return head, tail


def infer_algorithm(variant: str) -> str | None:
    """The algorithm a variant's name speaks of: `rgb_ppo` → ppo."""
    shipped = next((part for part in reversed(variant.split("_")) if part in CONFIGS), None)
    return shipped or next((name for name in names() if f"_{variant}".endswith(f"_{name}")), None)


def resolve(
    reference: str,
    overrides: Sequence[str] = (),
    *,
    settings: dict[str, Any] | None = None,
    generic: GenericDefaults | None = None,
    unwritten: ConfigFile | None = None,
) -> Resolved:
    """Build the config of one run. `settings` are dotted keys from Python or CLI flags; they win over `overrides`.

    `generic(env_id, algorithm, env)` gives defaults for an env that has no file (ENV-7); it may raise for unknown envs.
    `env` is what the overrides say about the env section (module, kwargs, time_limit), without which it cannot be made.
    `unwritten` is a file as it is going to be; it takes the place of the one at its path.
    """
    env_id, variant = split_reference(reference)
    notices: list[str] = []
    if env_id in RENAMED_ENVS:
        notices.append(f"{env_id} is now {RENAMED_ENVS[env_id]}; running that.")
        env_id = RENAMED_ENVS[env_id]
    stack = _file_stack(env_id) if unwritten is None else _stack_on(unwritten)
    merger = _Merger()
    if stack:
        env_id = next((str(file.data["id"]) for file in stack if "id" in file.data), env_id)
        variant = _check_variant(env_id, variant, stack)
        algorithm = _variant_algorithm(variant, stack)
        _add_file_layers(merger, stack, variant, algorithm)
    else:
        variant = variant or "ppo"
        algorithm = _algorithm_of(variant, f"{env_id}:{variant}")
        if generic is None:
            raise UsageError(f"No config for '{env_id}'.{did_you_mean(env_id, files.known_env_ids())}")
        given = _Merger()
        given.data["algo"] = {"id": algorithm}
        _add_overrides(given, overrides, settings)
        refuse_secrets(given.data, given.origins)  # before the env is made with it, and complains about it aloud
        merger.add(generic(env_id, algorithm, given.data.get("env", {})), lambda path: "chosen from the env's spaces")
    for section, value, origin in (("env", env_id, "config id"), ("algo", algorithm, "variant name")):
        if "id" not in merger.data.setdefault(section, {}):
            merger.data[section]["id"] = value
            merger.origins[f"{section}.id"] = origin
    merger.data["name"] = f"{env_id}:{variant}"
    _add_overrides(merger, overrides, settings)
    merger.data.setdefault("train", {})
    if not {"env_steps", "vec_steps"} & merger.data["train"].keys():
        raise ConfigError(f"{env_id}:{variant} has no budget: set train.env_steps (or -n on the command line).")
    return Resolved(validate(merger.data, merger.origins), merger.origins, notices)


def from_saved(data: dict[str, Any], overrides: Sequence[str] = (), settings: dict[str, Any] | None = None) -> Resolved:
    """A run's saved config, optionally continued under new hyperparameters."""
    merger = _Merger()
    merger.add(data, lambda path: "saved run")
    _add_overrides(merger, overrides, settings)
    return Resolved(validate(merger.data, merger.origins), merger.origins)


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


def _check_variant(env_id: str, variant: str | None, stack: list[ConfigFile]) -> str:
    known = files.variant_names(stack)
    if variant is None:
        if "ppo" in known:
            return "ppo"
        if stack[0].patterns:
            return known[0]  # the first one of the base
        raise UsageError(f"Say which variant: {', '.join(f'{env_id}:{name}' for name in known)}.")
    if variant not in known:
        raise UsageError(
            f"{env_id} has no variant '{variant}'.{did_you_mean(variant, known)} Known: {', '.join(known)}."
        )
    return variant


def _algorithm_of(variant: str, where: str) -> str:
    algorithm = infer_algorithm(variant)
    if algorithm is None:
        raise ConfigError(
            f"{where}: name the algorithm (algo.id, or in the variant's name). Known: {', '.join(names())}."
        )
    return algorithm


def _chain(variant: str, stack: list[ConfigFile]) -> list[tuple[ConfigFile, str]]:
    """(file, variant) pairs from the oldest ancestor to the variant itself."""
    chain: list[tuple[ConfigFile, str]] = []
    seen: set[str] = set()
    name: str | None = variant
    where = stack[-1].label
    while name is not None:
        holders = [file for file in stack if name in file.variants]
        if not holders or name in seen:
            known = {known for file in stack for known in file.variants}
            unknown = f"extends unknown variant '{name}'.{did_you_mean(name, known)}"
            raise ConfigError(f"{where}: variant '{variant}' {'extends itself.' if name in seen else unknown}")
        seen.add(name)
        chain = [(file, name) for file in holders] + chain
        parents = [(file, (file.variants[name] or {}).get("extends")) for file in holders]
        child, (file, parent) = name, next((pair for pair in reversed(parents) if pair[1]), (stack[-1], None))
        where, name = file.where(("variants", child, "extends")), None if parent is None else str(parent)
    return chain


def _variant_algorithm(variant: str, stack: list[ConfigFile]) -> str:
    for file, name in reversed(_chain(variant, stack)):
        body = file.variants[name] or {}
        if isinstance(body.get("algo"), dict) and "id" in body["algo"]:
            return str(body["algo"]["id"])
        if infer_algorithm(name):
            return str(infer_algorithm(name))
    return _algorithm_of(variant, stack[-1].where(("variants", variant)))


def _add_file_layers(merger: _Merger, stack: list[ConfigFile], variant: str, algorithm: str) -> None:
    base = next((files.base_of(file) for file in reversed(stack) if file.data.get("extends")), None)
    if base is not None and base not in stack:
        merger.add(base.data.get("defaults"), _where(base, ("defaults",)))
        if algorithm in base.variants:
            merger.add(base.variants[algorithm], _where(base, ("variants", algorithm)))
    for file in stack:
        merger.add({"spec": file.data["spec"]} if file.data.get("spec") else None, _where(file, ()))
        merger.add(file.data.get("defaults"), _where(file, ("defaults",)))
    for file, name in _chain(variant, stack):
        body = {key: value for key, value in (file.variants[name] or {}).items() if key != "extends"}
        merger.add(body, _where(file, ("variants", name)))


def _where(file: ConfigFile, prefix: Path_) -> Callable[[Path_], str]:
    return lambda path: file.where(prefix + path)


# ---- overrides -----------------------------------------------------------------------------------------------------


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value` with the value read as YAML."""
    key, equals, raw = text.partition("=")
    if not equals or not key:
        raise UsageError(f"'{text}' is not an override: write key=value, for example algo.clip_range=0.1.")
    return key.strip(), parse_value(raw.strip(), text)


def parse_value(raw: str, label: str) -> Any:
    """A YAML value; plain numbers and words skip the YAML parser."""
    try:
        return json.loads(raw)
    except ValueError:
        pass
    try:
        return float(raw) if any(c.isdigit() for c in raw) else _word(raw, label)
    except ValueError:
        return _word(raw, label)


def _word(raw: str, label: str) -> Any:
    if raw.lower() in ("true", "false"):
        return raw.lower() == "true"
    if raw in ("null", "~", ""):
        return None
    run = raw.startswith("@")  # @best:CartPole-v1; no YAML begins so
    if run or not any(c in raw for c in "[]{}:,'\""):
        return raw
    return files.parse_yaml(raw, f"'{label}'")[0]


def _add_overrides(merger: _Merger, overrides: Sequence[str], settings: dict[str, Any] | None) -> None:
    for override in overrides:
        key, value = parse_override(override)
        _override(merger, key, value, f"command line ({override})")
    for key, value in (settings or {}).items():
        _override(merger, key, value, "command line")


def _override(merger: _Merger, key: str, value: Any, origin: str) -> None:
    path = find_key(key, str(merger.data.get("algo", {}).get("id", "ppo")))
    if key in CONVERSIONS:
        value = CONVERSIONS[key](value)
    if isinstance(value, float) and value.is_integer() and abs(value) >= 1e3 and _is_count(path):
        value = int(value)  # -n 1e5
    tree: Any = value
    for part in reversed(path):
        tree = {part: tree}
    merger.add(tree, lambda _: origin)


def _is_count(path: Path_) -> bool:
    return path[-1] in ("env_steps", "vec_steps", "every", "checkpoint_every", "warmup")


def find_key(key: str, algorithm: str) -> Path_:
    """The full path of a key given in full, by alias, or by its last part where that is unique."""
    key = ALIASES.get(key, key)
    path = tuple(key.split("."))
    if any(path[: len(prefix)] == prefix for prefix in OPEN_SECTIONS):
        return path
    known = known_keys(algorithm)
    if key in known or any(name.startswith(key + ".") for name in known):
        return path
    if any(key.startswith(name + ".") for name in known if not name.startswith("spec")):
        return path  # inside a schedule
    matches = [name for name in known if name.rpartition(".")[2] == key and not name.startswith("spec.")]
    # A game's own settings come last: `mode` is the evaluation's.
    matches = [name for name in matches if not name.startswith("env.atari.")] or matches
    if len(matches) == 1:
        return tuple(matches[0].split("."))
    if matches:
        raise UsageError(f"'{key}' could mean {' or '.join(matches)}: write it in full.")
    leaves = {name.rpartition(".")[2]: name for name in known}
    hint = did_you_mean(key, [*known, *ALIASES]) or did_you_mean(path[-1], leaves)
    raise UsageError(f"Unknown key '{key}' for {algorithm}.{hint} `gymnast config show` lists all keys.")


def known_keys(algorithm: str) -> list[str]:
    """Every dotted key of a run with this algorithm."""
    keys: list[str] = []

    def walk(model: type[Model], prefix: str) -> None:
        for name, info in model.model_fields.items():
            inner = info.annotation
            if isinstance(inner, UnionType):  # a section that may be absent
                inner = next(
                    (kind for kind in inner.__args__ if isinstance(kind, type) and issubclass(kind, Model)), None
                )
            if prefix == "" and name == "algo":
                walk(config_of(algorithm) or PPOConfig, "algo.")
            elif isinstance(inner, type) and issubclass(inner, Model):
                walk(inner, f"{prefix}{name}.")
            else:
                keys.append(f"{prefix}{name}")

    walk(RunConfig, "")
    return keys


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
    origin = next((origins[k] for k in (key, f"{key}.id", *_parents(key)) if k in origins), None)
    # A mapping that is wrong as a whole: the newest of its keys is the likeliest culprit.
    origin = origin or next((o for k, o in reversed(origins.items()) if k.startswith(key + ".")), None)
    at = f"{origin}: " if origin else ""
    if problem["type"] == "extra_forbidden":
        algorithm = str(data.get("algo", {}).get("id", "ppo"))
        siblings = [k.removeprefix(_parent(key)) for k in known_keys(algorithm) if k.startswith(_parent(key))]
        return f"{at}unknown key '{key}'.{did_you_mean(parts[-1], {s.split('.')[0] for s in siblings})}"
    if problem["type"] == "missing":
        return f"{at}'{key}' is missing."
    message = str(problem["msg"]).removeprefix("Value error, ")
    value = "" if isinstance(node, dict) else f" (got {node!r})"
    return f"{at}'{key}': {_lower_first(message)}{value}."


def _parent(key: str) -> str:
    return key.rpartition(".")[0] + "." if "." in key else ""


def _parents(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]


def _lower_first(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def check_sizes(config: RunConfig, origins: dict[str, str]) -> None:
    """Relations between values that the schema alone cannot see."""
    n_steps, batch = getattr(config.algo, "n_steps", None), getattr(config.algo, "batch_size", None)
    if isinstance(n_steps, int) and isinstance(config.env.n_envs, int) and isinstance(batch, int):
        rollout = n_steps * config.env.n_envs
        if batch > rollout:
            origin = origins.get("algo.batch_size")
            raise ConfigError(
                f"{origin + ': ' if origin else ''}'algo.batch_size' is {batch}, larger than the rollout of "
                f"{config.env.n_envs} envs × {n_steps} steps = {rollout} samples: lower it, or raise env.n_envs or algo.n_steps."
            )

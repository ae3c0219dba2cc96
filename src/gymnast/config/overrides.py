"""`key=value` from the command line or Python, laid over a config as its last layer (RUN-3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import UnionType
from typing import Any

from gymnast.config import files
from gymnast.config.algorithms import PPOConfig, config_of
from gymnast.config.files import Path_
from gymnast.config.foreign_keys import LAST, PYTHON_TEXT, TRANSLATIONS, translated
from gymnast.config.merging import Merger
from gymnast.config.model import Model
from gymnast.config.names import ALIASES, CONVERSIONS, NO_KEYS
from gymnast.config.schema import FAMILY_SECTIONS, RunConfig
from gymnast.errors import UsageError, closest, did_you_mean, suggestion

# Free-form mappings: their keys are not ours to check.
OPEN_SECTIONS = (
    ("env", "kwargs"),
    ("env", "rewards", "terms"),
    ("env", "randomise"),
    ("policy", "encoder_kwargs"),
    ("eval", "env"),
    ("alerts", "rules"),
)


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value` with the value read as YAML."""
    key, equals, raw = text.partition("=")
    if not equals or not key:
        raise UsageError(f"'{text}' is not an override: write key=value, for example algo.clip_range=0.1.")
    key, raw = key.strip(), raw.strip()
    return key, raw if key in PYTHON_TEXT else parse_value(raw, text)


def parse_value(raw: str, label: str) -> Any:
    """A YAML value; plain numbers and words skip the YAML parser."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):  # the latter where it is nested too deep, which the YAML parser then says
        pass
    try:
        if any(c.isdigit() for c in raw):
            return float(raw)
        return _word(raw, label)
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


def asked_algorithm(overrides: Sequence[str], settings: dict[str, Any] | None) -> str | None:
    """The algorithm that `algo.id=…` names; None if nothing does. It decides which variant the rest is laid over."""
    given = [value for key, value in map(parse_override, overrides) if key == "algo.id"]
    if settings and "algo.id" in settings:
        given.append(settings["algo.id"])
    if given:
        return str(given[-1])
    return None


def add_overrides(merger: Merger, overrides: Sequence[str], settings: dict[str, Any] | None) -> None:
    """Lay `overrides` over what `merger` holds, and `settings` (dotted keys) over those."""
    refuse_two_budgets(overrides, settings)
    given = [(*parse_override(override), f"command line ({override})") for override in overrides]
    given += [(key, value, "command line") for key, value in (settings or {}).items()]
    for key, value, origin in sorted(given, key=lambda one: one[0] in LAST):
        if key not in TRANSLATIONS:
            _override(merger, key, value, origin)
            continue
        for ours, setting in translated(key, value, merger.data).items():
            _override(merger, ours, setting, origin)


BUDGETS = ("train.env_steps", "train.vec_steps")


def refuse_two_budgets(overrides: Sequence[str], settings: dict[str, Any] | None) -> None:
    """One budget, said once: of `-n 20000 n_timesteps=1000` neither can be dropped in silence."""
    given = [(text, *parse_override(text)) for text in overrides]
    given += [(f"{key}={value}", key, value) for key, value in (settings or {}).items()]
    found: dict[tuple[str, str], str] = {}
    sizes = {ALIASES.get(key, key): text for text, key, value in given if value is not None}
    if {"eval.steps", "eval.episodes"} <= sizes.keys():
        raise UsageError(
            f"Two sizes of an evaluation are given, {sizes['eval.steps']} and {sizes['eval.episodes']}: keep one."
        )
    for text, key, value in given:
        path = ALIASES.get(key, key)
        path = next((budget for budget in BUDGETS if path in (budget, budget.removeprefix("train."))), path)
        if path in BUDGETS and value is not None:
            found.setdefault((path, _amount(value)), text)
    if len(found) > 1:
        raise UsageError(
            f"Two budgets are given, {' and '.join(found.values())}: keep one. "
            "env_steps (-n, n_timesteps, total_timesteps) and vec_steps follow from each other."
        )


def _amount(value: Any) -> str:
    """1000 and 1e3 are the same."""
    if isinstance(value, (int, float)):
        return repr(float(value))
    return str(value)


def _override(merger: Merger, key: str, value: Any, origin: str) -> None:
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
    of_a_family = tuple(f"env.{section}." for section in FAMILY_SECTIONS)
    matches = [name for name in matches if not name.startswith(of_a_family)] or matches
    if len(matches) == 1:
        return tuple(matches[0].split("."))
    if matches:
        raise UsageError(f"'{key}' could mean {' or '.join(matches)}: write it in full.")
    if key in NO_KEYS:
        raise UsageError(f"There is no key '{key}': {NO_KEYS[key]}.")
    hint = did_you_mean(key, known) or _by_last_part(path[-1], known)
    raise UsageError(f"Unknown key '{key}' for {algorithm}.{hint} `gymnast config show` lists all keys.")


def _by_last_part(word: str, known: list[str]) -> str:
    """Keys in full whose last part, or a name that others have for them, is like this word."""
    full = {name.rpartition(".")[2]: name for name in known} | {alias: alias for alias in (*ALIASES, *TRANSLATIONS)}
    return suggestion([full[name] for name in closest(word, full)[:3]])


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

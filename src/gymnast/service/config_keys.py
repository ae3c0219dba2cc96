"""What a config key takes: its meaning, kind and choices, for forms and completion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_SCHEMA = Path(__file__).parent.parent / "presets" / "config.schema.json"
"""Made from the typed models; a test holds the two equal."""
_SECTIONS = ("env", "policy", "train", "eval", "log", "alerts")


@dataclass(frozen=True)
class ConfigKey:
    """One dotted key."""

    key: str
    about: str
    """The first paragraph of its documentation."""
    kinds: tuple[str, ...]
    """JSON types that it takes: number, integer, string, boolean, array, object."""
    choices: tuple[Any, ...]
    """All values there are, where they can be listed; words that it takes next to numbers otherwise."""
    algorithm: str | None = None
    """The algorithm whose key it is; None if it is everybody's."""


@cache
def config_keys() -> tuple[ConfigKey, ...]:
    """Every key that a config of a shipped algorithm may have."""
    definitions = json.loads(_SCHEMA.read_text(encoding="utf-8"))["definitions"]
    layer = definitions["Variant"]["properties"]
    found: list[ConfigKey] = []
    for section in _SECTIONS:
        if section in layer:
            found += _keys_below(section, layer[section], definitions)
    for name, definition in definitions.items():
        algorithm = definition.get("properties", {}).get("id", {}).get("const")
        if algorithm is not None and name.endswith("Config"):
            found += _keys_below("algo", definition, definitions, algorithm)
    return tuple(found)


def _keys_below(
    prefix: str, node: dict[str, Any], definitions: dict[str, Any], algorithm: str | None = None
) -> Iterator[ConfigKey]:
    whole = _resolved(node, definitions)
    for name, value in whole.get("properties", {}).items():
        key, target = f"{prefix}.{name}", _resolved(value, definitions)
        if "properties" in target and "id" not in target["properties"]:
            yield from _keys_below(key, target, definitions, algorithm)
            continue
        forms = list(_forms(value, definitions))
        kinds = dict.fromkeys(kind for form in forms for kind in _kinds(form))
        choices = dict.fromkeys(choice for form in forms for choice in _choices(form))
        about = str(value.get("description") or target.get("description") or "").split("\n\n")[0]
        yield ConfigKey(key, about, tuple(kinds), tuple(choices), algorithm)


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to, with what is next to it."""
    link = node.get("$ref")
    if link is None:
        return node
    target: dict[str, Any] = definitions[str(link).rpartition("/")[2]]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def _forms(node: dict[str, Any], definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The alternatives that a key takes."""
    node = _resolved(node, definitions)
    alternatives = node.get("anyOf") or node.get("oneOf")
    if alternatives is None:
        yield node
        return
    for alternative in alternatives:
        yield from _forms(alternative, definitions)


def _kinds(form: dict[str, Any]) -> list[str]:
    kind = form.get("type", [])
    if isinstance(kind, str):
        return [kind]
    return list(kind)


def _choices(form: dict[str, Any]) -> list[Any]:
    if "const" in form:
        return [form["const"]]
    if form.get("type") == "boolean":
        return [True, False]
    return list(form.get("enum", []))

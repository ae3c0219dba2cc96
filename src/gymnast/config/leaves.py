"""A config as dotted keys: what `config show` and `config diff` print."""

from __future__ import annotations

from typing import Any

from gymnast.config.schedule_words import schedule_words


def leaves(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"algo.gamma": 0.99, …}`; schedules, lists and empty mappings are values."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict) and value and "schedule" not in value:
            found |= leaves(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def origin_of(key: str, origins: dict[str, str]) -> str:
    """Where a value came from; `default` when no layer set it."""
    if key in origins:
        return origins[key]
    return next((origin for known, origin in origins.items() if key.startswith(known + ".")), "default")


def text_of(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "null"
    if isinstance(value, dict) and "schedule" in value:
        return schedule_words(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)

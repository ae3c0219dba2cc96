"""Layers of a config laid over each other, with the origin of every value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnast.config.files import Path_
from gymnast.errors import ConfigError

SECTIONS = ("env", "policy", "algo", "train", "eval", "log", "alerts", "spec", "plan")
EITHER = (("train", "env_steps", "vec_steps"), ("eval", "episodes", "steps"))
"""Two ways to say one thing: the budget, and the size of an evaluation."""
SAVED_RUN = "saved run"
"""Origin of what a run was saved with."""


class Merger:
    """Deep merge that remembers the origin of every leaf."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def add(self, data: dict[str, Any] | None, where: Callable[[Path_], str]) -> None:
        data = {key: value for key, value in (data or {}).items() if value is not None or key not in SECTIONS}
        for section, value in data.items():
            if section in SECTIONS and not isinstance(value, dict):
                raise ConfigError(f"{where((section,))}: '{section}' must be a mapping (got {value!r}).")
        for section, one, two in EITHER:
            values = data.get(section, {})
            for given, other in ((one, two), (two, one)):
                if values.get(given) is not None and other not in values:
                    self.data.get(section, {}).pop(other, None)  # a later layer replaces the other kind
                    self.origins.pop(f"{section}.{other}", None)
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

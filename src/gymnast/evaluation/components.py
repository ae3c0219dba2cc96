"""An observation as named numbers, for tables and for people. Imports no torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnast.config.spec import Component, EnvSpec

MOST_COMPONENTS = 64
"""Of one part of an observation; an image is not told as numbers."""
Numbers = dict[str, Any]


def components(obs: Any, spec: EnvSpec) -> Numbers:
    """Components by the names of the spec, else by number; parts of a Dict by theirs."""
    if isinstance(obs, dict):
        return {name: value for part, inner in obs.items() for name, value in _part(str(part), inner, ()).items()}
    return _part("", obs, spec.observation)


def _part(part: str, value: Any, named: list[Component] | tuple[()]) -> Numbers:
    numbers = np.asarray(value).reshape(-1)
    if numbers.size > MOST_COMPONENTS:
        return {}
    names = [component.name for component in named]
    if len(names) != numbers.size:
        names = [str(number) for number in range(numbers.size)] if numbers.size > 1 else [""]
    prefix = ["obs", part] if part else ["obs"]
    return {".".join([*prefix, name] if name else prefix): one.item() for name, one in zip(names, numbers)}

"""Parameters of an env that may differ from episode to episode, as the record of its family declares them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """One number or word that an env is made of. It is set before the reset that begins an episode."""

    about: str
    get: Callable[[Any], Any]
    """Its value, from the bare env."""
    set: Callable[[Any, Any], None]
    low: float = -math.inf
    """Values outside of these bounds make no sense."""
    high: float = math.inf


def attribute(
    name: str,
    about: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    then: Callable[[Any], None] | None = None,
) -> Parameter:
    """A parameter that the env reads from an attribute; `then` brings up to date what follows from it."""

    def put(env: Any, value: Any) -> None:
        setattr(env, name, value)
        if then is not None:
            then(env)

    return Parameter(about, lambda env: getattr(env, name), put, low, high)

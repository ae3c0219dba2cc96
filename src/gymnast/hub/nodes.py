"""What a pickle asks for, as inert data: names, calls that were not made, and how to look into them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gymnast.errors import CheckpointError

PERSISTENT = "persistent id"
# Nested tuples are hashed recursively, so a deep one would exhaust the C stack: keys are simple.
KEY_TYPES = (str, bytes, int, float, type(None))


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """A name (`args` is None) or the call of one, with what was put into the result afterwards."""

    module: str
    name: str
    args: tuple[Any, ...] | None = None
    kwargs: dict[Any, Any] | None = None
    state: Any = None
    """Argument of BUILD: usually the attributes."""
    items: list[tuple[Any, Any]] = field(default_factory=list)
    """Of a mapping that is not a plain dict."""

    @property
    def path(self) -> str:
        """Its full name, such as `torch.FloatStorage`."""
        if self.module:
            return f"{self.module}.{self.name}"
        return self.name


def describe(value: Any) -> str:
    """A value for messages; never its contents, which may be large or endless."""
    if isinstance(value, Node):
        return value.path
    return f"a {type(value).__name__}"


def is_call(value: Any, *paths: str) -> bool:
    """Whether `value` is the result of calling one of the dotted names."""
    return isinstance(value, Node) and value.args is not None and value.path in paths


def mapping(value: Any, where: str) -> dict[Any, Any]:
    """The pairs of a dict or OrderedDict."""
    if isinstance(value, dict):
        return value
    if is_call(value, "collections.OrderedDict", "builtins.dict"):
        pairs = list(value.items)
        if value.args and isinstance(value.args[0], (list, tuple)):
            pairs = [*value.args[0], *pairs]
        if all(isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], KEY_TYPES) for pair in pairs):
            return {pair[0]: pair[1] for pair in pairs}
    raise CheckpointError(f"{where} holds {describe(value)} where a mapping should be.")


def attributes(value: Any, where: str, what: str) -> dict[str, Any]:
    """What was put into an object's `__dict__`."""
    state = value.state if isinstance(value, Node) else None
    if isinstance(state, tuple) and len(state) == 2:  # attributes and slots
        state = state[0]
    if not isinstance(state, dict):
        raise CheckpointError(f"{where} holds {describe(value)} where {what} should be.")
    return state

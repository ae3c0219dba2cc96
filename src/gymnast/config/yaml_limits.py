"""How deep and how large YAML may be: its parser recurses once per level, and aliases of aliases grow without end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnast.errors import ConfigError

DEEPEST = 50
"""Levels of mappings and lists in each other; configs have six."""
MOST_COLUMNS = 200
"""Lines of usual files are shorter."""
MOST_NODES = 100_000
"""Values after every alias has been expanded; the largest file of rl-zoo has a few thousand."""


@dataclass
class _Open:
    """A mapping or list that is not yet closed."""

    anchor: str | None
    before: int
    """How many values came before it."""
    levels: int = 1
    """Of what it holds so far, itself included."""


@dataclass(frozen=True)
class _Size:
    """What an alias refers to."""

    nodes: int
    levels: int


def refuse_excess(text: str, label: str) -> None:
    """An error for YAML that would take all time or memory. Only events are read, so nothing grows meanwhile."""
    if not _suspicious(text):
        return
    from ruamel.yaml import YAML

    anchored: dict[str, _Size] = {}
    open_nodes: list[_Open] = []
    nodes = 0
    for event in YAML(typ="rt").parse(text):
        kind, anchor = type(event).__name__, getattr(event, "anchor", None)
        levels = 0
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_nodes.append(_Open(anchor, nodes))
            nodes += 1
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed = open_nodes.pop()
            levels = closed.levels
            if closed.anchor is not None:
                anchored[closed.anchor] = _Size(nodes - closed.before, levels)
        elif kind == "ScalarEvent":
            nodes += 1
        elif kind == "AliasEvent":
            if any(anchor == one.anchor for one in open_nodes):
                raise ConfigError(f"{_place(label, event)}: '*{anchor}' is used inside the value that it names.")
            stands_for = anchored.get(str(anchor), _Size(1, 0))
            nodes += stands_for.nodes
            levels = stands_for.levels
        if open_nodes:
            open_nodes[-1].levels = max(open_nodes[-1].levels, levels + 1)
        if len(open_nodes) + levels > DEEPEST:
            raise ConfigError(
                f"{_place(label, event)} is nested more than {DEEPEST} levels deep, which no config needs."
            )
        if nodes > MOST_NODES:
            raise ConfigError(
                f"{_place(label, event)} holds more than {MOST_NODES:,} values, counting what aliases (*name) expand to, "
                "which no config needs."
            )


def _suspicious(text: str) -> bool:
    """Whether a second reading is worth its time: without aliases nothing grows, and every level of depth takes a column."""
    longest = max(map(len, text.splitlines()), default=0)
    return ("*" in text and "&" in text) or longest > MOST_COLUMNS or sum(map(text.count, "[{")) > DEEPEST


def _place(label: str, event: Any) -> str:
    return f"{label}:{event.start_mark.line + 1}"

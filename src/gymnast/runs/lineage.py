"""Where a run comes from: the attempts it was continued in, under which changes, and the run its weights came from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnast.runs.files import now, write_atomic
from gymnast.runs.reading import read_json

FILE = "lineage.json"


@dataclass(frozen=True)
class Attempt:
    """One resume of a run, and what it changed."""

    attempt: int
    start: str
    """The checkpoint it continued from, e.g. step=4096."""
    changes: dict[str, list[Any]] = field(default_factory=dict)
    """Settings that differ from the attempt before: key → [old, new]."""
    optimizer: bool = True
    """Whether the optimizer's state came along."""
    at: str = ""


@dataclass(frozen=True)
class Lineage:
    """The file of one run; empty for a run that was trained in one go from nothing."""

    attempts: tuple[Attempt, ...] = ()
    parent: dict[str, Any] | None = None
    """`train.init_from`: source, ancestors, what was loaded and skipped, the source's score and that before training."""


def read(folder: Path) -> Lineage:
    """The lineage of a run; a missing or damaged file reads as none."""
    try:
        raw = read_json(folder / FILE)
        attempts = tuple(Attempt(**one) for one in raw.get("attempts", []))
        return Lineage(attempts, raw.get("parent"))
    except (OSError, ValueError, TypeError, AttributeError):
        return Lineage()


def add_attempt(folder: Path, attempt: Attempt) -> None:
    """Append a resume; one that was killed while it began becomes part of it, because its changes are in the config."""
    old = read(folder)
    changes = dict(attempt.changes)
    for begun in (one for one in old.attempts if one.attempt == attempt.attempt):
        pairs = {key: [before, changes.get(key, [None, after])[1]] for key, (before, after) in begun.changes.items()}
        changes = {key: pair for key, pair in {**changes, **pairs}.items() if pair[0] != pair[1]}
    kept = tuple(one for one in old.attempts if one.attempt != attempt.attempt)
    added = replace(attempt, changes=changes, at=attempt.at or now())
    _write(folder, Lineage((*kept, added), old.parent))


def set_parent(folder: Path, parent: dict[str, Any]) -> None:
    """Record where the first weights came from."""
    _write(folder, Lineage(read(folder).attempts, parent))


def ancestors_of(found: Lineage) -> list[str]:
    """Where a run's first weights came from, and theirs, and so on: the nearest first."""
    parent = found.parent
    if not isinstance(parent, dict) or "source" not in parent:
        return []
    further = parent.get("ancestors")
    return [str(parent["source"]), *map(str, further if isinstance(further, list) else [])]


def _write(folder: Path, lineage: Lineage) -> None:
    data = {"attempts": [asdict(attempt) for attempt in lineage.attempts], "parent": lineage.parent}
    write_atomic(folder / FILE, json.dumps(data, indent=1, allow_nan=False) + "\n")

"""What differs between two resolved configs (CFG-3)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gymnast.config.leaves import leaves, origin_of
from gymnast.config.load import Resolved

# What training reads of the spec: when a run counts as solved, when evaluation begins, how long an episode lasts.
SPEC_KEYS = ("spec.solved_at", "spec.horizon", "spec.random_score.score")


@dataclass(frozen=True)
class Difference:
    """One key with its two values. A side that does not have the key (another algorithm's) has no origin either."""

    key: str
    old: Any
    new: Any
    old_from: str | None
    new_from: str | None


def compare(old: Resolved, new: Resolved, *, everything: bool = False) -> list[Difference]:
    """Keys whose resolved values differ, in the order of the schema. Names never count; `everything` adds all of the spec."""
    sides = [_values(side) for side in (old, new)]
    found = []
    for key in _in_order(*sides):
        if key.startswith("spec.") and key not in SPEC_KEYS and not everything:
            continue
        missing = [key not in side for side in sides]
        values = [side.get(key) for side in sides]
        # As text: a batch_size of 1 is one sample, 1.0 is the whole rollout.
        if not any(missing) and json.dumps(values[0], sort_keys=True) == json.dumps(values[1], sort_keys=True):
            continue
        origins = [None if gone else origin_of(key, side.origins) for gone, side in zip(missing, (old, new))]
        found.append(Difference(key, *values, *origins))
    return found


def _values(side: Resolved) -> dict[str, Any]:
    values = leaves(side.config.model_dump(mode="json", exclude={"name"}))
    return {key: value for key, value in values.items() if value != {}}  # an empty mapping has no keys to compare


def _in_order(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """All keys, section by section."""
    sections = list(dict.fromkeys(key.partition(".")[0] for key in first))
    return sorted(dict.fromkeys([*first, *second]), key=lambda key: sections.index(key.partition(".")[0]))

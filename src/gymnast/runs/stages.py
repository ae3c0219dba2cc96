"""What the stages of a run's plan have come to: `plan.json` in its folder, and a checkpoint that is kept for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gymnast.metrics.verdict import shown
from gymnast.runs.files import write_atomic
from gymnast.runs.reading import read_json

FILE = "plan.json"


@dataclass(frozen=True)
class Score:
    """How good the weights at the end of a stage are on one of the stages."""

    mean: float
    """The exact expected return where there is one."""
    error: float = 0.0
    """Standard error of the mean; 0 where it is exact."""


@dataclass
class StageRecord:
    """One stage that a run has begun."""

    name: str
    began: int
    """Env steps of the run when it began."""
    threshold: float | None = None
    ended: int | None = None
    """Env steps of the run when it ended; None while it is trained on."""
    reached: int | None = None
    """Env steps of the run at the evaluation that solved it; None where none did."""
    scores: dict[str, Score] = field(default_factory=dict)
    """Of the weights at its end: on the stages before, on itself, and on the next one, before any training there."""

    @property
    def steps_to_threshold(self) -> int | None:
        """Env steps of this stage alone."""
        if self.reached is None:
            return None
        return self.reached - self.began


def as_json(records: Sequence[StageRecord]) -> list[dict[str, Any]]:
    """For the file and for checkpoints."""
    return [asdict(record) for record in records]


def restored(saved: Any) -> list[StageRecord]:
    """Out of a file or a checkpoint."""
    return [_record(one) for one in saved]


def _record(saved: dict[str, Any]) -> StageRecord:
    scores = {str(name): Score(float(one["mean"]), float(one["error"])) for name, one in saved["scores"].items()}
    steps = {key: None if saved[key] is None else int(saved[key]) for key in ("ended", "reached")}
    threshold = saved["threshold"]
    return StageRecord(
        str(saved["name"]),
        int(saved["began"]),
        None if threshold is None else float(threshold),
        scores=scores,
        **steps,
    )


def table(records: Sequence[StageRecord]) -> list[list[str]]:
    """What the weights at the end of each stage score on each stage, as rows of words; empty before the first end.

    The last row says how much each stage lost since its own end: what was forgotten.
    """
    ended = [record for record in records if record.ended is not None]
    names = list(dict.fromkeys(name for record in ended for name in record.scores))
    if not names:
        return []
    rows = [["at the end of", *names]]
    rows += [
        [one.name, *(_cell(one.scores.get(name), _threshold_in(records, name)) for name in names)] for one in ended
    ]
    own = {one.name: one.scores[one.name].mean for one in ended[:-1] if one.name in one.scores}
    last = ended[-1].scores
    since = [f"{last[name].mean - own[name]:+.3g}" if name in own and name in last else "" for name in names]
    if len(ended) > 1:
        rows.append(["change since then", *since])
    return rows


def _cell(score: Score | None, threshold: float | None) -> str:
    if score is None:
        return ""
    error = f" ± {score.error:.2g}" if score.error else ""
    return f"{shown(score.mean, threshold)}{error}"


def _threshold_in(records: Sequence[StageRecord], name: str) -> float | None:
    return next((record.threshold for record in records if record.name == name), None)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of words as lines of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return lines


def write(folder: Path, records: Sequence[StageRecord]) -> None:
    """Replace the file."""
    write_atomic(folder / FILE, json.dumps(as_json(records), indent=1) + "\n")


def read(folder: Path) -> list[StageRecord]:
    """The stages that a run has begun; none where it has no plan by stage, or a damaged file."""
    try:
        return restored(read_json(folder / FILE))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []

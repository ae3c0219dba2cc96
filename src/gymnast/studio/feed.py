"""The list of runs as the page shows it, and what changed since the last look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnast.runs.store import Run
from gymnast.service.plain import plain
from gymnast.service.progress import progress_of
from gymnast.service.runs import ListedRun, list_runs

RUNNING = "running"


def listed(root: Path) -> list[dict[str, Any]]:
    """Every run, newest first; those that train with how far they are."""
    return [_row(root, row) for row in list_runs(root, notice=lambda _: None)]


def _row(root: Path, row: ListedRun) -> dict[str, Any]:
    shown: dict[str, Any] = plain(row)
    if row.status == RUNNING:
        progress = progress_of(Run(root / row.id))
        shown |= {"share": progress.share, "eta_seconds": progress.eta_seconds}
    return shown


class Feed:
    """Rows that are new or other than at the last look."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, dict[str, Any]] | None = None

    def news(self) -> dict[str, Any] | None:
        """None if nothing changed; the first look gives everything."""
        rows = {row["id"]: row for row in listed(self._root)}
        known, self._known = self._known, rows
        if known is None:
            return {"complete": True, "changed": list(rows.values()), "gone": []}
        changed = [row for name, row in rows.items() if known.get(name) != row]
        gone = [name for name in known if name not in rows]
        if not changed and not gone:
            return None
        return {"complete": False, "changed": changed, "gone": gone}

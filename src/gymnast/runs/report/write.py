"""Writes the two files of a report, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from gymnast.errors import GymnastError
from gymnast.redaction import redact
from gymnast.runs.files import write_atomic
from gymnast.runs.report import markdown, page
from gymnast.runs.report.facts import gather, paths_of
from gymnast.runs.store import Run


def write_report(run: Run) -> tuple[Path, Path]:
    """Make `report.md` and `report.html` of what the folder of a run holds now."""
    report = gather(run)
    paths = paths_of(run)
    for path, text in zip(paths, (markdown.of_report(report), page.of_report(report))):
        try:
            write_atomic(path, redact(text))
        except OSError as error:
            raise GymnastError(f"Cannot write '{path}': {error.strerror or error}.") from None
    return paths

"""Every metric of a run in `metrics.csv`, one line per value: step, name, value. Spreadsheets and data frames read it."""

from __future__ import annotations

import csv
from pathlib import Path

from gymnast.config.schema import RunConfig
from gymnast.metrics.sinks import base


class Sink(base.Sink):
    """Only `write` is required; `amend` and `close` are here because evaluations may end late, and a file must be closed."""

    def __init__(self, run_folder: Path, config: RunConfig) -> None:
        super().__init__(run_folder, config)
        path = run_folder / "metrics.csv"
        self._file = path.open("a", newline="", encoding="utf-8")  # a resumed run goes on in the same file
        self._lines = csv.writer(self._file)
        if path.stat().st_size == 0:
            self._lines.writerow(["env_steps", "metric", "value"])

    def write(self, row: base.Row) -> None:
        """All that is known of one step."""
        self.amend(int(row["env_steps"] or 0), row)

    def amend(self, step: int, metrics: base.Row) -> None:
        """What became known of a step; of two lines for one value the later one holds."""
        self._lines.writerows((step, name, value) for name, value in metrics.items() if value is not None)

    def close(self) -> None:
        """The last lines reach the disk."""
        self._file.close()

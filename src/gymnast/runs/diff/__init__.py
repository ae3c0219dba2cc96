"""`gymnast diff`: where two runs diverge, and why."""

from __future__ import annotations

from gymnast.runs.diff.compare import RunDiff, diff_runs
from gymnast.runs.diff.verdict import as_json, verdict

__all__ = ["RunDiff", "as_json", "diff_runs", "verdict"]

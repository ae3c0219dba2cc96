"""Writes the study's figures into docs/diagnose.md from benchmarks/results/faults.json: `python docs/tools/write_faults.py`."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, RESULTS = ROOT / "docs" / "diagnose.md", ROOT / "benchmarks" / "results" / "faults.json"
BEGIN, END = "<!-- written by docs/tools/write_faults.py -->", "<!-- end -->"
SAID = (
    ("true_cause_in_top_3", "the true cause is among the first three", "at least 85 %"),
    ("true_cause_first", "the true cause comes first", "–"),
    ("healthy_with_a_warning", "healthy runs with a warning or worse", "at most 1 of 30"),
    ("cured", "the suggested command closes at least half of the gap", "at least 60 %"),
    ("cured_by_running_again", "running the same again closes at least half of it", "at most 10 %"),
)
"""Figure, what it is, and what was asked for."""


def tables(record: dict[str, Any]) -> str:
    """All tables."""
    held, build = record["held"], record["build"]
    lines = ["| | asked for | set aside | used while building |", "|---|---|---|---|"]
    for key, words, bar in SAID:
        lines.append(f"| {words} | {bar} | {_figure(held, key)} | {_figure(build, key)} |")
    lines += [
        "",
        f"{record['trained']} runs were trained in all, in {record['median_seconds']:g} s each (median) on one core of a busy "
        f"machine; {record['over_a_minute']} took more than a minute.",
        "",
        "What was wrong, and the cause that was named first (the half set aside):",
        "",
        "| fault | runs | true cause | named first | in the first three | cured |",
        "|---|---|---|---|---|---|",
    ]
    kinds: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in held["runs"]:
        kinds[run["kind"]].append(run)
    for kind, runs in sorted(kinds.items()):
        first = Counter(run["causes"][0] if run["causes"] else "none" for run in runs)
        named = ", ".join(f"`{cause}` {number}" for cause, number in first.most_common())
        true = " or ".join(f"`{cause}`" for cause in runs[0]["true"])
        found, cured = sum(run["found"] for run in runs), sum((run["cured"] or 0.0) >= 0.5 for run in runs)
        lines.append(f"| {kind} | {len(runs)} | {true} | {named} | {found} | {cured} |")
    return "\n".join(lines)


def _figure(half: dict[str, Any], key: str) -> str:
    value = half[key]
    if key == "healthy_with_a_warning":
        return f"{value} of {half['healthy']}"
    return "–" if value is None else f"{value:.0%}".replace("%", " %")


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(json.loads(RESULTS.read_text(encoding='utf-8')))}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")

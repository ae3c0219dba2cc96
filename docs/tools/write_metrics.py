"""Writes docs/metrics.md from the catalogue: `python docs/tools/write_metrics.py`."""

from __future__ import annotations

from pathlib import Path

from gymnast.metrics.catalogue import Metric, load_catalogue

PAGE = Path(__file__).resolve().parents[1] / "metrics.md"
TITLES = {
    "": "Counters",
    "rollout": "Training episodes",
    "eval": "Evaluation",
    "train": "Learning",
    "time": "Time",
    "env": "Environments",
    "sys": "The machine",
}
HEAD = """# Metrics

Every metric that a run can log, in the order of the tables. Spread is always the standard deviation of the population.
Bounds are hard: a value outside raises the alert `hard_bound`. `gymnast metrics NAME` explains one metric and the alerts that
read it ([alerts](diagnose.md#alerts)). A name that ends in `/*` stands
for one metric per part of the network, layer or action.
This page is made by `docs/tools/write_metrics.py` from `presets/metrics.yaml`.
"""


def page() -> str:
    """The whole page."""
    sections: dict[str, list[Metric]] = {}
    for metric in load_catalogue().listed:
        sections.setdefault(metric.namespace, []).append(metric)
    parts = [HEAD]
    for namespace, metrics in sections.items():
        lines = [
            f"## {TITLES[namespace]}",
            "",
            "| metric | meaning | unit | bounds | healthy | elsewhere |",
            "|---|---|---|---|---|---|",
        ]
        parts.append("\n".join([*lines, *map(row, metrics)]) + "\n")
    return "\n".join(parts)


def row(metric: Metric) -> str:
    """One line of a table."""
    aliases = [
        f"`{alias.name}`" + ("" if alias.factor == 1 else f" ({alias.factor:g} × ours)")
        for alias in metric.aliases.values()
    ]
    cells = [f"`{metric.name}`", metric.meaning, metric.unit, bounds(metric), metric.healthy, ", ".join(aliases)]
    return f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |"


def bounds(metric: Metric) -> str:
    """`0 … 1`; `–` where there are none."""
    if metric.bounds is None:
        return "–"
    low, high = metric.bounds
    return f"{'' if low is None else f'{low:g}'} … {'' if high is None else f'{high:g}'}".strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")

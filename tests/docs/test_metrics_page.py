"""docs/metrics.md is the catalogue."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "tools"))

import write_metrics  # noqa: E402 - lies next to the docs

from gymnast.metrics.catalogue import load_catalogue  # noqa: E402


def test_the_page_is_as_the_tool_writes_it() -> None:
    """Otherwise: python docs/tools/write_metrics.py"""
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == write_metrics.page()


def test_every_metric_has_a_line() -> None:
    page = write_metrics.page()
    assert [metric.name for metric in load_catalogue() if f"\n| `{metric.name}` | " not in page] == []

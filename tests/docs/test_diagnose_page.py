"""The page about alerts lists those that there are, with their thresholds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnast.metrics.alerts.alert import Rule
from gymnast.metrics.alerts.registry import SHIPPED

PAGE = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", SHIPPED, ids=lambda rule: rule.id)
def test_every_alert_is_on_the_page(rule: Rule) -> None:
    metrics = ", ".join(f"`{name}`" for name in rule.metrics)
    assert f"| `{rule.id}` | {rule.severity} | {rule.threshold:g} | {metrics} | {rule.means} |" in PAGE


def test_the_page_lists_no_other_alert() -> None:
    table = PAGE.partition("| id | severity |")[2].partition("`gymnast metrics NAME`")[0]
    assert table.count("\n| `") == len(SHIPPED)

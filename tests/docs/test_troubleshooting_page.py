"""The pages for people: every alert has its cure on one of them, settings and pictures that they name exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from gymnast.config.load import resolve
from gymnast.metrics.alerts.registry import SHIPPED
from gymnast.metrics.catalogue import load_catalogue

DOCS = Path(__file__).parents[2] / "docs"
TROUBLE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
READING = (DOCS / "reading-a-run.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("alert", [rule.id for rule in SHIPPED if rule.severity != "info"])
def test_every_warning_has_its_cure(alert: str) -> None:
    assert f"`{alert}`" in TROUBLE


def test_alerts_and_metrics_on_the_pages_exist() -> None:
    known = {rule.id for rule in SHIPPED} | {metric.name for metric in load_catalogue()}
    metrics = set(re.findall(r"`((?:train|rollout|eval|time|sys)/[a-z_]+)`", TROUBLE + READING))
    alerts = {row.split("|")[2] for row in TROUBLE.splitlines() if row.startswith("| ") and row.count("|") >= 4}
    named = {name for cell in alerts for name in re.findall(r"`([a-z_]+)`", cell)}
    assert metrics <= known and named <= known


@pytest.mark.parametrize(
    "setting", sorted(set(re.findall(r"`((?:algo|policy|alerts)\.[a-z_.]+=[^…`]+?)`", TROUBLE + READING)))
)
def test_suggested_settings_can_be_typed(setting: str) -> None:
    resolve("CartPole-v1:ppo", setting.split())


def test_pictures_exist_and_are_all_used() -> None:
    used = set(re.findall(r"images/reading/([a-z_]+\.svg)", READING))
    assert used == {path.name for path in (DOCS / "images" / "reading").glob("*.svg")}


def test_the_figures_of_the_study_are_those_of_its_results() -> None:
    spec = importlib.util.spec_from_file_location("write_faults", DOCS / "tools" / "write_faults.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = (DOCS / "diagnose.md").read_text(encoding="utf-8")
    assert tool.page(text) == text and "set aside" in text

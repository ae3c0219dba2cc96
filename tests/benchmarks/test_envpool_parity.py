"""The parity table as shipped and as shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from envpool_parity import FILE, LEVEL, ROWS, by_component, judged, markdown, same_distribution

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_shows_the_table_that_ships() -> None:
    """`python benchmarks/envpool_parity.py --markdown` gives what stands in the page."""
    content = json.loads(FILE.read_text())
    assert markdown(content["rows"]) in (DOCS / "vectorization.md").read_text()
    assert [(row["id"], row["kwargs"], row["task"]) for row in content["rows"]] == [
        (r.id, r.kwargs, r.task) for r in ROWS
    ]
    assert content["level"] == LEVEL == 0.001


def test_a_verdict_follows_from_its_tests() -> None:
    """A row passes when all of its tests do, and says which did not."""
    for row in json.loads(FILE.read_text())["rows"]:
        failed = [name for name, result in row["results"].items() if not result["pass"]]
        assert row["verdict"] == ("fail" if failed else "pass")
        assert [reason.split(":")[0] for reason in row["reasons"]] == failed


def test_the_tests_can_fail() -> None:
    """Another distribution, or one component of many, is seen; the same one is not."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(500, 8)), random.normal(size=(500, 8))
    assert judged(same_distribution(a[:, 0], b[:, 0]))["pass"]
    assert not judged(same_distribution(a[:, 0], b[:, 0] + 0.5))["pass"]
    assert by_component(a, b)["pass"]
    b[:, 3] *= 2
    assert not by_component(a, b)["pass"]
    assert by_component(a, b)["worst"] == 3

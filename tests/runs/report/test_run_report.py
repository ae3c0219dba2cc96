"""Reports of made-up runs: right numbers, inert text, and nothing that leaves the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import finished_run

from gymnast.config.load import resolve
from gymnast.runs.report.facts import gather
from gymnast.runs.report.write import write_report
from gymnast.runs.store import Run


def run_of(root: Path, *overrides: str, rows: list[dict[str, Any]] | None = None, **status: Any) -> Run:
    run = finished_run(root, 480.0)
    run.config_path.write_text(json.dumps(resolve("CartPole-v1:ppo", overrides).config.model_dump(mode="json")))
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows or []))
    run.update(**status)
    return run


def row(step: int, score: float | None = None, **more: Any) -> dict[str, Any]:
    found = {"env_steps": 32 * step, "vec_steps": step, "rollout/return_mean": 2.0 * step, "time/env": 0.25, **more}
    if score is not None:
        found |= {"eval/return_mean": score, "eval/return_std": 40.0, "eval/episodes": 100}
    return found


def test_numbers_of_a_report(tmp_path: Path) -> None:
    """Best and last with the interval of their means, settings that differ from the preset, the command that repeats it."""
    rows = [row(1), row(2, 480.0), row(3), row(4, 120.0)]
    run = run_of(tmp_path, "algo.gamma=0.5", "train.seed=7", rows=rows, best_at=64, efficiency=0.25)
    report = gather(run)
    best, last = report.scored
    assert (best.label, best.vec_steps, last.label, last.vec_steps) == ("best", 2, "last", 4)
    assert best.interval == pytest.approx((480 - 1.96 * 4, 480 + 1.96 * 4))
    returns = report.charts[0]
    assert returns.threshold == 475
    assert returns.lines[0].y.tolist() == [2, 4, 6, 8] and returns.lines[1].y.tolist() == [480, 120]
    assert ("algo.gamma", "0.985", "0.5") in report.settings
    assert report.command == f"gymnast train CartPole-v1:ppo algo.gamma=0.5 --seed 7 --runs-dir {tmp_path}"
    markdown, page = (path.read_text() for path in write_report(run))
    for text in (markdown, page):
        assert "472.2" in text and "487.8" in text and report.command in text and "algo.gamma" in text
    assert "efficiency: 0.250" in markdown


def test_commands_name_the_run_from_where_they_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its id in the store where commands look by themselves, by its folder anywhere else."""
    monkeypatch.delenv("GYMNAST_HOME", raising=False)
    run = run_of(tmp_path / "my runs", "train.seed=7")
    run.update(state="interrupted")
    elsewhere = write_report(run)[0].read_text()
    assert f"gymnast resume '{run.folder}'\n" in elsewhere
    assert f"gymnast train CartPole-v1:ppo --seed 7 --runs-dir '{run.root}'\n" in elsewhere
    monkeypatch.setenv("GYMNAST_HOME", str(run.root))
    here = write_report(run)[0].read_text()
    assert f"gymnast resume {run.id}\n" in here and "gymnast train CartPole-v1:ppo --seed 7\n" in here


def test_a_report_of_nothing(tmp_path: Path) -> None:
    """A run that was stopped before its first row, and one whose config says nothing."""
    run = run_of(tmp_path)
    markdown, page = (path.read_text() for path in write_report(run))
    assert "No evaluation has ended yet" in markdown and "No evaluation has ended yet" in page
    run = finished_run(tmp_path, None)
    run.metrics_path.unlink()
    assert "Nothing has been logged yet" in write_report(run)[0].read_text()


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]


def test_hostile_text_is_inert_and_nothing_leaves_the_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    run = run_of(tmp_path, rows=[row(1, 10.0), row(2, 12.0)], stop_reason=evil)
    config = json.loads(run.config_path.read_text())
    config["name"] = evil
    run.config_path.write_text(json.dumps(config))
    (run.videos / "best.mp4").write_bytes(b"film")
    (run.videos / "best.json").write_text(json.dumps({"checkpoint": evil, "episodes": [{"seed": evil}]}))
    markdown, page = (path.read_text() for path in write_report(run))
    seen = Seen()
    seen.feed(page)
    assert not seen.tags & {"script", "img", "iframe", "object", "link"}
    assert seen.links and all(link.startswith("data:video/mp4;base64,") for link in seen.links)
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img)", markdown)


def test_films_that_are_links_are_left_out(tmp_path: Path) -> None:
    run = run_of(tmp_path, rows=[row(1, 10.0)])
    secret = tmp_path / "secret"
    secret.write_text("canary")
    (run.videos / "best.mp4").symlink_to(secret)
    (run.videos / "best.json").write_text("{}")
    assert gather(run).films == ()


def test_long_curves_keep_their_peaks(tmp_path: Path) -> None:
    values = np.zeros(5000)
    values[1234] = 9.0
    rows = [row(step + 1, **{"train/entropy": float(v)}) for step, v in enumerate(values)]
    (chart,) = [one for one in gather(run_of(tmp_path, rows=rows)).charts if one.title == "train/entropy"]
    assert len(chart.lines[0].x) <= 300 and chart.lines[0].y.max() == 9.0

"""Curves of runs: what counts after a resume, what is new, what a thinned curve keeps, and which metrics are meant."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import make_run

from gymnast.errors import UsageError
from gymnast.metrics.charts.thinning import thinned
from gymnast.metrics.sinks.jsonl import JsonlSink, MetricRows
from gymnast.runs.store import Run
from gymnast.service.metrics import LiveMetrics, LiveNames, metric_names, read_series
from gymnast.service.plain import plain
from gymnast.service.time_split import time_split

KEYS = ["env_steps", "vec_steps", "time/seconds", "train/loss", "train/entropy", "eval/return_mean"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = make_run(tmp_path / "runs")
    made.metrics_path.unlink()
    return made


def write(run: Run, steps: Any, *, keys: list[str] = KEYS, value: float = 1.0, **attempt: Any) -> None:
    """Rows at these vec steps of 8 envs: the loss is `value` × step, every second row has an evaluation."""
    with JsonlSink(run.metrics_path, keys, **attempt) as sink:
        for step in steps:
            row = {"env_steps": 8 * step, "vec_steps": step, "time/seconds": step / 10, "train/loss": value * step}
            row |= {"train/entropy": 0.5}
            if step % 2 == 0:
                row["eval/return_mean"] = float(step)
            sink.write(row)


def points(run: Run, name: str, **settings: Any) -> list[tuple[float, float]]:
    (series,) = read_series(run, [name], **settings)
    return list(zip(series.x.tolist(), series.y.tolist()))


def test_points_lie_on_the_axis_asked_for_where_the_metric_has_values(run: Run) -> None:
    write(run, [1, 2, 3, 4])
    assert points(run, "train/loss") == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert points(run, "eval/return_mean", axis="env_steps") == [(16, 2), (32, 4)]
    assert points(run, "eval/return_mean", axis="time") == [(0.2, 2), (0.4, 4)]
    with pytest.raises(UsageError, match="Did you mean 'vec_steps'"):
        read_series(run, ["train/loss"], axis="vec_step")


def test_rows_that_a_resume_replaced_are_left_out(run: Run) -> None:
    write(run, [1, 2, 3, 4])
    write(run, [3, 5], attempt=2, resumed_from=16, value=10.0)
    assert points(run, "train/loss") == [(1, 1), (2, 2), (3, 30), (5, 50)]
    assert points(run, "eval/return_mean") == [(2, 2)]


def test_a_resume_may_log_more_than_before(run: Run) -> None:
    """Its lines begin as those before: what comes behind must not be missed."""
    write(run, [1, 2])
    with JsonlSink(run.metrics_path, [*KEYS, "plugin/level"], attempt=2, resumed_from=16) as sink:
        for step in (3, 4, 5):
            sink.write({"env_steps": 8 * step, "vec_steps": step, "plugin/level": 7.0})
    assert points(run, "plugin/level") == [(3, 7), (4, 7), (5, 7)]
    assert metric_names(run)[-1] == "plugin/level"


def test_equals_what_the_reader_of_rows_gives(run: Run) -> None:
    """The quick way through a line and the JSON parser agree, number by number."""
    generator = np.random.default_rng(0)
    with JsonlSink(run.metrics_path, KEYS) as sink:
        for step in range(1, 200):
            values = generator.normal(size=3) * 10.0 ** generator.integers(-300, 300, size=3)
            row = dict(zip(KEYS[3:], values.tolist())) | {"env_steps": 8 * step, "vec_steps": step}
            row[KEYS[3 + step % 3]] = [None, math.nan, math.inf, 3, True][step % 5]
            sink.write(row)
    for name in KEYS[3:]:
        rows = [(row["vec_steps"], row[name]) for row in MetricRows(run.metrics_path) if row[name] is not None]
        assert points(run, name) == rows


def test_numbers_that_are_not_finite_are_no_points_but_are_told(run: Run) -> None:
    with JsonlSink(run.metrics_path, KEYS) as sink:
        for step, loss in enumerate([1.0, math.nan, 3.0, math.inf, None], start=1):
            sink.write({"env_steps": 8 * step, "vec_steps": step, "train/loss": loss})
    (series,) = read_series(run, ["train/loss"])
    assert (series.x.tolist(), series.y.tolist(), series.nonfinite.tolist()) == ([1, 3], [1, 3], [2, 4])
    json.dumps(plain(series), allow_nan=False)


def test_metrics_by_alias_pattern_and_expression(run: Run) -> None:
    write(run, [1, 2])
    names = [one.name for one in read_series(run, ["train/*", "re:^eval/", "train/loss"])]
    assert names == ["train/loss", "train/entropy", "eval/return_mean"]
    assert points(run, "train/entropy_loss") == [(1, -0.5), (2, -0.5)]
    assert points(run, "rollout/ep_rew_mean") == []
    with pytest.raises(UsageError, match="Did you mean 'train/loss'"):
        read_series(run, ["train/lss"])
    with pytest.raises(UsageError, match="no regular expression"):
        read_series(run, ["re:("])


def test_a_run_that_has_logged_nothing_has_no_points(run: Run) -> None:
    assert points(run, "train/loss") == []
    assert metric_names(run) == ()


# --- live ------------------------------------------------------------------------------------------------------------


def merged(known: dict[str, list[tuple[float, float]]], live: LiveMetrics) -> dict[str, list[tuple[float, float]]]:
    """What a viewer has after it has heard the news."""
    news = live.news()
    for series in news.series:
        before = [] if news.complete else known.get(series.name, [])
        if news.after is not None and not news.complete:
            before = [point for point in before if point[0] <= news.after]
        known[series.name] = [*before, *zip(series.x.tolist(), series.y.tolist())]
    return known


def test_news_add_up_to_the_whole(run: Run) -> None:
    """Through rows, a torn row, an evaluation that comes late, a resume, and another file in the place of this one."""
    names = ["train/loss", "eval/return_mean"]
    live, known = LiveMetrics(run, names), {}

    def hear() -> None:
        merged(known, live)
        assert known == {one.name: list(zip(one.x.tolist(), one.y.tolist())) for one in read_series(run, names)}

    hear()
    write(run, [1, 2, 3])
    hear()
    hear()
    with run.metrics_path.open("a") as file:
        file.write('{"attempt":1,"resumed_from":null,"env_steps":32,"vec_st')
    hear()
    assert known["train/loss"][-1] == (3, 3)
    write(run, [4, 5], attempt=1)  # mends the torn row first
    hear()
    with JsonlSink(run.metrics_path, KEYS) as sink:
        sink.amend(24, {"eval/return_mean": 99.0})
    hear()
    assert known["eval/return_mean"] == [(2, 2), (3, 99), (4, 4)]
    write(run, [6], attempt=2, resumed_from=24, value=2.0)  # beyond the old row in its place
    hear()
    assert known["train/loss"] == [(1, 1), (2, 2), (3, 3), (6, 12)]
    content = run.metrics_path.read_text().splitlines(keepends=True)
    run.metrics_path.unlink()
    run.metrics_path.write_text("".join(content[:1]))
    hear()
    assert known["train/loss"] == [(1, 1)]
    longer = "".join(content[:3]).replace('"train/loss":1.0', '"train/loss":7.0')
    run.metrics_path.write_text(longer)  # the same file, written anew
    hear()
    assert known["train/loss"] == [(1, 7), (2, 2), (3, 3)]


def test_news_read_only_what_is_new(run: Run) -> None:
    """A look at a file of 20 MB after one more row takes no longer than at a short one."""
    write(run, range(1, 3))
    line = run.metrics_path.read_text().splitlines()[-1]
    with run.metrics_path.open("a") as file:
        for step in range(3, 120_000):
            file.write(
                line.replace('"env_steps":16,"vec_steps":2', f'"env_steps":{8 * step},"vec_steps":{step}') + "\n"
            )
    live = LiveMetrics(run, ["train/loss"])
    begin = time.perf_counter()
    live.news()
    whole = time.perf_counter() - begin
    write(run, [120_000])
    begin = time.perf_counter()
    news = live.news()
    assert time.perf_counter() - begin < whole / 10
    assert [one.x.tolist() for one in news.series] == [[120_000.0]]


# --- thinned ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5, 101, 5000])
@pytest.mark.parametrize("wanted", [4, 50, 1000])
def test_a_thinned_curve_keeps_ends_and_peaks(size: int, wanted: int) -> None:
    generator = np.random.default_rng(size)
    x, y = np.cumsum(generator.random(size)), generator.normal(size=size)
    y[size // 3], y[size // 2] = 50.0, -50.0
    kept = thinned(x, y, wanted)
    assert len(kept) <= max(wanted, 4)
    assert sorted(set(kept.tolist())) == kept.tolist()
    assert kept[0] == 0 and kept[-1] == size - 1
    assert y[kept].max() == y.max() and y[kept].min() == y.min()


def test_every_stretch_keeps_its_lowest_and_highest() -> None:
    x, y = np.arange(1000.0), np.sin(np.arange(1000.0))
    kept = set(thinned(x, y, 22).tolist())
    for begin in range(0, 1000, 100):  # ten stretches of 99.9
        part = y[begin + 1 : begin + 99]
        here = [y[place] for place in kept if begin - 1 <= place <= begin + 100]
        assert max(here) >= part.max() and min(here) <= part.min()


def test_all_points_at_one_place_can_be_thinned() -> None:
    kept = thinned(np.zeros(100), np.arange(100.0), 10)
    assert len(kept) <= 10 and {0, 99} <= set(kept.tolist())


def test_a_thinned_series_says_how_many_there_were(run: Run) -> None:
    write(run, range(1, 501))
    (series,) = read_series(run, ["train/loss"], points=20)
    assert series.points == 500 and len(series.x) <= 20 and series.y[-1] == 500


def test_a_stretch_has_all_its_points_and_one_on_each_side(run: Run) -> None:
    """Of a curve that is thinned as a whole; a reader that follows the run knows what was added."""
    write(run, range(1, 1001))
    reader = LiveMetrics(run, ["train/loss"], points=50)
    (whole,) = reader.news().series
    assert len(whole.x) <= 50 and whole.points == 1000
    (part,) = reader.within(400, 420)
    assert part.x.tolist() == list(range(399, 422)) and part.y.tolist() == part.x.tolist() and part.points == 23
    (wide,) = reader.within(100, 900)
    assert len(wide.x) <= 50 and wide.points > 800
    write(run, range(1001, 1011), attempt=1)
    reader.news()
    assert reader.within(1005, 5000)[0].x.tolist() == [1004, *range(1005, 1011)]
    assert reader.within(2000, 3000)[0].x.tolist() == [1010]


def test_names_that_come_late_are_known(run: Run) -> None:
    reader = LiveNames(run)
    write(run, [1, 2])
    assert "train/loss" in reader.now() and "train/late" not in reader.now()
    with JsonlSink(run.metrics_path, KEYS) as sink:
        sink.write({"env_steps": 24, "vec_steps": 3, "train/late": 1.0})
    assert "train/late" in reader.now() and set(reader.now()) == set(metric_names(run))
    assert points(run, "train/late") == [(3, 1.0)]


def test_the_time_is_split_by_the_last_known_shares(run: Run) -> None:
    assert time_split(run) == {}
    rows = [
        {"env_steps": 8, "time/env": 0.5, "time/learn": 0.4, "time/eval": 0.1},
        {"env_steps": 16, "time/env": 0.6, "time/learn": 0.3, "time/eval": None},
    ]
    with JsonlSink(run.metrics_path, rows[0]) as sink:
        for row in rows:
            sink.write(row)
    assert time_split(run) == {"env": 0.6, "learn": 0.3, "eval": 0.1}

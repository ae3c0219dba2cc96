"""metrics.jsonl survives crashes, resumes and non-finite numbers."""

from __future__ import annotations

import json
import math
import time
import warnings

import numpy as np
import pytest

from gymnast.metrics.sinks.jsonl import JsonlSink, MetricRows

KEYS = ["env_steps", "train/loss", "eval/return_mean"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, steps, **kwargs):
    with JsonlSink(path, KEYS, **kwargs) as sink:
        for step in steps:
            sink.write({"env_steps": step, "train/loss": float(step * sink.attempt)})


def steps_of(path):
    return [row["env_steps"] for row in MetricRows(path)]


def test_every_row_has_every_key(path):
    with JsonlSink(path, KEYS) as sink:
        sink.write({"env_steps": 8})
        sink.write({"env_steps": 16, "eval/return_mean": 2.5})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [list(line) for line in lines] == [["attempt", "resumed_from", *KEYS, "nonfinite"]] * 2
    assert lines[0]["eval/return_mean"] is None and lines[0]["attempt"] == 1 and lines[0]["nonfinite"] == []
    assert lines[1]["eval/return_mean"] == 2.5
    assert list(MetricRows(path)) == lines


def test_keys_that_were_not_announced_are_in_every_row_from_then_on(path):
    """A plug-in's metrics are in no catalogue; no row loses a value, and none loses a key again."""
    with JsonlSink(path, ["env_steps"]) as sink:
        sink.write({"train/loss": 1.0, "env_steps": 8})
        sink.write({"env_steps": 16})
        sink.write({"env_steps": 24, "train/surprise": math.inf})
        sink.write({"env_steps": 32})
    rows = list(MetricRows(path))
    assert [row["train/loss"] for row in rows] == [1.0, None, None, None]
    assert ["train/surprise" in row for row in rows] == [False, False, True, True]
    assert [row["nonfinite"] for row in rows] == [[], [], ["train/surprise"], []]


def test_nonfinite_becomes_null_and_is_named(path):
    with JsonlSink(path, KEYS) as sink:
        sink.write({"env_steps": 8, "train/loss": math.nan, "eval/return_mean": -math.inf})
        sink.write({"env_steps": 16, "train/loss": np.float32("nan"), "eval/return_mean": 1.0})
    assert "NaN" not in path.read_text() and "Infinity" not in path.read_text()
    first, second = MetricRows(path)
    assert first["nonfinite"] == ["train/loss", "eval/return_mean"]
    assert first["train/loss"] is first["eval/return_mean"] is None
    assert second["nonfinite"] == ["train/loss"]


def test_numpy_numbers_and_exact_floats(path):
    with JsonlSink(path, KEYS) as sink:
        sink.write({"env_steps": np.int64(8), "train/loss": np.float32(0.1), "eval/return_mean": 0.1})
    (row,) = MetricRows(path)
    assert row["env_steps"] == 8 and row["train/loss"] == float(np.float32(0.1)) and row["eval/return_mean"] == 0.1


@pytest.mark.parametrize("steps", [[8, 8], [16, 8]])
def test_steps_must_grow(path, steps):
    with pytest.raises(ValueError, match="env_steps"):
        write(path, steps)
    with JsonlSink(path, KEYS) as sink, pytest.raises(ValueError, match="env_steps"):
        sink.write({"train/loss": 1.0})


def test_rows_are_visible_at_once(path):
    with JsonlSink(path, KEYS) as sink:
        sink.write({"env_steps": 8})
        assert steps_of(path) == [8]


def test_reader_skips_a_torn_last_line_wherever_it_was_cut(path):
    write(path, [8, 16])
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cut in range(second, len(whole) - 1):
            path.write_bytes(whole[:cut])
            assert steps_of(path) == [8]
        path.write_bytes(whole[:-1])  # only the newline is missing
        assert steps_of(path) == [8, 16]


@pytest.mark.parametrize("lost", [1, 2, 30])
def test_a_new_attempt_does_not_glue_its_row_to_a_torn_one(path, lost):
    write(path, [8, 16])
    path.write_bytes(path.read_bytes()[:-lost])
    write(path, [24], attempt=2, resumed_from=16)
    for line in path.read_text().splitlines():
        json.loads(line)  # other programs read the lines one by one
    assert steps_of(path) == ([8, 16, 24] if lost == 1 else [8, 24])


def test_a_bad_line_in_the_middle_is_named_and_left_out(path):
    write(path, [8, 16, 24])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00\x00\n" + lines[2])
    with pytest.warns(UserWarning, match="line 2"):
        assert steps_of(path) == [8, 24]


def test_a_later_attempt_supersedes_rows_past_its_checkpoint(path):
    write(path, [8, 16, 24, 32])
    write(path, [24, 32, 40], attempt=2, resumed_from=16)
    rows = list(MetricRows(path))
    assert [(row["env_steps"], row["attempt"]) for row in rows] == [(8, 1), (16, 1), (24, 2), (32, 2), (40, 2)]
    assert rows[2]["train/loss"] == 48.0
    assert len(path.read_text().splitlines()) == 7  # nothing is deleted


def test_rows_between_checkpoint_and_a_longer_first_iteration_go_too(path):
    write(path, [8, 16, 24, 32])
    write(path, [48], attempt=2, resumed_from=8)
    assert steps_of(path) == [8, 48]


def test_many_attempts(path):
    write(path, [8, 16, 24])
    write(path, [16, 24, 32, 40], attempt=2, resumed_from=8)
    write(path, [], attempt=3, resumed_from=8)  # died before its first row
    write(path, [16], attempt=4, resumed_from=8)
    write(path, [24, 32], attempt=5, resumed_from=16)
    rows = list(MetricRows(path))
    assert [(row["env_steps"], row["attempt"]) for row in rows] == [(8, 1), (16, 4), (24, 5), (32, 5)]


def test_steps_never_repeat_even_if_the_first_row_of_an_attempt_is_lost(path):
    write(path, [8, 16, 24])
    write(path, [16, 24], attempt=2, resumed_from=8)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    steps = steps_of(path)
    assert steps == sorted(set(steps))


def test_only_the_first_row_of_an_attempt_says_where_it_took_over(path):
    write(path, [8])
    write(path, [16, 24], attempt=2, resumed_from=8)
    assert [row["resumed_from"] for row in MetricRows(path)] == [None, 8, None]


def test_a_full_disk_leaves_no_half_row(path):
    """RLIMIT_FSIZE cuts a write short, like a full disk; the file must still end in a whole row."""
    resource = pytest.importorskip("resource")
    import signal

    with JsonlSink(path, KEYS) as sink:
        sink.write({"env_steps": 8})
        size = path.stat().st_size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        try:
            with pytest.raises(OSError):
                sink.write({"env_steps": 16})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert path.stat().st_size == size
        sink.write({"env_steps": 16})
    assert steps_of(path) == [8, 16]


def test_a_row_is_cheap(path):
    keys = ["env_steps", *(f"train/metric_{index}" for index in range(60))]
    times = []
    with JsonlSink(path, keys) as sink:
        for step in range(1, 300):
            row = dict.fromkeys(keys, step * 1.1) | {"env_steps": step}
            begin = time.perf_counter()
            sink.write(row)
            times.append(time.perf_counter() - begin)
    assert sorted(times)[len(times) // 2] < 0.001  # about 0.04 ms; the margin is for busy machines


def test_a_late_value_is_read_in_the_row_it_belongs_to(path):
    """Also when a resume repeats it, and without harm when its row is gone."""
    with JsonlSink(path, KEYS) as sink:
        for step in (8, 16, 24):
            sink.write({"env_steps": step, "train/loss": float(step)})
        sink.amend(16, {"eval/return_mean": np.float32(2.5)})
        sink.write({"env_steps": 32})
        sink.amend(16, {"train/surprise": 1.0})  # of a plug-in: in no catalogue
    with JsonlSink(path, KEYS, attempt=2, resumed_from=16) as sink:
        sink.amend(16, {"eval/return_mean": 2.5})
        sink.write({"env_steps": 24})
        sink.amend(32, {"eval/return_mean": 9.0})  # its row was replaced
    rows = list(MetricRows(path))
    assert [(row["env_steps"], row["eval/return_mean"]) for row in rows] == [(8, None), (16, 2.5), (24, None)]
    assert rows[1]["train/loss"] == 16.0 and all("amends" not in row for row in rows)
    assert rows[1]["train/surprise"] == 1.0

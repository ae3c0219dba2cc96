"""The live table, plain lines and progress bars: what reaches the terminal."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from gymnast.metrics import table as module
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.drawing import ASCII, clock, sparkline
from gymnast.metrics.history import History
from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.metrics.table import LiveTable, PlainProgress, open_display, progress

CATALOGUE = load_catalogue()
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def terminal(width=100, height=40, **kwargs):
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        width=width,
        height=height,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
        **kwargs,
    )


def plain(text):
    return ESCAPE.sub("", text)


def last_frame(console):
    """Lines of the last redraw, which follows the last cursor-up sequence."""
    text = re.split(r"\x1b\[1A(?:\x1b\[2K)?", console.file.getvalue())[-1]
    return plain(text).rstrip("\n").split("\n")


def row(step, **extra):
    """A row with a value for every metric of the catalogue."""
    values = {metric.name: 0.3 + step * 0.001 for metric in CATALOGUE}
    return values | {"env_steps": step, "vec_steps": step // 8, "time/fps": 12345.0, **extra}


def history_of(*rows):
    history = History()
    for one in rows:
        history.append(one)
    return history


def find(lines, label):
    return next(line for line in lines if f" {label} " in line)


def show(history, console, alerts=None, config="CartPole-v1:ppo", run_id="k3v9"):
    with LiveTable(console, CATALOGUE, config, 0.0, run_id=run_id) as table:
        table.update(history, 0.0, alerts)
    return last_frame(console)


@pytest.mark.parametrize(
    "size", [(20, 5), (40, 10), (60, 15), (80, 24), (100, 40), (120, 30), (149, 40), (160, 24), (200, 60), (300, 100)]
)
def test_never_wider_or_taller_than_the_terminal(size):
    width, height = size
    console = terminal(width, height)
    history = History()
    alerts = {"train/approx_kl": "a long alert text " * 9, "train/entropy": "日本語" * 30}
    with LiveTable(console, CATALOGUE, "Some/VeryLongEnvironmentName-v5:ppo_variant", 0.0, run_id="k3v9") as table:
        for step in range(8, 80, 8):
            history.append(row(step, **{"rollout/return_mean": -1e300, "plug-in/日本語" * 3: 1.0}))
            table.update(history, float(step), alerts)
            if step % 16:
                table.activity("evaluation " * 5, 3, 10)
    frames = re.split(r"(?:\x1b\[2K|\x1b\[1A|\r)+", console.file.getvalue())
    assert len(frames) > 8
    for frame in frames:
        lines = plain(frame).rstrip("\n").split("\n")
        assert max(map(cell_len, lines)) <= width
        assert len(lines) < height
    assert len(last_frame(console)) >= min(height - 1, 30)  # and uses the room it has


def test_table_and_jsonl_show_the_same_value(tmp_path):
    console, path = terminal(100, 100), tmp_path / "metrics.jsonl"
    first = row(800, **{"eval/return_mean": 123.456})
    second = row(1600, **{"rollout/return_mean": 487.129, "eval/return_mean": None, "train/learning_rate": 2.5e-4})
    history = History()
    with JsonlSink(path, first) as sink, LiveTable(console, CATALOGUE, "x", 0.0) as table:
        for now, one in enumerate((first, second)):
            sink.write(one)
            history.append(one)
            table.update(history, float(now))
    written: dict[str, float] = {}
    for line in path.read_text().splitlines():
        written |= {key: value for key, value in json.loads(line).items() if value is not None}
    body = last_frame(console)[4:]
    shown, group = {}, ""
    for line in body:
        if line.strip():
            group = line[2:10].strip() or group
            label, value = line[10:].split()[:2]
            shown[label if group == "steps" else f"{group}/{label}"] = value
    assert shown == {metric.name: CATALOGUE.format(metric.name, written[metric.name]) for metric in CATALOGUE}
    assert shown["rollout/return_mean"] == "487.13" and shown["eval/return_mean"] == "123.46"


def test_rows_follow_the_catalogue_and_groups_are_named_once():
    history = history_of({"sys/rss_mb": 1.0, "train/loss": 1.0, "rollout/return_mean": 1.0, "train/entropy": 1.0})
    body = [line for line in show(history, terminal())[4:] if line.strip()]
    assert [line[:29].split() for line in body] == [
        ["rollout", "return_mean"],
        ["train", "loss"],
        ["entropy"],
        ["sys", "rss_mb"],
    ]


def test_header():
    console = terminal(100, 40)
    values = {"progress": 0.25, "time/seconds": 75, "time/eta": 3725, "time/fps_now": 999.0, "time/learn": 0.5}
    first, second, third, *_ = show(history_of(row(8000, **values, **{"time/video": 0.001})), console)
    assert "CartPole-v1:ppo · k3v9" in first and "25.0%" in first and "1:15 elapsed" in first
    assert "ETA 1:02:05" in first
    full, empty = first.count("━"), first.count("╌")
    assert full / (full + empty) == pytest.approx(0.25, abs=0.03)
    assert "env_steps 8,000" in second and "vec_steps 1,000" in second and "12,345 steps/s (now 999)" in second
    assert "learn 50%" in third and "env 830%" in third and "video" not in third


def test_deltas_are_against_the_last_shown_value_and_coloured_by_direction():
    console, history = terminal(), History()
    with LiveTable(console, CATALOGUE, "x", 1.0) as table:
        for now, value in ((0.0, 10.0), (0.5, 50.0), (1.0, 30.0), (2.0, 30.0)):
            history.append({"rollout/return_mean": value, "train/value_loss": value, "train/entropy": value})
            assert table.update(history, now) is (now != 0.5)
    assert "+20.00" in find(last_frame(console), "return_mean")  # 50 was never shown, and 30 stayed
    raw = console.file.getvalue()
    assert re.search(r"\x1b\[32m +\+20\.00\x1b", raw), "up is better: green"
    assert re.search(r"\x1b\[31m +\+20\.0000\x1b", raw), "down is better: red"
    assert re.search(r"\x1b\[2m +\+20\.0000\x1b", raw), "no direction: dim"


def test_an_alerted_row_can_be_highlighted_too():
    console = terminal(120, 40)
    lines = show(history_of(row(8)), console, {"train/approx_kl": "KL spike\x1b[2J: lower learning_rate"})
    line = find(lines, "approx_kl")
    assert line.startswith("!") and "KL spike?[2J: lower" in line
    raw = console.file.getvalue()
    assert "\x1b[2J" not in raw  # no control character from outside
    assert re.search(r"\x1b\[1;33m0?.*approx_kl", raw), "highlight colour of approx_kl"
    assert not find(lines, "clip_fraction").startswith("!")


def test_short_terminals_keep_what_matters():
    history = history_of(row(8), row(16))
    lines = "\n".join(show(history, terminal(80, 16), {"train/vf_coef": "odd"}))
    for label in ("return_mean", "explained_variance", "approx_kl", "entropy", "vf_coef"):
        assert f" {label} " in lines
    assert "return_std" not in lines and "rows hidden" in lines
    assert "rows hidden" not in "\n".join(show(history, terminal(80, 100)))


def test_wide_terminals_use_two_aligned_columns():
    lines = show(history_of(row(8), row(16)), terminal(160, 24), {"rollout/return_std": "a long alert " * 9})[4:]
    assert len(lines) == 19
    for line in lines:
        left, right = line[:78], line[81:]
        assert line[78:81].strip() == ""
        assert len(left.split()) >= 3 and re.match(r"[! ] .{8}\w+ +[\d,.]+ ", right)


def test_nan_is_shown_as_such():
    console = terminal()
    lines = show(history_of({"train/loss": 1.0}, {"train/loss": math.nan}), console)
    assert find(lines, "loss").split()[2] == "nan"


def test_uncatalogued_metrics_are_shown():
    line = show(history_of({"long-plug-in/a": 0.5, "env/reward/centring": 0.123456}), terminal())[4]
    assert line.split()[:3] == ["env", "reward/centring", "0.12346"]


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(3)])
def test_cursor_and_streams_are_restored_on_every_exit(error):
    console, streams = terminal(), (sys.stdout, sys.stderr)
    with pytest.raises(type(error)), LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        assert console.file.getvalue().count(HIDE) == 1
        raise error
    text = console.file.getvalue()
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert (sys.stdout, sys.stderr) == streams
    after_last_style = re.findall(r"\x1b\[([0-9;]*)m", text)[-1]
    assert after_last_style == "0"
    assert text.endswith((SHOW, "\n"))
    assert "return_mean" in "\n".join(last_frame(console))  # the final still stays


def test_a_failing_redraw_still_restores_the_cursor(monkeypatch):
    console = terminal()
    with pytest.raises(ZeroDivisionError), LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        monkeypatch.setattr(table, "_header", lambda *_: 1 / 0)
    assert console.file.getvalue().rindex(SHOW) > console.file.getvalue().rindex(HIDE)


def test_a_lost_terminal_does_not_stop_training():
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(5, "Input/output error")

    console = terminal()
    with LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        console.file = Gone()
        table.update(history_of(row(16)), 1.0)


def test_the_final_still_holds_the_last_row():
    console, history = terminal(), history_of({"rollout/return_mean": 1.0})
    with LiveTable(console, CATALOGUE, "x", 60.0) as table:
        table.update(history, 0.0)
        history.append({"rollout/return_mean": 77.0})
        assert not table.update(history, 1.0)
    assert "77.00" in find(last_frame(console), "return_mean")


def test_nothing_runs_in_the_background():
    import threading

    before = threading.active_count()
    with LiveTable(terminal(), CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        assert threading.active_count() == before


def test_prints_appear_above_the_table():
    console = terminal()
    with LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        print("a message")
    assert "a message" in plain(console.file.getvalue())
    assert "a message" not in "\n".join(last_frame(console))


def test_a_redraw_is_cheap():
    console, history = terminal(100, 46), history_of(row(8))
    times = []
    with LiveTable(console, CATALOGUE, "x", 0.0) as table:
        for step in range(1, 60):
            history.append(row(step * 8))
            begin = time.perf_counter()
            table.update(history, float(step))
            times.append(time.perf_counter() - begin)
    assert sorted(times)[len(times) // 2] < 0.008  # 2 ms on the machine it was written on


def test_ascii_terminals_get_ascii():
    class Latin(io.StringIO):
        encoding = "ascii"

    console = terminal()
    console.file = Latin()
    text = "".join(show(history_of({"progress": 0.5, "train/loss": 1.0}, {"train/loss": 2.0}), console))
    assert text.isascii() and ASCII.full * 5 in text


def test_sparkline():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([7, 0, 7]) == "█▁█"
    assert sparkline([5.0, 5.0]) == "▄▄"
    assert sparkline([0.1 + 0.2, 0.3]) == "▄▄"  # rounding is no movement
    assert sparkline([0.0, math.nan, math.inf, 1.0]) == "▁█"
    assert sparkline([]) == sparkline([math.nan]) == ""
    assert sparkline([-1e308, 1e308]) == "▄▄"  # the span itself overflows


def test_rows_carry_the_sparkline_of_the_whole_run():
    history = history_of(*({"train/loss": float(-step)} for step in range(3000)))
    line = find(show(history, terminal(100, 40)), "loss")
    spark = line.split()[-1]
    assert len(spark) == 30 and spark[0] == "█" and spark[-1] == "▁" and list(spark) == sorted(spark, reverse=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (7.4, "0:07"), (754, "12:34"), (3723, "1:02:03"), (183840, "2d 03:04"), (math.inf, "?")],
)
def test_clock(seconds, text):
    assert clock(seconds) == text


def pipe():
    return Console(file=io.StringIO(), width=80, _environ={})


def test_a_pipe_gets_plain_lines():
    console, history = pipe(), History()
    with open_display(console, CATALOGUE, "CartPole-v1:ppo", run_id="k3v9", plain_interval=10.0) as display:
        assert isinstance(display, PlainProgress)
        for now in range(25):
            history.append(row(now * 8, **{"rollout/return_mean": float(now), "progress": 0.5, "time/eta": 61}))
            display.update(history, float(now), {"train/loss": "odd"})
    text = console.file.getvalue()
    lines = text.splitlines()
    assert "\x1b" not in text and "\r" not in text and text.isascii()
    assert len(lines) == 4  # at 0, 10, 20 seconds and at the end
    for part in ("CartPole-v1:ppo k3v9", "50.0%", "env_steps 192", "rollout/return_mean 24.00", "ETA 1:01", "alerts 1"):
        assert part in lines[-1]


def test_the_last_plain_line_is_not_repeated():
    console = pipe()
    with PlainProgress(console, CATALOGUE, "[bold]:smile:") as display:
        display.update(history_of(row(8)), 0.0)
    assert len(console.file.getvalue().splitlines()) == 1
    assert console.file.getvalue().startswith("[bold]:smile: |")  # a name, not markup


def test_quiet_and_dumb_terminals_get_plain_lines():
    assert isinstance(open_display(terminal(), CATALOGUE, "x"), LiveTable)
    assert isinstance(open_display(terminal(), CATALOGUE, "x", quiet=True), PlainProgress)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(open_display(dumb, CATALOGUE, "x"), PlainProgress)


@pytest.fixture
def ticks(monkeypatch):
    """A clock that the test moves."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_progress_shows_only_when_it_lasts(ticks):
    console = terminal()
    with progress(console, "evaluation", 10) as line:
        for _ in range(4):
            ticks[0] += 0.1
            line.advance()
    assert console.file.getvalue() == ""
    with progress(console, "evaluation", 10) as line:
        for _ in range(9):
            ticks[0] += 0.1
            line.advance()
        assert "evaluation" in last_frame(console)[-1] and "/10" in last_frame(console)[-1]
    text = console.file.getvalue()
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert "\x1b[2K" in text.rsplit("/10", 1)[1]  # wiped


def test_progress_inside_the_table_is_a_line_of_it(ticks):
    console = terminal()
    with LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        with progress(console, "evaluation", 4) as line:
            for _ in range(3):
                ticks[0] += 1
                line.advance()
            assert "evaluation" in last_frame(console)[3] and "3/4" in last_frame(console)[3]
        assert "evaluation" not in "".join(last_frame(console))
    assert console.file.getvalue().count(HIDE) == 1


def test_progress_is_silent_off_terminal_and_cleans_up_on_errors(ticks):
    silent = pipe()
    with progress(silent, "video", 3) as line:
        ticks[0] += 5
        line.advance()
    assert silent.file.getvalue() == ""
    console = terminal()
    with pytest.raises(RuntimeError), progress(console, "video", 3) as line:
        ticks[0] += 5
        line.update(2)
        raise RuntimeError
    assert console.file.getvalue().rindex(SHOW) > console.file.getvalue().rindex(HIDE)

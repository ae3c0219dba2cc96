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
from gymnast.metrics.drawing import ASCII, Mark, clock, fit_items, fit_words, glyphs_for, sparkline
from gymnast.metrics.goal import Goal, Subject
from gymnast.metrics.history import History
from gymnast.metrics.plain import PlainProgress
from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.metrics.table import LiveTable, open_display, progress

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
    return values | {"env_steps": step, "vec_steps": step // 8, "time/fps": 12345.0, "train/stage": 1.0, **extra}


def history_of(*rows):
    history = History()
    for one in rows:
        history.append(one)
    return history


def find(lines, label):
    return next(line for line in lines if f" {label} " in line)


FIXED = tuple(metric.name for metric in CATALOGUE if metric.row == "always" or metric.row.startswith("if "))
SUBJECT = Subject(Goal(random=22.4, target=475.0, perfect=500.0, horizon=500), FIXED, {"train/gamma": 0.985})


def show(history, console, marks=None, **options):
    options = {"run_id": "k3v9", "subject": SUBJECT, **options}
    with LiveTable(console, CATALOGUE, "CartPole-v1:ppo", 0.0, **options) as table:
        table.update(history, 0.0, marks)
        return last_frame(console)


def body_of(lines):
    """The lines below the rule that names the columns."""
    return lines[next(index for index, line in enumerate(lines) if line.startswith(("─", "-"))) + 1 :]


@pytest.mark.parametrize(
    "size", [(20, 5), (40, 10), (60, 15), (80, 24), (100, 40), (120, 30), (149, 40), (160, 24), (200, 60), (300, 100)]
)
@pytest.mark.parametrize("all_metrics", [False, True])
@pytest.mark.parametrize("notes", ["trend", "names", "meanings"])
def test_never_wider_or_taller_than_the_terminal(size, all_metrics, notes):
    width, height = size
    console = terminal(width, height)
    history = History()
    marks = {
        "train/approx_kl": Mark("warning", "a long alert text " * 9),
        "train/entropy": Mark("error", "日本語" * 30),
    }
    title = "Some/VeryLongEnvironmentName-v5:ppo_variant"
    with LiveTable(console, CATALOGUE, title, 0.0, run_id="k3v9", subject=SUBJECT, all_metrics=all_metrics) as table:
        table.notes = notes
        for step in range(8, 80, 8):
            history.append(row(step, **{"rollout/return_mean": -1e300, "plug-in/日本語" * 3: 1.0}))
            table.update(history, float(step), marks)
            if step % 16:
                table.activity("evaluation " * 5, 3, 10)
    frames = re.split(r"(?:\x1b\[2K|\x1b\[1A|\r)+", console.file.getvalue())
    assert len(frames) > 8
    for frame in frames:
        lines = plain(frame).rstrip("\n").split("\n")
        assert max(map(cell_len, lines)) <= width
        assert len(lines) < height
    # The one view shows the same rows at every size that has room for them; the other uses the room it has.
    assert len(last_frame(console)) >= min(height - 1, 30 if all_metrics else len(FIXED))


def test_table_and_jsonl_show_the_same_value(tmp_path):
    console, path = terminal(100, 120), tmp_path / "metrics.jsonl"
    first = row(800, **{"eval/return_mean": 123.456})
    second = row(1600, **{"rollout/return_mean": 487.129, "eval/return_mean": None, "train/learning_rate": 2.5e-4})
    history = History()
    with JsonlSink(path, first) as sink, LiveTable(console, CATALOGUE, "x", 0.0, all_metrics=True) as table:
        for now, one in enumerate((first, second)):
            sink.write(one)
            history.append(one)
            table.update(history, float(now))
    written: dict[str, float] = {}
    for line in path.read_text().splitlines():
        written |= {key: value for key, value in json.loads(line).items() if value is not None}
    shown, group = {}, ""
    for line in body_of(last_frame(console)):
        if line.strip():
            group = line[3:12].strip() or group
            label, value = line[12:].split()[:2]
            shown[label if group == "steps" else f"{group}/{label}"] = value
    assert shown == {metric.name: CATALOGUE.format(metric.name, written[metric.name]) for metric in CATALOGUE}
    assert shown["rollout/return_mean"] == "487.13" and shown["eval/return_mean"] == "123.46"


def names_shown(lines):
    """Metrics with a row, in the order of the rows."""
    names, group = [], ""
    for line in body_of(lines):
        if line.strip():
            group = line[3:12].strip() or group
            names.append(f"{group}/{line[12:].split()[0]}")
    return names


def test_the_rows_are_the_same_from_the_first_second():
    """Whatever comes first: no row moves when another one gets its first value."""
    console, history = terminal(100, 50), History()
    seen = []
    with LiveTable(console, CATALOGUE, "x", 0.0, subject=SUBJECT) as table:
        seen.append((len(last_frame(console)), names_shown(last_frame(console))))
        for one in ({"rollout/episodes": 0}, {"train/loss": 1.0}, {"rollout/return_mean": 1.0}, row(800), row(1600)):
            history.append(
                {name: value for name, value in one.items() if CATALOGUE[name].row not in ("late", "setting")}
            )
            table.update(history, float(history.rows))
            table.activity("evaluating", 1, 2)
            table.activity("", 1, 1)
            seen.append((len(last_frame(console)), names_shown(last_frame(console))))
    assert seen[0][1] == list(FIXED)
    assert all(shot == seen[0] for shot in seen)


def test_what_comes_later_comes_below():
    console, history = terminal(100, 50), history_of(row(8))
    marks = {"sys/rss_mb": Mark("warning", "grows")}
    with LiveTable(console, CATALOGUE, "x", 0.0, subject=Subject(rows=("train/loss",))) as table:
        history.append({"long-plug-in/a": 0.5, "rollout/success_rate": 0.5, "train/clip_range": 0.7})
        table.update(history, 0.0)
        first = names_shown(last_frame(console))
        table.update(history, 1.0, marks)
        assert names_shown(last_frame(console)) == [*first, "sys/rss_mb"]
        table.update(history, 2.0)
        assert names_shown(last_frame(console))[-1] == "sys/rss_mb"  # where it was, though nobody complains any more
    assert any(name.endswith("/a") for name in first)
    assert first[0] == "train/loss"  # the one that was known before
    assert {"rollout/success_rate", "train/clip_range"} < set(first)


def test_constants_stand_in_one_line_until_they_change():
    console = terminal(120, 50)
    lines = show(history_of({"train/gamma": 0.985, "train/n_epochs": 4}), console)
    assert find(lines, "fixed").split(maxsplit=1)[1].strip() == "gamma 0.985 · n_epochs 4"
    assert "train/gamma" not in names_shown(lines)
    lines = show(history_of({"train/gamma": 0.985, "train/n_epochs": 4}, {"train/n_epochs": 2}), terminal(120, 50))
    assert find(lines, "fixed").split(maxsplit=1)[1].strip() == "gamma 0.985"
    assert names_shown(lines)[-1] == "train/n_epochs"


def test_header():
    values = {"progress": 0.25, "time/seconds": 75, "time/eta": 3725, "time/learn": 0.5, "time/video": 0.001}
    scores = {"rollout/return_mean": 113.2, "eval/return_mean": 135.55, "eval/exact_return": None, "train/solved": 0}
    lines = show(history_of(row(8000, **values, **scores)), terminal(100, 50))
    assert "CartPole-v1:ppo · k3v9" in lines[0] and "1:15 elapsed" in lines[0]
    names = next(index for index, line in enumerate(lines) if line.startswith(" score "))
    assert lines[names].split() == ["score", "training", "evaluated", "best", "target", "random", "perfect", "trend"]
    assert lines[names + 1].split() == ["113.2", "135.6", "135.6", "475.0", "22.4", "500.0", "-"]
    for label, share, text in (("goal", 0.25, "25% of the way, evaluated"), ("budget", 0.25, "25%, ETA 1:02:05")):
        line = find(lines, label)
        full, empty = line.count("━"), line.count("╌")
        assert text in line and full / (full + empty) == pytest.approx(share, abs=0.03)
    assert "1,000 of 4,000 vec_steps · 8,000 env_steps · 12,345 env_steps/s" in find(lines, "steps")
    assert "learn 50%" in find(lines, "time") and "video" not in find(lines, "time")


def test_the_bar_goes_to_the_score_that_counts_and_faintly_to_the_best():
    console = terminal(100, 50)
    scores = [{"rollout/return_mean": value, "eval/return_mean": value} for value in (475.0, 248.7)]
    lines = show(history_of(*scores), console)
    assert "50% of the way" in find(lines, "goal")
    assert re.search(r"\x1b\[36m━+\x1b\[0m\x1b\[2;36m━+\x1b", console.file.getvalue())


def test_without_a_threshold_the_goal_says_so():
    lines = show(history_of(row(8)), terminal(80, 50), subject=Subject(Goal(random=1.0)))
    assert "this env has no known threshold for solved" in find(lines, "goal")


def test_changes_say_over_how_many_steps_and_are_coloured_by_direction():
    console, history = terminal(), History()
    for step in range(1, 31):
        value = float(step**2)
        history.append(
            {"vec_steps": step * 10, "progress": step / 100, "rollout/return_mean": value}
            | {"train/value_loss": value, "train/entropy": value, "train/loss": 1.0}
        )
    lines = show(history, console)
    assert "change over 100 vec_steps" in "\n".join(lines)  # a tenth of 1,000
    assert "+500.00" in find(lines, "return_mean")  # 30² − 20²
    assert find(lines, "loss").split()[2:3] != ["+0.0000"]
    raw = console.file.getvalue()
    assert re.search(r"\x1b\[32m +\+500\.00\x1b", raw), "up is better: green"
    assert re.search(r"\x1b\[31m +\+500\.0000\x1b", raw), "down is better: red"
    assert re.search(r"\x1b\[2m +\+500\.0000\x1b", raw), "no direction: dim"


def test_there_is_no_change_before_the_run_is_that_old():
    history = history_of(*({"vec_steps": 10 * n, "progress": n / 100, "train/loss": float(n)} for n in range(1, 10)))
    line = find(show(history, terminal()), "loss")
    assert "9.0000" in line and "+" not in line


@pytest.mark.parametrize(
    ("severity", "sign", "style"), [("info", "i", "1;34"), ("warning", "!", "1;33"), ("error", "!!", "1;31")]
)
def test_a_marked_row_can_be_highlighted_too(severity, sign, style):
    console = terminal(120, 50)
    lines = show(
        history_of(row(8)), console, {"train/approx_kl": Mark(severity, "KL spike\x1b[2J: lower learning_rate")}
    )
    line = find(lines, "approx_kl")
    assert line.startswith(sign) and "KL spike?[2J: lower" in line
    raw = console.file.getvalue()
    assert "\x1b[2J" not in raw  # no control character from outside
    assert re.search(rf"\x1b\[{style}m{sign} ", raw), "the sign has the colour of its severity"
    assert re.search(r"\x1b\[1;33mapprox_kl", raw), "and the name its own highlight"
    assert find(lines, "clip_fraction").startswith(" ")


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_word_is_broken(width):
    """Every word on the screen is one that was put there, whole."""
    marks = {
        "train/approx_kl": Mark("warning", "nine times the usual value: lower algo.learning_rate or algo.clip_range")
    }
    history = history_of(*(row(step * 800, progress=step / 100) for step in range(1, 40)))
    known = " ".join([*(f"{metric.meaning} {metric.label}" for metric in CATALOGUE), marks["train/approx_kl"].text])
    known += " " + " ".join(CATALOGUE.alias_label(metric.name) for metric in CATALOGUE)
    words = set(known.split())
    for notes in ("trend", "names", "meanings"):
        console = terminal(width, 140)
        with LiveTable(console, CATALOGUE, "x", 0.0, subject=SUBJECT, all_metrics=True) as table:
            table.notes = notes
            table.update(history, 0.0, marks)
        for line in body_of(last_frame(console)):
            texts = [word for word in line[31:].split() if re.search(r"[a-z]", word) and not re.match(r"[-+]?\d", word)]
            assert not [word for word in texts if word not in words], line


def test_names_of_stable_baselines3_are_found():
    history = history_of(row(8), row(16))
    wide = show(history, terminal(100, 50))
    assert find(wide, "return_mean").split()[-1] == "ep_rew_mean"
    assert find(wide, "entropy").split()[-1] == "-entropy_loss"  # theirs has the other sign
    console = terminal(80, 50)
    with LiveTable(console, CATALOGUE, "x", 0.0, subject=SUBJECT) as table:
        table.update(history, 0.0)
        assert "ep_rew_mean" not in find(last_frame(console), "return_mean")
        table.notes = "names"
        table.update(history, 1.0)
    assert find(last_frame(console), "return_mean").split()[-1] == "ep_rew_mean"
    assert "time/total_timesteps" in "".join(show(history, terminal(100, 140), all_metrics=True))


def test_short_terminals_keep_what_matters():
    history = history_of(row(8), row(16))
    lines = "\n".join(show(history, terminal(80, 16), {"train/vf_coef": Mark("warning", "odd")}))
    for label in ("training", "budget", "goal", "return_mean", "explained_variance", "approx_kl", "vf_coef"):
        assert f" {label} " in lines
    assert "train/" not in lines and "hidden" in lines
    assert "hidden" not in "\n".join(show(history, terminal(80, 100)))


def test_wide_terminals_use_two_aligned_columns():
    marks = {"rollout/return_std": Mark("warning", "a long alert " * 9)}
    lines = body_of(show(history_of(row(8), row(16)), terminal(160, 24), marks, all_metrics=True))
    assert len(lines) >= 10
    for line in lines:
        left, right = line[:78], line[81:]
        assert line[78:81].strip() == ""
        assert len(left.split()) >= 3 and re.match(r"[! ] .{10}\w+ +[\d,.]+ ", right)


def test_nan_is_shown_as_such():
    console = terminal(100, 50)
    lines = show(history_of({"train/loss": 1.0}, {"train/loss": math.nan}), console)
    assert find(lines, "loss").split()[2] == "nan"
    assert "broken: train/loss is not a finite number" in lines[1]


def test_uncatalogued_metrics_are_shown():
    lines = show(history_of({"long-plug-in/a": 0.5, "env/reward/centring": 0.123456}), terminal(100, 60))
    assert find(lines, "reward/centring").split()[:3] == ["env", "reward/centring", "0.12346"]


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
        monkeypatch.setattr(table._headline, "lines", lambda *_, **__: 1 / 0)
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


def test_the_final_still_has_no_eta_and_is_compact():
    console, history = terminal(100, 50), history_of(row(8, progress=0.5, **{"time/eta": 61}))
    with LiveTable(console, CATALOGUE, "x", 0.0, subject=SUBJECT) as table:
        table.update(history, 0.0)
        live = last_frame(console)
    final = last_frame(console)
    assert "50%, ETA 1:01" in find(live, "budget") and "50% used" in find(final, "budget")
    assert len(final) < len(live) and names_shown(final) == names_shown(live)


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


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("two words", 9, "two words"),
        ("two words", 8, "two …"),
        ("two words", 4, "two…"),
        ("unbroken", 5, "unbr…"),
        ("a", 0, ""),
    ],
)
def test_fit_words(text, width, fitted):
    assert fit_words(text, width) == fitted
    assert cell_len(fitted) <= width


def test_fit_items():
    glyphs = glyphs_for(terminal())
    assert fit_items(["one", "two", "three"], 17, glyphs) == "one · two · three"
    assert fit_items(["one", "two", "three"], 16, glyphs) == "one · 2 more"
    assert fit_items([], 10, glyphs) == ""


def test_rows_carry_the_sparkline_of_the_whole_run():
    history = history_of(*({"train/loss": float(-step)} for step in range(3000)))
    line = find(show(history, terminal(120, 50)), "loss")
    spark = line.split()[-2]
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
    options = {"run_id": "k3v9", "plain_interval": 10.0, "subject": SUBJECT}
    with open_display(console, CATALOGUE, "CartPole-v1:ppo", **options) as display:
        assert isinstance(display, PlainProgress)
        for now in range(25):
            scores = {"rollout/return_mean": float(now), "eval/return_mean": 0.5, "eval/exact_return": None}
            history.append(row(now * 8, **scores, **{"progress": 0.5, "time/eta": 61, "train/solved": 0}))
            display.update(history, float(now), {"train/loss": Mark("warning", "odd\x1b[2J")})
    text = console.file.getvalue()
    lines = text.splitlines()
    assert "\x1b" not in text and "\r" not in text and text.isascii()
    assert len(lines) == 4  # at 0, 10, 20 seconds and at the end
    assert lines[-1].startswith("vec_steps 24 | env_steps 192 | 50.0% | ETA 1:01 | learning: ")
    for part in ("CartPole-v1:ppo k3v9", "rollout/return_mean 24.00", "warning train/loss: odd?[2J"):
        assert part in lines[-1]
    assert "grad_norm" not in text


def test_plain_lines_can_have_all_metrics():
    console = pipe()
    with PlainProgress(console, CATALOGUE, "x", all_metrics=True) as display:
        display.update(history_of(row(8)), 0.0)
    text = console.file.getvalue()
    assert all(f" {metric.name} " in f" {text}" for metric in CATALOGUE)
    assert text.count("vec_steps") == 1


def test_the_last_plain_line_is_not_repeated():
    console = pipe()
    with PlainProgress(console, CATALOGUE, "[bold]:smile:") as display:
        display.update(history_of(row(8)), 0.0)
    assert len(console.file.getvalue().splitlines()) == 1
    assert console.file.getvalue().endswith("| [bold]:smile:\n")  # a name, not markup


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
        for done in range(1, 5):
            ticks[0] += 0.1
            line.update(done)
    assert console.file.getvalue() == ""
    with progress(console, "evaluation", 10) as line:
        for done in range(1, 10):
            ticks[0] += 0.1
            line.update(done)
        assert "evaluation" in last_frame(console)[-1] and "/10" in last_frame(console)[-1]
    text = console.file.getvalue()
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert "\x1b[2K" in text.rsplit("/10", 1)[1]  # wiped


def test_progress_inside_the_table_is_a_line_of_it(ticks):
    console = terminal()
    with LiveTable(console, CATALOGUE, "x", 0.0) as table:
        table.update(history_of(row(8)), 0.0)
        with progress(console, "evaluation", 4) as line:
            for done in range(1, 4):
                ticks[0] += 1
                line.update(done)
            assert "evaluation" in last_frame(console)[2] and "3/4" in last_frame(console)[2]
        assert "evaluation" not in "".join(last_frame(console))
    assert console.file.getvalue().count(HIDE) == 1


def test_progress_is_silent_off_terminal_and_cleans_up_on_errors(ticks):
    silent = pipe()
    with progress(silent, "video", 3) as line:
        ticks[0] += 5
        line.update(1)
    assert silent.file.getvalue() == ""
    console = terminal()
    with pytest.raises(RuntimeError), progress(console, "video", 3) as line:
        ticks[0] += 5
        line.update(2)
        raise RuntimeError
    assert console.file.getvalue().rindex(SHOW) > console.file.getvalue().rindex(HIDE)

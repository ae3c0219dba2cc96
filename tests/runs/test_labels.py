"""Tags, notes and times as people type them."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from made_runs import finished_run

from gymnast.errors import UsageError
from gymnast.runs.index import list_runs
from gymnast.runs.labels import NOTE_LETTERS, change_tags, is_tag, read_note, write_note
from gymnast.runs.when import parse_age, parse_moment

TAGGER = """
import sys
from pathlib import Path
from gymnast.runs.labels import change_tags
from gymnast.runs.store import Run
run, name = Run(Path(sys.argv[1])), sys.argv[2]
sys.stdin.readline()
for number in range(30):
    change_tags(run, [f"{name}-{number}"])
    if number % 3 == 0:
        change_tags(run, remove=[f"{name}-{number}"])
"""


def test_many_processes_tag_one_run_and_no_tag_is_lost(tmp_path: Path) -> None:
    """Every addition and every removal counts."""
    run = finished_run(tmp_path)
    command = [sys.executable, "-c", TAGGER, str(run.folder)]
    taggers = [subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE, text=True) for n in range(6)]
    for tagger in taggers:
        tagger.communicate("go\n", timeout=60)
        assert tagger.returncode == 0
    expected = sorted(f"p{n}-{number}" for n in range(6) for number in range(30) if number % 3)
    assert run.tags() == expected
    assert list(list_runs(tmp_path)[0].tags) == expected
    assert not [entry for entry in run.folder.iterdir() if entry.name.startswith(".")]


def test_tags_are_words(tmp_path: Path) -> None:
    """One bad word and none is added."""
    run = finished_run(tmp_path)
    for bad in ("", "two words", "-x", "a/b", "x" * 41, "a\nb", "\x1b[2J"):
        assert not is_tag(bad)
        with pytest.raises(UsageError, match="cannot be a tag"):
            change_tags(run, ["good", bad])
    assert run.tags() == []
    assert change_tags(run, ["b", "a", "ü-1.0"], ["b", "never there"]) == ["a", "ü-1.0"]


def test_notes(tmp_path: Path) -> None:
    """Kept as text, shown without control codes, removed by an empty one."""
    run = finished_run(tmp_path)
    assert read_note(run) == ""
    write_note(run, "  two\nlines and ünïcode ")
    assert read_note(run) == "two\nlines and ünïcode"
    (run.folder / "note.txt").write_bytes(b"red \x1b[31m \x07 \xff")
    assert "\x1b" not in read_note(run) and read_note(run).startswith("red [31m")
    with pytest.raises(UsageError, match="letters"):
        write_note(run, "x" * (NOTE_LETTERS + 1))
    write_note(run, " ")
    assert not (run.folder / "note.txt").exists()


def test_times() -> None:
    """Ago, dates and times of this place; anything else is a sentence."""
    now = datetime.now().astimezone()
    for text, ago in (("7d", timedelta(days=7)), ("12h", timedelta(hours=12)), ("1.5H", timedelta(minutes=90))):
        assert abs(parse_moment(text, "--since") - (now - ago)) < timedelta(minutes=1)
    assert parse_moment("2026-03-01", "--since") == datetime(2026, 3, 1).astimezone()
    assert parse_moment("2026-03-01", "--until", end=True) == datetime(2026, 3, 2).astimezone()
    assert parse_moment("2026-03-01T09:30", "--until", end=True) == datetime(2026, 3, 1, 9, 30).astimezone()
    assert parse_age("2w", "--older-than") == timedelta(weeks=2)
    for bad in ("yesterday", "7", "7y", "2026-13-01", "999999w", ""):
        with pytest.raises(UsageError, match="--since"):
            parse_moment(bad, "--since")
    with pytest.raises(UsageError, match="--older-than '2026-03-01' is no length of time"):
        parse_age("2026-03-01", "--older-than")

"""One store and many processes: creating, updating, tagging, listing, removing and dying at once (STO-1)."""

from __future__ import annotations

import dataclasses
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from made_runs import finished_run

from gymnast.runs import index
from gymnast.runs.index import list_runs, read_row, rebuild
from gymnast.runs.store import Run

PROCESSES, RUNS = 32, 4

WRITER = """
import sys
from pathlib import Path
from gymnast.runs.housekeeping import remove
from gymnast.runs.index import upsert
from gymnast.runs.labels import change_tags
from gymnast.runs.store import Run
root, number, runs, updates = Path(sys.argv[1]), *map(int, sys.argv[2:])
sys.stdin.readline()
for turn in range(runs):
    config = {"name": f"w{number}", "env": {"id": "E"}, "algo": {"id": "a"}, "train": {"seed": turn}}
    run = Run.create(root, config)
    for step in range(1, updates):
        run.update(env_steps=step, last_return=step / 7)
        upsert(run)
    change_tags(run, [f"t{turn}"])
    run.finish("finished", "done", solved=turn == 0)
    upsert(run)
    if turn == runs - 1:
        remove([run])
"""

KILLED = """
import os, signal, sys
from pathlib import Path
from gymnast.runs import index
def work(connection):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM runs")
    connection.execute("INSERT INTO runs (id) VALUES ('ghost')")
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.readline()
index._use(Path(sys.argv[1]), work, print)
"""

LISTER = """
import sys
from pathlib import Path
from gymnast.runs.index import list_runs
root, known, turns = Path(sys.argv[1]), sys.argv[2], 0
sys.stdin.readline()
while not (root / "stop").exists():
    rows = list_runs(root)
    ids = [row.id for row in rows]
    assert known in ids, "a row was lost"
    assert "ghost" not in ids and len(set(ids)) == len(ids)
    assert [row.created for row in rows] == sorted((row.created for row in rows), reverse=True)
    turns += 1
print(turns)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], text=True, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("updates", [15, pytest.param(50, marks=pytest.mark.full)])  # of each of their runs
def test_32_processes_in_one_store(updates: int, tmp_path: Path) -> None:
    """No lock error, no lost or invented row, and the rebuilt index equals the live one field by field."""
    known = finished_run(tmp_path)
    writers = [start(WRITER, tmp_path, number, RUNS, updates) for number in range(PROCESSES - 1)]
    victim, lister = start(KILLED, tmp_path), start(LISTER, tmp_path, known.id)
    processes = [*writers, victim, lister]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    victim.communicate(timeout=120)
    assert victim.returncode == -signal.SIGKILL
    for writer in writers:
        out, err = writer.communicate(timeout=120)
        assert (writer.returncode, out, err) == (0, "", "")
    (tmp_path / "stop").touch()
    turns, complaint = lister.communicate(timeout=120)
    assert (lister.returncode, complaint) == (0, "") and int(turns) >= 1

    with closing(sqlite3.connect(tmp_path / index.FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        live = sorted(connection.execute("SELECT * FROM runs").fetchall())
    assert len(live) == 1 + (PROCESSES - 1) * (RUNS - 1)
    rows = {row.id: row for row in list_runs(tmp_path)}
    for row in rows.values():
        folder = read_row(Run(tmp_path / row.id))
        for field in dataclasses.fields(row):
            assert getattr(row, field.name) == getattr(folder, field.name), (row.id, field.name)
        if row.id != known.id:
            assert (row.env_steps, row.tags, row.status) == (updates - 1, (f"t{row.seed}",), "finished")
    assert rebuild(tmp_path) == len(live)
    with closing(sqlite3.connect(tmp_path / index.FILE)) as connection:
        assert sorted(connection.execute("SELECT * FROM runs").fetchall()) == live
    assert {row.id: row for row in list_runs(tmp_path)} == rows

"""The index equals the folders: with many writers, kills, damage and folders that come and go."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gymnast.errors import UsageError
from gymnast.runs import index, lineage
from gymnast.runs.index import list_runs, read_row, rebuild, upsert
from gymnast.runs.store import Run


def config(env="CartPole-v1", algo="ppo", seed=0):
    return {"name": f"{env}:{algo}", "env": {"id": env}, "algo": {"id": algo}, "train": {"seed": seed}}


def create(root, **kwargs):
    run = Run.create(root, config(**kwargs))
    upsert(run)
    return run


def raw(root):
    """The table as it lies on disk, without the refresh that a listing does."""
    with closing(sqlite3.connect(root / index.FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        return sorted(connection.execute("SELECT * FROM runs").fetchall())


def ids(rows):
    return [row.id for row in rows]


WRITER = """
import sys
from pathlib import Path
from gymnast.runs.index import upsert
from gymnast.runs.store import Run
run = Run.create(Path(sys.argv[1]), {"name": "writer", "env": {"id": "E"}, "algo": {"id": "a"}, "train": {"seed": 1}})
sys.stdin.readline()
for step in range(1, 51):
    run.update(env_steps=step)
    upsert(run)
"""

KILLED = """
import sys, time
from pathlib import Path
from gymnast.runs import index
root = Path(sys.argv[1])
def work(connection):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM runs")
    connection.execute("INSERT INTO runs (id) VALUES ('ghost')")
    print("inside", flush=True)
    time.sleep(60)
index._use(root, work, print)
"""


def test_32_processes_write_and_one_is_killed_in_a_transaction(tmp_path):
    create(tmp_path)

    def start(code):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], text=True, **pipes)

    victim = start(KILLED)
    writers = [start(WRITER) for _ in range(31)]
    assert victim.stdout.readline() == "inside\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert (writer.returncode, out, err) == (0, "", "")
    rows = raw(tmp_path)
    assert len(rows) == 32 and "ghost" not in {row[0] for row in rows}
    steps = sorted(row[index._COLUMNS.index("env_steps")] for row in rows)
    assert steps == [0] + [50] * 31
    assert rebuild(tmp_path) == 32
    assert raw(tmp_path) == rows, "rebuilt from the folders equals the live index"


def test_a_writer_that_waited_writes_what_is_true_then(tmp_path):
    run = create(tmp_path)
    with closing(sqlite3.connect(tmp_path / index.FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=upsert, args=(run,))
        waiting.start()
        time.sleep(0.3)
        run.update(env_steps=9)
        other.execute("COMMIT")
    waiting.join()
    assert raw(tmp_path)[0][index._COLUMNS.index("env_steps")] == 9


def test_rebuild_equals_the_live_index(tmp_path):
    for seed in range(6):
        run = create(tmp_path, env=["CartPole-v1", "ALE/Pong-v5"][seed % 2], seed=2**70 + seed)
        run.update(env_steps=seed * 10, vec_steps=seed, last_return=1.5 * seed, best_return=None if seed == 0 else 3.0)
        upsert(run)
        if seed % 3 == 0:
            run.set_tags(["good", "ü"])
            run.finish("finished", "budget", solved=True, wall_seconds=12)
            upsert(run)
    before, listed = raw(tmp_path), list_runs(tmp_path)
    assert rebuild(tmp_path) == 6
    assert raw(tmp_path) == before and list_runs(tmp_path) == listed
    assert [row.seed for row in listed] == [2**70 + seed for seed in reversed(range(6))]
    assert listed == [replace(read_row(Run(tmp_path / row.id))) for row in listed]
    (tmp_path / index.FILE).unlink()
    assert list_runs(tmp_path, notice=lambda _: None) == listed


def test_first_run_is_silent_and_a_missing_index_is_told(tmp_path):
    notices = []
    run = Run.create(tmp_path, config())
    upsert(run, notice=notices.append)
    assert notices == []
    create(tmp_path)
    (tmp_path / index.FILE).unlink()
    assert len(list_runs(tmp_path, notice=notices.append)) == 2
    assert len(notices) == 1 and "was missing" in notices[0] and "2 run folders" in notices[0]
    list_runs(tmp_path, notice=notices.append)
    assert len(notices) == 1


def damage_zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:5000])


def damage_text(path):
    path.write_text("not a database " * 500)


def damage_empty(path):
    path.write_bytes(b"")


def damage_schema(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id)")
        connection.execute(f"PRAGMA user_version = {index._VERSION}")


def damage_version(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def damage_row(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET tags = '['")


@pytest.mark.parametrize(
    "damage", [damage_zeros, damage_truncate, damage_text, damage_empty, damage_schema, damage_version, damage_row]
)
@pytest.mark.parametrize("first", ["list", "upsert"])
def test_a_damaged_index_is_rebuilt(tmp_path, damage, first):
    runs = [create(tmp_path, seed=seed) for seed in range(40)]
    for old in tmp_path.glob("index.sqlite-*"):
        old.unlink()
    damage(tmp_path / index.FILE)
    notices = []
    if first == "upsert" and damage is not damage_row:  # an upsert does not read rows
        upsert(runs[3], notice=notices.append)
        assert len(raw(tmp_path)) == 40
    assert ids(list_runs(tmp_path, notice=notices.append)) == ids(reversed(runs))
    why = "written by another version" if damage is damage_version else "damaged"
    assert len(notices) == 1 and why in notices[0] and "\n" not in notices[0]
    assert len(raw(tmp_path)) == 40


def test_random_damage_never_stops_a_listing(tmp_path):
    for seed in range(30):
        create(tmp_path, seed=seed)
    whole = (tmp_path / index.FILE).read_bytes()
    generator = random.Random(5)
    for _ in range(30):
        broken = bytearray(whole)
        for _ in range(generator.choice([1, 30, 2000])):
            broken[generator.randrange(len(broken))] ^= 1 << generator.randrange(8)
        (tmp_path / index.FILE).write_bytes(broken)
        assert len(list_runs(tmp_path, notice=lambda _: None)) >= 30 - 1, "a flipped id at most, found again next time"


LISTER = """
import sys
from pathlib import Path
from gymnast.runs.index import list_runs
print(len(list_runs(Path(sys.argv[1]))))
"""


def test_many_processes_repair_together(tmp_path):
    for _ in range(20):
        create(tmp_path)
    damage_text(tmp_path / index.FILE)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    listers = [subprocess.Popen([sys.executable, "-c", LISTER, str(tmp_path)], **pipes) for _ in range(8)]
    answers = [lister.communicate(timeout=60) for lister in listers]
    assert [out for out, _ in answers] == ["20\n"] * 8
    assert sum("rebuilt" in err for _, err in answers) == 1, "one repairs, the others wait for it"


def test_folders_that_come_go_and_change_are_seen_without_an_upsert(tmp_path):
    first, second, third = (create(tmp_path) for _ in range(3))
    shutil.rmtree(first.folder)
    shutil.copytree(second.folder, tmp_path / "cpyyd")
    third.update(env_steps=77)
    second.set_tags(["mine"])
    rows = {row.id: row for row in list_runs(tmp_path)}
    assert set(rows) == {second.id, third.id, "cpyyd"}
    assert rows[third.id].env_steps == 77 and rows[second.id].tags == ("mine",)
    assert {row[0] for row in raw(tmp_path)} == set(rows), "and written back"
    shutil.rmtree(second.folder)
    upsert(second)
    assert second.id not in {row[0] for row in raw(tmp_path)}


def test_one_bad_folder_does_not_hide_the_others(tmp_path):
    good, bad, strange = (create(tmp_path) for _ in range(3))
    bad.config_path.write_text("{")
    bad.status_path.write_text("")
    strange.config_path.write_text(json.dumps({"name": 5, "env": "x", "algo": None, "train": {"seed": "a"}}))
    strange.update(env_steps=2**80)
    (tmp_path / "notes").mkdir()
    (tmp_path / "zzzzz").mkdir()
    rows = {row.id: row for row in list_runs(tmp_path)}
    assert set(rows) == {good.id, bad.id, strange.id}
    assert rows[bad.id].status == "failed" and rows[strange.id].env_steps == 2**63 - 1


def test_filters_newest_first(tmp_path):
    a = create(tmp_path, seed=1)
    b = create(tmp_path, env="ALE/Pong-v5", seed=2)
    c = create(tmp_path, algo="a2c", seed=1)
    a.finish("finished", "solved", solved=True)
    b.set_tags(["paper"])
    c.update(process_start="1")  # its process is gone
    assert ids(list_runs(tmp_path)) == [c.id, b.id, a.id]
    assert ids(list_runs(tmp_path, limit=2)) == [c.id, b.id]
    assert ids(list_runs(tmp_path, env="cartpole-V1")) == [c.id, a.id]
    assert ids(list_runs(tmp_path, env="ale/*")) == [b.id]
    assert ids(list_runs(tmp_path, config="*:a2c")) == [c.id] == ids(list_runs(tmp_path, algo="a2c"))
    assert ids(list_runs(tmp_path, seed=1)) == [c.id, a.id]
    assert ids(list_runs(tmp_path, solved=True)) == [a.id]
    assert ids(list_runs(tmp_path, tag="paper")) == [b.id]
    assert ids(list_runs(tmp_path, status="running")) == [b.id]
    assert ids(list_runs(tmp_path, status="crashed")) == [c.id]
    assert ids(list_runs(tmp_path, seed=1, limit=1)) == [c.id]
    with pytest.raises(UsageError, match="Did you mean 'finished'"):
        list_runs(tmp_path, status="finish")


def test_no_folder_no_runs_nothing_made(tmp_path):
    assert list_runs(tmp_path / "none") == []
    assert list(tmp_path.iterdir()) == []


def _list_as_nobody(root, answers):
    if os.getuid() == 0:
        os.setuid(65534)
    answers.put(ids(list_runs(root)))


def test_a_folder_that_may_only_be_read_is_listed():
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        runs = [create(root) for _ in range(3)]
        root.chmod(0o555)
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        child = context.Process(target=_list_as_nobody, args=(root, answers))
        child.start()
        assert answers.get(timeout=20) == ids(reversed(runs))
        child.join()
        root.chmod(0o755)


FULL = """
import resource, sys
from pathlib import Path
from gymnast.runs.index import upsert
from gymnast.runs.store import Run
run = Run(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
upsert(run)
print("went on")
"""


def test_a_full_disk_does_not_end_a_training(tmp_path):
    run = create(tmp_path)
    run.update(env_steps=5)
    done = subprocess.run([sys.executable, "-c", FULL, str(run.folder)], capture_output=True, text=True, check=True)
    assert done.stdout == "went on\n" and "could not be written" in done.stderr
    assert list_runs(tmp_path)[0].env_steps == 5


@pytest.mark.parametrize("number", ["1e400", "Infinity", "-1e999", "NaN"])
def test_a_score_that_is_no_number_is_no_score(number: str, tmp_path: Path) -> None:
    """A forged status cannot top a ranking: it reads as damaged, like any other that we did not write."""
    good, forged = (Run.create(tmp_path, config()) for _ in range(2))
    good.finish("finished", "budget spent", best_return=9.5)
    forged.finish("finished", "budget spent", best_return=1234.5)
    forged.status_path.write_text(forged.status_path.read_text().replace("1234.5", number))
    rebuild(tmp_path)
    rows = list_runs(tmp_path, sort="return")
    assert [(row.id, row.best_return) for row in rows] == [(good.id, 9.5), (forged.id, None)]


@pytest.mark.parametrize("name", ["config.json", "status.json", "tags.json", "lineage.json"])
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, '"\\ud800"', "", "\xff", "1" * 5000])
def test_files_that_are_not_json_hide_no_other_run(name: str, text: str, tmp_path: Path) -> None:
    """Deep nesting, half characters, huge numbers: the run is listed with what can be read of it."""
    good, forged = (Run.create(tmp_path, config()) for _ in range(2))
    (forged.folder / name).write_text(text, encoding="latin-1")
    assert {row.id for row in list_runs(tmp_path)} == {good.id, forged.id}
    lineage.read(forged.folder)


def test_a_store_of_the_version_before_efficiency(tmp_path):
    """Its index has fewer columns and its runs say nothing of their quality: it is listed and sorted all the same."""
    old, new = create(tmp_path), create(tmp_path)
    status = json.loads(old.status_path.read_text())
    for name in ("efficiency", "vec_steps_to_solved", "seconds_to_solved"):
        del status[name]
    old.status_path.write_text(json.dumps(status))
    new.update(efficiency=0.5, vec_steps_to_solved=64, seconds_to_solved=1.5)
    (tmp_path / index.FILE).unlink()
    for rest in tmp_path.glob("index.sqlite-*"):
        rest.unlink()
    kept = (
        "id, config, env, algo, seed, status, created, updated, env_steps, vec_steps, best_return, best_at, last_return"
    )
    with closing(sqlite3.connect(tmp_path / index.FILE)) as connection, connection:
        connection.execute(
            f"CREATE TABLE runs ({kept}, last_at, threshold, solved, wall_seconds, tags, stamp, PRIMARY KEY (id))"
        )
        connection.execute("PRAGMA user_version = 2")
    notices = []
    rows = list_runs(tmp_path, sort="efficiency", notice=notices.append)
    assert [(row.id, row.efficiency) for row in rows] == [(new.id, 0.5), (old.id, None)]
    assert [row.vec_steps_to_solved for row in list_runs(tmp_path, sort="steps-to-solved")] == [64, None]
    assert "written by another version" in notices[0] and "damaged" not in notices[0]

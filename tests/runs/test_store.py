"""The run folder: all or nothing, one owner, and the truth about which process lives."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gymnast.errors import GymnastError, UsageError
from gymnast.runs import lineage, store
from gymnast.runs.process import machine, process_start
from gymnast.runs.status import FIELDS, Status
from gymnast.runs.store import Run, is_id, last_run, new_id, runs_root

CONFIG = {"name": "CartPole-v1:ppo", "env": {"id": "CartPole-v1"}, "algo": {"id": "ppo"}, "train": {"seed": 7}}

HOLDER = """
import sys, time
from pathlib import Path
from gymnast.runs.store import Run
root, run_id = Path(sys.argv[1]), sys.argv[2]
run = Run.open(root, run_id) if run_id else Run.create(root, {"name": "child"})
lock = run.lock()
print(run.id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Starts processes that own a run and its lock; returns (process, run)."""
    started = []

    def start(run_id=""):
        command = [sys.executable, "-c", HOLDER, str(tmp_path), run_id]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, Run.open(tmp_path, process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_root_order(monkeypatch, tmp_path):
    monkeypatch.delenv("GYMNAST_HOME", raising=False)
    assert runs_root() == Path("runs")
    monkeypatch.setenv("GYMNAST_HOME", str(tmp_path))
    assert runs_root() == tmp_path
    assert runs_root(Path("here")) == Path("here")


def test_ids_are_unambiguous():
    ids = {new_id() for _ in range(3000)}
    assert len(ids) > 2990
    assert all(is_id(one) and len(one) == 5 and one[0].isalpha() and not set(one) & set("0o1li") for one in ids)
    assert len({one[0] for one in ids}) == 23
    assert not any(is_id(text) for text in ("", "abcd", "abcdef", "2bcde", "abcdo", "ABCDE", "../ab", "abcde\n"))


def test_create_leaves_a_complete_run(tmp_path):
    run = Run.create(tmp_path / "a" / "runs", CONFIG, tags=["b", "a", "b"])
    assert run.config() == CONFIG
    assert run.tags() == ["a", "b"]
    status = run.status()
    assert (status.state, status.attempt, status.pid) == ("running", 1, os.getpid())
    assert status.created == status.started == status.heartbeat and status.created.endswith("+00:00")
    assert run.checkpoints.is_dir() and run.videos.is_dir()
    assert run.is_alive() and run.shown_state() == "running"
    assert last_run(run.root) == run == Run.open(run.root, run.id)
    assert not [name for name in everything(tmp_path) if "/." in name], "no temporary files"


def test_a_taken_id_is_not_used_twice(tmp_path, monkeypatch):
    ids = iter(["aaaaa", "aaaaa", "bbbbb"])
    monkeypatch.setattr(store, "new_id", lambda: next(ids))
    assert [Run.create(tmp_path, CONFIG).id for _ in range(2)] == ["aaaaa", "bbbbb"]


@pytest.mark.parametrize("below", ["", "sub/runs"])
def test_create_where_a_file_is(tmp_path, below):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(UsageError, match=r"file.*--runs-dir or GYMNAST_HOME"):
        Run.create(file / below, CONFIG)
    assert everything(tmp_path) == ["file"] and file.read_text() == "mine"


@pytest.mark.parametrize("step", ["point_last", "_write"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_create_leaves_nothing(tmp_path, monkeypatch, step, failure):
    def fail(*_):
        raise failure

    monkeypatch.setattr(Run, step, fail)
    expected = UsageError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        Run.create(tmp_path / "new" / "runs", CONFIG)
    assert everything(tmp_path) == []


def test_a_config_that_is_no_json_creates_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Run.create(tmp_path / "runs", {"x": float("nan")})
    assert everything(tmp_path) == []


def _create_as_nobody(folder, answers):
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        Run.create(folder, CONFIG)
        answers.put("created")
    except UsageError as error:
        answers.put(str(error))


def test_unwritable_folder_is_named(tmp_path):
    (tmp_path / "shut").mkdir(mode=0o500)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_create_as_nobody, args=(tmp_path / "shut", answers))
    child.start()
    answer = answers.get(timeout=20)
    child.join()
    assert "shut" in answer and "Permission denied" in answer and "--runs-dir" in answer
    assert everything(tmp_path) == ["shut"]


def test_update_finish_begin(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    first = run.update(env_steps=100, best_return=float("-inf"), last_return=float("nan"), wall_seconds=2.5)
    assert first.heartbeat > first.created
    status = run.status()
    assert (status.env_steps, status.wall_seconds, status.best_return, status.last_return) == (100, 2.5, None, None)
    run.finish("finished", "solved: eval/return_mean ≥ 475", solved=True, best_return=500.0)
    status = run.status()
    assert (status.state, status.solved, status.env_steps) == ("finished", True, 100)
    assert status.ended is not None and not run.is_alive() and run.shown_state() == "finished"
    other = Run.create(tmp_path, CONFIG)
    assert last_run(tmp_path) == other
    status = run.begin(CONFIG, start="step=100")
    assert (status.state, status.attempt, status.ended, status.stop_reason) == ("running", 2, None, None)
    assert status.created < status.started and last_run(tmp_path) == run
    with pytest.raises(ValueError, match="ends as one of"):
        run.finish("solved", "no such state")


def test_every_attempt_keeps_its_config_and_what_changed(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    assert lineage.read(run.folder) == lineage.Lineage()
    configs = [CONFIG, CONFIG, {**CONFIG, "name": "other"}, {**CONFIG, "name": "other"}, {**CONFIG, "more": {"x": 1}}]
    for number, config in enumerate(configs[1:], start=2):
        assert run.begin(config, start=f"step={number}", optimizer=number != 4).attempt == number
    assert [run.config_of(number) for number in range(1, 6)] == configs
    assert run.config() == configs[-1]
    assert sorted(path.name for path in run.folder.glob("config*.json")) == [
        "config-2.json",
        "config-4.json",
        "config.json",
    ]
    attempts = lineage.read(run.folder).attempts
    assert [(one.attempt, one.start, one.optimizer) for one in attempts] == [
        (2, "step=2", True),
        (3, "step=3", True),
        (4, "step=4", False),
        (5, "step=5", True),
    ]
    assert [one.changes for one in attempts] == [
        {},
        {"name": [CONFIG["name"], "other"]},
        {},
        {"name": ["other", CONFIG["name"]], "more.x": [None, 1]},
    ]
    times = [one.at for one in attempts]
    assert times == sorted(times) and times[0] > run.status().created
    lineage.set_parent(run.folder, {"source": "abcde/@best"})
    lineage.add_attempt(run.folder, lineage.Attempt(6, "step=6"))
    both = lineage.read(run.folder)
    assert len(both.attempts) == 5 and both.parent == {"source": "abcde/@best"}


def test_an_attempt_killed_while_it_began_is_one_with_the_next(tmp_path, monkeypatch):
    run = Run.create(tmp_path, CONFIG)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.begin({**CONFIG, "name": "b"}, start="step=5", optimizer=False)
    assert run.status().attempt == 1 and run.config()["name"] == "b"
    run.begin({**CONFIG, "name": "c"}, start="step=6")
    (only,) = lineage.read(run.folder).attempts
    assert (only.attempt, only.start, only.optimizer) == (2, "step=6", True)
    assert only.changes == {"name": [CONFIG["name"], "c"]}
    assert [run.config_of(number)["name"] for number in (1, 2)] == [CONFIG["name"], "c"]


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"attempts": 3}', '{"attempts": [{"x": 1}]}', "\ud800"])
def test_a_damaged_lineage_reads_as_none(tmp_path, content):
    run = Run.create(tmp_path, CONFIG)
    (run.folder / lineage.FILE).write_bytes(content.encode(errors="surrogatepass"))
    assert lineage.read(run.folder) == lineage.Lineage()
    run.begin(CONFIG, start="step=1")
    assert len(lineage.read(run.folder).attempts) == 1


def test_a_config_of_an_attempt_that_cannot_be_read_is_named(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    run.begin({**CONFIG, "name": "other"}, start="step=1")
    (run.folder / "config-1.json").write_text("{")
    with pytest.raises(GymnastError, match=r"config of run .* cannot be read \('.*config-1.json'\)"):
        run.config_of(1)
    assert run.config_of(2)["name"] == "other"


def test_update_on_a_full_disk_keeps_the_old_status(tmp_path, monkeypatch):
    run = Run.create(tmp_path, CONFIG)
    before = run.status()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(GymnastError, match="No space left"):
        run.update(env_steps=1)
    assert run.status() == before
    assert everything(run.folder) == ["checkpoints", "config.json", "status.json", "videos"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"state": "running"}', "\x00" * 50, '{"state": "sleeping", "created": "", "started": ""}'],
)
def test_damaged_status_reads_as_failed(tmp_path, content):
    run = Run.create(tmp_path, CONFIG)
    run.status_path.write_text(content)
    status = run.status()
    assert (status.state, status.stop_reason) == ("failed", "status.json is missing or damaged")
    assert not run.is_alive()


def test_status_with_wrong_types_reads_as_failed(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    raw = json.loads(run.status_path.read_text())
    run.status_path.write_text(json.dumps(raw | {"env_steps": {"a": 1}}))
    assert run.status().state == "failed"
    run.status_path.write_text(json.dumps(raw | {"of_a_later_version": 1}))
    assert run.status().state == "running"


def test_readers_never_see_half_a_status(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    done = threading.Event()

    def write():
        for step in range(300):
            run.update(env_steps=step)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert json.loads(run.status_path.read_text())["state"] == "running"
    writer.join()
    assert run.status().env_steps == 299


def test_a_killed_run_shows_as_crashed_at_once(holder):
    process, run = holder()
    assert run.is_alive() and run.shown_state() == "running"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(process.pid) is None, "a zombie is not alive"
    assert not run.is_alive() and run.shown_state() == "crashed"
    assert run.status().state == "running", "the file cannot know"


def test_a_stopped_process_is_alive(holder):
    process, run = holder()
    process.send_signal(signal.SIGSTOP)
    run.update(heartbeat="2020-01-01T00:00:00+00:00")
    assert run.is_alive()


def test_a_reused_pid_is_not_the_run(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    run.update(process_start="1")
    assert run.shown_state() == "crashed"


def test_elsewhere_the_heartbeat_decides(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    run.update(machine="another " + machine(), pid=1)
    assert run.is_alive()
    run.update(heartbeat="2020-01-01T00:00:00+00:00")
    assert not run.is_alive()
    run.update(heartbeat="yesterday")
    assert not run.is_alive()


def test_lock_names_its_holder_and_dies_with_it(holder):
    process, run = holder()
    with pytest.raises(UsageError, match=rf"process {process.pid} on .+ since 2\d+-.*kill {process.pid}"):
        run.lock()
    process.kill()
    process.wait()
    with run.lock(), pytest.raises(UsageError, match=f"process {os.getpid()} "):
        run.lock()
    lock = run.lock()
    lock.release()
    lock.release()
    run.lock().release()


def test_lock_just_taken_has_no_name_yet(tmp_path):
    run = Run.create(tmp_path, CONFIG)
    with run.lock():
        (run.folder / "lock").write_text("")
        with pytest.raises(UsageError, match="another process"):
            run.lock()


def test_last_is_a_link_or_a_pointer_file(tmp_path, monkeypatch):
    first = Run.create(tmp_path, CONFIG)
    assert (tmp_path / "@last").is_symlink() and (tmp_path / "@last" / "config.json").is_file()

    def refuse(*_, **__):
        raise OSError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "symlink_to", refuse)
        second = Run.create(tmp_path, CONFIG)
        assert not (tmp_path / "@last").is_symlink()
        assert last_run(tmp_path) == second
    first.point_last()
    assert (tmp_path / "@last").is_symlink() and last_run(tmp_path) == first


def test_last_is_always_there_while_it_is_replaced(tmp_path, monkeypatch):
    runs = [Run.create(tmp_path, CONFIG) for _ in range(4)]
    done = threading.Event()
    unlink = Path.unlink

    def watched(path, **kwargs):
        assert path.name != "@last", "removed before the new one is in place"
        unlink(path, **kwargs)

    monkeypatch.setattr(Path, "unlink", watched)
    runs[0].point_last()

    def point(run):
        for _ in range(100):
            run.point_last()
        done.set()

    threads = [threading.Thread(target=point, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    while not done.is_set():
        assert last_run(tmp_path) in runs
    for thread in threads:
        thread.join()


def test_last_pointing_nowhere_or_outside_is_none(tmp_path):
    run = Run.create(tmp_path / "runs", CONFIG)
    outside = Run.create(tmp_path / "outside", CONFIG)
    link = run.root / "@last"
    for target in (f"../outside/{outside.id}", "..", "zzzzz", ""):
        link.unlink()
        link.write_text(target)
        assert last_run(run.root) is None
    assert last_run(tmp_path / "nowhere") is None


@pytest.mark.parametrize("text", ["../x", "/etc", "", ".", "zzzzz", "@last", "a/b"])
def test_open_takes_ids_only(tmp_path, text):
    Run.create(tmp_path, CONFIG)
    with pytest.raises(UsageError, match="no run"):
        Run.open(tmp_path, text)


def test_a_folder_without_status_is_no_run(tmp_path):
    (tmp_path / "abcde").mkdir()
    (tmp_path / "abcde" / "config.json").write_text("{}")
    with pytest.raises(UsageError):
        Run.open(tmp_path, "abcde")


def test_every_status_field_has_a_checked_type():
    assert set(FIELDS) == set(Status.__dataclass_fields__)


def test_listing_imports_stay_light():
    code = "import sys, gymnast.runs.refs; print(*{'torch', 'numpy', 'pydantic', 'safetensors'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []

"""TensorBoard, W&B and Trackio through their own packages: what they have is what the run's file has, whatever goes wrong."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gated_env  # noqa: F401 - registers the env
import numpy as np
import pytest
from fake_wandb import KEY, FakeWandb, wait_until
from runs_alike import N_ENVS, PER_ITERATION, Watcher, assert_same_end, resume, run, small

from gymnast.config.load import Resolved
from gymnast.errors import MissingPackageError
from gymnast.evaluation.video import encode
from gymnast.metrics.histogram import Histogram
from gymnast.metrics.sinks import tracked
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.metrics.trackers.base import TrackerError
from gymnast.runs.store import Run
from gymnast.service.tracking.sending import Sending
from gymnast.service.tracking.workspace import workspace

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
Found = dict[str, dict[int, float]]
"""Values by name and step."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    """W&B on this machine, to which everything that this test starts logs in."""
    fake = FakeWandb()
    for name, value in fake.environment.items():
        monkeypatch.setenv(name, value)
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is written to the user's folders; no setting of the user's counts."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "wandb_config"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("WANDB_PROJECT", "WANDB_MODE", "WANDB_ENTITY"):
        monkeypatch.delenv(name, raising=False)


def tracked_config(*sinks: str, env: dict[str, Any] = CARTPOLE, **changes: Any) -> Resolved:
    """Six iterations with evaluations, followed by these trackers."""
    return small("ppo", env, log={"sinks": list(sinks)}, **changes)


def in_file(run: Run) -> Found:
    """What the run's own file says; the step is vec_steps."""
    found: Found = {}
    for row in MetricRows(run.metrics_path):
        for name, value in row.items():
            if name not in NOT_METRICS and value is not None:
                found.setdefault(name, {})[row["vec_steps"]] = value
    return found


def in_tensorboard(run: Run) -> Found:
    """What TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run.folder / "tensorboard"), {"scalars": 0})
    events.Reload()
    return {tag: {event.step: event.value for event in events.Scalars(tag)} for tag in events.Tags()["scalars"]}


def in_trackio(run: Run) -> Found:
    """What Trackio shows."""
    return _by_name(_rows_of_trackio(run))


def _rows_of_trackio(run: Run) -> list[dict[str, Any]]:
    """Read by Trackio itself, in a process where it finds the folder of this test."""
    code = (
        "import json,sys; from trackio.sqlite_storage import SQLiteStorage as s; "
        f"print(json.dumps(s.get_logs('CartPole-v1', 'ppo-{run.id}')))"
    )
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def in_wandb(server: FakeWandb, run: Run) -> Found:
    """What arrived at the server."""
    history = server.runs[run.id]["history"]
    assert sorted(history) == list(range(len(history)))  # without gaps
    assert [history[number]["_step"] for number in sorted(history)] == sorted(history)
    return _by_name(history[number] for number in sorted(history))


def _by_name(rows: Any) -> Found:
    found: Found = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, (int, float)) and not name.startswith("_") and name not in ("step", "timestamp"):
                found.setdefault(name, {})[int(row["vec_steps"])] = value
    return found


def sent_by_itself(run: Run, name: str) -> None:
    """The sender may go on after the training; wait for its end."""
    lock = run.folder / tracked.FOLDER / f"{name}.lock"
    from gymnast.errors import UsageError
    from gymnast.runs.lock import RunLock

    def free() -> bool:
        try:
            RunLock(lock).release()
        except UsageError:
            return False
        return True

    wait_until(free, 60)


def synced(run: Run, *names: str) -> str:
    """What `gymnast sync` says; a process of its own, because the client remembers the server it spoke to first."""
    command = [sys.executable, "-m", "gymnast", "sync", run.id, "--runs-dir", str(run.root), "--track", ",".join(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("late", [False, True])
def test_every_value_is_the_files(late: bool, server: FakeWandb, tmp_path: Path) -> None:
    """In three trackers at once; with evaluations that end after later rows, each at its own step."""
    changes: dict[str, Any] = {}
    watcher = Watcher()
    if late:
        gate = tmp_path / "gate"
        changes = {
            "eval": {"mode": "worker", "env": {"kwargs": {"gate": str(gate)}}},
            "env": {"id": "Gated-v0", "module": "gated_env"},
        }
        watcher = _Opens(gate, 3)
    names = ["tensorboard", "wandb"] if late else ["tensorboard", "wandb", "trackio"]
    result = run(tracked_config(*names, **changes), tmp_path / "runs", watcher)
    for name in names:
        sent_by_itself(result.run, name)
    expected = in_file(result.run)
    assert len(expected["eval/return_mean"]) == 3 and len(expected["train/loss"]) == 6
    assert in_wandb(server, result.run) == expected
    rounded = {name: {step: float(np.float32(value)) for step, value in one.items()} for name, one in expected.items()}
    assert in_tensorboard(result.run) == rounded  # TensorBoard keeps 32 bits
    if not late:
        assert in_trackio(result.run) == expected
    assert watcher.warnings == []


class _Opens(Watcher):
    def __init__(self, gate: Path, after: int) -> None:
        super().__init__()
        self._gate, self._after = gate, after

    def update(self, history: Any, *more: Any) -> None:
        """Let the evaluations beside training go on after some rows."""
        super().update(history, *more)
        if history.rows == self._after:
            self._gate.touch()


def test_a_wandb_run_says_what_it_is(server: FakeWandb, tmp_path: Path) -> None:
    """Name, group, project, tags, config, outcome; and nothing that the user's terminal, code or environment holds."""
    result = run(tracked_config("wandb", spec={"solved_at": 1.0}), tmp_path)
    sent_by_itself(result.run, "wandb")
    (name, found), *others = server.runs.items()
    assert not others and name == result.run.id
    assert found["displayName"] == f"ppo-{name}" and found["groupName"] == "CartPole-v1:ppo"
    assert found["project"] == "CartPole-v1" and found["tags"] == ["ppo", "CartPole-v1"]
    assert found["config"]["algo"]["value"]["clip_range"] == result.run.config()["algo"]["clip_range"]
    assert found["summary"]["solved"] is True and found["finished"] == 0
    steps = json.dumps(found["config"]["_wandb"])
    assert "vec_steps" in steps  # the x-axis of every chart
    assert not [file for file in found["files"] if "output.log" in file or "code" in file or "requirements" in file]


def test_a_resumed_run_goes_on_in_the_same_places(server: FakeWandb, tmp_path: Path) -> None:
    """One W&B run; TensorBoard forgets what the resumed attempt does again."""
    resolved = tracked_config("wandb", "tensorboard", train={"env_steps": 6 * PER_ITERATION, "checkpoint_every": 10**9})
    stopped = run(resolved, tmp_path, Watcher(stop_after=3)).run
    for name in ("wandb", "tensorboard"):
        sent_by_itself(stopped, name)
    assert len(server.runs[stopped.id]["history"]) == 3 and server.runs[stopped.id]["finished"] == 255
    # A row that no checkpoint covers: the next attempt replaces it.
    line = stopped.metrics_path.read_text().splitlines()[-1]
    void = json.loads(line) | {
        "env_steps": 4 * PER_ITERATION,
        "vec_steps": 4 * PER_ITERATION // N_ENVS,
        "train/loss": 777.0,
    }
    with stopped.metrics_path.open("a") as file:
        file.write(json.dumps(void) + "\n")
    assert synced(stopped, "wandb", "tensorboard").count("got 1 records") == 2
    finished = resume(resolved, stopped).run
    for name in ("wandb", "tensorboard"):
        sent_by_itself(finished, name)
    expected = in_file(finished)
    arrived = in_wandb(server, finished)  # W&B cannot forget a row: the newer one counts
    assert {name: {step: arrived[name][step] for step in steps} for name, steps in expected.items()} == expected
    rounded = {step: float(np.float32(value)) for step, value in expected["train/loss"].items()}
    assert in_tensorboard(finished)["train/loss"] == rounded
    assert list(server.runs) == [finished.id] and server.runs[finished.id]["finished"] == 0


FULL = pytest.mark.full


@pytest.mark.parametrize(
    "mode", ["hangs", "nobody there", pytest.param("refuses", marks=FULL), pytest.param("garbage", marks=FULL)]
)
def test_an_outage_changes_nothing(
    mode: str, server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning; the same weights to the bit; everything arrives later, once."""
    monkeypatch.setattr(tracked, "PATIENCE", 0.5)
    plain = run(tracked_config(), tmp_path)
    watcher = Watcher()
    if mode == "nobody there":
        monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    server.mode = mode
    result = run(tracked_config("wandb"), tmp_path, watcher)
    assert_same_end(plain.run, result.run)
    (warning,) = watcher.warnings
    assert f"gymnast sync {result.run.typed}" in warning and warning.startswith("W&B ")
    assert not server.runs
    monkeypatch.setenv("WANDB_BASE_URL", server.url)
    server.mode = "well"
    server.released.set()
    _stop_senders(result.run)
    synced(result.run, "wandb")
    assert in_wandb(server, result.run) == in_file(result.run)
    assert server.runs[result.run.id]["finished"] == 0


class _Interrupts(Watcher):
    """Waits until the server has taken the run, then lets it die; after some more rows it may come back."""

    def __init__(self, server: FakeWandb, *, after_rows: bool = False, back_after: int | None = None) -> None:
        """`after_rows` also waits until rows have arrived; the client sends its first ones after 15 s."""
        super().__init__()
        self._server, self._after_rows, self._back_after = server, after_rows, back_after

    def _taken(self) -> bool:
        runs = self._server.runs.values()
        return any(found["history"] or not self._after_rows for found in runs)

    def update(self, history: Any, *more: Any) -> None:
        """Look at the rows so far."""
        super().update(history, *more)
        if history.rows == 2:
            wait_until(self._taken, 60)
            self._server.die()
        if history.rows == self._back_after:
            self._server.revive()


def test_an_outage_in_the_middle_of_a_run(server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes the run and dies: one warning, the same weights, and the rest arrives later, once."""
    monkeypatch.setattr(tracked, "PATIENCE", 0.5)
    plain = run(tracked_config(), tmp_path)
    watcher = _Interrupts(server)
    result = run(tracked_config("wandb"), tmp_path, watcher)
    assert_same_end(plain.run, result.run)
    (warning,) = watcher.warnings
    assert f"gymnast sync {result.run.typed}" in warning and warning.startswith("W&B ")
    arrived = len(server.runs[result.run.id]["history"])
    assert arrived < 6
    _stop_senders(result.run)
    server.revive()
    assert f"got {6 - arrived} records" in synced(result.run, "wandb")
    assert in_wandb(server, result.run) == in_file(result.run)
    assert server.runs[result.run.id]["finished"] == 0
    assert "had everything already" in synced(result.run, "wandb")


@pytest.mark.full
def test_an_outage_that_ends_before_the_run(server: FakeWandb, tmp_path: Path) -> None:
    """The server is gone for a while in the middle: nobody needs to do anything, and nothing is said."""
    watcher = _Interrupts(server, after_rows=True, back_after=4)
    result = run(tracked_config("wandb"), tmp_path, watcher)
    sent_by_itself(result.run, "wandb")
    assert in_wandb(server, result.run) == in_file(result.run)
    assert server.runs[result.run.id]["finished"] == 0


def _stop_senders(run: Run) -> None:
    """The one of this run that still waits for a server: by the id that its lock names."""
    lock = run.folder / tracked.FOLDER / "wandb.lock" / "lock"
    if lock.exists() and lock.read_text():
        pid = json.loads(lock.read_text())["pid"]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    sent_by_itself(run, "wandb")


def test_what_a_server_lost_is_sent_again_and_nothing_twice(server: FakeWandb, tmp_path: Path) -> None:
    """The server has the first two records only: the outage came in the middle of the run."""
    result = run(tracked_config("wandb"), tmp_path)
    sent_by_itself(result.run, "wandb")
    whole = dict(server.runs[result.run.id]["history"])
    kept = server.runs[result.run.id]
    kept["history"] = {number: row for number, row in whole.items() if number < 2}
    kept["summary"] = dict(whole[1])
    assert f"got {len(whole) - 2} records" in synced(result.run, "wandb")
    assert in_wandb(server, result.run) == in_file(result.run)
    assert "had everything already" in synced(result.run, "wandb")


def test_a_killed_training_is_finished_at_its_tracker(server: FakeWandb, tmp_path: Path) -> None:
    """SIGKILL in the middle: the sender sees the end of the process and closes the run as failed."""
    command = [sys.executable, "-m", "gymnast", "train", "CartPole-v1:ppo", "-n", "1e9", "--runs-dir", str(tmp_path)]
    child = subprocess.Popen([*command, "--track", "wandb", "train.stop_when_solved=false", "-q"])
    try:
        wait_until(lambda: any(found["history"] for found in server.runs.values()), 60)
    finally:
        child.kill()
        child.wait()
    (found,) = server.runs.values()
    wait_until(lambda: found["finished"] is not None, 60)
    assert found["finished"] == 1
    killed = Run(next(path.parent for path in tmp_path.glob("*/config.json") if not path.parent.is_symlink()))
    sent_by_itself(killed, "wandb")
    assert killed.shown_state() == "crashed"
    assert in_wandb(server, killed) == in_file(killed)


def test_without_a_login_a_run_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key anywhere: one warning, in words."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    watcher = Watcher()
    result = run(tracked_config("wandb"), tmp_path, watcher)
    (warning,) = watcher.warnings
    assert "login" in warning and f"gymnast sync {result.run.typed}" in warning
    assert result.run.status().state == "finished"


def test_offline_mode_writes_the_clients_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WANDB_MODE=offline: the file that `wandb sync` reads has every value."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    result = run(tracked_config("wandb"), tmp_path)
    sent_by_itself(result.run, "wandb")
    (path,) = result.run.folder.glob("trackers/wandb/offline-run-*/*.wandb")
    rows = [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in _records(path)
        if record.WhichOneof("record_type") == "history"
    ]
    assert _by_name(rows) == in_file(result.run)


def _records(path: Path) -> Iterator[Any]:
    """LevelDB blocks of 32 KiB after a header of 7 bytes; a chunk has checksum, length and type (1 whole, 4 the last piece)."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (at % 32768) > 32768 - 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            record = Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def test_no_secret_reaches_a_tracker(server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a value of the environment nor the key of the tracker, in any byte that is sent or kept."""
    canary = "canary-5f2d9c1b7e"
    monkeypatch.setenv("SOME_API_TOKEN", canary)
    kwargs = {"sutton_barto_reward": "$SOME_API_TOKEN"}  # any argument will do: its value is read when the env is made
    env = {**CARTPOLE, "vectorization": "inprocess", "kwargs": kwargs}
    resolved = tracked_config("wandb", "tensorboard", env=env)
    result = run(resolved, tmp_path)
    for name in ("wandb", "tensorboard"):
        sent_by_itself(result.run, name)
    kept = b"".join(path.read_bytes() for path in result.run.folder.rglob("*") if path.is_file())
    sent = b"".join(server.bodies)
    assert len(sent) > 1000
    for secret in (canary, KEY):
        assert secret.encode() not in kept and secret.encode() not in sent


def test_videos_go_out_once_at_their_step(server: FakeWandb, tmp_path: Path) -> None:
    """Those whose JSON names a step; a newer one of the same name is another one."""
    resolved = tracked_config()
    log = resolved.config.log.model_copy(update={"capture_video": True})
    resolved = Resolved(resolved.config.model_copy(update={"log": log}))
    made = run(resolved, tmp_path).run
    trackers = ("wandb", "tensorboard", "trackio")
    for step, records in ((2 * PER_ITERATION, 7), (4 * PER_ITERATION, 1)):  # six rows come with the first
        frames = [np.full((48, 64, 3), shade, np.uint8) for shade in range(0, 240, 20)]
        encode(made.videos / "best.mp4", frames, 10)
        (made.videos / "best.json").write_text(json.dumps({"env_steps": step}))
        assert synced(made, *trackers).count(f"got {records} records") == 3
    assert synced(made, "wandb", "tensorboard").count("had everything already") == 2
    media = [row for _, row in sorted(server.runs[made.id]["history"].items()) if "video/best" in row]
    assert [row["vec_steps"] for row in media] == [2 * PER_ITERATION // N_ENVS, 4 * PER_ITERATION // N_ENVS]
    assert {row["video/best"]["_type"] for row in media} == {"video-file"}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(made.folder / "tensorboard"), {"images": 0})
    events.Reload()
    images = events.Images("video/best")
    assert [image.step for image in images] == [row["vec_steps"] for row in media]
    assert images[0].encoded_image_string[:3] == b"GIF" and images[0].width * 48 == images[0].height * 64


def test_the_films_of_a_runs_end_go_out_once(
    server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Best and last, each at the step of its weights, in all three trackers; a sync afterwards finds nothing to send."""
    monkeypatch.setattr("gymnast.training.showing.ending.allowance", lambda ran: 20.0)
    names = ["wandb", "tensorboard", "trackio"]
    log = {"sinks": names, "capture_video": True, "rollouts": False}
    # The first weights are the best: later ones learn at a rate that ruins them.
    resolved = small("ppo", CARTPOLE, log=log, algo={"learning_rate": 10.0}, train={"seed": 1})
    made = run(resolved, tmp_path).run
    for name in names:
        sent_by_itself(made, name)
    steps = {
        path.stem: json.loads(path.read_text())["env_steps"] // N_ENVS for path in sorted(made.videos.glob("*.json"))
    }
    assert sorted(steps) == ["best", "last"] and steps["best"] < steps["last"]
    synced(made, *names)
    media = [row for _, row in sorted(server.runs[made.id]["history"].items()) if any("video/" in name for name in row)]
    found = {
        name.removeprefix("video/"): row["vec_steps"] for row in media for name in row if name.startswith("video/")
    }
    assert found == steps and len(media) == 2
    uploaded = [file for file in server.runs[made.id]["files"] if file.endswith(".mp4")]
    assert len(uploaded) == len(set(uploaded)) == 2
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(made.folder / "tensorboard"), {"images": 0})
    events.Reload()
    assert {tag: [image.step for image in events.Images(tag)] for tag in events.Tags()["images"]} == {
        f"video/{label}": [step] for label, step in steps.items()
    }
    for label, step in steps.items():
        ours = [row for row in _rows_of_trackio(made) if f"video/{label}" in row]
        assert [row["vec_steps"] for row in ours] == [step]


def test_histograms_go_with_their_rows(server: FakeWandb, tmp_path: Path) -> None:
    """Also those of two attempts that come to the same step."""
    made = run(tracked_config(), tmp_path).run
    spool = tracked.Spool(made.folder, attempt=1)
    spool.add(PER_ITERATION, {"diag/actions": Histogram([3, 5], [0, 1, 2])})
    spool.add(99, {"diag/actions": Histogram([9, 9], [0, 1, 2])})  # its row was never written
    spool.add(3 * PER_ITERATION, {"diag/actions": Histogram([2, 6], [0, 1, 2])})
    synced(made, "wandb", "tensorboard")
    rows = [row for _, row in sorted(server.runs[made.id]["history"].items()) if "diag/actions" in row]
    assert [(row["vec_steps"] * N_ENVS, row["diag/actions"]["values"]) for row in rows] == [
        (PER_ITERATION, [3, 5]),
        (3 * PER_ITERATION, [2, 6]),
    ]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(made.folder / "tensorboard"), {"histograms": 0})
    events.Reload()
    first = events.Histograms("diag/actions")[0].histogram_value
    assert first.num == 8 and list(first.bucket) == [0, 3, 5] and list(first.bucket_limit) == [0, 1, 2]


def test_the_spool_is_bounded(tmp_path: Path) -> None:
    """What does not fit is refused, and what fits is whole."""
    spool = tracked.Spool(tmp_path, attempt=1, limit=300)
    taken = [spool.add(step, {"x": Histogram([1], [0, 1])}) for step in range(10)]
    assert True in taken and not taken[-1]
    lines = (tmp_path / tracked.FOLDER / tracked.HISTOGRAMS).read_text().splitlines()
    assert [json.loads(line)["env_steps"] for line in lines] == list(range(sum(taken)))


def test_tensorboard_knows_the_settings(tmp_path: Path) -> None:
    """Its page of hyperparameters: the values of the config, and how the run ended."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    result = run(tracked_config("tensorboard"), tmp_path)
    sent_by_itself(result.run, "tensorboard")
    events = EventAccumulator(str(result.run.folder / "tensorboard"))
    events.Reload()
    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert settings["algo.n_steps"].number_value == 16 and settings["env.id"].string_value == "CartPole-v1"
    ended = events.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content
    assert metadata.parse_session_end_info_plugin_data(ended).status == 1  # success


def test_a_missing_package_is_named_before_anything_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setattr(tracked.WandbSink, "module", "no_such_package")
    with pytest.raises(MissingPackageError, match=r'pip install "gymnast\[wandb\]"'):
        run(tracked_config("wandb"), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_workspace_has_the_catalogues_charts(tmp_path: Path) -> None:
    """Grouped, on vec_steps, with limits of the catalogue and of the env."""
    made = run(tracked_config(spec={"return_range": [0, 500], "actions": ["left", "right"]}), tmp_path).run
    made_up = workspace(made.config(), "me", "CartPole-v1")
    plots = {plot.title: plot for section in made_up.sections for plot in section.panels if hasattr(plot, "range_y")}
    assert tuple(plots["rollout/return_mean"].range_y) == (0, 500)
    assert plots["train/entropy"].range_y[1] == pytest.approx(np.log(2))
    assert str(plots["train/loss"].x).endswith("vec_steps") or "vec_steps" in str(plots["train/loss"].x)
    assert made_up._to_model() is not None


def test_a_tracker_that_breaks_is_left_alone_for_a_while(tmp_path: Path) -> None:
    """No tight loop of attempts: here a file lies where the folder of event files must be."""
    made = run(tracked_config(), tmp_path).run
    (made.folder / "tensorboard").write_text("in the way")
    sending = Sending(made, "tensorboard")
    with pytest.raises(TrackerError):
        sending.advance()
    (made.folder / "tensorboard").unlink()
    assert sending.advance() == 0
    sending.finish()  # the last try does not wait
    assert sending.sent == len(in_file(made)["env_steps"])

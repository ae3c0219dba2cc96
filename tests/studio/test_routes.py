"""What the routes answer, compared with the store read by other means."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launch import COMMAND, environment
from made_runs import finished_run
from studio_process import Studio, python
from websockets.sync.client import connect

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs.store import Run


def rows(run: Run) -> list[dict[str, Any]]:
    return list(MetricRows(run.metrics_path))


def newest(studio: Studio) -> Run:
    return Run(studio.root / studio.get("/api/runs")["runs"][0]["id"])


def test_the_server_imports_neither_torch_nor_gymnasium() -> None:
    code = (
        "import sys; from pathlib import Path; from gymnast.studio.app import make_app; make_app(Path('runs'), hosts=[]);"
        "import gymnast.studio.serve; print([name for name in ('torch', 'gymnasium', 'matplotlib') if name in sys.modules])"
    )
    assert python("-c", code).strip() == "[]"


def test_curves_are_the_rows_of_the_file(studio: Studio) -> None:
    run = newest(studio)
    found = studio.get(f"/api/curves?run={run.id}&metric=train/entropy&axis=env_steps&points=0")
    written = [(row["env_steps"], row["train/entropy"]) for row in rows(run) if row.get("train/entropy") is not None]
    assert list(zip(found[0]["x"], found[0]["y"])) == written and len(written) > 3


def test_names_of_other_libraries_are_known(studio: Studio) -> None:
    run = newest(studio)
    ours = studio.get(f"/api/curves?run={run.id}&metric=train/entropy")[0]["y"]
    theirs = studio.get(f"/api/curves?run={run.id}&metric=train/entropy_loss")[0]["y"]
    assert theirs == [-value for value in ours]


def test_a_glimpse_ends_where_the_curve_ends(studio: Studio) -> None:
    run = newest(studio)
    glimpse = studio.get(f"/api/glimpses?run={run.id}&run=zzzzz")
    returns = [row["rollout/return_mean"] for row in rows(run) if row.get("rollout/return_mean") is not None]
    assert glimpse[run.id]["curve"][-1] == returns[-1] and glimpse["zzzzz"] is None


def test_a_wrong_setting_is_said_with_its_key(studio: Studio) -> None:
    status, found, _ = studio.request("/api/config", {"reference": "CartPole-v1:ppo", "overrides": ["algo.gama=1"]})
    assert status == 400 and "Did you mean 'algo.gamma'?" in found["error"]
    status, found, _ = studio.request("/api/config", {"reference": "CartPole-v1:ppo", "overrides": ["algo.gamma=0.5"]})
    values = {one["key"]: one["value"] for one in found["settings"]}
    assert status == 200 and values["algo.gamma"] == 0.5


@pytest.mark.parametrize(
    "body",
    [
        {}, {"reference": 3}, {"reference": "CartPole-v1:ppo", "overrides": "algo.gamma=1"},
        {"reference": "CartPole-v1:ppo", "overrides": ["--trust"]}, {"reference": "--help"}, {"reference": "NoSuch-v0:ppo"},
    ],
)  # fmt: skip
def test_nothing_is_started_by_a_wrong_request(studio: Studio, body: dict[str, Any]) -> None:
    before = sorted(path.name for path in studio.root.iterdir())
    status, found, _ = studio.request("/api/train", body)
    assert status == 400 and found["error"], found
    assert sorted(path.name for path in studio.root.iterdir()) == before


def test_a_run_is_started_seen_live_stopped_and_resumed(studio: Studio) -> None:
    """By requests alone; the news come over the socket, and the run goes on where it stopped."""
    with connect(studio.address.replace("http", "ws") + "/live", origin=studio.address) as socket:
        socket.send(json.dumps({"runs": True}))
        socket.recv(timeout=20)
        overrides = ["policy.hidden=[8]", "train.env_steps=3000000", "train.stop_when_solved=false"]
        status, found, _ = studio.request("/api/train", {"reference": "CartPole-v1:ppo", "overrides": overrides})
        assert status == 200, found
        run = Run(studio.root / found["run"])
        socket.send(json.dumps({"curves": {"runs": [run.id], "metrics": ["rollout/return_mean"]}}))
        points, states = 0, set()
        while points < 5 or "running" not in states:
            news = json.loads(socket.recv(timeout=60))
            states |= {row["status"] for row in news.get("runs", {}).get("changed", []) if row["id"] == run.id}
            points += sum(len(one["x"]) for one in news.get("curves", []))
    assert studio.request(f"/api/runs/{run.id}/stop", {})[0] == 200
    stopped = run.status()
    assert stopped.state == "interrupted" and stopped.env_steps > 0
    further = stopped.env_steps + 20_000
    status, found, _ = studio.request(f"/api/runs/{run.id}/resume", {"env_steps": further})
    assert status == 200 and found["run"] == run.id, found
    deadline = time.monotonic() + 60
    while run.shown_state() == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run.status().state == "finished" and run.status().env_steps >= further


def test_a_stretch_of_a_curve_is_told_once(studio: Studio) -> None:
    """By the socket that follows the curve; a stretch of no curve, or no stretch, is passed over."""
    run = newest(studio)
    whole = studio.get(f"/api/curves?run={run.id}&metric=train/entropy&axis=env_steps&points=0")[0]
    low, high = whole["x"][1], whole["x"][3]
    with connect(studio.address.replace("http", "ws") + "/live", origin=studio.address) as socket:
        for wrong in ([low, high], None, [low], ["a", "b"], [low, None], {"low": 1}, [True, False]):
            socket.send(json.dumps({"window": wrong}))
        wanted = {"runs": [run.id], "metrics": ["train/entropy"], "axis": "env_steps"}
        socket.send(json.dumps({"window": [low, high], "curves": wanted}))
        found: dict[str, Any] = {}
        while not {"curves", "window"} <= found.keys():
            found |= json.loads(socket.recv(timeout=20))
    (series,) = found["window"]["series"]
    assert (found["window"]["low"], found["window"]["high"]) == (low, high)
    assert series["x"] == whole["x"][:5] and series["y"] == whole["y"][:5]


def test_tags_and_notes_are_written(studio: Studio) -> None:
    run = newest(studio)
    assert studio.request(f"/api/runs/{run.id}/tags", {"add": ["keep"]})[1] == {"tags": ["keep"]}
    assert studio.request(f"/api/runs/{run.id}/note", {"note": "good"})[0] == 200
    assert run.tags() == ["keep"] and (run.folder / "note.txt").read_text() == "good\n"
    status, found, _ = studio.request(f"/api/runs/{run.id}/tags", {"add": ["two words"]})
    assert status == 400 and "cannot be a tag" in found["error"]


def test_a_thousand_runs(studios: Callable[..., Studio], tmp_path: Path) -> None:
    """Every one is listed, and the process stays small."""
    template = finished_run(tmp_path / "runs", 9.0)
    letters = "abcdefghjk"
    for number in range(999):
        name = "z" + "".join(letters[int(digit)] for digit in f"{number:04d}")
        folder = template.root / name
        folder.mkdir()
        for path in (template.config_path, template.status_path, template.metrics_path):
            (folder / path.name).write_bytes(path.read_bytes())
    one = studios(tmp_path / "runs")
    assert len(one.get("/api/runs")["runs"]) == 1000
    some = [row["id"] for row in one.get("/api/runs")["runs"][:60]]
    assert len(one.get("/api/glimpses?" + "&".join(f"run={name}" for name in some))) == 60
    status = Path(f"/proc/{one.process.pid}/status")
    if status.exists():
        memory = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        assert memory < 120_000


def test_it_ends_with_one_sentence(studios: Callable[..., Studio], tmp_path: Path) -> None:
    finished_run(tmp_path / "runs", 9.0)
    one = studios(tmp_path / "runs")
    one.get("/api/runs")
    assert one.end().splitlines()[-1] == "The studio is closed. Trainings that it started go on."
    assert one.process.returncode in (0, 130)


def test_a_taken_port_is_a_sentence(studio: Studio, tmp_path: Path) -> None:
    port = studio.address.rpartition(":")[2]
    done = subprocess.run(  # noqa: PLW1510
        [COMMAND, "studio", "--no-browser", "--port", port],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "Name another one with --port" in done.stderr

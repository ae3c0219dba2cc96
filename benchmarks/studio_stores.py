"""The same runs for the studio, TensorBoard and Trackio: a few short ones, and one with 100,000 rows; and a store of 1,000."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.runs.store import Run

METRICS = ("rollout/return_mean", "train/loss", "train/entropy")
PROJECT = "bench"
ENVS = 32
LETTERS = "abcdefghjk"
Rows = list[dict[str, float]]


def rows(count: int, seed: int) -> Rows:
    """A return that wanders, and two noisy curves."""
    chance, value, made = random.Random(seed), 0.0, []
    for vec_step in range(1, count + 1):
        value = 0.999 * value + chance.gauss(0.0, 1.0)
        numbers = (100.0 + value, abs(chance.gauss(1.0, 0.3)), chance.random())
        steps = {"env_steps": ENVS * vec_step, "vec_steps": vec_step, "time/seconds": 0.01 * vec_step}
        made.append({**steps, **dict(zip(METRICS, numbers))})
    return made


def make_stores(folder: Path, *, long: int, short: int) -> dict[str, Path]:
    """One store per tool with the same numbers; the ids of our runs are in `ids.json`."""
    stores = {tool: folder / tool for tool in ("gymnast", "tensorboard", "trackio")}
    ids = []
    for number, count in enumerate([long, *[50] * short]):
        made = rows(count, seed=number)
        run = _ours(stores["gymnast"], number, made)
        ids.append(run.id)
        _as_events(stores["tensorboard"] / run.id, made)
        _as_trackio(stores["trackio"], run.id, made)
    (folder / "ids.json").write_text(json.dumps(ids))
    return stores


def _ours(root: Path, seed: int, made: Rows) -> Run:
    run = started_run(root, seed)
    with JsonlSink(run.metrics_path, list(made[0])) as sink:
        for row in made:
            sink.write(row)
    run.finish("finished", "budget spent", env_steps=int(made[-1]["env_steps"]), wall_seconds=1.0)
    return run


def started_run(root: Path, seed: int) -> Run:
    """A run of this process, which counts as running as long as it lives."""
    data = {"name": "CartPole-v1:ppo", "env": {"id": "CartPole-v1"}, "algo": {"id": "ppo"}, "train": {"seed": seed}}
    return Run.create(root, data)


def _as_events(folder: Path, made: Rows) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for row in made:
        values = [Summary.Value(tag=name, simple_value=row[name]) for name in METRICS]
        step, wall = int(row["env_steps"]), time.time()
        writer.add_event(Event(wall_time=wall, step=step, summary=Summary(value=values)))
    writer.close()


def _as_trackio(folder: Path, run: str, made: Rows) -> None:
    """In a process of its own: Trackio reads where to write when it is imported."""
    code = (
        "import json, sys\nfrom trackio.sqlite_storage import SQLiteStorage\n"
        "name, metrics, steps = json.load(sys.stdin)\nSQLiteStorage.bulk_log('" + PROJECT + "', name, metrics, steps)\n"
    )
    metrics = [{name: row[name] for name in METRICS} for row in made]
    given = json.dumps([run, metrics, [int(row["env_steps"]) for row in made]])
    env = {**os.environ, "TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code], input=given, text=True, env=env, check=True, stdout=subprocess.DEVNULL)


def make_many(root: Path, count: int) -> None:
    """So many finished runs with 50 rows each."""
    template = _ours(root, 0, rows(50, seed=0))
    for name in _names(count - 1):
        folder = root / name
        folder.mkdir()
        for path in (template.config_path, template.status_path, template.metrics_path):
            shutil.copy(path, folder / path.name)


def _names(count: int) -> Iterator[str]:
    for number in range(count):
        yield "z" + "".join(LETTERS[int(digit)] for digit in f"{number:04d}")

"""All that a report says, read from the run's folder in one pass over its metrics."""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gymnast.config.compare import compare
from gymnast.config.leaves import text_of
from gymnast.config.load import Resolved, resolve
from gymnast.errors import GymnastError
from gymnast.metrics.catalogue import RETURN_BY, load_catalogue
from gymnast.metrics.charts.chart import Chart, Line
from gymnast.metrics.charts.thinning import thinned
from gymnast.metrics.diagnosis.diagnosis import Diagnosis, diagnose
from gymnast.metrics.diagnosis.experiment import OF_THE_MACHINE, command
from gymnast.metrics.verdict import threshold_of
from gymnast.runs import lineage, stages
from gymnast.runs.compare import rows_of
from gymnast.runs.lineage import ancestors_of
from gymnast.runs.reading import read_json
from gymnast.runs.status import Status
from gymnast.runs.store import Run
from gymnast.runs.trust import usable

RETURNS = ("rollout/return_mean", "eval/return_mean", "eval/exact_return")
CURVES = (
    "rollout/length_mean", "train/entropy", "train/action_std", "train/approx_kl", "train/clip_fraction",
    "train/explained_variance", "train/value_loss", "train/grad_norm", "train/learning_rate", "time/fps_now",
)  # fmt: skip
"""What a report draws besides the returns, as far as the run logged it."""
SCORE = ("eval/return_mean", "eval/return_std", "eval/episodes", "eval/exact_return")
POINTS = 300
NORMAL = 1.96
"""Standard errors on both sides of a mean that hold it 95 times in 100."""
MOST_VIDEO_BYTES = 12_000_000
"""A larger video is linked to instead of being put into the page."""


@dataclass(frozen=True)
class Scored:
    """One evaluation, with how sure its mean is."""

    label: str
    env_steps: int
    vec_steps: int
    mean: float
    std: float
    episodes: int
    exact: float | None
    """The exact expected return, where the env has one."""

    @property
    def score(self) -> float:
        """What counts."""
        if self.exact is None:
            return self.mean
        return self.exact

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean; none after one episode, and none is needed for an exact value."""
        if self.exact is not None or self.episodes < 2:
            return None
        half = NORMAL * self.std / math.sqrt(self.episodes)
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Film:
    """The video of an episode."""

    name: str
    label: str
    about: dict[str, Any]
    data: str | None
    """The file as base64; None if it is too large."""


@dataclass(frozen=True)
class Report:
    """One run."""

    run: str
    name: str
    """Its config."""
    config: dict[str, Any]
    status: Status
    state: str
    threshold: float | None
    scored: tuple[Scored, ...]
    """The best and the last evaluation; one where they are the same."""
    by_parameter: tuple[tuple[str, float | None], ...]
    """Mean returns of the last evaluation by what was drawn for its episodes."""
    stages: tuple[tuple[str, ...], ...]
    """Of a plan by stage: scores on all stages at the end of each, with a head; empty without one."""
    diagnosis: Diagnosis
    charts: tuple[Chart, ...]
    settings: tuple[tuple[str, str, str], ...]
    """Keys that are not as in the preset: key, there, here."""
    settings_note: str
    """Why there are none, if that is not because nothing differs."""
    time_split: tuple[tuple[str, float], ...]
    films: tuple[Film, ...]
    command: str
    """What repeats the run."""
    ancestors: tuple[str, ...]
    """Where its first weights came from, and theirs: the nearest first."""


def gather(run: Run) -> Report:
    """Read everything."""
    config, status = run.config(), run.status()
    columns = _Columns()
    saved = None
    with contextlib.suppress(GymnastError):  # of another version, or not trusted: read as data alone
        saved = usable(run, playing=False)
    diagnosis = diagnose(
        run.id,
        config,
        columns.listening(rows_of(run) or ()),
        best=status.best_return,
        saved=saved,
        reference=run.reference,
    )
    settings, note = _settings(str(config.get("name") or ""), saved)
    threshold = threshold_of(config)
    return Report(
        run=run.id,
        name=str(config.get("name") or ""),
        config=config,
        status=status,
        state=run.shown_state(),
        threshold=threshold,
        scored=_scored(columns, status),
        by_parameter=_by_parameter(columns),
        stages=tuple(tuple(row) for row in stages.table(stages.read(run.folder))),
        diagnosis=diagnosis,
        charts=_charts(columns, threshold),
        settings=settings,
        settings_note=note,
        time_split=_time_split(columns.last),
        films=_films(run),
        command=command(run.reference, config, {}, saved),
        ancestors=tuple(ancestors_of(lineage.read(run.folder))),
    )


class _Columns:
    """The numbers that curves and scores need, taken from rows as they are read for something else."""

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[float, float]]] = {}
        self.evaluations: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}

    def listening(self, rows: Any) -> Iterator[dict[str, Any]]:
        """The same rows."""
        for row in rows:
            at = row.get("vec_steps")
            if isinstance(at, (int, float)):
                for name in (*RETURNS, *CURVES):
                    value = row.get(name)
                    if isinstance(value, (int, float)) and math.isfinite(value):
                        self.values.setdefault(name, []).append((at, value))
            if isinstance(row.get("eval/return_mean"), (int, float)):
                self.evaluations.append(row)
            self.last = row
            yield row

    def line(self, name: str, label: str, colour: int) -> Line | None:
        """The curve of a metric; None if it has no value."""
        points = self.values.get(name)
        if not points:
            return None
        x, y = np.array(points, np.float64).T
        kept = thinned(x, y, POINTS)
        return Line(label, x[kept], y[kept], colour=colour)


def _charts(columns: _Columns, threshold: float | None) -> tuple[Chart, ...]:
    """The returns together, then one chart per metric, in the catalogue's order."""
    catalogue = load_catalogue()
    names = {
        "rollout/return_mean": "training",
        "eval/return_mean": "evaluation",
        "eval/exact_return": "exact expectation",
    }
    returns = [columns.line(name, label, colour) for colour, (name, label) in enumerate(names.items())]
    lines = tuple(line for line in returns if line is not None)
    charts = []
    if lines:
        label = "" if threshold is None else f"solved at {threshold:g}"
        charts.append(Chart("return", "vec steps", "reward", lines, threshold, label))
    for name in catalogue.order(name for name in CURVES if name in columns.values):
        line = columns.line(name, name, 0)
        metric = catalogue.get(name)
        if line is not None and len(line.x) > 1:
            unit = metric.unit if metric is not None and metric.unit else "value"
            charts.append(Chart(name, "vec steps", unit, (line,), note=metric.meaning if metric is not None else ""))
    return tuple(charts)


def _scored(columns: _Columns, status: Status) -> tuple[Scored, ...]:
    rows = columns.evaluations
    if not rows:
        return ()
    best = next((row for row in rows if row.get("env_steps") == status.best_at), None)
    last = rows[-1]
    if best is None or best is last:
        return (_score("best and last", last),)
    return _score("best", best), _score("last", last)


def _by_parameter(columns: _Columns) -> tuple[tuple[str, float | None], ...]:
    if not columns.evaluations:
        return ()
    named = [(name, value) for name, value in columns.evaluations[-1].items() if name.startswith(RETURN_BY)]
    return tuple((name.removeprefix(RETURN_BY).replace("_to_", " … "), value) for name, value in named)


def _score(label: str, row: dict[str, Any]) -> Scored:
    mean, std, episodes, exact = (row.get(name) for name in SCORE)
    return Scored(
        label=label,
        env_steps=int(row.get("env_steps") or 0),
        vec_steps=int(row.get("vec_steps") or 0),
        mean=float(mean or 0.0),
        std=float(std or 0.0),
        episodes=int(episodes or 0),
        exact=None if exact is None else float(exact),
    )


def _settings(name: str, saved: Resolved | None) -> tuple[tuple[tuple[str, str, str], ...], str]:
    if saved is None:
        return (), "The run is of another version, or names code that is not trusted: its settings are in config.json."
    try:
        preset = resolve(name)
    except GymnastError:
        return (), f"There is no preset '{name}' here to compare with: the settings are in config.json."
    found = []
    for one in compare(preset, saved):
        if one.key not in OF_THE_MACHINE or one.key == "train.seed":
            found.append((one.key, text_of(one.old), text_of(one.new)))
    return tuple(found), ""


def _time_split(row: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    parts = ("env", "policy", "learn", "eval", "checkpoint", "video", "other")
    shares = [(part, row.get(f"time/{part}")) for part in parts]
    return tuple((part, float(share)) for part, share in shares if isinstance(share, (int, float)) and share >= 0.0005)


def _films(run: Run) -> tuple[Film, ...]:
    """The best and the last episode, where they were filmed."""
    found = []
    for label in ("best", "last"):
        path = run.videos / f"{label}.mp4"
        try:
            if path.is_symlink() or not path.is_file():  # a run from elsewhere could name any file of this machine
                continue
            about = read_json(path.with_suffix(".json"))
            small = path.stat().st_size <= MOST_VIDEO_BYTES
            data = base64.b64encode(path.read_bytes()).decode() if small else None
        except (OSError, ValueError):
            continue
        found.append(Film(path.name, label, about if isinstance(about, dict) else {}, data))
    return tuple(found)


def paths_of(run: Run) -> tuple[Path, Path]:
    """The two files of a report."""
    return run.folder / "report.md", run.folder / "report.html"

"""Everything a run says of itself in numbers: rows, their history, every sink that gets them, and its heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.config.schema import RunConfig
from gymnast.errors import GymnastError
from gymnast.metrics.alerts.watch import Watch
from gymnast.metrics.drawing import Mark
from gymnast.metrics.histogram import Histogram
from gymnast.metrics.history import History
from gymnast.metrics.sinks.base import Sink
from gymnast.metrics.sinks.jsonl import NOT_METRICS, JsonlSink, MetricRows
from gymnast.metrics.sinks.tracked import MAX_SPOOL_BYTES, Spool
from gymnast.runs import index
from gymnast.runs.store import Run
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.rows import RowMaker
from gymnast.training.trainer import Row

if TYPE_CHECKING:
    from gymnast.training.diagnostics.profile import Profile

HEARTBEAT_SECONDS = 2.0
REPLAYED_ROWS = 5000
"""Of earlier attempts: what the live table and the alerts of a resumed run begin with."""


class RunLog:
    """The run's own metrics file, which training cannot do without, and sinks, which it can."""

    def __init__(
        self,
        run: Run,
        rows: RowMaker,
        file: JsonlSink,
        sinks: Sequence[Sink],
        watch: Watch,
        warn: Callable[[str], None],
        last: Row | None = None,
        profile: Profile | None = None,
    ) -> None:
        """`last` is the row of the boundary a resumed run goes on from. `profile` follows where the time goes."""
        self.run = run
        self.history = History()
        self.watch = watch
        """The alerts of this run."""
        self.marks: dict[str, Mark] = {}
        """What the alerts that hold now say of single metrics, for the live table."""
        self._said: set[str] = set()
        self.last: Row = dict(last or {})
        """The row of the last boundary."""
        self._rows, self._file, self._sinks, self._warn = rows, file, list(sinks), warn
        self._profile = profile
        self._spool: Spool | None = None
        if any(sink.reads_folder for sink in self._sinks):
            self._spool = Spool(run.folder, file.attempt)
        if self.last:
            for row in MetricRows(run.metrics_path).thinned(REPLAYED_ROWS):
                known = {name: value for name, value in row.items() if name not in NOT_METRICS}
                self.history.append(known)
                self.watch.observe(known)
            self._said = {alert.id for alert in self.watch.alerts}
        self._next_beat = 0.0
        self._beats = True

    # ---- rows ------------------------------------------------------------------------------------------------------

    def iteration(self) -> AbstractContextManager[None]:
        """Around an iteration that begins at the boundary of the last row, for the profile."""
        if self._profile is None:
            return nullcontext()
        self._profile.boundary(self.last)
        return self._profile.iteration()

    def no_more_iterations(self) -> None:
        """What follows is the end of the run."""
        if self._profile is not None:
            self._profile.boundary(self.last, last=True)

    def completed(self, measured: Row, *, solved: bool) -> Row:
        """A row of what the trainer measured, with counters, progress and time."""
        return self._rows(measured, self.last, solved=solved)

    def write(self, row: Row, late: Row | None = None) -> None:
        """The row of the boundary the run is at. `late` became known here of earlier rows, and was written there."""
        self._to_file(lambda: self._file.write(row))
        if self._sinks:
            whole = {name: row.get(name) for name in self._file.keys}
            self._tell(lambda sink: sink.write(whole))
        self.history.append({**(late or {}), **row})
        self._look_for_alerts({**(late or {}), **row})
        self.last = row

    def amend(self, step: int, metrics: Row) -> None:
        """What has become known of the row of an earlier step."""
        self._to_file(lambda: self._file.amend(step, metrics))
        self._tell(lambda sink: sink.amend(step, metrics))

    def conclude(self, metrics: Row) -> None:
        """What the end of the run adds to its last row: in the file alone, where its report looks it up."""
        self._to_file(lambda: self._file.amend(int(self.last["env_steps"] or 0), metrics))

    @property
    def wants_histograms(self) -> bool:
        """Whether anybody would look at them."""
        return any(sink.wants_histograms for sink in self._sinks)

    def histograms(self, step: int, found: Mapping[str, Histogram]) -> None:
        """How values were spread in the iteration whose row comes next."""
        self._tell(lambda sink: sink.histograms(step, found))
        if self._spool is None:
            return
        try:
            kept, why = self._spool.add(step, found), f"they fill {MAX_SPOOL_BYTES >> 20} MiB"
        except OSError as error:
            kept, why = False, error.strerror or str(error)
        if not kept:
            self._spool = None
            self._warn(
                f"No more histograms are saved for trackers ({why}). A larger log.diagnostics_every makes fewer."
            )

    def video(self, step: int, path: Path) -> None:
        """A video of the weights of an env step, whole and with its JSON."""
        self._tell(lambda sink: sink.video(step, path))

    def _look_for_alerts(self, row: Row) -> None:
        """Mark the metrics that alerts are about, and say each new alert once."""
        self.marks = {}
        for alert in self.watch.observe(row):
            for metric in alert.metrics:
                self.marks.setdefault(metric, Mark(alert.severity, alert.message))
            if alert.id not in self._said and alert.severity != "info":
                self._said.add(alert.id)
                advice = f" Try: {alert.advice[0]}" if alert.advice else ""
                self._warn(
                    f"alert {alert.id}: {alert.message}{advice} Look at the update: {alert.rewind(self.run.reference)}"
                )

    @property
    def fault(self) -> str | None:
        """Why a run under `alerts.strict` ends: its first alert that is more than information."""
        found = [alert for alert in self.watch.alerts if alert.severity != "info"]
        if found:
            return f"alert {found[0].id}: {found[0].message}".rstrip(".")
        return None

    def _to_file(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            run = self.run
            raise GymnastError(
                f"The metrics of run {run.id} cannot be written ('{run.metrics_path}'): "
                f"{error.strerror or error}. Free some space, then resume with: gymnast resume {run.typed}"
            ) from error

    def _tell(self, say: Callable[[Sink], None]) -> None:
        """Call every sink; one that fails gets nothing more, and the training goes on."""
        for sink in list(self._sinks):
            try:
                say(sink)
            except Exception as error:
                self._sinks.remove(sink)
                what = " ".join(f"{type(error).__name__}: {error}".split())
                self._warn(f"The sink {type(sink).__name__} failed and gets no more rows ({what}).")

    def close(self) -> None:
        """Close the sinks and write the profile; the file of rows belongs to whoever opened it."""
        self._tell(lambda sink: sink.close())
        if self._profile is not None:
            self._profile.close(self.run)

    # ---- the heartbeat ---------------------------------------------------------------------------------------------

    def beat_is_due(self) -> bool:
        """Whether the last heartbeat is some time ago."""
        return time.perf_counter() > self._next_beat

    def beat(self, status: dict[str, Any]) -> None:
        """Write the status; a full disk must not end a training over it."""
        self._next_beat = time.perf_counter() + HEARTBEAT_SECONDS
        try:
            self.run.update(**status)
            self._beats = True
        except GymnastError as error:
            if self._beats:
                self._warn(str(error))
            self._beats = False

    def end(self, state: str, reason: str, status: dict[str, Any]) -> None:
        """The last status of this attempt, in the run's folder and in the index."""
        self.run.finish(state, reason, **status)
        index.upsert(self.run)


def open_sinks(kinds: Sequence[type[Sink]], run: Run, config: RunConfig, reporter: Reporter) -> list[Sink]:
    """The sinks of a run that begins; one that cannot be made is warned of, and the training does without it."""
    made: list[Sink] = []
    reference = run.typed
    for kind in kinds:
        try:
            sink = kind(run.folder, config)
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            reporter.warn(f"The sink {kind.__name__} cannot be opened and gets no rows ({what}).")
            continue
        sink.say, sink.warn, sink.reference = reporter.say, reporter.warn, reference
        made.append(sink)
    return made

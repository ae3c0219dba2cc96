"""`--profile`: where the time of a run goes, as a table of stages and a trace for Perfetto, written into the run's folder.

Nothing here touches a random stream or a result, and nothing that fails here ends a training.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gymnast.later import Later
from gymnast.runs.files import write_atomic
from gymnast.runs.process import cpu_name, installed_version, process_start
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.diagnostics.operators import Operators
from gymnast.training.diagnostics.trace_events import COUNTERS, Report, Section, TraceEvents, trace_file

if TYPE_CHECKING:
    import torch
    from rich.table import Table

    from gymnast.training.keeping.report import Reporter
    from gymnast.training.trainer import Trainer
else:
    torch = Later("torch")

KEPT = 1000
"""So many of the first iterations, and so many of the last, are in the trace; the table knows them all."""
MOST_REPORTS = 500
"""Per iteration in the trace."""
SHORTEST = 1e-5
"""A shorter stay in a stage does not count: there was nothing to do."""
STAGES = ("env", "policy", "learn", "eval", "checkpoint", "video")
HOW_TO_OPEN = (
    "open it at https://ui.perfetto.dev (nothing is uploaded), or in a browser that still has chrome://tracing"
)
HEADER = ("stage", "seconds", "share", "calls", "mean ms", "µs per env step")


class StageRow(NamedTuple):
    """One line of the table."""

    name: str
    seconds: float
    share: float
    calls: int | None
    """None if it makes no sense."""
    per_step_us: float | None

    def cells(self) -> tuple[str, ...]:
        """As text, in the order of HEADER."""
        calls = "" if self.calls is None else f"{self.calls:,}"
        mean = ""
        if self.calls:
            mean = f"{1e3 * self.seconds / self.calls:,.3f}"
        per_step = "" if self.per_step_us is None else f"{self.per_step_us:,.2f}"
        return self.name, f"{self.seconds:,.3f}", f"{self.share:.1%}", calls, mean, per_step


class Profile:
    """Records every stage of a run through its timer, and writes the record when the run ends, however it ends."""

    def __init__(self, process_began: float | None = None) -> None:
        self.begin = time.perf_counter() if process_began is None else process_began
        self._since = "this training began" if process_began is None else "the process began"
        self._calls: Counter[str] = Counter()
        self._open = Section("start-up", self.begin)
        self._first: list[Section] = []
        self._last: deque[Section] = deque(maxlen=KEPT + 1)  # with what follows the last iteration
        self._iterations = 0
        self._gap: Section | None = None
        self._start_up = 0.0

    @classmethod
    def of_this_process(cls) -> Profile:
        """From the moment the process began, where the system tells it."""
        start = process_start(os.getpid()) or ""
        with suppress(AttributeError, OSError, ValueError):  # not Linux
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(start) / os.sysconf("SC_CLK_TCK")
            return cls(time.perf_counter() - max(0.0, age))
        return cls()

    def attach(self, trainer: Trainer, timer: StageTimer, reporter: Reporter) -> None:
        """Listen to a run that is about to start."""
        self._trainer, self._timer, self._reporter = trainer, timer, reporter
        self._steps_before = trainer.counters.env_steps
        self._operators = Operators(trainer.about.device.type, _unix_us(self.begin), timer, reporter.warn)
        timer.recorder = self._record

    def _record(self, stage: str, seconds: float) -> None:
        if seconds < SHORTEST:
            return
        self._calls[stage] += 1
        if len(self._open.reports) < MOST_REPORTS:
            thread = threading.current_thread().name
            self._open.reports.append(Report(stage, time.perf_counter(), seconds, thread))

    def boundary(self, row: Mapping[str, float | None], *, last: bool = False) -> None:
        """An iteration begins, or none any more; `row` holds the metrics of the one that ends here."""
        now = time.perf_counter()
        before = self._open
        if before.iteration is None:
            self._start_up = now - self.begin - sum(self._timer.seconds.values())
        else:
            values = {name: row.get(name) for name in COUNTERS}
            before.metrics = {
                name: value for name, value in values.items() if value is not None and math.isfinite(value)
            }
        self._keep(before, now)
        if last:
            self._open = Section("end", now)
        else:
            self._iterations += 1
            number = self._trainer.counters.iteration + 1
            self._open = Section(f"iteration {number}", now, number)

    def _keep(self, section: Section, end: float) -> None:
        section.end = end
        if len(self._first) <= KEPT:  # the first of them is start-up
            self._first.append(section)
            return
        if len(self._last) == self._last.maxlen:
            gone = self._last[0]
            self._gap = self._gap or Section("iterations left out", gone.begin)
            self._gap.end = gone.end
        self._last.append(section)

    def iteration(self) -> AbstractContextManager[None]:
        """Around collecting and learning of an iteration: records its operators when it is one of the few."""
        before = sum(report.seconds for report in self._first[-1].reports if report.stage in ("env", "policy", "learn"))
        number = self._open.iteration
        if number is None or not self._operators.due(self._iterations, before):
            return nullcontext()
        return self._operators.recording(number)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def close(self, run: Run) -> None:
        """Write table and trace and say where they are; a run that was discarded gets none."""
        self._timer.recorder = None
        if not run.folder.exists():
            return
        now = time.perf_counter()
        if self._open.iteration is not None:
            self._open.title += " (unfinished)"
        self._keep(self._open, now)
        try:
            rows = self._rows(now)
            folder = _free_folder(run.folder)
            facts = self._facts(run, now)
            write_atomic(folder / "stages.md", _markdown(run, rows, facts))
            write_atomic(folder / "trace.json", self._trace(run, facts))
        except Exception as error:
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self._reporter.warn(f"The profile of run {run.id} could not be written into '{run.folder}': {reason}.")
            return
        self._show(rows, folder)

    def _rows(self, now: float) -> list[StageRow]:
        wall = now - self.begin
        steps = max(1, self._steps())
        seconds = dict(self._timer.seconds)
        names = [name for name in STAGES if name in seconds] + sorted(seconds.keys() - set(STAGES))
        rest = max(0.0, wall - self._start_up - sum(seconds.values()))
        rows = [StageRow("start-up", self._start_up, self._start_up / wall, 1, None)]
        for name in names:
            calls = self._calls[name] or None
            rows.append(StageRow(name, seconds[name], seconds[name] / wall, calls, 1e6 * seconds[name] / steps))
        rows.append(StageRow("other", rest, rest / wall, None, 1e6 * rest / steps))
        rows.append(StageRow("total", wall, 1.0, None, 1e6 * wall / steps))
        return rows

    def _steps(self) -> int:
        return self._trainer.counters.env_steps - self._steps_before

    def _facts(self, run: Run, now: float) -> dict[str, str]:
        trainer, steps, wall = self._trainer, self._steps(), now - self.begin
        training = max(wall - self._start_up, 1e-9)
        device = str(trainer.about.device)
        if trainer.about.device.type == "cuda":
            device += f" ({torch.cuda.get_device_name(trainer.about.device)})"
        recorded, note = self._operators.iterations, self._operators.note
        operators = "none: the run was too short"
        if recorded:
            operators = f"of iterations {', '.join(map(str, recorded))}, which recording slows down"
        return {
            "config": f"{trainer.config.name}, seed {trainer.config.train.seed}",
            "envs": trainer.about.envs,
            "wall time": f"{wall:,.2f} s since {self._since}",
            "env steps": f"{steps:,} in {self._iterations:,} iterations",
            "steps/s": f"{steps / training:,.0f} ({steps / wall:,.0f} with start-up)",
            "device": device,
            "threads": f"{torch.get_num_threads()} of torch, {os.cpu_count()} cores ({cpu_name()})",
            "versions": f"torch {torch.__version__}, gymnast {installed_version('gymnast')}",
            "in the trace": self._coverage(),
            "operators": f"{operators}; {note}" if note else operators,
        }

    def _coverage(self) -> str:
        if self._gap is None:
            return "all iterations"
        return f"the first {KEPT:,} and the last {KEPT:,} iterations; those between are in the table alone"

    def _trace(self, run: Run, facts: dict[str, str]) -> bytes:
        sections = [*self._first, *self._last]
        if self._gap is not None:
            sections.append(self._gap)
        events = TraceEvents(self.begin).of(sections, f"gymnast train {self._trainer.config.name}, run {run.id}")
        about: dict[str, Any] = {"run": run.id, **facts}
        return trace_file(events, self._operators.events, about)

    def _show(self, rows: list[StageRow], folder: Path) -> None:
        reporter = self._reporter
        reporter.say(always=True)
        if reporter.console is not None and not reporter.quiet:
            reporter.console.print(_rich_table(rows))
        reporter.say(f"profile: {folder / 'stages.md'}", always=True)
        reporter.say(f"  trace: {folder / 'trace.json'}", always=True)
        reporter.say(f"         {HOW_TO_OPEN}")


def _unix_us(moment: float) -> float:
    """The time of day of a moment of `time.perf_counter`, in microseconds; by the quickest of a few readings of both."""
    readings = [(time.perf_counter(), time.time_ns(), time.perf_counter()) for _ in range(5)]
    before, unix, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return unix / 1000 - ((before + after) / 2 - moment) * 1e6


def _free_folder(run_folder: Path) -> Path:
    """`profile`, or `profile-2` … when the run was profiled before."""
    number = 1
    while True:
        folder = run_folder / (f"profile-{number}" if number > 1 else "profile")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
        number += 1


def _markdown(run: Run, rows: list[StageRow], facts: dict[str, str]) -> str:
    lines = [f"# Where the time of run {run.id} went", ""]
    lines += [f"| {' | '.join(HEADER)} |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {value.replace('|', '/')} |" for name, value in facts.items()]
    lines += ["", f"`trace.json` next to this file: {HOW_TO_OPEN}.", ""]
    return "\n".join(lines)


def _rich_table(rows: list[StageRow]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in HEADER:
        table.add_column(name, justify="left" if name == "stage" else "right")
    for row in rows:
        table.add_row(*row.cells(), style="bold" if row.name == "total" else None)
    return table

"""One config under several seeds: in processes side by side where this machine has the cores, else one after the other.

`gymnast.train(..., seeds=...)` and `gymnast train --seeds` both end here. Every seed is an ordinary run, equal to the bit to
one that was trained alone.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Literal

from gymnast.config.load import Resolved
from gymnast.envs.choose import cores, stays_here
from gymnast.envs.workers import registered
from gymnast.errors import GymnastError, UsageError
from gymnast.runs.origin import pinned
from gymnast.runs.settling import settle_envs
from gymnast.runs.store import Run
from gymnast.service.statistics import Score, score_of
from gymnast.training.keeping.result import TrainResult
from gymnast.training.keeping.signals import StopRequest

LOOK_EVERY = 0.1
"""Seconds between two looks at the processes."""
ORIGIN = "seeds"
"""Where the seed of such a run comes from, for `runs show`."""
State = Literal["waiting", "training", "finished", "interrupted", "failed"]


@dataclass
class SeedRun:
    """One of the seeds and how far it is."""

    seed: int
    state: State = "waiting"
    run: Run | None = None
    """Once it is made."""
    error: str = ""
    """Why it failed."""


Watch = Callable[[Sequence[SeedRun]], None]
"""Called with all seeds whenever one changes, and several times a second while processes train."""


@dataclass(frozen=True)
class SeedsResult:
    """How the seeds of one config did."""

    seeds: tuple[SeedRun, ...]
    best: Score | None
    """Over the best evaluation of each run: mean, interquartile mean, and its 95 % interval."""
    last: Score | None
    """Over the last evaluation of each run."""
    interrupted: bool = False
    """Whether they were stopped; `gymnast.resume` continues each run."""

    @property
    def runs(self) -> list[Run]:
        """The runs in the order of their seeds, without those that failed before they began."""
        return [one.run for one in self.seeds if one.run is not None]

    @property
    def failed(self) -> dict[int, str]:
        """Why seeds failed, by seed."""
        return {one.seed: one.error for one in self.seeds if one.state == "failed"}

    def sentence(self) -> str:
        """The result in words."""
        asked = len(self.seeds)
        if self.last is None:
            return f"none of {asked} seeds was evaluated"
        score, found = self.last, len(self.last.values)
        if found == asked:
            of = f"{found} seeds"
        else:
            of = f"{found} of {asked} seeds"
        if found == 1:
            return f"{score.mean:.1f}, from {of}: one run has no interval"
        return f"interquartile mean {score.iqm:.1f} (95 % interval {score.low:.1f} … {score.high:.1f}) over {of}"


def seeds_from(seeds: int | Iterable[int], first: int = 0) -> list[int]:
    """The seeds that are meant: so many from `first` on, or exactly these."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise UsageError(f"seeds must be at least 1, or a list of seeds (got {seeds}).")
        return list(range(first, first + seeds))
    found = [int(seed) for seed in seeds]
    if not found or min(found) < 0:
        raise UsageError(f"seeds must be whole numbers from 0 on, at least one of them (got {found}).")
    if len(set(found)) < len(found):
        raise UsageError(f"seeds must differ: the same seed gives the same run (got {found}).")
    return found


def room_for(resolved: Resolved) -> int:
    """How many runs of this config this machine trains at the same time without slowing each of them down."""
    config = resolved.config
    if stays_here(config.env) is not None:
        return 1  # no other process can have its env
    if config.train.device.startswith("cuda") or config.env.vectorization in ("workers", "envpool"):
        return 1  # each takes the GPU, or all cores
    threads = 1
    if isinstance(config.train.threads, int):
        threads = config.train.threads
    return max(1, cores() // threads)


def train_seeds(
    resolved: Resolved,
    seeds: Sequence[int],
    root: Path,
    *,
    here: Callable[[Resolved], TrainResult | None],
    jobs: int | None = None,
    watch: Watch | None = None,
) -> SeedsResult:
    """Train one run per seed. With one job at a time they train in this process, by `here`.

    A seed that fails does not end the others. The first Ctrl-C or SIGTERM stops all of them with a checkpoint each.
    """
    resolved = settle_envs(resolved, root)  # once: all seeds are stepped alike
    init_from = resolved.config.train.init_from
    if init_from is not None:  # @last must not become the run of the seed before
        resolved = _with_train(resolved, {"init_from": pinned(root, init_from)})
    entries = [SeedRun(seed) for seed in seeds]
    jobs = min(len(entries), jobs or room_for(resolved))
    look = watch or (lambda _: None)
    if jobs == 1:
        stopped = _one_by_one(resolved, entries, here, look)
    else:
        with tempfile.TemporaryDirectory(prefix="gymnast-seeds-") as folder:
            stopped = _Processes(resolved, entries, root.absolute(), jobs, look, Path(folder)).run()
    states = [run.status() for one in entries if (run := one.run) is not None and one.state != "failed"]
    return SeedsResult(
        seeds=tuple(entries),
        best=score_of([state.best_return for state in states if state.best_return is not None]),
        last=score_of([state.last_return for state in states if state.last_return is not None]),
        interrupted=stopped,
    )


def _with_train(resolved: Resolved, values: dict[str, object]) -> Resolved:
    train = resolved.config.train.model_copy(update=values)
    origins = {**resolved.origins, **{f"train.{name}": ORIGIN for name in values if name == "seed"}}
    return replace(resolved, config=resolved.config.model_copy(update={"train": train}), origins=origins)


def _one_by_one(
    resolved: Resolved, entries: list[SeedRun], here: Callable[[Resolved], TrainResult | None], look: Watch
) -> bool:
    """Run all seeds in this process; returns whether they were stopped."""
    for one in entries:
        one.state = "training"
        look(entries)
        try:
            result = here(_with_train(resolved, {"seed": one.seed}))
        except GymnastError as error:
            one.state, one.error = "failed", str(error)
            look(entries)
            continue
        if result is None:  # a question before the start was answered with no
            one.state = "waiting"
            return True
        one.run, one.state = result.run, "interrupted" if result.interrupted else "finished"
        look(entries)
        if result.interrupted:
            return True
    return False


# ---- in processes --------------------------------------------------------------------------------------------------


@dataclass
class _Child:
    """The process that trains one seed. It speaks by files next to its job: what it trains in, and how it ended."""

    entry: SeedRun
    job: Path
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    asked: int = field(default=0)
    """How often it was asked to stop."""

    def read(self) -> bool:
        """Take up what it has said; whether anything changed."""
        before = (self.entry.state, self.entry.run)
        with contextlib.suppress(OSError):
            self.entry.run = Run(Path(self.job.with_suffix(".run").read_text(encoding="utf-8")))
        if self.process.poll() is not None:
            self._ended()
        return before != (self.entry.state, self.entry.run)

    def _ended(self) -> None:
        self.output.close()
        try:
            said = json.loads(self.job.with_suffix(".end").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            said = {}
        if said.get("state") in ("finished", "interrupted"):
            self.entry.state = said["state"]
            return
        if self.asked and not said:
            self.entry.state = "interrupted"
            return
        self.entry.state = "failed"
        if self.entry.run is not None and not self.entry.run.status_path.exists():
            self.entry.run = None  # nothing was learned, so nothing is left of it
        self.entry.error = said.get("error") or self._last_words()

    def _last_words(self) -> str:
        lines = self.job.with_suffix(".log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        words = f": {lines[-1]}" if lines else ""
        return f"its process ended with code {self.process.returncode}{words}"


class _Processes:
    """Trains entries in processes, a few at a time."""

    def __init__(
        self, resolved: Resolved, entries: list[SeedRun], root: Path, jobs: int, look: Watch, folder: Path
    ) -> None:
        self._resolved, self._entries, self._root = resolved, entries, root
        self._jobs, self._look, self._folder = jobs, look, folder
        self._children: list[_Child] = []

    def run(self) -> bool:
        """Wait until all have ended; returns whether they were stopped."""
        waiting: Iterator[SeedRun] = iter(self._entries)
        with StopRequest() as stop:
            try:
                while True:
                    alive = [child for child in self._children if child.entry.state == "training"]
                    if stop.pending:
                        self._ask(alive, times=1)
                    else:
                        for entry in _first(waiting, self._jobs - len(alive)):
                            alive.append(self._start(entry))
                    if not alive:
                        return stop.pending
                    time.sleep(LOOK_EVERY)
                    for child in alive:
                        child.read()
                    self._look(self._entries)
            except BaseException as error:
                self._end()
                if not isinstance(error, KeyboardInterrupt):
                    raise
        return True

    def _start(self, entry: SeedRun) -> _Child:
        job = self._folder / f"{entry.seed}.json"
        resolved = _with_train(self._resolved, {"seed": entry.seed})
        about = {
            "config": resolved.config.model_dump(mode="json"),
            "origins": resolved.origins,
            "root": str(self._root),
            "path": sys.path,
        }
        job.write_text(json.dumps(about), encoding="utf-8")
        job.with_suffix(".envs").write_bytes(registered())
        output = job.with_suffix(".log").open("wb")
        # `-P`: a socket.py in the current folder is not Python's. A session of its own: Ctrl-C reaches it through us alone.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gymnast.api.seed_process", str(job)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        entry.state = "training"
        child = _Child(entry, job, process, output)
        self._children.append(child)
        return child

    def _ask(self, children: list[_Child], *, times: int) -> None:
        """Have them stop with a checkpoint; who is asked a second time leaves at once."""
        for child in children:
            if child.asked < times:
                child.asked += 1
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(signal.SIGTERM)

    def _end(self) -> None:
        """Leave no process behind."""
        alive = [child for child in self._children if child.entry.state == "training"]
        self._ask(alive, times=2)
        for child in alive:
            child.process.wait()
            child.read()


def _first(waiting: Iterator[SeedRun], count: int) -> Iterator[SeedRun]:
    for _ in range(count):
        entry = next(waiting, None)
        if entry is None:
            return
        yield entry

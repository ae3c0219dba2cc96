"""What torch does inside a few iterations: its profiler's operators, and kernels on a GPU, as events of the run's trace."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gymnast.timing import StageTimer

ITERATIONS = range(3, 6)
"""Iterations of this process whose operators are recorded: what is done only once is over by then."""
LONGEST_SECONDS = 20.0
"""Operators of a longer iteration are not recorded: about 100,000 of them fit into a second."""
MAX_BYTES = 32 * 2**20
"""No further iteration is recorded beyond this."""

_SHOWN = "Xsf"  # spans, and the arrows from an operator to its kernel


class Operators:
    """Records the operators of `ITERATIONS`, one recording each, and keeps them as JSON text."""

    def __init__(self, device: str, origin_unix_us: float, timer: StageTimer, warn: Callable[[str], None]) -> None:
        self._device = device
        self._origin = origin_unix_us
        self._timer = timer
        self._warn = warn
        self._size = 0
        self._named: set[tuple[int, int, str]] = set()
        self.events: list[bytes] = []
        """One JSON array without its brackets per recorded iteration."""
        self.iterations: list[int] = []
        self.note = ""
        """Why there are fewer than asked for."""

    def due(self, number: int, seconds: float) -> bool:
        """Whether to record the `number`-th iteration of this process, when the one before took `seconds`."""
        if number not in ITERATIONS or self.note:
            return False
        if seconds > LONGEST_SECONDS:
            self.note = f"iterations of {seconds:.0f} s have too many operators to record"
        elif self._size > MAX_BYTES:
            self.note = f"the first {len(self.iterations)} filled the space for operators"
        return not self.note

    @contextmanager
    def recording(self, iteration: int) -> Iterator[None]:
        """Record the body; what goes wrong with that is said, and training goes on."""
        with self._timer.stage("profiler"):
            profiler = self._begin()
        whole = False
        try:
            yield
            whole = True
        finally:
            if profiler is not None:
                with self._timer.stage("profiler"):
                    self._end(profiler, iteration if whole else None)

    def _begin(self) -> Any:
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would write to the terminal
        if (
            self._device == "cuda"
        ):  # several recordings together with CUDA graphs crash otherwise; torch.profiler does the same
            os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")
            os.environ.setdefault("TEARDOWN_CUPTI", "0")
        try:
            # Not torch.profiler: that is the same recorder, but starting it imports torch's compiler (1 s).
            from torch.autograd import profiler

            return profiler.profile(use_device=self._device if self._device != "cpu" else None).__enter__()
        except Exception as error:
            self._give_up(error)
            return None

    def _end(self, profiler: Any, iteration: int | None) -> None:
        """Stop; keep what was recorded if the iteration came to its end."""
        try:
            profiler.__exit__(None, None, None)
            if iteration is None:
                return
            with tempfile.TemporaryDirectory(prefix="gymnast-profile-") as folder:
                path = Path(folder) / "operators.json"
                profiler.export_chrome_trace(str(path))
                events = self._on_our_clock(json.loads(path.read_bytes()))
        except Exception as error:
            self._give_up(error)
            return
        if events:
            text = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events).encode()
            self._size += len(text)
            self.events.append(text)
            self.iterations.append(iteration)

    def _give_up(self, error: Exception) -> None:
        self.note = f"torch's profiler failed ({type(error).__name__}: {error})".replace("\n", " ")
        self._warn(f"No operators are recorded any more: {self.note}. Training goes on.")

    def _on_our_clock(self, trace: dict[str, Any]) -> list[dict[str, Any]]:
        """Its spans, arrows and names of threads and streams; without what it says about itself."""
        shift = trace.get("baseTimeNanoseconds", 0) / 1000 - self._origin
        events: list[dict[str, Any]] = []
        used: set[Any] = set()
        for event in trace["traceEvents"]:
            if event["ph"] in _SHOWN and isinstance(event["pid"], int) and event.get("cat") != "overhead":
                event["ts"] = round(event["ts"] + shift, 3)
                if event.get("cat") == "cpu_op":
                    event.pop("args", None)  # numbers of torch's own, half of the file
                used.add(event["pid"])
                events.append(event)
        return [*self._names(trace["traceEvents"], used), *events]

    def _names(self, events: list[dict[str, Any]], used: set[Any]) -> Iterator[dict[str, Any]]:
        """Names of what has events, each once: threads of this process, GPUs (torch labels them) and their streams."""
        for event in events:
            kind, pid, tid = event["name"], event["pid"], event.get("tid", 0)
            if event["ph"] != "M" or pid not in used or (pid, tid, kind) in self._named:
                continue
            own = pid == os.getpid()
            if kind == "thread_name":
                if own:
                    name = f"operators, thread {tid}"
                else:
                    name = str(event["args"]["name"]).strip()
            elif kind == "process_labels" and not own:
                kind, name = "process_name", event["args"]["labels"]
            else:
                continue
            self._named.add((pid, tid, event["name"]))
            yield {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}

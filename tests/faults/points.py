"""Named places in the code, and faults that fire at the n-th entry of one of them.

The functions are replaced in a child process before the command starts, so the product carries no hooks.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

POINTS: dict[str, str] = {
    "start": "gymnast.training.on_policy:OnPolicyTrainer.start",
    "rollout": "gymnast.rollout.collect:collect",
    "act": "gymnast.policies.actor_critic:ActorCritic.act",
    "targets": "gymnast.training.updater:Updater.launch",
    "gradients": "gymnast.training.update:gradients",
    "update": "gymnast.training.update:Eager._step",
    "evaluation": "gymnast.training.evaluating.evaluator:run_evaluation",
    "row": "gymnast.training.keeping.rows:RowMaker.__call__",
    "metrics": "gymnast.metrics.sinks.jsonl:JsonlSink.write",
    "trace": "gymnast.training.diagnostics.tracing:TraceFile.write",
    "pack": "gymnast.runs.checkpoint:pack",
    "save": "gymnast.runs.checkpoint:write",
    "save file": "gymnast.runs.durable:write_file",
    "save move": "gymnast.runs.durable:move",
    "save pointer": "gymnast.runs.durable:point",
    "save prune": "gymnast.runs.checkpoint:prune",
    "create": "gymnast.training.train:_open_run",
    "restore": "gymnast.training.train:Start._restore",
    "begin": "gymnast.runs.store:Run.begin",
    "lineage": "gymnast.runs.lineage:_write",
    "status": "gymnast.runs.store:Run._write",
    "atomic": "gymnast.runs.store:write_atomic",
    "index": "gymnast.runs.index:upsert",
    "finish": "gymnast.runs.store:Run.finish",
    "video": "gymnast.evaluation.video:encode",
    "frame": "gymnast.evaluation.video:_even",
}
"""Name → module:attribute, where the caller looks it up."""
_journal: int | None = None


@dataclass(frozen=True)
class Fault:
    """`kind` happens at entry number `nth` of `point` (and at the `times - 1` entries after it), or on leaving it.

    Kinds: a signal's name; `ENOSPC`, `EROFS` … (an OSError); `memory` and `torch memory`; `nan` (in the gradients);
    `FSIZE=n` (files may not grow beyond n bytes from then on); `read-only` (may write no new file from then on);
    `full stdout` (whatever is printed finds a full disk); `clock=s` (the wall clock jumps by s seconds); `sleep=s`.
    """

    point: str
    kind: str
    nth: int = 1
    after: bool = False
    times: int = 1


def install(faults: Iterable[Fault], journal: Path | None = None) -> None:
    """Put the faults into this process. The journal gets a line for each that fires and for each checkpoint committed."""
    global _journal  # noqa: PLW0603
    if journal is not None:
        _journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        _note_commits()
    by_point: dict[str, list[Fault]] = {}
    for fault in faults:
        by_point.setdefault(fault.point, []).append(fault)
        if fault.kind.startswith("clock="):
            _movable_clock()
    for point, here in by_point.items():
        owner, name = _place(point)
        setattr(owner, name, _faulty(getattr(owner, name), here))


def _place(point: str) -> tuple[Any, str]:
    """The module or class that holds a point, and its name there."""
    module_name, _, path = POINTS[point].partition(":")
    owner: Any = importlib.import_module(module_name)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def _faulty(function: Callable[..., Any], faults: list[Fault]) -> Callable[..., Any]:
    entries = 0

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        nonlocal entries
        entries += 1
        due = [fault for fault in faults if fault.nth <= entries < fault.nth + fault.times]
        for fault in due:
            if not fault.after:
                fire(fault.kind, arguments)
        result = function(*arguments, **named)
        for fault in due:
            if fault.after:
                fire(fault.kind, arguments)
        return result

    return wrapped


def _note(**what: Any) -> None:
    if _journal is not None:
        os.write(_journal, json.dumps(what).encode() + b"\n")


def _note_commits() -> None:
    """A checkpoint counts as committed once `last` points at it."""
    durable = importlib.import_module("gymnast.runs.durable")
    point = durable.point

    def noted(checkpoints: Path, name: str, target: str, sync: bool) -> None:
        point(checkpoints, name, target, sync)
        if name == "last":
            _note(committed=int(target.removeprefix("step=")))

    durable.point = noted


def count_entries(path: Path) -> None:
    """Count how often each point is entered, and write that when the process leaves."""
    entries = dict.fromkeys(POINTS, 0)

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            entries[name] += 1
            return function(*arguments, **named)

        return wrapped

    for name in POINTS:
        owner, attribute = _place(name)
        setattr(owner, attribute, counting(name, getattr(owner, attribute)))
    leave = os._exit

    def write_and_leave(code: int) -> None:
        path.write_text(json.dumps(entries))
        leave(code)

    os._exit = write_and_leave  # type: ignore[assignment]


def fire(kind: str, arguments: tuple[Any, ...] = ()) -> None:
    """Let it happen."""
    _note(fired=kind)
    name, _, value = kind.partition("=")
    if name.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, name))
        if name == "SIGKILL":
            time.sleep(60)  # the end comes from outside
    elif name == "memory":
        raise MemoryError
    elif name == "torch memory":
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")
    elif name == "nan":
        arguments[0].flat.grads[0] = float("nan")
    elif name == "FSIZE":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(value), resource.RLIM_INFINITY))
    elif name == "read-only":
        os.seteuid(65534)
    elif name == "full stdout":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif name == "clock":
        _Clock.offset += timedelta(seconds=float(value))
    elif name == "sleep":
        time.sleep(float(value))
    else:
        code = getattr(errno, name)
        raise OSError(code, os.strerror(code))


class _Clock(datetime):
    """The wall clock, with a hand on it."""

    offset = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """As moved."""
        return datetime.now(tz) + cls.offset


def _movable_clock() -> None:
    real = time.time
    time.time = lambda: real() + _Clock.offset.total_seconds()
    for name in ("gymnast.runs.files", "gymnast.runs.status", "gymnast.runs.when"):
        importlib.import_module(name).datetime = _Clock  # type: ignore[attr-defined]

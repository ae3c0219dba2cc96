"""The index of all runs, `runs/index.sqlite`: a cache of the run folders that many processes write at once.

The folders are the truth. Every write reads the folder again inside its transaction, so the index never goes back in
time, and a listing refreshes the rows whose folder changed, appeared or went away since they were written.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import math
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gymnast.errors import GymnastError, UsageError, did_you_mean
from gymnast.metrics.verdict import threshold_of
from gymnast.runs.files import flock
from gymnast.runs.status import CRASHED, STATES
from gymnast.runs.store import Run, is_id

FILE = "index.sqlite"
_VERSION = 3
_OTHER_VERSION = "written by another version"
_BUSY_SECONDS = 30.0
_LARGEST = 2**63 - 1  # SQLite's integers
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CANTOPEN}
# No bytes where the file should have some: a truncated index.
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
_T = TypeVar("_T")


@dataclass(frozen=True)
class RunRow:
    """What a listing shows of one run."""

    id: str
    config: str
    env: str
    algo: str
    seed: int
    status: str
    created: str
    updated: str
    env_steps: int
    vec_steps: int
    best_return: float | None
    """The best score of an evaluation, and the env steps of its weights."""
    best_at: int | None
    last_return: float | None
    last_at: int | None
    threshold: float | None
    """The score from which the env counts as solved."""
    solved: bool
    wall_seconds: float
    efficiency: float | None
    """Mean evaluated return over the budget: random play is 0, the threshold is 1. Runs of older versions have none."""
    vec_steps_to_solved: int | None
    seconds_to_solved: float | None
    tags: tuple[str, ...]


def _highest(value: float | None) -> float:
    """For sorting: highest first, none last."""
    if value is None:
        return math.inf
    return -value


def _lowest(value: float | None) -> float:
    """For sorting: lowest first, none last."""
    return math.inf if value is None else value


SORTS: dict[str, Callable[[RunRow], Any]] = {
    "created": lambda row: 0,
    "return": lambda row: _highest(row.best_return),
    "last-return": lambda row: _highest(row.last_return),
    "steps": lambda row: -row.env_steps,
    "time": lambda row: -row.wall_seconds,
    "efficiency": lambda row: _highest(row.efficiency),
    "steps-to-solved": lambda row: _lowest(row.vec_steps_to_solved),
    "seconds-to-solved": lambda row: _lowest(row.seconds_to_solved),
    "env": lambda row: row.env.lower(),
    "config": lambda row: row.config.lower(),
}
"""Orders of a listing; runs that are equal in it come newest first."""

_COLUMNS = [field.name for field in fields(RunRow)]
_CREATE = f"CREATE TABLE runs ({', '.join(_COLUMNS)}, stamp, PRIMARY KEY (id))"
_INSERT = f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})"  # noqa: S608 only our own names
_SELECT = f"SELECT {', '.join(_COLUMNS)}, stamp FROM runs"  # noqa: S608 only our own names


def remove(root: Path) -> None:
    """Delete the index of a folder without runs."""
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", ".index.lock"):
        (root / name).unlink(missing_ok=True)


def print_notice(text: str) -> None:
    """One line on the error stream, so that `--json` output stays clean."""
    print(text, file=sys.stderr)


def read_row(run: Run) -> RunRow:
    """The row of a run as its folder gives it, with the state as written."""
    try:
        config = run.config()
    except GymnastError:
        config = {}
    status = run.status()
    seed = _at(config, "train", "seed")
    return RunRow(
        id=run.id,
        config=str(config.get("name") or ""),
        env=str(_at(config, "env", "id") or ""),
        algo=str(_at(config, "algo", "id") or ""),
        seed=seed if isinstance(seed, int) else 0,
        status=status.state,
        created=status.created,
        updated=status.ended or status.heartbeat,
        env_steps=min(status.env_steps, _LARGEST),
        vec_steps=min(status.vec_steps, _LARGEST),
        best_return=status.best_return,
        best_at=_in_bounds(status.best_at),
        last_return=status.last_return,
        last_at=_in_bounds(status.last_at),
        threshold=threshold_of(config),
        solved=status.solved,
        wall_seconds=float(status.wall_seconds),
        efficiency=status.efficiency,
        vec_steps_to_solved=_in_bounds(status.vec_steps_to_solved),
        seconds_to_solved=status.seconds_to_solved,
        tags=tuple(run.tags()),
    )


def upsert(run: Run, *, notice: Callable[[str], None] = print_notice) -> None:
    """Bring the row of `run` up to date; call it after `update`. Also removes the row of a folder that is gone."""

    def write(connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            _refresh(connection, run.root, [run.id])

    try:
        _use(run.root, write, notice, quiet_for={run.id})
    except (OSError, sqlite3.Error) as error:
        # The index is only a cache: a full disk must not end a training, and the next listing repairs the row.
        notice(f"The index of '{run.root}' could not be written ({error}); the run itself is not affected.")


def list_runs(
    root: Path,
    *,
    config: str | None = None,
    env: str | None = None,
    algo: str | None = None,
    status: str | None = None,
    seed: int | None = None,
    tag: str | None = None,
    solved: bool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    sort: str = "created",
    limit: int | None = None,
    notice: Callable[[str], None] = print_notice,
) -> list[RunRow]:
    """Runs, newest first. Text filters ignore case and take `*`; `status` may also be `crashed`.

    `since` and `until` bound when a run was created. `sort` is a key of `SORTS`.
    """
    if sort not in SORTS:
        raise UsageError(f"Cannot sort by '{sort}'.{did_you_mean(sort, SORTS)} Known: {', '.join(SORTS)}.")
    states = (*STATES, CRASHED)
    if status is not None and status not in states:
        raise UsageError(f"Unknown status '{status}'.{did_you_mean(status, states)} Known: {', '.join(states)}.")
    if not Path(root).is_dir():
        return []
    try:
        rows = _use(root, lambda connection: _fresh_rows(connection, Path(root)), notice)
    except (OSError, sqlite3.Error):  # a folder we may only read: slower, equally true
        rows = [read_row(Run(Path(root) / run_id)) for run_id in _stamps(Path(root))]
    rows.sort(key=lambda row: (row.created, row.id), reverse=True)
    rows.sort(key=SORTS[sort])
    earliest, latest = (_moment(bound) if bound else None for bound in (since, until))
    found: list[RunRow] = []
    for row in rows:
        if limit is not None and len(found) >= limit:
            break
        if not (_like(row.config, config) and _like(row.env, env) and _like(row.algo, algo)):
            continue
        if (seed is not None and row.seed != seed) or (solved is not None and row.solved != solved):
            continue
        if tag is not None and tag not in row.tags:
            continue
        if (earliest and row.created < earliest) or (latest and row.created >= latest):
            continue
        if row.status == "running":
            row = replace(row, status=Run(Path(root) / row.id).shown_state())  # noqa: PLW2901
        if status is None or row.status == status:
            found.append(row)
    return found


def rebuild(root: Path, *, notice: Callable[[str], None] = print_notice) -> int:
    """Rebuild every row from the folders; returns the number of runs."""

    def write(connection: sqlite3.Connection) -> int:
        with _transaction(connection):
            connection.execute("DELETE FROM runs")
            return _refresh(connection, root, _stamps(root))

    root = Path(root)
    try:
        return _use(root, write, notice, quiet_for=set(_stamps(root)))
    except (OSError, sqlite3.Error) as error:
        raise UsageError(
            f"The index '{root / FILE}' cannot be written: {error}. Check the rights of that folder."
        ) from error


# --- rows and folders ---------------------------------------------------------------------------------------


def _moment(bound: datetime) -> str:
    """As `created` is written, so that texts can be compared."""
    return bound.astimezone(UTC).isoformat(timespec="microseconds")


def _at(config: dict[str, Any], section: str, key: str) -> Any:
    part = config.get(section)
    if isinstance(part, dict):
        return part.get(key)
    return None


def _in_bounds(steps: int | None) -> int | None:
    if steps is None:
        return None
    return min(steps, _LARGEST)


def _like(value: str, pattern: str | None) -> bool:
    return pattern is None or fnmatch.fnmatchcase(value.lower(), pattern.lower())


def _stamp(folder: str) -> str | None:
    """Changes whenever the files behind a row change; None if the folder is not a run."""
    try:
        status = os.stat(f"{folder}/status.json").st_mtime_ns  # noqa: PTH116 a Path per run would double the time
    except OSError:
        return None
    try:
        tags = os.stat(f"{folder}/tags.json").st_mtime_ns  # noqa: PTH116
    except OSError:
        tags = 0
    return f"{status} {tags}"


def _stamps(root: Path) -> dict[str, str]:
    """Run id → stamp of every run folder in `root`."""
    try:
        with os.scandir(root) as entries:
            found = {entry.name: _stamp(entry.path) for entry in entries if is_id(entry.name)}
    except OSError:
        return {}
    return {run_id: stamp for run_id, stamp in found.items() if stamp is not None}


def _refresh(connection: sqlite3.Connection, root: Path, run_ids: Iterable[str]) -> int:
    """Write the rows of these runs as their folders are now, inside the caller's transaction."""
    count = 0
    for run_id in run_ids:
        run = Run(Path(root) / run_id)
        stamp = _stamp(str(run.folder))  # before the content: a change in between is then seen by the next listing
        if stamp is None or not run.exists():
            connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            continue
        values = list(astuple(read_row(run)))
        values[_COLUMNS.index("seed")] = str(values[_COLUMNS.index("seed")])  # seeds may exceed 64 bits
        values[_COLUMNS.index("tags")] = json.dumps(values[_COLUMNS.index("tags")])
        connection.execute(_INSERT, (*values, stamp))
        count += 1
    return count


def _fresh_rows(connection: sqlite3.Connection, root: Path) -> list[RunRow]:
    """All rows, after bringing those up to date whose folder is not as the row was written from."""
    known = {record[0]: record for record in connection.execute(_SELECT)}
    stamps = _stamps(root)
    stale = [run_id for run_id, stamp in stamps.items() if run_id not in known or known[run_id][-1] != stamp]
    stale += known.keys() - stamps.keys()
    if stale:
        with _transaction(connection):
            _refresh(connection, root, stale)
        known = {record[0]: record for record in connection.execute(_SELECT)}
    return [_row(record) for record in known.values()]


def _row(record: tuple[Any, ...]) -> RunRow:
    values = dict(zip(_COLUMNS, record))
    try:
        values["seed"], values["tags"] = int(values["seed"]), tuple(json.loads(values["tags"]))
    except (ValueError, TypeError):
        raise _broken("a row cannot be read") from None
    return RunRow(**values | {"solved": bool(values["solved"])})


def _broken(reason: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


# --- the file -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _guard(root: Path, *, alone: bool) -> Iterator[None]:
    """Shared while the index is in use, alone while its file is replaced: SQLite must not lose it under its feet."""
    descriptor = os.open(root / ".index.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        flock(descriptor, alone=alone, wait=True)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE takes the write lock at once and waits for it; a later upgrade would fail without waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _connect(path: Path) -> sqlite3.Connection:
    """Open an existing index; `mode=rw` because an index made empty by opening would hide the runs."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        # No fsync: a power cut can cost rows of the cache, which the folders give back, and a kill costs nothing.
        connection.execute("PRAGMA synchronous = OFF")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            raise _broken(_OTHER_VERSION)
    except BaseException:
        connection.close()
        raise
    return connection


def _use(
    root: Path,
    work: Callable[[sqlite3.Connection], _T],
    notice: Callable[[str], None],
    *,
    quiet_for: set[str] | None = None,
) -> _T:
    """Do `work` on the open index; a missing or damaged file is rebuilt from the folders first."""
    for attempt in range(4):
        try:
            with _guard(root, alone=False), contextlib.closing(_connect(root / FILE)) as connection:
                return work(connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite quotes damaged text in its complaint
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if attempt == 3 or (code & 0xFF not in _BROKEN and code != _SHORT_READ):
                raise
            _repair(root, str(error), notice, quiet_for or set(), doubtful=attempt > 0)
    raise AssertionError("unreachable")


def _repair(root: Path, reason: str, notice: Callable[[str], None], quiet_for: set[str], *, doubtful: bool) -> None:
    path = root / FILE
    with _guard(root, alone=True):
        missing = not path.exists()
        if not missing and not doubtful and _sound(path):
            return  # another process was quicker
        new = root / ".index.new"
        for old in (path, new):
            for suffix in ("", "-wal", "-shm", "-journal"):
                old.with_name(old.name + suffix).unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            # Readers do not wait for writers with WAL. Set here, alone, because switching later can fail under load.
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                connection.execute(_CREATE)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                stamps = _stamps(root)
                _refresh(connection, root, stamps)
        new.replace(path)
    if not missing or stamps.keys() - quiet_for:  # the first run of a folder makes the index without a word
        why = "was missing" if missing else f"was damaged ({reason})"
        if reason == _OTHER_VERSION:
            why = f"was {reason}"
        notice(f"The index '{path}' {why} and was rebuilt from {len(stamps)} run folder{'s' * (len(stamps) != 1)}.")


def _sound(path: Path) -> bool:
    try:
        with contextlib.closing(_connect(path)) as connection:
            connection.execute(_SELECT).fetchall()
            return bool(connection.execute("PRAGMA quick_check").fetchone()[0] == "ok")
    except (sqlite3.Error, UnicodeDecodeError):
        return False

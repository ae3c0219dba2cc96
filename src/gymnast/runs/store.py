"""The run folder: `runs/<id>/` with config, metrics, checkpoints, videos, log and status; one writer per file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import shlex
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gymnast.config.leaves import leaves
from gymnast.errors import GymnastError, UsageError
from gymnast.redaction import redact
from gymnast.runs import lineage
from gymnast.runs.files import now, write_atomic
from gymnast.runs.lock import RunLock
from gymnast.runs.process import this_process
from gymnast.runs.reading import read_json
from gymnast.runs.status import CRASHED, FIELDS, STATES, Status, is_alive

LAST = "@last"

_LETTERS = "abcdefghjkmnpqrstuvwxyz"  # without i, l and o, which read like 1 and 0
_ALPHABET = _LETTERS + "23456789"
_ID = re.compile(f"[{_LETTERS}][{_ALPHABET}]{{4}}")


def runs_root(explicit: Path | None = None) -> Path:
    """The folder that holds the runs: `--runs-dir`, else `$GYMNAST_HOME` itself, else `./runs`."""
    if explicit is not None:
        return Path(explicit).expanduser()
    home = os.environ.get("GYMNAST_HOME")
    if home:
        return Path(home).expanduser()
    return Path("runs")


def new_id() -> str:
    """Five characters that are easy to read aloud; drawn from the system so that no seed is touched."""
    number = int.from_bytes(os.urandom(8), "big")
    number, first = divmod(number, len(_LETTERS))
    text = _LETTERS[first]
    for _ in range(4):
        number, digit = divmod(number, len(_ALPHABET))
        text += _ALPHABET[digit]
    return text


def is_id(text: str) -> bool:
    """Whether `text` has the form of a run id; nothing else may become part of a path."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Run:
    """One run folder. The object holds only the path: everything else is read from disk when asked for."""

    folder: Path

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def root(self) -> Path:
        """The folder that holds this run and its neighbours."""
        return self.folder.parent

    @property
    def reference(self) -> str:
        """What commands typed here call this run: its id where they look for runs by themselves, else its folder."""
        if self.root.resolve() == runs_root().resolve():
            return self.id
        return str(self.folder)

    @property
    def typed(self) -> str:
        """The same, quoted for a shell."""
        return shlex.quote(self.reference)

    @property
    def config_path(self) -> Path:
        """Where the resolved config lies."""
        return self.folder / "config.json"

    @property
    def metrics_path(self) -> Path:
        """One JSON object per iteration."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder that holds its checkpoints."""
        return self.folder / "checkpoints"

    @property
    def videos(self) -> Path:
        """The folder that holds its videos."""
        return self.folder / "videos"

    @property
    def log_path(self) -> Path:
        """The terminal output without colour codes."""
        return self.folder / "log.txt"

    @property
    def status_path(self) -> Path:
        """State, progress and the process that trains."""
        return self.folder / "status.json"

    @classmethod
    def create(cls, root: Path, config: dict[str, Any], *, tags: Iterable[str] = ()) -> Run:
        """Make a new run in state `running`, owned by this process, and point `@last` at it; all or nothing."""
        text = json.dumps(config, indent=2, allow_nan=False) + "\n"
        made: list[Path] = []
        run: Run | None = None
        try:
            make_root(root, made)
            run = cls(_make_folder(root))
            run.checkpoints.mkdir()
            run.videos.mkdir()
            write_atomic(run.config_path, text)
            if tags := list(tags):
                run.set_tags(tags)
            moment = now()
            # Status last: a folder is a run once it has config and status.
            run._write(Status("running", created=moment, started=moment, heartbeat=moment, **this_process()))
            run.point_last()
        except BaseException as error:
            if run is not None:
                shutil.rmtree(run.folder, ignore_errors=True)
            for folder in reversed(made):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if isinstance(error, OSError):
                raise UsageError(
                    f"Cannot create a run in '{root}': {error.strerror or error}. "
                    "Free or unlock that folder, or choose another with --runs-dir or GYMNAST_HOME."
                ) from error
            raise
        return run

    @classmethod
    def open(cls, root: Path, run_id: str) -> Run:
        """The run `run_id` of `root`; ids by strict pattern, so no text can lead out of the folder."""
        run = cls(Path(root) / run_id)
        if not is_id(run_id) or not run.exists():
            raise UsageError(f"There is no run '{run_id}' in '{root}'. List the runs with: gymnast runs list")
        return run

    def exists(self) -> bool:
        """Whether the folder is a complete run: it has a config and a status."""
        try:
            return self.config_path.is_file() and self.status_path.is_file()
        except OSError:  # a folder we may not look into
            return False

    def config(self) -> dict[str, Any]:
        """The resolved config as it was saved."""
        try:
            config = read_json(self.config_path)
        except (OSError, ValueError) as error:
            raise GymnastError(f"The config of run {self.id} cannot be read ('{self.config_path}'): {error}") from error
        if isinstance(config, dict):
            return config
        return {}

    def status(self) -> Status:
        """The state of the run. A damaged status file reads as `failed`: one bad run must not hide the others."""
        try:
            raw = read_json(self.status_path)
            known = {key: value for key, value in raw.items() if key in FIELDS}
            if raw["state"] not in STATES or not all(isinstance(known[key], FIELDS[key][0]) for key in known):
                raise ValueError("not a status")
            return Status(**known)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            moment = self._age()
            reason = "status.json is missing or damaged"
            return Status("failed", created=moment, started=moment, heartbeat=moment, stop_reason=reason)

    def _age(self) -> str:
        with contextlib.suppress(OSError):
            return datetime.fromtimestamp(self.config_path.stat().st_mtime, UTC).isoformat(timespec="microseconds")
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="microseconds")

    def _write(self, status: Status) -> None:
        values = dataclasses.asdict(status)
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[key] = FIELDS[key][1]  # strict JSON has no NaN
        if values["stop_reason"]:
            values["stop_reason"] = redact(values["stop_reason"])  # the words of an error
        write_atomic(self.status_path, json.dumps(values, indent=1, allow_nan=False) + "\n")

    def update(self, **changes: Any) -> Status:
        """Change fields of the status and beat the heart. The caller decides how often; one costs about 0.1 ms."""
        status = dataclasses.replace(self.status(), **{"heartbeat": now(), **changes})
        try:
            self._write(status)
        except OSError as error:
            raise GymnastError(
                f"The status of run {self.id} cannot be written: {error}. The old one is intact."
            ) from error
        return status

    def begin(self, config: dict[str, Any], *, start: str, optimizer: bool = True) -> Status:
        """Start a further attempt (resume) at checkpoint `start`, owned by this process; take the lock first.

        A changed config replaces the saved one, which stays next to it, and the changes go into the lineage.
        """
        try:
            return self._begin(config, start, optimizer)
        except OSError as error:
            raise GymnastError(
                f"Run {self.id} cannot be taken up ('{self.folder}'): {error.strerror or error}. It is as it was; "
                "free some space or check the rights of the folder, then try again."
            ) from error

    def _begin(self, config: dict[str, Any], start: str, optimizer: bool) -> Status:
        self.point_last()
        attempt, old = self.status().attempt + 1, self.config()
        if config != old:
            kept = self.folder / f"config-{attempt - 1}.json"
            if not kept.exists():  # there already: this attempt was killed before while it began
                write_atomic(kept, json.dumps(old, indent=2, allow_nan=False) + "\n")
            write_atomic(self.config_path, json.dumps(config, indent=2, allow_nan=False) + "\n")
        before, after = leaves(old), leaves(config)
        keys = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
        changes = {key: [before.get(key), after.get(key)] for key in keys}
        lineage.add_attempt(self.folder, lineage.Attempt(attempt, start, changes, optimizer))
        return self.update(
            state="running", attempt=attempt, started=now(), ended=None, stop_reason=None, **this_process()
        )

    def config_of(self, attempt: int) -> dict[str, Any]:
        """The config an attempt ran under: the current one, or the copy kept when a later attempt changed it."""
        kept = [int(path.stem.partition("-")[2]) for path in self.folder.glob("config-*.json")]
        number = min((n for n in kept if n >= attempt), default=None)
        if number is None:
            path = self.config_path
        else:
            path = self.folder / f"config-{number}.json"
        try:
            found = read_json(path)
        except (OSError, ValueError) as error:
            raise GymnastError(f"The config of run {self.id} cannot be read ('{path}'): {error}") from error
        if isinstance(found, dict):
            return found
        return {}

    def finish(self, state: str, stop_reason: str, **changes: Any) -> Status:
        """End the attempt as `finished`, `interrupted` or `failed`, with the reason in words."""
        if state not in STATES[1:]:
            raise ValueError(f"a run ends as one of {', '.join(STATES[1:])}, not '{state}'")
        return self.update(state=state, stop_reason=stop_reason, ended=now(), **changes)

    def is_alive(self) -> bool:
        """Whether a process trains in this run now."""
        return is_alive(self.status())

    def shown_state(self) -> str:
        """The state for listings: as written, or `crashed` when it says `running` and the process is gone."""
        status = self.status()
        if status.state == "running" and not is_alive(status):
            return CRASHED
        return status.state

    def lock(self) -> RunLock:
        """Take the run for training; a UsageError names the process that already has it."""
        return RunLock(self.folder)

    def tags(self) -> list[str]:
        """The user's tags; in their own file, because others than the training process write them."""
        try:
            tags = read_json(self.folder / "tags.json")
        except (OSError, ValueError):
            return []
        if isinstance(tags, list):
            return [str(tag) for tag in tags]
        return []

    def set_tags(self, tags: Iterable[str]) -> None:
        """Replace all tags by these."""
        write_atomic(self.folder / "tags.json", json.dumps(sorted(set(tags))) + "\n")

    def point_last(self) -> None:
        """Let `@last` mean this run."""
        link = self.root / LAST
        temporary = self.root / f".{LAST}.{os.getpid()}-{threading.get_ident()}"
        try:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            temporary.symlink_to(self.id, target_is_directory=True)
        except (OSError, NotImplementedError):  # links are refused (Windows, some network and USB disks)
            write_atomic(link, self.id + "\n")
            return
        try:
            temporary.replace(link)
        except OSError:
            temporary.unlink()
            raise


def last_run(root: Path) -> Run | None:
    """The run `@last` points at, or None when it points nowhere (removed, never set)."""
    link = Path(root) / LAST
    try:
        if link.is_symlink():
            name = link.readlink().name
        else:
            name = link.read_text().strip()
    except (OSError, ValueError):
        return None
    run = Run(Path(root) / name)
    if is_id(name) and run.exists():
        return run
    return None


def make_root(root: Path, made: list[Path]) -> None:
    """Make the folder of runs; `made` gets what was not there, for the caller to take back."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir()
        except FileExistsError:
            if not folder.is_dir():  # another process may have made it meanwhile, and then it is not ours to remove
                raise
        else:
            made.append(folder)
    if not root.is_dir():
        raise NotADirectoryError(None, "it is not a folder", str(root))


def _make_folder(root: Path) -> Path:
    for _ in range(100):
        folder = root / new_id()
        try:
            folder.mkdir()  # exclusive: of two processes with the same id one gets it
        except FileExistsError:
            continue
        return folder
    raise UsageError(f"'{root}' holds so many runs that no free id was found. Move old runs elsewhere.")

"""Runs out of an archive that may be damaged or hostile: everything is checked before anything is kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.errors import UsageError
from gymnast.runs import archive_files, index
from gymnast.runs.archive import FORMAT, MANIFEST, promise
from gymnast.runs.files import now, write_atomic
from gymnast.runs.labels import is_tag
from gymnast.runs.process import process_start
from gymnast.runs.reading import parse_json, read_json
from gymnast.runs.status import STATES
from gymnast.runs.store import Run, is_id, make_root, new_id

MAX_MEMBERS = 20_000
MAX_MANIFEST = 8 << 20
MAX_TEXT = 64 << 20
"""Bytes of one JSON or text file other than metrics."""
MAX_TOTAL = 64 << 30
MAX_RATIO = 200
"""Times a member may grow; text reaches 30, deflate's bombs 1000."""
ORIGIN = "imported.json"
_CHUNK = 1 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, OverflowError)


@dataclass(frozen=True)
class Imported:
    """What became of one run of an archive."""

    was: str
    run: Run
    already_here: bool


def import_runs(path: Path, root: Path) -> list[Imported]:
    """Bring the runs of an archive into `root`: all of them or, with a sentence that says why, none."""
    made: list[Path] = []
    done: list[Imported] = []
    try:
        with _opened(path) as archive:
            entries = _manifest(archive, path)
            _check_room(root, entries, path)
            waiting = []
            for entry in entries:
                if known := _already_here(root, entry):
                    done.append(Imported(entry["id"], known, True))
                else:
                    waiting.append(entry)
            if waiting:
                make_root(root, made)
                done += _bring_in(archive, path, waiting, root)
    except OSError as error:
        _unmake(made)
        raise UsageError(f"'{path}' cannot be imported into '{root}': {error.strerror or error}.") from error
    except BaseException:
        _unmake(made)
        raise
    order = [entry["id"] for entry in entries]
    if (root / index.FILE).exists():
        for one in done:
            index.upsert(one.run)
    else:
        index.rebuild(root)
    return sorted(done, key=lambda one: order.index(one.was))


def _unmake(made: list[Path]) -> None:
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir()


# --- the archive --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    if not path.is_file():
        raise UsageError(f"There is no file '{path}'.")
    try:
        archive = zipfile.ZipFile(path)
    except (*_DAMAGE, KeyError, IndexError):
        raise _refused(path, "it is not a zip file, or only a part of one") from None
    with archive:
        yield archive


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(f"'{path}' is not imported: {why}. Nothing was written.")


def _manifest(archive: zipfile.ZipFile, path: Path) -> list[dict[str, Any]]:
    """What the archive promises, checked against what it holds; before a byte of a run is unpacked."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise _refused(path, f"it holds {len(members):,} files, more than {MAX_MEMBERS:,}")
    if sum(member.compress_size for member in members) > path.stat().st_size:
        raise _refused(path, "its files overlap, so that it would grow without end")
    seen: dict[str, str] = {}
    for member in members:
        _check_member(member, seen, path)
    names = set(seen.values())
    if MANIFEST not in names:
        raise _refused(path, f"it has no {MANIFEST}, so it was not made by 'gymnast runs export'")
    if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
        raise _refused(path, f"its {MANIFEST} is larger than {MAX_MANIFEST >> 20} MiB")
    try:
        content = parse_json(archive.read(MANIFEST))
    except _DAMAGE:
        raise _refused(path, f"its {MANIFEST} is damaged") from None
    entries = _entries(content, path)
    promised = {f"{entry['id']}/{name}": file["size"] for entry in entries for name, file in entry["files"].items()}
    if promised.keys() != names - {MANIFEST}:
        odd = min(promised.keys() ^ (names - {MANIFEST}))
        raise _refused(path, f"its list of files does not fit its files ({odd!r})")
    for member in members:
        if member.filename != MANIFEST and member.file_size != promised[member.filename]:
            raise _refused(path, f"{member.filename} has {member.file_size:,} bytes, not the promised number")
    return entries


def _check_member(member: zipfile.ZipInfo, seen: dict[str, str], path: Path) -> None:
    name = member.filename
    run_id, _, rest = name.partition("/")
    if name != member.orig_filename or (name != MANIFEST and not (is_id(run_id) and archive_files.is_allowed(rest))):
        raise _refused(path, f"it holds {member.orig_filename!r}, which is not the name of a file of a run")
    if name.lower() in seen:  # some disks do not tell capitals apart
        raise _refused(path, f"it holds {name!r} twice")
    seen[name.lower()] = name
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or member.is_dir():
        raise _refused(path, f"{name!r} is a link or a special file")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
        raise _refused(path, f"{name!r} is encrypted or in an unusual compression")
    if member.file_size > max(MAX_RATIO * member.compress_size, 1 << 16):
        raise _refused(path, f"{name!r} would grow from {member.compress_size:,} to {member.file_size:,} bytes")
    if archive_files.is_text(rest) and member.file_size > MAX_TEXT:
        raise _refused(path, f"{name!r} is larger than {MAX_TEXT >> 20} MiB")


def _entries(content: Any, path: Path) -> list[dict[str, Any]]:
    """The runs of a manifest in its exact form."""
    try:
        if content["format"] != FORMAT:
            raise _refused(path, f"it has format {content['format']!r}, this gymnast reads {FORMAT}: update gymnast")
        entries: list[dict[str, Any]] = content["runs"]
        ids = [entry["id"] for entry in entries]
        if not ids or len(set(ids)) != len(ids) or not all(is_id(name) for name in ids):
            raise ValueError("ids")
        for entry in entries:
            for name, file in entry["files"].items():
                size, digest = file["size"], file["sha256"]
                if (
                    type(size) is not int
                    or size < 0
                    or not _HASH.fullmatch(digest)
                    or not archive_files.is_allowed(name)
                ):
                    raise ValueError(name)
            missing = [name for name in archive_files.NEEDED if name not in entry["files"]]
            if missing:
                raise _refused(path, f"run {entry['id']} has no {missing[0]}")
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _refused(path, f"its {MANIFEST} is damaged") from None
    return entries


def _check_room(root: Path, entries: list[dict[str, Any]], path: Path) -> None:
    total = sum(file["size"] for entry in entries for file in entry["files"].values())
    if total > MAX_TOTAL:
        raise _refused(path, f"it would need {total >> 30} GiB, more than {MAX_TOTAL >> 30}")
    there = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if total > free:
        raise _refused(path, f"it needs {total >> 20:,} MiB and '{there}' has {free >> 20:,} MiB left")


# --- the runs -----------------------------------------------------------------------------------------------


def _digest(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _already_here(root: Path, entry: dict[str, Any]) -> Run | None:
    """The run that was imported from the same content before, or that this archive was made of."""
    digest = _digest(entry)
    for path in root.glob(f"*/{ORIGIN}"):
        run = Run(path.parent)
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            if is_id(run.id) and run.exists() and read_json(path)["digest"] == digest:
                return run
    run = Run(root / entry["id"])
    with contextlib.suppress(OSError, UsageError):
        if run.exists() and all(promise(run, name) == file for name, file in entry["files"].items()):
            return run
    return None


def _bring_in(archive: zipfile.ZipFile, path: Path, entries: list[dict[str, Any]], root: Path) -> list[Imported]:
    """Unpack next to the runs, check, then move into place."""
    work = root / f".import-{os.getpid()}"
    placed: list[Run] = []
    _sweep(root)
    try:
        work.mkdir()
        checked = []
        for entry in entries:
            folder = work / entry["id"]
            _unpack(archive, path, entry, folder)
            _settle(folder, entry, path)
            checked.append((entry, folder))
        done = []
        for entry, folder in checked:
            placed.append(_place(folder, root, entry["id"]))
            done.append(Imported(entry["id"], placed[-1], False))
        return done
    except BaseException:
        for run in placed:
            shutil.rmtree(run.folder, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sweep(root: Path) -> None:
    """Remove what killed imports left behind."""
    for old in root.glob(".import-*"):
        pid = old.name.rpartition("-")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or process_start(int(pid)) is None):
            shutil.rmtree(old, ignore_errors=True)


def _unpack(archive: zipfile.ZipFile, path: Path, entry: dict[str, Any], folder: Path) -> None:
    for part in ("", "checkpoints", "videos"):
        (folder / part).mkdir()
    for name, promised in entry["files"].items():
        target, member = folder / name, f"{entry['id']}/{name}"
        target.parent.mkdir(exist_ok=True)
        digest, room = hashlib.sha256(), promised["size"]
        try:
            with archive.open(member) as source, target.open("xb") as file:
                while chunk := source.read(_CHUNK):
                    room -= len(chunk)
                    if room < 0:
                        raise _refused(path, f"{member!r} is larger than promised")
                    digest.update(chunk)
                    file.write(chunk)
        except _DAMAGE:
            raise _refused(path, f"{member!r} is damaged") from None
        if room or digest.hexdigest() != promised["sha256"]:
            raise _refused(path, f"{member!r} is damaged: its content does not match its checksum")


def _settle(folder: Path, entry: dict[str, Any], path: Path) -> None:
    """Check what the files say and give the run an end."""
    config, status = (_json(folder, name, path, dict) for name in archive_files.NEEDED)
    sections = [config.get(name) if isinstance(config.get(name), dict) else {} for name in ("env", "algo")]
    shown = [config.get("name", ""), *(section.get("id", "") for section in sections)]
    if not all(isinstance(text, str) and text.isprintable() for text in shown):
        raise _refused(path, f"config.json of run {entry['id']} is damaged: its names are not plain text")
    if status.get("state") not in STATES:
        raise _refused(path, f"status.json of run {entry['id']} is damaged: it names no state")
    if status["state"] == "running":  # its process is elsewhere, or gone
        status |= {"state": "interrupted", "ended": status.get("heartbeat"), "stop_reason": "exported while running"}
    if not str(status.get("stop_reason") or "").isprintable():
        raise _refused(path, f"status.json of run {entry['id']} is damaged: its stop_reason is not plain text")
    write_atomic(folder / archive_files.STATUS, json.dumps(status, indent=1) + "\n")
    if archive_files.TAGS in entry["files"]:
        tags = _json(folder, archive_files.TAGS, path, list)
        if not all(isinstance(tag, str) and is_tag(tag) for tag in tags):
            raise _refused(path, f"tags.json of run {entry['id']} is damaged")
    write_atomic(folder / ORIGIN, json.dumps({"id": entry["id"], "digest": _digest(entry), "imported": now()}) + "\n")


def _json(folder: Path, name: str, path: Path, kind: type) -> Any:
    try:
        content = read_json(folder / name)
    except ValueError as error:
        raise _refused(path, f"{name} of run {folder.name} is not JSON ({error})") from None
    if not isinstance(content, kind):
        raise _refused(path, f"{name} of run {folder.name} is damaged: it is no {'list' if kind is list else 'object'}")
    return content


def _place(folder: Path, root: Path, run_id: str) -> Run:
    """Move a checked folder among the runs, under its own id or, when that is taken, a fresh one."""
    for name in (run_id, *(new_id() for _ in range(100))):
        target = root / name
        if not target.exists() and not target.is_symlink():
            folder.rename(target)
            return Run(target)
    raise UsageError(f"'{root}' holds so many runs that no free id was found. Move old runs elsewhere.")

"""What of a run may travel: file names by allow-list, texts without secrets, nothing through links."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from gymnast.errors import CheckpointError, UsageError
from gymnast.redaction import redact, redact_tree
from gymnast.runs import bulk, checkpoint
from gymnast.runs.manifest import FILE as MANIFEST
from gymnast.runs.reading import parse_json
from gymnast.runs.store import Run

CONFIG, STATUS, TAGS, NOTE = "config.json", "status.json", "tags.json", "note.txt"
TREES = (CONFIG, STATUS, TAGS, "lineage.json", "plan.json")
"""JSON files; small, cleaned of secrets key by key. So are the configs of earlier attempts, `config-1.json` …"""
TEXTS = (NOTE, "log.txt")
PLAIN = (*TREES, *TEXTS, "metrics.jsonl", "trace.jsonl")
NEEDED = (CONFIG, STATUS)
_EARLIER = r"config-[1-9][0-9]{0,5}\.json"
_TREE = re.compile("|".join(re.escape(name) for name in TREES) + f"|{_EARLIER}")
_ALLOWED = re.compile(
    "|".join(re.escape(name) for name in PLAIN)
    + f"|{_EARLIER}"
    + r"|checkpoints/(?:best|last)"
    + r"|checkpoints/step=(?:0|[1-9][0-9]{0,17})/(?:policy\.safetensors|state\.safetensors|manifest\.json)"
    + r"|bulk/[0-9]{5,12}\.bin"
    + r"|videos/[A-Za-z0-9][A-Za-z0-9=_.-]{0,99}\.(?:mp4|webm|gif)"
)


def is_allowed(name: str) -> bool:
    """Whether a file of this name, relative to the run's folder, may be in an archive."""
    return _ALLOWED.fullmatch(name) is not None and ".." not in name


def is_text(name: str) -> bool:
    """Whether a file is a small text that is read whole and cleaned."""
    return name in TEXTS or _TREE.fullmatch(name) is not None


def files_of(run: Run, *, all_checkpoints: bool = False, videos: bool = False) -> Iterator[str]:
    """Names of the files of a run that go into its archive, config and status first."""
    names = [*PLAIN, *sorted(path.name for path in run.folder.glob("config-*.json"))]
    names += [f"checkpoints/{pointer}" for pointer in checkpoint.POINTERS]
    for step in _checkpoints(run, all_checkpoints):
        names += [f"checkpoints/{step}/{part}" for part in (MANIFEST, checkpoint.POLICY, checkpoint.STATE)]
    names += sorted(f"{bulk.FOLDER}/{name}" for name in _bulk_files(run, all_checkpoints))
    if videos:
        names += sorted(f"videos/{path.name}" for path in run.videos.glob("*.*"))
    for name in names:
        if is_allowed(name) and _is_plain(run.folder, name):
            yield name


def _checkpoints(run: Run, everything: bool) -> list[str]:
    known = [f"step={step}" for step in checkpoint.steps(run.folder)]
    pointed = [checkpoint.read_pointer(run.folder, pointer) for pointer in checkpoint.POINTERS]
    chosen = [name for name in known if everything or name in pointed]
    return chosen or known[-1:]


def _bulk_files(run: Run, everything: bool) -> set[str]:
    """What the checkpoints that travel refer to."""
    needed: set[str] = set()
    for step in _checkpoints(run, everything):
        with contextlib.suppress(CheckpointError):  # a damaged one travels as it is
            needed |= bulk.files_of(checkpoint.read_manifest(run.checkpoints / step).bulk.values())
    return needed


def _is_plain(folder: Path, name: str) -> bool:
    """A regular file reached without a link: a link could lead to any file of this machine."""
    path = folder
    parts = name.split("/")
    try:
        for part in parts[:-1]:
            path /= part
            if not stat.S_ISDIR(path.lstat().st_mode):
                return False
        return stat.S_ISREG((path / parts[-1]).lstat().st_mode)
    except OSError:
        return False


def cleaned(run: Run, name: str) -> bytes | None:
    """The content of a small text without secrets; None for files that go as they are."""
    if not is_text(name):
        return None
    raw = read(run, name)
    text = raw.decode(errors="replace")
    if name not in TEXTS:
        try:
            return (json.dumps(redact_tree(parse_json(raw)), indent=1) + "\n").encode()
        except ValueError:
            raise UsageError(
                f"'{run.folder / name}' is damaged: it is not JSON. Run {run.id} cannot be exported."
            ) from None
    return redact(text).encode()


def read(run: Run, name: str) -> bytes:
    """A whole file, never through a link."""
    descriptor = os.open(run.folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        return file.read()

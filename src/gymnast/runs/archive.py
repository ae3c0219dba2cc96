"""Runs in one file, to give away or to keep: a zip whose first member lists every other with size and SHA-256.

`<id>/<file>` with the names of `archive_files`, and nothing else. Texts are cleaned of secrets on the way in.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gymnast.errors import UsageError
from gymnast.runs.archive_files import cleaned, files_of
from gymnast.runs.files import now
from gymnast.runs.housekeeping import refuse_live
from gymnast.runs.store import Run, is_id

FORMAT = 1
MANIFEST = "gymnast-runs.json"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Packed:
    """What went into an archive."""

    path: Path
    runs: tuple[str, ...]
    files: int
    size: int


def export_runs(
    runs: Sequence[Run], path: Path, *, all_checkpoints: bool = False, videos: bool = False, replace: bool = False
) -> Packed:
    """Write runs to one archive, whole or not at all."""
    runs = list(dict.fromkeys(runs))
    if len({run.id for run in runs}) != len(runs):
        raise UsageError("Two of these runs have the same id: export them one by one.")
    if path.exists() and not replace:
        raise UsageError(f"'{path}' is there already. Choose another name with -o, or replace it with --force.")
    for run in runs:
        refuse_live(run)
        if not is_id(run.id):
            raise UsageError(f"'{run.folder}' has no run id as its name, so it cannot be exported.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        entries = [_entry(run, all_checkpoints, videos) for run in runs]
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            manifest = {"format": FORMAT, "gymnast": _version(), "created": now(), "runs": entries}
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1, allow_nan=False) + "\n")
            for run, entry in zip(runs, entries, strict=True):
                for name in entry["files"]:
                    _add(archive, run, name, entry["files"][name])
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"The archive '{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return Packed(path, tuple(run.id for run in runs), sum(len(e["files"]) for e in entries), path.stat().st_size)


def _entry(run: Run, all_checkpoints: bool, videos: bool) -> dict[str, Any]:
    names = files_of(run, all_checkpoints=all_checkpoints, videos=videos)
    return {"id": run.id, "files": {name: promise(run, name) for name in names}}


def promise(run: Run, name: str) -> dict[str, Any]:
    """Size and hash of a file as it travels."""
    if (text := cleaned(run, name)) is not None:
        return {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    digest, size = hashlib.sha256(), 0
    with (run.folder / name).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return {"size": size, "sha256": digest.hexdigest()}


def _add(archive: zipfile.ZipFile, run: Run, name: str, promised: dict[str, Any]) -> None:
    info = zipfile.ZipInfo(f"{run.id}/{name}")  # a fixed date, and no rights or owners of this machine
    info.external_attr = 0o644 << 16
    # Weights and videos do not get smaller; an honest archive has no member that shrank a thousandfold.
    info.compress_type = zipfile.ZIP_STORED if name.endswith((".safetensors", ".mp4")) else zipfile.ZIP_DEFLATED
    digest = hashlib.sha256()
    text = cleaned(run, name)
    with archive.open(info, "w", force_zip64=promised["size"] > 1 << 30) as target:
        if text is not None:
            digest.update(text)
            target.write(text)
        else:
            with (run.folder / name).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
    if digest.hexdigest() != promised["sha256"]:
        raise UsageError(f"Run {run.id} changed while it was exported ({name}). Try again when nothing writes to it.")


def _version() -> str:
    try:
        return version("gymnast")
    except PackageNotFoundError:
        return "source"

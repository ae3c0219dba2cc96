"""Runs whose files were changed by somebody who knows the format: hashes and seals are right, the content is not."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load, save

from gymnast.runs.checkpoint import MANIFEST, POLICY
from gymnast.runs.manifest import sealed
from gymnast.runs.store import Run


def copy_of(run: Run, root: Path) -> Run:
    """The run's folder in another store."""
    return Run(Path(shutil.copytree(run.folder, root / run.id)))


def forge_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest of a checkpoint and seal it again."""
    content = json.loads((folder / MANIFEST).read_text())
    del content["sha256"]
    change(content)
    (folder / MANIFEST).write_bytes(sealed(**content))


def forge_file(folder: Path, name: str, raw: bytes) -> None:
    """Replace a tensor file, and its size and hash in the manifest."""
    (folder / name).write_bytes(raw)
    entry = {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
    forge_manifest(folder, lambda content: content["files"].update({name: entry}))


def forge_weights(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the policy's tensors."""
    tensors = load((folder / POLICY).read_bytes())
    change(tensors)
    forge_file(folder, POLICY, save(tensors))

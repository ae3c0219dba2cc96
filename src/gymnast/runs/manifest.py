"""The manifest of a checkpoint: what it says about itself, sealed with a hash, and read as if anybody had written it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnast.errors import CheckpointError
from gymnast.runs.bulk import Series
from gymnast.runs.reading import parse_json
from gymnast.runs.tree import decode

FORMAT = 1
FILE = "manifest.json"
SEAL = ',\n"sha256": "%s"\n}\n'
NUMBERS = (int, float)


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says about itself, readable without torch."""

    step: int
    created: str
    metrics: dict[str, Any]
    counters: dict[str, Any]
    versions: dict[str, str]
    files: dict[str, dict[str, Any]]
    """sha256 and size of each tensor file."""
    policy: list[str]
    """Names of the policy's tensors in their order, which the tensor file does not keep."""
    tree: Any
    """The state with placeholders where the tensors were."""
    bulk: dict[str, Series] = field(default_factory=dict)
    """Data in files of their own, by name."""


def sealed(**content: Any) -> bytes:
    """One JSON object, a line per key, whose last key is the hash of everything before it."""
    lines = (f'"{key}": {json.dumps(value, allow_nan=False)}' for key, value in content.items())
    body = "{\n" + ",\n".join(lines)
    return (body + SEAL % hashlib.sha256(body.encode()).hexdigest()).encode()


def parse(raw: bytes, path: Path) -> Manifest:
    """The manifest that `sealed` wrote; `path` names it in errors."""
    body = raw[: -len(SEAL % ("0" * 64))]
    if raw[len(body) :] != (SEAL % hashlib.sha256(body).hexdigest()).encode():
        raise damaged(path, "its content does not match its checksum")
    try:
        content = parse_json(raw, any_text=True)
        if content["format"] != FORMAT:
            raise CheckpointError(
                f"Checkpoint '{path.parent}' has format {content['format']}, this gymnast reads format {FORMAT}. "
                "Use the version of gymnast that wrote it (see 'versions' in its manifest.json)."
            )
        manifest = Manifest(
            step=content["step"],
            created=content["created"],
            metrics=decode(content["metrics"], {}),
            counters=decode(content["counters"], {}),
            versions=content["versions"],
            files=content["files"],
            policy=content["policy"],
            tree=content["state"],
            bulk={name: Series.from_json(data) for name, data in content.get("bulk", {}).items()},
        )
        _check_types(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, f"it cannot be read ({error!r})") from error
    return manifest


def _check_types(manifest: Manifest) -> None:
    """Refuse other types than a manifest has: whoever forged it has sealed it too."""
    right = {
        "step": is_count(manifest.step),
        "created": type(manifest.created) is str,
        "metrics": _all(manifest.metrics, lambda value: value is None or type(value) in (bool, str, *NUMBERS)),
        "counters": _all(manifest.counters, lambda value: is_count(value) or (type(value) is float and value >= 0)),
        "versions": _all(manifest.versions, lambda value: type(value) is str),
        "files": _all(manifest.files, lambda value: is_count(value["size"]) and type(value["sha256"]) is str),
        "policy": isinstance(manifest.policy, list) and all(type(name) is str for name in manifest.policy),
    }
    if wrong := [key for key, fits in right.items() if not fits]:
        raise ValueError(f"{wrong[0]} is not what it should be")


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that counts something."""
    return type(value) is int and 0 <= value < 2**63


def _all(data: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(data, dict) and all(map(fits, data.values()))


def damaged(path: Path, what: str) -> CheckpointError:
    """The error for a file of a checkpoint that cannot be used."""
    return CheckpointError(
        f"The checkpoint file '{path}' is damaged: {what}. Use another checkpoint of the run, "
        "for example RUN/@best, or resume, which takes the newest whole one."
    )

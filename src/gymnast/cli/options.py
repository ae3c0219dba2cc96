"""Options and small pieces that several commands share."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

RunsDir = Annotated[
    Path | None, typer.Option("--runs-dir", "-f", help="Folder that holds the runs (default: $GYMNAST_HOME or ./runs).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change, e.g. algo.clip_range=0.1.", show_default=False),
]


def echo_json(data: Any) -> None:
    """One JSON document on stdout; strict, so NaN becomes null."""
    typer.echo(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data

"""`gymnast config list`: the presets, filtered by words."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.options import AsJson, echo, echo_json
from gymnast.errors import UsageError
from gymnast.service.configs import list_configs as find_configs
from gymnast.service.configs import similar_configs
from gymnast.service.plain import plain


def list_configs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    as_json: AsJson = False,
) -> None:
    """List all presets, shipped and from ./configs."""
    entries = find_configs(words or [])
    if as_json:
        echo_json(plain(entries))
        return
    for entry in entries:
        echo(entry.config)
    if not entries:
        text = " ".join(words or [])
        raise UsageError(f"No config matches {text!r}.{similar_configs(text)}")

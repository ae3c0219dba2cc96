"""Objects that a run was made from: which ones it needs again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnast import own_code
from gymnast.runs.store import Run

KEYS = ("env.id", "env.wrappers", "policy.id", "policy.encoder")
"""Keys of a config that may name objects."""


def check_objects(run: Run, given: Mapping[str, Any]) -> None:
    """Refuse a run that was made from objects which are neither given nor those of this program."""
    config = run.config()
    open_keys = {section: dict(config.get(section) or {}) for section in ("env", "policy")}
    for key in KEYS:
        if key in given:
            section, _, name = key.partition(".")
            open_keys[section].pop(name, None)
    own_code.check_run({**config, **open_keys}, run.folder)

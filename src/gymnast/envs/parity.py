"""Which EnvPool tasks are the same env as Gymnasium's: the tested table that `auto` reads (`benchmarks/envpool_parity.py`)."""

from __future__ import annotations

import functools
import importlib.metadata
import json
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from gymnast.config.schema import EnvConfig
from gymnast.envs.registry import env_spec

TABLE = "envpool_parity.json"


@dataclass(frozen=True)
class ParityRow:
    """One env of Gymnasium and the EnvPool task for it."""

    id: str
    kwargs: dict[str, Any]
    """Arguments of the env, registered ones included."""
    task: str
    task_kwargs: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    """Arguments that may be spelled out: they change nothing."""
    action_masks: bool = False
    """Whether Gymnasium's env gives action masks, which EnvPool never does."""
    verdict: str = "not tested"
    reasons: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return self.verdict == "pass"


@dataclass(frozen=True)
class ParityTable:
    """All rows and the versions they were tested with."""

    envpool: str
    gymnasium: str
    rows: list[ParityRow]

    def find(self, config: EnvConfig) -> ParityRow | None:
        """The row of this very env: same id, same arguments."""
        env_id = config.id.rpartition(":")[2]
        rows = [row for row in self.rows if row.id == env_id]
        if not rows:
            return None
        given = {**env_spec(config.id, config.module).kwargs, **config.kwargs}
        for row in rows:
            if {key: value for key, value in given.items() if (key, value) not in row.defaults.items()} == row.kwargs:
                return row
        return None


@functools.cache
def load() -> ParityTable:
    """The table that ships with gymnast."""
    text = (resources.files("gymnast") / "presets" / TABLE).read_text(encoding="utf-8")
    content = json.loads(text)
    rows = [ParityRow(**row) for row in content["rows"]]
    return ParityTable(content["versions"]["envpool"], content["versions"]["gymnasium"], rows)


def installed_version() -> str | None:
    """EnvPool's version; None when it is not installed. Does not import it, which takes a second."""
    try:
        return importlib.metadata.version("envpool")
    except importlib.metadata.PackageNotFoundError:
        return None

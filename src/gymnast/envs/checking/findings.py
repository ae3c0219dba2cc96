"""What a check found: which promise is broken, where in the env's source, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gymnast.envs.checking.kinds import KINDS
from gymnast.envs.checking.source import Place


@dataclass(frozen=True)
class Finding:
    """One promise of the Gymnasium API that an env breaks."""

    id: str
    what: str
    place: Place | None = None

    @property
    def is_fault(self) -> bool:
        """Whether it must be fixed; otherwise it is a warning."""
        return KINDS[self.id].is_fault

    @property
    def advice(self) -> str:
        """What its author can do about it."""
        return KINDS[self.id].advice

    def as_json(self) -> dict[str, Any]:
        """One finding as plain data for `--json`."""
        return {
            "id": self.id,
            "severity": "fault" if self.is_fault else "warning",
            "what": self.what,
            "advice": self.advice,
            "file": self.place.file if self.place else None,
            "line": self.place.line if self.place else None,
        }


@dataclass
class Findings:
    """All findings about one env, each kind once: where it shows first."""

    _by_id: dict[str, Finding] = field(default_factory=dict)

    def add(self, kind: str, what: str, place: Place | None) -> None:
        """Keep it unless this kind was found before."""
        assert kind in KINDS, kind
        self._by_id.setdefault(kind, Finding(kind, what, place))

    def __contains__(self, kind: str) -> bool:
        return kind in self._by_id

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._by_id.values(), key=lambda finding: not finding.is_fault))

    @property
    def faults(self) -> list[Finding]:
        """What must be fixed."""
        return [finding for finding in self if finding.is_fault]

    @property
    def warnings(self) -> list[Finding]:
        """What may be meant so."""
        return [finding for finding in self if not finding.is_fault]


class UnplayableError(Exception):
    """The env cannot be played any further: later checks would only say the same again."""

"""All checks of one env, in the order in which a fault of one explains those of the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gymnast.config.schema import EnvConfig
from gymnast.envs.checking.ending import check_close, check_ends, check_render
from gymnast.envs.checking.findings import Findings, UnplayableError
from gymnast.envs.checking.gymnasium_check import check_with_gymnasium
from gymnast.envs.checking.playing import check_making, check_reset, check_steps
from gymnast.envs.checking.repeating import check_repeats, check_resume
from gymnast.envs.checking.subject import Subject

CHECKS: tuple[Callable[[Subject], None], ...] = (
    check_making,
    check_reset,
    check_steps,
    check_repeats,
    check_ends,
    check_render,
    check_close,
)


@dataclass(frozen=True)
class Report:
    """What is wrong with an env."""

    env_id: str
    env_class: str
    findings: Findings
    gymnasium: str
    """What Gymnasium's own check said."""

    @property
    def ok(self) -> bool:
        """Whether nothing must be fixed; warnings are allowed."""
        return not self.findings.faults

    def as_json(self) -> dict[str, Any]:
        """Everything found, as plain data for `--json`."""
        return {
            "env": self.env_id,
            "class": self.env_class,
            "ok": self.ok,
            "findings": [finding.as_json() for finding in self.findings],
            "gymnasium": self.gymnasium,
        }


def check_env(config: EnvConfig) -> Report:
    """Everything that can be found out about an env without training on it."""
    subject = Subject(config)
    said = "not run: the env cannot be played"
    try:
        for check in CHECKS:
            check(subject)
        if not subject.findings.faults:
            check_resume(subject)
        said = check_with_gymnasium(subject)
    except UnplayableError:
        pass
    kind = subject.source.kind
    return Report(config.id, f"{kind.__module__}.{kind.__qualname__}", subject.findings, said)

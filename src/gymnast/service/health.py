"""Alerts of a run, and what is the matter with it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from gymnast.metrics.alerts.alert import Alert
from gymnast.metrics.alerts.watch import replay
from gymnast.metrics.diagnosis.diagnosis import Diagnosis, diagnose
from gymnast.runs.compare import rows_of
from gymnast.runs.store import Run
from gymnast.runs.trust import ForeignCodeError, usable


def alerts_of(run: Run) -> list[Alert]:
    """Every alert of a run so far, sorted by id. They are not saved: the rules read the rows again."""
    return replay(run.config(), rows_of(run) or (), actions=run.status().choices).alerts


def diagnosis_of(run: Run, tried: Sequence[Run] = ()) -> Diagnosis:
    """Verdict, evidence, causes and the next experiment; settings of the runs in `tried` are not suggested again."""
    saved = None
    with contextlib.suppress(ForeignCodeError):  # read as data alone
        saved = usable(run, playing=False)
    configs = [other.config() for other in tried]
    status, rows = run.status(), rows_of(run) or ()
    return diagnose(
        run.id,
        run.config(),
        rows,
        best=status.best_return,
        actions=status.choices,
        tried=configs,
        saved=saved,
        failure=status.stop_reason if status.state == "failed" else None,
        reference=run.reference,
    )

"""Routes about curves: metrics of runs, bands over seeds, and runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from gymnast.errors import UsageError
from gymnast.runs.store import Run
from gymnast.service.compare import group_curves, group_runs, side_by_side
from gymnast.service.metrics import DEFAULT_AXIS, read_series
from gymnast.service.runs import find_runs
from gymnast.studio.answers import answer, number, words
from gymnast.studio.names import Names

DEFAULT_POINTS = 800
MOST_POINTS = 20_000
MOST_RUNS = 200


def routes(root: Path, known: Names) -> list[Route]:
    """All of them, for the runs in `root`."""

    def asked(request: Request) -> list[Run]:
        references = words(request, "run")
        if not references:
            raise UsageError("Say which runs: run=ID.")
        if len(references) > MOST_RUNS:
            raise UsageError(f"Up to {MOST_RUNS} runs at once.")
        return find_runs(references, root, paths=False)

    def curves(request: Request) -> Any:
        points = number(request, "points", DEFAULT_POINTS, most=MOST_POINTS)
        metrics, axis = request.query_params.getlist("metric"), _axis(request)
        return [one for run in asked(request) for one in read_series(run, metrics, axis=axis, points=points or None)]

    def bands(request: Request) -> Any:
        metric = request.query_params.get("metric", "rollout/return_mean")
        return group_curves(asked(request), metric, axis=_axis(request))

    def names(request: Request) -> Any:
        return list(dict.fromkeys(name for run in asked(request) for name in known.of(run)))

    def compared(request: Request) -> Any:
        runs = asked(request)
        together = side_by_side(runs) if len(runs) > 1 else None
        return {"side_by_side": together, "groups": group_runs(runs)}

    return [
        Route("/api/curves", answer(curves)),
        Route("/api/bands", answer(bands)),
        Route("/api/metric-names", answer(names)),
        Route("/api/compare", answer(compared)),
    ]


def _axis(request: Request) -> str:
    return request.query_params.get("axis", DEFAULT_AXIS)

"""Routes that start, continue and stop trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from gymnast.errors import UsageError
from gymnast.service.processes import stop
from gymnast.studio.answers import change
from gymnast.studio.jobs import Jobs
from gymnast.studio.runs import named


def routes(root: Path, jobs: Jobs) -> list[Route]:
    """All of them, for the runs in `root`."""

    def begin(request: Request, body: dict[str, Any]) -> Any:
        return {"run": jobs.train(["--", reference_in(body), *overrides_in(body)])}

    def go_on(request: Request, body: dict[str, Any]) -> Any:
        run = named(root, request)
        steps = body.get("env_steps")
        given: list[str] = []
        if steps is not None:
            if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
                raise UsageError("env_steps is a whole number of steps.")
            given = ["--env-steps", str(steps)]
        return {"run": jobs.resume(run.id, [*given, "--", run.id, *overrides_in(body)])}

    def end(request: Request, body: dict[str, Any]) -> Any:
        return stop(named(root, request))

    return [
        Route("/api/train", change(begin), methods=["POST"]),
        Route("/api/runs/{run}/resume", change(go_on), methods=["POST"]),
        Route("/api/runs/{run}/stop", change(end), methods=["POST"]),
    ]


def reference_in(body: dict[str, Any]) -> str:
    """The config that a request names."""
    reference = body.get("reference")
    if not isinstance(reference, str) or not reference.strip():
        raise UsageError("Say what to train: a config such as CartPole-v1:ppo.")
    return reference.strip()


def overrides_in(body: dict[str, Any]) -> list[str]:
    """Settings `key=value`. They come after `--`, so none of them is an option."""
    overrides = body.get("overrides", [])
    if not isinstance(overrides, list) or not all(isinstance(one, str) and "=" in one for one in overrides):
        raise UsageError("overrides is a list of settings such as algo.gamma=0.98.")
    return overrides

"""Routes of the inspector: episodes that a process of its own rolls out, once for each request."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

from gymnast.errors import UsageError
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run
from gymnast.studio.answers import answer, change, problem
from gymnast.studio.jobs import Job, Jobs
from gymnast.studio.runs import named, own_file

FOLDER = "traces"
FILE = "trace.json"
SERVED = re.compile(r"trace\.json|episode\.parquet|filters\.png|[a-z0-9_]{1,40}\.mp4")
KEY = re.compile(r"[0-9a-f]{16}")
FORCED = re.compile(r"(\d+):(-?\d+)")
STEPS = re.compile(r"step (\d+)")
VERSION = 1
"""Other versions roll an episode out again."""


class Traces:
    """Episodes that are there or on their way."""

    def __init__(self, root: Path, jobs: Jobs) -> None:
        self._root, self._jobs = root, jobs
        self._running: dict[str, Job] = {}
        self._lock = threading.Lock()

    def ask(self, run: Run, body: dict[str, Any]) -> dict[str, Any]:
        """Have an episode rolled out, unless that was done before."""
        _, checkpoint = resolve_checkpoint(self._root, f"{run.id}/{_checkpoint(body)}", paths=False)
        arguments = _arguments(body)
        words = json.dumps([VERSION, checkpoint, arguments])
        key = hashlib.sha256(words.encode()).hexdigest()[:16]
        with self._lock:
            job = self._running.get(f"{run.id}/{key}")
            ended = job is None or job.child.exit_code() is not None
            if ended and own_file(self._folder(run, key) / FILE) is None:
                where = ["--runs-dir", str(self._root), "--output", str(self._folder(run, key))]
                started = ["trace", *arguments, *where, "--", f"{run.id}/{checkpoint}"]
                self._running[f"{run.id}/{key}"] = self._jobs.start(started)
        return self.state(run, key)

    def state(self, run: Run, key: str) -> dict[str, Any]:
        """Whether an episode is done, and how far it is."""
        if not KEY.fullmatch(key):
            raise UsageError("There is no such episode.")
        if own_file(self._folder(run, key) / FILE) is not None:
            return {"key": key, "state": "done"}
        job = self._running.get(f"{run.id}/{key}")
        if job is None:
            raise UsageError("There is no such episode: ask for it again.")
        code, said = job.child.exit_code(), job.last_words()
        if code is None:
            steps = STEPS.findall(said)
            return {"key": key, "state": "running", "steps": int(steps[-1]) if steps else 0}
        if own_file(self._folder(run, key) / FILE) is not None:  # it ended between the two looks
            return {"key": key, "state": "done"}
        lines = [line for line in said.splitlines() if not STEPS.fullmatch(line.strip())]
        return {"key": key, "state": "failed", "error": "\n".join(lines) or f"The rollout ended with code {code}."}

    def _folder(self, run: Run, key: str) -> Path:
        return run.folder / FOLDER / key


def routes(root: Path, jobs: Jobs) -> list[Route]:
    """All of them, for the runs in `root`."""
    traces = Traces(root, jobs)

    def ask(request: Request, body: dict[str, Any]) -> Any:
        return traces.ask(named(root, request), body)

    def state(request: Request) -> Any:
        return traces.state(named(root, request), request.path_params["key"])

    def file(request: Request) -> Any:
        key, name = request.path_params["key"], request.path_params["name"]
        found = None
        if KEY.fullmatch(key) and SERVED.fullmatch(name):
            found = own_file(named(root, request).folder / FOLDER / key / name)
        if found is None:
            return problem("This episode has no such file.", 404)
        return FileResponse(found, headers={"Cache-Control": "no-cache"})

    return [
        Route("/api/runs/{run}/traces", change(ask), methods=["POST"]),
        Route("/api/runs/{run}/traces/{key}", answer(state)),
        Route("/files/{run}/traces/{key}/{name}", answer(file)),
    ]


def _checkpoint(body: dict[str, Any]) -> str:
    name = body.get("checkpoint", "best")
    if not isinstance(name, str) or not re.fullmatch(r"best|last|newest|step=\d{1,15}", name):
        raise UsageError("A checkpoint is best, last, newest or step=N.")
    return name


def _arguments(body: dict[str, Any]) -> list[str]:
    """The options of `gymnast trace`, each of them checked: what comes from the page is data."""
    found = ["--seed", str(_whole(body, "seed", 0)), "--progress"]
    found.append("--deterministic" if body.get("deterministic", True) is True else "--stochastic")
    for name, option, low, high in (
        ("temperature", "--temperature", 0.0, 100.0),
        ("gamma", "--gamma", 0.0, 1.0),
        ("gae_lambda", "--gae-lambda", 0.0, 1.0),
    ):
        value = body.get(name)
        if value is None or (name == "temperature" and value == 1):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise UsageError(f"{name} is a number from {low:g} to {high:g}.")
        found += [option, repr(float(value))]
    if body.get("max_steps") is not None:
        found += ["--max-steps", str(_whole(body, "max_steps", 1, least=1))]
    kwargs = body.get("env_kwargs") or {}
    if not isinstance(kwargs, dict):
        raise UsageError('The env\'s kwargs are a JSON object, for example {"gravity": -5}.')
    if kwargs:
        found += ["--env-kwargs", json.dumps(kwargs, sort_keys=True)]
    if body.get("force"):
        if not isinstance(body["force"], str) or not FORCED.fullmatch(body["force"]):
            raise UsageError("A forced action is STEP:ACTION, for example 12:1.")
        found += ["--what-if", body["force"]]
    if body.get("see") is True:
        found.append("--see")
    return found


def _whole(body: dict[str, Any], name: str, default: int, *, least: int = 0) -> int:
    value = body.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise UsageError(f"{name} is a whole number from {least}.")
    return value

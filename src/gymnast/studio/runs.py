"""Routes about runs: the list, one run with all that is known of it, tags and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from gymnast.errors import UsageError
from gymnast.metrics.catalogue import load_catalogue, split_name
from gymnast.runs.labels import change_tags, write_note
from gymnast.runs.store import Run
from gymnast.service.health import diagnosis_of
from gymnast.service.runs import details, find_run
from gymnast.service.settings import run_card
from gymnast.service.time_split import time_split
from gymnast.studio.answers import answer, change
from gymnast.studio.feed import listed
from gymnast.studio.glimpses import Glimpses
from gymnast.studio.names import Names

MOST_LOG_BYTES = 400_000


def routes(root: Path, glimpses: Glimpses, names: Names) -> list[Route]:
    """All of them, for the runs in `root`."""

    def every(request: Request) -> Any:
        return {"root": str(root.resolve()), "runs": listed(root)}

    def one(request: Request) -> Any:
        run = named(root, request)
        found = details(run, with_rows=False)
        return {"details": found, "env": _env_of(run), "report": report_of(run) is not None}

    def settings(request: Request) -> Any:
        return run_card(named(root, request))

    def metrics(request: Request) -> Any:
        return [metric_card(name) for name in load_catalogue().order(names.of(named(root, request)))]

    def time(request: Request) -> Any:
        return time_split(named(root, request))

    def health(request: Request) -> Any:
        return diagnosis_of(named(root, request)).as_json()

    def log(request: Request) -> Any:
        return _log(named(root, request))

    def glimpse(request: Request) -> Any:
        return glimpses.of(request.query_params.getlist("run"))

    def tags(request: Request, body: dict[str, Any]) -> Any:
        added, removed = _texts(body, "add"), _texts(body, "remove")
        return {"tags": change_tags(named(root, request), added, removed)}

    def note(request: Request, body: dict[str, Any]) -> Any:
        text = body.get("note")
        if not isinstance(text, str):
            raise UsageError("A note is text.")
        write_note(named(root, request), text)
        return {}

    return [
        Route("/api/runs", answer(every)),
        Route("/api/glimpses", answer(glimpse)),
        Route("/api/runs/{run}", answer(one)),
        Route("/api/runs/{run}/settings", answer(settings)),
        Route("/api/runs/{run}/metrics", answer(metrics)),
        Route("/api/runs/{run}/time", answer(time)),
        Route("/api/runs/{run}/diagnosis", answer(health)),
        Route("/api/runs/{run}/log", answer(log)),
        Route("/api/runs/{run}/tags", change(tags), methods=["POST"]),
        Route("/api/runs/{run}/note", change(note), methods=["POST"]),
    ]


def named(root: Path, request: Request) -> Run:
    """The run in the path: an id, its beginning, @last or @best, and never a path of the disk."""
    return find_run(request.path_params["run"], root, paths=False)


def report_of(run: Run) -> Path | None:
    """The report of a run, if it has one."""
    return own_file(run.folder / "report.html")


def own_file(path: Path) -> Path | None:
    """A file of a run's folder that is there. A link is none: a run from elsewhere could name any file of this machine."""
    if path.is_symlink() or not path.is_file():
        return None
    return path


def metric_card(name: str) -> dict[str, Any]:
    """What the catalogue says about a metric; one that a plug-in logs has only its name."""
    namespace, label = split_name(name)
    card: dict[str, Any] = {"name": name, "group": namespace, "label": label}
    found = load_catalogue().get(name)
    if found is None:
        return card
    return card | {
        "meaning": found.meaning,
        "unit": found.unit,
        "precision": found.precision,
        "bounds": found.bounds,
        "direction": found.direction,
        "healthy": found.healthy,
        "sb3": load_catalogue().alias_label(name),
    }


def _env_of(run: Run) -> dict[str, Any]:
    """What charts and tables need to know of the env: its id and the names of its actions."""
    config = run.config()
    env, spec = config.get("env"), config.get("spec")
    known: dict[str, Any] = {"id": env.get("id") if isinstance(env, dict) else None}
    if isinstance(spec, dict):
        known |= {key: spec.get(key) for key in ("actions", "solved_at", "random_score", "description")}
    return known


def _log(run: Run) -> dict[str, Any]:
    """The end of the log; all of it where it is short."""
    if own_file(run.log_path) is None:
        return {"text": "", "whole": True}
    try:
        with run.log_path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MOST_LOG_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"The log of run {run.id} cannot be read: {error.strerror or error}.") from error
    return {"text": text, "whole": size <= MOST_LOG_BYTES}


def _texts(body: dict[str, Any], name: str) -> list[str]:
    found = body.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UsageError(f"'{name}' is a list of texts.")
    return found

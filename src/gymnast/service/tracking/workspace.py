"""The dashboard of a W&B project: charts by namespace, in the catalogue's order and within its bounds.

What limits a chart: the catalogue's bounds, the env's return range for returns, and entropy from 0 to that of a uniform policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gymnast.errors import GymnastError, MissingPackageError
from gymnast.later import Later
from gymnast.metrics.catalogue import Catalogue, Metric, load_catalogue
from gymnast.redaction import redact
from gymnast.runs.store import Run
from gymnast.service.tracking.sending import about

if TYPE_CHECKING:
    from wandb_workspaces import workspaces
    from wandb_workspaces.reports import v2 as reports
    from wandb_workspaces.workspaces import Workspace
else:
    workspaces, reports = Later("wandb_workspaces.workspaces"), Later("wandb_workspaces.reports.v2")

X = "vec_steps"
SECTIONS = {
    "Returns": ("rollout/return_mean", "eval/return_mean", "rollout/success_rate", "eval/success_rate"),
    "Episodes": ("rollout/", "eval/"),
    "Learning": ("train/",),
    "Losses together": (),
    "Diagnostics": ("diag/",),
    "Time and machine": ("time/", "env/", "sys/"),
}
LOSSES = ["train/loss", "train/policy_loss_scaled", "train/value_loss_scaled", "train/entropy_loss_scaled"]
RETURNS = ("return_mean", "return_min", "return_max")
Range = tuple[float | None, float | None]


def save_workspace(run: Run, entity: str | None = None) -> str:
    """Make the workspace and return its address; a GymnastError if W&B cannot be reached or there is no login."""
    try:
        import wandb
        import wandb_workspaces  # noqa: F401 - whether it is there
    except ModuleNotFoundError as error:
        raise MissingPackageError("A W&B workspace", "wandb") from error
    from gymnast.metrics.trackers.wandb import project_of

    facts = about(run)
    try:
        who = entity or facts.settings.get("entity") or wandb.Api(timeout=20).default_entity
        made = workspace(facts.config, str(who), project_of(facts))
        made.save()
        return str(made.url)
    except Exception as error:  # the client's own errors, and those of the libraries below
        words = redact(" ".join(str(error).split()))[:300].rstrip(".")
        raise GymnastError(
            f"The workspace was not saved: {words or type(error).__name__}. Log in with `wandb login` and try again."
        ) from error


def workspace(config: Mapping[str, Any], entity: str, project: str) -> Workspace:
    """The workspace, not yet saved."""
    catalogue = load_catalogue()
    sections, placed = [], set[str]()
    for title, prefixes in SECTIONS.items():
        metrics = [m for m in catalogue if m.name.startswith(prefixes) and m.name not in placed] if prefixes else []
        placed.update(metric.name for metric in metrics)
        panels: list[Any] = [
            reports.LinePlot(
                title=metric.name, x=X, y=[metric.name], range_y=limits(metric, config), title_y=metric.unit
            )
            for metric in metrics
        ]
        if title == "Losses together":
            panels = [reports.LinePlot(title="losses, scaled", x=X, y=list(_known(catalogue, LOSSES)))]
        if title == "Returns":
            panels.append(reports.MediaBrowser(media_keys=["video/best", "video/last"]))
        if panels:
            sections.append(workspaces.Section(name=title, panels=panels, is_open=title in ("Returns", "Learning")))
    settings = workspaces.WorkspaceSettings(x_axis=X)
    return workspaces.Workspace(
        entity=entity, project=project, name=f"gymnast {project}", sections=sections, settings=settings
    )


def _known(catalogue: Catalogue, names: list[str]) -> list[Any]:
    return [name for name in names if name in catalogue]


def limits(metric: Metric, config: Mapping[str, Any]) -> Range:
    """Between which values a chart shows a metric; None leaves a side to the values."""
    spec = config.get("spec") or {}
    if metric.label in RETURNS and spec.get("return_range"):
        low, high = spec["return_range"]
        return _finite(low), _finite(high)
    if metric.name == "train/entropy" and spec.get("actions"):
        return 0.0, math.log(len(spec["actions"]))
    if metric.name == "train/clip_fraction":
        return 0.0, 1.0
    if metric.name == "train/explained_variance":
        return -1.0, 1.0
    return metric.bounds or (None, None)


def _finite(value: Any) -> float | None:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None

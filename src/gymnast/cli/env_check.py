"""`gymnast env check`: whether an env, or every preset, works here."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.amounts import count
from gymnast.cli.options import AsJson, Overrides, echo, echo_json
from gymnast.cli.process import imported
from gymnast.config.files import known_envs
from gymnast.config.load import resolve
from gymnast.console import Console
from gymnast.envs.checking.check import check_env
from gymnast.errors import UsageError

if TYPE_CHECKING:
    from gymnast.envs.checking.check import Report
    from gymnast.envs.checking.findings import Finding

    # Torch: one env is checked without it.
    from gymnast.training.env_checks.preset_check import PresetResult

MARKS = {"ok": "✓", "failed": "✗", "missing": "·", "skipped": "–"}


def check(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV[:VARIANT]", help="CartPole-v1, or your own: my_module:MyEnv-v0.", show_default=False
        ),
    ] = None,
    overrides: Overrides = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Build, step, render, record and train every preset instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that an env does what training relies on; name each fault, its line and the remedy.

    Exit code 1 if something must be fixed, 0 if there are only warnings.
    """
    if everything and reference is not None:
        raise UsageError(f"--all checks every preset: leave out '{reference}', or leave out --all.")
    if everything:
        _check_all(as_json)
    elif reference is None:
        raise UsageError("Say which env: gymnast env check my_module:MyEnv-v0, or --all for every preset.")
    else:
        _check_one(reference, overrides or [], as_json)


def _check_one(reference: str, overrides: list[str], as_json: bool) -> None:
    config = resolve(reference, overrides, generic=_untouched).config
    imported()
    report = check_env(config.env)
    if as_json:
        echo_json(report.as_json())
    else:
        _print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def _untouched(env_id: str, algorithm: str, env: dict[str, Any]) -> dict[str, Any]:
    """Just enough of a config for an env without a file; a broken env must not be made before it is checked."""
    return {"env": {"id": env_id}, "algo": {"id": algorithm}, "train": {"env_steps": 1}}


def _print_report(report: Report) -> None:
    console = Console(highlight=False)
    console.print(f"{report.env_id}  ({report.env_class})", style="bold", markup=False)
    for finding in report.findings:
        _print_finding(console, finding)
    faults, warnings = len(report.findings.faults), len(report.findings.warnings)
    console.print(f"Gymnasium's check_env {report.gymnasium}.", style="dim", markup=False, soft_wrap=True)
    if not faults:
        tail = f", {count(warnings, 'warning')}" if warnings else ""
        console.print(f"No fault{tail}: gymnast can train on it.", style="green", markup=False)
    else:
        console.print(f"{count(faults, 'fault')}, {count(warnings, 'warning')}.", style="red", markup=False)


def _print_finding(console: Any, finding: Finding) -> None:
    style, mark = "yellow", "!"
    if finding.is_fault:
        style, mark = "red", "✗"
    where = f"  {finding.place}" if finding.place else ""
    console.print(f"{mark} {finding.id}{where}", style=style, markup=False, soft_wrap=True)
    console.print(f"    {finding.what}", markup=False, soft_wrap=True)
    console.print(f"    → {finding.advice}", markup=False, soft_wrap=True)


def _check_all(as_json: bool) -> None:
    presets = [
        f"{env_id}:{name}"
        for env_id, files in known_envs()
        for name in dict.fromkeys(name for file in files for name in file.variants)
    ]
    # Torch: one env is checked without it.
    from gymnast.training.env_checks.preset_check import STAGES, check_presets

    imported()
    width = max(map(len, presets))
    if not as_json:
        echo(f"{'preset':{width}}  {'  '.join(STAGES)}  seconds")
    results = []
    for result in check_presets(presets):
        results.append(result)
        if not as_json:
            _print_preset(result, width, list(STAGES))
    if as_json:
        echo_json([asdict(result) for result in results])
    else:
        counts = {state: sum(result.state == state for result in results) for state in ("ok", "failed", "missing")}
        echo(f"{counts['ok']} ok, {counts['failed']} failed, {counts['missing']} not installed")
    if any(result.state == "failed" for result in results):
        raise typer.Exit(1)


def _print_preset(result: PresetResult, width: int, stages: list[str]) -> None:
    marks = "  ".join(f"{MARKS[result.stages.get(stage, 'skipped')]:{len(stage)}}" for stage in stages)
    note = {"ok": "", "failed": f"  failed: {result.detail}", "missing": f"  not installed: {result.detail}"}
    echo(f"{result.preset:{width}}  {marks}  {result.seconds:7.1f}{note[result.state]}")

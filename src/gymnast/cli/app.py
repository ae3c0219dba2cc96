"""The table of commands: where each lies and its line of help. No command's module is imported for it.

A line is the first paragraph of the command's docstring; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from gymnast import __version__
from gymnast.cli.debug import Debug, ShownDebug
from gymnast.cli.lazy import LazyGroup, Table
from gymnast.cli.options import echo


class Commands(LazyGroup):
    """`gymnast …`: what works on one run, one config or this machine."""

    table: ClassVar[Table] = {
        "train": ("train:train", "Train an agent until its environment is solved or the budget is spent."),
        "resume": ("resume:resume", "Continue a run exactly from its last checkpoint."),
        "eval": ("evaluate:evaluate", "Evaluate a run's best (or a named) checkpoint on fresh episodes."),
        "video": (
            "evaluate:video",
            "Record episodes of a run's best (or a named) checkpoint, played as in an evaluation.",
        ),
        "report": (
            "report:report",
            "Write a run's report.md and report.html again, from what its folder contains now.",
        ),
        "play": (
            "play:play",
            "Play an environment yourself, or watch a policy or random actions, in a window or in the terminal.",
        ),
        "plot": (
            "plot:plot_runs",
            "Draw learning curves with bands over seeds, in the terminal or as PNG, PDF, SVG or HTML.",
        ),
        "export": (
            "export:export",
            "Write the deterministic policy, normaliser included, as ONNX or as a torch.export program.",
        ),
        "eject": (
            "eject:eject",
            "Write a run as one readable script (torch and gymnasium only) that trains to the same bits.",
        ),
        "model": (
            "model:model",
            "Show layers, shapes, parameters and FLOPs of a run's policy, or of the one a config would train.",
        ),
        "diff": (
            "diff:diff",
            "Find where two runs diverge: the first iteration, metric and tensor, and the config keys that explain it.",
        ),
        "diagnose": (
            "diagnose:diagnose_run",
            "Find out what is wrong with a run: verdict, evidence, ranked causes, and a command to try next.",
        ),
        "rewind": (
            "rewind:rewind",
            "Repeat a run up to one update and write that update's batch, targets, losses and gradients.",
        ),
        "metrics": (
            "metrics:metrics",
            "Explain the logged metrics: meaning, unit, healthy range, names in other libraries, and alerts.",
        ),
        "completion": (
            "completion:completion",
            "Print a shell script that completes commands, configs, keys and runs.",
        ),
        "trace": (
            "trace:trace",
            "Record one episode step by step: observations, probabilities, values, advantages, pictures, tables.",
        ),
        "sync": (
            "sync:sync",
            "Send a run's missing records to trackers: after an outage, or if the run was not tracked.",
        ),
        "studio": (
            "studio:studio",
            "Open the studio: see runs live, compare them, scrub episodes, play, and start trainings in the browser.",
        ),
        "doctor": (
            "doctor:doctor",
            "Check Python, torch, devices, env families, codecs, plug-ins and disk.",
        ),
    }
    others: ClassVar[Mapping[str, str]] = {"enjoy": "play"}


class ConfigCommands(LazyGroup):
    """`gymnast config …`: presets and config files."""

    table: ClassVar[Table] = {
        "import-zoo": ("import_zoo:import_zoo", "Turn rl-baselines3-zoo hyperparameters into presets."),
        "fmt": (
            "config_files:fmt",
            "Sort the keys of config files into canonical order. Comments move with their keys; values stay as written.",
        ),
        "schema": (
            "config_files:schema",
            "Print the JSON Schema of config files, for completion and checks in editors (see docs/config.md).",
        ),
        "save": (
            "config_files:save",
            "Save the settings of a run as a preset.",
        ),
        "list": ("config_list:list_configs", "List all presets, shipped and from ./configs."),
        "show": ("config:show", "Show every value of a config or a run, and where it comes from."),
        "diff": (
            "config:diff",
            "Compare two resolved configs, and show where each value comes from.",
        ),
        "check": (
            "config:check",
            "Resolve and validate configs: every variant of every shipped file, or the given ones.",
        ),
    }


class EnvCommands(LazyGroup):
    """`gymnast env …`: environments."""

    table: ClassVar[Table] = {
        "list": ("env_list:list_envs", "List environments with presets; with --all, every installed Gymnasium id."),
        "show": (
            "env_show:show",
            "Show an env's card: spaces, labels, ranges, thresholds, reference scores, and the order of wrappers.",
        ),
        "check": (
            "env_check:check",
            "Check that an env does what training relies on; name each fault, its line and the remedy.",
        ),
        "bench": (
            "env_bench:bench",
            "Measure env steps per second for each way of stepping, and suggest how many envs to run.",
        ),
        "audit": (
            "env_audit:audit",
            "Show what rewards, episodes and observations look like, and suggest n_steps and reward scaling.",
        ),
    }


class PlanCommands(LazyGroup):
    """`gymnast plan …`: runs with several tasks."""

    table: ClassVar[Table] = {
        "show": (
            "plan:show",
            "Draw the tasks of a plan: their shares or their order, what differs, when a stage ends, how far a run has come.",
        ),
        "compare": (
            "plan:compare",
            "Compare env steps to threshold, stage by stage and in all, of runs with and without earlier stages (plan.start).",
        ),
    }


class RunsCommands(LazyGroup):
    """`gymnast runs …`: the store of runs."""

    table: ClassVar[Table] = {
        "list": ("runs:list_runs", "List runs, newest first."),
        "show": (
            "runs_show:show",
            "Show one run: status, result, tags, note, lineage, checkpoints, settings, last metrics.",
        ),
        "compare": (
            "runs_compare:compare",
            "Compare runs: settings that differ, results (the best marked with *), seeds as groups, and learning curves.",
        ),
        "best": (
            "runs_compare:best",
            "Show the best run of each environment, or the ranking of one environment.",
        ),
        "tag": ("runs_labels:tag", "Add and remove tags of a run; without arguments, print them."),
        "note": ("runs_labels:note", "Write a note about a run; without text, print it."),
        "rm": ("runs_files:rm", "Delete runs, except those that are being trained."),
        "prune": ("runs_files:prune", "Delete old runs by rule: a run is deleted if it matches all given rules."),
        "metrics": (
            "runs_metrics:metrics",
            "Write the metrics of runs as one table for polars, pandas, DuckDB or a spreadsheet.",
        ),
        "export": (
            "runs_archive:export",
            "Pack runs into one file: config, metrics, status, log, tags, note, checkpoints. Secrets are removed.",
        ),
        "import": (
            "runs_archive:import_",
            "Unpack the runs of an archive, after checking every file of it; all of them or none.",
        ),
        "rebuild": ("runs_files:rebuild", "Rebuild the index of runs from the run folders."),
    }


class WandbCommands(LazyGroup):
    """`gymnast wandb …`: Weights & Biases."""

    table: ClassVar[Table] = {
        "workspace": (
            "wandb:workspace",
            "Make a dashboard at W&B for the project of a run: grouped charts with sensible limits; prints its address.",
        ),
    }


def _group(commands: type[LazyGroup], about: str) -> typer.Typer:
    group: typer.Typer = typer.Typer(cls=commands, no_args_is_help=True, callback=_accept_debug, help=about)
    return group


def _accept_debug(debug: Debug = False) -> None:
    """Let `gymnast runs --debug list` mean what `gymnast --debug runs list` means."""


app = typer.Typer(
    name="gymnast",
    cls=Commands,
    help="Train, watch, explain and compare reinforcement-learning agents on Gymnasium environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: gymnast train CartPole-v1:ppo",
)
app.add_typer(_group(ConfigCommands, "List, show, compare, check, tidy and save configurations."), name="config")
app.add_typer(
    _group(
        EnvCommands,
        "Environments: list them, show spec cards, check your own, measure speed, and audit rewards.",
    ),
    name="env",
)
app.add_typer(_group(PlanCommands, "Runs with several tasks: by slot, by episode, or stage by stage."), name="plan")
app.add_typer(_group(RunsCommands, "List, show, compare, label, move and delete runs."), name="runs")
app.add_typer(_group(WandbCommands, "Dashboards at Weights & Biases."), name="wandb")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: ShownDebug = False,
) -> None:
    """Train, watch, explain and compare reinforcement-learning agents on Gymnasium environments."""
    if version:
        echo(f"gymnast {__version__}")
        raise typer.Exit

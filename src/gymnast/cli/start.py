"""What `train` does with a resolved config before torch is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from gymnast.cli.many import Several
from gymnast.cli.options import echo
from gymnast.cli.process import imported, leaving_at_once, let_idle_threads_sleep
from gymnast.cli.resume import resume_training
from gymnast.config.load import Resolved
from gymnast.envs.demand import demand_of
from gymnast.envs.registry import family_of_config
from gymnast.envs.workers import start_server
from gymnast.errors import UsageError
from gymnast.runs.origin import is_model_file, pinned
from gymnast.runs.refs import resolve_checkpoint, unfinished_run
from gymnast.runs.settling import settle_envs
from gymnast.runs.store import runs_root
from gymnast.runs.trust import accept


def start_training(
    resolved: Resolved,
    runs_dir: Path | None,
    *,
    quiet: bool,
    confirm: bool,
    unfinished: bool,
    profile: bool,
    trust: bool,
    agreed: bool = False,
    several: Several | None = None,
) -> None:
    """Settle what this machine decides, train, and leave with the right exit code."""
    root = runs_root(runs_dir)
    resolved = settle_envs(resolved, root)
    _pin_init_from(resolved, root, trust)
    if several is not None:
        _ask_about_size(resolved, agreed=agreed)
        _start_several(resolved, several, root, quiet=quiet)
        return
    left = unfinished_run(root, resolved.config.model_dump(mode="json"))
    if left is not None and unfinished:
        resume_training(left.id, [], {}, runs_dir, quiet=quiet, optimizer=True, profile=profile, trust=trust)
        return
    if left is not None and not left.is_alive():
        resolved.notices.append(
            f"Run {left.id} of exactly this config is unfinished. This is a new run; `gymnast resume {left.typed}`, or --resume "
            "on this command, continues the unfinished one."
        )
    _ask_about_size(resolved, agreed=agreed)
    env = resolved.config.env
    if env.vectorization == "workers" and env.start_method == "forkserver":
        family = family_of_config(env)
        preload = () if family is None else family.preload
        start_server(preload=preload)  # its imports run while torch is imported here
    let_idle_threads_sleep(resolved)
    with leaving_at_once():
        from gymnast.cli.launch import train_new  # torch: what came before has not waited for it

    imported()
    train_new(resolved, root, quiet=quiet, confirm=confirm, profile=profile)


def _start_several(resolved: Resolved, several: Several, root: Path, *, quiet: bool) -> None:
    let_idle_threads_sleep(resolved)
    with leaving_at_once():
        from gymnast.cli.several import train_chain_of, train_under_seeds  # torch

    imported()
    if several.chain is not None:
        train_chain_of(resolved, several.chain, several.until, root, quiet=quiet)
    train_under_seeds(resolved, several.seeds, several.jobs, root, quiet=quiet)


def _ask_about_size(resolved: Resolved, *, agreed: bool) -> None:
    """Before a run takes all memory or hours for its first row: say what it takes, and ask."""
    demand = demand_of(resolved.config)
    if demand is None:
        return
    for sentence in demand.sentences():
        echo(sentence, err=True)
    if agreed:
        return
    advice = "Fewer envs (n_envs) or shorter rollouts (n_steps) need less; --yes starts the run as it is."
    if not sys.stdin.isatty():
        raise UsageError(f"Nothing was started, because there is no terminal to ask in. {advice}")
    if not demand.fits:
        echo("That is more than this machine has: the run would run out of memory.", err=True)
    if not typer.confirm("Start training?", default=demand.fits):
        echo(advice, err=True)
        raise typer.Exit


def _pin_init_from(resolved: Resolved, root: Path, trust: bool) -> None:
    """Say which weights `train.init_from` names now; a wrong reference fails here, before torch is imported."""
    train = resolved.config.train
    if train.init_from is None:
        return
    if trust and not is_model_file(train.init_from):
        accept(resolve_checkpoint(root, train.init_from)[0])
    train = train.model_copy(update={"init_from": pinned(root, train.init_from)})
    resolved.config = resolved.config.model_copy(update={"train": train})

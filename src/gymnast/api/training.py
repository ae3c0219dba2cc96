"""Training from Python: `gymnast.train(...)` and `gymnast.resume(...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from gymnast import own_code
from gymnast.api.objects import check_objects
from gymnast.api.process import left_as_it_was
from gymnast.api.run import as_run
from gymnast.api.seeds import SeedRun, SeedsResult, seeds_from, train_seeds
from gymnast.api.settings import ConfigLike, EnvLike, dotted, env_reference, resolve_run, told
from gymnast.config.load import Resolved
from gymnast.console import Console
from gymnast.hub.beginning import model_source
from gymnast.hub.references import is_model_file
from gymnast.metrics.notebook import NotebookConsole, in_notebook
from gymnast.runs.checkpoint import understood
from gymnast.runs.further import check_beginning, further
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.refs import resolve_run as find_run
from gymnast.runs.store import Run as StoredRun
from gymnast.runs.store import runs_root
from gymnast.runs.trust import accept, usable
from gymnast.training.keeping.callbacks import Callback, Listeners
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.train import Resume, resume_point
from gymnast.training.train import train as train_run

Callbacks = Callback | Callable[[Mapping[str, float | None]], Any] | Sequence[Any]
"""One callback or several: objects with some methods of `Callback`, or functions that take a row."""


@overload
def train(
    env: EnvLike | None = None,
    *words: str,
    algo: str | None = None,
    config: ConfigLike | None = None,
    seeds: None = None,
    callbacks: Callbacks = (),
    **settings: Any,
) -> TrainResult: ...


@overload
def train(
    env: EnvLike | None = None,
    *words: str,
    algo: str | None = None,
    config: ConfigLike | None = None,
    seeds: int | Iterable[int],
    callbacks: Callbacks = (),
    **settings: Any,
) -> SeedsResult: ...


def train(
    env: EnvLike | None = None,
    *words: str,
    algo: str | None = None,
    config: ConfigLike | None = None,
    env_steps: int | None = None,
    vec_steps: int | None = None,
    seed: int | None = None,
    seeds: int | Iterable[int] | None = None,
    jobs: int | None = None,
    device: str | None = None,
    callbacks: Callbacks = (),
    progress: bool = False,
    runs_dir: str | Path | None = None,
    trust: bool = False,
    **settings: Any,
) -> TrainResult | SeedsResult:
    """Train an agent until its env is solved or the budget is spent; everything the command line does, as one call.

    `env` is a config's name (`"CartPole-v1:ppo"`), the id of any installed Gymnasium env, an env, its class, or a function
    that makes one. `config` is a mapping, the path of a YAML or JSON file, or a `RunConfig`. Further settings are keywords
    (`gamma=0.98`, `algo__gamma=0.98`) or strings (`"algo.gamma=0.98"`), by our names and those of Stable-Baselines3 and CleanRL;
    `encoder`, `policy` and `wrappers` also take classes.

    `seeds=5` or `seeds=[0, 7]` trains one run per seed, `jobs` of them at the same time (by default as many as there are cores).
    `callbacks` hear of the run and may end it (see `Callback`). `init_from="@last"` begins with the weights of another run, and
    `trust=True` lets that one import what its config names. `progress=True` shows the live table, also in a notebook.

    Returns where the run lies and how it was evaluated; for several seeds all runs and their interquartile mean.
    """
    given = {"train.env_steps": env_steps, "train.vec_steps": vec_steps, "train.seed": seed, "train.device": device}
    settings |= {name: value for name, value in given.items() if value is not None}
    resolved = resolve_run(env, words, algo, config, settings)
    root = runs_root(Path(runs_dir) if runs_dir else None)
    init_from = resolved.config.train.init_from
    if trust and init_from and not is_model_file(init_from):
        accept(resolve_checkpoint(root, init_from)[0])
    listeners = _several(callbacks)

    def here(one: Resolved) -> TrainResult:
        return _train(one, root, listeners, progress, source=model_source(one.config))

    if seeds is None:
        return here(resolved)
    found = train_seeds(
        resolved,
        seeds_from(seeds, resolved.config.train.seed),
        root,
        here=here,
        jobs=1 if listeners else jobs,  # callbacks get the runs of this process only
        watch=_SeedLines() if progress else None,
    )
    for one in found.seeds:
        if one.run is not None:
            one.run = as_run(one.run)
            own_code.note_run(resolved.config.model_dump(mode="json"), one.run.folder)
    return found


def resume(
    run: str | Path | StoredRun = "@last",
    *words: str,
    env: EnvLike | None = None,
    encoder: Any = None,
    policy: Any = None,
    wrappers: Sequence[Any] | None = None,
    env_steps: int | None = None,
    vec_steps: int | None = None,
    device: str | None = None,
    optimizer: bool = True,
    inexact: bool = False,
    callbacks: Callbacks = (),
    progress: bool = False,
    runs_dir: str | Path | None = None,
    trust: bool = False,
    **settings: Any,
) -> TrainResult:
    """Continue a run exactly where its last checkpoint stands, perhaps under other settings.

    A run that was made from an env object (a lambda, an instance, a class in a notebook) goes on where the object is given
    again: `resume(run, env=…)`; so do `encoder`, `policy` and `wrappers`. `inexact` goes on from the newest weights even where
    the state of envs could not be saved, and `optimizer=False` begins with a fresh optimizer.
    """
    stored = _stored(run, runs_dir)
    if trust:
        accept(stored)
    given = {"train.env_steps": env_steps, "train.vec_steps": vec_steps, "train.device": device}
    settings |= {name: value for name, value in given.items() if value is not None}
    objects = {"encoder": encoder, "policy": policy, "wrappers": wrappers}
    settings |= {name: thing for name, thing in objects.items() if thing is not None}
    keys = dotted(settings)
    if env is not None:
        keys["env.id"] = env_reference(env)
    check_objects(stored, keys)
    resolved = told(usable(stored, words, keys))
    check_beginning(stored, resolved)
    point, skipped = resume_point(stored, inexact=inexact)
    resolved.notices.extend(skipped)
    with understood(point.folder):
        unjudged = point.state["loop"].get("jobs")  # interrupted in its last evaluation: that is all there is to do
        if stored.status().state == "finished" and not unjudged:
            resolved = further(
                stored, resolved, point.manifest.counters, how='gymnast.resume("{run.reference}", env_steps={steps})'
            )
    return _train(resolved, stored.root, _several(callbacks), progress, resume=Resume(stored, point, optimizer))


def _train(resolved: Resolved, root: Path, callbacks: Sequence[Any], progress: bool, **how: Any) -> TrainResult:
    listeners = Listeners([_Objects(resolved), *callbacks])
    with left_as_it_was():
        result = train_run(resolved, root, reporter=_reporter(progress), listeners=listeners, **how)
    assert result is not None  # nobody is asked
    result.run = as_run(result.run)
    return result


class _Objects(Callback):
    """Remembers which run was made with which objects."""

    def __init__(self, resolved: Resolved) -> None:
        self._config = resolved.config.model_dump(mode="json")

    def on_start(self, run: StoredRun) -> None:
        """The run has a folder now."""
        own_code.note_run(self._config, run.folder)


class _SeedLines:
    """Says of every seed once that it trains and how it ended: several live tables would overwrite each other."""

    def __init__(self) -> None:
        self._console = Console()
        self._said: dict[int, str] = {}

    def __call__(self, seeds: Sequence[SeedRun]) -> None:
        for one in seeds:
            if self._said.get(one.seed, "waiting") != one.state:
                self._said[one.seed] = one.state
                detail = one.error or ("" if one.run is None else f"run {one.run.id}")
                self._console.print(f"seed {one.seed}: {one.state} {detail}".rstrip())


def _reporter(progress: bool) -> Reporter | None:
    if not progress:
        return None
    return Reporter(NotebookConsole() if in_notebook() else Console())


def _stored(run: str | Path | StoredRun, runs_dir: str | Path | None) -> StoredRun:
    if isinstance(run, StoredRun):
        return run
    return find_run(runs_root(Path(runs_dir) if runs_dir else None), str(run))


def _several(callbacks: Callbacks) -> list[Any]:
    if isinstance(callbacks, (list, tuple)):
        return list(callbacks)
    return [callbacks]

"""The next experiment: one command that repeats the run with the likeliest cause removed."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.config.compare import compare
from gymnast.config.leaves import leaves, text_of
from gymnast.config.load import Resolved, resolve
from gymnast.config.names import SETTLED_LATE
from gymnast.errors import GymnastError
from gymnast.metrics.diagnosis.rank import Ranked

TOGETHER = 0.7
"""Causes whose weights differ by less than this are removed together: the evidence does not tell them apart."""
OF_THE_MACHINE = (*SETTLED_LATE, "train.seed", "env.vectorization", "env.n_workers")
"""Settled anew by every run, or given apart."""


@dataclass(frozen=True)
class Experiment:
    """What to run next."""

    causes: tuple[str, ...]
    """The causes it removes."""
    changes: dict[str, Any]
    command: str
    expects: str
    """What it would show."""


def next_experiment(
    run: str,
    config: Mapping[str, Any],
    ranked: Sequence[Ranked],
    tried: Sequence[Mapping[str, Any]] = (),
    saved: Resolved | None = None,
) -> Experiment | None:
    """The command for the first cause whose change has not been tried; None if nothing is left to change.

    `tried` are the configs of other runs, whose settings need not be tried again. `saved` is the run's config where it may be
    used; a run from elsewhere that names code is only read.
    """
    fresh = [one for one in ranked if not any(_has(other, one.changes) for other in (config, *tried))]
    if not fresh:
        return None
    first = fresh[0]
    chosen = [first]
    for other in fresh[1:]:
        close = first.weight - other.weight < TOGETHER and other.confidence > 0.1
        if close and not set(other.changes) & set(first.changes) and len(chosen) < 2:
            chosen.append(other)
    changes = {key: value for one in reversed(chosen) for key, value in one.changes.items()}
    names = tuple(one.cause.id for one in chosen)
    titles = " or ".join(f"“{one.cause.title.lower()}”" for one in chosen)
    expects = f"If {titles} is right, the return rises well above this run's within the same share of the budget."
    return Experiment(names, changes, command(run, config, changes, saved), expects)


def command(run: str, config: Mapping[str, Any], changes: Mapping[str, Any], saved: Resolved | None = None) -> str:
    """`gymnast train …` with the run's own settings and the changes; by way of a saved preset where its preset is gone.

    `run` is an id, or the folder of a run in a place where commands do not look: the new one goes next to it.
    """
    where = []
    if Path(run).name != run:
        where = ["--runs-dir", str(Path(run).parent)]
    name, seed = str(config.get("name") or ""), (config.get("train") or {}).get("seed") or 0
    changed = [f"{key}={_value(value)}" for key, value in changes.items()]
    own = None
    if saved is not None:
        with contextlib.suppress(GymnastError):  # a preset of a plug-in, of another folder or of another version
            own = _own_settings(name, saved, changes)
    if own is None:
        preset = (
            f"{(config.get('env') or {}).get('id')}:{(config.get('algo') or {}).get('id')}_{Path(run).name.lstrip('@')}"
        )
        save = shlex.join(["gymnast", "config", "save", run, preset])
        return f"{save} && {shlex.join(['gymnast', 'train', preset, *changed, '--seed', str(seed), *where])}"
    return shlex.join(["gymnast", "train", name, *own, *changed, "--seed", str(seed), *where])


def _own_settings(name: str, saved: Resolved, changes: Mapping[str, Any]) -> list[str]:
    """What the run was given besides its preset's name, except what is changed now."""
    kept = []
    for difference in compare(resolve(name), saved):
        key = difference.key
        if key in OF_THE_MACHINE or key.startswith("spec.") or difference.new_from is None:
            continue
        if any(key == changed or key.startswith(changed + ".") for changed in changes):
            continue
        kept.append(f"{key}={_value(difference.new)}")
    return kept


def _value(value: Any) -> str:
    """As `key=value` on the command line reads it."""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _has(config: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    """Whether a config already has all of these settings."""
    flat = leaves(dict(config))
    return all(_same(flat.get(key), value) for key, value in changes.items())


def _same(saved: Any, value: Any) -> bool:
    if isinstance(value, str) and value.startswith("lin_") and isinstance(saved, Mapping):
        return saved.get("schedule") == "linear" and saved.get("start") == float(value.removeprefix("lin_"))
    return text_of(saved) == text_of(value)

"""The sentences of `gymnast diff`."""

from __future__ import annotations

import dataclasses
from typing import Any

from gymnast.amounts import count
from gymnast.config.leaves import text_of
from gymnast.runs.diff.compare import RunDiff
from gymnast.runs.diff.keys import KeyChange
from gymnast.runs.diff.text import pair

SHOWN = 3


def verdict(diff: RunDiff) -> str:
    """One paragraph: equal or not, where they part, and why."""
    if diff.equal:
        return _equal(diff)
    if diff.evaluation is not None and diff.differing_checkpoint is None:
        return _judged_differently(diff)
    return f"{_parts(diff)} {_why(diff)}"


def as_json(diff: RunDiff) -> dict[str, Any]:
    """Difference and verdict as plain data for `--json`."""
    return {"equal": diff.equal, "verdict": verdict(diff), **dataclasses.asdict(diff)}


def _equal(diff: RunDiff) -> str:
    n, checkpoints = diff.iterations, len(diff.checkpoints)
    common = "no common checkpoint" if not checkpoints else count(checkpoints, "common checkpoint")
    a, b = diff.a, diff.b
    unread = ""
    if diff.trouble:
        unread = f" {count(len(diff.trouble), 'piece')} could not be read."
    done = f"{count(n, 'iteration')}, {common}.{unread}"
    if a.iterations == b.iterations:
        return f"Equal to the last bit: {done}"
    if a.iterations > b.iterations:
        label, longer, shorter = ("A", a, b)
    else:
        label, longer, shorter = ("B", b, a)
    more = count(longer.iterations - shorter.iterations, "iteration")
    return f"Equal to the last bit as far as the shorter goes: {done} {label} goes on for {more}."


def _judged_differently(diff: RunDiff) -> str:
    assert diff.evaluation is not None
    change, steps = diff.evaluation.metrics[0], diff.evaluation.env_steps
    where = f"iteration {diff.evaluation.iteration:,} (env_steps {steps:,})"
    if change.a is None or change.b is None:
        label = "A" if change.a is None else "B"
        why = f"{label} was not evaluated there: an evaluation is made where a run ends, also when it is resumed later."
    else:
        why = _why(diff)
    told = f"{change.name} {' → '.join(pair(change.a, change.b))}"
    equal = f"Training is equal to the last bit ({count(diff.iterations, 'iteration')})"
    return f"{equal}, but evaluations differ from {where} on: {told}. {why}"


def _parts(diff: RunDiff) -> str:
    parting = diff.parting
    if parting is None:
        before = "No common iteration, and"
        if diff.iterations:
            before = f"The {count(diff.iterations, 'common iteration')} of the metrics are equal, but"
        return f"{before} checkpoint step={diff.differing_checkpoint} differs: {diff.tensors[0].sentence()}."
    changes = parting.metrics
    first = changes[0]
    told = "; ".join(f"{c.name} {' → '.join(pair(c.a, c.b))}" for c in changes[:SHOWN])
    more = ""
    if len(changes) > SHOWN:
        more = f" and {len(changes) - SHOWN} more"
    meaning = {
        "counters": "The iterations have different sizes",
        "data": "The data part first",
        "settings": "The data are still equal, the coefficients of the update are not",
        "targets": "The data are still equal, the targets computed from them are not",
        "update": "The data are still equal, the update is not",
    }.get(first.stage, "Everything before it is equal")
    return f"They part at iteration {parting.iteration:,} (env_steps {parting.env_steps:,}): {told}{more}. {meaning}."


def _why(diff: RunDiff) -> str:
    training = _likely_first(diff, [change for change in diff.keys if change.role == "training"])
    if training:
        told = ", ".join(_told(change) for change in training[:SHOWN])
        more = ""
        if len(training) > SHOWN:
            more = f" and {count(len(training) - SHOWN, 'more key')}"
        return f"Explained by {told}{more}."
    if diff.parting is not None and any(diff.parting.restarts):
        label = "A" if diff.parting.restarts[0] else "B"
        return (
            f"No config key explains it: {label} had to replace an env worker (env/worker_restarts), and other episodes "
            "took the place of those it lost."
        )
    if diff.versions:
        versions = ", ".join(f"{name} {a} → {b}" for name, (a, b) in diff.versions.items())
        return f"No config key explains it: different versions ({versions})."
    rounding = [change for change in diff.keys if change.role == "rounding"]
    if rounding:
        told = ", ".join(f"{_told(change)} ({change.why})" for change in rounding)
        return f"No config key is meant to change it; what differs: {told}."
    if diff.a.host != diff.b.host:
        return (
            f"Same config, same versions, but different machines ({diff.a.host} → {diff.b.host}): rounding may differ."
        )
    step = diff.parting.env_steps if diff.parting else diff.differing_checkpoint or 0
    for label, side in (("A", diff.a), ("B", diff.b)):
        if any(start < step for start in side.resumed_from):
            at = max(start for start in side.resumed_from if start < step)
            return f"Same config, same versions: {label} was resumed at env_steps {at:,}, and its resume was not exact."
    return (
        "Same config, same versions, same machine: something in it is not deterministic (an env that ignores its seed, "
        "a GPU, an env worker that was restarted). See docs/diff.md."
    )


def _likely_first(diff: RunDiff, changes: list[KeyChange]) -> list[KeyChange]:
    """Where the data are still equal the update is to blame, not the env or the seed."""
    if diff.parting is None or diff.parting.metrics[0].stage not in ("settings", "targets", "update"):
        return changes
    return sorted(
        changes, key=lambda change: not change.key.startswith(("algo.", "train.env_steps", "train.vec_steps"))
    )


def _told(change: KeyChange) -> str:
    return f"{change.key} {text_of(change.a)} → {text_of(change.b)}"

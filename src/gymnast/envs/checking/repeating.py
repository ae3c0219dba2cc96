"""Checks that a seed repeats everything: in another copy, in the same one again, and after a checkpoint."""

from __future__ import annotations

import random
import reprlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs.actions import random_actions
from gymnast.envs.checking.playing import closing_quietly
from gymnast.envs.checking.subject import SEED, Subject
from gymnast.envs.generators import save_generator
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.snapshots import fingerprint

STEPS = 200
RESUME_STEPS = 2000
"""How far the first end of an episode is looked for before a checkpoint is tried."""


def check_repeats(subject: Subject) -> None:
    """Two fresh copies with one seed and the same actions do the same, and so does a used copy."""
    first, second = subject.make(), subject.make()
    with closing_quietly(first), closing_quietly(second):
        generators = _global_generators()
        trace = play(subject, first)
        drawn = [name for name, state in _global_generators().items() if state != generators[name]]
        other = play(subject, second)
        difference = _first_difference(trace, other)
        if drawn or difference is not None:
            _explain(subject, first, second, drawn, difference)
            return
        difference = _first_difference(trace, play(subject, first))
        if difference is not None:
            _explain_leak(subject, first, difference)


def play(subject: Subject, env: gym.Env, steps: int = STEPS, seen: Callable[[], Any] | None = None) -> list[int]:
    """Fingerprints of a seeded reset and of every step after it, over at least one reset without a seed."""
    actions = subject.actions(env)
    obs, info, _ = subject.reset(env, SEED)
    trace = [fingerprint(obs)]
    ended = False
    for number in range(steps):
        if seen is not None:
            seen()
        (obs, reward, terminated, truncated, info), _ = subject.step(env, actions.draw(info))
        # Of any type: a wrong one is a finding already, and must not keep the next fault from being found.
        paid = fingerprint(reward)
        over = bool(np.any(terminated)), bool(np.any(truncated))
        if any(over) or (number == steps // 2 and not ended):
            obs, info, _ = subject.reset(env)
            ended = True
        trace.append(hash((fingerprint(obs), paid, over)))
    return trace


def _first_difference(trace: list[int], other: list[int]) -> int | None:
    return next((i for i, (a, b) in enumerate(zip(trace, other, strict=True)) if a != b), None)


def _global_generators() -> dict[str, Any]:
    """States of the generators that a whole process shares."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the very thing that envs should not use
    return {"numpy.random": (kind, bytes(np.asarray(keys)), *rest), "random": random.getstate()}


def _explain(subject: Subject, first: gym.Env, second: gym.Env, drawn: list[str], difference: int | None) -> None:
    method = "reset" if difference == 0 else "step"
    subject.reset(first, SEED)
    subject.reset(second, SEED)
    states = [repr(save_generator(env)) for env in (first, second)]
    if states[0] != states[1] and not drawn:
        place = subject.source.call_of_super("reset") or subject.source.definition("reset")
        what = f"reset(seed={SEED}) does not seed self.np_random: two copies with one seed play different episodes."
        subject.add("seed-ignored", what, place)
        return
    found = subject.source.unrepeatable_call(method, "reset", "step")
    if found is not None:
        place, call = found
        what = f"{call} gives other values every time, whatever seed reset was given."
        subject.add("unseeded-random", what, place)
    elif drawn:
        what = f"The env draws from the generator of {drawn[0]}, which no reset seeds."
        subject.add("unseeded-random", what, subject.source.definition(method))
    else:
        when = "start differently" if difference == 0 else f"differ after {difference} steps of the same actions"
        kind = "reset-not-repeatable" if difference == 0 else "step-not-repeatable"
        subject.add(
            kind, f"Two copies that were reset with the same seed {when}.", subject.source.returned(method, None)
        )


def _explain_leak(subject: Subject, used: gym.Env, difference: int) -> None:
    """Name the attribute that a seeded reset leaves as the last episode had it."""
    fresh = subject.make()
    with closing_quietly(fresh):
        subject.reset(fresh, SEED)
        subject.reset(used, SEED)
        old = vars(used.unwrapped)
        new = {name: getattr(fresh.unwrapped, name) for name in old if hasattr(fresh.unwrapped, name)}
        left = [name for name in new if _plain_difference(new[name], old[name])]
    for name in left:
        place = subject.source.assignment(name, "step") or subject.source.assignment(name)
        if place is not None:
            values = [reprlib.repr(values[name]) for values in (old, new)]
            what = f"self.{name} is {values[0]} after reset(seed={SEED}) of a used env, {values[1]} in a fresh one."
            subject.add("state-leaks", what, place)
            return
    what = (
        f"A used env plays differently from a fresh one after the same reset(seed={SEED}), from step {difference} on."
    )
    subject.add("state-leaks", what, subject.source.definition("reset"))


def _plain_difference(first: Any, second: Any) -> bool:
    """Whether two simple values differ; objects are not looked into."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return fingerprint(first) != fingerprint(second)
    return _is_plain(first) and _is_plain(second) and repr(first) != repr(second)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    return isinstance(value, (bool, int, float, str, np.generic))


def check_resume(subject: Subject) -> None:
    """A checkpoint taken in a later episode brings the env back exactly."""
    with ExitStack() as stack:
        vectors = [InProcessVector(subject.make, 1) for _ in range(2)]
        for vector in vectors:
            stack.enter_context(closing_quietly(vector.envs[0]))
        rows = [vector.new_row() for vector in vectors]
        for vector, row in zip(vectors, rows, strict=True):
            vector.reset([SEED], row)
        generator = np.random.default_rng(1)

        def act(slot: int) -> np.ndarray:
            return random_actions(vectors[slot].action_space, 1, generator, rows[slot].mask)

        ended = any(vectors[0].step(act(0), rows[0]) for _ in range(RESUME_STEPS))
        for _ in range(3 if ended else 0):
            vectors[0].step(act(0), rows[0])
        vectors[1].load_state(vectors[0].save_state())
        for _ in range(50):
            action = act(0)
            for vector, row in zip(vectors, rows, strict=True):
                vector.step(action, row)
            same = fingerprint(rows[0].obs) == fingerprint(rows[1].obs)
            if not (same and rows[0].reward[0] == rows[1].reward[0] and rows[0].terminated[0] == rows[1].terminated[0]):
                what = "Restored from a checkpoint in the middle of training, the env goes on differently."
                subject.add("resume-not-exact", what, subject.source.definition("reset"))
                return

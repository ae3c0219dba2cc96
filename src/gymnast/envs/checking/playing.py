"""Checks while the env is made, reset and played: signatures, values, and who owns the arrays."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator

from gymnast.envs.actions import is_composite, parts, plain
from gymnast.envs.checking.findings import UnplayableError
from gymnast.envs.checking.source import EnvSource, Place
from gymnast.envs.checking.subject import SEED, Subject, takes
from gymnast.envs.checking.values import check_info, check_mask, check_observation, check_outcome
from gymnast.envs.registry import env_spec
from gymnast.envs.snapshots import fingerprint
from gymnast.envs.spaces import canonical, n_masked_actions
from gymnast.errors import RAISED_BY_ENVS, EnvError, MissingPackageError, UsageError, in_one_line

STEPS = 300
KEPT = 8
"""Observations that are watched for changes after they were returned."""


def check_making(subject: Subject) -> None:
    """The env can be made, and has spaces that a policy can be built for."""
    spec = env_spec(subject.config.id, subject.config.module)
    if isinstance(creator := _creator(subject, spec), type):  # so that even a constructor that raises is found
        subject.source = EnvSource(creator)
    try:
        env = subject.make()
    except MissingPackageError:
        raise
    except UsageError as error:
        if error.__cause__ is None:  # a wrong id or a missing package: nothing of the env was run
            raise
        subject.add(
            "make-crash",
            f"The constructor raised {in_one_line(error.__cause__)}.",
            subject.source.raised(error.__cause__),
        )
        raise UnplayableError from error
    subject.source = EnvSource(type(env.unwrapped))
    with closing_quietly(env):
        _check_spaces(subject, env)


def _creator(subject: Subject, spec: EnvSpec) -> Any:
    """What the env is made by: the module of a registered text is imported for it."""
    if not isinstance(spec.entry_point, str):
        return spec.entry_point
    try:
        return load_env_creator(spec.entry_point)
    except ImportError:
        return None  # a missing package, which making the env says
    except RAISED_BY_ENVS as error:
        what = f"The entry point '{spec.entry_point}' raised {in_one_line(error)}."
        subject.add("make-crash", what, subject.source.raised(error))
        raise UnplayableError from error


def _check_spaces(subject: Subject, env: gym.Env) -> None:
    for attribute, kind, supported in (
        ("observation_space", "obs-space", canonical),
        ("action_space", "action-space", parts),
    ):
        space = getattr(env, attribute, None)
        place = subject.source.assignment(attribute) or subject.source.class_line()
        if not isinstance(space, spaces.Space):
            subject.add(kind, f"{attribute} is {space!r}, not a space of Gymnasium.", place)
            raise UnplayableError
        try:
            supported(space)
        except EnvError as error:
            subject.add(kind, str(error), place)
            raise UnplayableError from None


def check_reset(subject: Subject) -> None:
    """reset takes a seed and options, and gives a first observation that fits."""
    env = subject.make()
    method = type(env.unwrapped).reset
    missing = [name for name in ("seed", "options") if not takes(method, name)]
    if missing:
        what = f"reset does not take {' and '.join(missing)}"
        subject.add(
            "reset-arguments", f"{what}, which Gymnasium's wrappers pass on.", subject.source.definition("reset")
        )
        if "seed" in missing:
            raise UnplayableError
    with closing_quietly(env):
        subject.reset(env)  # whoever wants any episode gives no seed, not even at first
        obs, info, place = subject.reset(env, SEED)
        check_observation(subject, env.observation_space, obs, "reset", place)
        check_info(subject, info, "reset", place)
        if isinstance(info, dict):
            check_mask(subject, env.action_space, info, "reset", place)
            subject.has_mask = np.size(info.get("action_mask", ())) == n_masked_actions(env.action_space)


def check_steps(subject: Subject) -> None:
    """A few episodes of random actions, then the ends of the action space."""
    env = subject.make()
    actions = subject.actions(env)
    before = {name: copy.deepcopy(getattr(env, name)) for name in ("observation_space", "action_space")}
    memory = Memory()
    with closing_quietly(env):
        obs, info, place = subject.reset(env, SEED)
        memory.look(subject, obs, place)
        if subject.has_mask or is_composite(env.action_space):
            edges = []
        else:
            edges = list(actions.edges())
        for turn in range(STEPS + len(edges)):
            if turn >= STEPS:
                action = edges[turn - STEPS]
            else:
                action = actions.draw(info)
            outcome, place = _step_kept(subject, env, action)
            obs, _, terminated, truncated, info = outcome
            check_observation(subject, before["observation_space"], obs, "step", place)
            check_outcome(subject, outcome, place)
            memory.look(subject, obs, place)
            if _true(terminated) or _true(truncated):
                obs, info, place = subject.reset(env)
                check_observation(subject, before["observation_space"], obs, "reset", place)
                check_info(subject, info, "reset", place)
                memory.look(subject, obs, place)
            if isinstance(info, dict):
                check_mask(subject, before["action_space"], info, "step", place)
            _check_same_spaces(subject, env, before)
    if {"spaces-change", "mask-missing", "mask-shape", "mask-empty"} & {finding.id for finding in subject.findings}:
        raise UnplayableError


def _step_kept(subject: Subject, env: gym.Env, action: Any) -> tuple[tuple[Any, ...], Place | None]:
    """A step that leaves the action as it was given."""
    given = plain(copy.deepcopy(action))
    outcome, place = subject.step(env, action)
    if plain(action) != given:
        what = f"step changed the action it was given from {given} to {plain(action)}."
        subject.add("action-mutated", what, subject.source.change_of_argument("step"))
    return outcome, place


def _check_same_spaces(subject: Subject, env: gym.Env, before: dict[str, Any]) -> None:
    for attribute, space in before.items():
        now = getattr(env, attribute)
        if now != space:
            place = subject.source.assignment(attribute, "reset", "step") or subject.source.assignment(attribute)
            subject.add("spaces-change", f"{attribute} was {space} at first and became {now}.", place)
            raise UnplayableError


class Memory:
    """The last observations and what they were when they were returned."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, int, Place | None]] = []

    def look(self, subject: Subject, obs: Any, place: Place | None) -> None:
        """Report memory that is used twice, and observations that changed."""
        if self._kept and _shares_memory(self._kept[-1][0], obs):
            what = "Two observations in a row lie in the same memory: the second overwrites the first."
            subject.add("obs-shared", what, place)
        for kept, mark, origin in self._kept:
            if fingerprint(kept) != mark and "obs-shared" not in subject.findings:
                subject.add("obs-changes", "An observation changed after it was returned.", origin)
        self._kept = [*self._kept, (obs, fingerprint(obs), place)][-KEPT:]


def _shares_memory(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return any(_shares_memory(first[key], second[key]) for key in first.keys() & second.keys())
    if isinstance(first, tuple) and isinstance(second, tuple):
        return any(_shares_memory(a, b) for a, b in zip(first, second, strict=False))
    return isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and np.shares_memory(first, second)


def _true(flag: Any) -> bool:
    return bool(np.any(flag))


@contextmanager
def closing_quietly(env: gym.Env) -> Iterator[gym.Env]:
    """Close an env at the end; whether close works is a check of its own."""
    try:
        yield env
    finally:
        with suppress(*RAISED_BY_ENVS):
            env.close()

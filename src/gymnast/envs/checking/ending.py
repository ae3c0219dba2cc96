"""Checks of how episodes end, of pictures, and of close."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gymnast.envs.checking.playing import closing_quietly
from gymnast.envs.checking.repeating import play
from gymnast.envs.checking.subject import SEED, Subject
from gymnast.envs.drawing import drawing
from gymnast.envs.time_limits import time_limit_of
from gymnast.errors import RAISED_BY_ENVS, in_one_line

STEPS = 5000
SECONDS = 5.0
EPISODES = 10
PICTURES = 20


def check_ends(subject: Subject) -> None:
    """Episodes come to an end, and a time limit is called one."""
    env = subject.make()
    with closing_quietly(env):
        lengths, terminated_at, steps = _episodes(subject, env)
    if not lengths and time_limit_of(subject.config) is None:
        what = f"No episode ended within {steps:,} random steps, and the env has no time limit."
        # A slow env cannot play enough of them in the seconds a check may take.
        kind = "never-ends" if steps == STEPS else "may-not-end"
        subject.add(kind, what, subject.source.returned("step", None))
    if len(lengths) == EPISODES and len(set(lengths)) == 1 and lengths[0] > 1 and terminated_at == EPISODES:
        what = f"All {EPISODES} random episodes lasted exactly {lengths[0]} steps and ended with terminated=True."
        subject.add("limit-as-terminated", what, subject.source.returned("step", None))


def _episodes(subject: Subject, env: Any) -> tuple[list[int], int, int]:
    """Lengths of random episodes, how many terminated, and how many steps were taken."""
    actions, terminations, length = subject.actions(env, seed=1), 0, 0
    lengths: list[int] = []
    _, info, _ = subject.reset(env, SEED)
    until = time.monotonic() + SECONDS
    for step in range(STEPS):
        if len(lengths) == EPISODES or time.monotonic() > until:
            return lengths, terminations, step
        (_, _, terminated, truncated, info), _ = subject.step(env, actions.draw(info))
        length += 1
        if np.any(terminated) or np.any(truncated):
            lengths.append(length)
            terminations += bool(np.any(terminated))
            length = 0
            _, info, _ = subject.reset(env)
    return lengths, terminations, STEPS


def check_render(subject: Subject) -> None:
    """Envs that say they can draw do, and drawing changes nothing."""
    plain = subject.make()
    with closing_quietly(plain):
        if "rgb_array" not in (plain.metadata.get("render_modes") or []):
            return
        expected = play(subject, plain, PICTURES)
    try:
        env = subject.make("rgb_array")
    except RAISED_BY_ENVS as error:  # whatever the env raises is the finding
        cause = error.__cause__ or error
        what = f'Made with render_mode="rgb_array" it raised {in_one_line(cause)}.'
        subject.add("render-crash", what, subject.source.raised(cause))
        return
    with closing_quietly(env):
        frames: list[Any] = []
        try:
            with drawing(env.spec):
                trace = play(subject, env, PICTURES, seen=lambda: frames.append(env.render()))
        except RAISED_BY_ENVS as error:  # whatever the env's graphics library raises is the finding
            subject.add("render-crash", f"render raised {in_one_line(error)}.", subject.source.raised(error))
            return
    wrong = next((problem for frame in frames if (problem := _frame_problem(frame))), None)
    if wrong is not None:
        subject.add("render-frame", f"render returned {wrong}.", subject.source.returned("render", None))
    elif trace != expected and not subject.findings.faults:
        what = "The same seed and actions give another episode when pictures are drawn."
        subject.add("render-changes", what, subject.source.definition("render"))


def _frame_problem(frame: Any) -> str | None:
    if not isinstance(frame, np.ndarray):
        if frame is None:
            return "nothing"
        return f"a {type(frame).__name__}"
    if frame.ndim != 3 or frame.shape[2] != 3 or 0 in frame.shape:
        return f"an array of shape {frame.shape}"
    if frame.dtype == np.uint8:
        return None
    return f"an array of {frame.dtype}"


def check_close(subject: Subject) -> None:
    """close works after an episode, and again."""
    env = subject.make()
    subject.reset(env, SEED)
    for turn in ("", " a second time"):
        try:
            env.close()
        except RAISED_BY_ENVS as error:  # whatever the env raises is the finding
            subject.add("close-crash", f"close raised {in_one_line(error)}{turn}.", subject.source.raised(error))
            return

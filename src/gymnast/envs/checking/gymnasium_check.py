"""Gymnasium's own `check_env`, for what our checks do not know."""

from __future__ import annotations

import re
import warnings

from gymnasium.utils.env_checker import check_env as gymnasium_check_env

from gymnast.envs.checking.playing import closing_quietly
from gymnast.envs.checking.subject import Subject
from gymnast.errors import RAISED_BY_ENVS, in_one_line

OWN_GENERATOR = "Expects the random number generator to have been generated"
UNBOUNDED = "infinity. This is probably too"
"""Gymnast normalises by what it sees, not by the bounds."""


def check_with_gymnasium(subject: Subject) -> str:
    """Run it on the bare env; gives a sentence about what came out."""
    if subject.has_mask:
        return "not run: it draws actions that the action mask forbids"
    env = subject.make()
    with closing_quietly(env), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            gymnasium_check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
        except RAISED_BY_ENVS as error:  # assertions and whatever the env raises
            what = in_one_line(error).removeprefix("AssertionError: ")
            if OWN_GENERATOR in what:  # our own checks still know whether a seed repeats everything
                text = (
                    "reset(seed=...) leaves self.np_random as it was: the env is random in its own way, or not at all."
                )
                subject.add("own-generator", text, subject.source.class_line())
                return "stops at self.np_random, which the env does not use"
            if not subject.findings.faults:  # else it is one that is explained already
                subject.add("gymnasium", f"{what}.", subject.source.class_line())
            return f"fails: {what}"
    texts = [text for warning in said if (text := _text(str(warning.message)))]
    for text in texts[:1] if not subject.findings.faults else []:
        subject.add("gymnasium-warning", text, subject.source.class_line())
    if texts:
        return f"passes with {len(texts)} warnings"
    return "passes"


def _text(message: str) -> str:
    """A warning of Gymnasium without its colours and label."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message).removeprefix("WARN: ").strip()
    if UNBOUNDED in plain:
        return ""
    return plain

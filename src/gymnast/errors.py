"""Errors a user can act on: one paragraph that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class GymnastError(Exception):
    """A failure with a sentence for the user; the CLI prints it without a traceback and exits with `exit_code`."""

    exit_code = 1


class UsageError(GymnastError):
    """The user asked for something that cannot be: wrong name, key, value or reference."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration that does not fit the schema."""


class MissingPackageError(UsageError):
    """An optional package is needed; the message holds the exact install line."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs an optional package. Install it with: pip install "gymnast[{extra}]"')


class EnvError(GymnastError):
    """An environment broke its promise (NaN, wrong shape, crashed worker)."""


class NonFiniteError(GymnastError):
    """NaN or infinity appeared in observations, rewards, losses or gradients."""

    def __init__(self, text: str, batch: Any = None, dump: Path | None = None) -> None:
        super().__init__(text)
        self.batch = batch
        """What was being learned from."""
        self.dump = dump
        """Where that was written."""


class OutOfMemoryError(GymnastError):
    """Memory of the machine or of its GPU ran out."""


class CheckpointError(GymnastError):
    """A checkpoint is missing, damaged or does not fit."""


def did_you_mean(word: str, known: Iterable[str], *, limit: int = 3) -> str:
    """` Did you mean a or b?` for the closest known words, or an empty string."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    close = [folded[name] for name in difflib.get_close_matches(word.lower(), folded, n=limit, cutoff=0.55)]
    if not close:
        close = [name for name in known if word and word.lower() in name.lower()][:limit]
    if not close:
        return ""
    quoted = [f"'{name}'" for name in close]
    joined = quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
    return f" Did you mean {joined}?"

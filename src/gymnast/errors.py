"""Errors a user can act on: one paragraph that says what is wrong, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RAISED_BY_ENVS = (Exception, SystemExit)
"""What code of an env may raise: `sys.exit` in it is a fault of the env and must not end the command without a word."""


class GymnastError(Exception):
    """A failure with a sentence for the user; the CLI prints it without a traceback and exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        """The sentence without secrets: it may contain text from an env, or a value that the user typed."""
        from gymnast.redaction import redact  # which has errors of its own

        return redact(super().__str__())


def in_one_line(error: BaseException) -> str:
    """An exception as `ValueError: what it said`, without a full stop."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")


class UsageError(GymnastError):
    """The user asked for something that cannot be: wrong name, key, value or reference."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration that does not fit the schema."""


class MissingPackageError(UsageError):
    """An optional package is needed; the message holds the exact install line."""

    def __init__(self, what: str, extra: str = "", *, package: str = "") -> None:
        """`extra` is one of gymnast's own; a `package` is installed by its name."""
        install = package or f"gymnast[{extra}]"
        super().__init__(f'{what} needs an optional package. Install it with: pip install "{install}"')


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
    return suggestion(closest(word, known)[:limit])


def suggestion(names: Sequence[str]) -> str:
    """` Did you mean a or b?`, or an empty string if there is nothing to suggest."""
    quoted = [f"'{name}'" for name in names]
    if not quoted:
        return ""
    if len(quoted) == 1:
        joined = quoted[0]
    else:
        joined = ", ".join(quoted[:-1]) + " or " + quoted[-1]
    return f" Did you mean {joined}?"


def closest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` may be a slip of, the likeliest first; else those of which it is a part.

    A slip changes at most a quarter of the letters: `anneal_lr` is not `eval_freq`, however many letters they share. An env's
    version may be left out.
    """
    names = list(dict.fromkeys(known))
    slips = {name: min(_slips(word, name), _slips(word, re.sub(r"-v\d+$", "", name))) for name in names}
    if found := [name for name in names if slips[name] < NO_SLIP]:
        return sorted(found, key=lambda name: slips[name])
    return [name for name in names if _is_part(word.lower(), name.lower())]


NO_SLIP = 1000


def _slips(word: str, name: str) -> int:
    """How many letters differ, if they are few enough."""
    longer = max(len(word), len(name))
    most = max(longer // 4, 1 if longer >= 3 else 0)
    if abs(len(word) - len(name)) > most:
        return NO_SLIP
    edits = _edits(word.lower(), name.lower())
    if edits <= most:
        return edits
    return NO_SLIP


def _is_part(word: str, name: str) -> bool:
    if len(word) >= 4:
        return word in name
    return bool(word) and any(part.startswith(word) for part in re.split(r"[^a-z0-9]+", name))


def _edits(a: str, b: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbour (optimal string alignment)."""
    rows = [list(range(len(b) + 1))]
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            change = rows[-1][j - 1] + (a[i - 1] != b[j - 1])
            row.append(min(row[-1] + 1, rows[-1][j] + 1, change))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]

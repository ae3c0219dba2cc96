"""Times as people type them: `7d`, `12h`, `2026-11-16`, `2026-11-16T09:30`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from gymnast.errors import UsageError

_AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*(m|min|h|d|w)")
_MINUTES = {"m": 1, "min": 1, "h": 60, "d": 60 * 24, "w": 60 * 24 * 7}


def parse_age(text: str, option: str) -> timedelta:
    """How long: `30d`, `12h`, `90m`, `2w`."""
    match = _AGO.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{option} '{text}' is no length of time: write 90m, 12h, 30d or 2w.")
    return timedelta(minutes=float(match[1]) * _MINUTES[match[2]])


def parse_moment(text: str, option: str, *, end: bool = False) -> datetime:
    """A moment: so long ago, or a date or time here. `end` means the end of a day given without a time."""
    text = text.strip()
    try:
        if _AGO.fullmatch(text.lower()):
            return datetime.now().astimezone() - parse_age(text, option)
        moment = datetime.fromisoformat(text)
        if end and len(text) == len("2026-11-16"):
            moment += timedelta(days=1)
        return moment.astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} '{text}' is no time: write 12h or 7d (ago), 2026-11-16, or 2026-11-16T09:30."
        ) from None

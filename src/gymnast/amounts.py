"""Numbers of things and of bytes in words."""

from __future__ import annotations


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 run`, `1,024 runs`; `plural` where an s is not enough."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number:,} {plural or noun + 's'}"


def size(amount: float) -> str:
    """Bytes in the unit that a reader takes in at a glance: `912 B`, `3.4 MiB`."""
    if amount < 1024:
        return f"{amount} B"
    for unit in ("KiB", "MiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.3g} {unit}"
    return f"{amount / 1024:.3g} GiB"

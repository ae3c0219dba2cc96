"""Text on its way to a terminal, made inert: a run from elsewhere may hold anything in its names, ids and tags."""

from __future__ import annotations

import re

_KEPT = 60
"""Characters of an endless word that are shown, at either end."""
_ENDLESS = re.compile(r"\S{500,}")
"""Longer than any path or address that must be shown in full."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LAYOUT = frozenset("\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")
"""Characters that Python does not call printable, and that still only move the text along."""


def inert(text: str) -> str:
    """`text` without anything a terminal would obey: escape codes, carriage returns, changes of the writing direction.

    Lone surrogates go as well, because no stream can encode them.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in _LAYOUT else REPLACEMENT for letter in text)


def shortened(text: str) -> str:
    """`text` with the middle of endless words left out: an id of 100,000 letters would push what was wrong off the screen."""
    return _ENDLESS.sub(lambda found: f"{found[0][:_KEPT]}…{found[0][-_KEPT:]}", text)

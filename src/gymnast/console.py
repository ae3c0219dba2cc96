"""Rich's console as every command uses it. Apart from `terminal`, because importing rich takes a while."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from gymnast.redaction import redact
from gymnast.terminal import inert


class Console(RichConsole):
    """Writes its own colours and cursor movements, and no others: the text it is given is inert, and without secrets.

    Square brackets and colons in it mean nothing either (`[link=…]`, `:smile:`).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})
        self._clean = functools.lru_cache(maxsize=4096)(lambda text: inert(redact(text)))  # a live table repeats itself

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does. Rich keeps its own control codes in segments of their own, so all other text can be cleaned."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(self._clean(segment.text), segment.style)

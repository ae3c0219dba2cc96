"""The live table in a notebook: one output of the cell, redrawn in place."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from rich.terminal_theme import MONOKAI

from gymnast.console import Console

WIDTH, HEIGHT = 100, 40
"""Characters of a table in a cell; longer lines would be wrapped by narrow windows."""
STYLE = "line-height:1.25;font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace;white-space:pre;overflow-x:auto"


def in_notebook() -> bool:
    """Whether this program runs in a kernel that shows rich output, and not in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookConsole(Console):
    """Prints plain lines into the cell; tables are drawn by a `NotebookScreen`."""

    def __init__(self) -> None:
        super().__init__(force_jupyter=False, force_terminal=False, color_system=None, width=WIDTH, height=HEIGHT)


class NotebookScreen:
    """What `rich.live.Live` is on a terminal: shows the newest frame in the place of the last one."""

    def __init__(self, frame: Callable[[], RenderableType]) -> None:
        self._frame = frame
        self._handle: Any = None
        self._shown = ""

    def start(self, refresh: bool = False) -> None:
        """Show the first frame."""
        from IPython.display import display

        self._shown = self._text()
        self._handle = display(self._bundle(), raw=True, display_id=True)

    def refresh(self) -> None:
        """Show the frame as it is now."""
        text = self._text()
        if text != self._shown:
            self._shown = text
            self._handle.update(self._bundle(), raw=True)

    def stop(self) -> None:
        """The last frame stays."""
        self.refresh()

    def _text(self) -> str:
        console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
        with console.capture() as captured:
            console.print(self._frame(), end="")
        return captured.get()

    def _bundle(self) -> dict[str, str]:
        """As text, for what shows no HTML, and in colours."""
        console = Console(
            file=io.StringIO(),
            width=WIDTH,
            record=True,
            force_terminal=True,
            force_jupyter=False,
            color_system="truecolor",
        )
        console.print(self._frame(), end="")
        code = console.export_html(theme=MONOKAI, inline_styles=True, code_format="{code}")
        return {"text/plain": self._shown, "text/html": f'<pre style="{STYLE}">{code}</pre>'}

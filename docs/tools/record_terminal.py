"""Record a real terminal session as an SVG: `python docs/tools/record_terminal.py OUT.svg -- gymnast train CartPole-v1:ppo`.

Runs the command in a pseudo-terminal, feeds its output to a terminal emulator (`pip install pyte pexpect`), and draws what stands
on the screen at the end, scrolled-off lines included.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS, LINES = 100, 40


def main() -> None:
    """Run, emulate, draw."""
    out, command = Path(sys.argv[1]), sys.argv[sys.argv.index("--") + 1 :]
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=500, ratio=1)
    stream = pyte.ByteStream(screen)
    child = pexpect.spawn(command[0], command[1:], dimensions=(LINES, COLUMNS), timeout=300)
    while True:
        try:
            stream.feed(child.read_nonblocking(65536))
        except pexpect.EOF:
            break
    rows = [*screen.history.top, *(screen.buffer[y] for y in range(LINES))]
    lines = [_line(row) for row in rows]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "dim"), (" ".join(["gymnast", *command[1:]]), "bold")))
    for line in lines:
        console.print(line, soft_wrap=True)
    out.write_text(console.export_svg(title="gymnast"), encoding="utf-8")


def _line(row: dict[int, pyte.screens.Char]) -> Text:
    text = Text()
    for x in range(COLUMNS):
        char = row[x]
        colour = None if char.fg == "default" else {"brown": "yellow"}.get(char.fg, char.fg)
        text.append(char.data, Style(color=colour, bold=char.bold))
    text.rstrip()
    return text


if __name__ == "__main__":
    main()

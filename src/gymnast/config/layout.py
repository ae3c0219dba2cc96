"""Where the items of a YAML mapping stand in its text, each with the comments that belong to it.

Config files are rearranged as text and never dumped anew: quoting, number formats, flow style and line widths stay as written.
A comment belongs to the key on its line or below it, unless it is indented deeper than that key: then it ends the item above.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.config.files import parse_yaml
from gymnast.errors import ConfigError

_FILE_COMMENT = re.compile(r"#\s*(yaml-language-server:|-\*-|vim?:|!)")
"""Comments for programs, which read them only at the top of a file."""


@dataclass(frozen=True)
class Item:
    """`text[start:key]` are the blank lines and comments above a key, `text[key:end]` the key, its value and what ends it."""

    name: str
    start: int
    key: int
    end: int
    value: Any
    """The node of the value."""


def read_text(path: Path) -> str:
    """A config file as it is, line ends included."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot read config file {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"Cannot read config file {path}: it is not UTF-8 text.") from None


def write_text(path: Path, text: str) -> None:
    """Replace a config file in one step: hand-written text must survive a full disk. Links and rights stay."""
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(text.encode())
                file.close()
                if path.exists():
                    shutil.copymode(path, temporary)
                else:
                    temporary.chmod(0o644)
                temporary.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror or error}.") from None


def compose(text: str, label: str) -> Any:
    """The root mapping with the position of every node; None for a file without content."""
    from ruamel.yaml import YAML

    data, _ = parse_yaml(text, label)  # for its messages; also refuses what the composer lets pass
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{label} holds no mapping: expected keys such as id, defaults and variants.")
    if data is None:
        return None
    return YAML(typ="safe", pure=True).compose(text)


def block_items(text: str, node: Any, start: int, end: int, *, root: bool = False) -> list[Item]:
    """The items of a block mapping inside `text[start:end]`; the text before the first and after the last is its frame."""
    items: list[Item] = []
    keys = [key.start_mark for key, _ in node.value]
    column = keys[0].column
    for number, (mark, (key, value)) in enumerate(zip(keys, node.value, strict=True)):
        line = _line_start(text, mark.index)
        if number:
            begin = _trivia(text, items[-1].key, line, column)
        elif text[line : mark.index].strip():  # `- key: value`
            line = begin = mark.index
        else:
            begin = _first_trivia(text, start, line, root)
        if items:
            items[-1] = _ended(items[-1], begin)
        items.append(Item(str(key.value), begin, line, end, value))
    items[-1] = _ended(items[-1], _trivia(text, items[-1].key, end, column))
    return items


def _ended(item: Item, end: int) -> Item:
    return Item(item.name, item.start, item.key, end, item.value)


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _loose_lines(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """The unbroken run of blank and comment lines that ends at `end`, with their positions."""
    lines: list[tuple[int, str]] = []
    while end > start:
        begin = max(start, _line_start(text, end - 1))
        line = text[begin:end]
        if line.strip() and not line.lstrip().startswith("#"):
            break
        lines.append((begin, line))
        end = begin
    return lines[::-1]


def _trivia(text: str, start: int, end: int, column: int) -> int:
    """Where the blank lines and comments above `end` begin; comments deeper than `column` still end the item before."""
    lines = _loose_lines(text, _next_line(text, start), end)
    begin = lines[0][0] if lines else end
    for at, line in lines:
        if not line.strip():
            continue
        if len(line) - len(line.lstrip(" ")) <= column:
            break
        begin = at + len(line)
    return begin


def _first_trivia(text: str, start: int, end: int, root: bool) -> int:
    """As `_trivia` for the first key. The head of a file (up to a blank line) is about the file and stays where it is."""
    lines = _loose_lines(text, start if root else _next_line(text, start), end)
    begin = lines[0][0] if lines else end
    for at, line in lines if root else []:
        if not line.strip() or _FILE_COMMENT.match(line):
            begin = at + len(line)
    return begin


def _next_line(text: str, index: int) -> int:
    found = text.find("\n", index)
    if found < 0:
        return len(text)
    return found + 1

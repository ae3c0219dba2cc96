"""Template pieces: Python text with `#: if FLAGS`, `#: elif`, `#: else`, `#: end` lines and `$name` tokens.

FLAGS is one flag, `not FLAG`, or several joined by `and`. `$encode{obs}` and `$features{x}` are calls that fall away
where a run needs none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gymnast.errors import UsageError

LINE = 120
_DIRECTIVE = re.compile(r"\s*#: (if|elif|else|end)\b ?(.*)")
_WORDS = re.compile(r"[A-Za-z0-9 _.,:+/@()-]+")
_TOKEN = re.compile(r"\$([a-z_]+)(?![a-z_{])")
_CALL = re.compile(r"\$(encode|features)\{(.*?)\}")


def piece(name: str, flags: Collection[str], tokens: Mapping[str, str]) -> str:
    """One template file with its conditions decided and its tokens filled in."""
    text = (Path(__file__).parent / f"{name}.py.txt").read_text(encoding="utf-8")
    return fill("\n".join(chosen(text.splitlines(), flags)) + "\n", flags, tokens)


def chosen(lines: list[str], flags: Collection[str]) -> list[str]:
    """The lines whose conditions hold."""
    kept: list[str] = []
    levels: list[tuple[bool, bool]] = []  # per open `if`: is this branch on, has one been taken
    for line in lines:
        match = _DIRECTIVE.match(line)
        if match is None:
            if all(on for on, _ in levels):
                kept.append(line)
            continue
        word, condition = match.groups()
        if word == "if":
            on = _holds(condition, flags)
            levels.append((on, on))
        elif word == "end":
            levels.pop()
        else:
            _, taken = levels.pop()
            on = not taken and (word == "else" or _holds(condition, flags))
            levels.append((on, taken or on))
    if levels:
        raise ValueError("a template has an `#: if` without its `#: end`")
    return kept


def _holds(condition: str, flags: Collection[str]) -> bool:
    terms = [term.split() for term in condition.split(" and ")]
    return all((words[-1] in flags) == (len(words) == 1) for words in terms)


def fill(text: str, flags: Collection[str], tokens: Mapping[str, str]) -> str:
    """Replace tokens (a value of several lines keeps the indentation) and calls."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(_TOKEN.sub(lambda match: tokens[match[1]].replace("\n", "\n" + indent), line))  # noqa: B023
    agent = {"encode": "encode({})", "features": "agent.features({})"}
    return _CALL.sub(lambda m: agent[m[1]].format(m[2]) if m[1] in flags else m[2], "\n".join(lines))


def words(text: str, what: str) -> str:
    """Text for a docstring or a comment of the script; anything that could end it there is refused."""
    if not isinstance(text, str) or len(text) > 200 or _WORDS.fullmatch(text) is None:
        raise UsageError(
            f"{what} is {str(text)[:80]!r}: that cannot be written into a script, so the run is not ejected."
        )
    return text


def literal(value: Any) -> str:
    """A plain value as Python source with double quotes; whatever is not plain is refused."""
    if isinstance(value, str):
        text = repr(value)
        if text[0] == '"' or '"' in text:
            return text
        return f'"{text[1:-1]}"'.replace("\\'", "'")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        inside = ", ".join(map(literal, value))
        if len(value) == 1:
            return f"({inside},)"
        return f"({inside})"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if value is None or type(value) in (bool, int) or (type(value) is float and math.isfinite(value)):
        return repr(value)
    raise UsageError(f"{str(value)[:80]!r} cannot be written into a script, so the run is not ejected.")


def assignment(name: str, value: Any, comment: str = "") -> str:
    """`NAME = value`, one item per line where it is too long for one line."""
    line = f"{name} = {literal(value)}"
    if len(line) > LINE and isinstance(value, Mapping):
        items = "".join(f"    {literal(key)}: {literal(item)},\n" for key, item in value.items())
        line = f"{name} = {{\n{items}}}"
    elif len(line) > LINE and isinstance(value, (list, tuple)):
        items = "".join(f"    {literal(item)},\n" for item in value)
        if isinstance(value, list):
            line = f"{name} = [\n{items}]"
        else:
            line = f"{name} = (\n{items})"
    if comment and len(line) + len(comment) + 4 <= LINE:
        return f"{line}  # {comment}"
    return line


def wrapped(source: str) -> str:
    """Calls and signatures that are too long for one line, broken as ruff breaks them."""
    return "\n".join(_wrap(line) if len(line) > LINE else line for line in source.split("\n"))


def _wrap(line: str) -> str:
    match = re.fullmatch(r"(\s*)((?:def |return |\w+ = )?[\w.]+)\((.*)\)((?: -> .*:)?)", line)
    if match is None:
        return line
    indent, head, inside, tail = match.groups()
    inner = f"{indent}    {inside}"
    if len(inner) > LINE:
        inner = "\n".join(f"{indent}    {part}," for part in _arguments(inside))
    return f"{indent}{head}(\n{inner}\n{indent}){tail}"


def _arguments(inside: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]

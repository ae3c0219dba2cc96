"""What a shell completes after `gymnast …`: commands, options, configs, keys and their values, and run references.

It answers on every Tab, so it imports neither torch nor Gymnasium and parses as few config files as it can.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from gymnast.cli.app import app
from gymnast.cli.foreign_flags import flags
from gymnast.cli.lazy import SETTINGS, LazyCommand

CONFIG, RUN, KEY, ENV, ALGORITHM, DEVICE = "config", "run", "key", "env", "algorithm", "device"
METAVARS = {
    "ENV:VARIANT": (CONFIG,),
    "ENV": (ENV,),
    "RUN": (RUN,),
    "KEY=VALUE": (KEY,),
    "A": (CONFIG, RUN),
    "B": (CONFIG, RUN),
}
"""What an argument can be, by the words of its metavar."""
OPTIONS = {"--algo": ALGORITHM, "--env": ENV, "--init-from": RUN, "--device": DEVICE}
"""What the value of an option can be."""
DEVICES = ("auto", "cpu", "cuda")


def answer(words: Sequence[str]) -> list[str]:
    """Completions of the last word; what goes wrong on the way completes nothing."""
    with contextlib.suppress(Exception, SystemExit):
        return sorted(set(_completions(list(words))), key=_order)
    return []


def _order(word: str) -> tuple[bool, str]:
    """References with @ first."""
    return not word.startswith("@"), word


def _completions(words: list[str]) -> Iterator[str]:
    *before, current = words or [""]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        if not before:
            yield from _starting(current, command.commands)
            return
        name = before.pop(0)
        if name.startswith("-"):
            continue
        command = command.commands[name]
    assert isinstance(command, LazyCommand)
    yield from _of_command(command.parser(), before, current)


def _of_command(command: Any, before: list[str], current: str) -> Iterator[str]:
    """Within a command: a value of the option before, an option, or the argument that comes now."""
    options = {name: param for param in command.params for name in param.opts if name.startswith("-")}
    given, positional = _split(before, options)
    root = next((given[name] for name in ("-f", "--runs-dir", "--log-folder") if name in given), None)
    settings = any(param.name == SETTINGS for param in command.params)
    asked = options.get(before[-1]) if before else None
    if asked is not None and not asked.is_flag:
        for kind in (OPTIONS[name] for name in asked.opts if name in OPTIONS):
            yield from _of_kind(kind, current, positional, root)
        return
    if current.startswith("-"):
        shown = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]
        yield from _starting(current, [*shown, "--help", *(_flags(current) if settings else [])])
        return
    for kind in _expected(command, len(positional)):
        yield from _of_kind(kind, current, positional, root)


def _expected(command: Any, place: int) -> list[str]:
    """What the argument at this place can be; the last one may take any number of words."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    if arguments and arguments[-1].nargs == -1:
        place = min(place, len(arguments) - 1)
    if place >= len(arguments):
        return []
    metavar = str(arguments[place].metavar).replace("[/CHECKPOINT]", "").removesuffix("...")
    words = metavar.replace("ENV[:VARIANT]", "ENV:VARIANT").strip("[]").replace("|", " ").split()
    return list(dict.fromkeys(kind for word in words for kind in METAVARS.get(word, ())))


def _split(before: list[str], options: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Options with their values, and the other words."""
    given: dict[str, str] = {}
    positional: list[str] = []
    rest = iter(before)
    for word in rest:
        name, equals, value = word.partition("=")
        param = options.get(name)
        if not word.startswith("-"):
            positional.append(word)
        elif equals:
            given[name] = value
        elif param is not None and not param.is_flag:
            given[name] = next(rest, "")
    return given, positional


def _of_kind(kind: str, current: str, positional: list[str], root: str | None) -> Iterator[str]:
    if kind == DEVICE:
        yield from _starting(current, DEVICES)
        return
    from gymnast.cli import complete_values  # pydantic and the store of runs: only where they are asked for

    if kind == CONFIG and not current.startswith("@"):
        yield from complete_values.configs(current)
    elif kind == ENV:
        yield from complete_values.env_ids(current)
    elif kind == RUN:
        yield from complete_values.runs(current, root)
    elif kind == KEY:
        yield from complete_values.settings(current, positional)
    elif kind == ALGORITHM:
        yield from complete_values.algorithms(current)


def _starting(current: str, words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if word.startswith(current))


def _flags(current: str) -> list[str]:
    """Keys as options, from the first letter on: there are more than a hundred of them."""
    if len(current) < len("--x"):
        return []
    return flags()

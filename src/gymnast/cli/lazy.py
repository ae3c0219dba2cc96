"""Commands by name: `--help` reads a table, and a command's module is imported when the command is chosen (RUN-10)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from gymnast.cli.debug import Debug
from gymnast.cli.foreign_flags import own_words

SETTINGS = "overrides"
"""The argument of a command that takes `KEY=VALUE`; it takes the options of rl-zoo and CleanRL, too."""
HELP_OPTIONS = ("-h", "--help")

Table = Mapping[str, tuple[str, str]]
"""Name → where the command lies (`module:function`), and the first paragraph of its docstring."""


class Command(TyperCommand):
    """A command whose help shows every name of an option whole."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As Typer does, which joins the names with commas alone: one long word, cut off where it does not fit.

        Help ends the process, so nothing is parsed with the changed names.
        """
        for param in self.params:
            if isinstance(param, TyperOption):
                short = [name for name in param.opts if not name.startswith("--")]
                first, *others = [name for name in param.opts if name.startswith("--")]
                param.opts = [*short, first, *(f" {name}" for name in others)]
        super().format_help(ctx, formatter)


class LazyCommand(TyperCommand):
    """A command of which the name and the help line are known; parsing its arguments imports it.

    `where` is `module:function` within `gymnast.cli`.
    """

    def __init__(self, name: str, where: str, line: str, *, hidden: bool = False) -> None:
        super().__init__(name, help=line, hidden=hidden)
        self.where = where

    def function(self) -> Any:
        """Import the module and return what the command calls."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(f"gymnast.cli.{module}"), name)

    def parser(self) -> Any:
        """The real command, with `--debug` at its end."""
        command = _command(self.name, self.function())
        command.params += _command(None, _debug_after_a_command).params
        return command

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse with the real command: the context that comes back is the real one's, and so is what is invoked."""
        command = self.parser()
        if any(param.name == SETTINGS for param in command.params):
            options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
            args = own_words(args, {*options, *HELP_OPTIONS})
        return command.make_context(info_name, args, parent, **extra)


class LazyGroup(TyperGroup):
    """A group whose commands are listed in `table`."""

    table: ClassVar[Table] = {}
    others: ClassVar[Mapping[str, str]] = {}
    """Names by which other libraries call a command, and ours; help does not list them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        lazy = {name: LazyCommand(name, where, line) for name, (where, line) in self.table.items()}
        for other, name in self.others.items():
            lazy[other] = LazyCommand(other, *self.table[name], hidden=True)
        self.commands = {**lazy, **self.commands}


def _command(name: str | None, function: Any) -> Any:
    """The command that Typer makes of a function."""
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    one.command(name, cls=Command)(function)
    return get_command(one)


def _debug_after_a_command(debug: Debug = False) -> None:
    """Declare `--debug` for commands: `gymnast train … --debug` is as good as `gymnast --debug train …`."""

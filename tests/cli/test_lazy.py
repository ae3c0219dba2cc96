"""Commands are found by name: help needs none of their modules, and a command needs its own alone."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from launch import environment, gymnast
from typer.testing import CliRunner

from gymnast.cli.app import app
from gymnast.cli.lazy import LazyCommand

SHARED = {"app", "debug", "entry", "foreign_flags", "lazy", "options", "process"}
"""Modules of the command line that hold no command."""


def commands(group: Any = None, path: str = "") -> Iterator[tuple[str, LazyCommand]]:
    """Every command of the tree with what is typed for it."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        where = f"{path} {name}".strip()
        if isinstance(command, LazyCommand):
            yield where, command
        else:
            yield from commands(command, where)


ALL = dict(commands())


def modules_after(*arguments: str, cwd: Path) -> set[str]:
    """Which modules of the command line a fresh process has after a command."""
    code = (
        f"import sys\nsys.argv = ['gymnast', *{arguments!r}]\nfrom gymnast.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *[name.removeprefix('gymnast.cli.') for name in sys.modules if name.startswith('gymnast.cli.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


@pytest.mark.parametrize("name", ALL)
def test_help_lines_are_the_first_paragraphs_of_docstrings(name: str) -> None:
    """What `gymnast --help` says without importing the command is what the command says of itself."""
    documented = inspect.getdoc(ALL[name].function())
    assert documented is not None
    assert documented.split("\n\n")[0] == ALL[name].help


def test_all_commands_are_there() -> None:
    """The walk of these tests reaches groups, too."""
    assert {"train", "doctor", "config import-zoo", "env audit", "runs import"} <= ALL.keys()
    listed = [command for command in ALL.values() if not command.hidden]
    assert len(listed) == len({command.where for command in listed}) > 30
    assert ALL["enjoy"].where == ALL["play"].where, "rl-zoo's name"


@pytest.mark.parametrize("arguments", [("--help",), ("runs", "--help"), ("trian",)])
def test_help_imports_no_command(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert modules_after(*arguments, cwd=tmp_path) == SHARED


def test_a_command_imports_its_own_module(tmp_path: Path) -> None:
    assert modules_after("runs", "tag", "--help", cwd=tmp_path) == SHARED | {"runs_labels"}


def test_wrong_names_get_a_suggestion() -> None:
    for arguments, right in ((["trian"], "train"), (["runs", "lits"], "list"), (["confg"], "config")):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert f"Did you mean '{right}'" in result.stderr


def test_shells_can_complete_names_and_options() -> None:
    """From the table for commands, from the command itself for its options."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("gymnast", [], resilient_parsing=True)
    assert [item.value for item in root.shell_complete(context, "tr")] == ["train", "trace"]
    runs = root.commands["runs"]
    inner = runs.make_context("runs", [], parent=context, resilient_parsing=True)
    assert [item.value for item in runs.shell_complete(inner, "li")] == ["list"]
    chosen = runs.commands["list"].make_context("list", [], parent=inner, resilient_parsing=True)
    assert [item.value for item in chosen.command.shell_complete(chosen, "--al")] == ["--algo"]


@pytest.mark.parametrize("width", ["80", "100", "120"])
@pytest.mark.parametrize("name", ["train", "resume", "config import-zoo", "runs list"])
def test_help_shows_the_names_of_options_whole(name: str, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names an option has, and however narrow the terminal is."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", int(width))
    command = ALL[name].make_context(name, [], resilient_parsing=True).command
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
    for parameter in command.params:
        for option in parameter.opts:
            if option.startswith("--") and not parameter.hidden:
                assert re.search(rf"{option}\b", shown), f"{option} is cut in:\n{shown}"


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_debug_may_stand_anywhere(place: int, folder: Path) -> None:
    """Before the command, after its group, after itself, and after its arguments."""
    arguments = ["runs", "show", "nosuch"]
    assert "Traceback" not in gymnast(*arguments, cwd=folder).stderr
    arguments.insert(place, "--debug")
    told = gymnast(*arguments, cwd=folder).stderr
    assert "Traceback" in told
    assert "UsageError" in told


def test_debug_as_an_argument_is_one(folder: Path) -> None:
    """After `--`, words are words."""
    told = gymnast("runs", "show", "--", "--debug", cwd=folder)
    assert told.returncode == 2
    assert told.stderr.startswith("error: ")
    assert "Traceback" not in told.stderr


MEANINGS = {
    "--check": {"config fmt"},
    "--verify": {"eject", "export"},
    "--all": {"env list", "env check", "config import-zoo"},
    "--algo": {"train", "runs list", "config import-zoo"},
    "--force": {"config save", "config import-zoo", "runs export"},
}
"""Commands in which an option has its one meaning: who adds another looks at CHANGELOG.md for what that is."""


def test_options_mean_the_same_everywhere() -> None:
    """Who takes which of them; and `--json` is the same option wherever it is taken."""
    takers: dict[str, set[str]] = {name: set() for name in MEANINGS}
    helps = set()
    for name, command in ALL.items():
        for parameter in command.make_context(name, [], resilient_parsing=True).command.params:
            for option in takers.keys() & {*parameter.opts}:
                takers[option].add(name)
            if "--json" in parameter.opts:
                helps.add(parameter.help)
    assert takers == MEANINGS
    assert helps == {"Print JSON for other programs."}


def test_algo_is_an_algorithm(folder: Path) -> None:
    """A variant belongs to the name of the config, and the sentence says how to write it."""
    told = gymnast("train", "--env", "CartPole-v1", "--algo", "pixels_ppo", cwd=folder)
    assert told.returncode == 2
    assert "gymnast train CartPole-v1:pixels_ppo" in told.stderr
    told = gymnast("train", "--env", "CartPole-v1", "--algo", "sac", cwd=folder)
    assert "'sac' is not one. Algorithms: ppo, a2c, reinforce." in told.stderr

"""What a run from elsewhere says is printed inert: no escape code of it reaches the terminal."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path

import pytest
from launch import gymnast
from made_runs import finished_run
from rich.table import Table
from rich.text import Text

import gymnast as library
from gymnast.console import Console
from gymnast.terminal import inert, shortened

SOURCE = Path(library.__file__).parent
CODES = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\u202egnp.exe\u2028[red]x[/red]\ud800"
"""Clears the screen, renames the window, colours, goes back to the line's start, turns the direction around."""


def obeyed(text: str) -> set[str]:
    """The characters that a terminal acts on."""
    return {letter for letter in text if not letter.isprintable()} - {"\n", "\t"}


def test_inert_keeps_the_words() -> None:
    """Ordinary text is not touched, in any language."""
    for text in ("", "CartPole-v1:ppo", "zwei\nZeilen\t±½ 日本 😀"):
        assert inert(text) == text
    assert obeyed(inert(CODES)) == set() and "owned" in inert(CODES)


@pytest.mark.parametrize(
    "words",
    [["train", "{}"], ["train", "CartPole-v1:{}"], ["train", "CartPole-v1", "algo.{}=1"], ["env", "show", "{}"]],
)
def test_a_mistake_of_any_length_is_answered_in_a_few_lines(words: list[str], tmp_path: Path) -> None:
    """The name itself pushed what was wrong with it off the screen."""
    result = gymnast(*(word.format("A" * 100_000) for word in words), cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ") and "AAA…AAA" in result.stderr
    assert len(result.stderr) < 1500


def test_words_of_ordinary_length_are_whole() -> None:
    path = "/" + "/".join(["folder"] * 60)
    assert shortened(f"No file {path}.") == f"No file {path}."


def test_a_console_obeys_only_itself() -> None:
    """Its own colours stay; what stands in a cell, a title or a line is text."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=200)
    table = Table(title=CODES)
    table.add_column(CODES)
    table.add_row(CODES)
    table.add_row(Text(CODES, style="red"))
    console.print(CODES, style="bold")
    console.print(table)
    said = file.getvalue()
    assert "\x1b[1m" in said and "[red]x[/red]" in said
    for code in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\r", "\x08", "\u202e", "\u2028"):
        assert code not in said


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that were copied in, whose every text is hostile."""
    folder = tmp_path_factory.mktemp("store")
    for _ in range(2):
        run = finished_run(folder / "runs", 9.5)
        config = run.config()
        config |= {"name": f"a{CODES}", "spec": {"description": CODES}}
        config["env"] |= {"id": f"b{CODES}", "kwargs": {f"c{CODES}": CODES}}
        config["algo"] = {"id": f"d{CODES}"}
        run.config_path.write_text(json.dumps(config))
        status = json.loads(run.status_path.read_text())
        status |= {"stop_reason": f"e{CODES}", "created": f"f{CODES}", "host": CODES, "started": CODES}
        run.status_path.write_text(json.dumps(status))
        row = {"env_steps": 64, "iteration": 1, f"rollout/g{CODES}": 1.0, "h": CODES}
        run.metrics_path.write_text(json.dumps(row) + "\n" + json.dumps({"env_steps": 65, "amends": CODES}) + "\n")
        (run.folder / "tags.json").write_text(json.dumps([f"i{CODES}"]))
        (run.folder / "note.txt").write_text(f"j{CODES}", encoding="utf-8", errors="replace")
        attempt = {"attempt": 2, "start": CODES, "changes": {CODES: [CODES, CODES]}}
        parent = {"source": CODES, "skipped": {CODES: CODES}, "loaded": [CODES], "comparison": CODES}
        (run.folder / "lineage.json").write_text(json.dumps({"attempts": [attempt], "parent": parent}))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "runs list",
        "runs list --json",
        "runs show @last",
        "runs show @last --json",
        "runs compare A B",
        "runs compare A B -m nothing",
        "runs best",
        "runs best nothing",
        "runs tag @last",
        "runs note @last",
        "runs prune --keep-best 0 --dry-run",
        "runs rm @last",
        "runs show @best:nothing",
        "diff A B",
        "config diff A B",
        "config save A b:my_ppo",
        "eval A",
        "resume A",
        "eject A",
    ],
)
def test_no_command_prints_codes(command: str, store: Path) -> None:
    """Whether it answers or refuses."""
    ids = dict(zip("AB", sorted(path.name for path in (store / "runs").glob("[a-z]????"))))
    done = gymnast(*(ids.get(word, word) for word in command.split()), cwd=store)
    assert done.returncode in (0, 1, 2) and done.stdout + done.stderr
    assert obeyed(done.stdout + done.stderr) == set()
    assert "Traceback" not in done.stderr


def test_there_is_no_other_way_to_the_terminal() -> None:
    """Commands print by `echo`, `echo_json` and our console, which clean what they are given."""
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(SOURCE))
        riches = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "rich.console"
            for alias in node.names
            if alias.name == "Console"
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in riches, f"{name} makes a console of rich's own"
            assert called not in ("typer.echo", "click.echo", "typer.secho") or name == "cli/options.py", name

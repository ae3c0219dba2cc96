"""Commands and scripts of a page, one after the other in one folder, each in a fork: torch is imported once for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from launch import PATIENCE, environment

DRIVER = """
import json, os, sys, tempfile
import gymnasium, torch
import gymnast.api, gymnast.training.train
from gymnast.cli.entry import main

torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as warm:  # what a first training reads and sets up is then there in every fork
    gymnast.api.train("CartPole-v1:ppo", env_steps=64, eval__episodes=2, runs_dir=warm)
for number, (kind, what) in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if child == 0:
        sys.stdin = open("answer.txt")
        output = os.open(f"output-{number}.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1), os.dup2(output, 2)
        try:
            if kind == "python":
                exec(compile(what, "<page>", "exec"), {"__name__": "__main__"})
            else:
                sys.argv = what
                main()
        except SystemExit as leave:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(leave.code or 0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(70)
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """How a step ended."""

    code: int
    output: str


def do_all(steps: list[tuple[str, Any]], folder: Path) -> list[Done]:
    """Do `("command", words)` and `("python", text)`; questions are answered from answer.txt."""
    if not (folder / "answer.txt").exists():
        (folder / "answer.txt").write_text("n\n" * 3)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        env=environment(),
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = [int(line) for line in done.stdout.split()]
    return [Done(code, (folder / f"output-{number}.txt").read_text()) for number, code in enumerate(codes)]

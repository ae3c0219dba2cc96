"""docs/tour.md is typed as it stands: every command works, and prints what the page shows, numbers and run ids aside."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from pages import do_all

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
MY_ENV = """import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

gym.register("Mine-v0", entry_point=CartPoleEnv, max_episode_steps=200)
"""
NUMBER = re.compile(r"[-−]?\d[\d,]*\.?\d*(e[-+]?\d+)?")
RUN = re.compile(
    r"\b[a-z0-9]{5}(?= in |  CartPole|  finished|,? step=| *$)|(?<=/)[a-z0-9]{5}\b|(?<=\brun )[a-z0-9]{5}\b"
)
ERRORS = 2
"""Commands at the end that are refused."""


def typed() -> list[tuple[str, list[str]]]:
    """Each command with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```\n(\$ .*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def masked(line: str) -> str:
    """Without what differs between two machines or two days."""
    return " ".join(NUMBER.sub("#", RUN.sub("ID", line)).replace("not solved", "solved").split())


def test_the_tour(folder: Path) -> None:
    shutil.copy(ROOT / "tests" / "config" / "zoo" / "ppo.yml", folder / "ppo.yml")
    (folder / "my_env.py").write_text(MY_ENV)
    steps = typed()
    assert len(steps) > 15
    done = do_all([("command", shlex.split(command, comments=True)) for command, _ in steps], folder)
    for number, ((command, shown), (code, output)) in enumerate(zip(steps, done, strict=True)):
        assert (code == 0) is (number < len(steps) - ERRORS), f"{command}\n{output}"
        rest = [masked(line) for line in output.splitlines()]
        for line in shown:
            begins, open_end = masked(line.removesuffix("…").rstrip()), line.endswith("…")
            if line == "…":
                continue
            place = next(
                (i for i, one in enumerate(rest) if one == begins or (open_end and one.startswith(begins))), None
            )
            assert place is not None, f"{command}\nprints no longer: {line}\n{output}"
            del rest[: place + 1]


def test_every_command_says_how_long_it_took() -> None:
    assert all(re.search(r" # \d+ s$", command) for command, _ in typed())
    assert len(re.findall(r"^\d+\. \*\*", PAGE, re.MULTILINE)) == 10

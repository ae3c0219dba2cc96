"""Runs at their end: what is said about the score, and how they train on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults.server import Child, Server

from gymnast.runs.store import Run, last_run

CONFIG = """\
id: Identity-v0
spec: {solved_at: 9.5, solved_source: tests}
variants:
  ppo:
    env: {module: small_envs, n_envs: 8}
    policy: {hidden: [32]}
    algo: {n_steps: 16, batch_size: 32, n_epochs: 4, learning_rate: 0.01, gamma: 0.0}
    train: {env_steps: 8000}
    eval: {every: 800, episodes: 20}
"""


@pytest.fixture
def here(folder: Path) -> Path:
    """A working folder with a config of the user's own."""
    (folder / "mine.yaml").write_text(CONFIG)
    return folder


def good(child: Child) -> str:
    """What a command printed that went well."""
    assert child.code == 0, child.err
    return child.out


def newest(folder: Path) -> Run:
    """The last run."""
    run = last_run(folder / "runs")
    assert run is not None
    return run


@pytest.mark.parametrize(("given", "reason"), [((), "solved"), (("-n", "128", "lr=1e-6"), "budget spent")])
def test_a_finished_run_asks_how_far_it_trains_on(
    commands: Server, here: Path, given: tuple[str, ...], reason: str
) -> None:
    """Without `-n` nothing is trained, whatever else is changed; the sentence holds the command to type."""
    good(commands.run("train", "mine.yaml:ppo", "-q", *given, cwd=here))
    before = newest(here).status()
    refused = commands.run("resume", "@last", "--with", "lr=1e-3", cwd=here)
    advice = f"To train it further: gymnast resume {newest(here).id} -n {2 * before.env_steps}\n"
    assert refused.code == 2
    assert f"is finished ({reason} after {before.env_steps:,} env steps). {advice}" in refused.err
    spent = commands.run("resume", "@last", "-n", str(before.env_steps), cwd=here)
    assert spent.code == 2 and advice in spent.err
    assert newest(here).status() == before


def test_a_solved_run_trains_on_past_the_next_evaluation(commands: Server, here: Path) -> None:
    """It is solved there, too, and goes on to the end of its budget, unless the user wants otherwise."""
    good(commands.run("train", "mine.yaml:ppo", "-q", cwd=here))
    run = newest(here)
    solved = run.status()
    out = good(commands.run("resume", "-n", str(solved.env_steps + 1800), cwd=here))
    assert f"Run {run.id} is solved already" in out
    assert run.status().env_steps >= solved.env_steps + 1800 and run.status().stop_reason == "budget spent"
    assert run.status().verdict == solved.verdict
    good(commands.run("resume", "-n", "20000", "-q", "--with", "train.stop_when_solved=true", cwd=here))
    assert run.status().stop_reason == "solved" and run.status().env_steps < 20000


def test_best_and_last_are_told_apart(commands: Server, here: Path) -> None:
    """A solved run that is ruined by a rate: the best checkpoint stays and is what `eval` takes, both scores are shown."""
    good(commands.run("train", "mine.yaml:ppo", "-q", cwd=here))
    run = newest(here)
    solved = run.status()
    out = good(commands.run("resume", "-n", str(solved.env_steps + 1500), "--with", "lr=5", cwd=here))
    status = run.status()
    best, last = status.best_return, status.last_return
    assert best is not None and last is not None and last < 5 and best >= 9.5
    assert (status.best_at, status.last_at) == (solved.best_at, status.env_steps)
    last_line = rf"^last: \S+ ± \S+ over 20 episodes, deterministic, at {status.env_steps:,} env steps$"
    assert re.search(last_line, out, re.M), out
    assert re.search(rf"^best: \S+, at {solved.best_at:,} env steps$", out, re.M), out
    assert f"\n{solved.verdict}\n" in out  # what solved the env
    header, row = good(commands.run("runs", "list", cwd=here)).splitlines()[:2]
    assert re.search(r"best +last", header) and re.search(rf"{best:.4g}\S* +{last:.4g}", row)
    shown = good(commands.run("runs", "show", cwd=here))
    assert f"\n{status.verdict}\n" in shown
    assert re.search(rf"evaluations: best {best:.4g}\S* at {solved.best_at:,} env steps, last {last:.4g}", shown)
    judged = good(commands.run("eval", "-e", "20", cwd=here))
    assert f"step={solved.best_at}" in judged and "\nsolved: " in judged


def test_a_run_that_ends_unsolved_says_so(commands: Server, here: Path) -> None:
    """With the score and the threshold: at the end, in `runs show` and, about its own episodes, in `eval`."""
    out = good(commands.run("train", "mine.yaml:ppo", "-n", "128", "lr=1e-6", cwd=here))
    sentence = re.search(r"^not solved: \d+(\.\d+)? of 9\.5, evaluated at 128 env steps$", out, re.M)
    assert sentence, out
    assert f"{sentence[0]}\nbudget spent after 128 env steps" in out
    assert f"\n{sentence[0]}\n" in good(commands.run("runs", "show", cwd=here))
    assert re.search(r"^not solved: \d+(\.\d+)? of 9\.5$", good(commands.run("eval", "-e", "20", cwd=here)), re.M)
    assert '"sentence": "not solved: ' in good(commands.run("eval", "-e", "20", "--json", cwd=here))

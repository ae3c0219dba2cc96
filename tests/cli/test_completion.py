"""Completion: what is offered, in real shells, and that it imports nothing slow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launch import environment, gymnast
from made_runs import make_run

from gymnast.cli.complete import answer


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("re", ["report", "resume", "rewind"]),
        ("config s", ["save", "schema", "show"]),
        ("train FrozenLake-v1:ppo_8", ["FrozenLake-v1:ppo_8x8", "FrozenLake-v1:ppo_8x8_deterministic"]),
        ("train Pend", ["Pendulum-v1:angle_recurrent_ppo", "Pendulum-v1:ppo"]),
        ("train ALE/", ["ALE/Breakout-v5:", "ALE/Pong-v5:"]),
        ("train X:ppo algo.gam", ["algo.gamma="]),
        ("train X:ppo gae", ["gae_lambda="]),
        ("train X:ppo clip_c", ["clip_coef="]),
        ("train X:reinforce base", ["baseline="]),
        ("train X:reinforce baseline=", ["baseline=learned", "baseline=mean", "baseline=none"]),
        ("train X:ppo policy.layer_norm=", ["policy.layer_norm=false", "policy.layer_norm=true"]),
        ("train --algo a", ["a2c"]),
        ("train --env Acr", ["Acrobot-v1"]),
        ("train --log-f", ["--log-folder"]),
        ("train --learning-r", ["--learning-rate"]),
        ("config diff Pend", ["Pendulum-v1:angle_recurrent_ppo", "Pendulum-v1:ppo"]),
        ("nonsense x", []),
        ("train X:ppo nonsense", []),
    ],
)
def test_what_is_offered(typed: str, offered: list[str], folder: Path) -> None:
    assert answer(typed.split(" ")) == offered


def test_runs(folder: Path) -> None:
    """Newest names, ids, and the checkpoints of one."""
    run = make_run(folder / "runs", env="CartPole-v1")
    assert answer(["eval", "@"]) == ["@best", "@best:CartPole-v1", "@last"]
    assert answer(["runs", "compare", "@last", run.id[:2]]) == [run.id]
    assert set(answer(["resume", f"{run.id}/"])) >= {f"{run.id}/best", f"{run.id}/last"}
    assert answer(["runs", "show", "-f", "elsewhere", ""]) == []


def test_nothing_slow_is_imported(folder: Path) -> None:
    """Torch and Gymnasium take seconds."""
    code = "import sys; sys.argv[1:] = ['__complete', 'train', 'CartPole-v1:ppo', 'algo.'];"
    code += "from gymnast.cli.entry import main; main();"
    code += "assert not {'torch', 'gymnasium', 'numpy'} & set(sys.modules), 'slow'"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "algo.gamma=\n" in done.stdout


LINES = {
    "gymnast config s": "save schema show",
    "gymnast train CartPole-v1:pi": "pixels_ppo",
    "gymnast train X:ppo algo.gam": "algo.gamma=",
    "gymnast train X:ppo policy.activation=t": "tanh",
}
IN_BASH = """eval "$(gymnast completion bash)"
while read -r COMP_LINE; do COMP_POINT=${#COMP_LINE}; COMPREPLY=(); _gymnast; echo "${COMPREPLY[*]}"; done"""
IN_FISH = "gymnast completion fish | source; while read -l line; echo (complete -C $line); end"


def in_shell(shell: str, code: str, folder: Path) -> list[str]:
    """What the shell completes for each line."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", code],
        cwd=folder,
        env={**environment(), "PATH": path},
        input="\n".join(LINES) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


def test_bash_replaces_what_it_takes_for_a_word(folder: Path) -> None:
    """Bash cuts words at `:` and `=`, so only the part behind them is an answer."""
    assert in_shell("bash", IN_BASH, folder) == list(LINES.values())


def test_fish_replaces_whole_words(folder: Path) -> None:
    whole = ["save schema show", "CartPole-v1:pixels_ppo", "algo.gamma=", "policy.activation=tanh"]
    assert in_shell("fish", IN_FISH, folder) == whole


def test_other_shells_are_refused(folder: Path) -> None:
    done = gymnast("completion", "tcsh", cwd=folder)
    assert done.returncode == 2 and "bash, zsh, fish" in done.stderr

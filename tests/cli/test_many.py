"""`train --seeds` and `train --chain` as real commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from launch import gymnast

from gymnast.cli.many import Several, several_of
from gymnast.errors import UsageError

TINY = ("CartPole-v1:ppo", "-n", "512", "eval.episodes=4")


def test_seeds_are_runs_with_one_score(folder: Path) -> None:
    """Two at the same time and one after the other: the same runs, and the interquartile mean of their scores."""
    found = []
    for name, jobs in (("side", "2"), ("line", "1")):
        done = gymnast("train", *TINY, "--seeds", "3,5", "--jobs", jobs, "-f", name, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = json.loads(gymnast("runs", "list", "-f", name, "--json", cwd=folder).stdout)
        scores = {row["seed"]: row["last_return"] for row in rows}
        assert sorted(scores) == [3, 5]
        assert f"interquartile mean {np.mean(list(scores.values())):.1f}" in done.stdout
        assert "over 2 seeds" in done.stdout and "gymnast runs compare" in done.stdout
        found.append(scores)
    assert found[0] == found[1]


def test_a_chain_goes_on_from_the_best(folder: Path) -> None:
    """Lineage, optimizer, seeds and the score each run begins with are those that the table names."""
    done = gymnast("train", *TINY, "--chain", "3", "--until", "end", "-f", "runs", "-q", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout[done.stdout.index("without the optimizer") :]
    first, *links = [re.findall(r"(\w{5}): (?:(\S+) → )?([-\d.]+)", line) for line in table.splitlines()[1:4]]
    assert len(first) == 1 and "the same run" in table
    parents = [first[0][0]] * 2
    for number, pair in enumerate(links, 1):
        for side, (run, before, _) in enumerate(pair):
            config = json.loads(gymnast("runs", "show", run, "--json", cwd=folder).stdout)["config"]["train"]
            assert config["init_from"].startswith(f"{parents[side]}/") and config["seed"] == number
            assert config["init_optimizer"] is (side == 1)
            lineage = json.loads((folder / "runs" / run / "lineage.json").read_text())
            assert f"{lineage['parent']['score_before_training']['mean']:.1f}" == before
            parents[side] = run


def test_a_chain_that_is_solved_ends(folder: Path) -> None:
    """Every run of this env is solved at once."""
    words = ("CartPole-v1:ppo", "-n", "512", "eval.episodes=4", "spec.solved_at=1")
    done = gymnast("train", *words, "--chain", "4", "-f", "runs", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    runs = [path for path in (folder / "runs").glob("*/status.json") if not path.parent.is_symlink()]
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"seeds": "a"}, "--seeds takes a number of seeds"),
        ({"seeds": "2", "chain": 3}, "not both"),
        ({"jobs": 3}, "give --seeds, too"),
        ({"until": "solved"}, "give --chain, too"),
        ({"chain": 3, "until": "dawn"}, "--until is 'solved'"),
        ({"seeds": "2", "alone": {"--profile": True}}, "--profile is for one run, and --seeds trains several"),
    ],
)
def test_what_does_not_go_together(words: dict, sentence: str) -> None:
    given = {"seeds": None, "jobs": None, "chain": None, "until": None, "alone": {}} | words
    with pytest.raises(UsageError) as caught:
        several_of(**given)
    assert sentence in str(caught.value)


def test_words_for_seeds() -> None:
    def seeds(text: str) -> object:
        several = several_of(text, None, None, None, {})
        assert several is not None
        return several.seeds

    assert (seeds("5"), seeds("0,7"), seeds("7,")) == (5, [0, 7], [7])
    assert several_of(None, None, 3, None, {}) == Several(chain=3)
    assert several_of(None, None, None, None, {"--resume": True}) is None

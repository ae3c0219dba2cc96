"""The study of diagnose: its figures follow from its lines, a torn line is run again, and commands keep seed and budget apart."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import fault_study as faults
import pytest
from faulty_configs import BUDGETS, HELD, PARTS, parse

from gymnast.config.load import resolve

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize("part", PARTS)
def test_the_figures_follow_from_the_lines(part: str) -> None:
    told = json.loads((RESULTS / "faults.json").read_text(encoding="utf-8"))[part]
    lines = faults.Lines(RESULTS / "faults.jsonl")
    assert json.loads(json.dumps(faults.summary(lines, part))) == told
    assert told["faults"] == told["healthy"] == 30
    assert all(run["cost"] >= 0.25 for run in told["runs"])


def test_a_third_of_the_faults_set_aside_is_of_kinds_that_were_not_used() -> None:
    lines = faults.Lines(RESULTS / "faults.jsonl")
    unseen = {kind.id for kind in HELD}
    kinds = {part: [parse(line["name"]).kind for line in faults.accepted_of(lines, part)] for part in PARTS}
    assert not unseen & set(kinds["build"])
    assert sum(kind in unseen for kind in kinds["held"]) >= 10


def test_a_command_runs_as_printed_with_another_seed_and_the_budget_of_the_run() -> None:
    reference = "CartPole-v1:ppo"
    printed = (
        f"gymnast train {reference} train.env_steps=900000 'env.wrappers=[{{id: reward_scale, factor: 2}}]' --seed 3"
    )
    words = faults.as_printed(printed, 77, BUDGETS[reference])
    assert words[:2] == ["train", reference] and words[-3:] == ["--seed", "77", "--quiet"]
    config = resolve(reference, words[2:-3]).config
    assert config.train.env_steps == BUDGETS[reference] and config.env.wrappers[0].args == {"factor": 2}
    with pytest.raises(SystemExit, match="no command of one run"):
        faults.as_printed("gymnast config save a b && gymnast train b --seed 0", 1, 1)


def test_every_suggested_command_was_run_as_it_was_printed() -> None:
    lines = faults.Lines(RESULTS / "faults.jsonl")
    for line in lines.of("held", "cure"):
        case = parse(line["name"].partition("#")[0])
        ran, printed = shlex.split(line["command"]), shlex.split(line["suggested"])
        given = [word for word in printed[3:-2] if not word.startswith("train.env_steps=")]
        assert ran[1:3] == printed[1:3] and ran[3 : 3 + len(given)] == given
        assert f"train.env_steps={BUDGETS[case.preset]}" in ran


def test_a_torn_line_counts_as_not_run(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = faults.Lines(path)
    lines.add({"part": "build", "stage": "healthy", "name": "a", "score": 1.0})
    lines.add({"part": "build", "stage": "healthy", "name": "b", "score": 2.0})
    path.write_text(path.read_text()[:-9])
    assert [line["name"] for line in faults.Lines(path).of("build", "healthy")] == ["a"]
    again = faults.Lines(path)
    again.add({"part": "build", "stage": "healthy", "name": "b", "score": 3.0})
    assert [line["score"] for line in faults.Lines(path).of("build", "healthy")] == [1.0, 3.0]

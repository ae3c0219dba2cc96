"""When to evaluate, and on how many episodes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import small_envs
from runs_alike import PER_ITERATION, Watcher, assert_same_end, resume, run, small

from gymnast.config.load import Resolved
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.errors import EnvError
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.evaluating.cadence import EvalBudget, EvalCadence, make_cadence


def config(**sections) -> RunConfig:
    """A run of nothing in particular."""
    base = {"env": {"id": "X-v0"}, "algo": {"id": "ppo"}, "train": {"env_steps": 1000}}
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return RunConfig.model_validate(base)


def evaluations(cadence: EvalCadence, returns, step: int = 10) -> list[int]:
    """At which env steps an evaluation is due."""
    return [(i + 1) * step for i, value in enumerate(returns) if cadence.due((i + 1) * step, value)]


def test_evaluations_come_every_so_many_steps():
    assert evaluations(EvalCadence(30, 0, None), [None] * 12) == [30, 60, 90, 120]
    assert evaluations(EvalCadence(25, 0, None), [None] * 10) == [30, 60, 90]
    assert evaluations(EvalCadence(5, 0, None), [None] * 4) == [10, 20, 30, 40]


def test_no_evaluation_during_the_warm_up():
    assert evaluations(EvalCadence(20, 50, None), [None] * 9) == [50, 70, 90]


def test_evaluation_starts_at_once_when_training_looks_good_enough():
    returns = [None, 1.0, 99.0, 100.0, 3.0, 3.0, 3.0, 3.0]
    # Not before 100 is reached; then at once, and from there on whatever the training return does.
    assert evaluations(EvalCadence(20, 0, 100.0), returns) == [40, 60, 80]
    assert evaluations(EvalCadence(20, 60, 100.0), returns) == []
    assert evaluations(EvalCadence(20, 60, 100.0), [*returns, 200.0, 0.0, 0.0]) == [90, 110]
    assert evaluations(EvalCadence(20, 0, 100.0), [math.nan] * 5) == []


def test_a_resumed_cadence_goes_on_where_it_stood():
    whole, first = EvalCadence(25, 0, 5.0), EvalCadence(25, 0, 5.0)
    returns = [1.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    expected = evaluations(whole, returns)
    before = [step for step in (10, 20, 30) if first.due(step, returns[step // 10 - 1])]
    second = EvalCadence(25, 0, 5.0)
    second.load_state(first.state())
    after = [step for step in (40, 50, 60, 70) if second.due(step, returns[step // 10 - 1])]
    assert before + after == expected == [20, 50]


def test_the_cadence_comes_from_the_config():
    run = config(eval={"every": 70, "episodes": 3, "warmup": 30, "start_at": 5.0})
    assert make_cadence(run, make_plan(run)) == EvalCadence(70, 30, 5.0)
    run = config(
        eval={"every": 50, "episodes": 3, "start_fraction": 0.5},
        spec={"solved_at": 10.0, "random_score": {"score": 4.0, "source": "x"}},
    )
    assert make_cadence(run, make_plan(run)) == EvalCadence(50, 0, 7.0)


# ---- what the config leaves open -----------------------------------------------------------------------------------


def play(budget: EvalBudget, length: float, step: int = 1000, returns: float | None = None) -> list[tuple[int, int]]:
    """Steps and episodes of all evaluations of a run whose episodes last `length`, the one at the end included."""
    cadence = EvalCadence(budget.every or budget.env_steps // 20, 0, None, budget)
    found = []
    for at in range(step, budget.env_steps + 1, step):
        if cadence.due(at, returns, length) or at == budget.env_steps:
            episodes = cadence.extent(budget.episodes, length, at).episodes
            budget.note(Evaluation([0.0] * episodes, [int(length)] * episodes, [], True))
            found.append((at, episodes))
    return found


def steps_of(evaluations: list[tuple[int, int]], length: float) -> float:
    """All env steps of these evaluations."""
    return sum(episodes for _, episodes in evaluations) * length


def test_short_episodes_leave_room_for_everything() -> None:
    """Every twentieth of the run, 100 episodes."""
    assert play(EvalBudget(1_000_000, None, None), 20) == [(at, 100) for at in range(50_000, 1_000_001, 50_000)]


@pytest.mark.parametrize("length", [20, 50, 200, 500, 1000, 2048, 20_000, 100_000])
@pytest.mark.parametrize("env_steps", [100_000, 1_000_000, 10_000_000])
def test_evaluations_take_a_tenth_of_the_run(env_steps: int, length: int) -> None:
    """Or one episode, where that alone is more."""
    found = play(EvalBudget(env_steps, None, None), length)
    steps = steps_of(found, length)
    assert found[-1][0] == env_steps
    assert steps <= max(0.11 * env_steps, length)
    if 5 <= 0.1 * env_steps / length <= 2000:  # with more, every evaluation has its 100 episodes
        assert steps >= 0.05 * env_steps
    assert all(steps_of(found[: i + 1], length) <= 0.101 * at for i, (at, _) in enumerate(found[:-1]))


def test_freeway_in_40000_steps_is_evaluated_once() -> None:
    """Its episodes last 2,048 steps; 30 of them every 2,000 steps were 95 % of the run."""
    assert play(EvalBudget(40_000, None, None, 27_000), 2048) == [(40_000, 2)]


def test_what_is_stated_is_obeyed() -> None:
    """The other of the two makes room, as far as it can."""
    assert play(EvalBudget(100_000, 20_000, None), 500) == [(at, 4) for at in range(20_000, 100_001, 20_000)]
    assert play(EvalBudget(100_000, 1000, None), 500)[:2] == [(1000, 1), (2000, 1)]
    assert play(EvalBudget(1_000_000, None, 50), 500) == [(at, 50) for at in range(250_000, 1_000_001, 250_000)]
    assert play(EvalBudget(100_000, None, 50), 500) == [(100_000, 50)]


def test_a_run_that_may_be_solved_is_evaluated_ahead_of_time() -> None:
    """At once, and again only after the usual twentieth."""
    at, episodes = play(EvalBudget(500_000, None, None, solved_at=195.0), 200, returns=200.0)[0]
    assert (at, episodes) == (1000, 35)
    assert play(EvalBudget(500_000, None, None, solved_at=195.0), 200, returns=190.0)[0] == (70_000, 35)


def test_lengths_seen_in_evaluation_count_too() -> None:
    """A greedy policy that runs to the time limit makes evaluations rarer, though training's episodes are short."""
    short = EvalBudget(1_000_000, None, None, 1000)
    cadence = EvalCadence(50_000, 0, None, short)
    assert cadence.due(50_000, None, 20.0) and cadence.extent(None, 20.0, 1).episodes == 100
    short.note(Evaluation([0.0] * 100, [1000] * 100, [], True))
    assert not cadence.due(900_000, None, 20.0)
    assert cadence.extent(None, 20.0, 1).episodes == 22


def test_nothing_is_evaluated_before_a_length_is_known() -> None:
    """Without a time limit the first episode of training must end first."""
    cadence = EvalCadence(50, 0, None, EvalBudget(1000, None, None))
    assert not cadence.due(500, None, None) and cadence.due(510, None, 5.0)


def test_an_open_cadence_goes_on_where_it_stood() -> None:
    """All it knows is in the checkpoint."""
    whole = play(EvalBudget(200_000, None, None), 300)
    budget, found = EvalBudget(200_000, None, None), []
    cadence = EvalCadence(10_000, 0, None, budget)
    for at in range(1000, 200_001, 1000):
        if cadence.due(at, None, 300) or at == 200_000:
            episodes = cadence.extent(None, 300, at).episodes
            budget.note(Evaluation([0.0] * episodes, [300] * episodes, [], True))
            found.append((at, episodes))
        state, budget = cadence.state(), EvalBudget(200_000, None, None)
        cadence = EvalCadence(10_000, 0, None, budget)
        cadence.load_state(state)
    assert found == whole


# ---- in real runs --------------------------------------------------------------------------------------------------

ITERATIONS = 30


def open_run(**changes: Any) -> Resolved:
    """Episodes of up to 40 steps in a run of 1,920."""
    env = {"id": "CartPole-v1", "time_limit": 40}
    evaluation = {"every": None, "episodes": None, **changes.pop("eval", {})}
    return small("a2c", env, env_steps=ITERATIONS * PER_ITERATION, eval=evaluation, **changes)


def test_a_run_evaluates_for_a_tenth_of_its_steps(tmp_path: Path) -> None:
    """Counted in its own rows; the score of the last weights is among them."""
    rows = list(MetricRows(run(open_run(), tmp_path).run.metrics_path))
    judged = [row for row in rows if row["eval/return_mean"] is not None]
    steps = sum(row["eval/episodes"] * row["eval/length_mean"] for row in judged)
    assert judged[-1] == rows[-1] and 0 < steps <= 0.15 * rows[-1]["env_steps"]


@pytest.mark.parametrize("stop_after", [1, 16, 29])
def test_evaluations_of_a_resumed_run_come_where_they_would_have(stop_after: int, tmp_path: Path) -> None:
    """Spent steps and seen lengths are in the checkpoint."""
    resolved = open_run(eval={"episodes": 1})
    whole = run(resolved, tmp_path)
    assert sum(row["eval/return_mean"] is not None for row in MetricRows(whole.run.metrics_path)) > 2
    stopped = run(resolved, tmp_path, Watcher(stop_after=stop_after))
    assert_same_end(whole.run, resume(resolved, stopped.run).run)


def test_few_lucky_episodes_do_not_solve_an_env(tmp_path: Path) -> None:
    """What passes on few episodes is played again on 100 fresh ones, and their score is the one that is kept."""
    easy = open_run(spec={"solved_at": 1.0}, train={"stop_when_solved": True})
    result = run(easy, tmp_path)
    assert result.solved and result.evaluation is not None
    assert len(result.evaluation.returns) == 100 and result.evaluation.steps_before > 0
    hard = run(open_run(spec={"solved_at": 41.0}), tmp_path)
    assert hard.evaluation is not None and len(hard.evaluation.returns) < 100 and not hard.solved


class Endless(small_envs.Identity):
    """Without a time limit; ends after `length` steps, or never."""

    def __init__(self, length: int = -1) -> None:
        super().__init__()
        self.length = length

    def reset(self, **arguments: Any) -> Any:
        """Another length than the usual one."""
        found = super().reset(**arguments)
        self.left = self.length
        return found


gym.register("Endless-v0", Endless)


def test_a_run_whose_episodes_never_end_says_so(tmp_path: Path) -> None:
    """A warning after 2,000 steps of each env, an error with advice after 10,000, and the weights are kept."""
    watcher = Watcher()
    algo = {"id": "a2c", "n_steps": 500, "learning_rate": 1e-3}
    env = {"id": "Endless-v0", "n_envs": 1}
    with pytest.raises(EnvError, match=r"ended in the first 10,000 steps.*env\.time_limit.*max_episode_steps"):
        run(small("a2c", env, algo=algo, env_steps=10**6, eval={"every": None}), tmp_path, watcher)
    assert len(watcher.warnings) == 1 and "in the first 2,000 steps" in watcher.warnings[0]
    (folder,) = tmp_path.glob("[a-z]????")
    assert checkpoint.read_pointer(folder, "last") == "step=10000"


def test_an_evaluation_that_never_ends_keeps_the_weights(tmp_path: Path) -> None:
    """It is an error after 10,000 steps; a time limit lets the run go on, and its last weights are evaluated."""
    env = {"id": "Endless-v0", "kwargs": {"length": 10}}
    evaluation = {"every": 10**9, "episodes": 2, "env": {"kwargs": {"length": -1}}}
    with pytest.raises(EnvError, match=r"10,000 steps were played.*eval\.env\.time_limit"):
        run(small("ppo", env, eval=evaluation), tmp_path)
    (folder,) = tmp_path.glob("[a-z]????")
    assert checkpoint.read_pointer(folder, "last") == f"step={6 * PER_ITERATION}"
    limited = {**evaluation, "env": {"kwargs": {"length": -1}, "time_limit": 7}}
    finished = resume(small("ppo", env, eval=limited), Run(folder))
    assert finished.evaluation is not None and finished.evaluation.lengths == [7, 7]

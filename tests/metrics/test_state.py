"""What is said about a run, on made-up histories."""

from __future__ import annotations

import math
import random

import pytest

from gymnast.metrics.goal import Goal
from gymnast.metrics.history import History
from gymnast.metrics.state import short, state_of

CARTPOLE = Goal(random=22.4, target=475.0, perfect=500.0, horizon=500)
BUDGET = 1000
"""Rows of a whole run, 10 vec steps and 80 env steps each."""


def run(scores, *, episodes=None, noise=0.0, budget=BUDGET, **more):
    """A history with one training return per row; None where no episode has ended yet."""
    history, generator, ended = History(), random.Random(0), 0
    for number, score in enumerate(scores, 1):
        ended += score is not None
        history.append(
            {
                "vec_steps": 10 * number,
                "env_steps": 80 * number,
                "progress": number / budget,
                "rollout/return_mean": None if score is None else score + generator.gauss(0, noise),
                "rollout/return_std": None if score is None else 5.0,
                "rollout/episodes": ended if episodes is None else episodes,
                "train/loss": 0.1,
                "train/solved": 0.0,
                **more,
            }
        )
    return history


def climb(low, high, rows):
    return [low + (high - low) * row / (rows - 1) for row in range(rows)]


def test_before_the_first_row():
    state = state_of(History(), CARTPOLE)
    assert (state.kind, state.sentence) == ("starting", "starting: the first steps are being collected")


def test_before_the_first_episode_ends():
    state = state_of(run([None] * 12), CARTPOLE)
    assert (state.kind, state.sentence) == (
        "waiting",
        "waiting for the first episode to end: step 120 of at most 500",
    )
    assert state_of(run([None] * 60), CARTPOLE).sentence == "waiting for the first episode to end"  # longer than known
    assert state_of(run([None] * 12), Goal()).sentence == "waiting for the first episode to end"


@pytest.mark.parametrize(("rows", "episodes", "text"), [(1, 1, "1 episode so far"), (3, 1200, "1,200 episodes so far")])
def test_too_early_for_a_trend(rows, episodes, text):
    state = state_of(run([20.0] * rows, episodes=episodes), CARTPOLE)
    assert state.kind == "early" and text in state.sentence


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("rows", [10, 100, 400])
def test_learning(noise, rows):
    state = state_of(run(climb(22.0, 22.0 + rows, rows), noise=noise), CARTPOLE)
    assert (state.kind, state.tone) == ("learning", "good")
    assert state.sentence.startswith("learning: the score rose by ")


def test_the_rise_is_the_one_that_is_named():
    state = state_of(run(climb(0.0, 399.0, 400)), CARTPOLE)
    assert state.sentence == "learning: the score rose by 100.0 in the last 1k vec_steps (8k env_steps)"


def test_a_pause_within_a_tenth_of_the_budget_is_no_stall():
    scores = [*climb(22.0, 200.0, 100), 220.0]
    assert state_of(run(scores + [220.0] * 98), CARTPOLE).kind == "learning"
    assert state_of(run(scores + [220.0] * 104), CARTPOLE).kind == "stalled"


def test_stalled_says_for_how_long_and_at_what():
    state = state_of(run(climb(22.0, 200.0, 100) + [200.0] * 500, noise=1.0), CARTPOLE)
    assert (state.kind, state.tone) == ("stalled", "warning")
    assert state.sentence.startswith("stalled for 5k vec_steps (40k env_steps): the best was 20")


def test_a_policy_that_stays_at_random():
    state = state_of(run([22.0] * 300, noise=2.0), CARTPOLE)
    assert state.kind == "random"
    assert state.sentence.startswith("no better than random so far: ")
    assert state.sentence.endswith(" after 3k vec_steps (24k env_steps)")
    assert state_of(run([22.0] * 300, noise=2.0), Goal(target=475.0)).kind == "stalled"  # nobody knows what random gets


def test_lucky_episodes_at_the_beginning_are_no_learning():
    """What a run without a learning rate showed: 18.8, 25.9, and below random actions again within a tenth of the budget."""
    scores = [*climb(18.8, 25.9, 20), *climb(25.9, 19.9, 30)]
    assert state_of(run(scores), CARTPOLE).kind == "random"
    # One that begins below random actions and climbs is learning, wherever they are.
    assert state_of(run(climb(-200.0, 10.0, 50)), CARTPOLE).kind == "learning"


def test_a_policy_that_falls_apart():
    state = state_of(run(climb(22.0, 300.0, 200) + climb(300.0, 80.0, 60), noise=2.0), CARTPOLE)
    assert (state.kind, state.tone) == ("falling", "bad")
    assert state.sentence.startswith("falling: the training score is ")


def test_noise_is_no_fall():
    assert state_of(run(climb(22.0, 200.0, 200), noise=4.0), CARTPOLE).kind == "learning"


def test_training_at_the_target_waits_for_an_evaluation():
    state = state_of(run(climb(400.0, 480.0, 50)), CARTPOLE)
    assert state.kind == "confirming"
    assert state.sentence == "solved, confirming: training reached 480.0 of 475, an evaluation decides"


def test_an_evaluation_within_its_margin_is_not_decided():
    state = state_of(run(climb(100.0, 300.0, 50), **{"eval/return_mean": 477.0}), CARTPOLE)
    assert state.kind == "confirming"
    assert state.sentence == "solved, confirming: evaluated at 477.0 of 475, still within the margin of error"


def test_solved():
    solved = {"eval/return_mean": 500.0, "train/solved": 1.0}
    state = state_of(run(climb(100.0, 300.0, 50), **solved), CARTPOLE)
    assert (state.kind, state.tone) == ("solved", "good")
    assert state.sentence == "solved: evaluated at 500.0, the target is 475"
    on = Goal(random=22.4, target=475.0, ends_when_solved=False)
    assert state_of(run(climb(100.0, 300.0, 50), **solved), on).sentence.endswith("475; training goes on")


def test_the_exact_expectation_is_the_score_where_there_is_one():
    exact = {"eval/return_mean": 0.69, "eval/exact_return": 0.7298, "train/solved": 1.0}
    assert "evaluated at 0.73" in state_of(run([0.5] * 9, **exact), Goal(random=0.01, target=0.7)).sentence


def test_a_score_just_below_the_target_is_not_confirming():
    assert state_of(run(climb(22.0, 474.9, 100)), CARTPOLE).kind == "learning"


@pytest.mark.parametrize("name", ["train/loss", "rollout/return_mean"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_none(name, value):
    history = run(climb(22.0, 200.0, 50))
    history.append({"vec_steps": 510, name: value})
    state = state_of(history, CARTPOLE)
    assert (state.kind, state.sentence) == ("broken", f"broken: {name} is not a finite number")


def test_evaluations_are_the_score_where_no_training_episode_ends():
    history = History()
    for number in range(1, 20):
        history.append({"vec_steps": number, "progress": number / 100, "eval/return_mean": float(number)})
    assert state_of(history, Goal(random=0.0, target=100.0)).kind == "learning"


def test_without_any_knowledge_of_the_env():
    assert state_of(run(climb(-3.0, 900.0, 100), noise=5.0), Goal()).kind == "learning"
    assert state_of(run([7.0] * 300), Goal()).kind == "stalled"


def test_a_run_without_a_budget_is_patient_for_a_quarter_of_it():
    history = History()
    for number in range(1, 200):
        history.append({"vec_steps": number, "rollout/return_mean": min(number, 100.0)})
    assert state_of(history, Goal(random=0.0, target=1000.0)).kind == "stalled"


def test_it_is_a_function_of_the_history():
    history = run(climb(22.0, 200.0, 300), noise=2.0)
    assert state_of(history, CARTPOLE) == state_of(history, CARTPOLE)
    assert history.rows == 300


@pytest.mark.parametrize("scores", [climb(22.0, 480.0, 3000), [22.0] * 3000, climb(300.0, 20.0, 3000)])
def test_sentences_are_plain_ascii_and_short(scores):
    history = History()
    for number, score in enumerate(scores, 1):
        history.append(
            {"vec_steps": 1e6 * number, "env_steps": 3.2e8 * number, "progress": number / 3000}
            | {"rollout/return_mean": score, "rollout/episodes": number}
        )
        sentence = state_of(history, CARTPOLE).sentence if number % 100 == 0 else ""
        assert sentence.isascii() and len(sentence) <= 77


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (999.6, "1k"),
        (1250, "1.2k"),
        (9_960, "10k"),
        (40_000, "40k"),
        (1.2e6, "1.2M"),
        (3e9, "3G"),
    ],
)
def test_short(number, text):
    assert short(number) == text


def test_the_sentence_names_the_score_of_the_line_below_it():
    """Not the mean of a stretch of the run."""
    history = run([22.0] * 299, noise=2.0)
    state = state_of(history, CARTPOLE)
    assert f": {history.last('rollout/return_mean'):.3g} after" in state.sentence

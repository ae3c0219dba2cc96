"""What is said about a score and its threshold is true as printed."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnast.metrics.verdict import Verdict, reaches, shown, spread, verdict_of

SCORES = st.floats(-1e4, 1e4, allow_nan=False)
THRESHOLDS = st.sampled_from([-250, -110, -13, -0.05, 0, 0.7, 0.965, 1, 7.8, 18, 94.5, 475, 4800])


@pytest.mark.parametrize(
    ("score", "threshold", "text"),
    [
        (17.99, 18, "17.99"),
        (17.9999999, 18, "17.9999999"),
        (474.96, 475, "474.96"),
        (-110.04, -110, "-110.04"),
        (-13.000000000000002, -13, "-13"),
        (500.0, 475, "500.0"),
        (117.42, 475, "117.4"),
        (0.7298, 0.7, "0.73"),
        (17.99, None, "18"),
        (-math.inf, -13, "-inf"),
    ],
)
def test_a_score_is_never_rounded_to_the_other_side(score: float, threshold: float | None, text: str) -> None:
    assert shown(score, threshold) == text


@given(SCORES, THRESHOLDS, st.integers(2, 5))
def test_the_number_shown_is_on_the_same_side(score: float, threshold: float, digits: int) -> None:
    assert reaches(float(shown(score, threshold, digits=digits)), threshold) == reaches(score, threshold)


@pytest.mark.parametrize(
    ("std", "mean", "text"),
    [(2.22e-16, 0.91, "0.0"), (0.0, 0.0, "0.0"), (1e-5, 0.91, "1e-05"), (79.19, 136.7, "79.2"), (3e-13, -500.0, "0.0")],
)
def test_rounding_errors_are_no_spread(std: float, mean: float, text: str) -> None:
    """Returns of 0.91 that differ in the last bit are equal returns."""
    assert spread(std, mean) == text


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict(500, 475, env_steps=34304), "solved: 500.0 ≥ 475, evaluated at 34,304 env steps"),
        (Verdict(117.4, 475, env_steps=50176), "not solved: 117.4 of 475, evaluated at 50,176 env steps"),
        (Verdict(-115.2, -110), "not solved: -115.2 is below -110"),
        (Verdict(0.6989, 0.7, exact=True), "not solved: exact expectation 0.699 of 0.7"),
        (Verdict(0.72976, 0.7, exact=True), "solved: exact expectation 0.73 ≥ 0.7"),
        (Verdict(490.2, 475, error=2.1, margin=2), "solved: 490.2 ≥ 475 + 4.2 (2 standard errors)"),
        (Verdict(477.1, 475, error=2.1, margin=2), "not solved: 477.1 < 475 + 4.2 (2 standard errors)"),
        (Verdict(-0.0496, -0.05, error=0.0067, margin=2), "not solved: -0.0496 < -0.05 + 0.013 (2 standard errors)"),
        (
            Verdict(500, 475, error=math.inf, margin=2),
            "not solved: 500.0 in one episode, which has no standard error (eval.episodes)",
        ),
        (Verdict(500, 475, error=math.inf), "solved: 500.0 ≥ 475"),
    ],
)
def test_sentences(verdict: Verdict, sentence: str) -> None:
    assert verdict.sentence() == sentence


NUMBER = r"(-?[0-9.]+(?:e[-+][0-9]+)?)"


@given(SCORES, THRESHOLDS, st.floats(0, 100), st.sampled_from([0, 1, 2, 3, 4]))
def test_every_comparison_holds_for_the_numbers_as_printed(
    score: float, threshold: float, error: float, margin: float
) -> None:
    verdict = Verdict(score, threshold, error=error, margin=margin)
    text = verdict.sentence()
    assert text.startswith("solved") == verdict.solved
    if found := re.fullmatch(rf"(?:not )?solved: {NUMBER} ([≥<]) {NUMBER}(?: \+ {NUMBER} \(.*\))?", text):
        left, sign, right, more = found.groups()
        assert reaches(float(left), float(right) + float(more or 0)) == (sign == "≥") == verdict.solved
    else:
        of = re.fullmatch(rf"not solved: {NUMBER} (?:of|is below) {NUMBER}", text)
        assert of and float(of[1]) < float(of[2])


def test_the_exact_value_decides_and_says_so() -> None:
    metrics = {"eval/return_mean": 0.69, "eval/return_std": 0.46, "eval/episodes": 100.0, "eval/exact_return": 0.7298}
    found = verdict_of(metrics, 0.7, 2.0, 8000)
    assert (
        found is not None and found.sentence() == "solved: exact expectation 0.73 ≥ 0.7, evaluated at 8,000 env steps"
    )
    assert found.as_json()["exact"] is True and found.as_json()["solved"] is True
    assert verdict_of(metrics, None, 2.0) is None and verdict_of({}, 0.7, 2.0) is None

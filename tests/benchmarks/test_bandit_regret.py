"""The bounds of the bandit benchmark as numbers, and its reference algorithms against them."""

from __future__ import annotations

import math

import bandit_regret
import pytest

from gymnast.envs.families.bandits import AUER_12


def test_divergence_and_lower_bound() -> None:
    """KL(½, ¾) = ln(4/3) ÷ 2, so one arm with gap ¼ costs ¼ ÷ that, times ln T."""
    assert bandit_regret.kl(0.5, 0.75) == pytest.approx(math.log(4 / 3) / 2)
    assert bandit_regret.lai_robbins([0.75, 0.5], 1000) == pytest.approx(0.5 / math.log(4 / 3) * math.log(1000))


def test_upper_bound() -> None:
    """Theorem 1 for one gap of ¼: 32 ln T + (1 + π²/3) ÷ 4; arms as good as the best cost nothing."""
    expected = 32 * math.log(500) + (1 + math.pi**2 / 3) / 4
    assert bandit_regret.ucb1_bound([0.75, 0.5, 0.75], 500) == pytest.approx(expected)


def test_the_reference_algorithms_do_what_theory_says() -> None:
    """All beat chance (36), UCB1 keeps its bound, and Thompson's regret grows more slowly than the pulls."""
    env = "gymnast/Bandit-v0"
    regret = {name: bandit_regret.play(env, play, 200, 200).mean() for name, play in bandit_regret.REFERENCES.items()}
    assert regret.pop("uniform") == pytest.approx(36, abs=1)
    assert max(regret.values()) < 33
    assert regret["UCB1"] < bandit_regret.ucb1_bound(AUER_12, 200)
    longer = bandit_regret.play(env, bandit_regret.thompson, 800, 200).mean()
    assert regret["Thompson sampling"] < longer < 3 * regret["Thompson sampling"]


def test_linucb_learns_the_circle() -> None:
    """Chance gives 90 away."""
    assert bandit_regret.linucb(200, 50).mean() < 25

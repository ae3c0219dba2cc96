"""Blackjack as a table: the deck has no end, so a few hundred states hold all that decides a hand.

The env carries no table of its own. One hand has a standard deviation of 0.95, so it takes 90,000 of them to know a score
to 0.003; the table knows it exactly. A test plays the env against it under all three rules.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

CARDS = [(card, (4 if card == 10 else 1) / 13) for card in range(1, 11)]
MOST_CARDS = 21
"""A hand of aces; no hand takes more steps."""
STICK, HIT = 0, 1
Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


@dataclass(frozen=True)
class Blackjack:
    """The states of a hand, where it begins and what happens in them."""

    table: Table
    start: np.ndarray
    """`[S]` probability of each state after the deal."""
    observations: np.ndarray
    """`[S, 3]`: sum, dealer's card, usable ace. Two states may look alike: a natural, and other hands of 21 with an ace."""


def blackjack(*, sab: bool, natural: bool) -> Blackjack:
    """The game under the env's arguments: Sutton and Barto's rules, or 1.5 for a natural, or neither."""
    # Sum, dealer's card, usable ace, and whether the hand is a natural: 21 with the first two cards.
    states = list(itertools.product(range(4, 22), range(1, 11), (0, 1), (False, True)))
    number = {state: index for index, state in enumerate(states)}
    table: Table = {}
    for (total, card, ace, is_natural), index in number.items():
        rewards = _rewards(total, card, is_natural, sab, natural)
        stick = [(probability, 0, reward, True) for reward, probability in rewards.items()]
        hit = []
        for drawn, probability in CARDS:
            after, ace_after = deal(total, ace, drawn)
            if after > 21:
                hit.append((probability, 0, -1.0, True))
            else:
                hit.append((probability, number[after, card, ace_after, False], 0.0, False))
        table[index] = {STICK: stick, HIT: hit}
    start = np.zeros(len(states))
    for (first, p), (second, q), (card, r) in itertools.product(CARDS, repeat=3):
        total, ace = deal(*deal(0, 0, first), second)
        start[number[total, card, ace, {first, second} == {1, 10}]] += p * q * r
    return Blackjack(table, start, np.array([state[:3] for state in states], np.int64))


def deal(total: int, ace: int, card: int) -> tuple[int, int]:
    """Sum and usable ace after one more card."""
    hard = total - 10 * ace + card
    if (ace or card == 1) and hard + 10 <= 21:
        return (hard + 10, 1)
    return (hard, 0)


@cache
def dealer_scores(total: int, ace: int) -> dict[int, float]:
    """Distribution of the dealer's final score; 0 is a bust."""
    if total >= 17:
        return {total if total <= 21 else 0: 1.0}
    scores: dict[int, float] = {}
    for card, p in CARDS:
        for score, q in dealer_scores(*deal(total, ace, card)).items():
            scores[score] = scores.get(score, 0.0) + p * q
    return scores


def _rewards(total: int, card: int, is_natural: bool, sab: bool, pays_more: bool) -> dict[float, float]:
    """Distribution of the reward of sticking, with the dealer's second card still hidden."""
    found: dict[float, float] = {}
    for hidden, p in CARDS:
        if sab and is_natural and {card, hidden} != {1, 10}:
            found[1.0] = found.get(1.0, 0.0) + p  # wins at once, even against 21 with more cards
            continue
        for score, q in dealer_scores(*deal(*deal(0, 0, card), hidden)).items():
            reward = float((total > score) - (total < score))
            if pays_more and not sab and is_natural and reward > 0:
                reward = 1.5
            found[reward] = found.get(reward, 0.0) + p * q
    return found

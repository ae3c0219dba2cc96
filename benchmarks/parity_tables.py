"""What Gymnasium's tabular envs do, exactly: where episodes begin, and what follows from each state and action.

Toy-text envs carry their table. Blackjack's is the one of its exact evaluation; observations do not say which cards are held, and
a hand of 21 is a natural exactly if no card was drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.evaluation.blackjack import CARDS, HIT, STICK, blackjack, deal

State = tuple[int, ...]
"""An observation; in Blackjack with a last number, 1 until the first card is drawn."""
Outcome = tuple[State, float, bool]
"""Next observation, reward, terminated."""


@dataclass(frozen=True)
class Table:
    """The whole env."""

    starts: Mapping[State, float]
    steps: Mapping[tuple[State, int], Mapping[Outcome, float]]
    """Of all pairs that can be reached."""
    tells_first_step: bool = False
    """Whether states have the last number that says so."""


def table_of(env: gym.Env) -> Table | None:
    """The table of an env; None where it has none."""
    inner: Any = env.unwrapped
    if hasattr(inner, "P"):
        return _toy_text(inner)
    if env.spec is not None and env.spec.id == "Blackjack-v1":
        return _blackjack(sab=inner.sab, natural=inner.natural)
    return None


def _toy_text(inner: Any) -> Table:
    initial = np.asarray(inner.initial_state_distrib, float)
    starts = {(int(state),): float(p) for state, p in enumerate(initial / initial.sum()) if p > 0}
    steps: dict[tuple[State, int], dict[Outcome, float]] = {}
    open_states = list(starts)
    while open_states:
        state = open_states.pop()
        for action, outcomes in inner.P[state[0]].items():
            found: Counter[Outcome] = Counter()
            for p, after, reward, terminated in outcomes:
                if p > 0:
                    found[((int(after),), float(reward), bool(terminated))] += p
            steps[state, int(action)] = dict(found)
            open_states += [
                after for after, _, ended in found if not ended and (after, 0) not in steps and after not in open_states
            ]
    return Table(starts, steps)


def _blackjack(*, sab: bool, natural: bool) -> Table:
    game = blackjack(sab=sab, natural=natural)
    number = {}
    starts: dict[State, float] = {}
    for index, (total, shown, ace) in enumerate(game.observations.tolist()):
        # Of two states that look alike the second is the natural.
        number[total, shown, ace, 1] = index
        number.setdefault((total, shown, ace, 0), index)
        if game.start[index] > 0:
            starts[total, shown, ace, 1] = starts.get((total, shown, ace, 1), 0.0) + float(game.start[index])
    steps: dict[tuple[State, int], dict[Outcome, float]] = {}
    open_states = list(starts)
    while open_states:
        state = open_states.pop()
        if (state, STICK) in steps:
            continue
        total, shown, ace, first_step = state
        is_natural = first_step and total == 21
        index = number[total, shown, ace, 1 if is_natural else 0]
        steps[state, STICK] = {
            ((total, shown, ace, 0), reward, True): p for p, _, reward, _ in game.table[index][STICK]
        }
        found: Counter[Outcome] = Counter()
        for card, p in CARDS:
            after, usable = deal(total, ace, card)
            found[(after, shown, usable, 0), -1.0 if after > 21 else 0.0, after > 21] += p
        steps[state, HIT] = dict(found)
        open_states += [following for following, _, ended in found if not ended]
    return Table(starts, steps, tells_first_step=True)

"""One observation, a batch of them, or an error that names the right shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from gymnast.envs.batches import one_or_several
from gymnast.errors import UsageError

POLE = spaces.Box(-1.0, 1.0, (4,))
IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)
CARDS = spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2)))
ROBOT = spaces.Dict({"eye": IMAGE, "arm": spaces.Box(-1.0, 1.0, (2,)), "mode": spaces.Discrete(3)})


def robot(*leading: int, **changes: Any) -> dict[str, Any]:
    """An observation of ROBOT, or a batch."""
    parts = {"eye": np.zeros((*leading, 8, 8, 3), np.uint8), "arm": np.zeros((*leading, 2))}
    return {**parts, "mode": np.zeros(leading, np.int64), **changes}


@pytest.mark.parametrize(
    ("space", "obs", "count", "single"),
    [
        (POLE, np.zeros(4), 1, True),
        (POLE, [0.0] * 4, 1, True),
        (POLE, np.zeros((4, 4)), 4, False),
        (POLE, np.zeros((0, 4)), 0, False),
        (POLE, [np.zeros(4), np.zeros(4)], 2, False),
        (IMAGE, np.zeros((8, 8, 3), np.uint8), 1, True),
        (IMAGE, np.zeros((2, 8, 8, 3), np.uint8), 2, False),
        (spaces.Discrete(5), 3, 1, True),
        (spaces.Discrete(5), np.array([3, 1]), 2, False),
        (CARDS, (14, 10, 0), 1, True),
        (CARDS, [(14, 10, 0), (15, 9, 1)], 2, False),
        (CARDS, ((14, 10, 0), (15, 9, 1)), 2, False),
        (CARDS, (np.array([14, 15]), np.array([10, 9]), np.array([0, 1])), 2, False),
        (ROBOT, robot(), 1, True),
        (ROBOT, robot(3), 3, False),
        (ROBOT, [robot(), robot()], 2, False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_observations_and_batches(space: spaces.Space, obs: Any, count: int, single: bool) -> None:
    """However people keep them."""
    rows, alone = one_or_several(obs, space)
    assert (len(rows), alone) == (count, single)


@pytest.mark.parametrize(
    ("space", "obs", "said"),
    [
        (
            POLE,
            np.zeros(7),
            "of shape (7,), the space Box(-1.0, 1.0, (4,), float32) has (4,). Give an array of shape (4,)",
        ),
        (POLE, np.zeros((2, 7)), "or a batch of shape (n, 4)"),
        (POLE, np.zeros((1, 1, 4)), "of shape (1, 1, 4)"),
        (POLE, 0.5, "of shape ()"),
        (POLE, None, "= None that is no array of numbers"),
        (POLE, "left", "no array of numbers"),
        (POLE, {"obs": np.zeros(4)}, "no array of numbers"),
        (POLE, [np.zeros(4), np.zeros(5)], "Row 1 of the batch is an observation of shape (5,)"),
        (IMAGE, np.zeros((3, 8, 8), np.uint8), "Give an array of shape (8, 8, 3), or a batch of shape (n, 8, 8, 3)"),
        (IMAGE, np.full((8, 8, 3), 0.5), "holds whole numbers only"),
        (spaces.Discrete(5), 5, "with 5, outside Discrete(5)"),
        (spaces.Discrete(5), np.array([1, -1]), "Row 1 of the batch is an observation with -1, outside Discrete(5)"),
        (spaces.Discrete(5), 1.5, "whole numbers only. Give an array of shape (), or a batch of shape (n,)"),
        (CARDS, (14, 10), "2 values, the space is a Tuple of 3"),
        (CARDS, 14, "one int, the space is a Tuple of 3"),
        (ROBOT, np.zeros(2), "of type ndarray, the space is a Dict of 'arm', 'eye', 'mode'"),
        (ROBOT, {"arm": np.zeros(2)}, "with the keys 'arm', the space has 'arm', 'eye', 'mode'"),
        (ROBOT, robot(arm=np.zeros(3)), "['arm'] of shape (3,)"),
        (ROBOT, robot(2, arm=np.zeros((3, 2))), "Give a dict with one value per key"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_anything_else_is_refused(space: spaces.Space, obs: Any, said: str) -> None:
    """numpy would repeat a number to fill an observation, or act on seven of them."""
    with pytest.raises(UsageError) as refusal:
        one_or_several(obs, space)
    assert said in str(refusal.value)

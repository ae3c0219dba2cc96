"""Actions on their way from the policy's array to the env: layouts, starts, bounds, parts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces

from gymnast.envs.actions import converter, executed, layout, parts, plain, random_actions, row
from gymnast.errors import EnvError

NESTED = spaces.Dict(
    {
        "gear": spaces.Discrete(3, start=-1),
        "drive": spaces.Tuple((spaces.Box(-1.0, 1.0, (2, 1)), spaces.MultiDiscrete([2, 4], start=[1, 0]))),
        "lamps": spaces.MultiBinary(2),
    }
)
SPACES = {
    "discrete": spaces.Discrete(4, start=2),
    "multi discrete": spaces.MultiDiscrete([2, 3], start=[0, 7]),
    "multi binary": spaces.MultiBinary((2, 2)),
    "box": spaces.Box(np.float32([-1, 0]), np.float32([1, 5])),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(-2.0, 2.0, (3,)))),
    "nested": NESTED,
}


@pytest.mark.parametrize("name", SPACES)
def test_random_actions_become_valid_ones_and_reach_everything(name):
    """What the env is given lies in its space, for every row; choices come up as often as each other."""
    space = SPACES[name]
    actions = random_actions(space, 600, np.random.default_rng(0))
    shape, dtype = layout(space)
    assert actions.shape == (600, *shape)
    stored = actions.astype(dtype)  # as the worker pool's shared memory holds them
    np.testing.assert_array_equal(stored, actions.astype(stored.dtype))
    given = converter(space)(stored)
    assert len(given) == 600
    assert all(space.contains(action) for action in given)
    assert all(space.contains(row(executed(stored, space), i)) for i in (0, 599))
    json.dumps(plain(given[0]))
    values = {json.dumps(plain(action)) for action in given}
    assert len(values) >= {"discrete": 4, "multi discrete": 6, "multi binary": 16}.get(name, 590)


def test_parts_are_read_in_the_order_of_the_space():
    """One row of floats: gymnasium sorts the keys of a Dict (drive, gear, lamps)."""
    assert [type(leaf).__name__ for leaf in parts(NESTED)] == ["Box", "MultiDiscrete", "Discrete", "MultiBinary"]
    flat = np.float32([[0.25, -7.0, 1, 3, 2, 0, 1]])
    (action,) = converter(NESTED)(flat)
    assert plain(action) == {"drive": [[[0.25], [-1.0]], [2, 3]], "gear": 1, "lamps": [0, 1]}
    assert type(action["gear"]) is int
    assert action["lamps"].dtype == np.int8
    batch = executed(np.repeat(flat, 3, 0), NESTED)
    assert batch["drive"][0].shape == (3, 2, 1) and batch["gear"].tolist() == [1, 1, 1]


def test_actions_are_the_envs_own():
    """An env may keep its action while the caller reuses the array."""
    flat = np.float32([[0.5, 0.5, 0, 0, 0, 1, 1]])
    (action,) = converter(NESTED)(flat)
    flat[:] = 0
    assert action["drive"][0].ravel().tolist() == [0.5, 0.5]


def test_spaces_without_a_distribution_are_refused():
    """With the space in the sentence."""
    with pytest.raises(EnvError, match=r"Text.*not supported"):
        layout(spaces.Tuple((spaces.Discrete(2), spaces.Text(3))))

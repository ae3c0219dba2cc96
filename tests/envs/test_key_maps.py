"""Which keys do what: every family's map fits its envs, and none takes a key away that quits or pauses."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from gymnast.config.files import known_env_ids
from gymnast.config.load import resolve
from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import layout
from gymnast.envs.key_maps import action_labels, for_space, key_map
from gymnast.envs.keyboard import Buttons, Choices
from gymnast.envs.make import make_one
from gymnast.play import commands


def reached(keys: Any) -> set[tuple[float, ...] | None]:
    """The actions of no key, of every key and of every two keys."""
    names = list(keys.keys)
    held = [[], *([one] for one in names), *([one, two] for one in names for two in names)]
    made = [keys.action(down) for down in held]
    return {None if action is None else tuple(action) for action in made}


@pytest.mark.parametrize("env_id", sorted(known_env_ids()))
def test_every_preset_can_be_played_by_hand(env_id: str) -> None:
    """Every discrete action has a key or is what happens without one; every number of an action moves."""
    config = resolve(env_id).config
    env = make_one(EnvConfig(id=config.env.id, kwargs=config.env.kwargs, atari=config.env.atari)).unwrapped
    labels = action_labels(env, config.spec.actions)
    keys = key_map(env, labels)
    actions = reached(keys)
    if isinstance(env.action_space, spaces.Discrete):
        assert labels, "labels of the preset fit the env"
        every = {(number,) for number in range(env.action_space.n)}
        assert every <= actions
        assert all(action is None or env.action_space.contains(int(action[0])) for action in actions)
    else:
        shape, _ = layout(env.action_space)
        made = [np.array(action, np.float32).reshape(shape) for action in actions if action is not None]
        assert all(env.action_space.contains(action.astype(env.action_space.dtype)) for action in made)
        assert np.ptp(np.stack(made), 0).all()
    for command in (commands.QUIT, commands.PAUSE, commands.TAKE_OVER, commands.HELP):
        assert commands.keys_of(command, keys.keys)
    assert keys.meaning(labels)
    env.close()


def test_of_buttons_that_do_not_go_together_the_last_ones_count() -> None:
    actions = [frozenset(), frozenset({"L"}), frozenset({"R"}), frozenset({"F"}), frozenset({"L", "F"})]
    keys = Buttons({"left": "L", "right": "R", "space": "F", "up": "U"}, actions)
    assert keys.action([]) == (0,)
    assert keys.action(["up"]) == (0,), "a button that the game does not know does nothing"
    assert keys.action(["left", "space"]) == keys.action(["space", "left"]) == (4,)
    assert keys.action(["left", "right"]) == (2,)
    assert keys.action(["right", "left"]) == (1,)
    assert keys.action(["space", "right"]) == (2,)
    assert keys.action(["left", "right", "space"]) == (4,), "FIRE with LEFT, for there is none with RIGHT"


def test_an_env_that_has_keys_for_gymnasium_is_played_by_them() -> None:
    """With combinations, codes of keys and an action without a key."""

    class Own(gym.Env[int, int]):
        action_space = spaces.Discrete(4)

        def get_keys_to_action(self) -> dict[Any, int]:
            return {(): 0, (ord("a"),): 1, "d": 2, ("d", " "): 3}

    keys = key_map(Own(), ["wait", "west", "east", "jump"])
    assert keys.action([]) == (0,)
    assert keys.action(["a"]) == (1,)
    assert keys.action(["d", "space"]) == (3,)
    assert keys.meaning(["wait", "west", "east", "jump"]) == {"a": "west", "d": "east", "d+space": "jump"}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=5),
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(4),
        spaces.Box(0.5, 2.0, (3,)),
        spaces.Box(-np.inf, np.inf, (12,)),
        spaces.Dict({"gas": spaces.Box(0, 1, ()), "gear": spaces.Discrete(4)}),
    ],
)
def test_any_action_space_has_keys(space: spaces.Space) -> None:
    keys = for_space(space)
    size = int(np.prod(layout(space)[0]))
    assert len({action for action in reached(keys) if action is not None}) > 2
    assert all(len(action) == size for action in reached(keys) if action is not None)
    assert not isinstance(keys, Choices) or reached(keys) == {None, (0,), (1,), (2,)}

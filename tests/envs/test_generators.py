"""Which random generators of an env are found and put back."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
from counter_env import PartsRandomEnv

from gymnast.envs.generators import LOOKS, OwnGenerators


def test_each_is_found_once_and_those_of_everybody_are_left_alone() -> None:
    env = PartsRandomEnv("Python")
    env.reset(seed=1)
    env.again = env.bag.sources["pieces"]  # the same one by another way
    env.everybody = random._inst
    env.mine = env.np_random
    (way,) = OwnGenerators(env).save()
    assert way in ("bag/sources/pieces/0", "again/0")


def test_generators_of_a_wrapper_belong_to_the_env() -> None:
    class Slippery(gym.Wrapper):
        """A wrapper that draws."""

        dice = None

        def reset(self, **kwargs):
            """With dice of its own."""
            self.dice = np.random.default_rng(kwargs.get("seed"))
            return self.env.reset(**kwargs)

    env = Slippery(PartsRandomEnv("RandomState"))
    env.reset(seed=3)
    own = OwnGenerators(env)
    state = own.save()
    assert set(state) == {"dice", "env/bag/sources/pieces/0"}
    drawn = [env.dice.random(), env.unwrapped.bag.draw()]
    own.load(state)
    assert [env.dice.random(), env.unwrapped.bag.draw()] == drawn


def test_after_some_episodes_it_is_not_searched_any_more() -> None:
    env = PartsRandomEnv("Python")
    own = OwnGenerators(env)
    for _ in range(LOOKS):
        own.save(search=False)
    env.late = np.random.default_rng(1)
    assert set(own.save(search=False)) == {"bag/sources/pieces/0"}
    assert set(own.save()) == {"bag/sources/pieces/0", "late"}
    assert set(own.save(search=False)) == {"bag/sources/pieces/0", "late"}
    del env.late
    assert set(own.save(search=False)) == {"bag/sources/pieces/0"}


def test_data_is_not_looked_into() -> None:
    env = PartsRandomEnv("Python")
    env.many = [np.random.default_rng(i) for i in range(1000)]
    assert set(OwnGenerators(env).save()) == {"bag/sources/pieces/0"}

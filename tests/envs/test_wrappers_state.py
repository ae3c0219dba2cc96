"""Every wrapper that keeps something goes on exactly where it was saved, and workers give what one process gives."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from counter_env import WalkEnv
from wrapper_envs import ImageEnv, LogEnv

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.make import make_envs

N_ENVS, BEFORE, AFTER = 3, 17, 50
ENVS = {"WrappedWalk-v0": WalkEnv, "WrappedImages-v0": ImageEnv, "WrappedLog-v0": LogEnv}
for name, kind in ENVS.items():
    gym.register(name, kind, max_episode_steps=40)

STICKY = {"id": "sticky_actions", "probability": 0.4}
CASES = {
    "sticky": ("WrappedLog-v0", [STICKY]),
    "sticky Box": ("WrappedWalk-v0", [STICKY]),
    "sticky, snapshot": ("CartPole-v1", [STICKY]),
    "sticky, masks": ("Taxi-v4", [STICKY]),
    "stochastic skip": ("WrappedLog-v0", [{"id": "frame_skip", "skip": [1, 3]}]),
    "chosen skip": ("CartPole-v1", [{"id": "frame_skip", "choices": [1, 2, 3]}]),
    "chosen skip, Box": ("Pendulum-v1", [{"id": "frame_skip", "choices": [1, 2, 3]}, {"id": "time_limit", "steps": 9}]),
    "max pool": ("WrappedImages-v0", [{"id": "frame_skip", "skip": 1, "max_pool": True}]),
    "sticky in a skip with a pool": (
        "WrappedImages-v0",
        [
            STICKY,
            "gray",
            {"id": "frame_skip", "skip": [1, 2], "max_pool": True},
            {"id": "resize", "width": 5, "height": 4},
        ],
    ),
    "stack": ("CartPole-v1", [{"id": "frame_stack", "size": 3}]),
    "stack of images": ("WrappedImages-v0", [{"id": "frame_stack", "size": 3, "padding": "zero"}]),
    "action stack": ("CartPole-v1", [{"id": "action_stack", "size": 3}]),
    "action stack beside images": ("WrappedImages-v0", [{"id": "action_stack", "size": 3}]),
    "stack of everything": ("WrappedImages-v0", [{"id": "action_stack", "size": 2}, {"id": "frame_stack", "size": 2}]),
    "observation noise": ("CartPole-v1", [{"id": "observation_noise", "std": 0.1}]),
    "action noise": ("WrappedLog-v0", [{"id": "action_noise", "probability": 0.3}]),
    "action noise, Box": ("Pendulum-v1", [{"id": "action_noise", "std": 0.3}, {"id": "time_limit", "steps": 30}]),
    "no reward": ("WrappedLog-v0", [{"id": "no_reward_timeout", "steps": 4}]),
    "all at once": (
        "WrappedLog-v0",
        [
            STICKY,
            {"id": "frame_skip", "skip": [1, 3]},
            {"id": "action_noise", "probability": 0.2},
            {"id": "no_reward_timeout", "steps": 5},
            {"id": "observation_noise", "std": 1.0},
            {"id": "action_stack", "size": 2},
            {"id": "frame_stack", "size": 2},
            {"id": "reward_scale", "factor": 0.5},
        ],
    ),
}


def make(case, vectorization="inprocess", **more):
    env, wrappers = CASES[case]
    return make_envs(
        EnvConfig.model_validate({"id": env, "wrappers": wrappers, "vectorization": vectorization, **more}), N_ENVS
    )


def play(envs, row, random, steps):
    """Everything that came out."""
    out = []
    for _ in range(steps):
        ended = envs.step(random_actions(envs.action_space, N_ENVS, random, row.mask), row)
        obs = {k: v.copy() for k, v in row.obs.items()} if isinstance(row.obs, dict) else row.obs.copy()
        finals = [(e.index, e.final_obs, e.ret, e.length, e.terminated) for e in ended]
        executed = [envs.executed(i) for i in range(N_ENVS)]
        out.append((obs, row.reward.copy(), row.terminated.copy(), row.truncated.copy(), finals, executed))
    return out


def through_a_file(state):
    """The tree as a checkpoint has it: JSON and arrays."""
    arrays = []

    def take(value):
        if isinstance(value, np.ndarray):
            arrays.append(value.copy())
            return {"array": len(arrays) - 1}
        raise TypeError(f"{type(value)} cannot be saved")

    def put(value):
        return arrays[value["array"]] if set(value) == {"array"} else value

    return json.loads(json.dumps(state, default=take), object_hook=put)


@pytest.mark.parametrize("case", CASES)
def test_goes_on_where_it_was_saved(case):
    envs, random = make(case), np.random.default_rng(3)
    row = envs.new_row()
    envs.reset([4, 5, 6], row)
    play(envs, row, random, BEFORE)
    state, draws = through_a_file(envs.save_state()), random.bit_generator.state
    mask = None if row.mask is None else row.mask.copy()
    expected = play(envs, row, random, AFTER)
    assert any(finals for *_, finals, _ in expected) or CASES[case][0] == "Taxi-v4"
    again = make(case)
    row = again.new_row()
    again.reset([7, 8, 9], row)
    play(again, row, np.random.default_rng(9), 5)
    again.load_state(state)
    if mask is not None:
        row.mask[...] = mask
    random.bit_generator.state = draws
    np.testing.assert_equal(play(again, row, random, AFTER), expected)
    envs.close()
    again.close()


def test_workers_give_what_one_process_gives_and_take_its_state():
    here, pool = make("all at once"), make("all at once", "workers", n_workers=2)
    try:
        outcomes, states = [], []
        for envs in (here, pool):
            row, random = envs.new_row(), np.random.default_rng(3)
            envs.reset([4, 5, 6], row)
            outcomes.append(play(envs, row, random, BEFORE + AFTER))
            states.append(envs.save_state())
        np.testing.assert_equal(outcomes[1], outcomes[0])
        np.testing.assert_equal(states[1], states[0])
        pool.load_state(through_a_file(states[0]))
        here.load_state(through_a_file(states[1]))
        outcomes = [play(envs, envs.new_row(), np.random.default_rng(5), 20) for envs in (here, pool)]
        np.testing.assert_equal(outcomes[1], outcomes[0])
    finally:
        here.close()
        pool.close()


def test_the_first_slots_do_not_depend_on_how_many_there_are():
    def first(n):
        config = EnvConfig.model_validate({"id": "WrappedLog-v0", "wrappers": CASES["all at once"][1]})
        envs = make_envs(config, n)
        row, random, seen = envs.new_row(), np.random.default_rng(0), []
        envs.reset([4, 5, 6][:n], row)
        for _ in range(40):
            envs.step(random.integers(0, 5, 3)[:n], row)
            seen.append((row.obs[0].copy(), row.reward[0]))
        return seen

    np.testing.assert_equal(first(3), first(1))


def test_other_wrappers_than_saved_are_refused():
    envs = make("sticky, snapshot")
    row = envs.new_row()
    envs.reset([1, 2, 3], row)
    state = envs.save_state()
    other = make_envs(EnvConfig.model_validate({"id": "CartPole-v1", "vectorization": "inprocess"}), N_ENVS)
    other.reset([1, 2, 3], other.new_row())
    with pytest.raises(Exception, match="wrappers"):
        other.load_state(state)

"""Wrappers that run beside each env, against loops written out over the bare env with the same draws."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv, MaskedCounterEnv, ShiftedActionEnv, WalkEnv
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from wrapper_envs import LogEnv

from gymnast.config.schema import EnvConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.time_limits import own_limit, time_limit_of
from gymnast.envs.wrappers import frames_per_step
from gymnast.envs.wrappers.actions import ActionNoise, StickyActions
from gymnast.envs.wrappers.generators import seeded
from gymnast.envs.wrappers.limits import NoRewardTimeout
from gymnast.envs.wrappers.single import executed_by
from gymnast.envs.wrappers.skipping import FrameSkip

SEED, STEPS = 5, 120


def play(env, actions, seed=SEED):
    """(obs, reward, terminated, truncated, executed) of every step, with resets."""
    obs, _ = env.reset(seed=seed)
    first, steps = np.array(obs), []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        steps.append((np.array(obs), reward, terminated, truncated, list(executed_by(env) or [])))
        if terminated or truncated:
            obs, _ = env.reset()
            steps[-1] += (np.array(obs),)
    return first, steps


def actions_of(space, n=STEPS):
    space.seed(0)
    return [space.sample() for _ in range(n)]


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_equal(one, other)


# ---- frame skip ------------------------------------------------------------------------------------------------------


def skip_by_hand(env, actions, count, pool=False):
    """The loop of a frame skip; `count` gives the number of steps of each action."""
    obs, _ = env.reset(seed=SEED)
    previous, first, steps = obs, np.array(obs), []
    for action in actions:
        total, given, last = 0.0, [], previous
        for _ in range(count()):
            last = previous
            obs, reward, terminated, truncated, _ = env.step(action)
            previous, total, given = obs, total + reward, [*given, action]
            if terminated or truncated:
                break
        seen = np.maximum(last, previous) if pool else obs
        steps.append((np.array(seen), total, terminated, truncated, given))
        if terminated or truncated:
            previous, _ = env.reset()
            steps[-1] += (np.array(previous),)
    return first, steps


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("skip", [1, 2, 4])
def test_a_fixed_skip_repeats_and_sums(skip, pool):
    actions = actions_of(spaces.Discrete(5))
    first, steps = play(FrameSkip(LogEnv(images=pool), skip, max_pool=pool), actions)
    expected_first, expected = skip_by_hand(LogEnv(images=pool), actions, lambda: skip, pool)
    np.testing.assert_equal(first, expected_first)
    same(steps, expected)
    assert sum(terminated for _, _, terminated, *_ in steps) > 2


def test_a_stochastic_skip_draws_from_its_range_both_ends_included():
    actions = actions_of(spaces.Discrete(5))
    draws = seeded(SEED, 0)
    _, steps = play(FrameSkip(LogEnv(), [2, 5]), actions)
    _, expected = skip_by_hand(LogEnv(), actions, lambda: int(draws.integers(2, 6)))
    same(steps, expected)
    assert {len(given) for *_, given in (step[:5] for step in steps if not step[2])} == {2, 3, 4, 5}


@pytest.mark.parametrize(
    ("space", "extended"),
    [
        (spaces.Discrete(5), spaces.MultiDiscrete([5, 3])),
        (spaces.Discrete(5, start=2), spaces.MultiDiscrete([5, 3], start=[2, 0])),
        (spaces.MultiDiscrete([2, 3], start=[0, 4]), spaces.MultiDiscrete([2, 3, 3], start=[0, 4, 0])),
        (spaces.Box(-1, 1, (2,)), spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Discrete(3)))),
        (spaces.MultiBinary(3), spaces.Tuple((spaces.MultiBinary(3), spaces.Discrete(3)))),
    ],
)
def test_the_policy_chooses_how_long(space, extended):
    choices = [1, 3, 8]
    env = FrameSkip(LogEnv(space), choices=choices)
    assert env.action_space == extended
    actions = actions_of(extended, 60)
    _, steps = play(env, actions)
    simple = isinstance(extended, spaces.MultiDiscrete)
    for action, step in zip(actions, steps):
        terminated, executed, wanted = step[2], step[4], choices[int(action[-1])]
        assert len(executed) == wanted or (terminated and len(executed) < wanted)
        chosen = action[:-1] if simple else action[0]
        assert all(space.contains(one) for one in executed)
        np.testing.assert_array_equal(np.ravel(executed[0]), np.ravel(chosen))
    assert env.unwrapped.log and len(env.unwrapped.log) == sum(len(step[4]) for step in steps)


def test_masks_grow_with_the_choice_and_a_forbidden_action_is_not_repeated():
    """The counter env raises when it is given a masked action."""
    envs = InProcessVector(lambda: FrameSkip(MaskedCounterEnv(), choices=[1, 4]), 3)
    row = envs.new_row()
    envs.reset([0, 1, 2], row)
    assert row.mask.shape == (3, 6)
    lengths = set()
    for step in range(200):
        assert row.mask[:, 4:].all()
        envs.step(np.stack([row.mask[:, :4].argmax(-1), np.full(3, step % 2)], -1), row)
        lengths |= {len(envs.executed(i)) for i in range(3)}
    assert lengths == {1, 2, 3}  # four times the same is never possible here


def test_a_reused_frame_buffer_does_not_spoil_the_maximum():
    class Reusing(LogEnv):
        def draw(self):
            if not hasattr(self, "buffer"):
                self.buffer = np.zeros(self.observation_space.shape, np.uint8)
            self.buffer[...] = super().draw()
            return self.buffer

    actions = actions_of(spaces.Discrete(5), 40)
    same(
        play(FrameSkip(Reusing(images=True), 3, max_pool=True), actions)[1],
        play(FrameSkip(LogEnv(images=True), 3, max_pool=True), actions)[1],
    )


# ---- actions ---------------------------------------------------------------------------------------------------------


def test_sticky_actions_repeat_what_was_executed():
    actions, draws = actions_of(spaces.Discrete(5), 2000), seeded(SEED, 0)
    _, steps = play(StickyActions(LogEnv(), 0.25), actions)
    last, repeated = None, 0
    for action, step in zip(actions, steps):
        sticks = draws.random() < 0.25 and last is not None
        last = last if sticks else action
        repeated += sticks
        assert step[4] == [last]
        if step[2]:
            last = None
    assert 400 < repeated < 550


def test_sticky_inside_a_skip_sticks_frame_by_frame():
    env = FrameSkip(StickyActions(LogEnv(), 0.5), 4)
    _, steps = play(env, actions_of(spaces.Discrete(5)))
    assert any(len(set(step[4])) == 2 for step in steps)
    env = StickyActions(FrameSkip(LogEnv(), 4), 0.5)
    actions = actions_of(spaces.Discrete(5))
    _, steps = play(env, actions)
    assert all(len(set(step[4])) == 1 for step in steps)
    assert any(step[4][0] != action for step, action in zip(steps, actions))
    assert [a for step in steps for a in step[4]] == env.unwrapped.log


def test_sticky_actions_never_execute_a_masked_one():
    env = StickyActions(MaskedCounterEnv(), 0.9)
    _, info = env.reset(seed=3)
    for _ in range(300):
        _, _, terminated, truncated, info = env.step(int(np.argmax(info["action_mask"])))
        if terminated or truncated:
            _, info = env.reset()


def test_gaussian_noise_on_box_actions_stays_inside_the_bounds():
    space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    actions, draws = actions_of(space, 400), seeded(SEED, 0)
    env = ActionNoise(LogEnv(space), std=0.5)
    _, steps = play(env, actions)
    for action, step, executed in zip(actions, steps, env.unwrapped.log):
        expected = np.clip(action + draws.normal(0, 0.5, 2), -1, 1).astype(np.float32)
        np.testing.assert_array_equal(executed, expected)
        np.testing.assert_array_equal(step[4][0], expected)
        assert executed.dtype == np.float32


@pytest.mark.parametrize("space", [spaces.Discrete(5, start=3), spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(4)])
def test_now_and_then_a_random_action(space):
    actions = actions_of(space, 1000)
    env = ActionNoise(LogEnv(space), probability=0.3)
    play(env, actions)
    assert all(space.contains(given) for given in env.unwrapped.log)
    changed = np.mean([not np.array_equal(a, b) for a, b in zip(actions, env.unwrapped.log)])
    possible = space.n if isinstance(space, spaces.Discrete) else (6 if isinstance(space, spaces.MultiDiscrete) else 16)
    assert abs(changed - 0.3 * (1 - 1 / possible)) < 0.06


def test_random_actions_are_possible_ones():
    env = ActionNoise(MaskedCounterEnv(), probability=1.0)
    _, info = env.reset(seed=3)
    seen = set()
    for _ in range(300):
        _, _, terminated, truncated, info = env.step(0)  # may be masked itself: it is never executed
        seen |= set(env.given)
        if terminated or truncated:
            env.reset()
    assert seen == {0, 1, 2, 3}


def test_shifted_actions_pass():
    for env in (
        StickyActions(ShiftedActionEnv(), 0.5),
        FrameSkip(ShiftedActionEnv(), [1, 2]),
        ActionNoise(ShiftedActionEnv(), probability=0.5),
    ):
        envs = InProcessVector(lambda env=env: env, 1)
        row = envs.new_row()
        envs.reset([0], row)
        for step in range(40):
            envs.step(np.array([step % 4]), row)
            assert set(envs.executed(0)) <= {3, 4, 5, 6}


def test_two_of_a_kind_draw_differently_and_neighbours_too():
    env = StickyActions(StickyActions(LogEnv(), 0.5), 0.5)
    env.reset(seed=1)
    assert env.random.random() != env.env.random.random()
    assert seeded(1, 0).random() != seeded(2, 0).random() != np.random.default_rng(1).random()


# ---- ends ------------------------------------------------------------------------------------------------------------


class Payments(gym.Env):
    """Pays what it was told to; ends after the last payment."""

    def __init__(self, rewards):
        self.observation_space, self.action_space = spaces.Box(0, 1e6, (1,)), spaces.Discrete(2)
        self.rewards = rewards

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0.0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at], np.float32), self.rewards[self.at - 1], self.at == len(self.rewards), False, {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0]), min_size=1, max_size=30), st.integers(1, 6))
def test_no_reward_timeout_cuts_off_exactly_there(rewards, limit):
    waits = [
        all(r == 0 for r in rewards[max(0, end - limit) : end]) and end >= limit for end in range(1, len(rewards) + 1)
    ]
    cut = next((end for end, waited in enumerate(waits, 1) if waited), None)
    envs = InProcessVector(lambda: NoRewardTimeout(Payments(rewards), limit), 1)
    row = envs.new_row()
    envs.reset([0], row)
    for step in range(1, 100):
        ended = envs.step(np.zeros(1, np.int64), row)
        if ended:
            break
    terminated = cut is None or cut == len(rewards)
    assert step == (len(rewards) if terminated else cut)
    assert (bool(row.terminated[0]), bool(row.truncated[0])) == (terminated, not terminated)
    assert (ended[0].terminated, ended[0].length, ended[0].ret) == (terminated, step, sum(rewards[:step]))
    assert ended[0].final_obs[0] == step and row.obs[0, 0] == 0
    assert ended[0].infos.get("no_reward_timeout", False) == (not terminated)


def config(*wrappers, **more):
    return EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": list(wrappers), **more})


SKIP = {"id": "frame_skip", "skip": 4}


@pytest.mark.parametrize(
    ("made", "own", "agent"),
    [
        (config(), 500, 500),
        (config(SKIP), 500, 125),
        (config({"id": "time_limit", "steps": 10}, SKIP), 10, 3),
        (config(SKIP, {"id": "time_limit", "steps": 10}), None, 10),
        (config(SKIP, {"id": "time_limit", "steps": 10}, time_limit=20), 20, 5),
        (config({"id": "frame_skip", "skip": [2, 5]}, time_limit=20), 20, 10),
        (config({"id": "frame_skip", "choices": [8, 3]}, time_limit=20), 20, 7),
        (config("reward_clip", {"id": "time_limit", "steps": 10}), 10, 10),
    ],
)
def test_time_limits_count_where_they_stand(made, own, agent):
    """Inside a frame skip in steps of the env, outside it in steps of the agent."""
    assert (own_limit(made), time_limit_of(made)) == (own, agent)
    envs = make_envs(made.model_copy(update={"id": "Pendulum-v1"}), 1)  # never ends by itself
    row = envs.new_row()
    envs.reset([0], row)
    action = row_of(envs)
    for step in range(1, 600):
        ended = envs.step(action, row)
        if ended:
            break
    limit = {500: 200, 125: 50}.get(agent, agent)  # Pendulum's registered limit
    if not any("choices" in w.args or isinstance(w.args.get("skip"), list) for w in made.wrappers):
        assert step == limit
    assert step <= limit and row.truncated[0] and not row.terminated[0]


def row_of(envs):
    space = envs.action_space
    return np.zeros((1, 2), np.float32) if isinstance(space, spaces.Tuple) else np.zeros((1, 1), np.float32)


def test_frames_per_step():
    assert frames_per_step(config()) == 1
    assert frames_per_step(config(SKIP)) == 4
    assert frames_per_step(config({"id": "frame_skip", "skip": [2, 5]}, {"id": "frame_skip", "skip": 2})) == 7
    assert frames_per_step(config({"id": "frame_skip", "choices": [2, 5]})) is None


def test_returns_and_lengths_are_of_the_agents_steps_and_the_envs_rewards():
    envs = InProcessVector(lambda: FrameSkip(CounterEnv(), 2), 1)
    row = envs.new_row()
    envs.reset([0], row)
    episodes = [e for _ in range(30) for e in envs.step(np.zeros(1, np.int64), row)]
    for episode in episodes:
        assert episode.ret == episode.infos["own_return"]
        assert episode.length == -(-episode.infos["own_length"] // 2)


def test_walks_pass_through_every_action_wrapper():
    """Box actions in float64, as the env wants them."""
    envs = InProcessVector(lambda: ActionNoise(StickyActions(FrameSkip(WalkEnv(), 2), 0.3), std=0.1), 2)
    row = envs.new_row()
    envs.reset([0, 1], row)
    for _ in range(30):
        envs.step(np.zeros((2, 2), np.float32), row)
        assert all(given.dtype == np.float64 for given in envs.executed(1))

"""Each wrapper against an independent implementation, slot by slot, across episode boundaries."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv, DictCounterEnv, MaskedCounterEnv, WalkEnv
from gymnasium import spaces

from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.wrappers import wrap
from gymnast.envs.wrappers.actions import ActionClip
from gymnast.envs.wrappers.encoding import ArrayEncoding, OneHot
from gymnast.envs.wrappers.rewards import RewardClip, RewardScale
from gymnast.envs.wrappers.stacking import ObservationStack

N_ENVS, STEPS = 4, 60
SEEDS = [3, 0, 11, 7]


class CellsEnv(gym.Env):
    """Integer observations of any kind, random ends."""

    def __init__(self, observation_space):
        self.observation_space, self.action_space = observation_space, spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        terminated, truncated = self.np_random.random(2) < 0.15
        return self.observation_space.sample(), 1.0, bool(terminated), bool(truncated), {}


class Trace:
    """Everything a vector env gave: first observations, then a row and the ended episodes of every step."""

    def __init__(self, envs, actions):
        row = envs.new_row()
        envs.reset(SEEDS[: envs.n_envs], row)
        self.first = row.obs.copy()
        self.steps = []
        for action in actions:
            ended = {episode.index: episode for episode in envs.step(action, row)}
            copies = (row.obs, row.reward, row.terminated, row.truncated)
            self.steps.append((*(array.copy() for array in copies), ended))


def traces(make_env, wrapper, actions=None, **options):
    """The same envs and actions, bare and wrapped."""
    actions = np.random.default_rng(0).integers(0, 2, (STEPS, N_ENVS)) if actions is None else actions
    bare = Trace(InProcessVector(make_env, N_ENVS), actions)
    assert sum(len(ended) for *_, ended in bare.steps) > 10
    return bare, Trace(wrapper(InProcessVector(make_env, N_ENVS), **options), actions)


def check_observations(bare, wrapped, transform):
    """Rows and final observations alike are the transform of what the bare env gave; all else is untouched."""
    np.testing.assert_array_equal(wrapped.first, transform(bare.first))
    for (obs, *rest, ended), (found, *found_rest, found_ended) in zip(bare.steps, wrapped.steps):
        np.testing.assert_array_equal(found, transform(obs))
        for array, other in zip(rest, found_rest):
            np.testing.assert_array_equal(array, other)
        assert list(ended) == list(found_ended)
        for i, episode in ended.items():
            other = found_ended[i]
            np.testing.assert_array_equal(other.final_obs, transform(np.asarray(episode.final_obs)[None])[0])
            assert (other.ret, other.length, other.terminated) == (episode.ret, episode.length, episode.terminated)


INTEGERS = {
    "discrete": (spaces.Discrete(6), [6]),
    "discrete that starts elsewhere": (spaces.Discrete(6, start=10), [6]),
    "tuple": (spaces.Tuple((spaces.Discrete(3), spaces.Discrete(4, start=2))), [3, 4]),
    "multi_discrete": (spaces.MultiDiscrete([2, 5, 3]), [2, 5, 3]),
    "multi_discrete that starts elsewhere": (spaces.MultiDiscrete([2, 5], start=[3, -1]), [2, 5]),
}


@pytest.mark.parametrize("kind", INTEGERS)
def test_one_hot(kind):
    space, sizes = INTEGERS[kind]

    def transform(obs):
        columns = np.asarray(obs).reshape(len(obs), -1)
        return np.concatenate([np.eye(n, dtype=np.float32)[columns[:, k]] for k, n in enumerate(sizes)], 1)

    bare, wrapped = traces(lambda: CellsEnv(space), OneHot)
    check_observations(bare, wrapped, transform)
    assert wrapped.first.dtype == np.float32 and (wrapped.first.sum(1) == len(sizes)).all()
    assert OneHot(InProcessVector(lambda: CellsEnv(space), 1)).observation_space == spaces.Box(0, 1, (sum(sizes),))


@pytest.mark.parametrize("kind", INTEGERS)
def test_array_encoding(kind):
    space, sizes = INTEGERS[kind]

    def transform(obs):
        return (np.asarray(obs).reshape(len(obs), -1) * np.float32(1.0 / (np.array(sizes) - 1))).astype(np.float32)

    bare, wrapped = traces(lambda: CellsEnv(space), ArrayEncoding)
    check_observations(bare, wrapped, transform)
    seen = np.concatenate([wrapped.first, *(obs for obs, *_ in wrapped.steps)])
    assert seen.min() == 0.0 and seen.max() == 1.0


def test_array_encoding_of_a_single_value():
    envs = ArrayEncoding(InProcessVector(lambda: CellsEnv(spaces.Discrete(1)), 2))
    row = envs.new_row()
    envs.reset([0, 1], row)
    assert (row.obs == 0).all()


class StackReference:
    """Frame stacks as lists of frames per slot, padded with the episode's first or with zeros."""

    def __init__(self, size, first, padding):
        self.size, self.padding = size, padding
        self.frames = [[frame] for frame in first]

    def stack(self, i):
        frames = self.frames[i][-self.size :]
        before = self.frames[i][0] if self.padding == "first" else np.zeros_like(self.frames[i][0])
        return np.stack([before] * (self.size - len(frames)) + frames)

    def all(self):
        return np.stack([self.stack(i) for i in range(len(self.frames))])


@pytest.mark.parametrize("padding", ["first", "zero"])
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("make_env", [CounterEnv, WalkEnv])
def test_observation_stack(make_env, size, padding):
    random = np.random.default_rng(1)
    walk = make_env is WalkEnv
    actions = random.uniform(-1, 1, (200, N_ENVS, 2)) if walk else random.integers(0, 4, (STEPS, N_ENVS))
    bare, wrapped = traces(make_env, ObservationStack, actions, size=size, padding=padding)
    reference = StackReference(size, bare.first, padding)
    np.testing.assert_array_equal(wrapped.first, reference.all())
    for (obs, *rest, ended), (found, *found_rest, found_ended) in zip(bare.steps, wrapped.steps):
        for i in range(N_ENVS):
            if i in ended:
                reference.frames[i].append(np.asarray(ended[i].final_obs, np.float32))
                np.testing.assert_array_equal(found_ended[i].final_obs, reference.stack(i))
                reference.frames[i] = []
            reference.frames[i].append(obs[i])
        np.testing.assert_array_equal(found, reference.all())
        for array, other in zip(rest, found_rest):
            np.testing.assert_array_equal(array, other)
        assert list(ended) == list(found_ended)


@pytest.mark.parametrize("name", ["frame_stack", "observation_stack"])
@pytest.mark.parametrize("make_env", [CounterEnv, DictCounterEnv, lambda: CellsEnv(spaces.Discrete(3))])
def test_a_stack_of_one_changes_nothing_whatever_the_space(make_env, name):
    plain, stacked = InProcessVector(make_env, 2), wrap(InProcessVector(make_env, 2), named((name, {"size": 1})))
    assert stacked.observation_space == plain.observation_space
    rows = [plain.new_row(), stacked.new_row()]
    for envs, row in zip((plain, stacked), rows):
        envs.reset([1, 2], row)
    for _ in range(20):
        ends = [envs.step(np.zeros(2, np.int64), row) for envs, row in zip((plain, stacked), rows)]
        np.testing.assert_equal(rows[1].obs, rows[0].obs)
        np.testing.assert_equal([e.final_obs for e in ends[1]], [e.final_obs for e in ends[0]])


def test_of_a_dict_the_boxes_are_stacked():
    envs = ObservationStack(InProcessVector(DictCounterEnv, 2), size=3)
    assert envs.observation_space["numbers"].shape == (3, 3)
    assert envs.observation_space["place"] == InProcessVector(DictCounterEnv, 1).observation_space["place"]
    row = envs.new_row()
    envs.reset([0, 1], row)
    for _ in range(STEPS):
        ended = {episode.index: episode for episode in envs.step(np.zeros(2, np.int64), row)}
        for i in range(2):
            steps = row.obs["numbers"][i, :, 1]
            assert (
                row.obs["place"][i] == steps[-1]
                and (np.diff(steps) <= 1).all()
                and (row.obs["numbers"][i, :, 2] == i).all()
            )
            assert len(set(row.obs["numbers"][i, :, 0])) == 1  # one episode
            if i in ended:
                final = ended[i].final_obs
                assert (
                    final["numbers"].shape == (3, 3) and final["numbers"][-1, 1] == -ended[i].length == -final["place"]
                )
                assert (final["numbers"][:, 0] == row.obs["numbers"][i, 0, 0] - 1).all()


def test_no_frame_of_the_old_episode_survives_a_reset():
    """The counter env writes the number of the episode into every frame."""
    actions = np.zeros((STEPS, N_ENVS), np.int64)
    _, wrapped = traces(CounterEnv, ObservationStack, actions, size=4)
    episode = np.zeros(N_ENVS)
    for obs, *_, ended in wrapped.steps:
        for i in ended:
            assert (np.asarray(ended[i].final_obs)[:, 0] == episode[i]).all()  # the final stack is all old
            assert ended[i].final_obs[-1, 1] == -ended[i].length
            episode[i] += 1
        np.testing.assert_array_equal(obs[:, :, 0], np.repeat(episode[:, None], 4, 1))


def test_final_stacks_are_not_overwritten_by_later_steps():
    envs = ObservationStack(InProcessVector(CounterEnv, N_ENVS), size=3)
    row = envs.new_row()
    envs.reset(SEEDS, row)
    kept = []
    for _ in range(STEPS):
        for episode in envs.step(np.zeros(N_ENVS, np.int64), row):
            kept.append((episode.final_obs, episode.final_obs.copy()))
    for held, copy in kept:
        np.testing.assert_array_equal(held, copy)


def test_the_stack_goes_on_where_it_was_saved():
    def make():
        return ObservationStack(InProcessVector(WalkEnv, 2), size=3)

    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, (40, 2, 2))
    envs, row = make(), make().new_row()
    envs.reset([1, 2], row)
    for action in actions[:20]:
        envs.step(action, row)
    state = envs.save_state()
    expected = []
    for action in actions[20:]:
        envs.step(action, row)
        expected.append(row.obs.copy())
    again, row = make(), make().new_row()
    again.reset([5, 6], row)
    again.load_state(state)
    for action, obs in zip(actions[20:], expected):
        again.step(action, row)
        np.testing.assert_array_equal(row.obs, obs)


def test_the_stack_declares_its_space():
    envs = ObservationStack(InProcessVector(lambda: gym.make("CartPole-v1"), 2), size=3)
    inner = gym.make("CartPole-v1").observation_space
    assert envs.observation_space.shape == (3, 4)
    np.testing.assert_array_equal(envs.observation_space.low, np.stack([inner.low] * 3))
    assert envs.new_row().obs.shape == (2, 3, 4)


def test_reward_clip_changes_the_learners_reward_alone():
    bare, wrapped = traces(CounterEnv, RewardClip, low=-1.0, high=12.0)
    check_rewards(bare, wrapped, lambda reward: np.clip(reward, -1, 12))
    assert max(reward.max() for _, reward, *_ in bare.steps) > 12


def test_reward_scale_changes_the_learners_reward_alone():
    bare, wrapped = traces(CounterEnv, RewardScale, factor=0.1, offset=-1.0)
    check_rewards(bare, wrapped, lambda reward: reward * np.float32(0.1) + np.float32(-1.0))


def check_rewards(bare, wrapped, transform):
    for (obs, reward, *rest, ended), (found, found_reward, *found_rest, found_ended) in zip(bare.steps, wrapped.steps):
        np.testing.assert_array_equal(found, obs)
        np.testing.assert_allclose(found_reward, transform(reward), rtol=1e-6)
        for array, other in zip(rest, found_rest):
            np.testing.assert_array_equal(array, other)
        for i, episode in ended.items():
            assert found_ended[i].ret == episode.ret  # what is reported is the env's own


def test_action_clip_leaves_the_callers_actions_alone():
    actions = np.random.default_rng(0).normal(0, 3, (200, N_ENVS, 2))
    before = actions.copy()
    bare, wrapped = traces(WalkEnv, ActionClip, actions)
    np.testing.assert_array_equal(actions, before)
    clipped = Trace(InProcessVector(WalkEnv, N_ENVS), np.clip(actions, -1, 1))
    for (expected, *_), (found, *_) in zip(clipped.steps, wrapped.steps):
        np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, bare.steps[-1][0])


def test_masks_pass_through():
    plain = InProcessVector(MaskedCounterEnv, 2)
    stacked = ObservationStack(InProcessVector(MaskedCounterEnv, 2), size=2)
    rows = [plain.new_row(), stacked.new_row()]
    for envs, row in zip((plain, stacked), rows):
        envs.reset([1, 2], row)
    for _ in range(20):
        np.testing.assert_array_equal(rows[0].mask, rows[1].mask)
        action = rows[0].mask.argmax(-1)
        for envs, row in zip((plain, stacked), rows):
            envs.step(action, row)


# ---- by name ---------------------------------------------------------------------------------------------------------


def named(*wrappers):
    return [WrapperConfig(id=name, args=args) for name, args in wrappers]


def test_wrappers_apply_in_order_the_last_outermost():
    envs = wrap(InProcessVector(CounterEnv, 2), named(("reward_scale", {"factor": 10}), ("reward_clip", {"high": 5.0})))
    assert isinstance(envs, RewardClip) and isinstance(envs.inner, RewardScale)
    row = envs.new_row()
    envs.reset([0, 1], row)
    envs.step(np.zeros(2, np.int64), row)
    assert row.reward.tolist() == [5.0, 5.0]
    turned = wrap(
        InProcessVector(CounterEnv, 2), named(("reward_clip", {"high": 5.0}), ("reward_scale", {"factor": 10}))
    )
    turned.reset([0, 1], row)
    turned.step(np.zeros(2, np.int64), row)
    assert row.reward.tolist() == [50.0, 50.0]


@pytest.mark.parametrize("vectorization", ["native", "inprocess"])
def test_time_limit_by_name(vectorization):
    config = EnvConfig(id="CartPole-v1", wrappers=[{"id": "time_limit", "steps": 5}], vectorization=vectorization)
    envs = make_envs(config, 3)
    row = envs.new_row()
    envs.reset([0, 1, 2], row)
    for step in range(1, 11):
        ended = envs.step(np.full(3, step % 2), row)
        assert len(ended) == (3 if step % 5 == 0 else 0)
        assert row.truncated.all() == (step % 5 == 0) and not row.terminated.any()
    assert [episode.length for episode in ended] == [5, 5, 5]


def test_continuous_actions_are_always_clipped_for_the_env():
    envs = make_envs(EnvConfig(id="Pendulum-v1"), 2)
    assert isinstance(envs, ActionClip)
    assert not isinstance(make_envs(EnvConfig(id="CartPole-v1"), 2), ActionClip)

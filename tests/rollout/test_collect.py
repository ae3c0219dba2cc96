"""What a collection writes down, against scripts whose every number is known."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from scripted_vector import ScriptedVector, Step

from gymnast.config.schema import PolicyConfig
from gymnast.envs.families.classic.cartpole import CartPoleVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.actions import ActionClip
from gymnast.errors import EnvError, NonFiniteError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import collect
from gymnast.rollout.returns import gae
from gymnast.seeding import env_seeds
from gymnast.timing import StageTimer


def identity_critic(envs: VectorEnv, *, shared: bool = False) -> ActorCritic:
    """A policy whose value of an observation is the observation itself."""
    policy = ActorCritic(PolicyConfig(hidden=[], shared_trunk=shared), envs.observation_space, envs.action_space)
    with torch.no_grad():
        policy.critic.layers[0].weight.fill_(1.0)
        policy.critic.layers[0].bias.zero_()
    return policy


def play(envs, policy, n_steps, *, seed=0, rollout=None, generator=None, **options):
    """A rollout of `n_steps` from a reset, and the episodes that ended."""
    rollout = rollout or Rollout(n_steps, envs, policy)
    envs.reset(env_seeds(seed, "train_envs", envs.n_envs), rollout.first_row)
    generator = generator or torch.Generator().manual_seed(seed)
    return rollout, collect(policy, envs, rollout, generator, StageTimer(), **options)


@pytest.mark.parametrize("shared", [False, True])
def test_a_cut_episode_is_bootstrapped_from_its_own_final_observation(shared):
    script = [Step(2), Step(50, truncated=True, ended=True, final=70), Step(51), Step(52)]
    envs = ScriptedVector([1], [script])
    rollout, ended = play(envs, identity_critic(envs, shared=shared), 4)
    np.testing.assert_array_equal(rollout["value"][:, 0], [1, 2, 50, 51, 52])
    # 70 is V(final_obs); V(s_t) is 2 and V(reset observation) is 50.
    np.testing.assert_array_equal(rollout.next["value"][:, 0], [2, 70, 51, 52])
    assert [(t, episode.index, episode.length) for t, episode in ended] == [(1, 0, 2)]


def test_final_observations_of_several_slots_are_not_mixed_up():
    def cut(obs, final):
        return Step(obs, truncated=True, ended=True, final=final)

    scripts = [
        [cut(10, 100), Step(11), cut(12, 101)],
        [Step(20), cut(21, 200), Step(22)],
        [cut(30, 300), Step(31, terminated=True, ended=True, final=301), cut(32, 302)],
    ]
    envs = ScriptedVector([1, 2, 3], scripts)
    rollout, _ = play(envs, identity_critic(envs), 3)
    np.testing.assert_array_equal(rollout.next["value"], [[100, 20, 300], [11, 200, 31], [101, 22, 302]])


def test_a_terminated_episode_has_no_future():
    script = [Step(5, reward=3.0, terminated=True, ended=True, final=99), Step(6)]
    envs = ScriptedVector([1], [script])
    rollout, _ = play(envs, identity_critic(envs), 2)
    value = rollout["value"][:2].numpy()
    _, target = gae(rollout.reward, value, rollout.next["value"], rollout.terminated, rollout.truncated, 0.9, 1.0)
    np.testing.assert_allclose(target[:, 0], [3.0, 0.9 * 6], rtol=1e-6)


def test_a_lost_life_ends_the_future_but_not_the_episode():
    script = [Step(2, 1.0), Step(3, 1.0, terminated=True), Step(4, 1.0), Step(0, 1.0, True, ended=True, final=5)]
    envs = ScriptedVector([1], [script])
    policy = identity_critic(envs)
    rollout, ended = play(envs, policy, 4)
    assert [(t, episode.ret, episode.length) for t, episode in ended] == [(3, 4.0, 4)]
    value = rollout["value"][:4].numpy()
    advantage, target = gae(
        rollout.reward, value, rollout.next["value"], rollout.terminated, rollout.truncated, 1.0, 1.0
    )
    np.testing.assert_allclose(target[:, 0], [2.0, 1.0, 2.0, 1.0])
    batch = rollout.batch(advantage=advantage, target=target)
    np.testing.assert_array_equal(batch.obs[:, 0], [1, 2, 3, 4])  # no sample dropped, none repeated


def test_a_lost_env_is_bootstrapped_with_zero():
    envs = ScriptedVector([1], [[Step(2), Step(50, truncated=True, ended=True, final=None), Step(51)]])
    rollout, ended = play(envs, identity_critic(envs), 3)
    np.testing.assert_array_equal(rollout.next["value"][:, 0], [2, 0, 51])
    assert ended[0][1].final_obs is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("field", "word"), [("obs", "observation"), ("reward", "reward"), ("final", "final observation")]
)
@pytest.mark.parametrize("step", [0, 1, 3])
def test_numbers_that_are_not_finite_name_env_and_step(field, word, bad, step):
    quiet = [Step(1, 1.0)] * 4
    script = list(quiet)
    line = {"obs": 2.0, "reward": 1.0, field: bad}
    end = {"truncated": True, "ended": True} if field == "final" else {}
    script[step] = Step(**line, **end)
    envs = ScriptedVector([1, 1], [quiet, script])
    policy = identity_critic(envs)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    with pytest.raises(NonFiniteError, match=rf"\({word}\) in env 1, step {step} "):
        play(envs, policy, 4)
    for name, tensor in policy.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_huge_finite_numbers_are_not_an_error():
    envs = ScriptedVector([1], [[Step(3e38, 3e38), Step(3e38, 3e38)]])
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space, critic=False)
    play(envs, policy, 2)


def test_a_mask_without_any_action_is_an_error():
    envs = ScriptedVector(
        [1, 1], [[Step(1)], [Step(1), Step(1, mask=(False, False)), Step(1)]], first_mask=(True, True)
    )
    policy = identity_critic(envs)
    with pytest.raises(EnvError, match=r"Env 1 .* before step 2"):
        play(envs, policy, 3)


def test_a_mask_without_any_action_in_one_choice_is_an_error():
    space = spaces.MultiDiscrete([2, 3])
    half = (False, False, True, True, True)
    envs = ScriptedVector([1], [[Step(1, mask=half), Step(1)]], action_space=space, first_mask=(True,) * 5)
    with pytest.raises(EnvError, match=r"Env 0 .* before step 1"):
        play(envs, identity_critic(envs), 2)


def test_masked_actions_are_never_taken():
    masks = [(False, True, False), (True, False, False), (False, False, True), (False, True, True)]
    script = [Step(0, mask=mask) for mask in masks]
    envs = ScriptedVector([0], [script], action_space=spaces.Discrete(3), first_mask=masks[-1])
    rollout, _ = play(envs, identity_critic(envs), 400)
    actions = rollout["action"][:, 0].numpy()
    assert all(masks[(t - 1) % 4][action] for t, action in enumerate(actions))
    assert set(actions[::4].tolist()) == {1, 2}  # where two are allowed, both are taken


def whole_episodes(lengths: list[list[int]]) -> ScriptedVector:
    """Slot i plays episodes of these lengths; the observation counts 100 × episode + step, per slot."""
    scripts = []
    for slot in lengths:
        script = []
        for episode, length in enumerate(slot):
            for step in range(1, length + 1):
                last = step == length
                obs = 100 * (episode + 1) if last else 100 * episode + step
                script.append(Step(obs, 1.0, terminated=last, ended=last, final=-1.0 if last else None))
        scripts.append(script)
    return ScriptedVector([0] * len(lengths), scripts)


@pytest.mark.parametrize("quota", [1, 2])
def test_whole_episodes_are_the_first_of_every_slot(quota):
    lengths = [[2, 3, 50], [6, 1, 50], [1, 1, 50]]
    envs = whole_episodes(lengths)
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space, critic=False)
    rollout, _ = play(envs, policy, 30, episodes_per_env=quota)
    longest = max(sum(slot[:quota]) for slot in lengths)
    assert rollout.length == longest == envs.steps  # it stops as soon as the last slot is done
    zeros = np.zeros((longest, 3), np.float32)
    batch = rollout.batch(advantage=zeros, target=zeros)
    expected = sorted(
        100.0 * episode + step for slot in lengths for episode in range(quota) for step in range(slot[episode])
    )
    assert sorted(batch.obs[:, 0].tolist()) == expected
    assert len(batch) == sum(sum(slot[:quota]) for slot in lengths)


def test_an_episode_that_does_not_end_in_time_is_left_out():
    envs = whole_episodes([[3, 90], [90]])
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space, critic=False)
    rollout, _ = play(envs, policy, 5, episodes_per_env=1)
    zeros = np.zeros((5, 2), np.float32)
    assert rollout.length == 5
    np.testing.assert_array_equal(rollout.batch(advantage=zeros, target=zeros).obs[:, 0], [0, 1, 2])


def test_no_whole_episode_at_all_is_an_error():
    envs = whole_episodes([[90], [90]])
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space, critic=False)
    with pytest.raises(EnvError, match=r"No episode ended within 5 steps.*algo\.max_steps"):
        play(envs, policy, 5, episodes_per_env=1)


@pytest.mark.parametrize("shared", [False, True])
def test_log_probabilities_and_values_equal_a_fresh_forward_pass(shared):
    envs = CartPoleVector(4)
    policy = ActorCritic(PolicyConfig(shared_trunk=shared), envs.observation_space, envs.action_space)
    rollout, _ = play(envs, policy, 40)
    with torch.no_grad():
        params, heads, _ = policy(rollout.flat_obs(40))
        log_prob = torch.log_softmax(params, -1).gather(1, rollout["action"].flatten()[:, None])[:, 0]
    torch.testing.assert_close(rollout["log_prob"].flatten(), log_prob, rtol=0, atol=1e-6)
    torch.testing.assert_close(rollout["value"][:40].flatten(), heads["value"], rtol=0, atol=1e-6)


def test_the_last_observation_is_the_next_ones_first():
    masks = [(True, False), (False, True), (True, True)]
    script = [Step(float(i + 2), mask=masks[i % 3]) for i in range(7)]
    envs = ScriptedVector([1], [script], first_mask=(True, True))
    policy = identity_critic(envs)
    rollout, _ = play(envs, policy, 3)
    last, mask = float(rollout.obs[3, 0, 0]), rollout.mask[3, 0].clone()
    rollout.carry_over()
    assert float(rollout.obs[0, 0, 0]) == last == 4.0
    assert torch.equal(rollout.mask[0, 0], mask) and mask.tolist() == [True, True]
    collect(policy, envs, rollout, torch.Generator().manual_seed(1), StageTimer())
    np.testing.assert_array_equal(rollout.obs[:, 0, 0], [4, 5, 6, 7])
    assert envs.steps == 6


def test_carry_over_after_fewer_steps_takes_the_last_one_played():
    envs = whole_episodes([[2, 90]])
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space, critic=False)
    rollout, _ = play(envs, policy, 8, episodes_per_env=1)
    rollout.carry_over()
    assert rollout.length == 2 and float(rollout.obs[0, 0, 0]) == 100.0


class CountingEnv(gym.Env):
    """Counts its own steps and the actions it was given."""

    observation_space = spaces.Box(-1, 1, (2,))

    def __init__(self, action_space):
        self.action_space, self.n_steps, self.seen = action_space, 0, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        self.n_steps += 1
        self.seen.append(np.array(action))
        terminated, truncated = self.np_random.random(2) < 0.2
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), 1.0, bool(terminated), bool(truncated), {}


def test_every_sample_is_one_real_step():
    envs = InProcessVector(lambda: CountingEnv(spaces.Discrete(3)), 3)
    policy = ActorCritic(PolicyConfig(hidden=[8]), envs.observation_space, envs.action_space)
    rollout, ended = play(envs, policy, 50)
    assert [env.n_steps for env in envs.envs] == [50, 50, 50]
    for i, env in enumerate(envs.envs):
        np.testing.assert_array_equal(rollout["action"][:, i], env.seen)
    finished = sum(episode.length for _, episode in ended)
    open_steps = sum(envs._lengths)
    assert finished + open_steps == rollout["action"].numel() == 150
    assert (rollout.terminated | rollout.truncated).sum() == len(ended)


def test_continuous_actions_are_stored_as_chosen_and_clipped_for_the_env_alone():
    space = spaces.Box(-0.5, 0.5, (2,))
    inner = InProcessVector(lambda: CountingEnv(space), 2)
    envs = ActionClip(inner)
    policy = ActorCritic(PolicyConfig(hidden=[8]), envs.observation_space, envs.action_space)
    rollout, _ = play(envs, policy, 60)
    stored = rollout["action"].numpy()
    given = np.stack([env.seen for env in inner.envs], 1)
    assert (np.abs(stored) > 0.5).mean() > 0.3 and np.abs(given).max() == 0.5
    np.testing.assert_array_equal(given, np.clip(stored, -0.5, 0.5))
    # The log-probability is that of the stored action, not of the clipped one.
    with torch.no_grad():
        mean, log_std = policy(rollout.flat_obs(60))[0].split(2, -1)
        normal = torch.distributions.Normal(mean, log_std.exp())
        log_prob = normal.log_prob(rollout["action"].flatten(0, 1)).sum(-1)
    torch.testing.assert_close(rollout["log_prob"].flatten(), log_prob, rtol=0, atol=2e-6)


def fields_of(rollout: Rollout) -> list[np.ndarray]:
    return [
        *(np.asarray(x) for x in (rollout.obs, rollout["action"], rollout["log_prob"], rollout["value"])),
        *(rollout.reward, rollout.terminated, rollout.truncated, rollout.next["value"]),
    ]


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    def once(seed):
        envs = CartPoleVector(4)
        policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space)
        return fields_of(play(envs, policy, 64, seed=seed)[0])

    first, again, other = once(0), once(0), once(1)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0]) and not np.array_equal(first[1], other[1])


def test_all_steps_are_counted_once_under_env_and_policy():
    envs = CartPoleVector(2)
    policy = ActorCritic(PolicyConfig(), envs.observation_space, envs.action_space)
    timer, heard = StageTimer(), []
    rollout = Rollout(130, envs, policy)
    envs.reset([1, 2], rollout.first_row)
    collect(policy, envs, rollout, torch.Generator().manual_seed(0), timer, on_step=heard.append)
    assert set(timer.seconds) == {"env", "policy"} and all(seconds > 0 for seconds in timer.seconds.values())
    assert heard == [64, 128]

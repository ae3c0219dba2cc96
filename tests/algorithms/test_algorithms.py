"""Whole algorithms: exact policy gradients, A2C as a special PPO, REINFORCE's options, and what truncation means."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.base import Batch, Outputs
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.algorithms import A2CConfig, OptimizerConfig, PPOConfig, ReinforceConfig
from gymnast.config.schema import PolicyConfig
from gymnast.envs.families.classic.cartpole import CartPoleVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.vector import VectorEnv
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import collect
from gymnast.rollout.returns import discounted_returns
from gymnast.timing import StageTimer
from gymnast.training.update import Learner, gradients, update

CONSTANTS = {"gamma": 1.0, "gae_lambda": 1.0, "ent_coef": 0.0, "vf_coef": 0.5, "clip_range": 0.2}


def numbers(config) -> dict[str, float]:
    """The coefficients of a config without schedules."""
    return {name: value for name, value in config if isinstance(value, float)}


# ---- the policy gradient is exact ------------------------------------------------------------------------------------


class Table(VectorEnv):
    """Only the layout of envs with `states` observations and two actions."""

    def __init__(self, states: int, n_envs: int) -> None:
        self.n_envs = n_envs
        self.observation_space, self.action_space = spaces.Discrete(states), spaces.Discrete(2)

    def reset(self, seeds, row):
        raise NotImplementedError

    step = save_state = load_state = reset


CHAIN_REWARD = torch.tensor([[1.0, -2.0], [0.5, 3.0], [-1.0, 4.0]], dtype=torch.float64)
CHAIN_POLICY = torch.tensor([[1 / 4, 3 / 4], [1 / 2, 1 / 2], [3 / 4, 1 / 4]], dtype=torch.float64)
BANDIT_REWARD = torch.tensor([[1.0, 5.0]], dtype=torch.float64)
BANDIT_POLICY = torch.tensor([[1 / 4, 3 / 4]], dtype=torch.float64)
PROBLEMS = {"bandit": (BANDIT_REWARD, BANDIT_POLICY, 1), "chain": (CHAIN_REWARD, CHAIN_POLICY, 3)}


def trajectories(reward, horizon):
    """All action sequences: action 1 moves one state on, action 0 stays; the last state is a dead end."""
    for index in range(2**horizon):
        state, path = 0, []
        for t in range(horizon):
            action = index >> t & 1
            path.append((state, action, float(reward[state, action])))
            state = min(state + action, len(reward) - 1)
        yield path


def exact_gradient(reward, probabilities, horizon):
    """∇J by autograd through the sum over all trajectories, with respect to a logit per state and action."""
    logits = probabilities.log().requires_grad_()
    log_p = torch.log_softmax(logits, -1)
    total = torch.zeros((), dtype=torch.float64)
    for path in trajectories(reward, horizon):
        probability = torch.stack([log_p[s, a] for s, a, _ in path]).sum().exp()
        total = total + probability * sum(r for _, _, r in path)
    return torch.autograd.grad(total, logits)[0]


def enumerated(reward, probabilities, horizon):
    """A rollout in which every trajectory comes as often as its probability says: its mean is the expectation."""
    paths = []
    for path in trajectories(reward, horizon):
        copies = 4**horizon * float(np.prod([probabilities[s, a] for s, a, _ in path]))
        assert copies == round(copies)
        paths += [path] * round(copies)
    envs = Table(len(reward), len(paths))
    policy = ActorCritic(PolicyConfig(hidden=[]), envs.observation_space, envs.action_space)
    with torch.no_grad():
        policy.actor.layers[0].weight.copy_(probabilities.log().T)
        policy.actor.layers[0].bias.zero_()
        policy.critic.layers[0].weight.copy_(torch.linspace(-1, 2, len(reward))[None])  # any critic will do
    rollout = Rollout(horizon, envs, policy)
    for n, path in enumerate(paths):
        for t, (state, action, r) in enumerate(path):
            rollout.obs_arrays[t, n], rollout["action"][t, n], rollout.reward[t, n] = state, action, r
    rollout.terminated[-1] = True
    with torch.no_grad():
        flat = rollout.flat_obs(horizon)
        rollout["log_prob"][:] = (
            torch.log_softmax(policy(flat)[0], -1).gather(1, rollout["action"].flatten()[:, None]).view(horizon, -1)
        )
        rollout["value"][:horizon] = policy.values(flat).view(horizon, -1)
    rollout.next["value"][:-1] = rollout["value"][1:horizon].numpy()
    return policy, rollout


GRADIENT_CONFIGS = {
    "reinforce": ReinforceConfig(id="reinforce", baseline="none", normalize_advantage="off"),
    "reinforce_mean": ReinforceConfig(id="reinforce", baseline="mean", normalize_advantage="off"),
    "reinforce_learned": ReinforceConfig(id="reinforce", baseline="learned", normalize_advantage="off"),
    "a2c": A2CConfig(id="a2c"),
    "ppo": PPOConfig(id="ppo", normalize_advantage="off"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", GRADIENT_CONFIGS)
def test_the_policy_gradient_is_the_exact_one(name, problem):
    reward, probabilities, horizon = PROBLEMS[problem]
    policy, rollout = enumerated(reward, probabilities, horizon)
    flat = FlatParameters(policy)
    algorithm = make_algorithm(GRADIENT_CONFIGS[name], rollout.n_envs)
    batch = algorithm.targets(rollout, CONSTANTS, policy)
    with torch.inference_mode():
        optimizer = make_optimizer(flat, GRADIENT_CONFIGS[name].optimizer)
        gradients(Learner(policy, flat, optimizer, algorithm, torch.Generator()), batch, CONSTANTS)
    # The loss is averaged over steps, J is a sum over the steps of an episode; the loss is minimised, J maximised.
    found = -horizon * policy.actor.layers[0].weight.grad.T.double()
    expected = exact_gradient(reward, probabilities, horizon)
    assert expected.abs().min() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


# ---- A2C and PPO -----------------------------------------------------------------------------------------------------


def one_update(algo, *, policy_config=None, seed=0, n_envs=4, n_steps=16, action="discrete"):
    """Collect on CartPole and update once; the weights before and after, and the update's result."""
    envs = CartPoleVector(n_envs) if action == "discrete" else InProcessVector(lambda: gym.make("Pendulum-v1"), n_envs)
    generator = torch.Generator().manual_seed(seed)
    policy = ActorCritic(
        policy_config or PolicyConfig(), envs.observation_space, envs.action_space, generator=generator
    )
    flat = FlatParameters(policy)
    algorithm = make_algorithm(algo, n_envs)
    rollout = Rollout(n_steps, envs, policy)
    envs.reset(list(range(n_envs)), rollout.first_row)
    collect(policy, envs, rollout, torch.Generator().manual_seed(seed), StageTimer())
    c = numbers(algo)
    before = flat.values.clone()
    optimizer = make_optimizer(flat, algo.optimizer)
    batch = algorithm.targets(rollout, c, policy)
    result = update(Learner(policy, flat, optimizer, algorithm, torch.Generator().manual_seed(seed)), batch, c)
    return before, flat.values.clone(), result


SHARED_SETTINGS = {
    "gamma": 0.97,
    "gae_lambda": 0.9,
    "learning_rate": 1e-2,
    "ent_coef": 0.02,
    "vf_coef": 0.4,
    "max_grad_norm": 0.5,
}


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize("action", ["discrete", "continuous"])
@pytest.mark.parametrize("shared", [False, True])
def test_a2c_is_ppo_with_one_epoch_and_one_minibatch(shared, action, optimizer):
    settings = {**SHARED_SETTINGS, "optimizer": OptimizerConfig(id=optimizer)}
    a2c = A2CConfig(id="a2c", **settings)
    ppo = PPOConfig(id="ppo", n_epochs=1, batch_size=1.0, clip_range=1e9, normalize_advantage="off", **settings)
    network = PolicyConfig(hidden=[32], shared_trunk=shared)
    before, after_a2c, result = one_update(a2c, policy_config=network, action=action)
    _, after_ppo, _ = one_update(ppo, policy_config=network, action=action)
    assert result.updates == 1 and (after_a2c - before).abs().max() > 1e-3
    torch.testing.assert_close(after_a2c, after_ppo, rtol=0, atol=1e-6)


def test_clipping_does_not_touch_the_first_step():
    settings = {**SHARED_SETTINGS, "n_epochs": 1, "batch_size": 1.0}
    _, clipped, _ = one_update(PPOConfig(id="ppo", clip_range=0.1, **settings))
    _, free, _ = one_update(PPOConfig(id="ppo", clip_range=1e9, **settings))
    torch.testing.assert_close(clipped, free, rtol=0, atol=1e-6)


def test_the_statistics_of_an_unmoved_policy():
    config = PPOConfig(id="ppo", n_epochs=1, batch_size=1.0, learning_rate=1e-12)
    *_, result = one_update(config)
    assert result.statistics["train/approx_kl"] == pytest.approx(0.0, abs=1e-7)
    assert result.statistics["train/clip_fraction"] == 0.0
    assert result.statistics["train/entropy"] == pytest.approx(np.log(2), abs=1e-3)


def minibatch_of(n: int, advantage=None) -> tuple[Outputs, Batch]:
    generator = torch.Generator().manual_seed(0)
    log_prob, old, value, target, random = torch.randn(5, n, generator=generator).mul_(0.3).unbind(0)
    fields = {
        "obs": torch.zeros(n, 1),
        "action": torch.zeros(n),
        "log_prob": old,
        "value": value * 0.5,
        "advantage": random if advantage is None else advantage,
        "target": target,
    }
    return {"log_prob": log_prob, "entropy": torch.full((n,), 0.7), "value": value}, Batch(fields)


@pytest.mark.parametrize("mode", ["off", "rollout", "batch"])
def test_one_sample_in_a_minibatch_is_not_nan(mode):
    outputs, batch = minibatch_of(1)
    config = PPOConfig(id="ppo", normalize_advantage=mode, clip_range_vf=0.2)
    loss = make_algorithm(config, 1).loss(outputs, batch, numbers(config))
    for tensor in (loss.gradients["log_prob"], loss.gradients["value"], *loss.statistics.values()):
        assert torch.isfinite(tensor).all()
    if mode == "batch":
        assert float(loss.gradients["log_prob"]) == 0.0


def test_ppo_normalises_per_minibatch_or_per_rollout_or_not_at_all():
    outputs, batch = minibatch_of(8)
    found = {}
    for mode in ("off", "rollout", "batch"):
        config = PPOConfig(id="ppo", normalize_advantage=mode, clip_range=1e9)
        found[mode] = make_algorithm(config, 1).loss(outputs, batch, numbers(config)).gradients["log_prob"]
    ratio = (outputs["log_prob"] - batch["log_prob"]).exp()
    torch.testing.assert_close(found["off"], -ratio * batch["advantage"] / 8)
    assert torch.equal(found["rollout"], found["off"])  # done once for the rollout, not again in the loss
    scaled = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
    torch.testing.assert_close(found["batch"], -ratio * scaled / 8)


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
@pytest.mark.parametrize("mode", ["off", "rollout", "batch"])
def test_the_rollout_is_normalised_where_asked(mode, algorithm):
    config_type = PPOConfig if algorithm == "ppo" else A2CConfig
    policy, rollout = enumerated(*PROBLEMS["chain"])
    made = make_algorithm(config_type(id=algorithm, normalize_advantage=mode), rollout.n_envs)
    raw = made.targets(rollout, CONSTANTS, policy)
    assert abs(float(raw["advantage"].std()) - 1) > 1e-3  # the targets themselves are never normalised
    batch = made.weighted(raw)
    is_normal = abs(float(batch["advantage"].mean())) < 1e-6 and abs(float(batch["advantage"].std()) - 1) < 1e-5
    # A2C has one minibatch, so both kinds happen at once; PPO's minibatches are normalised in the loss.
    assert is_normal == (mode == "rollout" or (mode == "batch" and algorithm == "a2c"))
    torch.testing.assert_close(batch["target"].view(3, -1)[2], torch.from_numpy(rollout.reward[2]))


def test_the_loss_is_the_sum_of_its_parts():
    outputs, batch = minibatch_of(16)
    leaves = [outputs[name].clone().requires_grad_() for name in ("log_prob", "value")]
    config = PPOConfig(
        id="ppo", clip_range=0.2, clip_range_vf=0.1, ent_coef=0.03, vf_coef=0.7, normalize_advantage="off"
    )
    loss = make_algorithm(config, 1).loss(outputs, batch, numbers(config))
    ratio = (leaves[0] - batch["log_prob"]).exp()
    policy_loss = -torch.minimum(ratio * batch["advantage"], ratio.clamp(0.8, 1.2) * batch["advantage"])
    clipped = batch["value"] + (leaves[1] - batch["value"]).clamp(-0.1, 0.1)
    value_loss = torch.maximum((leaves[1] - batch["target"]) ** 2, (clipped - batch["target"]) ** 2)
    total = policy_loss.mean() + 0.7 * value_loss.mean()
    d_log_prob, d_value = torch.autograd.grad(total, leaves)
    torch.testing.assert_close(loss.gradients["log_prob"], d_log_prob)
    torch.testing.assert_close(loss.gradients["value"], d_value)
    assert loss.gradients["entropy"] == pytest.approx(-0.03 / 16)
    torch.testing.assert_close(loss.statistics["train/policy_loss"], policy_loss.detach())
    torch.testing.assert_close(loss.statistics["train/value_loss"], value_loss.detach())
    moved = ((ratio - 1).abs() > 0.2).float()
    assert 0 < float(moved.mean()) < 1
    assert torch.equal(loss.statistics["train/clip_fraction"], moved)
    torch.testing.assert_close(loss.statistics["train/approx_kl"], (ratio - 1 - ratio.log()).detach())
    torch.testing.assert_close(loss.statistics["train/old_approx_kl"], -ratio.log().detach())


def test_epochs_stop_when_the_policy_has_moved_too_far():
    settings = {"learning_rate": 0.05, "n_epochs": 10, "batch_size": 16}
    *_, free = one_update(PPOConfig(id="ppo", **settings))
    *_, stopped = one_update(PPOConfig(id="ppo", target_kl=1e-4, **settings))
    *_, loose = one_update(PPOConfig(id="ppo", target_kl=1e9, **settings))
    per_epoch = 64 // 16
    assert (free.updates, free.stopped_by_kl) == (10 * per_epoch, False)
    assert (loose.updates, loose.stopped_by_kl) == (10 * per_epoch, False)
    assert stopped.stopped_by_kl and stopped.updates % per_epoch == 0 and stopped.updates < free.updates
    assert stopped.statistics["train/approx_kl"] > 1e-4


# ---- REINFORCE -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["off", "rollout", "batch"])
@pytest.mark.parametrize("baseline", ["none", "mean", "learned"])
def test_reinforce_baselines_and_normalisation(baseline, mode):
    policy, rollout = enumerated(*PROBLEMS["chain"])
    rollout.valid = np.arange(rollout.n_envs)[None] % 3 != 0  # whole slots left out
    rollout.valid = np.repeat(rollout.valid, 3, 0)
    config = ReinforceConfig(id="reinforce", baseline=baseline, normalize_advantage=mode)
    algorithm = make_algorithm(config, rollout.n_envs)
    assert algorithm.uses_critic == (baseline == "learned")
    batch = algorithm.weighted(algorithm.targets(rollout, {"gamma": 0.9}, policy))
    returns = discounted_returns(rollout.reward, rollout.terminated, 0.9)[rollout.valid].astype(np.float64)
    values = rollout["value"][:3].numpy()[rollout.valid]
    expected = returns - {"none": 0.0, "mean": returns.mean(), "learned": values}[baseline]
    if mode != "off":
        expected = (expected - expected.mean()) / (expected.std(ddof=1) + 1e-8)
    np.testing.assert_allclose(batch["advantage"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch["target"], returns, rtol=1e-5)


def test_reinforce_learns_its_baseline_only_when_it_has_one():
    outputs, batch = minibatch_of(8)
    config = ReinforceConfig(id="reinforce", baseline="learned", vf_coef=0.3)
    loss = make_algorithm(config, 1).loss(outputs, batch, numbers(config))
    torch.testing.assert_close(loss.gradients["log_prob"], -batch["advantage"] / 8)
    torch.testing.assert_close(loss.gradients["value"], 2 * (outputs["value"] - batch["target"]) * 0.3 / 8)
    del outputs["value"]
    bare = make_algorithm(ReinforceConfig(id="reinforce"), 1).loss(outputs, batch, numbers(config))
    assert "value" not in bare.gradients and "train/value_loss" not in bare.statistics


def test_reinforce_scales_rewards_of_fresh_episodes():
    """Each collection starts new episodes, so the running sum of the last one must not go on."""
    _, rollout = enumerated(*PROBLEMS["chain"])
    rollout.terminated[-1, ::2] = False  # slots that were still playing when the others were done
    config = ReinforceConfig(id="reinforce", normalize_reward=True)
    algorithm = make_algorithm(config, rollout.n_envs)
    first = algorithm.rewards(rollout, {"gamma": 0.9})
    second = algorithm.rewards(rollout, {"gamma": 0.9})
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_scaled_rewards_reach_the_targets_and_the_checkpoint():
    policy, rollout = enumerated(*PROBLEMS["chain"])
    config = A2CConfig(id="a2c", normalize_reward=True)
    algorithm = make_algorithm(config, rollout.n_envs)
    raw = rollout.reward.copy()
    batch = algorithm.targets(rollout, CONSTANTS, policy)
    scale = algorithm.reward_scaler.std
    assert scale > 1.1
    torch.testing.assert_close(batch["target"].view(3, -1)[2], torch.from_numpy(raw[2] / np.float32(scale)))
    np.testing.assert_array_equal(rollout.reward, raw)  # what the env gave stays as it was
    fresh = make_algorithm(config, rollout.n_envs)
    fresh.load_state(algorithm.state())
    assert fresh.reward_scaler.std == scale
    assert make_algorithm(A2CConfig(id="a2c"), 2).state() == {}


# ---- truncation is not termination -----------------------------------------------------------------------------------


class Endless(gym.Env):
    """One state, a reward of 1 per step, no end of its own."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), 1.0, False, False, {}


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_a_time_limit_does_not_shorten_the_future(algorithm):
    """V → 1 / (1 − 0.98) = 50; taking the limit of 8 steps for an end would give less than 8."""
    settings = {"gamma": 0.98, "learning_rate": 0.5, "max_grad_norm": None, "optimizer": OptimizerConfig(id="adam")}
    if algorithm == "ppo":
        config = PPOConfig(id="ppo", gae_lambda=1.0, n_epochs=4, batch_size=1.0, **settings)
    else:
        config = A2CConfig(id="a2c", **settings)
    envs = InProcessVector(lambda: gym.wrappers.TimeLimit(Endless(), 8), 4)
    policy = ActorCritic(PolicyConfig(hidden=[]), envs.observation_space, envs.action_space)
    flat = FlatParameters(policy)
    optimizer = make_optimizer(flat, config.optimizer)
    make = make_algorithm(config, 4)
    rollout = Rollout(20, envs, policy)
    generator = torch.Generator().manual_seed(0)
    envs.reset([0, 1, 2, 3], rollout.first_row)
    rounds = 150 if algorithm == "ppo" else 400
    for i in range(rounds):
        c = numbers(config) | {"learning_rate": 0.5 * (1 - i / rounds)}
        ended = collect(policy, envs, rollout, generator, StageTimer())
        assert ended and not any(episode.terminated for _, episode in ended)
        update(Learner(policy, flat, optimizer, make, generator), make.targets(rollout, c, policy), c)
        rollout.carry_over()
    assert policy.values(torch.ones(1, 1)).item() == pytest.approx(50.0, abs=1.0)

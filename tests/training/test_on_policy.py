"""The parts of a run: schedules on its clock, generators, warm-up, and what `auto` measures."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.config.load import Resolved
from gymnast.config.schema import PolicyConfig, RunConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.inprocess import InProcessVector
from gymnast.errors import ConfigError, UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.auto_steps import measure_n_steps
from gymnast.seeding import env_seeds, sequence
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.machine import choose_device
from gymnast.training.on_policy import warm_up_normaliser
from gymnast.training.train import train
from gymnast.training.trainer import load_policy, policy_tensors

ENDLESS = {"env": {"id": "CliffWalking-v1", "n_envs": 2}, "algo": {"id": "reinforce"}, "train": {"env_steps": 1000}}


def config(**sections) -> RunConfig:
    base = {
        "env": {"id": "CartPole-v1", "n_envs": 2},
        "algo": {"id": "ppo", "n_steps": 8},
        "train": {"env_steps": 1000},
    }
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return RunConfig.model_validate(base)


def at(trainer, env_steps: int) -> dict[str, float]:
    trainer.counters.env_steps, trainer.counters.vec_steps = env_steps, env_steps // 2
    return trainer.coefficients()


def test_schedules_run_over_the_whole_budget():
    jump = {"schedule": "piecewise", "points": [[0, 0.1], [0.5, 0.0]]}
    trainer = build(config(algo={"learning_rate": "lin_1e-3", "clip_range": 0.3, "ent_coef": jump}))
    for k in range(11):
        found = at(trainer, 100 * k)
        assert found["learning_rate"] == pytest.approx(1e-3 * (1 - k / 10), abs=1e-15)
        assert found["ent_coef"] == (0.1 if k < 5 else 0.0) and found["clip_range"] == 0.3
    assert at(trainer, 1016)["learning_rate"] == 0.0  # the last rollout may overshoot the budget
    assert "target_kl" not in found and "clip_range_vf" not in found  # what is off is not there


def test_schedules_on_vector_steps():
    trainer = build(config(algo={"gamma": {"schedule": "linear", "start": 1.0, "axis": "vec_steps", "decay_end": 250}}))
    assert [at(trainer, steps)["gamma"] for steps in (0, 250, 500)] == [1.0, 0.5, 0.0]


def jumping():
    points = {"schedule": "piecewise", "points": [[0, 1e-3], [0.5, 1e-4]], "reset_optimizer": True}
    trainer = build(config(algo={"learning_rate": points, "batch_size": 16, "n_epochs": 1}))
    trainer.start()
    return trainer


def learned_at(trainer, env_steps: int) -> float:
    """How far the optimizer has counted after an iteration of one update that begins at this step."""
    at(trainer, env_steps)
    assert trainer.learn_once(StageTimer()).result.updates == 1
    trainer.go_on()
    return counted(trainer)


def counted(trainer) -> float:
    """How far the optimizer has counted."""
    return float(trainer.optimizer.state()["step"])


def test_a_jump_resets_the_optimizer_once():
    trainer = jumping()
    assert [learned_at(trainer, steps) for steps in (0, 499, 500, 600)] == [1, 2, 1, 2]


def test_looking_at_coefficients_is_not_a_jump():
    trainer = jumping()
    learned_at(trainer, 0)
    assert at(trainer, 500)["learning_rate"] == 1e-4
    assert counted(trainer) == 1


@pytest.mark.parametrize(("saved_at", "count"), [(600, 2), (499, 1)])
def test_resuming_is_no_jump_and_hides_none(saved_at, count):
    """Both go on at step 600, by the same way: a jump between the save and there is one after a resume too."""
    first = jumping()
    learned_at(first, saved_at)
    second = jumping()
    counters = {"env_steps": saved_at, "vec_steps": saved_at // 2}
    second.load_state(policy_tensors(first.policy), first.state(), counters)
    assert counted(second) == 1
    assert torch.equal(second.flat.values, first.flat.values)
    second.start()
    assert learned_at(first, 600) == learned_at(second, 600) == count
    assert torch.equal(second.flat.values, first.flat.values)


def test_the_seed_decides_the_weights_and_the_envs():
    first, again, other = (build(config(train={"seed": seed})) for seed in (0, 0, 1))
    for trainer in (first, again, other):
        trainer.start()
    assert torch.equal(first.flat.values, again.flat.values) and not torch.equal(first.flat.values, other.flat.values)
    np.testing.assert_array_equal(first.rollout.first_row.obs, again.rollout.first_row.obs)
    assert not np.array_equal(first.rollout.first_row.obs, other.rollout.first_row.obs)
    assert first.action_generator.initial_seed() not in (
        other.action_generator.initial_seed(),
        first.learner.generator.initial_seed(),
    )


def test_the_warm_up_sees_what_random_actions_give():
    trainer = build(config(policy={"normalize_obs": True}, algo={"n_steps": 64}))
    norm = trainer.policy.encoder.norm
    warm_up_normaliser(trainer)
    envs, rng = InProcessVector(lambda: gym.make("CartPole-v1"), 2), np.random.default_rng(sequence(0, "warmup"))
    row, rows = envs.new_row(), []
    envs.reset(env_seeds(0, "warmup", 2), row)
    for _ in range(64):
        rows.append(row.obs.copy())
        envs.step(random_actions(envs.action_space, 2, rng), row)
    seen = np.concatenate(rows).astype(np.float64)
    assert float(norm.count) == 128
    np.testing.assert_allclose(norm.mean, seen.mean(0), rtol=1e-9)
    np.testing.assert_allclose(norm.variance, seen.var(0), rtol=1e-9)
    assert trainer.counters.env_steps == 0  # warm-up steps are not counted
    before = norm.mean.clone()
    warm_up_normaliser(trainer)  # only once: statistics may have come with the weights of another run
    assert torch.equal(norm.mean, before)


class RewardEvery(gym.Env):
    """A reward of 1 at every n-th step; action 0 is never possible where there is a mask."""

    observation_space = spaces.Box(-1, 1, (1,))

    def __init__(self, every, action_space=None, mask=None):
        self.every, self.steps, self.mask = every, 0, mask
        self.action_space = action_space or spaces.Discrete(2)

    def info(self):
        return {} if self.mask is None else {"action_mask": np.array(self.mask)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), self.info()

    def step(self, action):
        if self.mask is not None:
            assert all(np.ravel(action)), "a masked action was taken"
        self.steps += 1
        return np.zeros(1, np.float32), float(self.steps % self.every == 0), False, False, self.info()


@pytest.mark.parametrize(("every", "expected"), [(1, 128), (10, 64), (100, 512), (3, 16), (400, 2048)])
def test_auto_steps_follow_the_distance_between_rewards(every, expected):
    """Four times the distance, to the next power of two, from 16 to 2048; a reward that never changes says nothing."""
    assert measure_n_steps(InProcessVector(lambda: RewardEvery(every), 2), 0) == expected


@pytest.mark.parametrize(
    ("space", "mask"),
    [(spaces.Discrete(3), (0, 1, 1)), (spaces.MultiDiscrete([2, 3]), (0, 1, 0, 1, 1))],
)
def test_random_actions_respect_masks(space, mask):
    envs = InProcessVector(lambda: RewardEvery(10, space, mask), 3)
    assert envs.has_action_mask and measure_n_steps(envs, 0) == 64
    random = np.random.default_rng(0)
    row = envs.new_row()
    envs.reset([0, 1, 2], row)
    drawn = np.concatenate([random_actions(envs.action_space, envs.n_envs, random, row.mask) for _ in range(200)])
    assert set(drawn.reshape(600, -1)[:, -1].tolist()) == {1, 2}


def test_random_actions_fill_their_space():
    random = np.random.default_rng(0)
    for space in (
        spaces.Discrete(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.Box(-2, 1, (2,)),
        spaces.Box(-np.inf, 1, (1,)),
    ):
        envs = InProcessVector(lambda space=space: RewardEvery(10, space), 4)
        drawn = np.stack([random_actions(envs.action_space, envs.n_envs, random) for _ in range(300)])
        assert drawn.shape == (300, 4, *space.shape) and np.isfinite(drawn).all()
        assert all(space.contains(space.dtype.type(action)) for action in drawn[0])
    assert drawn.min() < -900  # an open side is cut somewhere


def test_devices():
    assert choose_device("auto")[0] == torch.device("cpu") and choose_device("auto")[1]
    assert choose_device("cpu")[0] == torch.device("cpu")
    with pytest.raises(UsageError, match="Unknown device 'gpu0': use auto, cpu or cuda"):
        choose_device("gpu0")


def test_weights_of_another_network_are_refused():
    box = spaces.Box(-1, 1, (3,))
    small, large = (ActorCritic(PolicyConfig(hidden=[n]), box, spaces.Discrete(2)) for n in (4, 5))
    with pytest.raises(ConfigError, match="does not fit this network"):
        load_policy(large, policy_tensors(small))


def test_reinforce_needs_an_end():
    with pytest.raises(ConfigError, match=r"'CliffWalking-v1' has no time limit: set env\.time_limit"):
        build(RunConfig.model_validate(ENDLESS))
    limited = {**ENDLESS, "env": {**ENDLESS["env"], "time_limit": 30}}
    assert build(RunConfig.model_validate(limited)).plan.n_steps == 30


@pytest.mark.parametrize(("target", "share"), [(1e-9, 1.0), (1e9, 0.0)])
def test_kl_stops_are_counted(target, share, tmp_path):
    algo = {"n_steps": 16, "batch_size": 16, "n_epochs": 3, "learning_rate": 1e-2, "target_kl": target}
    run = config(algo=algo, train={"env_steps": 160}, eval={"episodes": 1, "start_at": 1e9})
    result = train(Resolved(run), tmp_path)
    rows = list(MetricRows(result.run.metrics_path))
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["train/kl_stops"] for row in rows] == [share * row["iteration"] for row in rows]
    # Two minibatches per epoch; an update that was stopped ends with its first epoch.
    assert [row["updates"] for row in rows] == [(2 if share else 6) * row["iteration"] for row in rows]

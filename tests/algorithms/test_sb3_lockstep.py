"""Step for step beside Stable-Baselines3: the same first weights, seeds, noise and minibatches give the same weights.

Curves can only fail to be told apart; this shows why they cannot. SB3 draws its actions and permutations from our noise,
and both train for several iterations through ended and cut-off episodes. What remains is the rounding of float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common import distributions
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env

from gymnast.config.schema import RunConfig
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.on_policy import OnPolicyTrainer

N_ENVS = 4


@dataclass(frozen=True)
class Case:
    """One algorithm on one env, in SB3's words; `extra` is what only our config says."""

    theirs: Any
    env_id: str
    settings: dict[str, Any]
    extra: dict[str, Any]
    iterations: int


RMSPROP = {"optimizer": {"id": "rmsprop_torch"}}
CASES = {
    "ppo, choices": Case(
        PPO,
        "CartPole-v1",
        {"n_steps": 64, "batch_size": 32, "n_epochs": 3, "gamma": 0.98, "gae_lambda": 0.9, "ent_coef": 0.01},
        {},
        8,
    ),
    "ppo, numbers, cut-off episodes": Case(
        PPO,
        "Pendulum-v1",
        {"n_steps": 64, "batch_size": 64, "n_epochs": 2, "learning_rate": 1e-3},
        {},
        5,
    ),
    "ppo, long episodes": Case(
        PPO,
        "LunarLander-v3",
        {"n_steps": 256, "batch_size": 64, "n_epochs": 2, "gamma": 0.999, "gae_lambda": 0.98, "ent_coef": 0.01},
        {},
        3,
    ),
    "a2c, choices": Case(A2C, "CartPole-v1", {"n_steps": 5, "ent_coef": 0.01}, RMSPROP, 40),
    "a2c, numbers, cut-off episodes": Case(A2C, "Pendulum-v1", {"n_steps": 8, "gae_lambda": 0.9}, RMSPROP, 30),
}


@pytest.fixture
def puppet(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """SB3 acts by the noise put into the returned dict, one step after the other."""
    strings: dict[str, Any] = {"noise": iter(())}

    def choose(self: Any) -> torch.Tensor:
        return (self.distribution.logits + next(strings["noise"])).argmax(-1)

    def draw(self: Any) -> torch.Tensor:
        return self.distribution.mean + self.distribution.stddev * next(strings["noise"])

    monkeypatch.setattr(distributions.CategoricalDistribution, "sample", choose)
    monkeypatch.setattr(distributions.DiagGaussianDistribution, "sample", draw)
    yield strings


def weights_of(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    """SB3's weights under our names."""
    theirs, ours = model.policy.state_dict(), {}
    for chain, net, head in (("actor", "policy_net", "action_net"), ("critic", "value_net", "value_net")):
        for kind in ("weight", "bias"):
            for layer in (0, 1):
                ours[f"{chain}.layers.{layer}.{kind}"] = theirs[f"mlp_extractor.{net}.{2 * layer}.{kind}"]
            ours[f"{chain}.layers.2.{kind}"] = theirs[f"{head}.{kind}"]
    if "log_std" in theirs:
        ours["log_std"] = theirs["log_std"]
    return ours


def our_trainer(case: Case) -> OnPolicyTrainer:
    """Our side of the pair."""
    algo = {"id": "ppo" if case.theirs is PPO else "a2c", **case.settings, **case.extra}
    config = {
        "env": {"id": case.env_id, "n_envs": N_ENVS},
        "policy": {"hidden": [64, 64]},
        "algo": algo,
        "train": {"env_steps": 10**9},
    }
    return build(RunConfig.model_validate(config))


@pytest.mark.parametrize("name", CASES)
def test_weights_stay_together(name: str, puppet: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """To the rounding of float32, through every iteration."""
    case = CASES[name]
    n_steps = case.settings["n_steps"]
    envs = make_vec_env(case.env_id, n_envs=N_ENVS, seed=0, env_kwargs={"render_mode": None})
    theirs = case.theirs("MlpPolicy", envs, seed=0, device="cpu", **case.settings)
    callback = theirs._setup_learn(10**9)[1]
    trainer = our_trainer(case)
    trainer.policy.load_state_dict(weights_of(theirs))
    trainer.envs.reset(list(range(N_ENVS)), trainer.rollout.first_row)
    np.testing.assert_array_equal(trainer.rollout.first_row.obs, theirs._last_obs)
    noise, order = torch.Generator().manual_seed(11), torch.Generator().manual_seed(12)
    trainer.action_generator.manual_seed(11)
    trainer.learner.generator.manual_seed(12)

    def permutation(n: int) -> np.ndarray:
        """Our permutation in SB3's order of samples, which goes env by env."""
        step, env = np.divmod(torch.randperm(n, generator=order).numpy(), N_ENVS)
        return env * n_steps + step

    monkeypatch.setattr(np.random, "permutation", permutation)
    moved, cut = 0.0, 0
    first = trainer.flat.values.clone()
    for _ in range(case.iterations):
        puppet["noise"] = iter(trainer.policy.distribution.noise((n_steps, N_ENVS), noise))
        theirs.collect_rollouts(theirs.env, callback, theirs.rollout_buffer, n_steps)
        returns = theirs.rollout_buffer.returns.copy()
        theirs._current_progress_remaining = 1.0
        theirs.train()
        done = trainer.learn_once(StageTimer())
        cut += int(trainer.rollout.truncated.sum())
        trainer.go_on()
        np.testing.assert_allclose(done.batch["target"].numpy().reshape(n_steps, N_ENVS), returns, rtol=1e-3, atol=1e-3)
        expected = weights_of(theirs)
        for key, tensor in trainer.policy.named_parameters():
            torch.testing.assert_close(
                tensor.detach(), expected[key], rtol=0, atol=2e-4, msg=lambda m, k=key: f"{k}: {m}"
            )
    moved = float((trainer.flat.values - first).abs().max())
    trainer.envs.close()
    assert moved > 0.02  # a hundred times the tolerance
    assert cut > 0 or "cut-off" not in name

"""A loss as a newcomer writes it, in plain PyTorch, is the loss in closed form; and an algorithm's own fields and networks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gymnast.algorithms.base import Algorithm, Batch, Coefficients, Field, Head, Loss, Outputs, Policy, Rollout
from gymnast.algorithms.losses import normalized
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.algorithms.ppo import PPO
from gymnast.config.algorithms import PPOConfig
from gymnast.config.schema import PolicyConfig
from gymnast.envs.families.classic.cartpole import CartPoleVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.vector import VectorEnv
from gymnast.errors import NonFiniteError
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.collect import collect
from gymnast.timing import StageTimer
from gymnast.training.update import Learner, Network, gradients, update

N_ENVS, N_STEPS = 4, 32


class WrittenOut(Algorithm[PPOConfig]):
    """PPO with its loss as an objective."""

    batch_size = PPO.batch_size
    weighted = PPO.weighted

    def objective(self, outputs: Outputs, batch: Batch, c: Coefficients) -> tuple[Tensor, dict[str, Tensor]]:
        """−min(rA, clip(r)A) + vf_coef·(V − R)² − ent_coef·H."""
        advantage = batch["advantage"]
        if self.config.normalize_advantage == "batch":
            advantage = normalized(advantage)
        ratio = (outputs["log_prob"] - batch["log_prob"]).exp()
        clipped = ratio.clamp(1 - c["clip_range"], 1 + c["clip_range"])
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage)
        value, old, target = outputs["value"], batch["value"], batch["target"]
        value_loss = (value - target).square()
        if "clip_range_vf" in c:
            near = old + (value - old).clamp(-c["clip_range_vf"], c["clip_range_vf"])
            value_loss = torch.maximum(value_loss, (near - target).square())
        total = (policy_loss + c["vf_coef"] * value_loss - c["ent_coef"] * outputs["entropy"]).mean()
        log_ratio = outputs["log_prob"] - batch["log_prob"]
        return total, {
            "train/policy_loss": policy_loss,
            "train/value_loss": value_loss.mean(),  # a scalar does as well
            "train/approx_kl": ratio - 1 - log_ratio,
            "train/old_approx_kl": -log_ratio,
            "train/clip_fraction": ((ratio - 1).abs() > c["clip_range"]).float(),
        }


def envs_of(action: str) -> VectorEnv:
    """Choices, or numbers."""
    if action == "choices":
        return CartPoleVector(N_ENVS)
    return InProcessVector(lambda: gym.make("Pendulum-v1"), N_ENVS)


def settings(**changes: Any) -> tuple[PPOConfig, Coefficients]:
    """A config in which every part of the loss matters, and its numbers."""
    data = {"ent_coef": 0.02, "vf_coef": 0.4, "learning_rate": 1e-3, "batch_size": 32, "clip_range": 0.1, **changes}
    config = PPOConfig(id="ppo", **data)
    numbers = {name: value for name, value in config if isinstance(value, float)}
    return config, numbers | {"n_epochs": float(config.n_epochs)}


def learner_of(algorithm: Algorithm, envs: VectorEnv, **network: Any) -> tuple[Learner, Rollout]:
    """What it learns with, built as for a run, and a filled rollout."""
    config = PolicyConfig(hidden=[16], **network)
    policy = algorithm.make_policy(
        config, envs.observation_space, envs.action_space, generator=torch.Generator().manual_seed(1)
    )
    flat = FlatParameters(policy)
    networks = []
    for name, module in algorithm.modules(policy).items():
        own = FlatParameters(module)
        networks.append(Network(name, module, own, make_optimizer(own, algorithm.config.optimizer)))
    rollout = Rollout(N_STEPS, envs, policy, algorithm.fields(policy))
    envs.reset(list(range(N_ENVS)), rollout.first_row)
    collect(policy, envs, rollout, torch.Generator().manual_seed(2), StageTimer())
    optimizer = make_optimizer(flat, algorithm.config.optimizer)
    generator = torch.Generator().manual_seed(3)
    return Learner(policy, flat, optimizer, algorithm, generator, networks), rollout


# ---- an objective is a loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"clip_range_vf": 0.05}, {"normalize_advantage": "rollout"}], ids=str)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("action", ["choices", "numbers"])
def test_its_gradient_is_that_of_the_closed_form(action: str, shared: bool, changes: dict[str, Any]) -> None:
    """By output, and down to the weights; on a policy that is not the one that collected."""
    config, c = settings(**changes)
    found = []
    for kind in (PPO, WrittenOut):
        algorithm = kind(config, N_ENVS)
        learner, rollout = learner_of(algorithm, envs_of(action), shared_trunk=shared)
        batch = algorithm.weighted(algorithm.targets(rollout, c, learner.policy))
        with torch.no_grad():
            drawn = torch.randn(learner.flat.values.shape, generator=torch.Generator().manual_seed(4))
            learner.flat.values.add_((0.2 if action == "choices" else 0.05) * drawn)
            _, loss = gradients(learner, batch, c)
        found.append((loss, learner.flat.grads.clone(), algorithm))
    (closed, expected, _), (plain, gradient, _) = found
    n = N_ENVS * N_STEPS
    assert closed.gradients.keys() == plain.gradients.keys() == {"log_prob", "entropy", "value"}
    assert 0 < float(closed.statistics["train/clip_fraction"].mean()) < 1
    for name in plain.gradients:
        one, other = (torch.as_tensor(loss.gradients[name]).expand(n) for loss in (closed, plain))
        torch.testing.assert_close(other, one, rtol=0, atol=1e-6)
    assert expected.abs().max() > 1e-2
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("action", ["choices", "numbers"])
def test_training_by_it_is_training_by_the_closed_form(action: str) -> None:
    """Weights and everything that is told, after several epochs of minibatches, the last one smaller."""
    config, c = settings(batch_size=48, n_epochs=3)
    ends = []
    for kind in (PPO, WrittenOut):
        algorithm = kind(config, N_ENVS)
        learner, rollout = learner_of(algorithm, envs_of(action))
        before = learner.flat.values.clone()
        result = update(learner, algorithm.targets(rollout, c, learner.policy), c)
        assert result.updates == 9 and (learner.flat.values - before).abs().max() > 1e-3
        ends.append((learner.flat.values.clone(), result))
    torch.testing.assert_close(ends[1][0], ends[0][0], rtol=0, atol=1e-5)
    # The mean of minibatches of unlike size is the same for both, the total loss among them.
    assert ends[1][1].statistics == pytest.approx(ends[0][1].statistics, rel=1e-4, abs=1e-5)


def test_it_stops_where_the_policy_has_moved_too_far() -> None:
    """By the same divergence, after the same epoch."""
    config, c = settings(learning_rate=0.03, n_epochs=10, target_kl=1e-3)
    results = []
    for kind in (PPO, WrittenOut):
        algorithm = kind(config, N_ENVS)
        learner, rollout = learner_of(algorithm, envs_of("choices"))
        results.append(update(learner, algorithm.targets(rollout, c, learner.policy), c))
    assert results[0].stopped_by_kl and results[1].stopped_by_kl
    assert results[0].epochs == results[1].epochs < 10


def test_an_algorithm_with_neither_is_named() -> None:
    config, c = settings()

    class Nothing(Algorithm[PPOConfig]):
        """Forgot it."""

    learner, rollout = learner_of(Nothing(config, N_ENVS), envs_of("choices"))
    with pytest.raises(NotImplementedError, match="Nothing has neither a `loss` nor an `objective`"):
        update(learner, learner.algorithm.targets(rollout, c, learner.policy), c)


# ---- fields and heads of its own -------------------------------------------------------------------------------------


class Curious(WrittenOut):
    """A second value of a bonus that it makes up, with a field of its own on either side."""

    heads = (Head("value_int", bootstrapped=True), Head("risk", size=2))

    def fields(self, policy: Policy) -> list[Field]:
        """The bonus, and a number for the host alone."""
        return [Field("bonus"), Field("count", side="host", learned=False)]

    def targets(self, rollout: Rollout, c: Coefficients, policy: Policy) -> Batch:
        """The bonus is the action; the second value's target one step of it."""
        t = rollout.length
        rollout["bonus"][:] = rollout["action"]
        rollout["count"].add_(1)
        batch = super().targets(rollout, c, policy)
        target = rollout["bonus"].cpu().numpy()[:t] + 0.9 * rollout.next["value_int"][:t]
        batch["target_int"] = torch.from_numpy(target).flatten()
        return batch

    def objective(self, outputs: Outputs, batch: Batch, c: Coefficients) -> tuple[Tensor, dict[str, Tensor]]:
        """PPO's, the second value's, and one that only the third head knows."""
        total, statistics = super().objective(outputs, batch, c)
        assert outputs["risk"].shape == (len(batch), 2)
        error = (outputs["value_int"] - batch["target_int"]).square()
        statistics["train/value_int_loss"] = error
        return total + 0.5 * error.mean() + (outputs["risk"] - 3.0).square().mean(), statistics


def test_fields_and_heads_that_it_asks_for() -> None:
    """They reach the batch, are learned from, and lower the error that the algorithm made of them."""
    config, c = settings(n_epochs=20, learning_rate=5e-3, max_grad_norm=None)
    algorithm = Curious(config, N_ENVS)
    learner, rollout = learner_of(algorithm, envs_of("choices"))
    batch = algorithm.targets(rollout, c, learner.policy)
    assert torch.equal(batch["bonus"], batch["action"].float()) and "count" not in batch
    assert rollout["value_int"].shape == (N_STEPS + 1, N_ENVS) and batch["value_int"].shape == batch["value"].shape
    assert rollout["count"].min() == 1

    def errors() -> tuple[float, float]:
        with torch.no_grad():
            _, heads, _ = learner.policy(batch.obs)
        return float((heads["value_int"] - batch["target_int"]).square().mean()), float(
            (heads["risk"] - 3).abs().mean()
        )

    before = errors()
    result = update(learner, batch, c)
    after = errors()
    assert after[0] < 0.5 * before[0] and after[1] < 0.5 * before[1]
    assert 0 < result.statistics["train/value_int_loss"] < before[0]


# ---- networks of its own ---------------------------------------------------------------------------------------------


class Predicting(WrittenOut):
    """Learns to predict a sum of the observation with a network of its own."""

    spoil_at: int | None = None

    def modules(self, policy: Policy) -> dict[str, nn.Module]:
        """Made once, of the same numbers in every run."""
        torch.manual_seed(7)
        self.predictor = nn.Sequential(nn.Linear(policy.encoder.size, 8), nn.Tanh(), nn.Linear(8, 1))
        self.calls = 0
        return {"predictor": self.predictor}

    def error(self, batch: Batch) -> Tensor:
        """Of each prediction, squared."""
        assert isinstance(batch.obs, Tensor)
        return (self.predictor(batch.obs)[:, 0] - batch.obs.sum(1)).square()

    def objective(self, outputs: Outputs, batch: Batch, c: Coefficients) -> tuple[Tensor, dict[str, Tensor]]:
        """PPO's and the prediction's."""
        total, statistics = super().objective(outputs, batch, c)
        error = self.error(batch)
        self.calls += 1
        if self.calls == self.spoil_at:
            error = error * float("nan")
        return total + error.mean(), {**statistics, "train/prediction_error": error}


@pytest.mark.parametrize("rate", [None, 1e-2])
def test_its_network_is_trained_next_to_the_policy(rate: float | None) -> None:
    """Each by its own gradient, clipped by itself, at its own rate: the network as by hand, the policy as without it."""
    config, c = settings(batch_size=1.0, n_epochs=5, max_grad_norm=0.3)
    own = c if rate is None else c | {"predictor_learning_rate": rate}
    algorithm = Predicting(config, N_ENVS)
    learner, rollout = learner_of(algorithm, envs_of("choices"))
    batch = algorithm.targets(rollout, c, learner.policy)

    Predicting.modules(twin := Predicting(config, N_ENVS), learner.policy)
    flat = FlatParameters(twin.predictor)
    by_hand = torch.optim.Adam([flat.values.requires_grad_()], lr=rate or c["learning_rate"], eps=config.optimizer.eps)
    clipped = 0
    for _ in range(5):
        (gradient,) = torch.autograd.grad(_flat_error(twin, flat, batch), flat.values)
        clipped += float(gradient.norm()) > 0.3
        flat.values.grad = gradient * min(1.0, 0.3 / (float(gradient.norm()) + 1e-6))
        by_hand.step()
    assert clipped

    alone = WrittenOut(config, N_ENVS)
    reference, same_rollout = learner_of(alone, envs_of("choices"))
    update(reference, alone.targets(same_rollout, c, reference.policy), c)
    before = float(algorithm.error(batch).detach().mean())
    result = update(learner, batch, own)
    torch.testing.assert_close(learner.modules[0].flat.values, flat.values.detach(), rtol=0, atol=1e-6)
    assert torch.equal(learner.flat.values, reference.flat.values)
    assert float(algorithm.error(batch).detach().mean()) < before
    assert result.statistics["train/prediction_error"] < before


def _flat_error(algorithm: Predicting, flat: FlatParameters, batch: Batch) -> Tensor:
    """The mean error as a function of the flat weights."""
    pieces = flat.split(flat.values)
    names = [name for name, _ in algorithm.predictor.named_parameters()]
    predicted = torch.func.functional_call(algorithm.predictor, dict(zip(names, pieces, strict=True)), (batch.obs,))
    assert isinstance(batch.obs, Tensor)
    return (predicted[:, 0] - batch.obs.sum(1)).square().mean()


def test_a_bad_gradient_of_its_network_moves_nothing() -> None:
    """Policy, network and both optimizers are as before the first minibatch."""
    config, c = settings(batch_size=32, n_epochs=2)
    algorithm = Predicting(config, N_ENVS)
    learner, rollout = learner_of(algorithm, envs_of("choices"))
    algorithm.spoil_at = 4
    kept = [tensor.clone() for tensor in _all_of(learner)]
    with pytest.raises(NonFiniteError, match="The gradient is NaN") as caught:
        update(learner, algorithm.targets(rollout, c, learner.policy), c)
    assert algorithm.calls == 4 and caught.value.batch is not None
    for tensor, before in zip(_all_of(learner), kept, strict=True):
        assert torch.equal(tensor, before)


def _all_of(learner: Learner) -> list[Tensor]:
    """Every number that an update moves."""
    tensors = []
    for flat, optimizer in learner.all_flat():
        tensors += [flat.values, *optimizer.state().values()]
    return tensors


def test_the_state_of_its_network_comes_back_to_the_bit() -> None:
    config, c = settings()
    made = []
    for _ in range(2):
        algorithm = Predicting(config, N_ENVS)
        made.append((algorithm, *learner_of(algorithm, envs_of("choices"))))
    (algorithm, learner, rollout), (_, other, _) = made
    update(learner, algorithm.targets(rollout, c, learner.policy), c)
    (network,), (fresh,) = learner.modules, other.modules
    assert not torch.equal(network.flat.values, fresh.flat.values)
    fresh.load_state(network.state())
    assert torch.equal(network.flat.values, fresh.flat.values)
    for name, tensor in network.optimizer.state().items():
        assert torch.equal(tensor, fresh.optimizer.state()[name]) and tensor.abs().max() > 0


def test_a_loss_in_closed_form_may_be_added_to() -> None:
    """A subclass of PPO changes its gradients by name, and what it does not name stays PPO's."""
    config, c = settings()

    class Timid(PPO):
        """Half of PPO's step."""

        def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
            """Half of the derivative by the log-probability."""
            loss = super().loss(outputs, batch, c)
            half = {name: value for name, value in loss.gradients.items() if name != "log_prob"}
            return Loss({**half, "log_prob": loss.gradients["log_prob"] * 0.5}, loss.statistics)

    grads = []
    for kind in (PPO, Timid):
        algorithm = kind(config, N_ENVS)
        assert algorithm.in_closed_form
        learner, rollout = learner_of(algorithm, envs_of("choices"))
        with torch.inference_mode():
            gradients(learner, algorithm.targets(rollout, c | {"ent_coef": 0.0}, learner.policy), c | {"ent_coef": 0.0})
        grads.append((learner.policy.actor.layers[0].weight.grad, learner.policy.critic.layers[0].weight.grad))  # type: ignore[union-attr]
    torch.testing.assert_close(grads[1][0], grads[0][0] * 0.5)
    assert torch.equal(grads[1][1], grads[0][1])
    assert not WrittenOut(config, N_ENVS).in_closed_form
    np.testing.assert_array_less(0, grads[0][0].abs().max())

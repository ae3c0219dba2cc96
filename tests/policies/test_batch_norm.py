"""Batch norm: torch's own layer in inference mode, statistics that stand still in an iteration, and a first ratio of 1."""

from __future__ import annotations

import pytest
import torch
from gymnasium import spaces
from torch import nn

from gymnast.config.load import resolve
from gymnast.config.schema import PolicyConfig
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.batch_norm import MOMENTUM, FrozenBatchNorm
from gymnast.timing import StageTimer
from gymnast.training.build import make_trainer

BOX = spaces.Box(-1, 1, (3,))


def test_it_is_torchs_layer_in_inference_mode() -> None:
    ours, theirs = FrozenBatchNorm(5), nn.BatchNorm1d(5).eval()
    for name, theirs_name in (
        ("weight", "weight"),
        ("bias", "bias"),
        ("mean", "running_mean"),
        ("variance", "running_var"),
    ):
        values = torch.rand(5) + 0.1
        with torch.no_grad():
            getattr(ours, name).copy_(values)
            getattr(theirs, theirs_name).copy_(values)
    x = torch.randn(7, 5)
    torch.testing.assert_close(ours(x), theirs(x))


def test_statistics_are_means_first_and_then_move_slowly() -> None:
    norm, batches = FrozenBatchNorm(2), [torch.randn(50, 2) * 3 + 1 for _ in range(3)]
    norm.absorbing = True
    for batch in batches:
        norm(batch)
    torch.testing.assert_close(norm.mean, torch.stack([batch.mean(0) for batch in batches]).mean(0))
    torch.testing.assert_close(norm.variance, torch.stack([batch.var(0, unbiased=False) for batch in batches]).mean(0))
    norm.count.fill_(10_000)
    before = norm.mean.clone()
    norm(batches[0])
    torch.testing.assert_close(norm.mean, before + MOMENTUM * (batches[0].mean(0) - before))


def test_every_layer_is_normalised_by_what_it_sees() -> None:
    """After one look at a batch, the pre-activations of that batch have mean 0 and variance 1 in every layer."""
    policy = ActorCritic(PolicyConfig(hidden=[8, 8], batch_norm=True), BOX, spaces.Discrete(2))
    assert policy.absorbs and policy.needs_statistics
    seen: list[torch.Tensor] = []
    hooks = [norm.register_forward_hook(lambda _, __, y: seen.append(y)) for norm in policy.batch_norms]
    policy.absorb(torch.rand(400, 3))
    assert not policy.needs_statistics and len(seen) == 4
    for y in seen:
        torch.testing.assert_close(y.mean(0), torch.zeros(8), atol=1e-5, rtol=0)
        torch.testing.assert_close(y.var(0, unbiased=False), torch.ones(8), atol=1e-2, rtol=0)
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("shared", [False, True])
def test_the_first_ratio_is_one(shared: bool) -> None:
    """In every iteration: what was collected has the same probability when it is learned from."""
    words = ("policy.batch_norm=true", f"shared_trunk={shared}", "n_envs=8", "batch_size=1.0", "n_epochs=1", "lr=0.01")
    trainer = make_trainer(resolve("CartPole-v1:ppo", words).config)
    try:
        trainer.start()
        norm = trainer.policy.batch_norms[0]
        for _ in range(3):
            before = norm.mean.clone()
            trainer.collector.collect(StageTimer(), None, run_on=False)
            rollout = trainer.rollout
            kept = rollout.flat_fields(rollout.length)
            again, _ = trainer.policy.evaluate(rollout.flat_obs(rollout.length), kept["action"])
            ratio = (again["log_prob"] - kept["log_prob"]).exp()
            torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=1e-5, rtol=0)
            assert torch.equal(norm.mean, before)
            trainer.go_on()
            trainer.iterate(StageTimer())
            assert not torch.equal(norm.mean, before)
    finally:
        trainer.close()


def test_one_way_to_normalise() -> None:
    with pytest.raises(ValueError, match="keep one"):
        PolicyConfig(layer_norm=True, batch_norm=True)

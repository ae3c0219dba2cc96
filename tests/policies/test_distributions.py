"""Action distributions against torch.distributions, enumeration and counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Normal, kl_divergence

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.base import Batch
from gymnast.config.algorithms import PPOConfig
from gymnast.errors import EnvError
from gymnast.policies.distributions import (
    IMPOSSIBLE,
    Bernoulli,
    Categorical,
    Composite,
    Gaussian,
    MultiCategorical,
    SquashedGaussian,
    distribution_for,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


CHI_SQUARE_999 = {2: 13.82, 3: 16.27, 5: 20.52}
"""99.9 % points by degrees of freedom."""


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def masked(logits: torch.Tensor, mask: list[list[bool]]) -> torch.Tensor:
    return torch.where(torch.tensor(mask), logits, IMPOSSIBLE)


def test_each_space_has_its_distribution():
    assert isinstance(distribution_for(spaces.Discrete(3)), Categorical)
    assert distribution_for(spaces.MultiDiscrete([2, 3])).action_shape == (2,)
    gaussian = distribution_for(spaces.Box(-1, 1, (2, 3)))
    assert gaussian.action_shape == (2, 3) and gaussian.n_params == 12 and gaussian.n_outputs == 6
    assert distribution_for(spaces.Box(-1, 1, (2, 3)), state_dependent_std=True).n_outputs == 12
    assert distribution_for(spaces.MultiBinary((2, 2))).action_shape == (2, 2)
    parts = distribution_for(spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Dict(a=spaces.Discrete(3)))))
    assert parts.action_shape == (3,) and (parts.n_outputs, parts.n_params) == (5, 7)
    with pytest.raises(EnvError, match="not supported"):
        distribution_for(spaces.Text(3))
    with pytest.raises(EnvError, match="finite action bounds"):
        distribution_for(spaces.Box(-1, np.inf, (1,)), squash=True)


def test_probabilities_of_all_actions_sum_to_one():
    joint = torch.tensor([[a, b, c] for a in range(2) for b in range(3) for c in range(4)])
    params = torch.randn(1, 9, generator=generator()).expand(len(joint), -1) * 3
    log_prob, entropy, _ = MultiCategorical([2, 3, 4]).evaluate(params, joint)
    assert float(log_prob.double().exp().sum()) == pytest.approx(1.0, abs=1e-6)
    # The entropy of the joint choice, from its 24 probabilities.
    assert float(-(log_prob.double().exp() * log_prob.double()).sum()) == pytest.approx(float(entropy[0]), abs=1e-5)


def test_several_choices_are_the_product_of_their_marginals():
    params = torch.randn(7, 5, generator=generator())
    action = torch.stack([torch.arange(7) % 2, torch.arange(7) % 3], -1)
    log_prob, entropy, _ = MultiCategorical([2, 3]).evaluate(params, action)
    first = Categorical(2).evaluate(params[:, :2], action[:, 0])
    second = Categorical(3).evaluate(params[:, 2:], action[:, 1])
    torch.testing.assert_close(log_prob, first[0] + second[0])
    torch.testing.assert_close(entropy, first[1] + second[1])


def test_gaussian_log_probability_is_the_sum_over_dimensions():
    mean, log_std, action = torch.randn(3, 50, 6, generator=generator())
    log_prob, entropy, _ = Gaussian((2, 3)).evaluate(torch.cat((mean, log_std), -1), action.view(50, 2, 3))
    normal = Normal(mean, log_std.exp())
    torch.testing.assert_close(log_prob, normal.log_prob(action).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(entropy, normal.entropy().sum(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("valid", [1, 2, 3, 5])
def test_entropy_of_equal_logits_counts_the_valid_actions(valid):
    mask = [[i < valid for i in range(5)]]
    _, entropy, _ = Categorical(5).evaluate(masked(torch.full((1, 5), 0.7), mask), torch.tensor([0]))
    assert math.exp(float(entropy)) == pytest.approx(valid, rel=1e-6)


def test_a_mask_renormalises_the_rest():
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    params = masked(logits, [[True, False, True, False]])
    for action, kept in ((0, 0), (2, 1)):
        log_prob, entropy, _ = Categorical(4).evaluate(params, torch.tensor([action]))
        rest = torch.distributions.Categorical(logits=logits[:, [0, 2]])
        torch.testing.assert_close(log_prob, rest.log_prob(torch.tensor([kept])))
        torch.testing.assert_close(entropy, rest.entropy())


def test_masked_logits_get_no_gradient():
    mask = [[True, False, True, True, False], [False, True, True, False, False]]
    raw = torch.randn(2, 5, generator=generator(), requires_grad=True)
    action = torch.tensor([2, 1])
    distribution = Categorical(5)
    with torch.no_grad():
        _, _, saved = distribution.evaluate(masked(raw, mask), action)
        by_hand = distribution.backward(saved, torch.tensor([1.3, -2.0]), 0.7)
    assert (by_hand[~torch.tensor(mask)] == 0).all() and (by_hand[torch.tensor(mask)] != 0).all()
    log_p = torch.log_softmax(masked(raw, mask), -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    loss = log_p.gather(1, action[:, None])[:, 0] @ torch.tensor([1.3, -2.0]) + 0.7 * entropy.sum()
    (expected,) = torch.autograd.grad(loss, raw)
    assert (expected[~torch.tensor(mask)] == 0).all()
    torch.testing.assert_close(by_hand, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, [[True, True, False, True]]])
def test_samples_follow_the_softmax(mask):
    n = 40_000
    params = torch.tensor([[0.3, -1.0, 2.0, 0.9]])
    params = params if mask is None else masked(params, mask)
    distribution = Categorical(4)
    actions = distribution.sample(params.expand(n, -1), distribution.noise((n,), generator(3)))
    counts = np.bincount(actions.numpy(), minlength=4)
    expected = torch.softmax(params[0].double(), -1).numpy() * n
    possible = expected > 0
    assert counts[~possible].sum() == 0
    limit = CHI_SQUARE_999[int(possible.sum()) - 1]
    assert chi_square(counts[possible], expected[possible]) < limit
    # The test has teeth: the same counts do not pass for slightly different logits.
    other = torch.softmax((params[0] * 0.9).double(), -1).numpy() * n
    assert chi_square(counts[possible], other[possible]) > 2 * limit


def test_choices_are_sampled_independently():
    n = 40_000
    distribution = MultiCategorical([2, 3])
    params = torch.tensor([[0.0, 1.0, -0.5, 0.2, 1.0]])
    actions = distribution.sample(params.expand(n, -1), distribution.noise((n,), generator(4)))
    table = np.zeros((2, 3))
    np.add.at(table, tuple(actions.numpy().T), 1)
    first, second = (torch.softmax(part.double(), -1)[0].numpy() for part in params.split([2, 3], -1))
    assert chi_square(table.ravel(), (np.outer(first, second) * n).ravel()) < CHI_SQUARE_999[5]


def test_gaussian_samples_have_the_given_mean_and_spread():
    n = 40_000
    distribution = Gaussian((2,))
    params = torch.tensor([[1.0, -2.0, math.log(0.5), math.log(3.0)]])
    actions = distribution.sample(params.expand(n, -1), distribution.noise((n,), generator(5)))
    for i, (mean, std) in enumerate(((1.0, 0.5), (-2.0, 3.0))):
        # Kolmogorov–Smirnov: the largest gap between the sorted samples' ranks and the distribution function.
        reached = Normal(mean, std).cdf(actions[:, i].sort().values)
        gap = (reached - (torch.arange(n) + 0.5) / n).abs().max()
        assert float(gap) < 1.95 / math.sqrt(n)
    assert abs(np.corrcoef(actions.numpy().T)[0, 1]) < 0.02


PARTS = Composite([Gaussian((2,)), Categorical(3), Bernoulli((2,)), Gaussian((1,), state_dependent=True)])


@pytest.mark.parametrize(
    "distribution", [Categorical(3), MultiCategorical([2, 3]), Gaussian((2,)), Bernoulli((2,)), PARTS]
)
def test_noise_for_many_steps_is_drawn_at_once_and_repeatable(distribution):
    noise = distribution.noise((4, 6), generator(7))
    assert noise.shape[:2] == (4, 6) and torch.isfinite(noise).all()
    assert torch.equal(noise, distribution.noise((4, 6), generator(7)))
    assert not torch.equal(noise, distribution.noise((4, 6), generator(8)))
    assert len(torch.unique(noise)) == noise.numel()


def test_switches_are_on_as_often_as_they_should():
    n = 40_000
    distribution = Bernoulli((2,))
    params = torch.tensor([[1.0, -0.4]])
    on = distribution.sample(params.expand(n, -1), distribution.noise((n,), generator(6))).double()
    p = torch.sigmoid(params[0].double())
    error = (p * (1 - p) / n).sqrt()
    assert ((on.mean(0) - p).abs() < 4 * error).all()
    assert abs(np.corrcoef(on.numpy().T)[0, 1]) < 0.02
    every = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    log_prob, entropy, _ = distribution.evaluate(params.expand(4, -1), every)
    assert float(log_prob.double().exp().sum()) == pytest.approx(1.0, abs=1e-6)
    assert float(-(log_prob.exp() * log_prob).sum()) == pytest.approx(float(entropy[0]), abs=1e-5)


def test_squashed_samples_fill_the_bounds_and_their_density_integrates_to_one():
    n = 40_000
    space = spaces.Box(np.float32([-3.0]), np.float32([1.0]))
    distribution = SquashedGaussian(space)
    params = torch.tensor([[0.3, math.log(0.9)]])
    actions = distribution.sample(params.expand(n, -1), distribution.noise((n,), generator(8)))
    assert float(actions.min()) > -3.0 and float(actions.max()) < 1.0
    grid = torch.linspace(-3, 1, 20_001)[1:-1, None]
    density = distribution.evaluate(params.expand(len(grid), -1), grid)[0].double().exp()
    assert float(density.sum() * (grid[1] - grid[0]).double()) == pytest.approx(1.0, abs=1e-3)
    below = (actions[:, 0].sort().values[:, None] > grid[::500, 0]).double().mean(0)
    integral = 1 - torch.cumsum(density, 0)[::500] * float(grid[1] - grid[0])
    assert float((below - integral).abs().max()) < 1.95 / math.sqrt(n) + 1e-3
    # Minus the mean log-density is the entropy.
    log_prob, entropy, _ = distribution.evaluate(params.expand(n, -1), actions)
    assert float(-log_prob.mean()) == pytest.approx(float(entropy[0]), abs=4 * float(log_prob.std()) / math.sqrt(n))


def test_a_spread_from_the_network_is_held_in_range():
    distribution = Gaussian((1,), state_dependent=True)
    params = torch.tensor([[0.0, 50.0], [0.0, 0.5], [0.0, -50.0]])
    _, _, saved = distribution.evaluate(params, torch.ones(3, 1))
    gradient = distribution.backward(saved, torch.ones(3), 1.0)
    assert torch.isfinite(gradient).all()
    assert gradient[:, 1].tolist()[::2] == [0.0, 0.0] and gradient[1, 1] != 0


def test_parts_are_independent_and_keep_their_own_actions():
    params = torch.randn(50, PARTS.n_params, generator=generator())
    action = PARTS.sample(params, PARTS.noise((50,), generator(1)))
    assert action.shape == (50, 6) and action.dtype == torch.float32
    point, choice, switches, last = PARTS.actions(action)
    assert (point.shape, choice.dtype, switches.shape, last.shape) == ((50, 2), torch.int64, (50, 2), (50, 1))
    assert set(choice.tolist()) == {0, 1, 2} and set(switches.flatten().tolist()) == {0, 1}
    log_prob, entropy, _ = PARTS.evaluate(params, action)
    # Outputs of all parts come first, the free log std of the first part last.
    first = torch.cat((params[:, :2], params[:, -2:]), -1)
    pieces = (first, params[:, 2:5], params[:, 5:7], params[:, 7:9])
    singles = [part.evaluate(p, a) for part, p, a in zip(PARTS.parts, pieces, (point, choice, switches, last))]
    torch.testing.assert_close(log_prob, sum(single[0] for single in singles))
    torch.testing.assert_close(entropy, sum(single[1] for single in singles))


def test_without_noise_the_most_likely_action_is_taken():
    assert Categorical(3).sample(torch.tensor([[0.1, 5.0, 4.9], [2.0, 1.0, IMPOSSIBLE]]), None).tolist() == [1, 0]
    params = torch.tensor([[0.0, 1.0, 3.0, 2.0, 1.0]])
    assert MultiCategorical([2, 3]).sample(params, None).tolist() == [[1, 0]]
    params = torch.tensor([[1.5, -0.5, 3.0, 3.0]])
    assert Gaussian((2,)).sample(params, None).tolist() == [[1.5, -0.5]]
    assert Gaussian((2, 1)).sample(params, None).shape == (1, 2, 1)


def test_kl_estimate_equals_the_analytic_kl_of_gaussians():
    """The `train/approx_kl` of PPO is k3 = (r − 1) − log r, whose mean under the old policy is KL(old ‖ new)."""
    n = 400_000
    distribution = Gaussian((2,))
    old = torch.tensor([[0.3, -0.2, math.log(0.8), math.log(1.2)]])
    new = torch.tensor([[0.5, -0.1, math.log(0.9), math.log(1.1)]])
    action = distribution.sample(old.expand(n, -1), distribution.noise((n,), generator(9)))
    log_old = distribution.evaluate(old.expand(n, -1), action)[0]
    log_new, entropy, _ = distribution.evaluate(new.expand(n, -1), action)
    nothing = torch.zeros(n)
    targets = {"value": nothing, "advantage": nothing, "target": nothing}
    batch = Batch({"obs": nothing, "action": action, "log_prob": log_old, **targets})
    algorithm = make_algorithm(PPOConfig(id="ppo"), 1)
    c = {"clip_range": 0.2, "ent_coef": 0.0, "vf_coef": 0.5}
    outputs = {"log_prob": log_new, "entropy": entropy, "value": nothing}
    estimate = algorithm.loss(outputs, batch, c).statistics["train/approx_kl"].double()
    normals = [Normal(p[0, :2].double(), p[0, 2:].double().exp()) for p in (old, new)]
    exact = float(kl_divergence(*normals).sum())
    assert (estimate > -1e-6).all()  # k3 is never negative
    assert abs(float(estimate.mean()) - exact) < 4 * float(estimate.std()) / math.sqrt(n)
    # The other direction differs by far more than the error: the estimate is not of KL(new ‖ old).
    assert abs(float(kl_divergence(*reversed(normals)).sum()) - exact) > 8 * float(estimate.std()) / math.sqrt(n)

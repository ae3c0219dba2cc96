"""Action distributions as functions of a parameter tensor [B, P], with the derivatives that training needs.

Noise for a whole rollout is drawn at once and handed in step by step, so acting costs one addition and one argmax.
`evaluate` returns log-probabilities and entropies with what `backward` needs to turn their gradients into the parameters'.
Masks are already in the parameters: an impossible action has a logit of `IMPOSSIBLE`.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gymnast.errors import EnvError
from gymnast.policies.distributions.base import Distribution
from gymnast.policies.distributions.choices import Bernoulli, Categorical, MultiCategorical
from gymnast.policies.distributions.composite import Composite
from gymnast.policies.distributions.gaussian import Gaussian, SquashedGaussian

__all__ = [
    "IMPOSSIBLE",
    "Bernoulli",
    "Categorical",
    "Composite",
    "Distribution",
    "Gaussian",
    "MultiCategorical",
    "SquashedGaussian",
    "distribution_for",
]

IMPOSSIBLE = -1e9  # finite, so that p·log p is 0 and not NaN; exp of it is exactly 0


def distribution_for(space: spaces.Space, *, squash: bool = False, state_dependent_std: bool = False) -> Distribution:
    """The distribution that fits an action space; the options are for its Box parts."""
    if isinstance(space, spaces.Discrete):
        return Categorical(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategorical([int(n) for n in np.ravel(space.nvec)])
    if isinstance(space, spaces.MultiBinary):
        return Bernoulli(tuple(space.shape))
    if isinstance(space, spaces.Box):
        if squash:
            return SquashedGaussian(space, state_dependent=state_dependent_std)
        return Gaussian(tuple(space.shape), state_dependent=state_dependent_std)
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = space.spaces
        if isinstance(parts, dict):
            parts = tuple(parts.values())
        return Composite([distribution_for(p, squash=squash, state_dependent_std=state_dependent_std) for p in parts])
    raise EnvError(
        f"Action space {space} is not supported: expected Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of those."
    )

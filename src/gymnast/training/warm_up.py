"""The first statistics of observations, from steps of random actions before training begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gymnast import seeding
from gymnast.envs.actions import random_actions
from gymnast.errors import NonFiniteError
from gymnast.evaluation.evaluate import tensors
from gymnast.policies.encoders import Observation
from gymnast.policies.normalise import RunningNorm
from gymnast.training.trainer import some_of

if TYPE_CHECKING:
    from gymnast.training.on_policy import OnPolicyTrainer


def warm_up_normaliser(trainer: OnPolicyTrainer, steps: int = 128) -> None:
    """Seed the observation statistics with random actions, so that the first rollout is not read unnormalised."""
    encoder = trainer.policy.encoder
    norm = encoder.norm
    # They may be there already: they came with the weights of another run.
    unknown = norm is not None and float(norm.count) == 0
    rnd = trainer.algorithm.rnd
    if not unknown and not trainer.policy.needs_statistics and rnd is None:
        return
    envs = trainer.envs
    random = np.random.default_rng(seeding.sequence(trainer.config.train.seed, "warmup"))
    row = envs.new_row()
    envs.reset(seeding.env_seeds(trainer.config.train.seed, "warmup", envs.n_envs), row)
    seen: list[Observation] = []
    for _ in range(min(steps, trainer.rollout.n_steps)):
        seen.append(_cloned(tensors(row.obs)))
        envs.step(random_actions(envs.action_space, envs.n_envs, random, row.mask), row)
    observations = _joined(seen)
    if norm is not None and unknown:
        _seed(norm, encoder.flat(observations), envs.n_envs, trainer.device)
    if rnd is not None:
        _seed(rnd.norm, rnd.flat(observations), envs.n_envs, trainer.device)
    if trainer.policy.needs_statistics:
        trainer.policy.absorb(some_of(observations, trainer.device))


def _seed(norm: RunningNorm, samples: Tensor, n_envs: int, device: torch.device) -> None:
    """The first statistics of observations, if they are numbers."""
    if not torch.isfinite(samples).all():
        step, env = divmod(int((~torch.isfinite(samples)).any(1).nonzero()[0]), n_envs)
        raise NonFiniteError(
            f"The environment returned NaN or infinity (observation) in env {env}, step {step} of the random steps "
            "that warm up the observation statistics."
        )
    norm.update(samples.to(device))


def _cloned(obs: Observation) -> Observation:
    """Apart from the memory that the next step is written to."""
    if isinstance(obs, dict):
        return {name: part.clone() for name, part in obs.items()}
    return obs.clone()


def _joined(steps: Sequence[Observation]) -> Observation:
    """The observations of several steps as one batch."""
    first = steps[0]
    if isinstance(first, dict):
        return {name: torch.cat([step[name] for step in steps]) for name in first}  # type: ignore[index]
    return torch.cat(list(steps))  # type: ignore[arg-type]

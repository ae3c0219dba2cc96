"""Making the parts of a run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

from gymnast import seeding
from gymnast.algorithms import make_algorithm, own_trainer
from gymnast.algorithms.base import Algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.config.tasks import reward_terms
from gymnast.envs.lanes import LanePool
from gymnast.envs.tasks import training_envs
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import Collector, StepCollector
from gymnast.rollout.device import DeviceRollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.rollout.turns import TurnsCollector, turns_pay
from gymnast.training.machine import (
    load_gpu_libraries,
    prepare_gpu,
)
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.settling import settle
from gymnast.training.trainer import Setup, Trainer
from gymnast.training.update import Learner, Network


def make_trainer(config: RunConfig) -> Trainer:
    """What trains: an algorithm's own trainer where it has one. Nothing is written to disk here."""
    own = own_trainer(config.algo.id)
    if own is None:
        return build(config)
    if config.plan is not None and config.plan.stages and not own.changes_envs():
        raise ConfigError(f"{config.algo.id} cannot change its envs in a run: use plan.by=slot or plan.by=episode.")
    with prepared(config) as setup:
        made: Trainer = own(setup)
    return made


def build(config: RunConfig) -> OnPolicyTrainer:
    """Make all parts of a run that learns from its own rollouts."""
    loading = load_gpu_libraries(config)  # also refuses a device that is not there, before envs are made
    with prepared(config) as setup:
        return _on_policy(setup, loading)


@contextlib.contextmanager
def prepared(config: RunConfig) -> Iterator[Setup]:
    """Envs that run and a config with nothing left open. The envs are closed if what is made with them cannot be made."""
    torch.set_num_threads(1)
    horizon = time_limit_of(config.env)
    if config.algo.id == "reinforce" and horizon is None and getattr(config.algo, "max_steps", None) is None:
        raise ConfigError(
            f"REINFORCE plays whole episodes and '{config.env.id}' has no time limit: set env.time_limit."
        )
    envs = training_envs(config, make_plan(config, horizon=horizon).n_envs)
    try:
        config, reasons = settle(config, envs, horizon)
        plan = make_plan(config, horizon=horizon)
        device = torch.device(config.train.device)
        torch.set_num_threads(config.train.threads)  # type: ignore[arg-type]  # settled: a number
        if device.type == "cuda":
            prepare_gpu(config.policy.precision, deterministic=config.train.deterministic)
        yield Setup(config, plan, device, envs, reasons)
    except BaseException:
        envs.close()
        raise


def _on_policy(setup: Setup, loading: threading.Thread | None) -> OnPolicyTrainer:
    config, plan, device, envs = setup.config, setup.plan, setup.device, setup.envs
    seed = config.train.seed
    algorithm = make_algorithm(config.algo, plan.n_envs)
    init = torch.Generator().manual_seed(seeding.integer(seed, "policy_init"))
    policy = algorithm.make_policy(config.policy, envs.observation_space, envs.action_space, generator=init)
    learner = _make_learner(config, algorithm, policy.to(device))
    generator = torch.Generator(device).manual_seed(seeding.integer(seed, "actions"))

    def collector(envs: VectorEnv) -> Collector:
        return _make_collector(config, plan.n_steps, envs, learner, generator)

    trainer = OnPolicyTrainer(
        config=config,
        plan=plan,
        device=device,
        envs=envs,
        learner=learner,
        collector=collector(envs),
        recollect=collector,
        action_generator=generator,
        window=EpisodeWindow(config.log.window, reward_terms(config)),
        reasons=setup.reasons,
        loading=loading,
    )
    if envs.exact_resume == "none" and algorithm.episodes_per_env is None:
        trainer.reset_every = plan.resume_every
    return trainer


def _make_learner(config: RunConfig, algorithm: Algorithm, policy: Policy) -> Learner:
    device = next(policy.parameters()).device
    flat = FlatParameters(policy)
    networks = []
    for name, module in algorithm.modules(policy).items():
        own = FlatParameters(module.to(device))
        networks.append(Network(name, module, own, make_optimizer(own, config.algo.optimizer)))
    generator = torch.Generator(device).manual_seed(seeding.integer(config.train.seed, "minibatches"))
    return Learner(policy, flat, make_optimizer(flat, config.algo.optimizer), algorithm, generator, networks)


def _make_collector(
    config: RunConfig, n_steps: int, envs: VectorEnv, learner: Learner, generator: torch.Generator
) -> Collector:
    """Who fills rollouts: on the GPU where the policy is there, in ordinary memory else."""
    policy, episodes = learner.policy, learner.algorithm.episodes_per_env
    further = learner.algorithm.fields(policy)
    if policy.state_shape is not None:
        if not envs.keeps_slots:
            raise ConfigError(
                "policy.memory cannot follow these envs: one of env.wrappers permutes or skips slots, so a row is not the "
                "same episode in every step. Remove the wrapper, or set policy.memory=none."
            )
        _check_sequences(policy, n_steps, episodes)
    # Whole episodes have no known length, and what is remembered is kept next to the envs.
    if generator.device.type == "cuda" and episodes is None and policy.state_shape is None:
        overlap = config.train.overlap
        return DeviceCollector(
            policy,
            learner.flat,
            envs,
            DeviceRollout(n_steps, envs, policy, generator.device, further),
            generator,
            by_lanes=overlap != "none",
            ahead=overlap == "learner" and isinstance(envs, LanePool),
        )
    rollout = Rollout(n_steps, envs, policy, further)
    if isinstance(envs, LanePool) and episodes is None and turns_pay(policy, envs):
        return TurnsCollector(policy, envs, rollout, generator)
    return StepCollector(policy, envs, rollout, generator, episodes_per_env=episodes)


def _check_sequences(policy: Policy, n_steps: int, episodes: int | None) -> None:
    """Refuse sequences that the rollouts do not have."""
    length = policy.sequence_length
    if episodes is not None:
        if not policy.uneven:
            raise ConfigError("This policy with memory learns from sequences of a fixed length: use ppo or a2c.")
        if length is not None or policy.burn_in:
            raise ConfigError(
                "policy.sequence_length and policy.burn_in are for rollouts of a fixed length. This algorithm learns from whole "
                "episodes: remove them."
            )
        return
    if length is None:
        length = n_steps
    if length > n_steps:
        raise ConfigError(
            f"policy.sequence_length ({length}) is longer than the rollout: algo.n_steps is {n_steps}. Lower the one or "
            "raise the other."
        )
    if n_steps % length:
        raise ConfigError(f"algo.n_steps must be a multiple of policy.sequence_length (got {n_steps} and {length}).")
    if policy.burn_in and policy.burn_in + length > n_steps:
        raise ConfigError(
            f"policy.burn_in ({policy.burn_in}) looks back from sequences of {length} steps in rollouts of {n_steps}: nothing is "
            "that far back. Lower policy.burn_in or policy.sequence_length, or raise algo.n_steps."
        )

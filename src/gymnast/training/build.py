"""Making the parts of a run."""

from __future__ import annotations

import copy

import torch

from gymnast import seeding
from gymnast.algorithms import make_algorithm
from gymnast.algorithms.base import Algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import make_envs
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.encoders import reads_images
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.auto_steps import measure_n_steps
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.device import DeviceRollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.training.machine import (
    choose_device,
    choose_precision,
    choose_threads,
    load_gpu_libraries,
    prepare_gpu,
    prepare_process,
)
from gymnast.training.session import Session


def build(config: RunConfig) -> Session:
    """Make all parts of a run. Nothing is written to disk here."""
    seed = config.train.seed
    prepare_process(1)
    loading = load_gpu_libraries(config)  # also refuses a device that is not there, before envs are made
    horizon = time_limit_of(config.env)
    if config.algo.id == "reinforce" and horizon is None and getattr(config.algo, "max_steps", None) is None:
        raise ConfigError(
            f"REINFORCE plays whole episodes and '{config.env.id}' has no time limit: set env.time_limit."
        )
    plan = make_plan(config, horizon=horizon)
    envs = make_envs(config.env, plan.n_envs)
    try:
        images = reads_images(envs.observation_space, config.policy)
        device, why = choose_device(config.train.device, images=images)
        precision, why_precise = choose_precision(config.policy.precision, device, images=images)
        config = config.model_copy(update={"policy": config.policy.model_copy(update={"precision": precision})})
        torch.set_num_threads(choose_threads(config, device, images=images))
        if device.type == "cuda":
            prepare_gpu(precision, deterministic=config.train.deterministic)
        if getattr(config.algo, "n_steps", None) == "auto":
            plan = make_plan(config, n_steps=measure_n_steps(envs, seed), horizon=horizon)
        algorithm = make_algorithm(config.algo, plan.n_envs)
        policy = ActorCritic(
            config.policy,
            envs.observation_space,
            envs.action_space,
            critic=algorithm.uses_critic,
            generator=torch.Generator().manual_seed(seeding.integer(seed, "policy_init")),
        ).to(device)
        flat = FlatParameters(policy)
        session = Session(
            config=config,
            plan=plan,
            device=device,
            envs=envs,
            policy=policy,
            flat=flat,
            algorithm=algorithm,
            optimizer=make_optimizer(flat, config.algo.optimizer),
            rollout=_make_rollout(plan.n_steps, envs, policy, algorithm, device),
            action_generator=torch.Generator(device).manual_seed(seeding.integer(seed, "actions")),
            batch_generator=torch.Generator(device).manual_seed(seeding.integer(seed, "minibatches")),
            window=EpisodeWindow(config.log.window),
        )
        session.loading = loading
        session.reasons = {"train.device": why, "policy.precision": why_precise}
        if isinstance(session.rollout, DeviceRollout):
            _make_collector(session)
        if envs.exact_resume == "none" and algorithm.episodes_per_env is None:
            session.reset_every = plan.resume_every
    except BaseException:
        envs.close()
        raise
    return session


def _make_collector(session: Session) -> None:
    rollout, overlap = session.rollout, session.config.train.overlap
    assert isinstance(rollout, DeviceRollout)
    wanted = overlap == "learner" or (overlap == "auto" and not session.config.train.deterministic)
    ahead = wanted and isinstance(session.envs, LanePool)
    policy = copy.deepcopy(session.policy) if ahead else session.policy
    if ahead:
        session.acting = FlatParameters(policy)
    session.collector = DeviceCollector(policy, session.envs, rollout, by_lanes=overlap != "none", ahead=ahead)


def _make_rollout(
    n_steps: int, envs: VectorEnv, policy: ActorCritic, algorithm: Algorithm, device: torch.device
) -> Rollout:
    """On the GPU where the policy is there, unless whole episodes of unknown length are collected."""
    if device.type == "cuda" and algorithm.episodes_per_env is None:
        return DeviceRollout(n_steps, envs, policy, device)
    return Rollout(n_steps, envs, policy)

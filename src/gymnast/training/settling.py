"""What of the machine a run uses: every `auto` that is still open when the envs are there is decided here, with its reason.

How many envs there are and how they are stepped was decided before (`runs.settling`), without torch. Nothing that comes after
decides again: the settled config is saved with the run.
"""

from __future__ import annotations

from typing import Any

import torch

from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import VectorEnv
from gymnast.policies.encoders import reads_images
from gymnast.rollout.auto_steps import measure_n_steps
from gymnast.training.machine import choose_device, choose_precision, choose_threads


def settle(config: RunConfig, envs: VectorEnv, horizon: int | None = None) -> tuple[RunConfig, dict[str, str]]:
    """The config with nothing left open, and why each value is what it is, by config key."""
    images = reads_images(envs.observation_space, config.policy)
    device, why_device = choose_device(config.train.device, images=images)
    precision, why_precision = choose_precision(config.policy.precision, device, images=images)
    threads, why_threads = choose_threads(config, device, images=images)
    overlap, why_overlap = _overlap(config, device, envs)
    reasons = {
        "train.device": why_device,
        "train.threads": why_threads,
        "train.overlap": why_overlap,
        "policy.precision": why_precision,
    }
    train = {"device": str(device), "threads": threads, "overlap": overlap}
    settled: dict[str, Any] = {
        "train": config.train.model_copy(update=train),
        "policy": config.policy.model_copy(update={"precision": precision}),
    }
    if getattr(config.algo, "n_steps", None) == "auto":
        n_steps = measure_n_steps(envs, config.train.seed)
        settled["algo"] = config.algo.model_copy(update={"n_steps": n_steps})
        reasons["algo.n_steps"] = f"{n_steps}: measured from the steps between rewards"
    config = config.model_copy(update=settled)
    if envs.exact_resume == "none" and config.env.resume_every is None:
        plan = make_plan(config, horizon=horizon)
        steps = plan.resume_every * plan.n_steps * plan.n_envs
        config = config.model_copy(update={"env": config.env.model_copy(update={"resume_every": steps})})
        reasons["env.resume_every"] = f"{steps:,}: the state of these envs cannot be saved"
    return config, reasons


def _overlap(config: RunConfig, device: torch.device, envs: VectorEnv) -> tuple[str, str]:
    """What runs at the same time on a GPU."""
    if config.train.overlap != "auto":
        return config.train.overlap, "as configured"
    if device.type != "cuda" or not isinstance(envs, LanePool):
        return "envs", "nothing else could run at the same time"
    if config.train.deterministic:
        return "envs", "no sample depends on the order of events, as train.deterministic asks"
    return "learner", "envs go on while the policy learns"

"""What an ejected script must know of a run; a run that no script could repeat to the bit is refused by a sentence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from torch import Tensor

from gymnast.config.model import Model
from gymnast.config.plan import make_plan
from gymnast.config.schedule import Constant, Cosine, Exponential, Linear, Piecewise
from gymnast.config.schema import RunConfig
from gymnast.envs.closing import close
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.time_limits import time_limit_of
from gymnast.errors import UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.policies.encoders import reads_images
from gymnast.runs import checkpoint, lineage
from gymnast.runs.store import Run
from gymnast.runs.trust import usable

SCHEDULES = (Constant, Linear, Cosine, Exponential, Piecewise)
ALGORITHMS = ("ppo", "a2c", "reinforce")
WRAPPERS = ("time_limit", "action_clip", "reward_clip", "reward_scale", "one_hot", "array")
NORMALISER = "encoder.norm."

# The settings an ejected script follows or need not follow; any other one that is not at its default is refused.
_KNOWN = {
    "": {"name", "env", "policy", "algo", "train", "eval", "log", "spec"},
    "env": {"id", "n_envs", "kwargs", "module", "time_limit", "wrappers", "action_mask", "vectorization", "n_workers"}
    | {"start_method", "worker_timeout", "on_worker_failure", "max_restarts", "resume_every", "core_turns"},
    "policy": {"hidden", "critic_hidden", "shared_trunk", "activation", "layer_norm", "dropout", "init", "log_std_init"}
    | {"normalize_obs", "normalize_obs_steps", "obs_clip"}
    | {"cnn", "cnn_features", "background", "precision"},  # for images
    "algo": {"id", "learning_rate", "gamma", "max_grad_norm", "optimizer", "normalize_reward", "reward_clip", "n_steps"}
    | {"batch_size", "n_epochs", "gae_lambda", "clip_range", "clip_range_vf", "ent_coef", "vf_coef", "target_kl"}
    | {"normalize_advantage", "value_loss", "huber_delta", "episodes_per_env", "max_steps", "baseline"},
    "algo.optimizer": {"id", "eps", "betas", "alpha", "weight_decay"},
    "train": {
        "env_steps",
        "vec_steps",
        "seed",
        "device",
        "threads",
        "overlap",
        "stop_when_solved",
        "stop",
        "checkpoint_every",
    }
    | {"keep_checkpoints", "grace_period", "trace_hashes"},
}
# How envs are stepped and what is watched and kept: nothing the weights depend on.
_HARMLESS = {
    "vectorization",
    "n_workers",
    "start_method",
    "core_turns",
    "worker_timeout",
    "on_worker_failure",
    "max_restarts",
    "resume_every",
    "stop",
}
_HARMLESS |= {"stop_when_solved", "checkpoint_every", "keep_checkpoints", "grace_period", "trace_hashes"}


@dataclass(frozen=True)
class Facts:
    """One run as far as its script is concerned."""

    run_id: str
    config: RunConfig
    n_envs: int
    n_steps: int
    """Rows of the rollout; the most a whole-episode collection can take."""
    budget: int
    time_limit: int | None
    iterations: int
    env_steps: int
    raw_space: spaces.Space
    """Observation space of the bare env."""
    space: spaces.Space
    """Observation space as the policy sees it."""
    action_space: spaces.Space
    mask: bool
    expected: str
    versions: dict[str, str]
    resumed: bool


def gather(run: Run) -> Facts:
    """Read the run, make one env to see its spaces, and refuse what cannot be repeated."""
    if run.is_alive():
        raise UsageError(f"Run {run.id} is still training: eject it when it has ended.")
    config = usable(run).config
    _check_settings(run.id, config)
    _check_lineage(run, config)
    point, _ = checkpoint.load_latest(run.folder, with_state=False)
    rows = (row for row in MetricRows(run.metrics_path) if row["env_steps"] <= point.manifest.step)
    if any(row.get("env/worker_restarts") for row in rows):
        raise UsageError(
            f"Run {run.id} lost an env worker and replaced it: the episodes it lost cannot be repeated, so no script "
            "can give the same weights."
        )
    with checkpoint.understood(point.folder):
        iterations, env_steps, vec_steps = (
            int(point.manifest.counters[name]) for name in ("iteration", "env_steps", "vec_steps")
        )
        per_iteration = vec_steps // iterations
    limit = time_limit_of(config.env)
    plan = make_plan(config, horizon=limit)
    if config.algo.id == "reinforce":
        n_steps = plan.n_steps
    else:
        n_steps = per_iteration
    bare = make_one(config.env)
    if bare.spec is not None and str(bare.spec.entry_point).startswith("gymnast."):
        close(bare)
        raise UsageError(
            f"Run {run.id} plays '{config.env.id}' as gymnast makes it (its own env, or one it corrects or encodes): a script "
            "without gymnast cannot have that env."
        )
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        facts = Facts(
            run_id=run.id,
            config=config,
            n_envs=plan.n_envs,
            n_steps=n_steps,
            budget=plan.env_steps,
            time_limit=limit,
            iterations=iterations,
            env_steps=env_steps,
            raw_space=bare.observation_space,
            space=envs.observation_space,
            action_space=envs.action_space,
            mask=envs.has_action_mask,
            expected=digest(point.policy),
            versions={**point.manifest.versions, "gymnasium": gym.__version__},
            resumed=run.status().attempt > 1,
        )
    finally:
        close(bare)
        envs.close()
    _check_spaces(facts)
    return facts


def digest(policy: Mapping[str, Tensor]) -> str:
    """sha256 of a policy's tensors: the parameters in their order, then mean, variance and count of the normaliser."""
    names = [name for name in policy if not name.startswith(NORMALISER)]
    names += [NORMALISER + part for part in ("mean", "variance", "count") if NORMALISER + part in policy]
    total = hashlib.sha256()
    for name in names:
        total.update(policy[name].contiguous().numpy().tobytes())
    return total.hexdigest()


def _check_settings(run_id: str, config: RunConfig) -> None:
    """Refuse settings that the templates do not follow."""
    if config.algo.id not in ALGORITHMS:
        raise UsageError(
            f"Run {run_id} was trained with '{config.algo.id}': only runs of {', '.join(ALGORITHMS)} can be ejected."
        )
    for section, known in _KNOWN.items():
        model: Any = config
        for part in filter(None, section.split(".")):
            model = getattr(model, part)
        for key, value in _unusual(model).items():
            if key not in known:
                name = f"{section}.{key}" if section else key
                if isinstance(value, Model):
                    what = name
                else:
                    what = f"{name}={value!r}"
                raise UsageError(f"Run {run_id} has {what}, which an ejected script cannot follow yet.")
    if config.env.vectorization == "envpool":
        raise UsageError(
            f"Run {run_id} was stepped by EnvPool, which plays other episodes than Gymnasium's envs: no script of Gymnasium's "
            "envs can give the same weights. Train with env.vectorization=inprocess to eject."
        )
    if re.search(r"'\$\{?[A-Za-z_]\w*\}?'", repr(config.env.kwargs)):
        raise UsageError(f"Run {run_id} reads env.kwargs from the environment: a script would have to hold the secret.")
    for wrapper in config.env.wrappers:
        if wrapper.id not in WRAPPERS:
            raise UsageError(
                f"Run {run_id} uses the wrapper '{wrapper.id}', which an ejected script cannot follow yet: "
                f"only {', '.join(WRAPPERS)} are."
            )
    if config.train.device not in ("auto", "cpu"):
        raise UsageError(
            f"Run {run_id} was trained on {config.train.device}: only runs on the CPU can be repeated to the bit."
        )
    policy = config.policy
    if policy.shared_trunk and (policy.layer_norm or policy.dropout or not policy.hidden):
        what = "layer_norm or dropout" if policy.hidden else "no hidden layer"
        raise UsageError(
            f"Run {run_id} has policy.shared_trunk with {what}, which an ejected script cannot follow yet."
        )


def _unusual(model: Model) -> dict[str, Any]:
    """Settings of a section that are not at their default."""
    fields = type(model).model_fields
    return {
        key: value for key, value in dict(model).items() if value != fields[key].get_default(call_default_factory=True)
    }


def _check_lineage(run: Run, config: RunConfig) -> None:
    """Refuse a run that was not trained from nothing under one and the same settings."""
    history = lineage.read(run.folder)
    if history.parent is not None:
        raise UsageError(f"Run {run.id} started from another run's weights, which an ejected script cannot follow yet.")
    read_progress = any(getattr(value, "axis", None) == "progress" for _, value in config.algo)
    for attempt in history.attempts:
        changed = [key for key in attempt.changes if _acts(key, read_progress)]
        what = "without its optimizer's state"
        if changed:
            what = f"with {', '.join(changed)} changed"
        if changed or not attempt.optimizer:
            raise UsageError(
                f"Run {run.id} was resumed at {attempt.start} {what}, which an ejected script cannot follow yet."
            )


def _acts(key: str, read_progress: bool) -> bool:
    """Whether a setting that a resume changed acts on the weights; more budget does where schedules read progress."""
    section, name = [*key.split("."), ""][:2]
    if name in ("env_steps", "vec_steps"):
        return read_progress
    return section not in ("name", "eval", "log", "spec") and name not in _HARMLESS


def _check_spaces(facts: Facts) -> None:
    """Refuse spaces that the templates do not know."""
    action, space = facts.action_space, facts.space
    if reads_images(space, facts.config.policy):
        raise UsageError(f"Run {facts.run_id} reads images by a CNN, which an ejected script cannot follow yet.")
    flat_choices = isinstance(action, spaces.MultiDiscrete) and len(action.nvec.shape) == 1
    if not (isinstance(action, (spaces.Discrete, spaces.Box)) or flat_choices):
        raise UsageError(f"Run {facts.run_id} has actions {action}, which an ejected script cannot follow yet.")
    parts = [space]
    if isinstance(space, spaces.Dict):
        parts = list(space.spaces.values())
    raw = facts.raw_space
    nested = isinstance(raw, spaces.Dict) and list(raw.spaces) != list(getattr(space, "spaces", ()))
    kinds = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    tuple_of_others = isinstance(raw, spaces.Tuple) and not all(isinstance(p, spaces.Discrete) for p in raw.spaces)
    if nested or tuple_of_others or not all(isinstance(part, kinds) and len(part.shape or ()) < 4 for part in parts):
        raise UsageError(f"Run {facts.run_id} has observations {raw}, which an ejected script cannot follow yet.")

"""The top of the script: what it is, its imports, and the run's settings as constants."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from gymnasium import spaces

from gymnast.envs.families import shipped_family
from gymnast.hub.ejected.facts import Facts
from gymnast.hub.ejected.observations import Layout
from gymnast.hub.ejected.schedules import Settings
from gymnast.hub.ejected.template import assignment, words

TITLES = {"ppo": "PPO", "a2c": "A2C", "reinforce": "REINFORCE"}
_RULE = "# ---- the run ".ljust(119, "-")


def has_critic(facts: Facts) -> bool:
    """Whether the run learned values."""
    return facts.config.algo.id != "reinforce" or getattr(facts.config.algo, "baseline", None) == "learned"


def batch_size(facts: Facts) -> int:
    """Samples of one minibatch."""
    size = getattr(facts.config.algo, "batch_size", 1.0)
    if isinstance(size, int):
        return size
    return max(1, round(size * facts.n_envs * facts.n_steps))


def docstring(facts: Facts) -> str:
    """What the script is and what it promises."""
    packages = ("gymnast", "torch", "gymnasium", "numpy")
    versions = {name: words(facts.versions.get(name, "?"), f"The version of {name}") for name in packages}
    made = f"gymnast {versions['gymnast']}, torch {versions['torch']}, gymnasium {versions['gymnasium']}"
    env, run = words(facts.config.env.id, "The env's id"), words(facts.run_id, "The run's name")
    return f'''"""{TITLES[facts.config.algo.id]} on {env}: run {run} of gymnast as one file.

Run it with `python {run}.py`. It needs torch and gymnasium, trains exactly as the run did, and compares the sha256
of its final weights with the run's. Equality to the bit holds for the same versions and the same kind of CPU:
{made}, numpy {versions["numpy"]}.
"""

'''


def imports(source: str) -> str:
    """The imports that `source` needs."""
    used = [name for name in ("hashlib", "itertools", "math") if re.search(rf"\b{name}\.", source)]
    standard = [f"import {name}" for name in used] + ["from collections import deque"]
    if re.search(r"\bAny\b", source):
        standard.append("from typing import Any")
    others = {"import gymnasium as gym", "import numpy as np", "import torch"}
    if re.search(r"\bF\.", source):
        others.add("import torch.nn.functional as F")
    last = ["from torch import Tensor, nn"]
    if re.search(r"\bAdam\b", source):
        last.append("from torch.optim import Adam")
    lines = ["from __future__ import annotations", "", *standard, "", *sorted(others), *last]
    return "\n".join(lines) + "\n\nBatch = dict[str, Tensor]\n"


def constants(facts: Facts, settings: Settings, view: Layout, flags: set[str]) -> str:
    """The run's settings, only those that act in it."""
    config, algo, optimizer = facts.config, facts.config.algo, facts.config.algo.optimizer
    lines = [_RULE, assignment("RUN", facts.run_id), assignment("EXPECTED", facts.expected, "of its final weights")]

    def add(name: str, value: object, comment: str = "", *, when: bool = True) -> None:
        if when:
            lines.append(assignment(name, value, comment))

    threads = config.train.threads
    add("SEED", config.train.seed)
    add("THREADS", threads if isinstance(threads, int) else 1)
    lines.append("")
    limit = {} if facts.time_limit is None else {"max_episode_steps": facts.time_limit}
    add("ENV", {"id": _env_id(facts), **limit, "disable_env_checker": True, **config.env.kwargs})
    add("N_ENVS", facts.n_envs)
    add("N_STEPS", facts.n_steps, "the longest collection" if "whole" in flags else "per env and iteration")
    add("ITERATIONS", facts.iterations, f"as far as the run came: {facts.env_steps:,} env steps")
    add("BUDGET", facts.budget, "env steps, the end of the schedules", when="progress" in flags)
    lines.append("")
    _network(facts, view, flags, add)
    lines.append("")
    add("EPISODES_PER_ENV", getattr(algo, "episodes_per_env", 1), when="whole" in flags)
    for name, value in settings.constants.items():
        if name == "n_epochs":
            add("N_EPOCHS", max(1, round(value)))
        elif name != "ent_coef" or value:
            add(name.upper(), value)
    add("BATCH_SIZE", batch_size(facts), when="ppo" in flags)
    add("HUBER_DELTA", getattr(algo, "huber_delta", 1.0), when="huber" in flags)
    add("REWARD_CLIP", getattr(algo, "reward_clip", 0.0), when="reward_norm" in flags)
    add("BETAS", tuple(optimizer.betas), when="rmsprop" not in flags)
    add("ALPHA", optimizer.alpha, when="rmsprop" in flags)
    add("EPS", optimizer.eps)
    add("WEIGHT_DECAY", optimizer.weight_decay, when="weight_decay" in flags)
    return "\n".join(lines) + "\n"


def _env_id(facts: Facts) -> str:
    """The env's id with the module that registers it in front, which Gymnasium then imports itself."""
    env = facts.config.env
    family = shipped_family(env.id)
    module = env.module or (family.registers if family is not None else "")
    if not module or ":" in env.id:
        return env.id
    return f"{module}:{env.id}"


def _network(facts: Facts, view: Layout, flags: set[str], add: Callable[..., None]) -> None:
    policy, action = facts.config.policy, facts.action_space
    add("N_INPUTS", view.size)
    if isinstance(action, spaces.Discrete):
        add("N_OUTPUTS", int(action.n))
    elif isinstance(action, spaces.MultiDiscrete):
        choices = [int(n) for n in action.nvec]
        add("CHOICES", choices, "possibilities of each action")
        add("N_OUTPUTS", sum(choices))
    else:
        add("N_OUTPUTS", int(np.prod(action.shape or ())))
        add("LOG_STD_INIT", policy.log_std_init)
    add("HIDDEN", tuple(policy.hidden))
    add("CRITIC_HIDDEN", tuple(policy.critic_hidden or ()), when="critic" in flags and policy.critic_hidden is not None)
    add("DROPOUT", policy.dropout, when="dropout" in flags)
    add("FIRST_COLUMNS", list(view.columns), "of each number in the first layer", when="multi_index" in flags)
    add("OBS_CLIP", policy.obs_clip, when="norm" in flags)
    add("NORMALIZE_OBS_STEPS", policy.normalize_obs_steps, when="norm_steps" in flags)
    parts = [slice(*part) for part in view.skipped]
    add("NOT_NORMALISED", parts, "they have a fixed range already", when="skipped" in flags)

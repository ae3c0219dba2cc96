"""Values that follow from a config (CFG-5): what `auto` and fractions become, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from gymnast.config.schema import RunConfig

# Slots of one evaluation: many for envs that step all slots at once, few where each slot costs its own step.
NATIVE_EVAL_ENVS = 100
EVAL_ENVS = 20
DEFAULT_ENVS = (8, "8: enough to decorrelate samples, cheap to step in one process")
AUTO = "auto: "
"""How the origin of a value begins that `auto` stood for; its reason follows."""
LEAST_RESUME_STEPS, MOST_RESUME_STEPS = 100, 10_000


@dataclass(frozen=True)
class Plan:
    """Resolved sizes and cadences of one run."""

    n_envs: int
    n_steps: int
    env_steps: int
    vec_steps: int
    eval_every: int
    eval_start_at: float | None
    checkpoint_every: int
    resume_every: int
    """Iterations between resets of envs whose state cannot be saved."""
    reasons: dict[str, str] = field(default_factory=dict)


def make_plan(
    config: RunConfig,
    *,
    n_steps: int | None = None,
    horizon: int | None = None,
    recommended: tuple[int, str] | None = None,
) -> Plan:
    """Fill in what the config leaves open. `n_steps` is given where it had to be measured first.

    `recommended` is what `n_envs: auto` becomes and why, where it was measured on this machine.
    """
    reasons: dict[str, str] = {}
    n_envs = config.env.n_envs
    if n_envs == "auto":
        n_envs, reasons["env.n_envs"] = recommended or DEFAULT_ENVS
    n_steps = n_steps or _steps(config, horizon, reasons)
    train = config.train
    if train.env_steps is not None:
        env_steps = train.env_steps
        vec_steps = -(-env_steps // n_envs)
        reasons["train.vec_steps"] = f"{vec_steps:,} = {env_steps:,} env steps ÷ {n_envs} envs"
    else:
        assert train.vec_steps is not None
        vec_steps = train.vec_steps
        env_steps = vec_steps * n_envs
        reasons["train.env_steps"] = f"{env_steps:,} = {vec_steps:,} vec steps × {n_envs} envs"
    eval_every = config.eval.every or max(1, env_steps // 20)
    if config.eval.every is None:
        reasons["eval.every"] = f"{eval_every:,}: a twentieth of the budget"
    checkpoint_every = train.checkpoint_every or max(1, env_steps // 10)
    if train.checkpoint_every is None:
        reasons["train.checkpoint_every"] = f"{checkpoint_every:,}: a tenth of the budget"
    start_at = _evaluation_start(config, reasons)
    batch = getattr(config.algo, "batch_size", None)
    if isinstance(batch, float):
        size = max(1, round(batch * n_envs * n_steps))
        reasons["algo.batch_size"] = f"{size:,} = {batch:g} of {n_envs} envs × {n_steps} steps"
    resume_every = _resume_every(config, n_envs, n_steps, horizon, reasons)
    return Plan(n_envs, n_steps, env_steps, vec_steps, eval_every, start_at, checkpoint_every, resume_every, reasons)


def _steps(config: RunConfig, horizon: int | None, reasons: dict[str, str]) -> int:
    n_steps = getattr(config.algo, "n_steps", None)
    if isinstance(n_steps, int):
        return n_steps
    if n_steps == "auto":
        reasons["algo.n_steps"] = "measured at the start of training"
        return 128
    length = getattr(config.algo, "max_steps", None) or config.env.time_limit or horizon or config.spec.horizon or 1000
    episodes: int = getattr(config.algo, "episodes_per_env", 1)
    reasons["algo.max_steps"] = f"{length}: the longest episode"
    return int(length) * episodes


def _resume_every(config: RunConfig, n_envs: int, n_steps: int, horizon: int | None, reasons: dict[str, str]) -> int:
    if config.env.resume_every is not None:
        vec_steps = -(-config.env.resume_every // n_envs)
    else:
        # Ten episodes and more between two resets, so that few are lost to the statistics; seldom more than a minute of work.
        vec_steps = max(LEAST_RESUME_STEPS, min(10 * horizon, MOST_RESUME_STEPS)) if horizon else MOST_RESUME_STEPS
        if config.env.vectorization == "envpool" or (config.env.vectorization == "native" and config.env.atari):
            reasons["env.resume_every"] = f"{vec_steps * n_envs:,}: {vec_steps:,} steps of {n_envs} envs"
    return -(-vec_steps // n_steps)


def _evaluation_start(config: RunConfig, reasons: dict[str, str]) -> float | None:
    if config.eval.start_at is not None or config.eval.start_fraction is None:
        return config.eval.start_at
    solved, random = config.spec.solved_at, config.spec.random_score
    if solved is None:
        return None
    low = random.score if random is not None else 0.0
    start = low + config.eval.start_fraction * (solved - low)
    reasons["eval.start_at"] = (
        f"{start:.4g}: {config.eval.start_fraction:g} of the way from random ({low:g}) to solved ({solved:g})"
    )
    return start


def eval_envs(config: RunConfig, *, native: bool) -> int:
    """Slots of one evaluation."""
    if isinstance(config.eval.n_envs, int):
        return min(config.eval.n_envs, config.eval.episodes)
    return min(config.eval.episodes, NATIVE_EVAL_ENVS if native else EVAL_ENVS)

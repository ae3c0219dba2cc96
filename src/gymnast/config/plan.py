"""Values that follow from a config (CFG-5): what `auto` and fractions become, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from gymnast.config.schema import RunConfig
from gymnast.config.steps import in_env_steps

# Slots of one evaluation: many for envs that step all slots at once, few where each slot costs its own step.
NATIVE_EVAL_ENVS = 100
EVAL_ENVS = 20
FULL_EPISODES = 100
"""Of one evaluation, where the config leaves their number open and the budget has room for them."""
MOST_EVALUATIONS = 20
"""Of one run, where the config leaves their number open."""
DEFAULT_ENVS = (8, "8: enough to decorrelate samples, cheap to step in one process")
AUTO = "auto: "
"""How the origin of a value begins that `auto` stood for; its reason follows."""
REPEATED = 20
"""A stop repeats at most this part of the budget where envs cannot be saved."""
LEAST_RESUME_STEPS, MOST_RESUME_STEPS = 100, 10_000


@dataclass(frozen=True)
class Plan:
    """Resolved sizes and cadences of one run."""

    n_envs: int
    n_steps: int
    env_steps: int
    vec_steps: int
    eval_every: int
    eval_warmup: int
    eval_start_at: float | None
    checkpoint_every: int
    resume_every: int
    """Iterations between resets of envs whose state cannot be saved."""
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def steps_between_resets(self) -> int:
        """Steps of each such env from one reset to the next."""
        return self.resume_every * self.n_steps


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
    eval_every = _evaluations(config, n_envs, env_steps, reasons)
    eval_warmup = _in_env_steps("eval.warmup", config.eval.warmup, n_envs, reasons)
    checkpoint_every = max(1, env_steps // 10)
    if train.checkpoint_every is not None:
        checkpoint_every = _in_env_steps("train.checkpoint_every", train.checkpoint_every, n_envs, reasons)
    else:
        reasons["train.checkpoint_every"] = f"{checkpoint_every:,}: a tenth of the budget"
    start_at = _evaluation_start(config, reasons)
    batch = getattr(config.algo, "batch_size", None)
    if isinstance(batch, float):
        size = max(1, round(batch * n_envs * n_steps))
        reasons["algo.batch_size"] = f"{size:,} = {batch:g} of {n_envs} envs × {n_steps} steps"
    resume_every = _resume_every(config, n_envs, n_steps, env_steps, horizon, reasons)
    return Plan(
        n_envs=n_envs,
        n_steps=n_steps,
        env_steps=env_steps,
        vec_steps=vec_steps,
        eval_every=eval_every,
        eval_warmup=eval_warmup,
        eval_start_at=start_at,
        checkpoint_every=checkpoint_every,
        resume_every=resume_every,
        reasons=reasons,
    )


def _in_env_steps(key: str, amount: int | str, n_envs: int, reasons: dict[str, str]) -> int:
    """An amount that the config states; in env steps, with the reason where it is stated in vec steps."""
    env_steps = in_env_steps(amount, n_envs)
    if isinstance(amount, str):
        reasons[key] = f"{env_steps:,} = {amount.replace('_', ' ')} × {n_envs} envs"
    return env_steps


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


def _resume_every(
    config: RunConfig, n_envs: int, n_steps: int, env_steps: int, horizon: int | None, reasons: dict[str, str]
) -> int:
    """Iterations between resets of envs that cannot be saved."""
    if config.env.resume_every is not None:
        vec_steps = -(-_in_env_steps("env.resume_every", config.env.resume_every, n_envs, reasons) // n_envs)
        return -(-vec_steps // n_steps)
    # Ten episodes and more between two resets, so that few are lost to the statistics; seldom more than a minute of work,
    # and never more than a twentieth of the run, because a stop repeats that much.
    if horizon:
        vec_steps = max(LEAST_RESUME_STEPS, min(10 * horizon, MOST_RESUME_STEPS))
    else:
        vec_steps = MOST_RESUME_STEPS
    most = max(1, env_steps // (REPEATED * n_envs * n_steps))
    iterations = min(-(-vec_steps // n_steps), most)
    if config.env.vectorization == "envpool" or (config.env.vectorization == "native" and config.env.atari):
        vec_steps = iterations * n_steps
        reasons["env.resume_every"] = f"{vec_steps * n_envs:,}: {vec_steps:,} steps of {n_envs} envs"
    return iterations


def _evaluations(config: RunConfig, n_envs: int, env_steps: int, reasons: dict[str, str]) -> int:
    """Least env steps between two evaluations."""
    share = "evaluations take about a tenth of the steps of the run"
    every = max(1, env_steps // MOST_EVALUATIONS)
    if config.eval.every is not None:
        every = _in_env_steps("eval.every", config.eval.every, n_envs, reasons)
    else:
        reasons["eval.every"] = f"{every:,} or more: a twentieth of the budget, and {share}"
    if config.eval.episodes is None and config.eval.steps is None:
        reasons["eval.episodes"] = f"{FULL_EPISODES} or fewer: {share}"
    return every


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
    most = NATIVE_EVAL_ENVS if native else EVAL_ENVS
    if config.eval.steps is not None:
        # Each slot finishes an episode: with many of them, that would be far more than what was asked for.
        most = min(most, max(1, config.eval.steps // (config.env.time_limit or config.spec.horizon or 1)))
    if isinstance(config.eval.n_envs, int):
        most = config.eval.n_envs
    return min(most, config.eval.episodes or FULL_EPISODES)

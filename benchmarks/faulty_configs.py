"""Mis-configured runs for the study of `gymnast diagnose`: one fault each, drawn by seed.

    python benchmarks/faulty_configs.py --list                          # all kinds, and which may be looked at while building
    python benchmarks/faulty_configs.py --draw 60 --part build          # the cases of one part, one per line
    python benchmarks/faulty_configs.py --run CASE --runs-dir FOLDER    # train one case, as it is printed by --draw

A case is a preset (env × algorithm), one kind of fault, one size of it and a seed. `build` cases may be looked at while alerts
and diagnosis are written. `held` cases are for the end: at least a third of them are of kinds that `build` never has (`HELD`).
A fault only counts if it costs at least a quarter of what the preset gains over random play (`costs`); those that cost less are
redrawn by whoever runs the study. Healthy cases are the same presets with other seeds.

`diagnose` sees the run alone. What was changed, and the preset's own value, stand in the case, not in anything it may read.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from gymnast.config.load import resolve
from gymnast.config.schema import RunConfig

Part = Literal["build", "held"]
PARTS: tuple[Part, Part] = ("build", "held")
BUDGETS = {
    "CartPole-v1:ppo": 50_000,
    "CartPole-v1:a2c": 120_000,
    "CartPole-v1:reinforce": 60_000,
    "Acrobot-v1:ppo": 150_000,
    "Pendulum-v1:ppo": 100_000,
    "MountainCar-v0:ppo": 400_000,
    "MountainCarContinuous-v0:ppo": 100_000,
    "LunarLander-v3:ppo": 250_000,
    "FrozenLake-v1:ppo": 120_000,
    "FrozenLake-v1:ppo_deterministic": 40_000,
    "Taxi-v4:ppo": 500_000,
    "Blackjack-v1:ppo": 120_000,
    "gymnast/Bandit-v0:ppo": 40_000,
    "gymnast/Bandit-v0:a2c": 40_000,
    "gymnast/ContextualBandit-v0:ppo": 100_000,
}
"""Env steps of every run of a preset, healthy or not: about twice what a healthy one needs, and seconds on one core."""
PRESETS = tuple(BUDGETS)
COST = 0.25
"""A fault counts if it costs at least this share of what the preset gains over random play."""
UNSEEN = 0.4
"""Share of the held-out faults whose kinds are not used while building."""


# --- kinds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One way to spoil a run."""

    id: str
    causes: tuple[str, ...]
    """Ids of the causes of `diagnose` that name it correctly."""
    sizes: tuple[float, ...]
    overrides: Callable[[RunConfig, float], list[str]]
    """The settings that make the fault, from the healthy config and the size; empty where the kind does not apply."""


def _peak(value: Any) -> float:
    """The largest value of a number or a schedule."""
    return max(value.values()) if hasattr(value, "values") else float(value)


def _rate(config: RunConfig, factor: float) -> list[str]:
    """The learning rate times a factor, with the preset's own course."""
    value = config.algo.learning_rate
    falls = hasattr(value, "values")
    return [f"algo.learning_rate={'lin_' if falls else ''}{_peak(value) * factor:g}"]


def _algo(key: str, only: Callable[[RunConfig], bool] = lambda config: True) -> Callable[[RunConfig, float], list[str]]:
    """Set one key of the algorithm, where it has that key."""

    def overrides(config: RunConfig, size: float) -> list[str]:
        if not hasattr(config.algo, key) or not only(config):
            return []
        return [f"algo.{key}={size:g}"]

    return overrides


def _policy(
    key: str, only: Callable[[RunConfig], bool] = lambda config: True
) -> Callable[[RunConfig, float], list[str]]:
    """Set one key of the policy."""
    return lambda config, size: [f"policy.{key}={size:g}"] if only(config) else []


def _wrapper(text: str) -> Callable[[RunConfig, float], list[str]]:
    """Put one wrapper behind the preset's own; only presets without wrappers, which the override would replace."""
    return lambda config, size: [] if config.env.wrappers else [f"env.wrappers=[{{{text.format(f'{size:g}')}}}]"]


def _is_bandit(config: RunConfig) -> bool:
    return config.env.id.startswith("gymnast/")


def _is_continuous(config: RunConfig) -> bool:
    return bool(config.spec.action_components)


def _has_hidden(config: RunConfig) -> bool:
    return bool(config.policy.hidden)


def _gamma(config: RunConfig, size: float) -> list[str]:
    return [] if _is_bandit(config) else [f"algo.gamma={size:g}"]


def _large_batch(config: RunConfig, size: float) -> list[str]:
    """One update per iteration, and iterations so long that few are left."""
    if config.algo.id != "ppo":
        return []
    steps = max(1, round(_budget(config) / size / int(config.env.n_envs)))
    return ["algo.batch_size=1.0", "algo.n_epochs=1", f"algo.n_steps={steps}"]


def _budget(config: RunConfig) -> int:
    assert config.train.env_steps is not None
    return config.train.env_steps


def _few_envs(config: RunConfig, size: float) -> list[str]:
    """One env, and minibatches that still fit into its rollout; not where 64 are usual, since one alone takes minutes there."""
    fewer = [f"env.n_envs={size:g}"]
    batch, steps = getattr(config.algo, "batch_size", None), getattr(config.algo, "n_steps", None)
    if isinstance(batch, int) and isinstance(steps, int) and batch > steps * size:
        fewer.append("algo.batch_size=0.25")
    return fewer if 8 * size <= int(config.env.n_envs) <= 32 * size else []


def _unnormalised(config: RunConfig, size: float) -> list[str]:
    """Without the preset's normalisation of observations; `size` also multiplies nothing: there is one size."""
    return ["policy.normalize_obs=false"] if config.policy.normalize_obs else []


def _raw_reward(config: RunConfig, size: float) -> list[str]:
    """Rewards times a size, without the scaling that would take it out again."""
    if config.env.wrappers:
        return []
    return [f"env.wrappers=[{{id: reward_scale, factor: {size:g}}}]", "algo.normalize_reward=false"]


def _dead(config: RunConfig, size: float) -> list[str]:
    """ReLUs and a rate that kills them."""
    return ["policy.activation=relu", *_rate(config, size)] if config.policy.hidden else []


def _narrow(config: RunConfig, size: float) -> list[str]:
    return [f"policy.hidden=[{size:g}]"] if config.policy.hidden else []


def _no_exploration(config: RunConfig, size: float) -> list[str]:
    return [f"policy.log_std_init={size:g}"] if _is_continuous(config) else []


def _scales_reward(config: RunConfig) -> bool:
    return bool(getattr(config.algo, "normalize_reward", False))


def _short_rollouts(config: RunConfig, size: float) -> list[str]:
    """Rollouts of a step or two, in one minibatch."""
    return ["algo.batch_size=1.0", f"algo.n_steps={size:g}"] if config.algo.id == "ppo" else []


def _momentum(config: RunConfig, size: float) -> list[str]:
    return [f"algo.optimizer.betas=[{size:g}, 0.9999]"] if config.algo.optimizer.id == "adam" else []


def _time_limit(config: RunConfig, size: float) -> list[str]:
    horizon = config.spec.horizon
    return [f"env.time_limit={max(1, round(horizon * size))}"] if horizon and not _is_bandit(config) else []


BUILD: tuple[Kind, ...] = (
    Kind("rate_high", ("learning_rate_high",), (30.0, 100.0), _rate),
    Kind("gamma_zero", ("gamma_low",), (0.0, 0.3), _gamma),
    Kind("lambda_zero", ("gae_lambda_low",), (0.0,), _algo("gae_lambda", lambda config: not _is_bandit(config))),
    Kind("reward_huge", ("reward_scale",), (1e3, 1e4), _raw_reward),
    Kind("no_exploration", ("exploration_low",), (-5.0, -3.0), _no_exploration),
    Kind("entropy_huge", ("entropy_bonus_high",), (1.0, 10.0), _algo("ent_coef")),
    Kind("dead_relus", ("learning_rate_high", "dead_network"), (100.0,), _dead),
    Kind("few_updates", ("few_updates",), (5.0, 10.0), _large_batch),
    Kind("clip_tiny", ("clip_range_low",), (0.001,), _algo("clip_range")),
    Kind("epochs_many", ("epochs_many",), (100.0, 200.0), _algo("n_epochs")),
    Kind("unnormalised", ("observation_scale",), (1.0,), _unnormalised),
    Kind("value_weight_huge", ("value_weight_high",), (1e3, 1e5), _algo("vf_coef")),
    Kind("grad_clip_tiny", ("grad_clip_low",), (1e-6, 1e-8), _algo("max_grad_norm")),
    Kind("envs_few", ("few_envs",), (1.0,), _few_envs),
)
"""What alerts and causes were built and tuned on. A budget that is too short is not among them: no command cures it within the
same budget."""

HELD: tuple[Kind, ...] = (
    Kind("rate_low", ("learning_rate_low",), (1e-2, 1e-3), _rate),
    Kind("reward_tiny", ("reward_scale",), (1e-4, 1e-6), _raw_reward),
    Kind("reward_offset", ("reward_scale",), (10.0, 100.0), _wrapper("id: reward_scale, factor: 1, offset: {}")),
    Kind("noisy_observation", ("env_wrapper",), (1.0, 5.0), _wrapper("id: observation_noise, std: {}")),
    Kind("sticky", ("env_wrapper",), (0.9,), _wrapper("id: sticky_actions, probability: {}")),
    Kind("network_narrow", ("network_small",), (1.0, 2.0), _narrow),
    Kind("dropout", ("dropout_high",), (0.9,), _policy("dropout", _has_hidden)),
    Kind("wide_actions", ("exploration_high",), (2.0, 4.0), _policy("log_std_init", _is_continuous)),
    Kind("adam_eps", ("optimizer_eps_high",), (1.0, 100.0), lambda config, size: [f"algo.optimizer.eps={size:g}"]),
    Kind(
        "weight_decay", ("weight_decay_high",), (10.0,), lambda config, size: [f"algo.optimizer.weight_decay={size:g}"]
    ),
    Kind("target_kl_tiny", ("target_kl_low",), (1e-6,), _algo("target_kl")),
    Kind("value_clip_tiny", ("value_clip_low",), (1e-4,), _algo("clip_range_vf")),
    Kind("batch_tiny", ("batch_small",), (2.0,), _algo("batch_size")),
    Kind("time_limit", ("time_limit_short",), (0.05,), _time_limit),
    Kind("quantised", ("env_wrapper",), (2.0, 4.0), _wrapper("id: quantise, levels: {}")),
    Kind("action_noise", ("env_wrapper",), (0.8,), _wrapper("id: action_noise, probability: {}")),
    Kind("reward_clipped", ("reward_clip_low",), (1e-3,), _algo("reward_clip", _scales_reward)),
    Kind("rollouts_short", ("steps_few",), (1.0,), _short_rollouts),
    Kind("momentum_long", ("optimizer_betas",), (0.9999,), _momentum),
    Kind(
        "obs_clip", ("observation_clip_low",), (0.05,), _policy("obs_clip", lambda config: config.policy.normalize_obs)
    ),
)
"""Kept for the end: nobody looks at such runs before the score is taken."""

KINDS = {kind.id: kind for kind in (*BUILD, *HELD)}


# --- cases ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One run of the study; without a kind it is a healthy one."""

    preset: str
    seed: int
    kind: str | None = None
    size: float = 0.0
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`CartPole-v1:ppo/rate_high=100/seed=3`: enough to make the case again."""
        fault = "healthy" if self.kind is None else f"{self.kind}={self.size:g}"
        return f"{self.preset}/{fault}/seed={self.seed}"

    @property
    def command(self) -> list[str]:
        """What `gymnast` is given."""
        budget = f"train.env_steps={BUDGETS[self.preset]}"
        return ["train", self.preset, budget, *self.overrides, "--seed", str(self.seed), "--quiet"]


@cache
def preset(reference: str) -> RunConfig:
    """A preset as it is shipped, with the budget of the study."""
    return resolve(reference, [f"train.env_steps={BUDGETS[reference]}"]).config


def case(reference: str, kind: str, size: float, seed: int) -> Case | None:
    """The case of a fault in a preset; None where the kind does not apply to it."""
    overrides = KINDS[kind].overrides(preset(reference), size)
    return Case(reference, seed, kind, size, tuple(overrides)) if overrides else None


def parse(name: str) -> Case:
    """The case of a name."""
    rest, _, seed = name.rpartition("/seed=")
    reference, _, fault = rest.rpartition("/")
    if fault == "healthy":
        return Case(reference, int(seed))
    kind, _, size = fault.partition("=")
    found = case(reference, kind, float(size), int(seed))
    if found is None:
        raise ValueError(f"'{kind}' does not apply to {reference}")
    return found


def faulty(part: Part, seed: int = 0) -> Iterator[Case]:
    """Cases without end, each one once. The parts never share a seed; `held` takes kinds that `build` has not first."""
    rng = random.Random(f"{part}-{seed}")  # text seeds are hashed the same in every process
    seen: set[str] = set()
    while True:
        unseen = part == "held" and rng.random() < UNSEEN
        kind = rng.choice(HELD if unseen else BUILD)
        made = case(rng.choice(PRESETS), kind.id, rng.choice(kind.sizes), _run_seed(part, rng))
        if made is not None and made.name not in seen:
            seen.add(made.name)
            yield made


def healthy(part: Part, seed: int = 0) -> Iterator[Case]:
    """Presets as they are, in turn, each time with another seed."""
    rng = random.Random(f"healthy-{part}-{seed}")
    while True:
        for reference in rng.sample(PRESETS, len(PRESETS)):
            yield Case(reference, _run_seed(part, rng))


def _run_seed(part: Part, rng: random.Random) -> int:
    return rng.randrange(500) + 1000 * (1 + PARTS.index(part))


def costs(score: float, healthy_score: float, random_score: float) -> float:
    """Share of what the preset gains over random play that a run did not gain: 0 is as good, 1 is as random."""
    return (healthy_score - score) / (healthy_score - random_score)


# --- command line ---------------------------------------------------------------------------------------------------


def train(one: Case, runs_dir: str, *, timeout: float = 120.0) -> int:
    """Train a case in a process of its own; gives its exit status."""
    command = [sys.executable, "-m", "gymnast", *one.command, "--runs-dir", runs_dir]
    return subprocess.run(command, timeout=timeout, check=False).returncode


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="all kinds of faults")
    parser.add_argument("--draw", type=int, metavar="N", help="print N cases")
    parser.add_argument("--healthy", action="store_true", help="with --draw: healthy cases")
    parser.add_argument("--part", choices=PARTS, default="build")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", metavar="CASE", help="train one case by its name")
    parser.add_argument("--runs-dir", default="runs")
    given = parser.parse_args()
    if given.list:
        for kind in KINDS.values():
            part = "build" if kind in BUILD else "held"
            print(f"{part:6}{kind.id:20}{', '.join(f'{size:g}' for size in kind.sizes):14}{', '.join(kind.causes)}")
    if given.draw is not None:
        cases = healthy(given.part, given.seed) if given.healthy else faulty(given.part, given.seed)
        for one, _ in zip(cases, range(given.draw)):
            print(json.dumps({"name": one.name, **asdict(one)}))
    if given.run is not None:
        sys.exit(train(parse(given.run), given.runs_dir))


if __name__ == "__main__":
    main()

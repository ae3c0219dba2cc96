"""Which values of settings are usual, and a good one for a given run, told from the run's own config and sizes alone.

The ranges are wide: they hold what published configs and our presets use on purpose. A value outside is not wrong, but when
a run fails it is the first thing to look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gymnast.metrics.alerts.facts import Facts

_TRAVEL_MLP, _TRAVEL_TABLE = 3.0, 20.0
"""Sum of all learning rates over a run, per kind of network: how far Adam may carry a weight. CartPole's preset has 3, Pendulum's
12 and LunarLander's 19; tables, whose weights are values and logits themselves, 20 to 60."""
_MOST_EPOCHS = 10
"""More passes than that over one rollout add little to what can be learnt from it."""


@dataclass(frozen=True)
class Usual:
    """The usual range of one setting, and what is wrong below and above it (ids of causes; None if nothing is)."""

    key: str
    low: float
    high: float
    good: Callable[[Facts], Any]
    below: str | None = None
    above: str | None = None
    matters: Callable[[Facts], bool] = lambda facts: True
    """Whether the setting has an effect in this run."""
    value: Callable[[Facts], float | None] | None = None
    """How it is read, where it is not simply the number of its key."""

    def of(self, facts: Facts) -> float | None:
        """The run's value; None if it has none, or where it has no effect."""
        if not self.matters(facts):
            return None
        if self.value is None:
            return facts.number(self.key)
        return self.value(facts)


def orders_outside(value: float, low: float, high: float) -> float:
    """How many powers of ten a value lies below (negative) or above its range, at most five; 0 inside."""
    if low <= value <= high:
        return 0.0
    edge = low if value < low else high
    if value <= 0 or edge <= 0:  # zero is below everything
        return math.copysign(min(5.0, 2.0 + abs(value - edge)), value - edge)
    return max(-5.0, min(5.0, math.log10(value / edge)))


def is_table(facts: Facts) -> bool:
    """Whether actor and critic are linear in what they see: no hidden layer, no CNN."""
    return facts.get("policy.hidden") == [] and facts.get("policy.cnn") in (None, "none", "auto")


def learning_rate(facts: Facts) -> float:
    """A rate that carries weights as far over the whole run as a run that learns needs."""
    updates = facts.planned_updates
    epochs = facts.number("algo.n_epochs") or 1.0
    if updates is not None and epochs > _MOST_EPOCHS:
        updates = round(updates * _MOST_EPOCHS / epochs)  # what is left when the epochs are set right
    if is_table(facts):
        low, high, travel = 1e-2, 5e-2, _TRAVEL_TABLE
    else:
        low, high, travel = 2.5e-4, 8e-3, _TRAVEL_MLP
    if facts.get("policy.cnn_features") is not None or facts.get("env.atari") is not None:  # a CNN
        low, high = 2.5e-4, 1e-3
    if facts.algorithm != "ppo":
        high = min(high, 3e-2 if is_table(facts) else 3e-3)
    if updates is None:
        return short(high)
    return short(min(high, max(low, 2.0 * travel / updates)))


def short(value: float) -> float:
    """One or two digits: what a person would type."""
    return float(f"{value:.1g}")


def _highest_rate(facts: Facts) -> float:
    if is_table(facts):
        return 0.1
    return 1e-2


def n_steps(facts: Facts) -> int:
    """Steps per iteration: enough samples for a gradient, and a budget of fifty iterations or more."""
    n_envs = max(1, facts.n_envs)
    samples = min(2048, max(256, (facts.budget or 100_000) // 100))
    return max(5, int(2 ** round(math.log2(max(1.0, samples / n_envs)))))


def budget(facts: Facts) -> int:
    """Ten times the steps, and enough for a thousand updates."""
    now = facts.budget or 10_000
    least = now
    if facts.planned_updates and facts.planned_updates < 1000:
        least = now * 1000 // facts.planned_updates
    return int(float(f"{max(10 * now, least):.2g}"))


def gamma(facts: Facts) -> float:
    """A discount that looks a quarter of an episode ahead, between the usual 0.99 and 0.998."""
    horizon = facts.number("spec.horizon")
    if horizon is None:
        return 0.99
    return round(min(0.998, max(0.99, 1.0 - 4.0 / horizon)), 3)


def _on_samples(facts: Facts) -> bool:
    return facts.rollout is not None


def _is_gaussian(facts: Facts) -> bool:
    return not facts.actions


def _has_critic(facts: Facts) -> bool:
    return facts.algorithm != "reinforce" or facts.get("algo.baseline") == "learned"


def _width(facts: Facts) -> float | None:
    """The narrowest hidden layer."""
    layers = [*(facts.get("policy.hidden") or ()), *(facts.get("policy.critic_hidden") or ())]
    if layers:
        return float(min(layers))
    return None


def _share_of_horizon(facts: Facts) -> float | None:
    """The time limit as a share of the length that the spec says episodes have."""
    limits = [facts.number("env.time_limit"), peak_of(facts.wrapper("time_limit"), "steps")]
    given = [limit for limit in limits if limit is not None]
    horizon = facts.number("spec.horizon")
    if given and horizon:
        return min(given) / horizon
    return None


def peak_of(arguments: Any, name: str) -> float | None:
    """A number among the arguments of a wrapper."""
    value = (arguments or {}).get(name)
    if isinstance(value, (int, float)):
        return float(value)
    return None


def _rate_range(facts: Facts) -> tuple[float, float]:
    return 1e-5, _highest_rate(facts)


def range_of(usual: Usual, facts: Facts) -> tuple[float, float]:
    """The range in this run: tables bear higher learning rates than networks."""
    if usual.key == "algo.learning_rate":
        return _rate_range(facts)
    return (usual.low, usual.high)


def _constant(value: Any) -> Callable[[Facts], Any]:
    return lambda facts: value


def _adam(facts: Facts) -> bool:
    return bool(facts.get("algo.optimizer.id") == "adam")


def _first_beta(facts: Facts) -> float | None:
    betas: Any = facts.get("algo.optimizer.betas")
    if isinstance(betas, list) and betas:
        return float(betas[0])
    return None


def _has_minibatches(facts: Facts) -> bool:
    return facts.algorithm == "ppo"


def _scales_rewards(facts: Facts) -> bool:
    return bool(facts.get("algo.normalize_reward"))


def _normalizes(facts: Facts) -> bool:
    return bool(facts.get("policy.normalize_obs"))


def _horizon(facts: Facts) -> Any:
    return facts.get("spec.horizon")


def _batch(facts: Facts) -> float | None:
    return facts.batch_size


_ANY, _TEN = 1e9, _constant(10.0)

USUAL: tuple[Usual, ...] = (
    Usual("algo.learning_rate", 1e-5, 1e-2, learning_rate, "learning_rate_low", "learning_rate_high"),
    Usual("algo.gamma", 0.8, 1.0, gamma, "gamma_low"),
    Usual("algo.gae_lambda", 0.7, 1.0, _constant(0.95), "gae_lambda_low"),
    Usual("algo.clip_range", 0.05, 0.5, _constant(0.2), "clip_range_low", "clip_range_high"),
    Usual("algo.n_epochs", 1, 25, _constant(4), None, "epochs_many"),
    Usual("algo.ent_coef", 0.0, 0.1, _constant(0.005), None, "entropy_bonus_high"),
    Usual("algo.vf_coef", 0.05, 5.0, _constant(0.5), "value_weight_low", "value_weight_high", _has_critic),
    Usual("algo.max_grad_norm", 0.05, _ANY, _constant(0.5), "grad_clip_low"),
    Usual("algo.target_kl", 2e-3, _ANY, _constant(0.02), "target_kl_low"),
    Usual("algo.clip_range_vf", 0.02, _ANY, _constant(None), "value_clip_low"),
    Usual("algo.reward_clip", 0.5, _ANY, _TEN, "reward_clip_low", None, _scales_rewards),
    Usual("algo.optimizer.eps", 0.0, 2e-3, _constant(1e-5), None, "optimizer_eps_high"),
    Usual("algo.optimizer.weight_decay", 0.0, 0.1, _constant(0.0), None, "weight_decay_high"),
    Usual("algo.optimizer.betas", 0.0, 0.9995, _constant([0.9, 0.999]), None, "optimizer_betas", _adam, _first_beta),
    Usual("algo.batch_size", 8, _ANY, _constant(0.25), "batch_small", None, _has_minibatches, _batch),
    Usual("env.n_envs", 4, _ANY, _constant(8), "few_envs", None, _on_samples),
    Usual("algo.n_steps", 4, _ANY, n_steps, "steps_few", None, _on_samples),
    Usual("policy.hidden", 8, _ANY, _constant([64, 64]), "network_small", None, value=_width),
    Usual("policy.dropout", 0.0, 0.5, _constant(0.0), None, "dropout_high"),
    Usual("policy.obs_clip", 1.0, _ANY, _TEN, "observation_clip_low", None, _normalizes),
    Usual("policy.log_std_init", -2.0, 1.5, _constant(0.0), "exploration_low", "exploration_high", _is_gaussian),
    Usual("env.time_limit", 0.3, _ANY, _horizon, "time_limit_short", None, value=_share_of_horizon),
)
"""All settings with a usual range."""

"""What can be the matter with a run: what speaks for each cause, and what to change.

Config values count by how far they lie from what is usual (`alerts.ordinary`), never by how they differ from a preset: a run
of your own env has none. Weights are logarithms of how much likelier a cause becomes; they were set on runs of
benchmarks/fault_study.py whose faults are known (part `build`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gymnast.metrics.alerts import ordinary
from gymnast.metrics.alerts.facts import Facts
from gymnast.metrics.alerts.ordinary import USUAL, Usual, orders_outside, range_of
from gymnast.metrics.diagnosis.evidence import Case, Evidence, orders

Symptoms = Callable[[Case], list[Evidence]]
Fix = Callable[[Facts], dict[str, Any]]
_NEAR_SIGHTED = frozenset({"gamma_low", "gae_lambda_low"})
_OUTSIDE, _PER_ORDER = 1.5, 1.2
"""Weight of a value outside the usual range, and of each power of ten beyond it."""


@dataclass(frozen=True)
class Cause:
    """One thing that can be wrong."""

    id: str
    title: str
    why: str
    """What it does to a run."""
    symptoms: Symptoms
    fix: Fix | None = None
    """What to change; where it is None, the usual value of the setting that is outside its range."""


def evidence_for(cause: Cause, case: Case) -> list[Evidence]:
    """All that speaks for or against a cause, settings first."""
    return [*_settings(cause.id, case), *cause.symptoms(case)]


def changes_for(cause: Cause, case: Case) -> dict[str, Any]:
    """Dotted keys and their new values."""
    if cause.fix is not None:
        return cause.fix(case.facts)
    return {usual.key: usual.good(case.facts) for usual, _ in _outside(cause.id, case)}


def _outside(cause: str, case: Case) -> list[tuple[Usual, float]]:
    """The settings whose value speaks for a cause, each with how many powers of ten it is off."""
    if cause in _NEAR_SIGHTED and case.is_bandit:  # a pull changes nothing that comes after it
        return []
    found = []
    for usual in USUAL:
        if cause not in (usual.below, usual.above):
            continue
        value = usual.of(case.facts)
        off = 0.0
        if value is not None:
            off = orders_outside(value, *range_of(usual, case.facts))
        if (off < 0 and usual.below == cause) or (off > 0 and usual.above == cause):
            found.append((usual, abs(off)))
    return found


def _settings(cause: str, case: Case) -> list[Evidence]:
    found = []
    for usual, off in _outside(cause, case):
        low, high = range_of(usual, case.facts)
        value = usual.of(case.facts)
        if usual.value is None:
            name = usual.key
        else:
            name = f"{usual.key} (here {value:g})"
        shown = _shown(case.facts.get(usual.key))
        if value is not None and value > high:
            usually = f"at most {high:g}"
        else:
            usually = f"at least {low:g}"
        found.append(Evidence(_OUTSIDE + _PER_ORDER * off, f"{name} is {shown}; {usually} is usual."))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "schedule" in value:
        return f"{value['schedule']} from {value.get('start', value.get('value'))}"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


# --- symptoms -------------------------------------------------------------------------------------------------------


def _none(case: Case) -> list[Evidence]:
    return []


def _rate_high(case: Case) -> list[Evidence]:
    found = [
        *case.seen("kl_high", 1.5),
        *case.seen("kl_spike", 0.7),
        *case.seen("entropy_collapse", 1.2),
        *case.seen("value_loss_blowup", 0.7),
        *case.seen("return_fell", 0.7),
        *case.seen("dead_relus", 0.7),
        *case.seen("grad_vanished", 0.7),
    ]
    if case.became_nan:
        found.append(Evidence(1.0, "A loss or gradient became NaN or infinite, which is how divergence ends."))
    rate, good = case.facts.number("algo.learning_rate"), ordinary.learning_rate(case.facts)
    if rate is not None and orders(rate, good) > 0.7:
        says = f"For this budget and network about {good:g} would do; algo.learning_rate is {rate:g}."
        found.append(Evidence(orders(rate, good), says))
    if "policy_frozen" in case.alerts and "entropy_collapse" not in case.alerts:
        found.append(Evidence(-3.0, "The policy hardly moved, which a high rate would not allow."))
    return found


def _rate_low(case: Case) -> list[Evidence]:
    found = case.seen("policy_frozen", 1.5)
    rate, good = case.facts.number("algo.learning_rate"), ordinary.learning_rate(case.facts)
    if rate is not None and orders(good, rate) > 0.7:
        says = f"For this budget and network about {good:g} would do; algo.learning_rate is {rate:g}."
        found.append(Evidence(1.5 * orders(good, rate), says))
    if "kl_high" in case.alerts or "kl_spike" in case.alerts:
        found.append(Evidence(-3.0, "Updates were large."))
    if "grad_clipped" in case.alerts:
        found.append(Evidence(-1.0, "Clipped gradients explain a policy that does not move."))
    return found


def _gamma_low(case: Case) -> list[Evidence]:
    gamma, length = case.facts.number("algo.gamma"), case.last("rollout/length_mean")
    if gamma is None or length is None or case.is_bandit or gamma >= 1.0 or length <= 2.0:
        return []
    ahead = 1.0 / (1.0 - gamma)
    if ahead >= 0.05 * length:
        return []
    says = f"algo.gamma={gamma:g} looks {ahead:.1f} steps ahead; episodes last {length:.0f}."
    return [Evidence(min(2.0, orders(0.2 * length, ahead)), says)]


def _reward_scale(case: Case) -> list[Evidence]:
    found = [*case.seen("reward_scale_large", 3.0), *case.seen("reward_scale_small", 2.0)]
    given = case.facts.wrapper("reward_scale")
    if given is not None:
        factor, offset = abs(float(given.get("factor", 1.0))), abs(float(given.get("offset", 0.0)))
        off = abs(orders(factor, 1.0))
        if off >= 1 and not case.facts.get("algo.normalize_reward"):
            says = f"The wrapper reward_scale multiplies rewards by {factor:g}, and algo.normalize_reward is off."
            found.append(Evidence(_OUTSIDE + 0.8 * off, says))
        if offset >= 5:
            says = f"The wrapper reward_scale adds {given['offset']:g} to every reward, which hides how they differ."
            found.append(Evidence(_OUTSIDE + orders(offset, 1.0), says))
    return found


def _exploration_low(case: Case) -> list[Evidence]:
    rate_is_fine = not _outside("learning_rate_high", case)
    found = [*case.seen("action_std_small", 1.5), *case.seen("constant_action", 1.0)]
    if rate_is_fine:
        found += case.seen("entropy_collapse", 1.0)
    return found


def _entropy_bonus(case: Case) -> list[Evidence]:
    found = case.seen("entropy_bonus_high", 2.5)
    if (case.facts.number("algo.ent_coef") or 0.0) > 0:
        found += case.seen("action_std_large", 1.5)
    return found


def _updates_in_reach(facts: Facts) -> float:
    """Optimizer steps that the budget would allow with rollouts and minibatches of a good size."""
    samples = ordinary.n_steps(facts) * max(1, facts.n_envs)
    each = 16 if facts.algorithm == "ppo" else 1
    return (facts.budget or 0) / samples * each


def _few_updates(case: Case) -> list[Evidence]:
    facts, planned = case.facts, case.facts.planned_updates
    if planned is None or planned >= 200:
        return []
    if _updates_in_reach(facts) < 5 * planned:
        return []  # then it is the budget
    says = f"The budget allows {planned} optimizer steps; hundreds are needed."
    return [Evidence(_OUTSIDE + 2.0 * orders(200.0, planned), says)]


def _budget_short(case: Case) -> list[Evidence]:
    facts, found = case.facts, case.seen("still_rising", 1.2)
    steps, planned = facts.budget, facts.planned_updates
    if steps is not None and steps < 30_000:
        says = f"{steps:,} env steps are few: small tasks take 20,000 to 500,000."
        found.append(Evidence(0.8 + 2.0 * orders(30_000, steps), says))
    if planned is not None and planned < 200 and _updates_in_reach(facts) < 5 * planned:
        found.append(Evidence(1.0, f"They allow {planned} optimizer steps."))
    if "return_plateau" in case.alerts:
        found.append(Evidence(-1.0, "Returns had stopped rising long before the end."))
    return found


def _clip_low(case: Case) -> list[Evidence]:
    kl = case.mean("train/approx_kl")
    if "clip_fraction_high" in case.alerts and kl is not None and kl < 0.005:
        says = f"Most samples are clipped although the policy moves by a KL of only {kl:.1g} per iteration."
        return [Evidence(2.0, says)]
    return []


def _grad_share(case: Case) -> list[Evidence]:
    """Clipping that takes nearly all of every gradient, as far as a setting explains it."""
    return case.seen("grad_clipped", 1.0)


def _observation_scale(case: Case) -> list[Evidence]:
    facts = case.facts
    if facts.get("policy.normalize_obs") or not facts.get("policy.hidden"):
        return []
    found = [*case.seen("observations_large", 3.0), *case.seen("observations_tiny", 3.0)]
    reach = [
        max(abs(part["low"]), abs(part["high"]))
        for part in facts.get("spec.observation") or ()
        if not part.get("values") and part.get("low") is not None and part.get("high") is not None
    ]
    unbounded = any(part.get("high") is None for part in facts.get("spec.observation") or ())
    known = [size for size in reach if size > 0]
    if known and (max(known) / min(known) >= 5 or min(known) < 0.1):
        says = f"Observations reach from {min(known):g} to {max(known):g} in different components, not normalised."
        found.append(Evidence(0.7 + orders(max(known), min(known)), says))
    if unbounded:
        found.append(Evidence(0.5, "Some components of the observation have no bounds, and they are not normalised."))
    return found


def _dead_network(case: Case) -> list[Evidence]:
    found = case.seen("dead_relus", 3.0)
    if case.facts.get("policy.activation") == "relu":
        found += [*case.seen("entropy_collapse", 0.7), *case.seen("grad_vanished", 1.5)]
        if "critic_useless" in case.alerts and case.last("train/explained_variance") == 0.0:
            found.append(Evidence(1.5, "The critic predicts the same value for every state, as a dead network does."))
    return found


def _critic_weak(case: Case) -> list[Evidence]:
    return [*case.seen("critic_useless", 1.0), *case.seen("value_loss_blowup", 1.0)]


def _no_reward(case: Case) -> list[Evidence]:
    return case.seen("no_reward", 3.0)


def _evaluation(case: Case) -> list[Evidence]:
    return case.seen("evaluation_below_training", 3.0)


def _wrappers(case: Case) -> list[Evidence]:
    facts, found = case.facts, []
    sticky = ordinary.peak_of(facts.wrapper("sticky_actions"), "probability")
    if sticky is not None and sticky > 0.4:
        found.append(Evidence(3.0, f"The wrapper sticky_actions repeats the last action in {sticky:.0%} of the steps."))
    noise = facts.wrapper("observation_noise")
    if noise is not None:
        found.append(Evidence(2.0, f"The wrapper observation_noise adds noise of {noise.get('std')} to observations."))
    if facts.wrapper("action_noise") is not None:
        found.append(Evidence(2.0, "The wrapper action_noise changes the actions."))
    levels = ordinary.peak_of(facts.wrapper("quantise"), "levels")
    if levels is not None and levels < 16:
        found.append(Evidence(2.0, f"The wrapper quantise leaves only {levels:g} different values in observations."))
    return found


def _kl_limit(case: Case) -> list[Evidence]:
    return case.seen("kl_stops_always", 1.5)


# --- fixes ----------------------------------------------------------------------------------------------------------


def _slower(facts: Facts) -> dict[str, Any]:
    return {"algo.learning_rate": f"lin_{ordinary.learning_rate(facts):g}"}


def _even_rewards(facts: Facts) -> dict[str, Any]:
    """Scaling takes any factor out again; an offset has to go."""
    changes: dict[str, Any] = {"algo.normalize_reward": True}
    given = facts.wrapper("reward_scale")
    if given is not None and given.get("offset"):
        changes["env.wrappers"] = _without(facts, "reward_scale")
    return changes


def _without(facts: Facts, *names: str) -> list[Any]:
    return [{"id": one["id"], **(one.get("args") or {})} for one in facts.wrappers if one.get("id") not in names]


def _no_disturbance(facts: Facts) -> dict[str, Any]:
    return {"env.wrappers": _without(facts, "sticky_actions", "observation_noise", "action_noise", "quantise")}


def _explore(facts: Facts) -> dict[str, Any]:
    if facts.actions:
        return {"algo.ent_coef": 0.01}
    return {"policy.log_std_init": 0.0}


def _more_updates(facts: Facts) -> dict[str, Any]:
    changes: dict[str, Any] = {"algo.n_steps": ordinary.n_steps(facts)}
    if facts.algorithm == "ppo":
        changes |= {"algo.batch_size": 0.25, "algo.n_epochs": 8 if ordinary.is_table(facts) else 4}
    return changes


def _longer(facts: Facts) -> dict[str, Any]:
    return {"train.env_steps": ordinary.budget(facts)}


def _revive(facts: Facts) -> dict[str, Any]:
    return {"policy.activation": "tanh", **_slower(facts)}


def _see(facts: Facts) -> dict[str, Any]:
    return {"policy.normalize_obs": True}


def _easier_critic(facts: Facts) -> dict[str, Any]:
    return {"algo.normalize_reward": True, **({} if ordinary.is_table(facts) else _see(facts))}


def _find_reward(facts: Facts) -> dict[str, Any]:
    return {**_easier_critic(facts), "algo.ent_coef": 0.01, **_longer(facts)}


def _sampled(facts: Facts) -> dict[str, Any]:
    return {"eval.deterministic": False}


CAUSES: tuple[Cause, ...] = (
    Cause(
        "learning_rate_high",
        "The learning rate is too high",
        "Updates overshoot: the policy becomes certain of arbitrary actions and the critic diverges.",
        _rate_high,
        _slower,
    ),
    Cause(
        "learning_rate_low",
        "The learning rate is too low",
        "The weights cannot travel far enough within the budget.",
        _rate_low,
        _slower,
    ),
    Cause("gamma_low", "The discount is too small", "Actions get credit for the next few steps alone.", _gamma_low),
    Cause(
        "gae_lambda_low",
        "λ is too small",
        "Advantages trust the critic alone, and credit moves back one step per iteration.",
        _none,
    ),
    Cause(
        "clip_range_low",
        "The clip range is too narrow",
        "Samples lose their gradient as soon as the policy moves at all.",
        _clip_low,
    ),
    Cause("clip_range_high", "The clip range is too wide", "Nothing holds large updates back.", _none),
    Cause(
        "epochs_many",
        "Too many passes over each rollout",
        "The policy is fitted to one rollout's noise and leaves the region its samples cover.",
        lambda case: case.seen("kl_high", 0.7),
    ),
    Cause(
        "entropy_bonus_high",
        "The entropy bonus outweighs the reward",
        "Being random pays more than being good.",
        _entropy_bonus,
    ),
    Cause(
        "reward_scale",
        "Rewards have the wrong size",
        "The critic cannot reach values of that size, or cannot tell them apart.",
        _reward_scale,
        _even_rewards,
    ),
    Cause(
        "value_weight_high",
        "The value loss outweighs the policy loss",
        "Clipping the joint gradient leaves next to nothing for the policy.",
        _grad_share,
    ),
    Cause("value_weight_low", "The critic hardly learns", "Its loss has next to no weight.", _critic_weak),
    Cause(
        "grad_clip_low",
        "Gradients are clipped to nothing",
        "The optimizer sees gradients so small that its eps dominates.",
        _grad_share,
    ),
    Cause("target_kl_low", "target_kl stops learning", "Every iteration ends after its first epoch.", _kl_limit),
    Cause(
        "value_clip_low", "The value clip is too narrow", "The critic may hardly change per iteration.", _critic_weak
    ),
    Cause("reward_clip_low", "Scaled rewards are clipped away", "Different rewards become the same number.", _none),
    Cause(
        "optimizer_eps_high",
        "The optimizer's eps is too large",
        "It divides every step by eps.",
        lambda case: case.seen("policy_frozen", 1.0),
    ),
    Cause(
        "optimizer_betas",
        "Adam's momentum is too long",
        "It keeps moving in directions that are no longer right.",
        _none,
    ),
    Cause(
        "weight_decay_high", "Weight decay is too strong", "Weights are pulled to zero faster than they learn.", _none
    ),
    Cause("batch_small", "Minibatches are too small", "Each gradient is mostly noise.", _none),
    Cause("few_envs", "Too few envs", "The samples of a rollout are much alike and tell little.", _none),
    Cause("steps_few", "Rollouts are too short", "Credit cannot reach back, and batches are small.", _none),
    Cause(
        "few_updates",
        "Too few updates",
        "The budget goes into a few large batches.",
        _few_updates,
        _more_updates,
    ),
    Cause(
        "budget_short",
        "The budget is too short",
        "Training ended before it could get anywhere.",
        _budget_short,
        _longer,
    ),
    Cause(
        "exploration_low",
        "Too little exploration",
        "The policy repeats what it does and never sees what else would pay.",
        _exploration_low,
        _explore,
    ),
    Cause(
        "exploration_high",
        "Actions are spread too widely",
        "Most actions are clipped to the bounds of the action space.",
        lambda case: case.seen("action_std_large", 2.0),
    ),
    Cause(
        "observation_scale",
        "Observations are not normalised",
        "Features of different size are learnt at different speeds, and small ones hardly at all.",
        _observation_scale,
        _see,
    ),
    Cause("observation_clip_low", "Observations are clipped away", "Different states look the same.", _none),
    Cause(
        "dead_network",
        "Units of the network are dead",
        "They output 0 for every input and never learn again.",
        _dead_network,
        _revive,
    ),
    Cause("network_small", "The network is too small", "It cannot represent a policy that solves this.", _none),
    Cause("dropout_high", "Dropout is too strong", "The critic learns from noise.", _none),
    Cause("time_limit_short", "Episodes are cut off too early", "What pays later is never reached.", _none),
    Cause(
        "env_wrapper",
        "A wrapper makes the env much harder",
        "It hides or changes observations or actions.",
        _wrappers,
        _no_disturbance,
    ),
    Cause("critic_weak", "The critic does not learn", "Advantages are noise.", _critic_weak, _easier_critic),
    Cause(
        "no_reward_found",
        "No reward was found",
        "All episodes returned the same, so there was nothing to learn from.",
        _no_reward,
        _find_reward,
    ),
    Cause(
        "evaluation_differs",
        "Evaluation plays differently from training",
        "Greedy actions or another env are evaluated, not what was trained.",
        _evaluation,
        _sampled,
    ),
)
"""All that diagnosis knows."""

"""From the `env.rewards` section to terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnast import own_code, plugins
from gymnast.config import shapers
from gymnast.config.expressions import INFO, parse
from gymnast.config.rewards import RewardsConfig, TermConfig
from gymnast.envs.rewards.counts import CountBonus
from gymnast.envs.rewards.steps import Layout
from gymnast.envs.rewards.terms import ActionCosts, ExpressionPotential, ExpressionTerm, FunctionTerm, Potential, Term
from gymnast.errors import ConfigError


def make_terms(rewards: RewardsConfig, layout: Layout, n_envs: int) -> dict[str, Term]:
    """The terms by name, in the order of the config."""
    terms = {}
    for name, config in rewards.terms.items():
        term = terms[name] = _term(config, layout, name, n_envs)
        if isinstance(term, Potential):
            term.gamma = _discount(rewards, name)
    return terms


def reads_info(rewards: RewardsConfig | None) -> bool:
    """Whether a term may read infos, which only envs that are stepped one by one have."""
    if rewards is None:
        return False
    return any(_may_read_info(config) for config in rewards.terms.values())


def _may_read_info(config: TermConfig) -> bool:
    text = config.expression or config.potential
    if config.shaper in shapers.RECIPES:
        recipe = shapers.RECIPES[config.shaper]
        text = recipe.expression or recipe.potential
    if text:
        return any(one.scope == INFO for one in parse(text).references())
    if config.costs or config.shaper in shapers.NAMES:
        return False
    found = _foreign(str(config.shaper))
    return bool(getattr(found, "reads_info", not isinstance(found, type)))


def _term(config: TermConfig, layout: Layout, name: str, n_envs: int) -> Term:
    if config.costs is not None:
        return ActionCosts(config.costs, layout, name)
    if config.shaper == shapers.COUNT_BONUS:
        return CountBonus(layout, name, n_envs, **dict(shapers.arguments(config.shaper, config.args) or {}))
    expression, potential = config.expression, config.potential
    if config.shaper in shapers.RECIPES:
        recipe = shapers.RECIPES[config.shaper]
        expression, potential = recipe.expression, recipe.potential
    if potential:
        return ExpressionPotential(parse(potential), layout, name)
    if expression:
        return ExpressionTerm(parse(expression), layout, name)
    return _own_term(config, layout, name, n_envs)


def _own_term(config: TermConfig, layout: Layout, name: str, n_envs: int) -> Term:
    """A plug-in's or the user's: a class of terms, or a function of steps."""
    reference = str(config.shaper)
    found: Callable[..., Any] = _foreign(reference)
    if isinstance(found, type) and issubclass(found, Term):
        try:
            return found(layout, n_envs, **config.args)  # type: ignore[call-arg]
        except TypeError as error:
            raise ConfigError(f"env.rewards.terms.{name}: '{reference}' cannot take {config.args}: {error}.") from error
    if callable(found) and not isinstance(found, type):
        if config.args:
            raise ConfigError(f"env.rewards.terms.{name}: '{reference}' is a function of steps and takes no args.")
        return FunctionTerm(found)
    raise ConfigError(
        f"env.rewards.terms.{name}: '{reference}' is no shaper. A class derived from gymnast.envs.rewards.Term is, and a "
        "function that takes Steps and gives one number per env copy."
    )


def _foreign(reference: str) -> Any:
    if own_code.is_own(reference):
        return own_code.find(reference, "env.rewards")
    plugin = plugins.find(plugins.REWARDS, reference)
    if plugin is None:
        raise ConfigError(shapers.unknown(reference, *(one.name for one in plugins.installed(plugins.REWARDS))) + ".")
    return plugins.load(plugin)


def _discount(rewards: RewardsConfig, name: str) -> float:
    if rewards.discount is not None:
        return rewards.discount
    if rewards.names.gamma is None:
        raise ConfigError(
            f"env.rewards.terms.{name}: a potential needs one discount, and algo.gamma is none: set env.rewards.discount."
        )
    return rewards.names.gamma

"""How an evaluation is set up: its own envs, built as the training ones unless `eval.env` says otherwise.

A score is of Gymnasium's own env. A run that EnvPool steps is evaluated without it, unless `eval.env.vectorization` says
`envpool`; the score then names EnvPool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from gymnast import seeding
from gymnast.config.plan import FULL_EPISODES, eval_envs
from gymnast.config.schema import FAMILY_SECTIONS, EnvConfig, RunConfig
from gymnast.config.tasks import task_envs
from gymnast.envs.choose import choose_vectorization, cores, foreign_engine, native_form
from gymnast.envs.closing import close
from gymnast.envs.make import MANY_CORES, SINGLE_ENVS, by_lanes, make_envs, make_one
from gymnast.envs.registry import rules_of
from gymnast.envs.tasks import steppable
from gymnast.envs.time_limits import longest_episode
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import needs_single_envs
from gymnast.errors import ConfigError
from gymnast.evaluation.evaluate import Evaluation, evaluate
from gymnast.evaluation.exact import TabularModel, tabular_model
from gymnast.policies.base import Policy
from gymnast.training.evaluating.cadence import Extent

CONFIRMING = 2_000_000
"""Turns from here on are of evaluations that confirm one on fewer episodes."""


@dataclass(frozen=True)
class EvalSetting:
    """One way in which the weights are evaluated."""

    name: str
    """Empty for the setting that decides; the tasks of a plan, which count together, all have one."""
    env: EnvConfig
    differences: dict[str, Any]
    """From the training envs."""


def eval_settings(config: RunConfig) -> list[EvalSetting]:
    """All settings of `eval.env`, of which the first decides; with a plan, its tasks.

    Tasks at the same time have a score each and count together. Of stages, the last decides.
    """
    if config.plan is None:
        return [
            EvalSetting(name, *_overridden(config, config.env, given))
            for name, given in config.eval.env_settings.items()
        ]
    (given,) = config.eval.env_settings.values()
    tasks = {name: _overridden(config, steppable(env), given) for name, env in task_envs(config).items()}
    settings = [EvalSetting(name, *played) for name, played in tasks.items()]
    if config.plan.stages:
        *earlier, last = settings
        return [replace(last, name=""), *earlier]
    return settings


def eval_env_config(config: RunConfig) -> tuple[EnvConfig, dict[str, Any]]:
    """The env section of the setting that decides, and how it differs from training's.

    With a plan it is that of the last stage, or of the first of several tasks at the same time.
    """
    first = eval_settings(config)[0]
    return first.env, first.differences


def _overridden(config: RunConfig, env: EnvConfig, given: dict[str, Any]) -> tuple[EnvConfig, dict[str, Any]]:
    """An evaluation's env section and how it differs from training's."""
    training = env.model_dump()
    unknown = set(given) - set(training)
    if unknown:
        raise ConfigError(f"'eval.env.{sorted(unknown)[0]}' is not a key of the env section.")
    overrides = dict(given)
    for section in FAMILY_SECTIONS & overrides.keys():
        if isinstance(overrides[section], dict):  # only what it names is other than in training
            overrides[section] = {**(training[section] or {}), **overrides[section]}
    evaluation = EnvConfig.model_validate({**training, **overrides})
    if evaluation.rewards is not None:
        evaluation.rewards.learn_names(config.reward_names)
    changed = {key: value for key, value in evaluation.model_dump().items() if value != training[key]}
    way = _way_to_play(evaluation, changed, stated=given.get("vectorization"))
    evaluation = evaluation.model_copy(update={"vectorization": way})
    return evaluation, changed


def _way_to_play(evaluation: EnvConfig, changed: dict[str, Any], *, stated: str | None) -> str:
    """How evaluation episodes are stepped: as stated, else as in training where that is Gymnasium's own env."""
    way = evaluation.vectorization
    if stated not in (None, "auto") or way in SINGLE_ENVS:
        return way
    if way in ("auto", "envpool"):
        open_choice = evaluation.model_copy(update={"vectorization": "auto"})
        return choose_vectorization(open_choice, envpool=False)[0]
    # Training's own wrappers and arguments allow the native form, these may not.
    other_game = bool({"id", *FAMILY_SECTIONS} & changed.keys()) and native_form(evaluation) is None
    if needs_single_envs(evaluation.wrappers) or other_game:
        return "inprocess"
    return way


def tabular_model_of(config: EnvConfig) -> TabularModel | None:
    """The env's transition table, where it has one and nothing hides it."""
    if config.wrappers or config.randomise:
        return None
    env = make_one(config)
    try:
        return tabular_model(env)
    finally:
        close(env)


def make_evaluation(config: RunConfig, env_config: EnvConfig) -> tuple[VectorEnv, TabularModel | None]:
    """Envs and transition table for evaluations of this run."""
    kind, _ = choose_vectorization(env_config)
    in_lanes = (
        kind == "workers" and cores() >= MANY_CORES and by_lanes(env_config, config.eval.episodes or FULL_EPISODES)
    )
    slots = eval_envs(config, native=in_lanes or kind in ("native", "envpool"))
    env_config = env_config.model_copy(update={"rewards": None})  # only the env's own reward is counted
    return make_envs(env_config, slots), tabular_model_of(env_config)


def run_evaluation(
    policy: Policy,
    config: RunConfig,
    envs: VectorEnv,
    tabular: TabularModel | None,
    *,
    turn: int,
    env_config: EnvConfig,
    extent: Extent | None = None,
    seed: int | None = None,
    differences: dict[str, Any] | None = None,
    on_episode: Callable[[int], None] | None = None,
) -> Evaluation:
    """One evaluation under the run's protocol; `env_config` is what `envs` were made from."""
    seed = config.train.seed if seed is None else seed
    extent = extent or Extent(config.eval.episodes or FULL_EPISODES, steps=config.eval.steps)
    device = next(policy.parameters()).device

    def play(episodes: int, turn: int) -> Evaluation:
        seeds = seeding.env_seeds(seed, "eval_envs", envs.n_envs, turn=turn)
        return evaluate(
            policy,
            envs,
            episodes,
            seeds,
            deterministic=config.eval.deterministic,
            generator=torch.Generator(device).manual_seed(seeds[0]),
            tabular=tabular,
            on_episode=on_episode,
            most_steps=longest_episode(env_config),
            steps=extent.steps,
        )

    evaluation = play(extent.episodes, turn)
    passes = extent.confirm_at is not None and evaluation.mean >= extent.confirm_at
    if passes and evaluation.exact is None:
        first, evaluation = evaluation, play(FULL_EPISODES, CONFIRMING + turn)
        evaluation.steps_before = first.steps
    evaluation.differences = dict(differences or {})
    rules = rules_of(env_config)
    evaluation.protocol = None if rules is None else rules.protocol()
    evaluation.randomise = env_config.randomise
    evaluation.engine = foreign_engine(env_config)
    return evaluation

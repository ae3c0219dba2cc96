"""Evaluation during training: its own envs, built as the training ones unless `eval.env` says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gymnast import seeding
from gymnast.config.plan import eval_envs
from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.envs.registry import choose_vectorization, make_envs, make_one
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError
from gymnast.evaluation.evaluate import Evaluation, evaluate
from gymnast.evaluation.exact import TabularModel, tabular_model
from gymnast.policies.actor_critic import ActorCritic
from gymnast.training.session import Session


def eval_env_config(config: RunConfig) -> tuple[EnvConfig, dict[str, Any]]:
    """The evaluation's env section and how it differs from training's."""
    training = config.env.model_dump()
    unknown = set(config.eval.env) - set(training)
    if unknown:
        raise ConfigError(f"'eval.env.{sorted(unknown)[0]}' is not a key of the env section.")
    evaluation = EnvConfig.model_validate({**training, **config.eval.env})
    changed = {key: value for key, value in evaluation.model_dump().items() if value != training[key]}
    return evaluation, changed


def tabular_model_of(config: EnvConfig) -> TabularModel | None:
    """The env's transition table, where it has one and nothing hides it."""
    if config.wrappers:
        return None
    env = make_one(config)
    try:
        return tabular_model(env)
    finally:
        env.close()


class Evaluator:
    """Keeps the evaluation envs; they are made at the first evaluation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._envs: VectorEnv | None = None
        self._tabular: TabularModel | None = None
        self._env_config, self._differences = eval_env_config(session.config)

    def __call__(self, turn: int, on_episode: Callable[[int], None] | None = None) -> Evaluation:
        """Evaluation number `turn` of the run: fresh episodes every time, the same ones after a resume."""
        session, config = self._session, self._session.config
        if self._envs is None:
            self._envs, self._tabular = make_evaluation(config, self._env_config)
        return run_evaluation(
            session.policy,
            config,
            self._envs,
            self._tabular,
            turn=turn,
            differences=self._differences,
            on_episode=on_episode,
        )

    def close(self) -> None:
        """Close the envs, if there are any."""
        if self._envs is not None:
            self._envs.close()


def make_evaluation(config: RunConfig, env_config: EnvConfig) -> tuple[VectorEnv, TabularModel | None]:
    """Envs and transition table for evaluations of this run."""
    native = choose_vectorization(env_config)[0] == "native"
    return make_envs(env_config, eval_envs(config, native=native)), tabular_model_of(env_config)


def run_evaluation(
    policy: ActorCritic,
    config: RunConfig,
    envs: VectorEnv,
    tabular: TabularModel | None,
    *,
    turn: int,
    seed: int | None = None,
    differences: dict[str, Any] | None = None,
    on_episode: Callable[[int], None] | None = None,
) -> Evaluation:
    """One evaluation under the run's protocol."""
    seed = config.train.seed if seed is None else seed
    seeds = seeding.env_seeds(seed, "eval_envs", envs.n_envs, turn=turn)
    device = next(policy.parameters()).device
    evaluation = evaluate(
        policy,
        envs,
        config.eval.episodes,
        seeds,
        deterministic=config.eval.deterministic,
        generator=torch.Generator(device).manual_seed(seeds[0]),
        tabular=tabular,
        on_episode=on_episode,
    )
    evaluation.differences = dict(differences or {})
    return evaluation

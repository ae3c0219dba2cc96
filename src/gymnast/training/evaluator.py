"""Evaluation during training: its own envs, built as the training ones unless `eval.env` says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from gymnast import seeding
from gymnast.config.plan import eval_envs
from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.envs.choose import choose_vectorization, cores, native_form, why_not_envpool
from gymnast.envs.families.atari.protocol import protocol_of
from gymnast.envs.make import MANY_CORES, SINGLE_ENVS, by_lanes, make_envs, make_one
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import needs_single_envs
from gymnast.errors import ConfigError
from gymnast.evaluation.evaluate import Evaluation, evaluate
from gymnast.evaluation.exact import TabularModel, tabular_model
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.training.session import load_policy
from gymnast.training.tracing import digest


def eval_env_config(config: RunConfig) -> tuple[EnvConfig, dict[str, Any]]:
    """The evaluation's env section and how it differs from training's."""
    training = config.env.model_dump()
    if training["atari"] is not None:
        training["atari"]["sticky_ramp"] = None  # a help for learning: scores are of the whole protocol
    unknown = set(config.eval.env) - set(training)
    if unknown:
        raise ConfigError(f"'eval.env.{sorted(unknown)[0]}' is not a key of the env section.")
    overrides = dict(config.eval.env)
    if isinstance(overrides.get("atari"), dict):  # only what it names is other than in training
        overrides["atari"] = {**(training["atari"] or {}), **overrides["atari"]}
    evaluation = EnvConfig.model_validate({**training, **overrides})
    changed = {key: value for key, value in evaluation.model_dump().items() if value != training[key]}
    as_training = "vectorization" not in config.eval.env and evaluation.vectorization not in ("auto", *SINGLE_ENVS)
    other = evaluation.vectorization == "envpool" and {"id", "kwargs"} & changed.keys()
    game = evaluation.vectorization == "native" and {"id", "atari"} & changed.keys()
    # Training's own wrappers and arguments allow it, these may not.
    refused = (other and why_not_envpool(evaluation) is not None) or (game and native_form(evaluation) is None)
    if as_training and (needs_single_envs(evaluation.wrappers) or refused):
        evaluation = evaluation.model_copy(update={"vectorization": "inprocess"})
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


class EvalWorkerError(Exception):
    """The evaluation worker raised, died, hung, or judged other weights than it was given."""


class Evaluator:
    """Keeps the evaluation envs; they are made at the first evaluation."""

    def __init__(self, config: RunConfig, *, one_process: bool = False) -> None:
        """`one_process` steps the envs here even where training has workers, which gives the same episodes."""
        self._config = config
        self._envs: VectorEnv | None = None
        self._tabular: TabularModel | None = None
        self._policy: ActorCritic | None = None
        self._env_config, self._differences = eval_env_config(config)
        if one_process and self._env_config.vectorization == "workers":
            self._env_config = self._env_config.model_copy(update={"vectorization": "inprocess"})

    @property
    def envs(self) -> VectorEnv:
        """The evaluation envs."""
        if self._envs is None:
            self._envs, self._tabular = make_evaluation(self._config, self._env_config)
        return self._envs

    def __call__(
        self,
        policy: ActorCritic,
        turn: int,
        on_episode: Callable[[int], None] | None = None,
        *,
        envs: VectorEnv | None = None,
    ) -> Evaluation:
        """Evaluation number `turn` of the run: fresh episodes every time, the same ones after a resume.

        `envs` are the evaluation envs in a wrapper of the caller's.
        """
        return run_evaluation(
            policy,
            self._config,
            envs or self.envs,
            self._tabular,
            turn=turn,
            differences=self._differences,
            on_episode=on_episode,
        )

    def policy_of(self, weights: bytes) -> ActorCritic:
        """A policy of this evaluator's own with saved weights (safetensors): nobody's training is touched."""
        from safetensors.torch import load as from_bytes

        tensors = from_bytes(weights)
        if self._policy is None:
            critic = any(name.startswith("critic.") for name in tensors)
            envs = self.envs
            self._policy = ActorCritic(self._config.policy, envs.observation_space, envs.action_space, critic=critic)
            FlatParameters(self._policy)  # as in training, so that sums are taken in the same order
        load_policy(self._policy, tensors)
        return self._policy

    def close(self) -> None:
        """Close the envs, if there are any."""
        if self._envs is not None:
            self._envs.close()


def weights_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Hash of a policy's weights and statistics."""
    return digest(*(tensors[name] for name in sorted(tensors)))


def make_evaluation(config: RunConfig, env_config: EnvConfig) -> tuple[VectorEnv, TabularModel | None]:
    """Envs and transition table for evaluations of this run."""
    kind, _ = choose_vectorization(env_config)
    in_lanes = kind == "workers" and cores() >= MANY_CORES and by_lanes(env_config, config.eval.episodes)
    slots = eval_envs(config, native=in_lanes or kind in ("native", "envpool"))
    return make_envs(env_config, slots), tabular_model_of(env_config)


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
    evaluation.protocol = protocol_of(eval_env_config(config)[0])
    return evaluation

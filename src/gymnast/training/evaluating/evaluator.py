"""Evaluates policies in this process, on envs that are made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from safetensors.torch import load as from_bytes

from gymnast.algorithms import policy_for
from gymnast.config.schema import RunConfig
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError
from gymnast.evaluation.evaluate import Evaluation, of_all_tasks
from gymnast.evaluation.exact import TabularModel
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.training.diagnostics.tracing import digest
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.setup import EvalSetting, eval_settings, make_evaluation, run_evaluation
from gymnast.training.trainer import load_policy


class EvalWorkerError(Exception):
    """The evaluation worker raised, died, hung, or evaluated other weights than it was given."""


class _Stage:
    """The envs of one setting; they are made at the first evaluation."""

    def __init__(self, config: RunConfig, setting: EvalSetting) -> None:
        self.setting = setting
        self._config = config
        self._made: tuple[VectorEnv, TabularModel | None] | None = None

    @property
    def envs(self) -> VectorEnv:
        """The evaluation envs, made when first needed."""
        return self._parts()[0]

    def _parts(self) -> tuple[VectorEnv, TabularModel | None]:
        if self._made is None:
            self._made = make_evaluation(self._config, self.setting.env)
        return self._made

    def play(self, policy: Policy, watch: Callable[[VectorEnv], VectorEnv], **protocol: Any) -> Evaluation:
        """One evaluation under this setting."""
        envs, tabular = self._parts()
        setting = self.setting
        return run_evaluation(
            policy,
            self._config,
            watch(envs),
            tabular,
            env_config=setting.env,
            differences=setting.differences,
            **protocol,
        )

    def close(self) -> None:
        """Close the envs, if there are any."""
        if self._made is not None:
            self._made[0].close()


class Evaluator:
    """Keeps the evaluation envs of every setting."""

    def __init__(
        self, config: RunConfig, *, one_process: bool = False, settings: Sequence[EvalSetting] | None = None
    ) -> None:
        """`one_process` steps the envs here even where training has workers, which gives the same episodes.

        `settings` are those of the config unless the caller has changed them.
        """
        self._config = config
        self._policy: Policy | None = None
        settings = settings or eval_settings(config)
        if one_process:
            settings = [_in_process(setting) for setting in settings]
        self._together = all(setting.name for setting in settings)
        """Whether the settings are tasks, which count together."""
        self._first, *self._others = [_Stage(config, setting) for setting in settings]

    @property
    def envs(self) -> VectorEnv:
        """The envs of the setting that decides."""
        return self._first.envs

    def prepare(self) -> None:
        """Make all envs; under every setting they show what the policy reads and take what it does."""
        space, actions = self._first.envs.observation_space, self._first.envs.action_space
        for stage in self._others:
            if stage.envs.observation_space != space or stage.envs.action_space != actions:
                raise ConfigError(
                    f"'eval.env': under '{stage.setting.name}' the env has the spaces {stage.envs.observation_space} and "
                    f"{stage.envs.action_space}, which this policy cannot play: it is for {space} and {actions}."
                )

    def __call__(
        self,
        policy: Policy,
        turn: int,
        extent: Extent | None = None,
        on_episode: Callable[[int], None] | None = None,
        *,
        seed: int | None = None,
        watch: Callable[[VectorEnv], VectorEnv] = lambda envs: envs,
    ) -> Evaluation:
        """Evaluation number `turn` of the run: fresh episodes every time, the same ones after a resume.

        `watch` wraps envs for the caller. Further settings are played after the one that decides, as much of each.
        """
        self.prepare()
        if self._together:
            return self._all_tasks(policy, watch, extent, on_episode, turn=turn, seed=seed)
        evaluation = self._first.play(policy, watch, turn=turn, seed=seed, extent=extent, on_episode=on_episode)
        once = None if extent is None else replace(extent, confirm_at=None)
        for stage in self._others:
            played = stage.play(policy, watch, turn=turn, seed=seed, extent=once)
            evaluation.others[stage.setting.name] = played
        return evaluation

    def _all_tasks(
        self,
        policy: Policy,
        watch: Callable[[VectorEnv], VectorEnv],
        extent: Extent | None,
        on_episode: Callable[[int], None] | None,
        **which: Any,
    ) -> Evaluation:
        """The tasks of a plan one after the other, as much of each; they count together."""
        stages = (self._first, *self._others)
        amount = 0 if extent is None else extent.amount
        played = {}
        for number, stage in enumerate(stages):
            told = _share(on_episode, number, len(stages), amount)
            played[stage.setting.name] = stage.play(policy, watch, extent=extent, on_episode=told, **which)
        return of_all_tasks(played)

    def policy_of(self, weights: bytes) -> Policy:
        """A policy of this evaluator's own with saved weights (safetensors): nobody's training is touched."""
        tensors = from_bytes(weights)
        if self._policy is None:
            envs = self.envs
            self._policy = policy_for(self._config, envs.observation_space, envs.action_space)
            FlatParameters(self._policy)  # as in training, so that sums are taken in the same order
        load_policy(self._policy, tensors)
        return self._policy

    def close(self) -> None:
        """Close the envs, if there are any."""
        for stage in (self._first, *self._others):
            stage.close()


def _share(on_episode: Callable[[int], None] | None, before: int, tasks: int, amount: int) -> Callable[[int], None]:
    """Progress of one task's evaluation as a share of that of all, in what one task plays; so many come before it."""
    if on_episode is None:
        return lambda played: None
    return lambda played: on_episode((before * amount + played) // tasks)


def _in_process(setting: EvalSetting) -> EvalSetting:
    if setting.env.vectorization != "workers":
        return setting
    return replace(setting, env=setting.env.model_copy(update={"vectorization": "inprocess"}))


def weights_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Hash of a policy's weights and statistics."""
    return digest(*(tensors[name] for name in sorted(tensors)))

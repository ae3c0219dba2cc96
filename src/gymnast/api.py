"""The Python API (RUN-13): `gymnast.train(...)`, `gymnast.load(RUN).predict(obs)`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces

from gymnast.config.load import from_saved, resolve
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import executed, row
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.make import make_envs
from gymnast.envs.spaces import canonical, encoder, stack
from gymnast.errors import UsageError
from gymnast.evaluation.evaluate import tensors
from gymnast.hub.beginning import model_source
from gymnast.hub.references import check_reference, is_model_file
from gymnast.policies.actor_critic import ActorCritic
from gymnast.runs import checkpoint
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run, runs_root
from gymnast.training.loop import TrainResult
from gymnast.training.session import load_policy
from gymnast.training.train import train as train_run


def train(
    reference: str,
    *overrides: str,
    env_steps: int | None = None,
    vec_steps: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    runs_dir: str | Path | None = None,
    progress: bool = False,
    **settings: Any,
) -> TrainResult:
    """Train `ENV:VARIANT`. Further keys as strings (`"algo.gamma=0.98"`) or keywords (`gamma=0.98`, `algo__gamma=0.98`).

    `init_from="@last"` begins with the weights of another run; `progress=True` shows the live table.
    Returns where the run lies and how it was judged.
    """
    given = {"train.env_steps": env_steps, "train.vec_steps": vec_steps, "train.seed": seed, "train.device": device}
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    keys |= {name: value for name, value in given.items() if value is not None}
    resolved = resolve(reference, overrides, settings=keys, generic=generic_defaults)
    reporter = None
    if progress:
        from rich.console import Console

        from gymnast.training.report import Reporter

        reporter = Reporter(Console())
    root = runs_root(Path(runs_dir) if runs_dir else None)
    result = train_run(resolved, root, reporter=reporter, source=model_source(resolved.config))
    assert result is not None
    return result


class Agent:
    """A trained policy that takes raw env observations, single or batched."""

    def __init__(
        self,
        config: RunConfig,
        policy: ActorCritic,
        raw_space: spaces.Space,
        action_space: spaces.Space,
        run: Run | None,
        name: str,
        *,
        source: str = "",
        notices: Sequence[str] = (),
        only_deterministic: str | None = None,
    ) -> None:
        self.config = config
        self.policy = policy
        self.run = run
        """None for a model that gymnast did not train."""
        self.checkpoint = name
        self.source = source or f"run {run.id if run else '?'}, {name}"
        """Where the policy comes from, for messages."""
        self.notices = list(notices)
        """What the user should know about how it was loaded."""
        self.only_deterministic = only_deterministic
        self.observation_space = raw_space
        self.action_space = action_space
        self._canonical = policy.encoder.space
        self._encode = encoder(raw_space)
        self._generator = torch.Generator().manual_seed(config.train.seed)

    def predict(self, obs: Any, deterministic: bool = True, *, mask: np.ndarray | None = None) -> Any:
        """Action(s) for one observation or a batch, ready for `env.step`; continuous ones are clipped to the bounds."""
        self.check_sampling(deterministic)
        single = _is_single(obs, self.observation_space)
        items = [obs] if single else _rows(obs, self.observation_space)
        batch = tensors(stack([self._encode(item) if self._encode else item for item in items], self._canonical))
        masks = None if mask is None else torch.from_numpy(np.atleast_2d(mask).astype(bool))
        noise = None if deterministic else self.policy.distribution.noise((len(items),), self._generator)
        with torch.inference_mode():
            action = self.policy.act(batch, noise, masks)[0].numpy()
        actions = executed(action, self.action_space)
        return row(actions, 0) if single else actions

    def check_sampling(self, deterministic: bool) -> None:
        """Refuse sampled actions of a policy whose noise could not be taken over."""
        if self.only_deterministic and not deterministic:
            raise UsageError(f"{self.source} can only act deterministically: {self.only_deterministic}.")


def _is_single(obs: Any, space: spaces.Space) -> bool:
    """Whether `obs` is one observation of `space` rather than a batch."""
    if isinstance(space, spaces.Dict):
        key, part = next(iter(space.spaces.items()))
        return isinstance(obs, dict) and _is_single(obs[key], part)
    if isinstance(space, spaces.Tuple):
        return isinstance(obs, tuple) and len(obs) == len(space.spaces) and _is_single(obs[0], space.spaces[0])
    return np.shape(obs) == (space.shape or ())


def _rows(obs: Any, space: spaces.Space) -> list[Any]:
    """Single observations of a batch: a list of them, or batched part by part as Gymnasium's vector envs do."""
    if isinstance(obs, list):
        return obs
    if isinstance(space, spaces.Dict):
        parts = [_rows(obs[key], part) for key, part in space.spaces.items()]
        return [dict(zip(space.spaces, row, strict=True)) for row in zip(*parts, strict=True)]
    if isinstance(space, spaces.Tuple) and isinstance(obs, tuple):
        if len(obs) and isinstance(obs[0], tuple) and not isinstance(space.spaces[0], spaces.Tuple):
            return list(obs)  # a tuple of single observations
        return list(zip(*(_rows(part, inner) for part, inner in zip(obs, space.spaces, strict=True)), strict=True))
    return list(obs)


def load(
    reference: str | Path = "@last",
    *,
    env: str | None = None,
    vecnormalize: str | Path | Literal[False] | None = None,
    runs_dir: str | Path | None = None,
) -> Agent:
    """The policy of a run: its best checkpoint unless the reference names one (`@last/last`, `k3v9x/step=120000`).

    A Stable-Baselines3 PPO or A2C model (`model.zip`) needs the `env` it plays. VecNormalize statistics are found beside
    it, named by `vecnormalize`, or declined by `vecnormalize=False`.
    """
    check_reference(str(reference), env, vecnormalize)
    if is_model_file(str(reference)):
        return _load_model(Path(reference), str(env), vecnormalize)
    run, name = resolve_checkpoint(runs_root(Path(runs_dir) if runs_dir else None), str(reference))
    saved = checkpoint.load(run.folder / "checkpoints" / name, with_state=False)
    config = from_saved(run.config()).config
    return load_agent(config, saved, run, name)


def _load_model(path: Path, env: str, vecnormalize: str | Path | Literal[False] | None) -> Agent:
    """The policy of a Stable-Baselines3 model; nothing in its files is unpickled."""
    from gymnast.hub.sb3 import env_settings, read_model
    from gymnast.hub.sb3_policies import converter
    from gymnast.hub.vecnormalize import statistics_for

    model = read_model(path)
    convert = converter(model)
    resolved = env_settings(env)
    config = resolved.config
    statistics, found = statistics_for(path, config.env.id, vecnormalize)
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        space, raw = envs.observation_space, _raw_space(envs)
        model.check_spaces(space if isinstance(raw, spaces.Tuple) else raw, envs.action_space, config.env.id)
        net = convert(model, space)
        config = model.run_config(config, net.settings | statistics.policy_settings(), statistics.scales_reward)
        policy = ActorCritic(config.policy, space, envs.action_space)
        load_policy(policy, net.tensors | statistics.tensors(space, net.images))
        return Agent(
            config,
            policy,
            raw,
            envs.action_space,
            None,
            path.name,
            source=model.title,
            notices=[*resolved.notices, *found],
            only_deterministic=net.only_deterministic,
        )
    finally:
        envs.close()


def load_agent(config: RunConfig, saved: checkpoint.Checkpoint, run: Run, name: str) -> Agent:
    """Build the policy a checkpoint was saved from."""
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        critic = any(key.startswith("critic.") for key in saved.policy)
        policy = ActorCritic(config.policy, envs.observation_space, envs.action_space, critic=critic)
        load_policy(policy, saved.policy)
        raw = _raw_space(envs)
        return Agent(config, policy, raw, envs.action_space, run, name)
    finally:
        envs.close()


def _raw_space(envs: Any) -> spaces.Space:
    """The space `predict` accepts: the env's own when no wrapper changes observations, else the wrapped one."""
    inner = envs
    while hasattr(inner, "inner"):
        inner = inner.inner
    if canonical(inner.envs[0].observation_space) == envs.observation_space:
        return inner.envs[0].observation_space
    return envs.observation_space

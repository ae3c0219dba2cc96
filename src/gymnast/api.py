"""The Python API (RUN-13): `gymnast.train(...)`, `gymnast.load(RUN).predict(obs)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from gymnast.config.load import from_saved, resolve
from gymnast.config.schema import RunConfig
from gymnast.envs.registry import generic_defaults, make_envs
from gymnast.envs.spaces import canonical, encoder, stack
from gymnast.evaluation.evaluate import tensors
from gymnast.evaluation.trace import executed
from gymnast.policies.actor_critic import ActorCritic
from gymnast.runs import checkpoint
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run, runs_root
from gymnast.training.loop import TrainResult
from gymnast.training.loop import train as train_run
from gymnast.training.session import load_policy


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

    `progress=True` shows the live table. Returns where the run lies and how it was judged.
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
    result = train_run(resolved, runs_root(Path(runs_dir) if runs_dir else None), reporter=reporter)
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
        run: Run,
        name: str,
    ) -> None:
        self.config = config
        self.policy = policy
        self.run = run
        self.checkpoint = name
        self.observation_space = raw_space
        self.action_space = action_space
        self._canonical = policy.encoder.space
        self._encode = encoder(raw_space)
        self._generator = torch.Generator().manual_seed(config.train.seed)

    def predict(self, obs: Any, deterministic: bool = True, *, mask: np.ndarray | None = None) -> Any:
        """Action(s) for one observation or a batch, ready for `env.step`; continuous ones are clipped to the bounds."""
        single = _is_single(obs, self.observation_space)
        items = [obs] if single else _rows(obs)
        batch = tensors(stack([self._encode(item) if self._encode else item for item in items], self._canonical))
        masks = None if mask is None else torch.from_numpy(np.atleast_2d(mask).astype(bool))
        noise = None if deterministic else self.policy.distribution.noise((len(items),), self._generator)
        with torch.inference_mode():
            action = self.policy.act(batch, noise, masks)[0].numpy()
        action = executed(action, self.action_space)
        if not single:
            return action
        return int(action[0]) if isinstance(self.action_space, spaces.Discrete) else action[0]


def _is_single(obs: Any, space: spaces.Space) -> bool:
    """Whether `obs` is one observation of `space` rather than a batch."""
    if isinstance(space, spaces.Dict):
        key, part = next(iter(space.spaces.items()))
        return _is_single(obs[key], part)
    if isinstance(space, spaces.Tuple):
        return isinstance(obs, tuple) and len(obs) == len(space.spaces) and _is_single(obs[0], space.spaces[0])
    return np.shape(obs) == (space.shape or ())


def _rows(obs: Any) -> list[Any]:
    """Single observations of a batch; Gymnasium's vector envs batch Dict and Tuple observations part by part."""
    if isinstance(obs, dict):
        parts = [_rows(part) for part in obs.values()]
        return [dict(zip(obs, row, strict=True)) for row in zip(*parts, strict=True)]
    if isinstance(obs, tuple) and not isinstance(obs[0], tuple):
        return list(zip(*obs, strict=True))
    return list(obs)


def load(reference: str = "@last", *, runs_dir: str | Path | None = None) -> Agent:
    """The policy of a run: its best checkpoint unless the reference names one (`@last/last`, `k3v9x/step=120000`)."""
    run, name = resolve_checkpoint(runs_root(Path(runs_dir) if runs_dir else None), reference)
    saved = checkpoint.load(run.folder / "checkpoints" / name, with_state=False)
    config = from_saved(run.config()).config
    return load_agent(config, saved, run, name)


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

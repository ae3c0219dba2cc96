"""From a reference to an agent: the policy of a run, of a saved file, or of a Stable-Baselines3 model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from gymnasium import spaces
from torch import Tensor

from gymnast.algorithms import make_algorithm, own_trainer, policy_for
from gymnast.algorithms.base import coefficients
from gymnast.algorithms.credit import Credit
from gymnast.api.agent import Agent
from gymnast.api.files import is_agent_file, read_agent
from gymnast.api.objects import check_objects
from gymnast.api.process import left_as_it_was
from gymnast.api.run import as_run
from gymnast.api.settings import EnvLike, dotted, env_reference
from gymnast.config.schedule import Clock
from gymnast.config.schema import RunConfig
from gymnast.envs.make import make_envs
from gymnast.envs.spaces import canonical
from gymnast.hub.references import check_reference, is_model_file
from gymnast.policies import make_policy
from gymnast.runs.checkpoint import Checkpoint
from gymnast.runs.checkpoint import load as load_checkpoint
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run, runs_root
from gymnast.runs.trust import accept, usable, usable_config
from gymnast.training.showing.credit import credit_at
from gymnast.training.trainer import load_policy


def load(
    reference: str | Path | Run = "@last",
    *,
    checkpoint: str | None = None,
    env: EnvLike | None = None,
    encoder: Any = None,
    policy: Any = None,
    wrappers: Sequence[Any] | None = None,
    vecnormalize: str | Path | Literal[False] | None = None,
    runs_dir: str | Path | None = None,
    trust: bool = False,
) -> Agent:
    """The policy of a run: its best checkpoint unless the reference or `checkpoint` names one (`@last/last`, `step=120000`).

    A file that `Agent.save` has written is loaded as well, and a Stable-Baselines3 PPO or A2C model (`model.zip`) together
    with the `env` it plays. VecNormalize statistics are found next to it, named by `vecnormalize`, or declined by
    `vecnormalize=False`. A run that was made from objects (an env, an encoder, a policy, wrappers) needs them again in another
    program.

    A run from elsewhere imports nothing but the known env packages unless `trust=True` says that it may, once per run.
    """
    given: dict[str, Any] = {"encoder": encoder, "policy": policy, "wrappers": wrappers}
    keys = dotted({name: thing for name, thing in given.items() if thing is not None})
    named = str(reference.folder if isinstance(reference, Run) else reference)
    if is_model_file(named):
        check_reference(named, None if env is None else env_reference(env), vecnormalize)
        return _load_model(Path(named), str(env_reference(env)) if env is not None else "", vecnormalize)
    if isinstance(env, str) and not is_agent_file(named):
        check_reference(named, env)  # a run made by name has its own env; one made from an object gets that again
    if env is not None:
        keys["env.id"] = env_reference(env)
    check_reference(named, None, vecnormalize)
    if is_agent_file(named):
        return _load_file(Path(named), keys, trust=trust)
    if checkpoint is not None:
        named = f"{named}/{checkpoint}"
    run, name = resolve_checkpoint(runs_root(Path(runs_dir) if runs_dir else None), named)
    if trust:
        accept(run)
    check_objects(run, keys)
    config = usable(run, settings=keys).config
    saved = load_checkpoint(run.folder / "checkpoints" / name, with_state=False)
    return load_agent(config, saved, as_run(run), name)


def _load_file(path: Path, keys: dict[str, Any], *, trust: bool) -> Agent:
    """The agent of one file. It asks for trust every time, because a file does not show where it was made."""
    about, tensors = read_agent(path)
    config = usable_config(about["config"], str(path), keys, trust=trust).config
    return _agent(config, tensors, None, path.name, source=str(path))


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
        policy = make_policy(config.policy, space, envs.action_space)
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
            credit=None if statistics.scales_reward else functools.partial(_credit_of_model, config),
        )
    finally:
        envs.close()


def _credit_of_model(config: RunConfig) -> Credit:
    return Credit(make_algorithm(config.algo, 1), coefficients(config.algo, Clock(0, 0, 1.0)))


def load_agent(config: RunConfig, saved: Checkpoint, run: Run, name: str) -> Agent:
    """Build the policy a checkpoint was saved from."""
    on_policy = own_trainer(config.algo.id) is None  # others compute no advantages
    credit = None
    if on_policy:
        credit = functools.partial(credit_at, config, saved.folder)
    return _agent(config, saved.policy, run, name, credit=credit)


def _agent(config: RunConfig, tensors: dict[str, Tensor], run: Run | None, name: str, **about: Any) -> Agent:
    """The agent with these weights; its envs are made once, to know their spaces."""
    with left_as_it_was():
        envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
        try:
            policy = policy_for(config, envs.observation_space, envs.action_space)
            load_policy(policy, tensors)
            return Agent(config, policy, _raw_space(envs), envs.action_space, run, name, **about)
        finally:
            envs.close()


def _raw_space(envs: Any) -> spaces.Space:
    """The space `predict` accepts: the env's own when no wrapper changes observations, else the wrapped one."""
    inner = envs
    while hasattr(inner, "inner"):
        inner = inner.inner
    own: spaces.Space = inner.envs[0].observation_space
    seen: spaces.Space = envs.observation_space
    if canonical(own) == seen:
        return own
    return seen

"""EpisodeTrace: one episode with everything that shows or explains it. Videos, the inspector and reports all read this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gymnast.config.schedule import Clock, value_at
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import executed, plain
from gymnast.envs.families import rendering_advice
from gymnast.envs.make import make_envs
from gymnast.envs.registry import env_spec
from gymnast.envs.spaces import row, stack
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import skips_frames
from gymnast.envs.wrappers.rendering import no_window
from gymnast.errors import EnvError, UsageError
from gymnast.evaluation.evaluate import MAX_EPISODE_STEPS, tensors
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.distributions import Categorical
from gymnast.rollout.returns import discounted_returns, gae


@dataclass
class EpisodeTrace:
    """One episode, step by step. Lists have one entry per step; `observations` and `values` one more, for the end.

    `frames` shows the state before each step: the envs reset at once, so there is no picture of the end.
    """

    seed: int
    frames: list[np.ndarray] = field(default_factory=list)
    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    executed: list[Any] = field(default_factory=list)
    """What the env was given: the chosen action clipped to the bounds, or what a wrapper made of it."""
    repeats: list[int] | None = None
    """Under frame skip, the frames of each step; `executed` then holds a list with the action of each of them."""
    probabilities: list[np.ndarray] | None = None
    """Of each discrete action."""
    values: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    advantages: np.ndarray | None = None
    """GAE as training computes it; return − baseline without a critic."""
    returns: np.ndarray | None = None
    """Discounted Monte-Carlo returns."""
    infos: dict[str, Any] = field(default_factory=dict)
    terminated: bool = False
    fps: int = 30

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def ret(self) -> float:
        """Undiscounted return in the env's own reward."""
        return float(self.infos.get("episode_return", sum(self.rewards)))


def record_episode(
    policy: ActorCritic,
    config: RunConfig,
    *,
    seed: int,
    deterministic: bool = True,
    frames: bool = False,
) -> EpisodeTrace:
    """Play one episode and keep everything."""
    one = config.env.model_copy(update={"vectorization": "inprocess"})
    try:
        envs = make_envs(one, 1, render_mode="rgb_array" if frames else None)
    except UsageError:
        if frames:
            make_envs(one, 1).close()  # an env that cannot be made at all says so itself
            raise EnvError(f"{one.id} cannot render: it does not take render_mode='rgb_array'.") from None
        raise
    try:
        with no_window():
            return _record(policy, config, envs, seed, deterministic, frames)
    finally:
        envs.close()


def _frame(envs: VectorEnv, config: RunConfig) -> np.ndarray | None:
    try:
        return envs.render(0)
    except Exception as error:  # whatever the env's graphics library raises
        what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        advice = rendering_advice(env_spec(config.env.id, config.env.module))
        raise EnvError(f"{config.env.id} cannot render: it raised {what}.{advice}") from error


def _record(
    policy: ActorCritic, config: RunConfig, envs: VectorEnv, seed: int, deterministic: bool, frames: bool
) -> EpisodeTrace:
    trace = EpisodeTrace(seed, fps=_fps(envs))
    distribution = policy.distribution
    generator = torch.Generator().manual_seed(seed)
    step = envs.new_row()
    mask = None if step.mask is None else torch.from_numpy(step.mask)
    probabilities: list[np.ndarray] = []
    given: list[list[Any]] = []
    with torch.inference_mode():
        envs.reset([seed], step)
        for _ in range(MAX_EPISODE_STEPS):
            if frames and (frame := _frame(envs, config)) is not None:
                trace.frames.append(frame)
            obs = tensors(step.obs)
            noise = None if deterministic else distribution.noise((1,), generator)
            action, params, _ = policy.act(obs, noise, mask)
            trace.observations.append(_copy(row(step.obs, 0)))
            trace.values.append(float(policy.values(obs)[0]))
            if isinstance(distribution, Categorical):
                probabilities.append(torch.softmax(params[0], -1).numpy())
            chosen = action.numpy()
            trace.actions.append(chosen[0].tolist())
            ended = envs.step(chosen, step)
            given.append(envs.executed(0) or [executed(chosen[0], envs.action_space)])
            trace.rewards.append(float(step.reward[0]))
            if ended:
                break
        else:
            raise EnvError(f"The episode did not end within {MAX_EPISODE_STEPS:,} steps: set env.time_limit.")
        last = ended[0]
        final = tensors(stack([last.final_obs], envs.observation_space))
        trace.values.append(float(policy.values(final)[0]))
        trace.observations.append(_copy(last.final_obs))
    trace.terminated = last.terminated
    trace.infos = {**last.infos, "episode_return": last.ret}
    trace.probabilities = probabilities or None
    _executed(trace, given, config)
    _targets(trace, config, policy.has_critic)
    return trace


def _copy(obs: Any) -> Any:
    return {key: np.array(value) for key, value in obs.items()} if isinstance(obs, dict) else np.array(obs)


def _executed(trace: EpisodeTrace, given: list[list[Any]], config: RunConfig) -> None:
    """What the env was given in each step, frame by frame where frames are skipped."""
    if not skips_frames(config.env.wrappers):
        trace.executed = [plain(actions[0]) for actions in given]
        return
    trace.executed = [[plain(action) for action in actions] for actions in given]
    trace.repeats = [len(actions) for actions in given]
    trace.fps = max(
        1, round(trace.fps * len(given) / sum(trace.repeats))
    )  # a picture per step, played as fast as the game


def _targets(trace: EpisodeTrace, config: RunConfig, has_critic: bool) -> None:
    """Returns and advantages by the functions training uses, at the end of the schedules."""
    clock = Clock(0, 0, 1.0)
    gamma = value_at(config.algo.gamma, clock)
    reward = np.array(trace.rewards, np.float32)[:, None]
    last = np.zeros(reward.shape, np.bool_)
    last[-1] = True
    trace.returns = discounted_returns(reward, last, gamma)[:, 0]
    value = np.array(trace.values, np.float32)
    if has_critic and hasattr(config.algo, "gae_lambda"):
        ended = last if trace.terminated else np.zeros_like(last)
        advantage, _ = gae(
            reward,
            value[:-1, None],
            value[1:, None],
            ended,
            last & ~ended,
            gamma,
            value_at(config.algo.gae_lambda, clock),
        )
        trace.advantages = advantage[:, 0]
    else:
        baseline = value[:-1] if has_critic else trace.returns.mean()
        trace.advantages = trace.returns - baseline


def _fps(envs: VectorEnv) -> int:
    inner: Any = envs
    while hasattr(inner, "inner"):
        inner = inner.inner
    metadata = inner.envs[0].metadata if hasattr(inner, "envs") else {}
    return int(metadata.get("render_fps") or 30)

"""Unbiased vectorised evaluation (RUN-4): every env slot plays a fixed number of whole episodes.

Averaging the first episodes to finish favours short ones (13 instead of 255 in the test that shows it).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gymnast.envs.lanes import LanePool
from gymnast.envs.spaces import Observation
from gymnast.envs.vector import EndedEpisode, VectorEnv
from gymnast.errors import EnvError, NonFiniteError
from gymnast.evaluation.by_lanes import play_episodes
from gymnast.evaluation.exact import TabularModel, exact_return
from gymnast.policies.actor_critic import ActorCritic

MAX_EPISODE_STEPS = 1_000_000


@dataclass
class Evaluation:
    """Outcome of one evaluation and the protocol it was made under."""

    returns: list[float]
    lengths: list[int]
    successes: list[bool]
    deterministic: bool
    exact: float | None = None
    """Expected return computed from the transition table, where the env has one."""
    regrets: list[float] = field(default_factory=list)
    """Of each episode, where the env tells it: expected reward given away against its best actions."""
    differences: dict[str, Any] = field(default_factory=dict)
    """What the evaluation envs have other than the training envs."""
    protocol: dict[str, Any] | None = None
    """How the game was played, where scores of other protocols cannot be compared (Atari)."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return math.fsum(self.returns) / len(self.returns)

    @property
    def std(self) -> float:
        """Population standard deviation of returns."""
        return float(np.std(self.returns))

    def sentence(self) -> str:
        """`500.0 ± 0.0 over 100 episodes, deterministic`."""
        how = "deterministic" if self.deterministic else "sampled"
        exact = "" if self.exact is None else f" (exact expectation {self.exact:.4g})"
        regret = f", regret {_number(math.fsum(self.regrets) / len(self.regrets))}" if self.regrets else ""
        return f"{_number(self.mean)} ± {_number(self.std)} over {len(self.returns)} episodes, {how}{exact}{regret}"

    def metrics(self) -> dict[str, float | None]:
        """By catalogue name."""
        steps = sum(self.lengths)
        return {
            "eval/return_mean": self.mean,
            "eval/return_std": self.std,
            "eval/return_min": min(self.returns),
            "eval/return_max": max(self.returns),
            "eval/length_mean": steps / len(self.lengths),
            "eval/reward_per_step": math.fsum(self.returns) / max(steps, 1),
            "eval/success_rate": sum(self.successes) / len(self.successes) if self.successes else None,
            "eval/regret": math.fsum(self.regrets) / len(self.regrets) if self.regrets else None,
            "eval/episodes": float(len(self.returns)),
            "eval/exact_return": self.exact,
        }

    def as_json(self) -> dict[str, Any]:
        """For files and `--json`."""
        return {
            "mean": self.mean,
            "std": self.std,
            "min": min(self.returns),
            "max": max(self.returns),
            "episodes": len(self.returns),
            "length_mean": sum(self.lengths) / len(self.lengths),
            "success_rate": self.metrics()["eval/success_rate"],
            "regret": self.metrics()["eval/regret"],
            "deterministic": self.deterministic,
            "exact": self.exact,
            "differences": self.differences,
            "protocol": self.protocol,
        }


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


def quotas(episodes: int, n_envs: int) -> np.ndarray:
    """Episodes per slot, fixed before anything is played."""
    share, rest = divmod(episodes, n_envs)
    return np.array([share + (i < rest) for i in range(n_envs)])


def evaluate(
    policy: ActorCritic,
    envs: VectorEnv,
    episodes: int,
    seeds: Sequence[int],
    *,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    tabular: TabularModel | None = None,
    on_episode: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play `episodes` whole episodes on `envs`; nothing about the policy changes."""
    if isinstance(envs, LanePool):
        return _evaluate_lanes(policy, envs, episodes, seeds, deterministic, on_episode)
    left = quotas(episodes, envs.n_envs)
    result = Evaluation([], [], [], deterministic)
    row = envs.new_row()
    device = next(policy.parameters()).device
    generator = generator or torch.Generator(device).manual_seed(0)
    obs, mask = tensors(row.obs), None if row.mask is None else torch.from_numpy(row.mask)
    actions = np.zeros((envs.n_envs, *policy.distribution.action_shape), _numpy_dtype(policy))
    started = np.zeros(envs.n_envs, np.int64)  # step at which each slot's episode began
    with torch.inference_mode():
        envs.reset(seeds, row)
        for index in np.flatnonzero(left == 0).tolist():
            envs.rest(index)
        for step in itertools.count():
            noise = None if deterministic else policy.distribution.noise((envs.n_envs,), generator)
            action, _, _ = policy.act(_to(device, obs), noise, None if mask is None else mask.to(device))
            actions[...] = action.cpu().numpy()
            for episode in envs.step(actions, row):
                started[episode.index] = step + 1
                if left[episode.index] > 0:
                    left[episode.index] -= 1
                    if not left[episode.index]:
                        envs.rest(episode.index)
                    _record(result, episode)
                    if on_episode is not None:
                        on_episode(len(result.returns))
            if len(result.returns) == episodes:
                break
            if step >= MAX_EPISODE_STEPS and step - started[left > 0].min() >= MAX_EPISODE_STEPS:
                raise _endless()
        if tabular is not None and (mask is None or tabular.mask is not None):
            result.exact = exact(policy, tabular, deterministic=deterministic, masked=mask is not None)
    return result


def _evaluate_lanes(
    policy: ActorCritic,
    envs: LanePool,
    episodes: int,
    seeds: Sequence[int],
    deterministic: bool,
    on_episode: Callable[[int], None] | None,
) -> Evaluation:
    played: list[EndedEpisode] = []

    def take(episode: EndedEpisode) -> None:
        played.append(episode)
        if on_episode is not None:
            on_episode(len(played))

    share = quotas(episodes, envs.n_envs)
    if not play_episodes(
        policy, envs, share, seeds, deterministic=deterministic, most_steps=MAX_EPISODE_STEPS, on_episode=take
    ):
        raise _endless()
    result = Evaluation([], [], [], deterministic)
    for episode in sorted(played, key=lambda one: one.index):  # in the order of slots, whoever was faster
        _record(result, episode)
    return result


def _endless() -> EnvError:
    return EnvError("An evaluation episode does not end: set env.time_limit (eval.env.time_limit for evaluation only).")


def _record(result: Evaluation, episode: EndedEpisode) -> None:
    if not math.isfinite(episode.ret):
        raise NonFiniteError(
            f"The environment returned NaN or infinity (reward) in env {episode.index} of an evaluation: "
            f"the return of its episode of {episode.length} steps is {episode.ret}."
        )
    result.returns.append(episode.ret)
    result.lengths.append(episode.length)
    success = success_of(episode)
    if success is not None:
        result.successes.append(success)
    regret = regret_of(episode)
    if regret is not None:
        result.regrets.append(regret)


def success_of(episode: EndedEpisode) -> bool | None:
    """Whether the env called the episode a success; None when it does not say."""
    for key in ("is_success", "success"):
        if key in episode.infos:
            return bool(episode.infos[key])
    return None


def regret_of(episode: EndedEpisode) -> float | None:
    """The regret of the episode, where the env tells it (bandits do)."""
    regret = episode.infos.get("regret")
    return float(regret) if isinstance(regret, (int, float, np.floating)) else None


def exact(policy: ActorCritic, model: TabularModel, *, deterministic: bool = True, masked: bool = False) -> float:
    """Exact expected return of the policy under the env's transition table; `masked` where it acts under masks."""
    device = next(policy.parameters()).device
    states = torch.arange(len(model.initial_distribution), device=device)
    mask = torch.from_numpy(model.mask).to(device) if masked and model.mask is not None else None
    with torch.inference_mode():
        actions, params, _ = policy.act(states, None, mask)
        probabilities = torch.softmax(params, -1).cpu().numpy()
    if deterministic:
        probabilities = np.eye(probabilities.shape[1])[actions.cpu().numpy()]
    return exact_return(model.P, model.initial_distribution, probabilities, model.horizon)


def tensors(obs: Observation) -> Any:
    """Torch views of observation arrays."""
    if isinstance(obs, dict):
        return {key: torch.from_numpy(array) for key, array in obs.items()}
    return torch.from_numpy(obs)


def _to(device: torch.device, obs: Any) -> Any:
    if device.type == "cpu":
        return obs
    return {key: tensor.to(device) for key, tensor in obs.items()} if isinstance(obs, dict) else obs.to(device)


def _numpy_dtype(policy: ActorCritic) -> Any:
    return np.float32 if policy.distribution.action_dtype == torch.float32 else np.int64

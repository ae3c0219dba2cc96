"""Unbiased vectorised evaluation (RUN-4): every env slot plays a fixed number of whole episodes.

Averaging the first episodes to finish favours short ones (13 instead of 255 in the test that shows it).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gymnast.config.randomise import Drawn
from gymnast.envs.lanes import LanePool
from gymnast.envs.mixed import TASK
from gymnast.envs.randomising import PARAMETERS
from gymnast.envs.spaces import Observation
from gymnast.envs.time_limits import ENDLESS_ADVICE
from gymnast.envs.vector import EndedEpisode, VectorEnv
from gymnast.errors import EnvError, NonFiniteError
from gymnast.evaluation.by_lanes import play_episodes
from gymnast.evaluation.by_parameter import Part, by_parameter
from gymnast.evaluation.exact import TabularModel, exact_return
from gymnast.evaluation.quota import Quota
from gymnast.metrics.verdict import shown, spread
from gymnast.policies.base import Policy

MAX_EPISODE_STEPS = 1_000_000
SHARED_METRICS = (
    "eval/return_mean",
    "eval/return_std",
    "eval/length_mean",
    "eval/success_rate",
    "eval/exact_return",
    "eval/episodes",
)
"""What is logged of the further settings of `eval.env`, and of every task of a plan."""


@dataclass(repr=False)
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
    engine: str | None = None
    """What played the episodes where it was not Gymnasium's own env: `EnvPool 1.2.5`."""
    steps_before: int = 0
    """Env steps of a first look at fewer episodes, which do not count."""
    parameters: list[dict[str, Any]] = field(default_factory=list)
    """What was drawn for each episode, where the env is randomised."""
    randomise: Mapping[str, Drawn] = field(default_factory=dict)
    """What it was drawn from."""
    others: dict[str, Evaluation] = field(default_factory=dict)
    """The same weights under the further settings of `eval.env`, by name; they decide nothing."""
    of_tasks: bool = False
    """Whether the episodes are those of `others` together, which are then the tasks of a plan."""

    def __repr__(self) -> str:
        return f"Evaluation({self.sentence()})"

    @property
    def mean(self) -> float:
        """Mean return over all episodes."""
        return math.fsum(self.returns) / len(self.returns)

    @property
    def score(self) -> float:
        """What the evaluation counts: the exact expectation if there is one."""
        if self.exact is None:
            return self.mean
        return self.exact

    @property
    def std(self) -> float:
        """Population standard deviation of returns."""
        if min(self.returns) == max(self.returns):
            return 0.0  # the mean of equal returns may be off by a rounding error, and so would be their deviation
        return float(np.std(self.returns))

    @property
    def steps(self) -> int:
        """Env steps that were played, under all settings."""
        own = 0 if self.of_tasks else sum(self.lengths)
        return self.steps_before + own + sum(other.steps for other in self.others.values())

    def sentence(self, threshold: float | None = None) -> str:
        """`500.0 ± 0.0 over 100 episodes, deterministic`; no score is rounded across the threshold."""
        how = "deterministic" if self.deterministic else "sampled"
        exact = ""
        if self.exact is not None:
            exact = f" (exact expectation {shown(self.exact, threshold, digits=4)})"
        regret = ""
        if self.regrets:
            regret = f", regret {shown(math.fsum(self.regrets) / len(self.regrets))}"
        engine = "" if self.engine is None else f", played by {self.engine}"
        score = (
            f"{shown(self.mean, threshold)} ± {spread(self.std, self.mean)} over {len(self.returns)} episodes, {how}"
        )
        return f"{score}{engine}{exact}{regret}"

    def metrics(self) -> dict[str, float | None]:
        """What was measured, by catalogue name."""
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
            **{part.metric: part.mean for part in self.by_parameter()},
        } | self._metrics_of_others()

    def by_parameter(self) -> list[Part]:
        """Returns by what was drawn for the episodes; empty where nothing was."""
        return by_parameter(self.randomise, self.parameters, self.returns)

    def _metrics_of_others(self) -> dict[str, float | None]:
        """`eval.NAME/return_mean` and its like for every further setting."""
        return {
            metric.replace("eval/", f"eval.{name}/", 1): value
            for name, other in self.others.items()
            for metric, value in other.metrics().items()
            if metric in SHARED_METRICS
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
            "by_parameter": [part.as_json() for part in self.by_parameter()],
            "protocol": self.protocol,
            "engine": self.engine,
            "settings": {name: other.as_json() for name, other in self.others.items()},
        }


def of_all_tasks(evaluations: Mapping[str, Evaluation]) -> Evaluation:
    """One evaluation of all tasks, which were played for equally many episodes."""
    found = list(evaluations.values())
    exact = [one.exact for one in found if one.exact is not None]
    return Evaluation(
        [ret for one in found for ret in one.returns],
        [length for one in found for length in one.lengths],
        [success for one in found for success in one.successes],
        found[0].deterministic,
        exact=math.fsum(exact) / len(exact) if len(exact) == len(found) else None,
        regrets=[regret for one in found for regret in one.regrets],
        engine=next((one.engine for one in found if one.engine is not None), None),
        others=dict(evaluations),
        of_tasks=True,
    )


def evaluate(
    policy: Policy,
    envs: VectorEnv,
    episodes: int,
    seeds: Sequence[int],
    *,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    tabular: TabularModel | None = None,
    on_episode: Callable[[int], None] | None = None,
    most_steps: int | None = None,
    steps: int | None = None,
) -> Evaluation:
    """Play `episodes` whole episodes on `envs`; nothing about the policy changes.

    With `steps` every slot plays its share of them and then its last episode to the end. `on_episode` is called with
    how many episodes, or steps, have been played. An episode of more than `most_steps` is an error.
    """
    most_steps = most_steps or MAX_EPISODE_STEPS
    quota = Quota(envs.n_envs, episodes, steps)
    if isinstance(envs, LanePool) and policy.state_shape is None:
        return _evaluate_lanes(policy, envs, quota, seeds, deterministic, on_episode, most_steps)
    result = Evaluation([], [], [], deterministic)
    row = envs.new_row()
    device = next(policy.parameters()).device
    generator = generator or torch.Generator(device).manual_seed(0)
    obs, mask = tensors(row.obs), None if row.mask is None else torch.from_numpy(row.mask)
    actions = np.zeros((envs.n_envs, *policy.distribution.action_shape), _numpy_dtype(policy))
    started = np.zeros(envs.n_envs, np.int64)  # step at which each slot's episode began
    state = policy.initial_state(envs.n_envs)
    with torch.inference_mode():
        envs.reset(seeds, row)
        for index in np.flatnonzero(~quota.open).tolist():
            envs.rest(index)
        for step in itertools.count():
            noise = None
            if not deterministic:
                noise = policy.distribution.noise((envs.n_envs,), generator)
            outputs = policy.act(_to(device, obs), noise, None if mask is None else mask.to(device), state)
            actions[...] = outputs["action"].cpu().numpy()
            state = outputs.get("state")
            for episode in envs.step(actions, row):
                started[episode.index] = step + 1
                if state is not None:
                    state[episode.index] = 0.0
                if quota.take(episode.index, episode.length):
                    if quota.rests(episode.index):
                        envs.rest(episode.index)
                    _record(result, episode)
                    if on_episode is not None:
                        on_episode(quota.played)
            if not quota.open.any():
                break
            if step >= most_steps and step - started[quota.open].min() >= most_steps:
                raise _endless(most_steps)
        # A policy's memory is not part of the table's states.
        known = tabular is not None and policy.state_shape is None
        if tabular is not None and known and (mask is None or tabular.mask is not None):
            result.exact = exact(policy, tabular, deterministic=deterministic, masked=mask is not None)
    return result


def _evaluate_lanes(
    policy: Policy,
    envs: LanePool,
    quota: Quota,
    seeds: Sequence[int],
    deterministic: bool,
    on_episode: Callable[[int], None] | None,
    most_steps: int,
) -> Evaluation:
    played: list[EndedEpisode] = []

    def take(episode: EndedEpisode) -> None:
        played.append(episode)
        if on_episode is not None:
            on_episode(quota.played)

    if not play_episodes(
        policy, envs, quota, seeds, deterministic=deterministic, most_steps=most_steps, on_episode=take
    ):
        raise _endless(most_steps)
    result = Evaluation([], [], [], deterministic)
    for episode in sorted(played, key=lambda one: one.index):  # in the order of slots, whoever was faster
        _record(result, episode)
    return result


def _endless(steps: int) -> EnvError:
    return EnvError(f"An evaluation episode does not end: {steps:,} steps were played. Please {ENDLESS_ADVICE}.")


def _record(result: Evaluation, episode: EndedEpisode) -> None:
    if not math.isfinite(episode.ret):
        raise NonFiniteError(
            f"The environment returned NaN or infinity (reward) in env {episode.index} of an evaluation: "
            f"the return of its episode of {episode.length} steps is {episode.ret}."
        )
    result.returns.append(episode.ret)
    result.lengths.append(episode.length)
    result.parameters.append(dict(episode.infos.get(PARAMETERS, {})))
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


def task_of(episode: EndedEpisode) -> str | None:
    """The task of a plan that the episode was of; None if there is only one."""
    task: str | None = episode.infos.get(TASK)
    return task


def regret_of(episode: EndedEpisode) -> float | None:
    """The regret of the episode, where the env tells it (bandits do)."""
    regret = episode.infos.get("regret")
    if isinstance(regret, (int, float, np.floating)):
        return float(regret)
    return None


def exact(policy: Policy, model: TabularModel, *, deterministic: bool = True, masked: bool = False) -> float:
    """Exact expected return of the policy under the env's transition table; `masked` where it acts under masks."""
    device = next(policy.parameters()).device
    n_states = len(model.initial_distribution)
    if model.observations is None:
        states = torch.arange(n_states)
    else:
        states = torch.from_numpy(model.observations)
    mask = None
    if masked and model.mask is not None:
        mask = torch.from_numpy(model.mask).to(device)
    with torch.inference_mode():
        outputs = policy.act(states.to(device), None, mask)
        probabilities = torch.softmax(outputs["params"], -1).cpu().numpy()
    if deterministic:
        probabilities = np.eye(probabilities.shape[1])[outputs["action"].cpu().numpy()]
    return exact_return(model.P, model.initial_distribution, probabilities, model.horizon)


def tensors(obs: Observation) -> Any:
    """Torch views of observation arrays."""
    if isinstance(obs, dict):
        return {key: torch.from_numpy(array) for key, array in obs.items()}
    return torch.from_numpy(obs)


def _to(device: torch.device, obs: Any) -> Any:
    if device.type == "cpu":
        return obs
    if isinstance(obs, dict):
        return {key: tensor.to(device) for key, tensor in obs.items()}
    return obs.to(device)


def _numpy_dtype(policy: Policy) -> Any:
    if policy.distribution.action_dtype == torch.float32:
        return np.float32
    return np.int64

"""EpisodeTrace: one episode with everything that shows or explains it. Videos, the inspector and reports all read this."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import plain
from gymnast.envs.spaces import row as obs_row
from gymnast.envs.time_limits import longest_episode
from gymnast.envs.vector import EndedEpisode
from gymnast.envs.wrappers import skips_frames
from gymnast.errors import EnvError, UsageError
from gymnast.evaluation.acting import Actor, Choice
from gymnast.evaluation.evaluate import MAX_EPISODE_STEPS
from gymnast.evaluation.film import Caption, Film
from gymnast.evaluation.stage import DEFAULT_FPS, Stage
from gymnast.evaluation.terms import reward_terms
from gymnast.policies.base import Policy
from gymnast.rollout.returns import Floats, Steps


class Credit(Protocol):
    """What the run's own learner makes of steps (`gymnast.algorithms.credit`)."""

    def returns(self, steps: Steps) -> Floats:
        """Discounted returns [T, N]."""

    def advantages(self, steps: Steps) -> Floats:
        """Advantages [T, N] as training computes them."""

    def td_errors(self, steps: Steps) -> Floats | None:
        """One-step errors of the critic [T, N]; None without bootstrapping."""


@dataclass(frozen=True)
class Play:
    """How an episode is played other than by the policy alone, for the inspector."""

    temperature: float = 1.0
    forced: Mapping[int, Any] = field(default_factory=dict)
    """Actions by step that are taken whatever the policy says."""
    most_steps: int | None = None
    """Where the episode is cut off."""
    on_step: Callable[[int], None] = lambda step: None
    """Called with the number of steps taken."""


@dataclass
class EpisodeTrace:
    """One episode, step by step. Lists have one entry per step; `frames`, `observations` and `values` one more, for the end."""

    seed: int
    frames: list[np.ndarray] = field(default_factory=list)
    """The picture before each step and that of the final state; empty when a film took them."""
    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    executed: list[Any] = field(default_factory=list)
    """What the env was given: the chosen action clipped to the bounds, or what a wrapper made of it."""
    repeats: list[int] | None = None
    """Under frame skip, the frames of each step; `executed` then holds a list with the action of each of them."""
    probabilities: list[np.ndarray] | None = None
    """Of each discrete action."""
    masks: list[np.ndarray] = field(default_factory=list)
    """Which discrete actions were possible; empty if the env has no masks."""
    values: list[float] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    """Of the chosen actions, as the policy samples."""
    rewards: list[float] = field(default_factory=list)
    """After wrappers, before the learner scales them."""
    own_rewards: list[float] = field(default_factory=list)
    """The env's own, before any wrapper of rewards."""
    terms: list[dict[str, float]] = field(default_factory=list)
    """What the env says its reward is made of, and what each term of `env.rewards` added."""
    terminations: list[bool] = field(default_factory=list)
    """A lost life may set it before the end."""
    truncations: list[bool] = field(default_factory=list)
    advantages: np.ndarray | None = None
    """As the run's algorithm computes them, by its own reward scale and baseline; None without a `Credit`."""
    td_errors: np.ndarray | None = None
    """r + γ V(next) − V(here), by the same functions; None for algorithms that do not bootstrap."""
    returns: np.ndarray | None = None
    """Discounted Monte-Carlo returns in the learner's reward scale, which is that of `values`."""
    infos: dict[str, Any] = field(default_factory=dict)
    terminated: bool = False
    cut: bool = False
    """Whether the deadline came before the end of the episode."""
    fps: float = DEFAULT_FPS
    """Pictures per second; under frame skip fewer than the game has frames."""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def ret(self) -> float:
        """Undiscounted return in the env's own reward."""
        return float(self.infos.get("episode_return", sum(self.own_rewards or self.rewards)))


def record_episode(
    policy: Policy,
    env: EnvConfig,
    *,
    seed: int,
    deterministic: bool = True,
    credit: Credit | None = None,
    frames: bool = False,
    film: Film | None = None,
    deadline: float | None = None,
    play: Play | None = None,
) -> EpisodeTrace:
    """Play one episode and keep everything: pictures in the trace with `frames`, or only for the `film`.

    A `deadline` (of `time.perf_counter`) cuts the episode short; its last picture is then that of the moment.
    """
    pictures = _Kept() if frames else film
    stage = Stage(env, drawn=pictures is not None)
    try:
        trace = _Recorder(policy, stage, pictures, seed, deterministic, deadline, play or Play()).record(credit)
    finally:
        stage.close()
    if isinstance(pictures, _Kept):
        trace.frames = pictures.frames
    return trace


class _Kept:
    """Pictures of a trace."""

    def __init__(self) -> None:
        self.frames: list[np.ndarray] = []

    @property
    def black(self) -> bool:
        """Whether the env drew nothing."""
        return not any(frame.any() for frame in self.frames)

    def begin(self, fps: float) -> None:
        """Nothing to prepare: frames are only kept."""

    def wants(self, frame: int) -> bool:
        """All of them."""
        return True

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        """Envs may draw into the same array again."""
        self.frames.append(picture.copy())


class _Recorder:
    """Plays one episode on a stage."""

    def __init__(
        self,
        policy: Policy,
        stage: Stage,
        film: Film | None,
        seed: int,
        deterministic: bool,
        deadline: float | None,
        play: Play,
    ) -> None:
        self.stage, self.film, self.deadline, self.play = stage, film, deadline, play
        self.actor = Actor(policy, deterministic=deterministic, temperature=play.temperature)
        self._distribution = policy.distribution
        self.trace = EpisodeTrace(seed, fps=stage.fps)
        self.frame = 0
        """Frames of the game so far."""
        self.ret = 0.0
        """The env's own rewards so far."""
        self.given: list[list[Any]] = []

    def record(self, credit: Credit | None) -> EpisodeTrace:
        """Play one episode to its end and return its trace."""
        trace, stage = self.trace, self.stage
        if self.film is not None:
            self.film.begin(stage.fps)
        if self.actor.gives_probabilities:
            trace.probabilities = []
        stage.reset(trace.seed)
        self.actor.begin(trace.seed)
        last = self._steps()
        final_obs = obs_row(stage.row.obs, 0) if last is None else last.final_obs
        trace.values.append(self.actor.value_of(final_obs))
        trace.observations.append(_copy(final_obs))
        if last is not None:
            trace.terminated = last.terminated
            trace.infos = {**last.infos, "episode_return": last.ret}
        if self.film is not None:
            picture = stage.draw() if last is None else stage.final_picture
            assert picture is not None
            self.film.add(picture, self.frame, self._caption(ending=_ending(trace)))
        self._note_executed()
        if credit is not None:
            self._note_credit(credit)
        return trace

    def _steps(self) -> EndedEpisode | None:
        """Step until the episode ends; None if the deadline came first."""
        trace, stage = self.trace, self.stage
        most = min(longest_episode(stage.config), MAX_EPISODE_STEPS)
        for _ in range(most):
            ended = self._step()
            if ended is not None:
                return ended
            self.play.on_step(len(trace))
            if len(trace) == self.play.most_steps:
                trace.cut = True
                return None
            if self.deadline is not None and time.perf_counter() > self.deadline:
                trace.cut = True
                return None
        raise EnvError(f"The episode did not end within {most:,} steps: set env.time_limit.")

    def _step(self) -> EndedEpisode | None:
        trace, stage = self.trace, self.stage
        row = stage.row
        picture = stage.draw() if self.film is not None and self.film.wants(self.frame) else None
        trace.observations.append(_copy(obs_row(row.obs, 0)))
        choice = self.actor.act(row)
        if row.mask is not None:
            trace.masks.append(row.mask[0].copy())
        if len(trace) in self.play.forced:
            choice = self._forced(choice, self.play.forced[len(trace)])
        trace.values.append(choice.value)
        if trace.probabilities is not None and choice.probabilities is not None:
            trace.probabilities.append(choice.probabilities)
        trace.log_probs.append(choice.log_prob)
        trace.actions.append(choice.actions[0].tolist())
        if self.film is not None and picture is not None:
            self.film.add(picture, self.frame, self._caption(action=trace.actions[-1], value=choice.value))
        ended = stage.step(choice.actions)
        self.given.append(stage.given(choice.actions))
        self.frame += len(self.given[-1])
        trace.rewards.append(float(row.reward[0]))
        trace.own_rewards.append(float(row.reward[0] if row.own_reward is None else row.own_reward[0]))
        self.ret += trace.own_rewards[-1]
        trace.terms.append({**reward_terms(stage.info), **stage.reward_terms})
        trace.terminations.append(bool(row.terminated[0]))
        trace.truncations.append(bool(row.truncated[0]))
        return ended

    def _forced(self, choice: Choice, action: Any) -> Choice:
        """The same opinion of the policy with another action."""
        actions = np.asarray(action, choice.actions.dtype).reshape(choice.actions.shape)
        count = getattr(self._distribution, "n_params", 0)
        if choice.probabilities is not None and not 0 <= int(actions[0]) < count:
            raise UsageError(f"Action {action} cannot be forced: there are the actions 0 to {count - 1}.")
        log_prob = math.nan
        if choice.probabilities is not None:
            log_prob = float(np.log(choice.probabilities[int(actions[0])]))
        return choice._replace(actions=actions, log_prob=log_prob)

    def _caption(self, action: Any = None, value: float = 0.0, ending: str = "") -> Caption:
        trace = self.trace
        known = self.actor.has_values and not ending
        reward = trace.own_rewards[-1] if trace.own_rewards else None
        return Caption(len(trace), action, value if known else None, reward, self.ret, ending)

    def _note_executed(self) -> None:
        """What the env was given in each step, frame by frame where frames are skipped."""
        trace, given = self.trace, self.given
        if not skips_frames(self.stage.config.wrappers):
            trace.executed = [plain(actions[0]) for actions in given]
            return
        trace.executed = [[plain(action) for action in actions] for actions in given]
        trace.repeats = [len(actions) for actions in given]
        trace.fps = max(1.0, self.stage.fps * len(given) / self.frame)

    def _note_credit(self, credit: Credit) -> None:
        """Returns and advantages by the functions training uses."""
        trace = self.trace
        value = np.array(trace.values, np.float32)[:, None]
        steps = Steps(
            np.array(trace.rewards, np.float32)[:, None],
            value[:-1],
            value[1:],
            np.array(trace.terminations)[:, None],
            np.array(trace.truncations)[:, None],
        )
        td_errors = credit.td_errors(steps)
        if td_errors is not None:
            trace.td_errors = td_errors[:, 0]
        trace.returns = credit.returns(steps)[:, 0]
        trace.advantages = credit.advantages(steps)[:, 0]


def _ending(trace: EpisodeTrace) -> str:
    if trace.cut:
        return "the film ends here, the episode goes on"
    if trace.terminated:
        return "end of the episode"
    return "time limit"


def _copy(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {key: np.array(value) for key, value in obs.items()}
    return np.array(obs)

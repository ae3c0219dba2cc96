"""What is played as a Minari dataset: every step of the bare env, unstacked and unwrapped, replayable from its seed."""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.inprocess import own_copy
from gymnast.errors import MissingPackageError, UsageError
from gymnast.evaluation.stage import Stage
from gymnast.later import Later
from gymnast.play.recording import Start, Step

if TYPE_CHECKING:
    from minari import data_collector as collector
    from minari.storage import datasets_root_dir as places
else:
    collector, places = Later("minari.data_collector"), Later("minari.storage.datasets_root_dir")

ID = re.compile(r"(?:[A-Za-z0-9][\w-]+/)*[A-Za-z0-9][\w-]*", re.ASCII)
"""What Minari accepts, less what could lead out of its folder."""
VERSION = re.compile(r"-v\d+$")
MOST_LETTERS = 120
MOST_VERSIONS = 10_000
MOST_TEXT = 1000
"""Letters of a text in an observation."""


@dataclass
class Episode:
    """One episode of the bare env, from reset to reset."""

    seed: int | None
    observations: list[Any]
    """One more than there are actions."""
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


def free_id(wanted: str) -> str:
    """The id of a new dataset. Without a version (`-v0`) it gets the first one that is free."""
    minari = _minari()
    name = wanted.strip()
    if len(name) > MOST_LETTERS or ID.fullmatch(name) is None:
        raise UsageError(
            f"'{wanted[:MOST_LETTERS]}' is no id of a dataset: write it as (namespace/)name(-vN) with letters, digits, "
            "- and _, and a namespace of two letters or more: cartpole/human-v0."
        )
    if VERSION.search(name) is None:
        for version in range(MOST_VERSIONS):
            if not _is_taken(minari, f"{name}-v{version}"):
                return f"{name}-v{version}"
    if _is_taken(minari, name):
        raise UsageError(f"There is a dataset '{name}' already. Choose another id, or leave out the version.")
    return name


class DatasetRecorder:
    """Writes each episode as it ends. One that was cut short is kept and marked as truncated, as Minari does it."""

    def __init__(self, dataset_id: str) -> None:
        self.dataset_id = free_id(dataset_id)
        self.episodes = self.steps = 0
        self._dataset: Any = None
        self._current: Episode | None = None
        self._complete: Episode | None = None
        """The one before the last reset: an env that ends an episode has already been reset when the step is reported."""
        self._played = False
        """Whether any action was played in the episode."""
        self._env: gym.Env | None = None
        self._observations: spaces.Space = spaces.Dict()
        self._actions: spaces.Space = spaces.Dict()

    # As the listener of the bare env.

    def began(self, seed: int | None, obs: Any) -> None:
        """Another episode begins."""
        self._complete, self._current = self._current, Episode(seed, [self._raw(obs)])

    def stepped(self, action: Any, obs: Any, reward: Any) -> None:
        """Keep one step, in memory of its own."""
        if self._current is not None:
            self._current.observations.append(self._raw(obs))
            self._current.actions.append(own_copy(action))
            self._current.rewards.append(float(reward))

    # As the recorder of a session.

    def attach(self, stage: Stage) -> None:
        """Listen to the bare env from now on."""
        self._env = env = stage.bare_env
        self._observations = writable(getattr(env, "unstacked_space", env.observation_space))
        self._actions = writable(env.action_space)
        stage.listen(self)

    def begin(self, start: Start) -> None:
        """The episode before this one, if it was left without an end, is kept as far as it went."""
        if self._played and self._complete is not None:
            self._write(self._complete, terminated=False)
        self._played, self._complete = False, None

    def step(self, step: Step) -> None:
        """Somebody acted; write the episode where that ended it."""
        self._played = True
        if step.ended is None:
            return
        episode = self._complete or self._current
        if episode is not None:
            self._write(episode, terminated=step.ended.terminated)
        self._played, self._complete = False, None

    def close(self) -> None:
        """Keep the episode that is being played, as far as it went."""
        if self._played and self._current is not None:
            self._write(self._current, terminated=False)
        self._played, self._current = False, None

    def _raw(self, obs: Any) -> Any:
        unstacked = getattr(self._env, "unstacked", None)
        if unstacked is not None:
            obs = unstacked(obs)
        return own_copy(obs)

    def _write(self, episode: Episode, *, terminated: bool) -> None:
        assert self._env is not None
        minari = _minari()

        env, length = self._env, len(episode.actions)
        ends = [False] * (length - 1)
        buffer = collector.EpisodeBuffer(
            seed=episode.seed,
            observations=columns(self._observations, episode.observations),
            actions=columns(self._actions, episode.actions),
            rewards=episode.rewards,
            terminations=[*ends, terminated],
            truncations=[*ends, not terminated],
        )
        if self._dataset is not None:
            self._dataset.storage.update_episodes([buffer])
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is no author, no reference score, …
                self._dataset = minari.create_dataset_from_buffers(
                    self.dataset_id,
                    [buffer],
                    env=_json_spec(env),
                    observation_space=self._observations,
                    action_space=self._actions,
                    algorithm_name="gymnast play",
                    description=_description(env),
                    jpeg_encoding=False,  # which would change the pixels
                )
        self.episodes += 1
        self.steps += length


def writable(space: spaces.Space) -> spaces.Space:
    """The same space in the kinds that Minari writes: texts of any kind become `Text`."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: writable(part) for key, part in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([writable(part) for part in space.spaces])
    if isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete, spaces.Text)):
        return space
    if isinstance(space.sample(), str):  # MiniGrid's missions
        return spaces.Text(MOST_TEXT, charset=string.printable)
    raise UsageError(f"A Minari dataset cannot hold what the env gives: {type(space).__name__}.")


def columns(space: spaces.Space, values: Sequence[Any]) -> Any:
    """A list of samples as Minari wants them: for Dict and Tuple spaces one list per part."""
    if isinstance(space, spaces.Dict):
        return {key: columns(part, [value[key] for value in values]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(columns(part, [value[i] for value in values]) for i, part in enumerate(space.spaces))
    if isinstance(space, spaces.Text):
        return list(values)
    return [np.asarray(value, space.dtype) for value in values]


def _json_spec(env: gym.Env) -> Any:
    """The spec from which Minari makes the env again; None if it cannot be written."""
    if env.spec is None:
        return None
    try:
        env.spec.to_json()
    except (TypeError, ValueError, AttributeError):
        return None
    return env.spec


def _description(env: gym.Env) -> str:
    name = type(env).__name__ if env.spec is None else env.spec.id
    return f"{name}, played with gymnast. Observations are those of the bare env, unstacked; each episode has its seed."


def _is_taken(minari: Any, name: str) -> bool:
    return bool(places.get_dataset_path(name).exists())


def _minari() -> Any:
    """The one place that imports it."""
    try:
        import h5py  # noqa: F401 - which Minari asks for only when it writes
        import minari
    except ModuleNotFoundError as error:
        if error.name not in ("minari", "h5py"):
            raise
        raise MissingPackageError("A Minari dataset", "minari") from None
    return minari

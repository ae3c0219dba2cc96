"""Parameters of an env that are drawn anew for every episode (ENV-10), from a generator of each slot's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.config.randomise import Choices, Drawn
from gymnast.config.schema import EnvConfig
from gymnast.envs.closing import close
from gymnast.envs.families import class_path, family_of, family_of_env, where
from gymnast.envs.families.family import Family, within
from gymnast.envs.families.parameters import Parameter, attribute
from gymnast.envs.registry import env_spec
from gymnast.envs.wrappers.actions import ActionNoise
from gymnast.envs.wrappers.generators import seeded
from gymnast.envs.wrappers.parts import changed_parts
from gymnast.envs.wrappers.single import RandomWrapper, Reset, Step
from gymnast.errors import ConfigError, did_you_mean

PARAMETERS = "parameters"
"""In the info of every step and reset: what was drawn for the episode."""
ACTION_NOISE, OBSERVATION_NOISE = "action_noise", "observation_noise"
NOISES = (ACTION_NOISE, OBSERVATION_NOISE)
"""Parameters that every env has: noise between it and the agent."""
SEEDS = 2**31
Remake = Callable[[dict[str, Any]], gym.Env]


def randomised(env: gym.Env, draws: Mapping[str, Drawn], difficulty: float, remake: Remake) -> gym.Env:
    """The env with parameters that are drawn for every episode; `remake` gives another with other arguments."""
    if ACTION_NOISE in draws:
        box = isinstance(env.action_space, spaces.Box)
        env = ActionNoise(env, **({"std": 0.0} if box else {"probability": 0.0}))
    if OBSERVATION_NOISE in draws:
        env = EpisodeNoise(env)
    return Parameters(env, draws, difficulty, remake)


class EpisodeNoise(RandomWrapper):
    """Gaussian noise on Box observations, clipped to their bounds, of a size that differs by episode."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.std = 0.0
        self._parts = changed_parts(env.observation_space, OBSERVATION_NOISE)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Disturb the first observation."""
        obs, info = super().reset(seed=seed, options=options)
        return self._noisy(obs), info

    def step(self, action: Any) -> Step:
        """Step, and disturb what is seen."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._noisy(obs), float(reward), terminated, truncated, info

    def _noisy(self, obs: Any) -> Any:
        changed = {key: self._disturbed(obs[key] if key else obs, space) for key, space in self._parts.items()}
        if isinstance(obs, dict):
            return {**obs, **changed}
        return changed[""]

    def _disturbed(self, value: Any, space: spaces.Box) -> np.ndarray:
        noisy = np.clip(value + self.std * self.random.standard_normal(space.shape), space.low, space.high)
        if np.issubdtype(space.dtype, np.integer):
            noisy = np.rint(noisy)
        made: np.ndarray = noisy.astype(space.dtype)
        return made


class Parameters(RandomWrapper):
    """Draws the parameters of every episode and sets them before its reset.

    One that the env reads only when it is made costs a new env per episode.
    """

    def __init__(self, env: gym.Env, draws: Mapping[str, Drawn], difficulty: float, remake: Remake) -> None:
        super().__init__(env)
        self._remake, self._difficulty = remake, difficulty
        self._known = known_parameters(env)
        self._arguments = {}
        if not set(draws) <= set(self._known):
            self._arguments = arguments_of(env)
        self._draws = dict(draws)
        self.drawn: dict[str, Any] = {}
        """The parameters of the episode that runs."""
        self._usual = {name: self._usual_value(name) for name in self._draws}
        for name, drawn in self._draws.items():
            self._check_bounds(name, drawn)

    @property
    def remakes(self) -> bool:
        """Whether an episode has an env of its own, whose state cannot be put into another one."""
        return any(name not in self._known for name in self._draws)

    def _usual_value(self, name: str) -> Any:
        """What the env has without being randomised."""
        if name in self._known:
            return self._known[name].get(self)
        if name in self._arguments:
            given = self.unwrapped.spec.kwargs if self.unwrapped.spec is not None else {}
            return given.get(name, self._arguments[name])
        known = sorted({*self._known, *self._arguments, *NOISES})
        raise ConfigError(
            f"env.randomise: {type(self.unwrapped).__name__} has no parameter '{name}'.{did_you_mean(name, known)} "
            f"Parameters: {', '.join(known)}."
        )

    def _check_bounds(self, name: str, drawn: Drawn) -> None:
        if name not in self._known:
            return
        one = self._known[name]
        values = drawn.choices if isinstance(drawn, Choices) else [drawn.low, drawn.high]
        for value in values:
            if isinstance(self._usual[name], (int, float)) != isinstance(value, (int, float)):
                raise ConfigError(
                    f"env.randomise.{name} ({one.about}) is {self._usual[name]!r} and cannot be {value!r}."
                )
            if isinstance(value, (int, float)) and not one.low <= value <= one.high:
                bounds = f"at least {one.low:g}"
                if math.isfinite(one.high):
                    bounds = f"{one.low:g} to {one.high:g}"
                    if not math.isfinite(one.low):
                        bounds = f"at most {one.high:g}"
                raise ConfigError(f"env.randomise.{name} ({one.about}) is {bounds}, so it cannot be {value:g}.")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Draw, set, and begin the episode."""
        if seed is not None:
            self.random = seeded(seed, self._place)
        self._set({name: self._draw(name, drawn) for name, drawn in self._draws.items()})
        if self.remakes:
            own = int(self.random.integers(SEEDS))  # of the new env, whose generator nobody has seeded
            seed = own if seed is None else seed
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, {**info, PARAMETERS: self.drawn}

    def _draw(self, name: str, drawn: Drawn) -> Any:
        share = self.random.random()  # one number each, whatever it is for
        if isinstance(drawn, Choices):
            return drawn.choices[int(share * len(drawn.choices))]
        low, high, usual = drawn.low, drawn.high, self._usual[name]
        number = isinstance(usual, (int, float)) and not isinstance(usual, bool)
        if number:
            low, high = (usual + self._difficulty * (end - usual) for end in (low, high))
        if number and isinstance(usual, int) and drawn.low.is_integer() and drawn.high.is_integer():
            low, high = round(low), round(high)
            return int(low + math.floor(share * (high - low + 1)))
        return low + share * (high - low)

    def _set(self, values: dict[str, Any]) -> None:
        if self.remakes and values != self.drawn:
            self._replace({name: value for name, value in values.items() if name not in self._known})
        for name, value in values.items():
            if name in self._known:
                self._known[name].set(self, value)
        self.drawn = values

    def _replace(self, arguments: dict[str, Any]) -> None:
        """Another bare env in the place of the one inside all layers."""
        bare = self._remake(_plain(arguments, self._usual)).unwrapped
        spaces_before = self.unwrapped.observation_space, self.unwrapped.action_space
        if (bare.observation_space, bare.action_space) != spaces_before:
            close(bare)
            raise ConfigError(
                f"env.randomise: with {arguments} the env has other observations or actions, which one policy cannot serve."
            )
        holder: Any = self
        while holder.env is not holder.unwrapped:
            holder = holder.env
        close(holder.env)
        holder.env = bare

    def step(self, action: Any) -> Step:
        """Step, and say under which parameters."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(reward), terminated, truncated, {**info, PARAMETERS: self.drawn}

    def save_state(self) -> dict[str, Any]:
        """The generator and what was drawn."""
        return {**super().save_state(), "drawn": dict(self.drawn)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue an episode under its parameters."""
        super().load_state(state)
        if state["drawn"]:
            self._set(dict(state["drawn"]))


def declared_parameters(config: EnvConfig) -> dict[str, Parameter]:
    """What the record of the env's family declares; no env is made."""
    spec = env_spec(config.id, config.module)
    family = family_of(spec)
    if family is None:
        return {}
    if family.prepare is not None:
        spec = family.prepare(spec, config, None)
    return _declared(family, where(spec))


def _declared(family: Family, path: str) -> dict[str, Parameter]:
    """By the path of the class."""
    return {name: one for home, some in family.parameters.items() if within(path, home) for name, one in some.items()}


def known_parameters(env: gym.Env) -> dict[str, Parameter]:
    """What can be set on an env from the outside, as functions of its outermost layer."""
    family = family_of_env(env)
    declared: Mapping[str, Parameter] = {}
    if family is not None:
        declared = _declared(family, class_path(env))
    else:
        declared = {name: attribute(name, "an attribute of the env") for name in _numbers_of(env.unwrapped)}
    found = {name: _of_bare(one) for name, one in declared.items()}
    for layer_type, name, field in ((ActionNoise, ACTION_NOISE, ""), (EpisodeNoise, OBSERVATION_NOISE, "std")):
        layer = _layer(env, layer_type)
        if layer is not None:
            found[name] = _of_layer(layer_type, field or _size_of(layer), "noise between env and agent")
    return found


def _of_bare(one: Parameter) -> Parameter:
    return Parameter(
        one.about,
        lambda env: one.get(env.unwrapped),
        lambda env, value: one.set(env.unwrapped, value),
        one.low,
        one.high,
    )


def _of_layer(kind: type[gym.Wrapper], field: str, about: str) -> Parameter:
    def get(env: gym.Env) -> Any:
        return getattr(_layer(env, kind), field)

    def put(env: gym.Env, value: Any) -> None:
        setattr(_layer(env, kind), field, value)

    return Parameter(about, get, put, low=0.0, high=1.0 if field == "probability" else math.inf)


def _size_of(noise: Any) -> str:
    return "probability" if noise.std is None else "std"


def _layer(env: gym.Env, kind: type[gym.Wrapper]) -> Any:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None


def _numbers_of(bare: Any) -> list[str]:
    """Attributes of a user's env that are numbers."""
    return [
        name
        for name, value in vars(bare).items()
        if not name.startswith("_") and isinstance(value, (int, float)) and not isinstance(value, bool)
    ]


def arguments_of(env: gym.Env) -> dict[str, Any]:
    """The arguments that the env is made with, by their defaults; those of base classes count where a class passes them on."""
    found: dict[str, Any] = {}
    for kind in type(env.unwrapped).__mro__:
        if "__init__" not in vars(kind):
            continue
        parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        for one in parameters:
            named = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            if named and one.name not in ("self", "render_mode"):
                found.setdefault(one.name, None if one.default is one.empty else one.default)
        if not any(one.kind == one.VAR_KEYWORD for one in parameters):
            break
    return found


def _plain(arguments: dict[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Whole numbers and truth values as the env's own arguments are: a config has floats."""
    made = {}
    for name, value in arguments.items():
        kind = type(usual.get(name))
        made[name] = kind(value) if kind in (int, bool) and isinstance(value, float) else value
    return made


__all__ = ["NOISES", "PARAMETERS", "Parameters", "randomised"]

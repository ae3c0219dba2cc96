"""Box2D: LunarLander, BipedalWalker and CarRacing, with episodes that can be repeated. State is saved by replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family, Package
from gymnast.envs.families.parameters import Parameter, attribute
from gymnast.envs.keyboard import Axes, Choices, Push, by_id

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.keyboard import Controls, KeyMap


DISCRETE = {
    "LunarLander": Choices({"left": 1, "up": 2, "right": 3}, idle=0),
    "CarRacing": Choices({"right": 1, "left": 2, "up": 3, "down": 4}, idle=0),
}
CONTINUOUS = {
    "LunarLander": Axes(
        {
            "up": Push({0: 1.0}, "main engine"),
            "left": Push({1: -1.0}, "left engine"),
            "right": Push({1: 1.0}, "right engine"),
        },
        [0.0, 0.0],
    ),
    "CarRacing": Axes(
        {
            "left": Push({0: -1.0}, "steer left"),
            "right": Push({0: 1.0}, "steer right"),
            "up": Push({1: 1.0}, "gas"),
            "down": Push({2: 0.8}, "brake"),
        },
        [0.0, 0.0, 0.0],
    ),
}
"""By the beginning of the id."""


def _keyboard(controls: Controls) -> KeyMap | None:
    """By whether the env was made with discrete actions."""
    continuous = bool(controls.space.shape)
    return by_id(CONTINUOUS if continuous else DISCRETE)(controls)


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.box2d.worlds import prepare

    return prepare(spec)


def _wind(env: Any, value: float) -> None:
    _let_wind_blow(env)
    env.wind_power = value


def _turbulence(env: Any, value: float) -> None:
    _let_wind_blow(env)
    env.turbulence_power = value


def _let_wind_blow(env: Any) -> None:
    """One switch is for both, so whatever is not asked for is still."""
    if not env.enable_wind:
        env.enable_wind, env.wind_power, env.turbulence_power = True, 0.0, 0.0


PARAMETERS = {
    "gymnast.envs.families.box2d.worlds.LunarLander": {
        "gravity": attribute("gravity", "in m/s²", low=-12, high=-0.1),
        "wind_power": Parameter("wind", lambda env: env.wind_power * env.enable_wind, _wind, 0, 20),
        "turbulence_power": Parameter(
            "turbulence", lambda env: env.turbulence_power * env.enable_wind, _turbulence, 0, 2
        ),
        "engine_power": attribute("engine_power", "times the usual power of all engines", low=0.1, high=10),
        "initial_push": attribute("initial_push", "times the usual random push at the beginning", low=0, high=10),
    },
}

BOX2D = Family(
    name="box2d",
    title="Box2D",
    homes=("gymnasium.envs.box2d", "gymnast.envs.families.box2d"),
    package=Package("Box2D", "box2d", extra="box2d"),
    prepare=_prepare,
    step_milliseconds=0.04,
    slower={"gymnasium.envs.box2d.car_racing": 4.0},
    parameters=PARAMETERS,
    draws_anywhere=True,
    keyboard=_keyboard,
)

"""Classic control: Gymnasium's five small problems, CartPole also as one numpy program over all envs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family, Package
from gymnast.envs.families.parameters import attribute
from gymnast.envs.keyboard import Axes, Choices, Push, by_id

if TYPE_CHECKING:
    from gymnast.config.schema import EnvConfig
    from gymnast.envs.families.family import NativeForm
    from gymnast.envs.keyboard import KeyMap

HOME = "gymnasium.envs.classic_control"

KEYS: dict[str, KeyMap] = {
    "CartPole": Choices({"left": 0, "right": 1}),  # no action leaves the cart alone, so time waits for a key
    "Acrobot": Choices({"left": 2, "right": 0}, idle=1),
    "MountainCar": Choices({"left": 0, "right": 2}, idle=1),
    "MountainCarContinuous": Axes(
        {"left": Push({0: -1.0}, "full force left"), "right": Push({0: 1.0}, "full force right")}, [0.0]
    ),
    "Pendulum": Axes(
        {
            "left": Push({0: 2.0}, "torque +2"),
            "right": Push({0: -2.0}, "torque -2"),
            "a": Push({0: 0.7}, "torque +0.7"),
            "d": Push({0: -0.7}, "torque -0.7"),
        },
        [0.0],
    ),
}
"""By the beginning of the id."""


def _masses(env: Any) -> None:
    """What CartPole computes from its parameters once, when it is made."""
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length


PARAMETERS = {
    f"{HOME}.cartpole.CartPoleEnv": {
        "gravity": attribute("gravity", "in m/s²", low=0),
        "masscart": attribute("masscart", "mass of the cart in kg", low=0.01, then=_masses),
        "masspole": attribute("masspole", "mass of the pole in kg", low=0.001, then=_masses),
        "length": attribute("length", "half of the pole's length in m", low=0.01, then=_masses),
        "force_mag": attribute("force_mag", "force of a push in N", low=0),
    },
    f"{HOME}.acrobot.AcrobotEnv": {
        "link_length_1": attribute("LINK_LENGTH_1", "length of the upper link in m", low=0.01),
        "link_mass_1": attribute("LINK_MASS_1", "mass of the upper link in kg", low=0.01),
        "link_mass_2": attribute("LINK_MASS_2", "mass of the lower link in kg", low=0.01),
        "torque_noise_max": attribute("torque_noise_max", "uniform noise on the torque", low=0),
    },
    f"{HOME}.mountain_car.MountainCarEnv": {
        "force": attribute("force", "of the engine", low=0),
        "gravity": attribute("gravity", "of the valley", low=0),
    },
    f"{HOME}.continuous_mountain_car.Continuous_MountainCarEnv": {
        "power": attribute("power", "of the engine", low=0),
    },
    f"{HOME}.pendulum.PendulumEnv": {
        "g": attribute("g", "gravity in m/s²", low=0),
        "m": attribute("m", "mass in kg", low=0.01),
        "l": attribute("l", "length in m", low=0.01),
    },
}


def _native(config: EnvConfig) -> NativeForm | str:
    from gymnast.envs.families.classic.cartpole import native_cartpole

    return native_cartpole(config)


CLASSIC = Family(
    name="classic",
    title="classic control, toy text",
    homes=(HOME, "gymnast.envs.families.classic"),
    package=Package("gymnasium", "gymnasium", required=True),
    native=_native,
    step_milliseconds=0.01,
    fields={
        f"{HOME}.cartpole.CartPoleEnv": ("state", "steps_beyond_terminated"),
        f"{HOME}.acrobot.AcrobotEnv": ("state",),
        f"{HOME}.mountain_car.MountainCarEnv": ("state",),
        f"{HOME}.continuous_mountain_car.Continuous_MountainCarEnv": ("state",),
        f"{HOME}.pendulum.PendulumEnv": ("state", "last_u"),
    },
    parameters=PARAMETERS,
    draws_anywhere=True,
    keyboard=by_id(KEYS),
)

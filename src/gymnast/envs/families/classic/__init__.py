"""Classic control: Gymnasium's five small problems, CartPole also as one numpy program over all envs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family, Package
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
    draws_anywhere=True,
    keyboard=by_id(KEYS),
)

"""Box2D envs whose episodes can be repeated.

BipedalWalker and CarRacing reuse one physics world. It remembers earlier episodes in the order of its contacts, so the same
seed and actions lead to other last digits each time. Here every episode gets a new world, as Gymnasium does for
LunarLander since v3 (its issue 728); the first episode of an env is the package's to the bit.
"""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

import Box2D
from gymnasium.envs.box2d import bipedal_walker, car_racing, lunar_lander
from gymnasium.envs.registration import EnvSpec


class BipedalWalker(bipedal_walker.BipedalWalker):
    """Walks in a new world in every episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """A new world, then the package's reset."""
        self._destroy()
        self.world = Box2D.b2World()
        return super().reset(seed=seed, options=options)


class CarRacing(car_racing.CarRacing):
    """Drives in a new world in every episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """A new world, then the package's reset."""
        self._destroy()
        self.world = Box2D.b2World((0, 0))
        return super().reset(seed=seed, options=options)


class LunarLander(lunar_lander.LunarLander):
    """The package's lander, with engines and a first push that can be made stronger or weaker.

    Their strengths are constants of the package's module, which all landers of a process share. So another strength is the
    package's own function with other constants.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.engine_power = 1.0
        self.initial_push = 1.0
        self._strengths = (1.0, 1.0)
        self._own_step = self._own_reset = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Engines may have another power from now on."""
        if self._strengths != (self.engine_power, self.initial_push):
            self._strengths = self.engine_power, self.initial_push
            self._change_functions()
        if self._own_reset is not None:
            return self._own_reset(self, seed=seed, options=options)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """The package's step, with the power of this lander's engines."""
        if self._own_step is not None:
            return self._own_step(self, action)
        return super().step(action)

    def _change_functions(self) -> None:
        self._own_step = self._own_reset = None
        if self.engine_power != 1.0:
            self._own_step = _with_constants(
                lunar_lander.LunarLander.step,
                MAIN_ENGINE_POWER=lunar_lander.MAIN_ENGINE_POWER * self.engine_power,
                SIDE_ENGINE_POWER=lunar_lander.SIDE_ENGINE_POWER * self.engine_power,
            )
        if self.initial_push != 1.0:
            self._own_reset = _with_constants(
                lunar_lander.LunarLander.reset, INITIAL_RANDOM=lunar_lander.INITIAL_RANDOM * self.initial_push
            )


def _with_constants(function: Any, **constants: float) -> Any:
    """The same function of the package's module, with other constants."""
    code, closure = function.__code__, function.__closure__
    assert all(name in code.co_names for name in constants), (
        f"{function.__qualname__} no longer reads {list(constants)}"
    )
    made = FunctionType(code, {**vars(lunar_lander), **constants}, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


OURS = {
    "gymnasium.envs.box2d.lunar_lander:LunarLander": LunarLander,
    "gymnasium.envs.box2d.bipedal_walker:BipedalWalker": BipedalWalker,
    "gymnasium.envs.box2d.car_racing:CarRacing": CarRacing,
}


def prepare(spec: EnvSpec) -> EnvSpec:
    """Make ours instead of the package's."""
    ours = OURS.get(str(spec.entry_point))
    if ours:
        return dataclasses.replace(spec, entry_point=f"{__name__}:{ours.__name__}")
    return spec

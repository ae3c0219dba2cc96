"""Box2D envs whose episodes can be repeated.

BipedalWalker and CarRacing reuse one physics world. It remembers earlier episodes in the order of its contacts, so the same
seed and actions lead to other last digits each time. Here every episode gets a new world, as Gymnasium does for
LunarLander since v3 (its issue 728); the first episode of an env is the package's to the bit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import Box2D
from gymnasium.envs.box2d import bipedal_walker, car_racing
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


OURS = {
    "gymnasium.envs.box2d.bipedal_walker:BipedalWalker": BipedalWalker,
    "gymnasium.envs.box2d.car_racing:CarRacing": CarRacing,
}


def prepare(spec: EnvSpec) -> EnvSpec:
    """Make ours instead of the package's."""
    ours = OURS.get(str(spec.entry_point))
    if ours:
        return dataclasses.replace(spec, entry_point=f"{__name__}:{ours.__name__}")
    return spec

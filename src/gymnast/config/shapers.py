"""The reward shapers that are shipped, by name. Most are expressions, so that one can be read, copied and changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from gymnast.config.wrappers import Settings, problem_of
from gymnast.errors import did_you_mean


@dataclass(frozen=True)
class Recipe:
    """A term that is an expression, or the potential of one that leaves the best policy as it is."""

    about: str
    expression: str = ""
    potential: str = ""


class CountBonus(Settings):
    """What a state is counted by."""

    components: list[str] = Field(default_factory=list)
    """Names of components of the observation; all of them by default."""
    bins: int = Field(20, ge=1, le=10_000)
    """Equal parts of each component's range."""


RECIPES = {
    "cartpole_centring": Recipe(
        "CartPole: 0 in the middle of the track, -1 at its ends", expression="-(cart_position / 2.4) ** 2"
    ),
    "lunar_lander_potential": Recipe(
        "LunarLander: nearer to the pad, slower and more upright is better",
        potential="-hypot(horizontal_position, height_above_the_pad) - hypot(horizontal_velocity, vertical_velocity)"
        " - abs(angle)",
    ),
    "mountain_car_potential": Recipe(
        "MountainCar: the car's energy, 0 at rest on the top of the hill and -1 at rest in the valley",
        potential="600 * (velocity ** 2 / 2 + 0.0025 / 3 * (sin(3 * position) - 1))",
    ),
    "pong_hits": Recipe(
        "Pong from objects: 1 for every ball that the player returns",
        expression="ball_visible and before.ball_visible and before.ball_dx > 0 and ball_dx < 0",
    ),
    "pong_tracking": Recipe(
        "Pong from objects: the paddle is level with a ball that comes towards it",
        potential="-abs(ball_below_player) / 210 if ball_visible and ball_dx > 0 else 0",
    ),
    **{
        f"vizdoom_{event}": Recipe(f"ViZDoom: {about}", expression=f"info.{event} - before.info.{event}")
        for event, about in {
            "damage": "points of damage that were dealt",
            "health": "points of health that were won; lost ones cost",
            "hits": "1 for every hit",
            "items": "1 for every item that was picked up",
            "kills": "1 for every kill",
        }.items()
    },
    "vizdoom_damage_taken": Recipe(
        "ViZDoom: minus the points of damage that were taken", expression="before.info.damage_taken - info.damage_taken"
    ),
    "vizdoom_shots": Recipe(
        "ViZDoom: every bullet that is fired costs 1",
        expression="-max(before.info.ammo - info.ammo, 0) if info.weapon == before.info.weapon else 0",
    ),
    "time_penalty": Recipe("any env: every step costs 1", expression="-1"),
}
COUNT_BONUS = "count_bonus"
CLASSES: dict[str, tuple[str, type[Settings]]] = {
    COUNT_BONUS: ("any env: 1 divided by the root of how often the env copy has been in this state", CountBonus)
}
"""Shapers that are no expressions: what they are about, and their arguments."""
NAMES = sorted([*RECIPES, *CLASSES])


def unknown(name: str, *plugins: str) -> str:
    """What to say about a shaper that does not exist."""
    known = [*NAMES, *plugins]
    return f"unknown shaper '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}"


def arguments(name: str, args: dict[str, Any]) -> Settings | None:
    """The checked arguments of a shipped shaper; None if it takes none."""
    if name in RECIPES:
        if args:
            raise ValueError(f"shaper '{name}' has no argument '{next(iter(args))}': it takes none besides its weight")
        return None
    model = CLASSES[name][1]
    try:
        return model.model_validate(args)
    except ValidationError as error:
        raise ValueError(f"shaper '{name}' {problem_of(model, error.errors()[0])}") from None

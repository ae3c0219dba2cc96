"""The arguments of a game (`env.kwargs`), checked."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError

from gymnast.config.model import Model
from gymnast.errors import ConfigError, did_you_mean

INSTEAD = {
    "scenario_config_file": "config",
    "config_file": "config",
    "doom_map": "map",
    "skill_level": "doom_skill",
    "skill": "doom_skill",
    "max_buttons_pressed": "most_buttons",
    "screen_resolution": "screen: [height, width]",
    "screen_format": "gray: true or false",
    "episode_timeout": "timeout",
    "available_buttons": "buttons",
    "available_game_variables": "variables",
    "frameskip": "frame_skip",
}
"""What the package or its cfg files call the same."""


class VizdoomSettings(Model):
    """Which game, what is seen of it, and what the agent may press."""

    config: str = "basic.cfg"
    """The scenario: a cfg file by its path, or one of ViZDoom's by its name."""
    wad: str | None = None
    """A WAD by its path instead of the one that the cfg names: a whole game (doom.wad) or a scenario."""
    map: str | None = None
    """The map instead of the one that the cfg names."""
    doom_skill: int | None = Field(None, ge=1, le=5)
    """How hard monsters hit and how many there are, 1 to 5, instead of what the cfg says."""
    frame_skip: PositiveInt = 4
    """Tics per step of the agent; Doom has 35 in a second."""
    timeout: NonNegativeInt | None = None
    """Tics after which an episode is cut off, instead of what the cfg says; 0 is never."""
    screen: tuple[PositiveInt, PositiveInt] = (120, 160)
    """Height and width of the picture. The engine draws the smallest size that is no smaller; the rest is shrinking."""
    gray: bool = True
    """One channel of brightness instead of three of colour."""
    variables: list[str] | None = None
    """Game variables next to the picture, by their names in ViZDoom, instead of the cfg's; an empty list is the picture alone."""
    buttons: list[str] | None = None
    """Buttons of the agent instead of the cfg's."""
    actions: Literal["combinations", "multi"] | list[str] = "combinations"
    """`combinations` of buttons that go together, one choice per group of buttons that do not (`multi`), or a list of labels:
    `[NOOP, ATTACK, MOVE_LEFT+ATTACK, TURN_LEFT_RIGHT_DELTA=-10]`."""
    most_buttons: PositiveInt = 2
    """Buttons in one combination at most."""
    delta: PositiveFloat = 10.0
    """Degrees, or units of movement per tic, by which a delta button is pressed either way."""
    start: str | None = None
    """A saved game by its path, from which every episode begins."""


def settings_of(kwargs: dict[str, Any]) -> VizdoomSettings:
    """The arguments as a model; one sentence for the first that cannot be."""
    for key in kwargs:
        if key not in VizdoomSettings.model_fields:
            instead = f" Say {INSTEAD[key]}." if key in INSTEAD else did_you_mean(key, VizdoomSettings.model_fields)
            known = ", ".join(VizdoomSettings.model_fields)
            raise ConfigError(f"A ViZDoom game has no env.kwargs.{key}.{instead} It has {known}.")
    try:
        return VizdoomSettings.model_validate(kwargs)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        message = str(problem["msg"]).rstrip(".")
        raise ConfigError(f"env.kwargs.{name}: {message[:1].lower()}{message[1:]} (got {kwargs[name]!r}).") from None

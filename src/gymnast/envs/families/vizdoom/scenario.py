"""From the arguments of a game to files that exist and a map that is in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.envs.families.vizdoom.settings import VizdoomSettings
from gymnast.envs.families.vizdoom.wads import is_whole_game, maps_in
from gymnast.errors import MissingPackageError, UsageError, did_you_mean

FREE = "freedoom2.wad"
"""The game in which ViZDoom plays scenarios whose cfg names none."""
ADVICE = (
    "ViZDoom ships no commercial WAD. Give the path of yours (env.kwargs.wad=/path/to/{name}), or play the free "
    "env.kwargs.wad=freedoom1.wad."
)


@dataclass(frozen=True)
class Scenario:
    """What is played, before the agent's own choices."""

    config: Path
    game: Path
    """The WAD of the whole game."""
    patch: Path | None
    """The WAD on top of it."""
    map: str
    skill: int
    buttons: tuple[str, ...]
    variables: tuple[str, ...]
    start_time: int
    """Tics that pass before the agent's first step."""
    timeout: int
    """Tics after which an episode is cut off; 0 is never."""
    start: Path | None
    """A saved game from which every episode begins."""


def package() -> Any:
    """ViZDoom."""
    try:
        import vizdoom
    except ImportError:
        raise MissingPackageError("ViZDoom games", "vizdoom") from None
    return vizdoom


def scenario_of(settings: VizdoomSettings) -> Scenario:
    """What the cfg says, with what the arguments change; a sentence for every file that is missing."""
    config = _config_path(settings.config)
    game = package().DoomGame()
    game.load_config(str(config))
    whole, patch = _wads(game, settings)
    map_name = _map(settings.map or game.get_doom_map(), whole, patch, named=settings.map is not None)
    return Scenario(
        config=config,
        game=whole,
        patch=patch,
        map=map_name,
        skill=settings.doom_skill or game.get_doom_skill(),
        buttons=tuple(button.name for button in game.get_available_buttons()),
        variables=tuple(variable.name for variable in game.get_available_game_variables()),
        start_time=game.get_episode_start_time(),
        timeout=game.get_episode_timeout() if settings.timeout is None else settings.timeout,
        start=None if settings.start is None else _start(settings.start),
    )


def _config_path(name: str) -> Path:
    vizdoom = package()
    places = [Path(name).expanduser(), Path(vizdoom.scenarios_path) / name]
    for path in places:
        if path.is_file():
            return path.resolve()
    hint = did_you_mean(name, vizdoom.configs)
    raise UsageError(
        f"There is no scenario '{name}' (env.kwargs.config).{hint} Give the path of a cfg file, or one of ViZDoom's: "
        f"{', '.join(vizdoom.configs)}."
    )


def _start(name: str) -> Path:
    path = Path(name).expanduser()
    if path.is_file():
        return path.resolve()
    raise UsageError(f"The saved game '{name}' is missing (env.kwargs.start): `save_game` of an env writes one.")


def _wads(game: Any, settings: VizdoomSettings) -> tuple[Path, Path | None]:
    """The whole game and what lies on top of it."""
    vizdoom = package()
    named_game, named_patch = game.get_doom_game_path(), game.get_doom_scenario_path()
    if settings.wad is not None:
        wad = _found(settings.wad, "env.kwargs.wad")
        if is_whole_game(wad):
            return wad, None
        named_patch = str(wad)
    patch = _found(named_patch, f"named by {settings.config}") if named_patch else None
    if named_game:
        return _found(named_game, f"named by {settings.config}"), patch
    return Path(vizdoom.install_path) / FREE, patch


def _found(name: str, by: str) -> Path:
    """A WAD by its path, or one that ships with ViZDoom by its name."""
    vizdoom = package()
    path = Path(name).expanduser()
    for place in (path, Path(vizdoom.install_path) / path.name, Path(vizdoom.scenarios_path) / path.name):
        if place.is_file():
            return place.resolve()
    shown = name if by.startswith("env.kwargs") else path.name  # a cfg's path is where ViZDoom would have looked
    raise UsageError(f"The WAD '{shown}' is missing ({by}). {ADVICE.format(name=path.name)}")


def _map(name: str, game: Path, patch: Path | None, *, named: bool) -> str:
    """The map's name, once it is known to be there: the engine would wait for a missing one for ever."""
    there = maps_in(game)
    if patch is not None:
        there = list(dict.fromkeys([*maps_in(patch), *there]))
    if name.upper() in there:
        return name
    where = game.name if patch is None else f"{patch.name} and {game.name}"
    asked = "env.kwargs.map" if named else "the map of the cfg; env.kwargs.map names another"
    raise UsageError(
        f"There is no map '{name}' in {where} ({asked}).{did_you_mean(name, there)} There are {', '.join(there)}."
    )

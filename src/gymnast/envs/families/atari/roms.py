"""The games' ROMs: where ale-py keeps them, and what to do when one is missing."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec

from gymnast.config.atari import AtariConfig
from gymnast.config.schema import EnvConfig
from gymnast.envs.families.atari import HOME
from gymnast.envs.registry import env_spec
from gymnast.errors import MissingPackageError, UsageError

FOLDER = "ALE_ROMS_DIR"
"""The environment variable that names another folder of ROMs for ale-py."""


def ale_py() -> Any:
    """The package, quiet about everything but errors."""
    try:
        import ale_py
    except ImportError:
        raise MissingPackageError("Atari games", "atari") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def game_of(config: EnvConfig) -> str:
    """The game's name in ale-py: `space_invaders` of ALE/SpaceInvaders-v5."""
    return str(env_spec(config.id, config.module).kwargs["game"])


def game_spec(spec: EnvSpec, protocol: AtariConfig) -> EnvSpec:
    """The record to make our env from, instead of ale-py's."""
    game = str(spec.kwargs["game"])
    rom_path(game)  # a missing one is said in a sentence of its own
    kwargs = {"game": game, "protocol": protocol}
    return dataclasses.replace(spec, entry_point=f"{HOME}.game:AtariGame", vector_entry_point=None, kwargs=kwargs)


def rom_path(game: str) -> Path:
    """The ROM of a game, checked to be the one ALE knows."""
    return _rom_path(game, os.environ.get(FOLDER))


@functools.cache
def _rom_path(game: str, folder: str | None) -> Path:
    ale_py()
    from ale_py import roms

    where = f"the folder that {FOLDER} names" if folder else "the folder of ale-py"
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it says aloud which folder it looks into
            path = roms.get_rom_path(game)
    except OSError as error:
        wrong = "is not the file ALE knows" if "hash" in str(error) else "is missing"
        what = f"The ROM of '{game}' {wrong}: {error}."
        raise UsageError(f"{' '.join(what.split())} {_advice(game, where, folder)}") from None
    if path is None:
        raise UsageError(f"ALE has no game '{game}': `gymnast env list --all ALE` shows all games.")
    return path


def _advice(game: str, where: str, folder: str | None) -> str:
    put = f"Put {game}.bin into {where}"
    if folder:
        return f"{put}, or unset {FOLDER}: ale-py brings its own."
    return f'{put}: pip install --force-reinstall "ale-py".'

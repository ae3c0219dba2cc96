"""Atari games (ENV-3): one game as a Gymnasium env, many games as ALE's vector env, both under the protocol of `env.atari`."""

from __future__ import annotations

import dataclasses

from gymnasium.envs.registration import EnvSpec

from gymnast.config.atari import AtariConfig


def game_spec(spec: EnvSpec, protocol: AtariConfig) -> EnvSpec:
    """The record to make our env from, instead of ale-py's."""
    from gymnast.envs.families.atari.roms import rom_path

    game = str(spec.kwargs["game"])
    rom_path(game)  # a missing one is said in a sentence of its own
    kwargs = {"game": game, "protocol": protocol}
    entry_point = f"{__name__}.game:AtariGame"
    return dataclasses.replace(spec, entry_point=entry_point, vector_entry_point=None, kwargs=kwargs)

"""The record of the family: what gymnast knows about its envs. Nothing heavy is imported before a function is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family, Package, Snapshot

if TYPE_CHECKING:
    import gymnasium as gym

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.families.family import NativeForm


def _native(config: EnvConfig) -> NativeForm | str:
    from gymnast_wind.vector import native_sailor

    return native_sailor(config)


def _snapshot(env: gym.Env) -> Snapshot | None:
    from gymnast_wind.envs import Sailor

    def save(env: gym.Env) -> dict[str, Any]:
        return env.unwrapped.save_state()

    def load(env: gym.Env, state: dict[str, Any]) -> None:
        env.unwrapped.load_state(state)

    return Snapshot(save, load) if isinstance(env.unwrapped, Sailor) else None


WIND = Family(
    name="wind",
    title="Wind",
    registers="gymnast_wind.envs",
    package=Package("gymnast_wind", "gymnast-env-family"),
    native=_native,
    step_milliseconds=0.01,
    snapshot=_snapshot,
    draws_anywhere=True,
)

"""MuJoCo: exact state of Gymnasium's envs, and rendering without a display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family, Package, Snapshot
from gymnast.envs.families.mujoco.drawing import NO_RENDERER, choose_renderer
from gymnast.envs.families.parameters import Parameter

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.mujoco.simulator import prepare

    prepare(spec, render_mode)
    return spec


def _snapshot(env: gym.Env) -> Snapshot:
    from gymnast.envs.families.mujoco.simulator import load, save

    return Snapshot(save, load)


def _gravity(env: Any) -> float:
    return float(env.model.opt.gravity[2])


def _set_gravity(env: Any, value: float) -> None:
    env.model.opt.gravity[2] = value


MUJOCO = Family(
    name="mujoco",
    title="MuJoCo",
    homes=("gymnasium.envs.mujoco",),
    package=Package("mujoco", "mujoco", extra="mujoco"),
    prepare=_prepare,
    step_milliseconds=0.06,
    snapshot=_snapshot,
    parameters={"gymnasium.envs.mujoco": {"gravity": Parameter("vertical, in m/s²", _gravity, _set_gravity, high=0)}},
    draws_anywhere=True,
    choose_renderer=choose_renderer,
    rendering_advice=NO_RENDERER,
)

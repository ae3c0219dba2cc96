"""What single env families need beyond Gymnasium: one file per family."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec


def prepare(spec: EnvSpec, render_mode: str | None) -> EnvSpec:
    """The record to make an env from, after its family has done what must come first."""
    family = _family(spec)
    if family is not None:
        prepared: EnvSpec = family.prepare(spec, render_mode)
        return prepared
    if render_mode is not None:  # an env of the user's may draw with MuJoCo too
        from gymnast.envs.families.mujoco import choose_renderer

        choose_renderer()
    return spec


def rendering_advice(spec: EnvSpec) -> str:
    """` What to install` where drawing needs more than Python packages, or an empty string."""
    advice = getattr(_family(spec), "NO_RENDERER", None)
    return f" {advice}" if advice else ""


def _family(spec: EnvSpec) -> Any:
    """The file of the family that the entry point belongs to; imported only then, with the package it is for."""
    entry_point = str(spec.entry_point)
    if entry_point.startswith("gymnasium.envs.mujoco."):
        from gymnast.envs.families import mujoco

        return mujoco
    if entry_point.startswith("gymnasium.envs.box2d."):
        from gymnast.envs.families import box2d

        return box2d
    if entry_point.startswith("minatar."):
        from gymnast.envs.families import minatar

        return minatar
    if entry_point.startswith("minigrid."):
        from gymnast.envs.families import minigrid

        return minigrid
    return None

"""The protocol an Atari game is played under: the `env.atari` section of `ALE/…` envs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from gymnast.config.model import Model

PREFIX = "ALE/"
INSTEAD = {
    "obs_type": "env.atari.obs",
    "repeat_action_probability": "env.atari.sticky",
    "frameskip": "env.atari.skip",
    "full_action_space": "env.atari.actions=full",
    "max_num_frames_per_episode": "env.atari.frame_cap",
    "mode": "env.atari.mode",
    "difficulty": "env.atari.difficulty",
}
"""Which field says what an argument of `gymnasium.make` says elsewhere."""


class AtariConfig(Model):
    """How the game is played and what is seen of it. Rewards are never clipped here: that is a wrapper."""

    obs: Literal["pixels", "ram", "objects"] = "pixels"
    """Stacked frames, the 128 bytes of the machine's memory, or positions and velocities of the game's objects."""
    sticky: float = Field(0.25, ge=0, le=1)
    """Chance per frame that the last action is repeated; 0.25 is the v5 protocol, 0 the deterministic one."""
    skip: PositiveInt = 4
    """Frames per step of the agent."""
    max_pool: bool = True
    """Show the brighter of the last two frames, because many games draw objects every other frame only; pixels only."""
    noops: NonNegativeInt = 30
    """An episode begins with at most so many frames of doing nothing, so that starts differ."""
    fire_reset: bool = True
    """Press FIRE at the start of an episode where the game has that button."""
    life_loss: Literal["ignore", "terminal", "episode"] = "ignore"
    """A lost life means nothing, sets `terminated` while the game goes on, or ends the episode."""
    frame_cap: PositiveInt = 108_000
    """Frames after which an episode is cut off (truncated); 108,000 are half an hour of play."""
    actions: Literal["minimal", "full"] | list[str] = "minimal"
    """The buttons the game uses, all 18, or a list of labels: `[NOOP, UP, DOWN]`."""
    size: tuple[PositiveInt, PositiveInt] = (84, 84)
    """Height and width of a frame; pixels only."""
    gray: bool = True
    """One channel of brightness instead of three of colour; pixels only."""
    stack: PositiveInt = 4
    """Frames in one observation, oldest first; pixels only."""
    mode: NonNegativeInt | None = None
    """The game's mode switch; its default by default."""
    difficulty: NonNegativeInt | None = None
    """The game's difficulty switch; its default by default."""

    @model_validator(mode="after")
    def _some_actions(self) -> AtariConfig:
        labels = self.actions if isinstance(self.actions, list) else None
        if labels is not None and (not labels or len(set(labels)) < len(labels)):
            raise ValueError("actions as a list needs at least one label, each once, e.g. [NOOP, UP, DOWN]")
        return self


def misfit(env_id: str, kwargs: dict[str, Any]) -> str | None:
    """What an env section with an `atari` section says that does not go with it."""
    if not env_id.rpartition(":")[2].startswith(PREFIX):
        return f"env.atari is for Atari games (ids like ALE/Pong-v5), env.id is '{env_id}': remove it"
    if kwargs:
        key = next(iter(kwargs))
        instead = "remove it"
        if key in INSTEAD:
            instead = f"use {INSTEAD[key]} instead"
        return f"env.kwargs.{key} does not go with env.atari, which says how the game is played: {instead}"
    return None


__all__ = ["PREFIX", "AtariConfig", "misfit"]

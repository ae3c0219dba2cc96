"""The protocol a score was made under, as it is stored with the score and shown by `gymnast env show`."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from gymnast.config.schema import EnvConfig


def protocol_of(config: EnvConfig) -> dict[str, Any] | None:
    """All that two Atari scores must share to be compared; None for other envs."""
    if config.atari is None:
        return None
    chosen = config.atari.model_dump(mode="json", exclude={"obs", "sticky_ramp", "max_pool", "size", "gray", "stack"})
    if config.atari.obs == "pixels":
        chosen |= config.atari.model_dump(mode="json", include={"max_pool", "size", "gray", "stack"})
    if config.time_limit is not None:
        chosen["time_limit"] = config.time_limit
    return {"id": config.id, "obs": config.atari.obs, **chosen, "ale_py": importlib.metadata.version("ale-py")}


def sentence(config: EnvConfig) -> str | None:
    """The same in one line for people."""
    protocol = config.atari
    if protocol is None:
        return None
    lives = {
        "ignore": "lost lives ignored",
        "terminal": "a lost life is terminal",
        "episode": "a lost life ends the episode",
    }
    ramp = protocol.sticky_ramp
    growing = f" (in training from 0, growing from step {ramp[0]:,} to {ramp[1]:,} of each game)" if ramp else ""
    actions = protocol.actions if isinstance(protocol.actions, str) else " ".join(protocol.actions)
    parts = [
        protocol.obs,
        f"sticky {protocol.sticky:g}{growing}",
        f"skip {protocol.skip}",
        f"up to {protocol.noops} no-ops",
        "FIRE at reset" if protocol.fire_reset else "no FIRE at reset",
        lives[protocol.life_loss],
        f"frame cap {protocol.frame_cap:,}",
        f"{actions} actions",
    ]
    if protocol.mode is not None or protocol.difficulty is not None:
        parts.append(f"mode {protocol.mode}, difficulty {protocol.difficulty}")
    return ", ".join(parts) + f" (ale-py {importlib.metadata.version('ale-py')})"

"""The protocol a score was made under, as it is stored with the score and shown by `gymnast env show`."""

from __future__ import annotations

import importlib.metadata
import math
from typing import Any

from gymnast.config.atari import AtariConfig
from gymnast.config.schema import EnvConfig

LIVES = {
    "ignore": "lost lives ignored",
    "terminal": "a lost life is terminal",
    "episode": "a lost life ends the episode",
}


class AtariRules:
    """What `env.atari` says, as the rest of gymnast asks for it."""

    def __init__(self, config: EnvConfig, played: AtariConfig) -> None:
        self._config, self._played = config, played
        self.frames_per_step = played.skip
        self.most_steps = math.ceil(played.frame_cap / played.skip)
        self.images = played.obs == "pixels"

    def protocol(self) -> dict[str, Any]:
        """All that two Atari scores must share to be compared."""
        config, played = self._config, self._played
        chosen = played.model_dump(mode="json", exclude={"obs", "max_pool", "size", "gray", "stack"})
        if self.images:
            chosen |= played.model_dump(mode="json", include={"max_pool", "size", "gray", "stack"})
        if config.time_limit is not None:
            chosen["time_limit"] = config.time_limit
        return {"id": config.id, "obs": played.obs, **chosen, "ale_py": importlib.metadata.version("ale-py")}

    def sentence(self) -> str:
        """The same in one line for people."""
        played = self._played
        actions: str
        if isinstance(played.actions, str):
            actions = played.actions
        else:
            actions = " ".join(played.actions)
        parts = [
            played.obs,
            f"sticky {played.sticky:g}",
            f"skip {played.skip}",
            f"up to {played.noops} no-ops",
            "FIRE at reset" if played.fire_reset else "no FIRE at reset",
            LIVES[played.life_loss],
            f"frame cap {played.frame_cap:,}",
            f"{actions} actions",
        ]
        if played.mode is not None or played.difficulty is not None:
            parts.append(f"mode {played.mode}, difficulty {played.difficulty}")
        return ", ".join(parts) + f" (ale-py {importlib.metadata.version('ale-py')})"

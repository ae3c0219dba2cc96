"""How a game is played, as it is stored with every score and shown by `gymnast env show`."""

from __future__ import annotations

import importlib.metadata
import math
from typing import Any

from gymnast.config.schema import EnvConfig
from gymnast.envs.families.vizdoom.registered import own_spec
from gymnast.envs.families.vizdoom.scenario import Scenario, scenario_of
from gymnast.envs.families.vizdoom.settings import VizdoomSettings, settings_of
from gymnast.envs.registry import env_spec


class VizdoomRules:
    """What `env.kwargs` say, as the rest of gymnast asks for it."""

    images = True

    def __init__(self, config: EnvConfig, settings: VizdoomSettings, scenario: Scenario) -> None:
        self._config, self._settings, self._scenario = config, settings, scenario
        self.frames_per_step = settings.frame_skip
        self.most_steps = math.ceil(scenario.timeout / settings.frame_skip) or None

    def protocol(self) -> dict[str, Any]:
        """All that two scores must share to be compared."""
        scenario = self._scenario
        return {
            "id": self._config.id,
            "scenario": scenario.config.name,
            "wad": (scenario.patch or scenario.game).name,
            "map": scenario.map,
            "doom_skill": scenario.skill,
            "frame_skip": self._settings.frame_skip,
            "timeout": scenario.timeout,
            "vizdoom": importlib.metadata.version("vizdoom"),
        }

    def sentence(self) -> str:
        """The same in one line for people."""
        played = self.protocol()
        parts = [
            f"{played['scenario']}, map {played['map']} of {played['wad']}",
            f"skill {played['doom_skill']}",
            f"skip {played['frame_skip']}",
            f"cut off after {played['timeout']:,} tics" if played["timeout"] else "never cut off",
        ]
        return ", ".join(parts) + f" (vizdoom {played['vizdoom']})"


def rules_of_game(config: EnvConfig) -> VizdoomRules:
    """The rules of a configured game."""
    settings = settings_of({**own_spec(env_spec(config.id, config.module)).kwargs, **config.kwargs})
    return VizdoomRules(config, settings, scenario_of(settings))

"""One engine: started in bounded time, seeded so that every episode repeats itself, closed with its owner."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gymnast.envs.families.vizdoom import leftovers
from gymnast.envs.families.vizdoom.scenario import Scenario, package
from gymnast.envs.families.vizdoom.variables import members
from gymnast.errors import EnvError

START_SECONDS = 30.0
"""An engine is there after half a second; one that is not after this long never will be."""
SAVED = ".zds"
"""How the engine makes the names of saved games end."""
OTHER_SEED = 1
"""Changes one bit."""


class Engine:
    """ViZDoom's game object under our settings. `game` is for the steps, which should cost nothing more than the engine's."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        buttons: Sequence[str],
        variables: Sequence[str] = (),
        resolution: str = "RES_160X120",
        gray: bool = True,
    ) -> None:
        vizdoom = package()
        self.scenario = scenario
        self.game: Any = vizdoom.DoomGame()
        self._started = False
        self._seed: int | None = None
        """Of the last episode."""
        self._skill = scenario.skill
        game = self.game
        game.load_config(str(scenario.config))
        if os.name == "posix":
            leftovers.sweep()
            game.set_vizdoom_path(leftovers.launcher(vizdoom.exe_path))
        game.set_doom_config_path(os.devnull)  # nothing is remembered, and no two engines write into one file
        game.set_doom_game_path(str(scenario.game))
        game.set_doom_scenario_path("" if scenario.patch is None else str(scenario.patch))
        game.set_doom_map(scenario.map)
        game.set_doom_skill(scenario.skill)
        game.set_available_buttons([vizdoom.Button.__members__[name] for name in buttons])
        game.set_available_game_variables(members(variables))
        game.set_screen_resolution(vizdoom.ScreenResolution.__members__[resolution])
        game.set_screen_format(vizdoom.ScreenFormat.GRAY8 if gray else vizdoom.ScreenFormat.RGB24)
        game.set_window_visible(False)
        game.set_sound_enabled(False)
        game.set_mode(vizdoom.Mode.PLAYER)
        for buffer in ("audio", "automap", "depth", "labels", "notifications"):
            getattr(game, f"set_{buffer}_buffer_enabled")(False)
        # The env counts by itself: at the engine's own end nothing could be seen of the last moment any more.
        game.set_episode_timeout(0)

    def begin(self, seed: int, skill: int | None = None) -> None:
        """A new episode, the same for the same seed whatever was played before."""
        if skill is not None and skill != self._skill:
            self._set_skill(skill)
        if not self._started:
            self.game.set_seed(seed ^ OTHER_SEED)
            self._within_bounds(self.game.init)
            self.game.set_seed(seed)
            self._within_bounds(self.game.new_episode)
            self._started = True
        else:
            if seed == self._seed:  # the engine takes no notice of the seed that it has already
                self.game.set_seed(seed ^ OTHER_SEED)
                self.game.new_episode()
            self.game.set_seed(seed)
            self.game.new_episode()
        self._seed = seed
        if self.scenario.start is not None:
            self._load(self.scenario.start)

    def save(self, path: Path) -> Path:
        """Write the moment into a file and say which. The engine plays a tic while it saves, so no button may be down."""
        path = path.resolve()
        if path.suffix != SAVED:
            path = path.with_name(path.name + SAVED)
        self._release()
        self.game.save(str(path))
        return path

    def _load(self, path: Path) -> None:
        """Go on from a saved moment. A tic without buttons follows, because the reward of the first one after a load is wrong."""
        self._release()
        self.game.load(str(path))
        self.game.advance_action(1)

    def _release(self) -> None:
        self.game.set_action([0.0] * self.game.get_available_buttons_size())

    def _set_skill(self, skill: int) -> None:
        """From the next episode on. ViZDoom 1.3's `set_doom_skill` makes a running game very easy, whatever it is told."""
        if self._started:
            self.game.send_game_command(f"skill {skill - 1}")
        else:
            self.game.set_doom_skill(skill)
        self._skill = skill

    def _within_bounds(self, call: Callable[[], Any]) -> None:
        """A call that waits for the engine, which may never answer (a broken map): in a thread that can be left behind."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                call()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True, name="start of an engine")
        thread.start()
        thread.join(START_SECONDS)
        scenario = self.scenario
        what = f"{scenario.config.name}, map {scenario.map} of {(scenario.patch or scenario.game).name}"
        if thread.is_alive():
            raise EnvError(
                f"ViZDoom's engine did not begin an episode within {START_SECONDS:g} s ({what}): the map cannot be played. "
                "Name another (env.kwargs.map)."
            )
        if failed:
            said = " ".join(str(failed[0]).split()).rstrip(".")
            raise EnvError(f"ViZDoom's engine did not start ({what}): {said}.") from failed[0]

    def close(self) -> None:
        """End the engine. Safe to call twice."""
        self.game.close()
        self._started = False

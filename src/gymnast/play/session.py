"""A session of play: who acts, what is shown, when the next step is due. It knows no window, no terminal and no clock.

A front gives it keys, commands and the time, and shows its `view()` and `picture()`. Whoever needs no pace calls `next()`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from gymnast.envs.vector import EndedEpisode
from gymnast.evaluation.stage import Stage
from gymnast.play import commands
from gymnast.play.commands import SPEEDS
from gymnast.play.players import HUMAN, POLICY, ImpossibleError, Move, Person, Player
from gymnast.play.recording import Recorder, Start, Step
from gymnast.play.view import LEARNED_FROM, Result, View, action_words, shown_terms

LAG = 0.05
"""Seconds of play that are made up for after a delay; what is older is lost, so that nothing races."""
LAST_LOOK = 1.5
"""Seconds for which the end of an episode is shown."""
QUEUE = 4
"""Presses that are kept where each of them is a turn; a key that repeats itself faster than the env steps is cut off there."""
PATIENCE = 0.05
"""Seconds after which a front should ask again where nothing is due."""


class Session:
    """Plays episodes on a stage, one after the other: episode k from seed + k."""

    def __init__(
        self,
        stage: Stage,
        players: Mapping[str, Player],
        mode: str,
        *,
        seed: int = 0,
        fps: float | None = None,
        episodes: int | None = None,
        recorders: Sequence[Recorder] = (),
        labels: Sequence[str] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.stage = stage
        self.players = dict(players)
        self.mode = mode
        self.labels, self.names = list(labels), list(names)
        self.fps = fps or stage.fps
        """Frames of the game per second at speed 1."""
        self.results: list[Result] = []
        """Of the episodes that are over."""
        self.over = False
        self.paused = False
        self._episodes, self._seed, self._recorders = episodes, seed, list(recorders)
        self._speed = SPEEDS.index(1.0)
        self._due = 0.0
        self._stood_still = True
        """Whether no time was lost since the last step, because none was due."""
        self._single = False
        self._others = next((name for name in (POLICY, *self.players) if name in self.players and name != HUMAN), None)
        """Who plays on when a person hands back."""
        # Keys: those that are down, those that went down since the last step, and presses where each of them is a turn.
        self._held: list[str] = []
        self._tapped: list[str] = []
        self._presses: list[str] = []
        # The episode as it stands; `_begin` sets all of it.
        self.steps = 0
        self._begun = self._frame = 0
        self._ret = 0.0
        self._reward: float | None = None
        self._terms: dict[str, float] = {}
        self._action = self._outcome = self._note = ""
        self._modes: list[str] = []
        self._waiting = False
        self._picture: np.ndarray | None = None
        self._opinion: Move | None = None
        for recorder in self._recorders:
            recorder.attach(stage)
        self._begin()

    # What a front asks for.

    @property
    def person(self) -> Person | None:
        """The player with the key map."""
        player = self.players.get(HUMAN)
        if isinstance(player, Person):
            return player
        return None

    @property
    def keys(self) -> Mapping[str, object]:
        """The keys that the game uses, which commands cannot."""
        if self.person is not None:
            return self.person.keys.keys
        return {}

    def press(self, key: str) -> None:
        """A key of the game goes down; pressed again while it is down, it is one more turn."""
        if key not in self._held:
            self._held.append(key)
            self._tapped.append(key)
        if self._outcome and self.mode == HUMAN:
            self._due = 0.0  # the end has been seen; the key was for that
        elif len(self._presses) < QUEUE:
            self._presses.append(key)

    def release(self, key: str | None = None) -> None:
        """A key goes up; without a name all of them."""
        self._held = [held for held in self._held if key not in (None, held)]

    def command(self, command: str) -> None:
        """Do what one of `gymnast.play.commands` asks for."""
        if command == commands.QUIT:
            self.over = True
        elif command == commands.PAUSE:
            self.paused = not self.paused
        elif command == commands.STEP:
            self.paused, self._single, self._due = True, True, 0.0
        elif command == commands.RESTART:
            self._begin()
        elif command == commands.SAVE:
            self._note = self._save()
        elif command == commands.FASTER:
            self._speed = min(self._speed + 1, len(SPEEDS) - 1)
        elif command == commands.SLOWER:
            self._speed = max(self._speed - 1, 0)
        elif command == commands.NEXT_MODE:
            modes = list(self.players)
            self.set_mode(modes[(modes.index(self.mode) + 1) % len(modes)])
        elif command == commands.TAKE_OVER:
            self.set_mode(self._others if self.mode == HUMAN and self._others else HUMAN)

    def _save(self) -> str:
        """Write the moment into a file of the current folder, to begin from there another time; what came of it in words."""
        save = getattr(self.stage.bare_env, "save_game", None)
        if save is None:
            return "this game cannot be saved"
        if self._recorders:
            return "not while recording: saving takes a moment of the game"
        if self._outcome:
            return "the episode is over"
        taken = {path.stem for path in Path().glob("game-*")}
        number = next(number for number in itertools.count(1) if f"game-{number}" not in taken)
        saved: Path = save(f"game-{number}")
        return f"saved as {saved.name} (env.kwargs.start)"

    def set_mode(self, mode: str) -> None:
        """Let another player act from the next step on; one that there is not is not."""
        if mode in self.players:
            self.mode = mode
            self._note = ""
            self._forget_presses()

    def record(self, recorder: Recorder) -> None:
        """Attach a recorder from now on. The episode restarts, because half of one could not be replayed."""
        self._recorders.append(recorder)
        recorder.attach(self.stage)
        self._begin()

    def stop_recording(self, recorder: Recorder) -> None:
        """Tell a recorder nothing more."""
        self._recorders.remove(recorder)
        self.stage.forget(recorder)

    def advance(self, now: float) -> bool:
        """Make the steps that are due at a time in seconds; whether there were any."""
        stepped = False
        while not self.over and now >= self._due and (self._single or not self.paused):
            frames = self.next()
            if not frames:
                break
            stepped, self._single = True, False
            if self._stood_still:
                began = now
            else:
                began = max(self._due, now - LAG)
            self._due, self._stood_still = began + self._pause_after(frames), False
        self._stood_still |= self.paused or self._waiting
        return stepped

    def _pause_after(self, frames: int) -> float:
        """Seconds until the next step is due."""
        if self._outcome:
            return LAST_LOOK
        if self.mode == HUMAN and self._takes_turns:
            return 0.0  # whoever presses a key decides about the pace
        return frames / (self.fps * self.speed)

    def idle_for(self, now: float) -> float:
        """Seconds until a step may be due."""
        if self.paused or self._waiting or self._due <= 0.0:
            return PATIENCE
        return min(max(self._due - now, 0.0), PATIENCE)

    @property
    def speed(self) -> float:
        """Times the pace of the game."""
        return SPEEDS[self._speed]

    def view(self) -> View:
        """Everything shown next to the picture."""
        opinion = self._opinion
        returns = [result.ret for result in self.results]
        return View(
            mode=self.mode,
            paused=self.paused,
            waiting=self._waiting,
            speed=self.speed,
            episode=self._begun + 1,
            episodes=self._episodes,
            step=self.steps,
            ret=self._ret,
            reward=self._reward,
            terms=self._terms,
            action=self._action,
            value=None if opinion is None else opinion.value,
            probabilities=_listed(opinion),
            outcome=self._outcome,
            note=self._note,
            keys=tuple(self._held),
            played=len(self.results),
            mean=sum(returns) / len(returns) if returns else None,
            last=self.results[-1] if self.results else None,
        )

    def picture(self) -> np.ndarray:
        """What the env shows: RGB [H, W, 3] uint8, drawn once per step; at the end of an episode its last picture."""
        if self._picture is None:
            final = self.stage.final_picture if self._outcome else None
            self._picture = (self.stage.draw() if final is None else final).copy()
        return self._picture

    def close(self) -> None:
        """Close the stage with its env."""
        self.stage.close()

    # One step.

    def next(self) -> int:
        """One step, or what follows the end of an episode: how many frames of the game it took; 0 while it waits for a key."""
        if self._outcome:
            self._go_on()
            return 1
        if self._presses or self._held or self.mode != HUMAN:
            self._note = ""
        move = self._move()
        self._waiting = move is None
        if move is None:
            return 0
        self._tapped = []
        self._presses = self._presses[1:]
        return self._step(move)

    def _begin(self) -> None:
        """Begin the next episode; a restart begins the same one again."""
        self._begun = len(self.results)
        self.steps = self._frame = 0
        self._ret, self._reward = 0.0, None
        self._terms, self._modes = {}, []
        self._action = self._outcome = self._note = ""
        self._waiting = False
        self._forget_presses()
        self._due, self._stood_still = 0.0, True
        seed = self._seed + self._begun
        self.stage.reset(seed)
        for player in self.players.values():
            player.begin(seed)
        self._look()
        for recorder in self._recorders:
            recorder.begin(Start(self.stage, seed, self.fps, self.picture))

    def _look(self) -> None:
        """At a new observation. The policy sees each of them once, whoever acts."""
        self._picture = None
        policy = self.players.get(POLICY)
        self._opinion = None
        if policy is not None and not self._outcome:
            self._opinion = policy.move(self.stage.row, ())

    def _move(self) -> Move | None:
        if self.mode == POLICY:
            return self._opinion
        try:
            return self.players[self.mode].move(self.stage.row, self._keys())
        except ImpossibleError:
            self._forget_presses()
            self._note = "not possible now"
            return None

    def _keys(self) -> list[str]:
        """The keys that count for the next step. A short tap between two steps counts like a key that is held."""
        if self._takes_turns:
            return self._presses[:1]
        return [*self._held, *(key for key in self._tapped if key not in self._held)]

    @property
    def _takes_turns(self) -> bool:
        return self.person is not None and self.person.keys.turns

    def _forget_presses(self) -> None:
        self._tapped, self._presses = [], []

    def _step(self, move: Move) -> int:
        stage, row = self.stage, self.stage.row
        ended = stage.step(move.actions)
        given = stage.given(move.actions)
        if row.own_reward is None:
            own = row.reward
        else:
            own = row.own_reward
        self.steps += 1
        self._frame += len(given)
        reward = self._reward = float(own[0])
        self._ret += reward
        self._terms = {**shown_terms(stage.info), **stage.reward_terms}
        if row.own_reward is not None:
            self._terms[LEARNED_FROM] = float(row.reward[0])
        self._action = action_words(move.actions[0], stage.envs.action_space, self.labels, self.names)
        if self.mode not in self._modes:
            self._modes.append(self.mode)
        if ended is not None:
            self._end(ended)
        self._look()
        value = None
        if self._opinion is not None:
            value = self._opinion.value
        step = Step(stage, move.actions, given, self.mode, reward, ended, self._frame, self.picture, self._terms, value)
        for recorder in self._recorders:
            recorder.step(step)
        return len(given)

    def _end(self, ended: EndedEpisode) -> None:
        self._outcome = "terminated" if ended.terminated else "truncated"
        self._ret = ended.ret  # summed up by the env's own numbers
        seed = self._seed + self._begun
        self.results.append(Result(seed, ended.ret, ended.length, self._outcome, tuple(self._modes)))

    def _go_on(self) -> None:
        """After the end of an episode has been shown."""
        if self._episodes is not None and len(self.results) >= self._episodes:
            self.over = True
        else:
            self._begin()


def _listed(opinion: Move | None) -> list[float]:
    if opinion is None or opinion.probabilities is None:
        return []
    with suppress(TypeError):
        return [float(share) for share in opinion.probabilities]
    return []

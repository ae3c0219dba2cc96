"""What `gymnast play` does once it knows what to play: a window or the terminal, a film, and a clean end at every signal."""

from __future__ import annotations

import os
import signal
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

import typer

from gymnast.amounts import count
from gymnast.cli.options import echo, echo_json
from gymnast.config.schema import EnvConfig
from gymnast.config.spec import EnvSpec
from gymnast.envs.drawing import why_black
from gymnast.errors import EnvError
from gymnast.evaluation.video import VideoWriter, write_about
from gymnast.play import commands
from gymnast.play.course import Course
from gymnast.play.datasets import DatasetRecorder
from gymnast.play.headless import episode_line, play_headless, summary_line
from gymnast.play.opening import open_session
from gymnast.play.players import Player
from gymnast.play.recording import Filming, Recorder
from gymnast.play.session import Session
from gymnast.play.view import Result

INTERRUPTED = 130


@dataclass(frozen=True)
class Game:
    """What is played, and who begins."""

    title: str
    env: EnvConfig
    spec: EnvSpec
    mode: str
    about: dict[str, Any] = field(default_factory=dict)
    """Where it comes from, for JSON."""
    policy: Player | None = None


def play_game(
    game: Game,
    *,
    headless: bool,
    episodes: int | None,
    seed: int,
    fps: float | None,
    record: Path | None,
    dataset_id: str | None,
    as_json: bool,
) -> None:
    """Play, and print what was played."""
    dataset = None if dataset_id is None else DatasetRecorder(dataset_id)
    video = None if record is None else VideoWriter(record)
    unfinished = None if video is None else video.temporary
    with ExitStack() as stack:
        recorders: list[Recorder] = []
        if video is not None:
            recorders.append(Filming(stack.enter_context(video)))
        if dataset is not None:
            recorders.append(dataset)
            stack.callback(dataset.close)
        drawn = video is not None or not headless
        try:
            session = _open(game, drawn, episodes, seed, fps, recorders)
        except EnvError as error:
            if drawn and "cannot render" in str(error):
                raise EnvError(f"{error} It can be played with --headless and without --record.") from error
            raise
        stack.callback(session.close)
        interrupted = stack.enter_context(_ending_at_signals(session, unfinished))
        if not as_json:
            echo(f"{game.title}: {game.mode} plays")
        told = _Told(as_json)
        if headless:
            play_headless(session, told.tell)
        else:
            from gymnast.play.window import play_in_window  # pygame, which the terminal does without

            play_in_window(session, game.title, told.tell)
    _report(game, session.results, video, dataset, as_json=as_json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


class _Told:
    """Prints episodes as they end."""

    def __init__(self, as_json: bool) -> None:
        self._silent, self._count = as_json, 0

    def tell(self, result: Result) -> None:
        """Count one episode more."""
        self._count += 1
        if not self._silent:
            echo(episode_line(self._count, result))


def serve_game(game: Game, out: BinaryIO, *, seed: int, fps: float | None) -> None:
    """Play for the process at the other end of stdin and `out`."""
    from gymnast.play.piped import Blind, Front  # the encoders of pictures, which windows and terminals do without

    course, blind = Course(), None
    try:
        session = _open(game, True, None, seed, fps, [course])
        _check_picture(session)
    except EnvError as error:
        # An env that cannot be made at all says so here; one that only cannot draw is played by its numbers.
        session = _open(game, False, None, seed, fps, [course])
        blind = Blind(str(error), game.spec)
    with closing(session), _ending_at_signals(session, None):
        Front(session, game.title, out, course, blind).run()


def _check_picture(session: Session) -> None:
    """Draw once; a session that cannot is closed."""
    try:
        session.picture()
    except EnvError:
        session.close()
        raise


def _open(
    game: Game, drawn: bool, episodes: int | None, seed: int, fps: float | None, recorders: list[Recorder]
) -> Session:
    return open_session(
        game.env,
        game.spec,
        game.mode,
        drawn=drawn,
        policy=game.policy,
        seed=seed,
        fps=fps,
        episodes=episodes,
        recorders=recorders,
    )


@contextmanager
def _ending_at_signals(session: Session, unfinished: Path | None) -> Iterator[list[int]]:
    """End the session in good order at Ctrl-C or SIGTERM, so that its film is whole; at a second one leave at once.

    The list holds the signals that came.
    """
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if came:
            if unfinished is not None:
                unfinished.unlink(missing_ok=True)
            os._exit(128 + number)
        came.append(number)
        session.command(commands.QUIT)

    old = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _report(
    game: Game, results: list[Result], video: VideoWriter | None, dataset: DatasetRecorder | None, *, as_json: bool
) -> None:
    """The episodes in one line or as JSON, and where the film and the dataset are."""
    kept = None
    if dataset is not None and dataset.episodes:
        kept = dataset.dataset_id
    if video is not None and video.count:
        write_about(video.path, results, game.about)
    if as_json:
        mean = None
        if results:
            mean = statistics.fmean(result.ret for result in results)
        film = None
        if video is not None and video.count:
            film = str(video.path)
        played = [asdict(result) for result in results]
        about = {**game.about, "mode": game.mode, "episodes": played, "mean": mean, "video": film}
        if dataset is not None:
            about["dataset"] = kept
        echo_json(about)
        return
    echo(summary_line(results))
    if video is not None and video.count:
        echo(f"{video.path}  ({video.count} frames)")
        if video.black:
            echo(f"warning: all {video.count} frames are black.{why_black()}", err=True)
    if dataset is not None and kept is not None:
        echo(f"dataset {kept}: {count(dataset.episodes, 'episode')}, {count(dataset.steps, 'step')}")

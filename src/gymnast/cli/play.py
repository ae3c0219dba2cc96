"""`gymnast play`: what to play, who plays, and where it is shown."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnast.cli.agents import Env, NoVecNormalize, VecNormalize, load_agent, names_config
from gymnast.cli.evaluate import Sampled
from gymnast.cli.options import AsJson, Overrides, RunsDir, Trust
from gymnast.cli.process import imported, own_stdout
from gymnast.errors import UsageError
from gymnast.evaluation.formats import format_of
from gymnast.play.players import HUMAN, POLICY, RANDOM
from gymnast.service.configs import resolved_config

if TYPE_CHECKING:
    from gymnast.cli.playing import Game

MODES = (POLICY, HUMAN, RANDOM)


def play(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN|ENV[:VARIANT]",
            help="A run (@last, an id, RUN/step=N …), a model.zip, or an env: CartPole-v1.",
        ),
    ] = "@last",
    overrides: Overrides = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="policy, human or random (default: policy for a run, otherwise human, or random without a window).",
            show_default=False,
        ),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Play without a window, at full speed, and print episodes.")
    ] = False,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            "-e",
            min=1,
            help="Quit after this many episodes (default: 1 with --headless).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first episode; each further one adds 1.")] = 0,
    fps: Annotated[
        float | None,
        typer.Option("--fps", min=0.1, help="Frames per second (default: the env's own).", show_default=False),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", "-o", help="Film the session: .mp4, .webm or .gif.", show_default=False),
    ] = None,
    record_dataset: Annotated[
        str | None,
        typer.Option(
            "--record-dataset", help="Record the episodes as a Minari dataset with this id.", show_default=False
        ),
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", hidden=True, help="Play over stdin and stdout.")] = False,
    stochastic: Sampled = None,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    as_json: AsJson = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Play an environment yourself, or watch a policy or random actions, in a window or in the terminal.

    In the window Tab takes over from the policy and hands back, P pauses, N makes one step, + and - change the speed, and H
    shows all keys.
    """
    mode = _mode_of(mode, headless)
    if as_json and not headless:
        raise UsageError("--json prints what was played in the terminal: add --headless.")
    if record is not None:
        format_of(record)  # report a wrong suffix before anything is loaded
    with ExitStack() as stack:
        pipe = None
        if serve:
            pipe = stack.enter_context(own_stdout())
        windowed = not headless and not serve
        if names_config(reference):
            if stochastic is not None or mode == POLICY:
                raise UsageError(
                    f"'{reference}' is not a run, so there is no policy to play: train one (gymnast train {reference}), "
                    "or leave out --mode policy and --deterministic/--stochastic."
                )
            game = _of_config(reference, overrides or [], mode or _without_policy(headless))
            _check_display(windowed)
        else:
            if overrides:
                raise UsageError(f"'{reference}' is played as it was trained: remove {' '.join(overrides)}.")
            _check_display(windowed)  # before torch is imported
            agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir, trust)
            deterministic = agent.acts_deterministically(None if stochastic is None else not stochastic)
            from gymnast.cli.playing_policy import game_of  # torch, which mistakes do not wait for

            game = game_of(agent, mode or POLICY, deterministic)
        from gymnast.cli.playing import play_game, serve_game  # Gymnasium, which mistakes do not wait for

        if pipe is not None:
            serve_game(game, pipe, seed=seed, fps=fps)
            return
    if headless:
        episodes = episodes or 1
    play_game(
        game,
        headless=headless,
        episodes=episodes,
        seed=seed,
        fps=fps,
        record=record,
        dataset_id=record_dataset,
        as_json=as_json,
    )


def _mode_of(mode: str | None, headless: bool) -> str | None:
    if mode is not None and mode not in MODES:
        raise UsageError(f"--mode is one of {', '.join(MODES)}, not '{mode}'.")
    if mode == HUMAN and headless:
        raise UsageError(
            "--headless has no keyboard: leave it out to play in a window, or choose --mode policy or random."
        )
    return mode


def _check_display(windowed: bool) -> None:
    if windowed:
        from gymnast.play.window import check_display  # pygame, which the terminal does without

        check_display()


def _without_policy(headless: bool) -> str:
    if headless:
        return RANDOM
    return HUMAN


def _of_config(reference: str, overrides: list[str], mode: str) -> Game:
    resolved = resolved_config(reference, overrides)
    from gymnast.cli.playing import Game  # Gymnasium, which a wrong name does not wait for

    imported()
    config = resolved.config
    about = {"config": config.name, "notices": list(resolved.notices)}
    return Game(config.name, config.env, config.spec, mode, about)

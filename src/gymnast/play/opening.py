"""From a config to a session: the env on a stage, its key map and labels, and who can play."""

from __future__ import annotations

from collections.abc import Sequence

from gymnast.config.schema import EnvConfig
from gymnast.config.spec import EnvSpec
from gymnast.envs.key_maps import action_labels, key_map
from gymnast.evaluation.stage import Stage
from gymnast.play.players import HUMAN, POLICY, RANDOM, Chance, Person, Player
from gymnast.play.recording import Recorder
from gymnast.play.session import Session


def open_session(
    env: EnvConfig,
    spec: EnvSpec,
    mode: str,
    *,
    drawn: bool,
    policy: Player | None = None,
    seed: int = 0,
    fps: float | None = None,
    episodes: int | None = None,
    recorders: Sequence[Recorder] = (),
) -> Session:
    """Make the env and begin the first episode. The caller closes the session, and with it the env."""
    stage = Stage(env, drawn=drawn)
    try:
        labels = action_labels(stage.bare_env, spec.actions)
        names = [part.name for part in spec.action_components]
        space = stage.envs.action_space
        players: dict[str, Player] = {} if policy is None else {POLICY: policy}
        players[HUMAN] = Person(key_map(stage.bare_env, labels, names), space)
        players[RANDOM] = Chance(space)
        return Session(
            stage,
            players,
            mode,
            seed=seed,
            fps=fps,
            episodes=episodes,
            recorders=recorders,
            labels=labels,
            names=names,
        )
    except BaseException:
        stage.close()
        raise

"""Sessions without a window, beside plain Gymnasium."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch

import gymnast
from gymnast.config.schema import EnvConfig
from gymnast.config.spec import EnvSpec
from gymnast.envs.wrappers.masks import is_possible
from gymnast.evaluation.stage import Stage
from gymnast.evaluation.video import VideoWriter
from gymnast.play import commands
from gymnast.play.headless import play_headless
from gymnast.play.opening import open_session
from gymnast.play.players import RANDOM
from gymnast.play.policy import PolicyPlayer
from gymnast.play.recording import Filming, Start, Step
from gymnast.play.session import Session

SOLID = {"id": "FrozenLake-v1", "kwargs": {"is_slippery": False}}


class Diary:
    """Keeps what a session tells its recorders."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.steps: list[Step] = []
        self.masks: list[np.ndarray | None] = []
        self._mask: np.ndarray | None = None

    def attach(self, stage: Stage) -> None:
        pass

    def begin(self, start: Start) -> None:
        self.starts.append(start.seed)
        self._look(start)

    def step(self, step: Step) -> None:
        self.steps.append(step)
        self.masks.append(self._mask)
        self._look(step)

    def _look(self, now: Start | Step) -> None:
        mask = now.stage.row.mask
        self._mask = None if mask is None else mask[0].copy()

    @property
    def actions(self) -> list[Any]:
        return [step.actions[0].tolist() for step in self.steps]


def opened(env: dict[str, Any], mode: str, *, drawn: bool = False, spec: Any = None, **settings: Any) -> Session:
    return open_session(
        EnvConfig.model_validate(env), EnvSpec.model_validate(spec or {}), mode, drawn=drawn, **settings
    )


def cell(session: Session) -> int:
    """Where the elf stands."""
    return int(session.stage.bare_env.s)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> gymnast.Agent:
    """One that balances for a while, so that its episodes differ."""
    root = tmp_path_factory.mktemp("runs")
    done = gymnast.train("CartPole-v1:ppo", env_steps=4096, runs_dir=root, seed=1)
    return gymnast.load(done.run.folder)


def test_a_policy_plays_as_predict_does_in_plain_gymnasium(agent: gymnast.Agent) -> None:
    """The same actions and returns, episode by episode, normaliser included."""
    diary = Diary()
    player = PolicyPlayer(agent.policy, deterministic=True)
    session = opened({"id": "CartPole-v1"}, "policy", policy=player, seed=11, episodes=3, recorders=[diary])
    play_headless(session, lambda result: None)
    session.close()
    env, actions, returns = gym.make("CartPole-v1"), [], []
    for seed in (11, 12, 13):
        obs, _ = env.reset(seed=seed)
        over, total = False, 0.0
        while not over:
            actions.append(agent.predict(obs))
            obs, reward, terminated, truncated, _ = env.step(actions[-1])
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    assert diary.actions == actions
    assert [result.ret for result in session.results] == returns
    assert diary.starts == [11, 12, 13]
    assert len(set(returns)) > 1


def test_the_value_is_that_of_the_state_on_screen_whoever_acts(agent: gymnast.Agent) -> None:
    player = PolicyPlayer(agent.policy, deterministic=True)
    session = opened({"id": "CartPole-v1"}, "human", policy=player, seed=2)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=2)

    for key, action in (("left", 0), ("right", 1), ("right", 1)):
        with torch.inference_mode():
            expected = float(agent.policy.values(torch.from_numpy(obs)[None])[0])
        assert session.view().value == pytest.approx(expected, rel=1e-5)
        session.press(key)
        session.next()
        session.release(key)
        obs, *_ = env.step(action)
    session.close()


def test_taking_over_and_handing_back(agent: gymnast.Agent) -> None:
    """A person interferes for two steps; the result names both."""
    diary = Diary()
    player = PolicyPlayer(agent.policy, deterministic=True)
    session = opened({"id": "CartPole-v1"}, "policy", policy=player, episodes=1, recorders=[diary])
    session.next()
    session.command(commands.TAKE_OVER)
    assert session.view().mode == "human"
    assert session.next() == 0, "no key is down, and CartPole has no action for that"
    session.press("right")
    session.next()
    session.next()
    session.command(commands.TAKE_OVER)
    play_headless(session, lambda result: None)
    session.close()
    assert [step.mode for step in diary.steps[:4]] == ["policy", "human", "human", "policy"]
    assert diary.actions[1:3] == [1, 1]
    assert session.results[0].modes == ("policy", "human")


def test_every_press_is_one_step_where_an_env_takes_turns() -> None:
    """Along the edge of the lake to the goal, one cell per press, however long a key is held or how fast the next follows."""
    session = opened(SOLID, "human")
    now = 100.0
    cells = [cell(session)]
    for keys in (["down"], ["down", "right"], ["right"], ["down"]):
        for key in keys:
            session.press(key)
        for _ in range(5):
            now += 0.01
            session.advance(now)
        for key in keys:
            session.release(key)
        cells.append(cell(session))
    assert cells == [0, 4, 9, 10, 14]
    session.press("right")
    session.advance(now)
    view = session.view()
    assert (view.outcome, view.ret, view.last.length, view.played) == ("terminated", 1.0, 6, 1)
    session.press("down")  # the end has been seen
    session.advance(now)
    assert (session.view().episode, session.view().step, cell(session)) == (2, 0, 0)
    session.close()


def test_held_keys_act_at_the_pace_of_the_game_and_taps_are_not_lost() -> None:
    session = opened({"id": "MountainCar-v0"}, "human", spec={"actions": ["push left", "coast", "push right"]}, fps=10)
    diary = Diary()
    session._recorders.append(diary)
    for tick in range(4):  # 0.0 0.1 0.2 0.3 s
        session.advance(1.001 * tick / 10 + 1.0)
    session.press("right")
    session.release("right")  # before the next step is due
    for tick in range(4, 6):
        session.advance(1.001 * tick / 10 + 1.0)
    assert diary.actions == [1, 1, 1, 1, 2, 1]
    assert session.view().action == "coast"
    session.command(commands.FASTER)
    assert not session.advance(1.55)
    session.advance(1.605)
    session.advance(1.66)
    assert len(diary.actions) == 8, "at double speed two more in a tenth of a second"
    session.close()


def test_pause_single_step_restart_and_speed() -> None:
    session = opened({"id": "CartPole-v1"}, "random", seed=4)
    first = session.stage.row.obs.copy()
    session.command(commands.PAUSE)
    assert not session.advance(10.0)
    session.command(commands.STEP)
    assert session.advance(20.0)
    assert not session.advance(30.0)
    assert session.view().step == 1
    session.command(commands.PAUSE)
    session.advance(40.0)
    assert session.view().step > 1
    session.command(commands.RESTART)
    assert session.view().step == 0
    np.testing.assert_array_equal(session.stage.row.obs, first)
    for _ in range(20):
        session.command(commands.SLOWER)
    assert session.view().speed == 0.1
    session.close()


def test_chance_and_people_respect_the_mask() -> None:
    """Taxi says which actions do something; keys for the others do nothing, and are named."""
    env = {"id": "Taxi-v4"}
    diary = Diary()
    session = opened(env, "random", episodes=2, recorders=[diary])
    play_headless(session, lambda result: None)
    session.close()
    space = gym.make("Taxi-v4").action_space
    assert len(diary.actions) > 100
    assert all(is_possible(action, mask, space) for action, mask in zip(diary.actions, diary.masks, strict=True))
    session = opened(env, "human", seed=3)
    impossible = [key for key, action in session.person.keys.keys.items() if not session.stage.row.mask[0, action]]
    assert impossible
    session.press(impossible[0])
    assert session.next() == 0
    assert "not possible" in session.view().note
    assert session.view().step == 0
    session.close()


@pytest.mark.parametrize(
    ("env", "keys", "action"),
    [
        ({"id": "Pendulum-v1"}, ["left"], [2.0]),
        ({"id": "LunarLander-v3", "kwargs": {"continuous": True}}, ["up", "left"], [1.0, -1.0]),
        ({"id": "LunarLander-v3"}, ["left", "up"], 2),
        ({"id": "ALE/Pong-v5", "atari": {}}, ["space", "left"], 5),
        ({"id": "ALE/Breakout-v5", "atari": {"actions": "full"}}, ["up", "left", "space"], 15),
        ({"id": "ALE/Pong-v5", "atari": {"actions": ["NOOP", "LEFT"]}}, ["right"], 0),
        ({"id": "MinAtar/Breakout-v1"}, ["right"], 2),
        ({"id": "MiniGrid-Empty-5x5-v0"}, ["space"], 5),
        ({"id": "BipedalWalker-v3"}, ["a", "x"], [1.0, -1.0, 0.0, 0.0]),
        (
            {"id": "MountainCarContinuous-v0", "wrappers": [{"id": "frame_skip", "choices": [1, 4]}]},
            ["right"],
            [1.0, 0.0],
        ),
        ({"id": "MultiIdentity-v0"}, ["1"], [1, 0]),
    ],
)
def test_keys_become_actions_of_the_env(env: dict[str, Any], keys: list[str], action: Any) -> None:
    diary = Diary()
    spec = {"actions": ["no-op", "left", "right"]} if env["id"].startswith("MinAtar") else None
    session = opened(env, "human", recorders=[diary], spec=spec)
    for key in keys:
        session.press(key)
    assert session.next() > 0
    session.close()
    np.testing.assert_allclose(diary.actions[0], action)


def test_a_film_has_every_picture_of_the_game(tmp_path: Path) -> None:
    """The cells walked through, in order; a pause leaves no picture."""
    path = tmp_path / "walk.mp4"
    walk = ["down", "down", "right", "down", "right", "right"]
    with VideoWriter(path) as video:
        session = opened(SOLID, "human", drawn=True, episodes=1, recorders=[Filming(video)])
        for key in walk:
            session.command(commands.PAUSE)
            session.advance(1.0)
            session.command(commands.PAUSE)
            session.press(key)
            session.advance(2.0)
            session.release(key)
        session.close()
    env = gym.make("FrozenLake-v1", is_slippery=False, render_mode="rgb_array")
    env.reset(seed=0)
    expected = [env.render()]
    for action in (1, 1, 2, 1, 2, 2):
        env.step(action)
        expected.append(env.render())
    with av.open(str(path)) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(frames) == len(expected) == 7
    for number, frame in enumerate(frames):
        distances = [np.abs(frame.astype(int) - picture).mean() for picture in expected]
        assert int(np.argmin(distances)) == number
        assert distances[number] < 3


def test_a_view_is_plain_data(agent: gymnast.Agent) -> None:
    """What a WebSocket would send."""
    player = PolicyPlayer(agent.policy, deterministic=False)
    session = opened({"id": "CartPole-v1"}, "policy", policy=player)
    session.next()
    view = dataclasses.asdict(session.view())
    assert json.loads(json.dumps(view)) == {**view, "probabilities": list(view["probabilities"]), "keys": []}
    assert sum(view["probabilities"]) == pytest.approx(1)
    session.close()


def test_reward_terms_are_those_of_the_env() -> None:
    session = opened({"id": "HalfCheetah-v5"}, "random")
    session.next()
    view = session.view()
    assert set(view.terms) == {"forward", "ctrl"}
    assert sum(view.terms.values()) == pytest.approx(view.reward, rel=1e-5)
    session.close()


def test_a_game_is_saved_where_the_env_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the next free name; the next session begins there."""
    pytest.importorskip("vizdoom")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game-1.zds").touch()
    kwargs = {"screen": [60, 80]}
    session = open_session(EnvConfig(id="VizdoomDefendCenter-v1", kwargs=kwargs), EnvSpec(), RANDOM, drawn=False)
    with closing(session):
        for _ in range(20):
            session.next()
        session.command(commands.SAVE)
        assert session.view().note == "saved as game-2.zds (env.kwargs.start)"
    kwargs["start"] = "game-2.zds"
    session = open_session(EnvConfig(id="VizdoomDefendCenter-v1", kwargs=kwargs), EnvSpec(), RANDOM, drawn=False)
    with closing(session):
        session.next()
        assert session.stage.info["ammo"] < 26


def test_other_games_say_that_they_cannot_be_saved() -> None:
    with closing(open_session(EnvConfig(id="CartPole-v1"), EnvSpec(), RANDOM, drawn=False)) as session:
        session.command(commands.SAVE)
        assert session.view().note == "this game cannot be saved"

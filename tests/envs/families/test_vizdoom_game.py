"""A game of Doom as an env: the package's transitions, seeds, ends, labels, inputs, pictures, doors (ENV-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs.checking.check import check_env
from gymnast.envs.choose import cores
from gymnast.envs.families.vizdoom.variables import EVENTS, INFO
from gymnast.envs.make import make_envs, make_one

vizdoom = pytest.importorskip("vizdoom")
Make = Callable[..., Any]
SCENARIOS = [
    *("Basic", "DeadlyCorridor", "DefendCenter", "DefendLine", "HealthGathering"),
    *("MyWayHome", "PredictPosition", "TakeCover", "Deathmatch"),
]
WITHOUT_VARIABLES = ("MyWayHome", "PredictPosition")


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes games and ends their engines afterwards."""
    made: list[gym.Env] = []

    def one(name: str = "Basic", render_mode: str | None = None, **kwargs: Any) -> Any:
        env = make_one(EnvConfig(id=f"Vizdoom{name}-v1", kwargs=kwargs), render_mode)
        made.append(env)
        return env.unwrapped

    yield one
    for env in made:
        env.close()


def played(env: Any, seed: int, steps: int = 60) -> list[Any]:
    """What random actions lead to, comparable to the bit."""
    rng = np.random.default_rng(seed)
    obs, info = env.reset(seed=seed)
    trace: list[Any] = [(obs["screen"].tobytes(), info)]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        trace.append((obs["screen"].tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            obs, info = env.reset()
            trace.append((obs["screen"].tobytes(), info))
    return trace


# --- the package's game -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Basic", "DefendCenter", "HealthGathering", "MyWayHome"])
def test_the_package_plays_the_same(make: Make, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Pictures, inputs, rewards, lengths and ends; but the last observation of an episode is a true one here."""
    monkeypatch.chdir(tmp_path)  # the package writes into the current folder
    ours = make(name)
    size = {"screen_resolution": vizdoom.ScreenResolution.RES_160X120, "screen_format": vizdoom.ScreenFormat.GRAY8}
    buttons = len(ours.scenario.buttons)
    with closing(gym.make(f"Vizdoom{name}-v1", frame_skip=4, disable_env_checker=True, **size)) as theirs:
        (obs, _), (their_obs, _) = ours.reset(seed=5), theirs.reset(seed=5)
        # The package counts its buttons from the last one.
        singles = [ours.get_action_meanings().index(button) for button in reversed(ours.scenario.buttons)]
        rng = np.random.default_rng(1)
        for _ in range(600):
            assert set(obs) == set(their_obs)
            assert all(np.array_equal(obs[key], their_obs[key]) for key in obs)
            action = int(rng.integers(buttons + 1))
            obs, reward, terminated, truncated, _ = ours.step(singles[action - 1] if action else 0)
            their_obs, their_reward, ended, timed_out, _ = theirs.step(action)
            assert (reward, truncated) == (their_reward, timed_out)
            assert (terminated or truncated) == ended
            if ended:
                assert terminated != truncated, "an end of the time is no end of the game"
                assert not their_obs["screen"].any() and obs["screen"].any()
                return
            assert not truncated
    raise AssertionError("no episode ended")


def test_the_last_observation_of_an_episode_that_is_cut_off_is_a_new_one(make: Make) -> None:
    """What is bootstrapped from: the moment after the last step, not the one before."""
    env = make("HealthGathering", timeout=20)
    env.reset(seed=1)
    forward = env.get_action_meanings().index("MOVE_FORWARD")
    steps = [env.step(forward) for _ in range(5)]
    assert [step[3] for step in steps] == [False] * 4 + [True]
    assert not any(step[2] for step in steps)
    assert not np.array_equal(steps[-1][0]["screen"], steps[-2][0]["screen"])
    assert steps[-1][4]["position_x"] != steps[-2][4]["position_x"]


def test_time_that_is_no_multiple_of_the_skip(make: Make) -> None:
    """The last step is shorter, so that no reward is too many."""
    env = make("HealthGathering", timeout=10, frame_skip=4)
    env.reset(seed=1)
    assert [env.step(0)[1:4] for _ in range(3)] == [(4.0, False, False), (4.0, False, False), (2.0, False, True)]


def test_no_time_limit(make: Make) -> None:
    env = make("Basic", timeout=0)
    env.reset(seed=1)
    assert not any(any(env.step(0)[2:4]) for _ in range(100))


# --- seeds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_equal_seeds_play_equal_games(make: Make, name: str) -> None:
    """After any other game, after the same one, and in another engine; other seeds play others."""
    env = make(name)
    first = played(env, 5)
    assert played(env, 5) == first, "the same seed twice in a row"
    assert played(env, 6, steps=13) != first[:14]
    assert played(env, 5) == first
    assert played(make(name), 5) == first


def test_the_episodes_after_a_seed_differ(make: Make) -> None:
    env = make("Basic")
    starts = [env.reset(seed=1)[0], *(env.reset()[0] for _ in range(4))]
    assert len({obs["screen"].tobytes() for obs in starts}) > 2, "the monster stands somewhere else"


# --- what is seen -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "shape", "drawn"),
    [
        ({}, (120, 160, 1), "RES_160X120"),
        ({"screen": [60, 80]}, (60, 80, 1), "RES_160X120"),
        ({"screen": [84, 84], "gray": False}, (84, 84, 3), "RES_160X120"),
        ({"screen": [240, 320], "gray": False}, (240, 320, 3), "RES_320X240"),
        ({"screen": [121, 160]}, (121, 160, 1), "RES_200X125"),
    ],
)
def test_the_engine_draws_as_little_as_possible(make: Make, kwargs: dict[str, Any], shape: Any, drawn: str) -> None:
    env = make(**kwargs)
    obs, _ = env.reset(seed=1)
    assert env._screen.resolution == drawn
    assert env.observation_space.contains(obs) and obs["screen"].shape == shape
    assert obs["screen"].std() > 5, "a picture"


@pytest.mark.parametrize("name", SCENARIOS)
def test_game_variables_are_inputs(make: Make, name: str) -> None:
    """The cfg's, next to the picture; the same numbers stand in `info`."""
    env = make(name)
    obs, _ = env.reset(seed=1)
    assert ("gamevariables" in obs) == (name not in WITHOUT_VARIABLES)
    for _ in range(8):
        obs, _, _, _, info = env.step(env.action_space.sample())
        for value, variable in zip(obs.get("gamevariables", ()), env.scenario.variables, strict=False):
            told = {INFO[key]: number for key, number in info.items()}
            assert told.get(variable, value) == value
    assert env.observation_space.contains(obs)


def test_variables_of_ones_own(make: Make) -> None:
    env = make("MyWayHome", variables=["ANGLE", "HEALTH"])
    obs, info = env.reset(seed=3)
    assert obs["gamevariables"].tolist() == [np.float32(info["angle"]), 100.0]
    assert list(make("Basic", variables=[]).observation_space.spaces) == ["screen"]


def test_a_picture_is_never_written_into_again(make: Make) -> None:
    env = make("MyWayHome")
    kept = [env.reset(seed=3)[0]["screen"]]
    copies = [kept[0].copy()]
    for _ in range(5):
        kept.append(env.step(1)[0]["screen"])
        copies.append(kept[-1].copy())
    assert all(map(np.array_equal, kept, copies)) and len({copy.tobytes() for copy in copies}) == 6


def test_nothing_is_wrong_with_it_as_an_env(make: Make) -> None:
    """As `gymnast env check` looks at it."""
    report = check_env(EnvConfig(id="VizdoomBasic-v1", kwargs={"screen": [60, 80]}))
    assert report.ok and not list(report.findings)


def test_events_are_counted_from_the_beginning_of_each_episode(make: Make) -> None:
    """Also where the last tic of the game before was a hit."""
    env = make("DefendCenter")
    rng = np.random.default_rng(0)
    infos, total = [env.reset(seed=1)[1]], 0.0
    for _ in range(600):
        _, reward, terminated, truncated, info = env.step(int(rng.integers(6)))
        total += reward
        if terminated or truncated:
            assert terminated and info["dead"] == 1 and info["hits"] > 0
            assert total == info["kills"] - 1, "a kill is a point, and death takes one"
            infos.append(env.reset()[1])
            total = 0.0
    assert len(infos) > 3
    assert all(info[key] == 0.0 for info in infos for key in EVENTS)


# --- what is done -----------------------------------------------------------------------------------------------------


def moved(env: Any, action: Any, steps: int = 4) -> tuple[float, float, float, float]:
    """Forward, to the right, turned to the left, and bullets spent, by holding one action."""
    env.reset(seed=2)
    start = env.step(0 if np.ndim(action) == 0 else np.zeros_like(action))[4]
    for _ in range(steps):
        end = env.step(action)[4]
    east, north = end["position_x"] - start["position_x"], end["position_y"] - start["position_y"]
    angle = np.deg2rad(start["angle"])
    turned = (end["angle"] - start["angle"] + 180) % 360 - 180
    forward = east * np.cos(angle) + north * np.sin(angle)
    right = east * np.sin(angle) - north * np.cos(angle)
    return forward, right, turned, start["ammo"] - end["ammo"]


MOVES = {
    "NOOP": (0, 0, 0, 0),
    "MOVE_FORWARD": (1, 0, 0, 0),
    "MOVE_BACKWARD": (-1, 0, 0, 0),
    "MOVE_RIGHT": (0, 1, 0, 0),
    "MOVE_LEFT": (0, -1, 0, 0),
    "TURN_LEFT": (0, 0, 1, 0),
    "TURN_RIGHT": (0, 0, -1, 0),
    "ATTACK": (0, 0, 0, 1),
    "MOVE_LEFT+ATTACK": (0, -1, 0, 1),
    "MOVE_LEFT+MOVE_FORWARD": (1, -1, 0, 0),
    "ATTACK+TURN_RIGHT": (0, 0, -1, 1),
}
DELTAS = {
    "TURN_LEFT_RIGHT_DELTA=-5": (0, 0, 1, 0),
    "TURN_LEFT_RIGHT_DELTA=5": (0, 0, -1, 0),
    "MOVE_FORWARD_BACKWARD_DELTA=10": (1, 0, 0, 0),
    "MOVE_LEFT_RIGHT_DELTA=10": (0, 1, 0, 0),
    "ATTACK+MOVE_LEFT_RIGHT_DELTA=-10": (0, -1, 0, 1),
}


ALL = ["MOVE_LEFT", "MOVE_RIGHT", "ATTACK", "MOVE_FORWARD", "MOVE_BACKWARD", "TURN_LEFT", "TURN_RIGHT"]


def signs(env: Any, action: Any) -> tuple[int, ...]:
    """Which way it goes; a unit less than one is standing still."""
    return tuple(int(np.sign(round(value))) for value in moved(env, action))


@pytest.mark.parametrize("labels", [MOVES, DELTAS])
def test_labels_say_what_moves_the_player(make: Make, labels: dict[str, tuple[int, ...]]) -> None:
    env = make("Basic", buttons=ALL, actions=["NOOP", *(label for label in labels if label != "NOOP")])
    names = env.get_action_meanings()
    assert {label: signs(env, names.index(label)) for label in labels} == labels


def test_combinations_press_what_their_labels_say(make: Make) -> None:
    env = make("Basic", buttons=ALL)
    names = env.get_action_meanings()
    found = {label: signs(env, names.index(label)) for label in MOVES if label in names}
    assert found == {label: MOVES[label] for label in found} and len(found) >= 10


def test_a_delta_button_turns_by_degrees_per_tic(make: Make) -> None:
    env = make("Basic", actions=["NOOP", "TURN_LEFT_RIGHT_DELTA=20"])
    assert moved(env, 1, steps=1)[2] == pytest.approx(-20 * 4, abs=0.1)


def test_every_choice_of_a_multi_action_moves_as_it_says(make: Make) -> None:
    """Opposites share a number, so that no pair of them can be chosen."""
    env = make("Basic", buttons=ALL, actions="multi")
    groups = env.button_groups
    assert env.action_space.nvec.tolist() == [len(group) for group in groups] == [3, 2, 3, 3]
    for place, group in enumerate(groups):
        for choice, label in enumerate(group):
            action = np.zeros(len(groups), np.int64)
            action[place] = choice
            assert signs(env, action) == MOVES[label], label
    assert signs(env, np.array([1, 1, 0, 0])) == MOVES["MOVE_LEFT+ATTACK"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_combination_presses_opposites(make: Make, name: str) -> None:
    env = make(name)
    labels = env.get_action_meanings()
    assert len(set(labels)) == len(labels) == env.action_space.n
    for label in labels:
        pressed = set(label.split("+"))
        for pair in (("MOVE_LEFT", "MOVE_RIGHT"), ("TURN_LEFT", "TURN_RIGHT"), ("MOVE_FORWARD", "MOVE_BACKWARD")):
            assert not pressed >= set(pair)
    for button in env.scenario.buttons:
        if button not in ("SPEED", "STRAFE") and not button.endswith("DELTA"):
            assert button in labels


def test_skill_decides_how_hard_the_monsters_hit(make: Make) -> None:
    damage = {}
    for skill in (1, 5):
        env = make("DeadlyCorridor", doom_skill=skill)
        info = env.reset(seed=4)[1]
        over = False
        for _ in range(60):
            if not over:
                _, _, over, _, info = env.step(0)
        damage[skill] = info["damage_taken"]
    assert damage[5] > 2 * damage[1] >= 0


def test_skill_can_be_changed_between_episodes(make: Make) -> None:
    """As a curriculum does."""
    easy, env = make("DeadlyCorridor", doom_skill=1), make("DeadlyCorridor", doom_skill=5)
    hard = played(env, 4, steps=40)
    env.doom_skill = 1
    assert played(env, 4, steps=40) == played(easy, 4, steps=40) != hard


def test_a_door_of_a_whole_game_opens_with_use(make: Make) -> None:
    """The first map of Freedoom: in front of a door, forward leads on after USE only."""
    env = make("Doom", actions=["NOOP", "MOVE_FORWARD", "USE", "TURN_LEFT_RIGHT_DELTA=-90"], frame_skip=1)
    reached = {}
    for use in (False, True):
        env.reset(seed=1)
        env._game.send_game_command("kill monsters")  # one waits behind the door, and would stand in the way
        env._game.send_game_command("warp -224 1360")
        for _ in range(10):  # a player who was just put somewhere does not move at first
            env.step(0)
        info = env.step(3)[4]
        assert abs(info["angle"] - 90) < 1, "looks at the door, which is at y = 1392"
        for _ in range(4 * use):
            env.step(2)
        for _ in range(40):
            env.step(0)
        for _ in range(40):
            info = env.step(1)[4]
        reached[use] = info["position_y"]
    assert reached[False] < 1392 < 1420 < reached[True]


def test_a_saved_game_is_where_every_episode_begins(make: Make, tmp_path: Any) -> None:
    """Exactly, also in another engine; events, time and rewards count from there."""
    env = make("DefendCenter")
    env.reset(seed=1)
    for _ in range(30):
        env.step(env.get_action_meanings().index("TURN_LEFT+ATTACK"))
    for _ in range(5):  # no shot is under way
        *_, info = env.step(0)
    saved = env.save_game(tmp_path / "moment")
    assert info["ammo"] < 26
    traces = []
    for start in [make("DefendCenter", start=str(saved), timeout=80) for _ in range(2)]:
        for seed in (1, 2):
            obs, first = start.reset(seed=seed)
            assert first["ammo"] == info["ammo"] and all(first[key] == 0 for key in EVENTS)
            trace = [obs["screen"].tobytes()]
            for _ in range(20):
                obs, reward, terminated, truncated, after = start.step(1)
                trace.append((obs["screen"].tobytes(), reward, after))
                assert abs(reward) <= 1 and not terminated
            assert truncated
            traces.append(trace)
    assert traces[0] == traces[1] == traces[2] == traces[3]


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_pictures_are_large_and_change_nothing(make: Make) -> None:
    """The game that is filmed is the game that is trained on, to the bit."""
    silent, filmed = make("DefendCenter", screen=[60, 80]), make("DefendCenter", "rgb_array", screen=[60, 80])
    assert silent.render() is None
    rng = np.random.default_rng(0)
    pictures = []
    for env in (silent, filmed):
        env.reset(seed=7)
    for step in range(220):
        action = int(rng.integers(6))
        one, other = silent.step(action), filmed.step(action)
        assert one[1:] == other[1:] and np.array_equal(one[0]["screen"], other[0]["screen"])
        if one[2]:
            silent.reset(), filmed.reset()
        if step % 20 == 0:
            pictures.append(filmed.render())
            assert small(pictures[-1], other[0]["screen"]) > 0.9, "shows what the agent sees"
    assert {picture.shape for picture in pictures} == {(480, 640, 3)}
    assert len({picture.tobytes() for picture in pictures}) > 5


def small(picture: np.ndarray, seen: np.ndarray) -> float:
    """How alike a large picture and a small gray one are: their correlation."""
    gray = picture.mean(-1).reshape(60, 8, 80, 8).mean((1, 3))
    return float(np.corrcoef(gray.ravel(), seen[..., 0].ravel())[0, 1])


def test_the_pace_of_pictures_is_the_games(make: Make) -> None:
    assert make(frame_skip=4).metadata["render_fps"] == 9
    assert make(frame_skip=1).metadata["render_fps"] == 35


# --- behind the contract ----------------------------------------------------------------------------------------------


def test_workers_give_the_same_bits() -> None:
    section = {"id": "VizdoomDefendCenter-v1", "kwargs": {"screen": [60, 80]}, "time_limit": 40}
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 6, (60, 3))
    traces = []
    for way in ({"vectorization": "inprocess"}, {"vectorization": "workers", "n_workers": 2}):
        with closing(make_envs(EnvConfig(**section, **way), 3)) as envs:
            row = envs.new_row()
            envs.reset([1, 2, 3], row)
            trace = []
            for action in actions:
                ended = envs.step(action, row)
                trace.append([array.tobytes() for array in (*row.obs.values(), row.reward, row.truncated)])
                trace.append([(one.index, one.ret, one.length, one.infos["hits"]) for one in ended])
            traces.append(trace)
    assert traces[0] == traces[1]


def test_every_core_has_several_workers() -> None:
    """A worker sleeps while its engine, a process of its own, plays."""
    with closing(make_envs(EnvConfig(id="VizdoomBasic-v1", vectorization="workers"), 8)) as envs:
        assert envs.n_workers == min(8, 4 * cores())


def test_a_frame_stack_stacks_the_picture_alone() -> None:
    config = EnvConfig(id="VizdoomBasic-v1", kwargs={"screen": [60, 80]}, wrappers=[{"id": "frame_stack", "size": 4}])
    with closing(make_envs(config.model_copy(update={"vectorization": "inprocess"}), 1)) as envs:
        assert {key: part.shape for key, part in envs.observation_space.items()} == {
            "gamevariables": (1,),
            "screen": (4, 60, 80, 1),
        }

"""One Atari game as an env: seeds, sticky actions, frames, snapshots, labels, pictures (ENV-3)."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs import snapshots
from gymnast.envs.families.atari.game import FIRE, NOOP, AtariGame
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import frames_per_step
from gymnast.runs import tree

pytest.importorskip("ale_py", reason="ale-py is not installed")


def make(game: str = "Breakout", render_mode: str | None = None, **atari: Any) -> gym.Env:
    """As a run makes it."""
    return make_one(EnvConfig(id=f"ALE/{game}-v5", atari=atari), render_mode)


def played(env: gym.Env, steps: int, seed: int = 0) -> list[Any]:
    """Everything the env says, over ends."""
    random, lines = np.random.default_rng(seed), []
    for _ in range(steps):
        obs, reward, terminated, truncated, info = env.step(int(random.integers(env.action_space.n)))
        lines.append((obs.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            obs, info = env.reset()
            lines.append((obs.tobytes(), info))
    return lines


def test_one_seed_one_episode() -> None:
    """No-ops and sticky actions come from the seed given to reset, and later episodes too; other seeds differ."""
    one, two = make(obs="ram", life_loss="episode"), make(obs="ram", life_loss="episode")
    one.reset(seed=5)
    first = played(one, 150)
    two.reset(seed=6)
    played(two, 40)
    two.reset(seed=5)
    assert played(two, 150) == first
    two.reset(seed=6)
    assert played(two, 150) != first
    starts = {one.reset()[0].tobytes() for _ in range(5)}
    assert len(starts) > 1


@pytest.mark.parametrize("game", ["Assault", "YarsRevenge", "Adventure"])
def test_what_was_played_before_does_not_matter(game: str) -> None:
    """After ALE's own reset these games go on otherwise than on a fresh console."""
    fresh, used = make(game, obs="ram", sticky=0.0), make(game, obs="ram", sticky=0.0)
    used.reset(seed=1)
    played(used, 80)
    for env in (fresh, used):
        env.reset(seed=2)
    assert played(fresh, 60) == played(used, 60)


@pytest.mark.parametrize("sticky", [0.0, 0.25, 1.0])
def test_sticky_actions(sticky: float) -> None:
    """Every frame of its own has that chance of repeating the button before; at a reset none is pressed."""
    env = make("Pong", sticky=sticky, noops=0, fire_reset=False).unwrapped
    env.reset(seed=1)
    given: list[int] = []
    ale = env.ale
    env.ale = Recorder(ale, given)
    wanted: list[int] = []
    for step in range(250):
        action = step % 2 * 3  # NOOP and LEFT in turn, so that a repeated button shows
        env.step(action)
        wanted += [(0, 4)[step % 2]] * 4
    before = [NOOP, *given[:-1]]
    repeated = [g != w for g, w in zip(given, wanted, strict=True)]
    assert all(g in (w, b) for g, w, b in zip(given, wanted, before, strict=True))
    could = [w != b for w, b in zip(wanted, before, strict=True)]
    share = sum(repeated) / sum(could)
    assert share == sticky if sticky in (0.0, 1.0) else abs(share - sticky) < 0.08


class Recorder:
    """The emulator, with a list of the buttons it was given."""

    def __init__(self, ale: Any, given: list[int]) -> None:
        self._ale, self._given = ale, given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ale, name)

    def act(self, action: int) -> int:
        """Note it."""
        self._given.append(action)
        return int(self._ale.act(action))


def test_how_an_episode_begins() -> None:
    """FIRE first where the game has it, then fewer than `noops` frames in all; none with `noops: 0`."""
    frames = {"Breakout": [], "Freeway": []}
    for game, counts in frames.items():
        env = make(game, sticky=0.0, noops=5).unwrapped
        env.reset(seed=0)
        given: list[int] = []
        env.ale = Recorder(env.ale, given)
        for _ in range(40):
            given.clear()
            env.reset()
            counts.append(len(given))
            assert given == ([FIRE] if game == "Breakout" else []) + [NOOP] * (len(given) - (game == "Breakout"))
    assert set(frames["Breakout"]) == {1, 2, 3, 4}
    assert set(frames["Freeway"]) == {0, 1, 2, 3, 4}
    env = make(noops=0, fire_reset=False).unwrapped
    env.reset(seed=0)
    assert env.ale.getEpisodeFrameNumber() == 0


@pytest.mark.parametrize("skip", [1, 4])
def test_frames_are_skipped_once(skip: int) -> None:
    """ALE's v5 ids skip four frames by themselves; here only the protocol does."""
    env = make("Pong", obs="ram", skip=skip).unwrapped
    env.reset(seed=0)
    before = env.ale.getFrameNumber()
    for _ in range(50):
        env.step(0)
    assert env.ale.getFrameNumber() - before == 50 * skip
    assert env.metadata["render_fps"] == 60 // skip
    assert frames_per_step(EnvConfig(id="ALE/Pong-v5", atari={"skip": skip})) == skip


def test_ram_is_the_consoles() -> None:
    """The 128 bytes, and the same game as Gymnasium's own env plays."""
    env = make("Pong", obs="ram", sticky=0.0, noops=0, fire_reset=False)
    other = gym.make("ALE/Pong-v5", obs_type="ram", repeat_action_probability=0.0)
    assert env.observation_space == other.observation_space
    obs, info = env.reset(seed=0)
    expected, _ = other.reset(seed=0)
    assert (obs == expected).all()
    assert info == {"lives": 0}
    random = np.random.default_rng(0)
    for _ in range(100):
        action = int(random.integers(6))
        obs, reward, *_ = env.step(action)
        expected, points, *_ = other.step(action)
        assert (obs == expected).all()
        assert reward == points


def test_objects_remember_the_step_before() -> None:
    """Velocities are differences of positions, none at the start; a new episode forgets."""
    env = make("Pong", obs="objects", sticky=0.0)
    obs, _ = env.reset(seed=0)
    names = env.unwrapped._view._map.names
    at, speed = names.index("player y"), names.index("player dy")
    for _ in range(60):
        before = obs[at]
        obs, *_ = env.step(3)
        if before and obs[at]:
            assert obs[speed] == obs[at] - before
    assert env.observation_space.contains(obs)
    assert env.reset()[0][speed] == 0


def stored(state: dict[str, Any]) -> Any:
    """Through the format of checkpoints."""
    tensors: dict[str, Any] = {}
    return tree.decode(json.loads(json.dumps(tree.encode(state, tensors, "env"), allow_nan=False)), tensors)


@pytest.mark.parametrize("obs", ["pixels", "ram", "objects"])
@pytest.mark.parametrize("game", ["Pong", "Breakout"])
def test_snapshots_go_on_bit_for_bit(game: str, obs: str) -> None:
    """With sticky actions, in the middle of an episode, into an env that played something else, over ends."""
    env, other = make(game, obs=obs, sticky=0.25), make(game, obs=obs, sticky=0.25)
    assert snapshots.method(env) == "snapshot"
    env.reset(seed=3)
    played(env, 61)
    for part in range(3):
        state = stored(snapshots.save(env))
        expected = played(env, 130, seed=part)
        other.reset(seed=100 + part)
        played(other, 7 + part)
        snapshots.load(other, state)
        assert played(other, 130, seed=part) == expected


def test_the_last_button_is_part_of_a_snapshot() -> None:
    """ALE itself forgets it: with actions that always stick, a restored game must go on pressing it."""
    env, other = make("Pong", obs="ram", sticky=0.9), make("Pong", obs="ram", sticky=0.9)
    for seed in range(5):
        env.reset(seed=seed)
        for _ in range(20):
            env.step(2)
        assert env.unwrapped._pressed == 3
        state = snapshots.save(env)
        other.reset(seed=50 + seed)
        snapshots.load(other, state)
        for _ in range(10):
            assert (env.step(5)[0] == other.step(5)[0]).all()


def test_games_that_ale_does_not_restore_are_repeated() -> None:
    """Q*bert comes back otherwise than it was saved: its episode is replayed, exactly."""
    section = EnvConfig(id="ALE/Qbert-v5", atari={"obs": "ram"}, vectorization="inprocess")
    with closing(make_envs(section, 2)) as envs, closing(make_envs(section, 2)) as others:
        assert envs.exact_resume == "replay"
        row, again = envs.new_row(), others.new_row()
        envs.reset([1, 2], row)
        random = np.random.default_rng(0)
        for _ in range(150):
            envs.step(random.integers(0, 6, 2), row)
        others.load_state(stored(envs.save_state()))
        for _ in range(100):
            actions = random.integers(0, 6, 2)
            envs.step(actions, row)
            others.step(actions, again)
            assert (row.obs == again.obs).all()


@pytest.mark.parametrize("life_loss", ["ignore", "terminal"])
def test_workers_play_the_same(life_loss: str) -> None:
    """A lost life is told across processes too, and ends nothing there."""
    section = {"id": "ALE/Breakout-v5", "atari": {"obs": "ram", "life_loss": life_loss}}
    lines = []
    for kind in ("inprocess", "workers"):
        with closing(make_envs(EnvConfig(**section, vectorization=kind, n_workers=2), 3)) as envs:
            lines.append(contract_trace(envs))
    assert lines[0] == lines[1]
    assert any(ended for *_, ended in lines[0])
    lost = sum(sum(terminated) for _, _, terminated, _ in lines[0])
    ended = sum(len(ended) for *_, ended in lines[0])
    assert lost >= 5 * ended if life_loss == "terminal" else lost == ended


def contract_trace(envs: VectorEnv) -> list[Any]:
    """Observations, rewards, `terminated` and ended episodes of a few hundred steps."""
    row, random, lines = envs.new_row(), np.random.default_rng(0), []
    envs.reset([1, 2, 3], row)
    for _ in range(250):
        ended = envs.step(random.integers(0, 4, 3), row)
        facts = [(e.index, e.ret, e.length, e.terminated) for e in ended]
        lines.append((row.obs.tobytes(), row.reward.tolist(), row.terminated.tolist(), facts))
    return lines


def test_labels_and_pictures() -> None:
    """The game's own buttons, all of them, or a list; pictures are the console's screen, and only where asked for."""
    assert make("Pong").unwrapped.get_action_meanings() == ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"]
    full = make("Pong", actions="full")
    assert full.action_space.n == len(full.unwrapped.get_action_meanings()) == 18
    chosen = make("Pong", "rgb_array", actions=["NOOP", "LEFT", "RIGHT"], sticky=0.0)
    assert chosen.unwrapped.get_action_meanings() == ["NOOP", "LEFT", "RIGHT"]
    chosen.reset(seed=0)
    frame = chosen.render()
    assert (frame.shape, frame.dtype) == ((210, 160, 3), np.uint8)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 3
    silent = AtariGame("pong")
    silent.reset(seed=0)
    assert silent.render() is None


def test_a_chosen_button_is_that_button() -> None:
    """LEFT at its new place in the list does what LEFT does among the game's own."""
    own, chosen = (make("Breakout", obs="ram", sticky=0.0, noops=0, **kw) for kw in ({}, {"actions": ["LEFT", "FIRE"]}))
    own.reset(seed=0)
    chosen.reset(seed=0)
    for _ in range(30):
        assert (own.step(3)[0] == chosen.step(0)[0]).all()


def test_modes_and_difficulties() -> None:
    """They change the game."""
    plain, other = make("Pong", obs="ram", noops=0, sticky=0.0), make("Pong", obs="ram", noops=0, sticky=0.0, mode=1)
    plain.reset(seed=0)
    other.reset(seed=0)
    assert any((plain.step(0)[0] != other.step(0)[0]).any() for _ in range(30))

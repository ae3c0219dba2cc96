"""ALE's vector env behind the contract beside single games: frame by frame, end by end, life by life (ENV-3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs.benching import ways
from gymnast.envs.choose import choose_vectorization, native_form
from gymnast.envs.families.atari.vector import AtariVector
from gymnast.envs.make import make_envs
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.errors import ConfigError, EnvError, UsageError
from gymnast.seeding import env_seeds

pytest.importorskip("ale_py", reason="ale-py is not installed")
N = 3
EQUAL = {"noops": 0, "sticky": 0.0}
"""Without random streams, which are the only difference between the two."""


def config(game: str, vectorization: str = "auto", wrappers: list[Any] | None = None, **atari: Any) -> EnvConfig:
    """An env section."""
    return EnvConfig(id=f"ALE/{game}-v5", vectorization=vectorization, wrappers=wrappers or [], atari=atari)


def make(game: str, vectorization: str = "native", n: int = N, **atari: Any) -> VectorEnv:
    """As a run makes them."""
    return make_envs(config(game, vectorization, **atari), n)


def started(envs: VectorEnv, seeds: list[int] | None = None) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(seeds or env_seeds(0, "train_envs", envs.n_envs), row)
    return row


def random_actions(envs: VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """[steps, n]."""
    return np.random.default_rng(seed).integers(0, envs.action_space.n, (steps, envs.n_envs))


def told(episode: EndedEpisode) -> tuple[Any, ...]:
    """All that an ended episode says but what only one of the two knows."""
    return episode.index, episode.ret, episode.length, episode.terminated, episode.final_obs.tobytes()


def compared(game: str, steps: int, **atari: Any) -> tuple[int, int, int]:
    """Play both, every number equal; gives ended episodes, and rows with `terminated` and with `truncated`."""
    counts = np.zeros(3, np.int64)
    with closing(make(game, **atari)) as native, closing(make(game, "inprocess", **atari)) as single:
        assert isinstance(native, AtariVector)
        assert (native.observation_space, native.action_space) == (single.observation_space, single.action_space)
        ours, theirs = started(native), started(single)
        assert ours.obs.tobytes() == theirs.obs.tobytes()
        for actions in random_actions(native, steps):
            ended, expected = native.step(actions, ours), single.step(actions, theirs)
            for name in ("obs", "reward", "terminated", "truncated"):
                assert (getattr(ours, name) == getattr(theirs, name)).all(), name
            assert [told(e) for e in ended] == [told(e) for e in expected]
            counts += len(ended), ours.terminated.sum(), ours.truncated.sum()
    return tuple(counts.tolist())


@pytest.mark.parametrize("game", ["Pong", "Breakout"])
@pytest.mark.parametrize("gray", [True, False])
def test_frames_are_single_games_frames(game: str, gray: bool) -> None:
    """Pixel for pixel over hundreds of random steps, with rewards and ends."""
    ended, terminated, truncated = compared(game, 250, gray=gray, **EQUAL)
    assert (ended, truncated) == (terminated, 0)
    assert ended > 0 or game == "Pong"


@pytest.mark.parametrize(
    "atari",
    [
        {"max_pool": False},
        {"skip": 1, "stack": 2},
        {"skip": 3, "size": (210, 160)},
        {"size": (64, 96), "stack": 1},
        {"fire_reset": False},
        {"actions": "full"},
        {"actions": ["RIGHT", "NOOP", "LEFT"]},
        {"actions": ["UP", "FIRE"]},
    ],
    ids=str,
)
def test_every_option_means_the_same(atari: dict[str, Any]) -> None:
    """The native env and single games read the protocol alike."""
    compared("Breakout", 120, **EQUAL, **atari)


@pytest.mark.parametrize("life_loss", ["ignore", "terminal", "episode"])
def test_lost_lives(life_loss: str) -> None:
    """They end nothing, cut only the credit, or end the episode; never is an episode told that did not end."""
    ended, terminated, truncated = compared("Breakout", 300, life_loss=life_loss, **EQUAL)
    assert truncated == 0
    if life_loss == "terminal":
        assert terminated >= 4 * ended > 0  # five lives, the last of which ends the game
    else:
        assert ended == terminated > (10 if life_loss == "episode" else 0)


def test_a_lost_life_keeps_the_game() -> None:
    """The return and the length are those of the whole game, across all its lives."""
    with closing(make("Breakout", life_loss="terminal")) as envs:
        row, returns, lengths, lives = started(envs), np.zeros(N), np.zeros(N, np.int64), np.zeros(N, np.int64)
        seen = 0
        for actions in random_actions(envs, 500):
            ended = envs.step(actions, row)
            returns, lengths, lives = returns + row.reward, lengths + 1, lives + row.terminated
            for e in ended:
                assert (e.ret, e.length, lives[e.index]) == (returns[e.index], lengths[e.index], 5)
                returns[e.index], lengths[e.index], lives[e.index] = 0.0, 0, 0
                seen += 1
        assert seen >= N


@pytest.mark.parametrize("atari", [{"frame_cap": 120}, {"frame_cap": 121, "life_loss": "terminal"}], ids=str)
def test_the_frame_cap_truncates(atari: dict[str, Any]) -> None:
    """Episodes are cut off, not terminated, with the observation to bootstrap from, equal to single games'."""
    ended, _, truncated = compared("Pong", 100, **EQUAL, **atari)
    assert ended == truncated == N * (100 // (30 if atari["frame_cap"] == 120 else 31))
    ended, _, truncated = compared("Breakout", 100, **EQUAL, **atari)
    assert ended >= truncated > 0


def test_the_observation_to_bootstrap_from_is_the_true_one() -> None:
    """A game that was cut off shows what the same game shows where it goes on."""
    with closing(make("Pong", frame_cap=80, **EQUAL)) as cut, closing(make("Pong", **EQUAL)) as whole:
        short, long = started(cut), started(whole)
        for step, actions in enumerate(random_actions(cut, 20), 1):
            ended = cut.step(actions, short)
            assert not whole.step(actions, long)
            assert len(ended) == (N if step == 20 else 0)
        assert all((e.final_obs == long.obs[e.index]).all() and not e.terminated for e in ended)
        assert not (short.obs == long.obs).all()  # a new game has begun
        assert not short.obs[:, :3].any() and short.obs[:, 3].any()  # zeros before its first frame


def test_time_limits_in_steps() -> None:
    """`env.time_limit` counts steps of the agent and never lifts the frame cap."""
    for limit, cap, length in ((7, 108_000, 7), (50, 40, 10)):
        section = config("Pong", frame_cap=cap).model_copy(update={"time_limit": limit})
        with closing(make_envs(section, N)) as envs:
            row = started(envs)
            lengths = [e.length for actions in random_actions(envs, 30) for e in envs.step(actions, row)]
            assert set(lengths) == {length}


def trace(envs: VectorEnv, steps: int = 60, seeds: list[int] | None = None) -> list[bytes]:
    """All that the contract delivers, step by step."""
    row, lines = started(envs, seeds), []
    for actions in random_actions(envs, steps):
        ended = envs.step(actions, row)
        arrays = (row.obs, row.reward, row.terminated, row.truncated)
        lines.append(b"|".join(array.tobytes() for array in arrays) + repr([told(e) for e in ended]).encode())
    return lines


def test_seeds_and_threads() -> None:
    """Same seeds, same trace, whatever the threads; a slot's trace depends on its own seed alone; episodes differ."""
    atari = {"frame_cap": 80}
    with (
        closing(make_envs(config("Breakout", **atari).model_copy(update={"n_workers": 1}), N)) as one,
        closing(make_envs(config("Breakout", **atari).model_copy(update={"n_workers": 2}), N)) as two,
    ):
        first = trace(one, seeds=[5, 6, 7])
        assert trace(two, seeds=[5, 6, 7]) == first
        assert trace(one, seeds=[5, 6, 7]) == first
        assert trace(one, seeds=[5, 6, 8]) != first
        row, starts = started(one, [4, 4, 9]), []
        for _ in range(65):
            ended = one.step(np.full(N, 2), row)
            starts += [row.obs[e.index].tobytes() for e in ended if e.index == 0]
            assert row.obs[0].tobytes() == row.obs[1].tobytes()
        assert row.obs[0].tobytes() != row.obs[2].tobytes()
        assert len(set(starts)) == len(starts) == 3


def test_send_and_receive() -> None:
    """The two halves are a step, also while another group steps."""
    with closing(make("Breakout")) as whole, closing(make("Breakout")) as halves, closing(make("Pong")) as other:
        expected, row, beside = started(whole), started(halves), started(other)
        for actions in random_actions(whole, 80):
            ended = whole.step(actions, expected)
            halves.send(actions)
            other.send(actions)
            got = halves.recv(row)
            assert [told(e) for e in got] == [told(e) for e in ended]
            assert (row.obs == expected.obs).all()
            other.recv(beside)


def test_arrays_of_the_caller() -> None:
    """Views of a rollout are filled, whatever their precision; final observations do not change when their slot goes on."""
    with closing(make("Breakout", life_loss="episode", **EQUAL)) as envs:
        obs, reward = np.zeros((41, N, 4, 84, 84), np.uint8), np.zeros((41, N), np.float64)
        flags = np.zeros((2, 41, N), np.bool_)
        rows = [StepRow(obs[t], reward[t], flags[0][t], flags[1][t]) for t in range(41)]
        envs.reset([1, 2, 3], rows[0])
        kept = []
        for t, actions in enumerate(random_actions(envs, 40), 1):
            kept += [(e, e.final_obs.copy()) for e in envs.step(actions, rows[t])]
        assert obs[1:, :, -1].any((1, 2, 3)).all()
        assert kept
        assert all((e.final_obs == copy).all() for e, copy in kept)


def test_rewards_are_not_clipped_and_scores_never() -> None:
    """Points come by the dozen; the clip wrapper cuts what is learned from, not what is reported."""
    plain = make_envs(config("SpaceInvaders", frame_cap=1200), N)
    clipped = make_envs(config("SpaceInvaders", wrappers=["reward_clip"], frame_cap=1200), N)
    with closing(plain) as envs, closing(clipped) as learned:
        row, cut, scores, reported, largest = started(envs), started(learned), [], [], 0.0
        for actions in random_actions(envs, 320):
            scores += [e.ret for e in envs.step(actions, row)]
            reported += [e.ret for e in learned.step(actions, cut)]
            largest = max(largest, row.reward.max())
            assert cut.reward.max() <= 1
        assert largest > 1
        assert reported == scores != []


def test_what_is_chosen() -> None:
    """Single games, whose states can be saved; the vector env where it is asked for and can play them."""
    assert choose_vectorization(config("Pong"))[0] in ("inprocess", "workers")
    assert choose_vectorization(config("Pong", "native")) == ("native", "as configured")
    for fits in ({}, {"actions": ["NOOP", "FIRE"]}, {"wrappers": ["reward_clip"]}):
        assert native_form(config("Pong", **fits)) is not None
    for other in ({"obs": "ram"}, {"mode": 1}, {"difficulty": 1}, {"wrappers": [{"id": "frame_skip", "skip": 2}]}):
        assert native_form(config("Pong", **other)) is None
    assert ("native", 1) in ways(config("Pong")) and ("native", None) not in ways(config("Pong"))


@pytest.fixture
def pong() -> Iterator[VectorEnv]:
    """Three games."""
    with closing(make("Pong")) as envs:
        yield envs


def test_refusals(pong: VectorEnv) -> None:
    """Sentences that say what to do; an action that does not exist must not hang."""
    with pytest.raises(UsageError, match="pixels only, env.atari.obs is ram"):
        make("Pong", "native", obs="ram")
    with pytest.raises(ConfigError, match="no button of 'pong'"):
        make("Pong", actions=["UPP"])
    assert pong.exact_resume == "none"
    for call in (pong.save_state, lambda: pong.load_state({})):
        with pytest.raises(EnvError, match="no access to the state"):
            call()
    with pytest.raises(ValueError, match="3 envs need 3 seeds, got 2"):
        pong.reset([1, 2], pong.new_row())
    row = started(pong)
    with pytest.raises(IndexError):
        pong.step(np.array([0, 6, 0]), row)
    pong.step(np.array([0, 5, 0]), row)


def test_closing_twice_and_resetting_again(pong: VectorEnv) -> None:
    """A closed one can be reset: it is made anew."""
    first = trace(pong, 5)
    pong.close()
    pong.close()
    assert trace(pong, 5) == first

"""EnvPool behind the contract: real transitions only, Gymnasium's flags, one seed per slot, threads that change nothing."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs import parity
from gymnast.envs.actions import random_actions
from gymnast.envs.choose import why_not_envpool
from gymnast.envs.envpool import EnvPoolVector
from gymnast.envs.make import make_envs
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import EnvError, UsageError
from gymnast.seeding import env_seeds

pytest.importorskip("envpool", reason="EnvPool is not installed")
N = 6


def make(env_id: str, n: int = N, **section: Any) -> VectorEnv:
    """As a run makes them."""
    return make_envs(EnvConfig(id=env_id, vectorization="envpool", **section), n)


@pytest.fixture
def cartpole() -> Iterator[VectorEnv]:
    """Random CartPoles end after about twenty steps."""
    with closing(make("CartPole-v1", time_limit=25)) as envs:
        yield envs


def started(envs: VectorEnv, seeds: list[int] | None = None) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(seeds or env_seeds(0, "train_envs", envs.n_envs), row)
    return row


def trace(envs: VectorEnv, steps: int = 150, seeds: list[int] | None = None) -> list[bytes]:
    """All that the contract delivers, step by step."""
    row, random, lines = started(envs, seeds), np.random.default_rng(0), []
    for _ in range(steps):
        ended = envs.step(random_actions(envs.action_space, envs.n_envs, random), row)
        told = [(e.index, e.ret, e.length, e.terminated, np.asarray(e.final_obs, np.float32).tobytes()) for e in ended]
        arrays = (row.obs, row.reward, row.terminated, row.truncated)
        lines.append(b"|".join(array.tobytes() for array in arrays) + repr(told).encode())
    return lines


def test_every_transition_is_real(cartpole: VectorEnv) -> None:
    """Each row follows from the row before by CartPole's own equations, across ends; resets lie where resets lie."""
    oracle = gym.make("CartPole-v1").unwrapped
    oracle.reset(seed=0)
    row, random = started(cartpole), np.random.default_rng(1)
    returns, lengths, ends = np.zeros(N), np.zeros(N, np.int64), {"terminated": 0, "truncated": 0}
    for _ in range(300):
        before, actions = row.obs.copy(), random.integers(0, 2, N)
        ended = {episode.index: episode for episode in cartpole.step(actions, row)}
        returns += row.reward
        lengths += 1
        for i in range(N):
            oracle.state, oracle.steps_beyond_terminated = before[i].astype(np.float64), None  # type: ignore[attr-defined]
            expected, reward, terminated, _, _ = oracle.step(actions[i])
            led_to = ended[i].final_obs if i in ended else row.obs[i]
            assert np.allclose(led_to, expected, atol=1e-5)
            assert (row.reward[i], bool(row.terminated[i])) == (reward, terminated)
            assert bool(row.truncated[i]) == (lengths[i] == 25)
            assert (i in ended) == (terminated or lengths[i] == 25)
            if i in ended:
                assert (ended[i].ret, ended[i].length, ended[i].terminated) == (returns[i], lengths[i], terminated)
                assert np.abs(row.obs[i]).max() <= 0.05  # the first observation of the next episode
                ends["terminated" if terminated else "truncated"] += 1
                returns[i], lengths[i] = 0.0, 0
    assert min(ends.values()) > 5


def test_an_end_at_the_time_limit_is_both() -> None:
    """EnvPool alone calls it cut off, and nothing would tell that the pole had fallen."""
    lengths = set()
    for limit in (8, 9, 10):
        with closing(make("CartPole-v1", 64, time_limit=limit)) as envs:
            row = started(envs)
            for _ in range(limit):
                envs.step(np.ones(64, np.int64), row)
            both = row.terminated & row.truncated
            assert (row.truncated | ~row.terminated).all()
            lengths.add(int(both.sum()))
    assert max(lengths) > 0


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4", "LunarLander-v3"])
def test_seeds_and_threads(env_id: str) -> None:
    """Same seeds, same trace, whatever the number of threads; the trace of a slot depends on its own seed alone."""
    limit = {"time_limit": 30}
    with closing(make(env_id, n_workers=1, **limit)) as one, closing(make(env_id, n_workers=3, **limit)) as three:
        first = trace(one)
        assert trace(three) == first
        assert trace(one) == first
        assert trace(one, seeds=[9, 9, 9, 9, 9, 8]) != first
    with closing(make(env_id, 3, **limit)) as envs:
        row, random = started(envs, [7, 8, 7]), np.random.default_rng(0)
        for _ in range(40):
            action = random_actions(envs.action_space, 1, random)
            envs.step(np.repeat(action, 3, 0), row)
            assert row.obs[0].tobytes() == row.obs[2].tobytes()
        assert row.obs[0].tobytes() != row.obs[1].tobytes()


def test_episodes_of_a_slot_differ(cartpole: VectorEnv) -> None:
    """A reset after an end draws on, it does not repeat the first episode."""
    row, starts = started(cartpole), []
    for _ in range(100):
        starts += [row.obs[episode.index].tobytes() for episode in cartpole.step(np.ones(N, np.int64), row)]
    assert len(set(starts)) == len(starts) > 20


def test_arrays_of_the_caller(cartpole: VectorEnv) -> None:
    """Views are filled, whatever their precision; final observations do not change when their slot goes on."""
    row = started(cartpole)
    row.reward, obs = np.zeros(N, np.float64), row.obs
    kept = []
    for _ in range(40):
        kept += [(e, np.array(e.final_obs)) for e in cartpole.step(np.ones(N, np.int64), row)]
    assert row.obs is obs
    assert kept
    assert all((episode.final_obs == copy).all() for episode, copy in kept)


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [("Blackjack-v1", {}), ("Pendulum-v1", {}), ("LunarLander-v3", {"continuous": True}), ("FrozenLake-v1", {})],
)
def test_spaces_are_gymnasiums(env_id: str, kwargs: dict[str, Any]) -> None:
    """The same spaces as in-process, so that a policy fits both; actions are converted and clipped."""
    section = {"id": env_id, "kwargs": kwargs, "time_limit": 20, "action_mask": "off"}
    inprocess = make_envs(EnvConfig(**section, vectorization="inprocess"), 1)
    factor = 3 if env_id == "Pendulum-v1" else 1  # beyond the bounds
    with closing(inprocess) as other, closing(make(env_id, kwargs=kwargs, time_limit=20)) as envs:
        assert envs.observation_space == other.observation_space
        assert envs.action_space == other.action_space
        assert envs.new_row().obs.dtype == other.new_row().obs.dtype
        row, random = started(envs), np.random.default_rng(0)
        for _ in range(30):
            envs.step(factor * random_actions(envs.action_space, N, random), row)
            assert all(envs.observation_space.contains(obs) for obs in row.obs) or env_id == "LunarLander-v3"


def test_refusals() -> None:
    """Sentences that say what to do."""
    with pytest.raises(UsageError, match="no 'LunarLander-v3' with env.kwargs"):
        make("LunarLander-v3", kwargs={"enable_wind": True})
    with pytest.raises(UsageError, match="EnvPool has no 'Walk-v0'"):
        import small_envs  # noqa: F401 - registers it

        make("Walk-v0")
    with closing(make("CartPole-v1")) as envs:
        assert envs.exact_resume == "none"
        for call in (envs.save_state, lambda: envs.load_state({})):
            with pytest.raises(EnvError, match="no access to the state"):
                call()
        with pytest.raises(ValueError, match="6 envs need 6 seeds, got 2"):
            envs.reset([1, 2], envs.new_row())


def test_closing_twice_and_resetting_again() -> None:
    """A closed pool can be reset: it is made anew."""
    envs = make("CartPole-v1")
    first = trace(envs, 5)
    envs.close()
    envs.close()
    assert trace(envs, 5) == first
    envs.close()


def test_every_tested_task_can_be_made_and_stepped() -> None:
    """Rows of the table name tasks that exist, with the spaces of Gymnasium's env."""
    for row in parity.load().rows:
        if gym.spec(row.id).entry_point.startswith("gymnasium.envs.mujoco"):  # type: ignore[union-attr]
            pytest.importorskip("mujoco")
            pytest.importorskip("imageio")
        registered = gym.spec(row.id).kwargs
        kwargs = {key: value for key, value in row.kwargs.items() if registered.get(key) != value}
        with closing(make(row.id, 2, kwargs=kwargs)) as envs:
            inner = envs.inner if isinstance(envs, VectorWrapper) else envs
            assert isinstance(inner, EnvPoolVector)
            target = started(envs)
            envs.step(random_actions(envs.action_space, 2, np.random.default_rng(0)), target)
            assert row.task in parity.load().find(EnvConfig(id=row.id, kwargs=kwargs)).task  # type: ignore[union-attr]


def test_the_table_is_about_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails: run benchmarks/envpool_parity.py and look at what changed."""
    installed = importlib.metadata.version("envpool")
    assert installed == parity.load().envpool
    monkeypatch.setattr(parity, "installed_version", lambda: installed)
    assert why_not_envpool(EnvConfig(id="Acrobot-v1")) is None

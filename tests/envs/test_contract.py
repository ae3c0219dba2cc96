"""The one contract suite: every adapter passes the same tests. A new adapter adds one line to ADAPTERS."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import small_envs
from counter_env import (
    GENERATORS,
    CounterEnv,
    DictCounterEnv,
    MaskedCounterEnv,
    OtherRandomEnv,
    PartsRandomEnv,
    ShiftedActionEnv,
    TupleCounterEnv,
    UnknownRandomEnv,
    UnrepeatableEnv,
    UnseenChanceEnv,
    WalkEnv,
    episode_end,
    episode_length,
)

from gymnast.config.schema import EnvConfig
from gymnast.envs import actions as actions_module
from gymnast.envs import snapshots
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.mixed import MixedVector
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.workers import WorkerPool
from gymnast.errors import CheckpointError, EnvError
from gymnast.seeding import env_seeds

MakeEnv = Callable[[], gym.Env]
Build = Callable[[MakeEnv, int], VectorEnv]
N_ENVS = 5


def lanes(make_env: MakeEnv, n_envs: int, n_workers: int) -> VectorEnv:
    """Workers of two vector envs each, stepped together."""
    return LanePool(functools.partial(InProcessVector, make_env), n_envs, n_workers=n_workers)


def mixed(make_env: MakeEnv, n_envs: int) -> VectorEnv:
    """Two groups, in this process and in workers."""
    few = n_envs // 2
    if not few:
        return MixedVector({"all": InProcessVector(make_env, n_envs)})
    others = WorkerPool(make_env, n_envs - few, n_workers=1)
    return MixedVector({"few": InProcessVector(make_env, few), "others": others})


ADAPTERS: dict[str, Build] = {
    "mixed": mixed,
    "inprocess": InProcessVector,
    "workers-1": functools.partial(WorkerPool, n_workers=1),
    "workers-2": functools.partial(WorkerPool, n_workers=2),
    "workers-3": functools.partial(WorkerPool, n_workers=3),
    "lanes-1": functools.partial(lanes, n_workers=1),
    "lanes-2": functools.partial(lanes, n_workers=2),
}
EXACT = ("inprocess", "workers-2", "lanes-2", "mixed")
"""Adapters that save and load their state."""


@pytest.fixture(params=ADAPTERS)
def build(request: pytest.FixtureRequest) -> Iterator[Build]:
    """Makes envs of the adapter under test and closes them afterwards."""
    made: list[VectorEnv] = []

    def make(make_env: MakeEnv, n_envs: int = N_ENVS) -> VectorEnv:
        made.append(ADAPTERS[request.param](make_env, n_envs))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def started(envs: VectorEnv, seeds: list[int]) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(seeds, row)
    return row


def random_actions(envs: VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """Actions as the policies give them: counted from zero for discrete spaces."""
    rng = np.random.default_rng(seed)
    space = envs.action_space
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(0, space.n, (steps, envs.n_envs))
    if isinstance(space, gym.spaces.MultiDiscrete):
        return rng.integers(0, space.nvec, (steps, envs.n_envs, *space.nvec.shape))
    return rng.uniform(space.low, space.high, (steps, envs.n_envs, *space.shape)).astype(space.dtype)


def trace(envs: VectorEnv, actions: np.ndarray, row: StepRow) -> list[bytes]:
    """Everything the contract delivers, step by step, as bytes."""
    lines = []
    for action in actions:
        ended = envs.step(action, row)
        lines.append(row_bytes(row) + b"".join(map(episode_bytes, ended)))
    return lines


def row_bytes(row: StepRow) -> bytes:
    """One row."""
    obs = sorted(row.obs.items()) if isinstance(row.obs, dict) else [("", row.obs)]
    arrays = [*(array for _, array in obs), row.reward, row.terminated, row.truncated, row.mask]
    return b"|".join(array.tobytes() for array in arrays if array is not None)


def episode_bytes(episode: EndedEpisode) -> bytes:
    """One ended episode; final observations as the rollout stores them."""
    final = sorted(episode.final_obs.items()) if isinstance(episode.final_obs, dict) else [("", episode.final_obs)]
    numbers = np.array([episode.index, episode.ret, episode.length, episode.terminated])
    return numbers.tobytes() + b"".join(np.asarray(value, np.float32).tobytes() for _, value in final)


# --- each transition is real ---------------------------------------------------------------------------------------


def test_every_number_of_the_counter_env(build: Build) -> None:
    """Rows, flags, ended episodes and their counts follow the script over many episodes of every slot."""
    envs = build(CounterEnv)
    seeds = [11, 12, 13, 14, 15]
    row = started(envs, seeds)
    assert row.obs.tolist() == [[0, 0, seed] for seed in seeds]
    episode, step, total = [0] * N_ENVS, [0] * N_ENVS, [0.0] * N_ENVS
    kept: list[tuple[EndedEpisode, list[int]]] = []
    for actions in random_actions(envs, 200):
        ended = {e.index: e for e in envs.step(actions, row)}
        for i, seed in enumerate(seeds):
            step[i] += 1
            reward = 10.0 * step[i] + actions[i]
            total[i] += reward
            assert row.reward[i] == reward
            is_last = step[i] == episode_length(seed, episode[i])
            assert (i in ended) == is_last
            assert (bool(row.terminated[i]), bool(row.truncated[i])) == (
                episode_end(episode[i]) if is_last else (False, False)
            )
            if is_last:
                e = ended[i]
                assert (e.ret, e.length, e.terminated) == (total[i], step[i], episode_end(episode[i])[0])
                assert (e.infos["own_return"], e.infos["own_length"]) == (total[i], step[i])
                assert e.infos["nested"] == {"episode": episode[i]}
                kept.append((e, [episode[i], -step[i], seed]))
                episode[i], step[i], total[i] = episode[i] + 1, 0, 0.0
            assert row.obs[i].tolist() == [episode[i], step[i], seed]
    assert len(kept) > 200
    for e, final in kept:  # checked at the end: a final observation must not change when its slot goes on
        assert np.asarray(e.final_obs).tolist() == final


def test_ended_episodes_come_in_order_of_their_slot(build: Build) -> None:
    """So that a run does not depend on the number of workers."""
    envs = build(CounterEnv)
    row = started(envs, [2, 2, 2, 2, 2])
    ended = [envs.step(np.zeros(N_ENVS, np.int64), row) for _ in range(5)][-1]
    assert [e.index for e in ended] == list(range(N_ENVS))


def test_final_observation_of_an_env_that_reuses_its_array(build: Build) -> None:
    """Reset overwrites the array that the last step gave."""
    envs = build(functools.partial(CounterEnv, reuse_buffer=True))
    row = started(envs, [1, 1, 1, 1, 1])
    (first, *_) = envs.step(np.zeros(N_ENVS, np.int64), row)
    envs.step(np.zeros(N_ENVS, np.int64), row)
    assert np.asarray(first.final_obs).tolist() == [0, -1, 1]


def test_writes_into_the_callers_arrays(build: Build) -> None:
    """Views of one big rollout are filled, whatever their precision; nothing is rebound."""
    envs = build(CounterEnv)
    rollout = {"obs": np.zeros((4, N_ENVS, 3), np.float32), "reward": np.zeros((4, N_ENVS), np.float64)}
    flags = np.zeros((2, 4, N_ENVS), np.bool_)
    rows = [StepRow(rollout["obs"][t], rollout["reward"][t], flags[0][t], flags[1][t]) for t in range(4)]
    envs.reset([10] * N_ENVS, rows[0])
    for t in range(1, 4):
        envs.step(np.full(N_ENVS, t), rows[t])
    assert rollout["obs"][:, 0].tolist() == [[0, 0, 10], [0, 1, 10], [0, 2, 10], [1, 0, 10]]
    assert rollout["reward"][:, 0].tolist() == [0, 11, 22, 33]
    assert flags[:, :, 0].tolist() == [[False, False, False, True], [False, False, False, True]]


def test_reset_in_the_middle_starts_all_counts_anew(build: Build) -> None:
    """Returns and lengths of the abandoned episodes do not leak into the next ones."""
    envs = build(CounterEnv)
    row = started(envs, [2] * N_ENVS)
    for _ in range(3):
        envs.step(np.zeros(N_ENVS, np.int64), row)
    envs.reset([6] * N_ENVS, row)
    assert row.obs.tolist() == [[0, 0, 6]] * N_ENVS
    (first, *_) = envs.step(np.zeros(N_ENVS, np.int64), row)
    assert (first.ret, first.length) == (10.0, 1)


def test_seeds_must_fit_the_envs(build: Build) -> None:
    """One seed per slot, no more, no fewer."""
    envs = build(CounterEnv)
    with pytest.raises(ValueError, match="5 envs need 5 seeds, got 4"):
        envs.reset([1, 2, 3, 4], envs.new_row())


# --- spaces --------------------------------------------------------------------------------------------------------


def test_dict_observations(build: Build) -> None:
    """Each part arrives in its own array, counted from zero."""
    envs = build(DictCounterEnv)
    row = started(envs, [1] * N_ENVS)
    (first, *_) = envs.step(np.zeros(N_ENVS, np.int64), row)
    assert {key: np.asarray(value).tolist() for key, value in first.final_obs.items()} == {
        "numbers": [0, -1, 1],
        "place": 1,
        "parts": [1, 0],
    }
    envs.step(np.zeros(N_ENVS, np.int64), row)
    assert row.obs["numbers"][0].tolist() == [1, 1, 1]
    assert row.obs["place"].tolist() == [1] * N_ENVS
    assert row.obs["parts"][0].tolist() == [0, 1]


def test_tuple_observations(build: Build) -> None:
    """A Tuple of Discrete spaces is one row of integers."""
    envs = build(TupleCounterEnv)
    row = started(envs, [1] * N_ENVS)
    assert row.obs.dtype == np.int64
    (first, *_) = envs.step(np.zeros(N_ENVS, np.int64), row)
    assert np.asarray(first.final_obs).tolist() == [1, 1, 0]
    assert row.obs.tolist() == [[0, 0, 1]] * N_ENVS


def test_masks_travel(build: Build) -> None:
    """The mask of a row belongs to the observation of that row, also right after an episode's end."""
    envs = build(MaskedCounterEnv)
    assert envs.has_action_mask
    row = started(envs, [10, 11, 12, 13, 14])
    rng = np.random.default_rng(0)
    for _ in range(100):
        forbidden = (row.obs[:, 0] + row.obs[:, 1]) % 4
        assert row.mask.argmin(1).tolist() == forbidden.tolist()
        assert row.mask.sum(1).tolist() == [3] * N_ENVS
        envs.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in row.mask]), row)  # a wrong one raises


def test_no_mask_without_one(build: Build) -> None:
    """Envs without masks have none."""
    envs = build(CounterEnv)
    assert not envs.has_action_mask
    assert envs.new_row().mask is None


def test_actions_that_do_not_start_at_zero(build: Build) -> None:
    """Policies count actions from zero; the env gets its own numbers."""
    envs = build(ShiftedActionEnv)
    row = started(envs, [10] * N_ENVS)
    envs.step(np.array([0, 1, 2, 3, 0]), row)
    assert row.reward.tolist() == [13, 14, 15, 16, 13]


def test_an_env_may_keep_its_last_action(build: Build) -> None:
    """The caller reuses one action array; envs that remember the last action must not see it change."""
    traces = []
    for reuse in (True, False):
        envs = build(WalkEnv)
        row = started(envs, [1, 2, 3, 4, 5])
        buffer = np.zeros((N_ENVS, 2))
        lines = []
        for action in random_actions(envs, 20):
            buffer[...] = action
            lines += trace(envs, (buffer if reuse else buffer.copy())[None], row)
        traces.append(lines)
    assert traces[0] == traces[1]


# --- seeds and equality --------------------------------------------------------------------------------------------

REAL_ENVS: dict[str, MakeEnv] = {
    name: functools.partial(gym.make, name, disable_env_checker=True, max_episode_steps=25)
    for name in (
        "CartPole-v1",
        "Acrobot-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "Pendulum-v1",
        "FrozenLake-v1",
        "Taxi-v4",
        "CliffWalking-v1",
        "Blackjack-v1",
    )
}
VARIANTS: dict[str, MakeEnv] = {
    "Taxi-v4 rainy and fickle": functools.partial(
        REAL_ENVS["Taxi-v4"], is_rainy=True, fickle_passenger=True, fickle_probability=0.9
    ),
    "CliffWalking-v1 slippery": functools.partial(REAL_ENVS["CliffWalking-v1"], is_slippery=True),
    "FrozenLake-v1 8x8": functools.partial(REAL_ENVS["FrozenLake-v1"], map_name="8x8"),
    "Blackjack-v1 natural": functools.partial(REAL_ENVS["Blackjack-v1"], natural=True),
    "CartPole-v1 Sutton-Barto": functools.partial(REAL_ENVS["CartPole-v1"], sutton_barto_reward=True),
}


def plain_loop(make_env: MakeEnv, seeds: list[int], actions: np.ndarray) -> tuple[list[bytes], list[tuple]]:
    """The oracle: each env alone, stepped by hand. Gives observation rows and (slot, return, length, terminated)."""
    rows, ended = [], []
    envs = [make_env() for _ in seeds]
    for env, seed in zip(envs, seeds, strict=True):
        env.reset(seed=seed)
    totals, lengths = [0.0] * len(envs), [0] * len(envs)
    for action in actions:
        observations = []
        for i, env in enumerate(envs):
            obs, reward, terminated, truncated, _ = env.step(action[i])
            totals[i], lengths[i] = totals[i] + float(reward), lengths[i] + 1
            if terminated or truncated:
                ended.append((i, totals[i], lengths[i], terminated))
                totals[i], lengths[i] = 0.0, 0
                obs, _ = env.reset()
            observations.append(np.asarray(obs))
        rows.append(np.stack(observations).tobytes())
    return rows, ended


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Blackjack-v1"])
def test_thousands_of_steps_equal_a_plain_loop(build: Build, name: str) -> None:
    """No transition is added, dropped or changed: 1000 vector steps are the same to the bit as each env alone."""
    envs = build(REAL_ENVS[name])
    seeds = env_seeds(0, "train_envs", N_ENVS)
    row = started(envs, seeds)
    actions = random_actions(envs, 1000)
    rows, ended = [], []
    for action in actions:
        ended += [(e.index, e.ret, e.length, e.terminated) for e in envs.step(action, row)]
        rows.append(row.obs.tobytes())
    expected_rows, expected_ended = plain_loop(REAL_ENVS[name], seeds, actions)
    assert rows == expected_rows
    assert ended == expected_ended


def test_same_seeds_same_trace_other_seeds_another(build: Build) -> None:
    """Also when the same adapter is reset again, and slots with equal seeds agree with each other."""
    envs = build(REAL_ENVS["CartPole-v1"])
    actions = random_actions(envs, 60)
    first = trace(envs, actions, started(envs, [1, 2, 3, 4, 5]))
    assert trace(envs, actions, started(envs, [1, 2, 3, 4, 5])) == first
    assert trace(envs, actions, started(envs, [1, 2, 3, 4, 6])) != first
    twins = started(envs, [7, 8, 7, 8, 7])
    envs.step(np.array([1, 1, 1, 1, 0]), twins)
    assert twins.obs[0].tobytes() == twins.obs[2].tobytes() != twins.obs[1].tobytes()
    assert twins.obs[0].tobytes() != twins.obs[4].tobytes()


def test_sending_and_receiving_is_a_step(build: Build) -> None:
    """Two halves instead of one call: the same bits, into any row that is given at the end."""
    traces = []
    for halves in (False, True):
        envs = build(REAL_ENVS["CartPole-v1"])
        row = started(envs, [1, 2, 3, 4, 5])
        lines = []
        for action in random_actions(envs, 60):
            if halves:
                envs.send(action)
                row = envs.new_row()
            ended = envs.recv(row) if halves else envs.step(action, row)
            lines.append(row_bytes(row) + b"".join(map(episode_bytes, ended)))
        traces.append(lines)
    assert traces[0] == traces[1]


@pytest.mark.parametrize("name", [*REAL_ENVS, *VARIANTS])
def test_pool_equals_in_process(name: str) -> None:
    """To the bit, with a number of workers that does not divide the number of envs."""
    make_env = (REAL_ENVS | VARIANTS)[name]
    lines = []
    for adapter in ("inprocess", "workers-3", "lanes-2"):
        with closing(ADAPTERS[adapter](make_env, 7)) as envs:
            row = started(envs, env_seeds(3, "train_envs", 7))
            lines.append(trace(envs, random_actions(envs, 150), row))
    assert lines[0] == lines[1] == lines[2]


def test_pool_by_spawn_equals_in_process() -> None:
    """The start method changes nothing; a lambda can be sent."""
    lines = []
    spawned = functools.partial(WorkerPool, n_workers=2, start_method="spawn")
    for build in (InProcessVector, spawned):
        with closing(build(lambda: DictCounterEnv(), 3)) as envs:  # noqa: PLW0108
            lines.append(trace(envs, random_actions(envs, 50), started(envs, [5, 6, 7])))
    assert lines[0] == lines[1]


# --- saving and loading --------------------------------------------------------------------------------------------


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """Proves that the state is plain; numpy arrays are allowed and become lists here."""
    return json.loads(json.dumps(state, default=lambda array: array.tolist()))


RESTORED: dict[str, tuple[str, MakeEnv]] = {
    **{name: ("snapshot", make_env) for name, make_env in (REAL_ENVS | VARIANTS).items()},
    "unknown env": ("replay", WalkEnv),
    "unknown env with shifted actions": ("replay", functools.partial(WalkEnv, shifted=True)),
    **{f"generator {kind}": ("replay", functools.partial(OtherRandomEnv, kind)) for kind in GENERATORS},
    **{f"generator {kind} in a part": ("replay", functools.partial(PartsRandomEnv, kind)) for kind in GENERATORS},
    "generator that no seed reaches": ("replay", functools.partial(PartsRandomEnv, "Philox", seeded=False)),
    "generator of an unknown kind": ("replay", UnknownRandomEnv),
    "unknown wrapper": (
        "replay",
        lambda: gym.wrappers.TransformReward(REAL_ENVS["CartPole-v1"](), lambda reward: 2.0 * reward),
    ),
}


@pytest.mark.parametrize("adapter", EXACT)
@pytest.mark.parametrize("name", RESTORED)
def test_load_state_continues_exactly(name: str, adapter: str, caplog: pytest.LogCaptureFixture) -> None:
    """Save, go on, load into new envs, go on again: the same bits across several episode ends."""
    method, make_env = RESTORED[name]
    with closing(ADAPTERS[adapter](make_env, 3)) as envs, closing(ADAPTERS[adapter](make_env, 3)) as others:
        assert envs.exact_resume == method
        row = started(envs, [1, 2, 3])
        other_row = started(others, [7, 8, 9])
        trace(others, random_actions(others, 13, seed=5), other_row)
        for block in range(3):  # in the first episode after the seeded reset, then somewhere later
            trace(envs, random_actions(envs, 17 if block else 1, seed=10 + block), row)
            state = through_json(envs.save_state())
            actions = random_actions(envs, 60, seed=20 + block)
            expected = trace(envs, actions, row)
            others.load_state(state)
            assert trace(others, actions, other_row) == expected
        assert "did not come back" not in caplog.text


@pytest.mark.parametrize("name", ["CartPole-v1", "unknown env"])
def test_the_state_moves_between_adapters(name: str) -> None:
    """A run saved with three workers goes on with one process, and the other way round."""
    _, make_env = RESTORED[name]
    moves = ("workers-3", "inprocess"), ("inprocess", "workers-2"), ("lanes-2", "workers-2"), ("inprocess", "lanes-2")
    for first, second in moves:
        with closing(ADAPTERS[first](make_env, 4)) as envs, closing(ADAPTERS[second](make_env, 4)) as others:
            row, other_row = started(envs, [1, 2, 3, 4]), others.new_row()
            trace(envs, random_actions(envs, 40), row)
            others.load_state(through_json(envs.save_state()))
            actions = random_actions(envs, 60, seed=1)
            assert trace(others, actions, other_row) == trace(envs, actions, row)


@pytest.mark.parametrize("adapter", EXACT)
def test_saving_changes_nothing(adapter: str) -> None:
    """A run that saves is the run that does not."""
    with closing(ADAPTERS[adapter](WalkEnv, 3)) as envs:
        actions = random_actions(envs, 80)
        plain = trace(envs, actions, started(envs, [1, 2, 3]))
        row = started(envs, [1, 2, 3])
        saving = []
        for action in actions:
            envs.save_state()
            saving += trace(envs, action[None], row)
    assert saving == plain


@pytest.mark.parametrize(
    "adapter", [adapter for adapter in EXACT if adapter != "mixed"]
)  # its state is one of each task
def test_a_state_that_does_not_fit_is_refused(adapter: str) -> None:
    """By number of envs, by method and by class, with a sentence each; the envs still work afterwards."""
    with closing(ADAPTERS[adapter](REAL_ENVS["CartPole-v1"], 3)) as envs:
        row = started(envs, [1, 2, 3])
        state = envs.save_state()
        with closing(InProcessVector(REAL_ENVS["CartPole-v1"], 2)) as fewer:
            started(fewer, [1, 2])
            with pytest.raises(EnvError, match="of 2 envs, this run has 3"):
                envs.load_state(fewer.save_state())
        with pytest.raises(EnvError, match="saved by replay"):
            envs.load_state({**state, "method": "replay"})
        with pytest.raises((EnvError, CheckpointError), match="of a SomethingElse"):
            envs.load_state({**state, "envs": [{**saved, "class": "SomethingElse"} for saved in state["envs"]]})
        envs.load_state(state)
        envs.step(np.zeros(3, np.int64), row)


@pytest.mark.parametrize("kind", [UnrepeatableEnv, UnseenChanceEnv])
def test_an_env_that_cannot_be_repeated_is_said_so(kind: type[WalkEnv], caplog: pytest.LogCaptureFixture) -> None:
    """A resume that is not exact is never silent, and leaves envs that can be stepped."""
    envs, others = InProcessVector(kind, 2), InProcessVector(kind, 2)
    row = started(envs, [1, 2])
    trace(envs, random_actions(envs, 5), row)
    others.load_state(envs.save_state())
    assert "Env 0 did not come back to its saved state" in caplog.text
    trace(others, random_actions(envs, 40), row)


def test_ales_vector_env_refuses_to_save() -> None:
    """Its state is out of reach, and it says so."""
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    with closing(make_envs(EnvConfig(id="ALE/Breakout-v5", atari={}, vectorization="native"), 2)) as envs:
        assert envs.exact_resume == "none"
        with pytest.raises(EnvError, match="cannot be saved"):
            envs.save_state()
        with pytest.raises(EnvError, match="cannot be loaded"):
            envs.load_state({})


@pytest.mark.parametrize("name", [*REAL_ENVS, *VARIANTS])
def test_snapshot_fields_are_the_whole_state(name: str) -> None:
    """Over many seeds and moments, a restored env equals the saved one in every attribute and in its next 40 steps."""
    make_env = (REAL_ENVS | VARIANTS)[name]
    rng = np.random.default_rng(0)
    env, other = make_env(), make_env()

    def step(one: gym.Env, action: Any) -> str:
        obs, reward, terminated, truncated, info = one.step(action)
        fresh = one.reset() if terminated or truncated else None
        return repr((np.asarray(obs).tobytes(), reward, terminated, truncated, info, fresh))

    env.action_space.seed(0)
    for _ in range(40):
        env.reset(seed=int(rng.integers(2**31)))
        other.reset(seed=int(rng.integers(2**31)))
        for _ in range(rng.integers(30)):
            step(env, env.action_space.sample())
            step(other, env.action_space.sample())
        snapshots.load(other, through_json(snapshots.save(env)))
        assert attributes(other) == attributes(env)
        for action in [env.action_space.sample() for _ in range(40)]:
            assert step(other, action) == step(env, action)


def attributes(env: gym.Env) -> dict[str, str]:
    """All attributes of all layers in text that shows types and every bit; the generator by its state."""
    ignored = {"env", "_np_random", "_np_random_seed", "_cached_spec", "spec"}
    shown = {"generator": repr(snapshots.save_generator(env))}
    for depth, layer in enumerate(snapshots.layers(env)):
        for key, value in vars(layer).items():
            if key not in ignored:
                exact = (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value
                shown[f"{depth}.{key}"] = repr((type(value), exact))
    return shown


# --- actions and observations with parts ----------------------------------------------------------------------------


def test_parts_of_actions_and_observations_pass_through_every_adapter(build: Build) -> None:
    """Dict actions reach the env whole, nested observations come back flat, equal to a plain loop's."""
    envs, single = build(small_envs.PartsIdentity, 3), [small_envs.PartsIdentity() for _ in range(3)]
    row = started(envs, [4, 5, 6])
    first = [env.reset(seed=seed)[0] for env, seed in zip(single, (4, 5, 6))]
    rng = np.random.default_rng(1)
    for _ in range(25):
        for i, obs in enumerate(first):
            assert {key: row.obs[key][i].tolist() for key in row.obs} == {
                k: np.asarray(v).tolist() for k, v in obs.items()
            }
        actions = actions_module.random_actions(envs.action_space, 3, rng)
        envs.step(actions, row)
        for i, (env, action) in enumerate(zip(single, actions_module.converter(envs.action_space)(actions))):
            obs, reward, terminated, _, _ = env.step(action)
            assert row.reward[i] == np.float32(reward) and row.terminated[i] == terminated
            first[i] = env.reset()[0] if terminated else obs


@pytest.mark.parametrize("kind", ["NestedIdentity", "TupleIdentity"])
def test_nested_observations_are_flat(build: Build, kind: str) -> None:
    """Dotted names, counted from zero, in final observations too."""
    envs = build(getattr(small_envs, kind), 2)
    row = started(envs, [1, 2])
    names = {"NestedIdentity": {"inner.half", "sides.0", "sides.1"}, "TupleIdentity": {"0", "1"}}[kind]
    assert set(row.obs) == set(envs.observation_space.spaces) == names
    half = row.obs["inner.half" if kind == "NestedIdentity" else "0"]
    assert set(half.tolist()) <= {0, 1}
    for _ in range(10):
        ended = envs.step(np.array([0, 1]), row)
    assert len(ended) == 2
    assert set(ended[0].final_obs) == names


# --- ALE's own vector env, which plays nothing but its games --------------------------------------------------------


@pytest.mark.parametrize("life_loss", ["ignore", "episode"])
def test_ales_vector_env_equals_a_plain_loop(life_loss: str) -> None:
    """No transition is added, dropped or changed over ends and cuts; without random streams both play the same."""
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    protocol = {"sticky": 0.0, "noops": 0, "life_loss": life_loss, "frame_cap": 300}
    config = EnvConfig(id="ALE/Breakout-v5", atari=protocol, vectorization="native")
    seeds = env_seeds(0, "train_envs", 3)
    with closing(make_envs(config, 3)) as envs:
        assert envs.describe().startswith("3 games in ALE's vector env")
        row = started(envs, seeds)
        actions = random_actions(envs, 160)
        rows, ended = [], []
        for action in actions:
            ended += [(e.index, e.ret, e.length, e.terminated) for e in envs.step(action, row)]
            rows.append(row.obs.tobytes())
    assert (rows, ended) == plain_loop(functools.partial(make_one, config), seeds, actions)
    assert len(ended) >= 6

"""Workers stepped lane by lane: equal bits in whatever order lanes come, and faults with real processes and real signals."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv, DictCounterEnv, FaultyEnv, HangingEnv, MaskedCounterEnv, UnmakeableEnv, WalkEnv
from test_workers import FAULTS, SHARED_MEMORY, is_alive, worker_pids

from gymnast.config.schema import EnvConfig
from gymnast.envs import core_turns
from gymnast.envs import make as making
from gymnast.envs.core_turns import CoreTurns, Trial
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import by_lanes, make_envs
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv, some_rows
from gymnast.envs.workers import WorkerPool
from gymnast.errors import EnvError

MakePool = Callable[..., LanePool]
NO_ACTION = np.zeros(4, np.int64)
SEEDS = [20, 21, 22, 23]
ENVS: dict[str, Callable[[], gym.Env]] = {
    "counter": CounterEnv,
    "dict": DictCounterEnv,
    "walk": WalkEnv,
    "CartPole": functools.partial(gym.make, "CartPole-v1", max_episode_steps=25),
    "Taxi": functools.partial(gym.make, "Taxi-v4", max_episode_steps=25),
}


def lane_pool(make_env: Callable[[], gym.Env], n_envs: int = 4, **options: Any) -> LanePool:
    """Two workers of two lanes each."""
    make = functools.partial(InProcessVector, make_env)
    return LanePool(make, n_envs, **{"n_workers": 2, "timeout": 20.0, **options})


@pytest.fixture
def pool() -> Iterator[MakePool]:
    """Makes pools; afterwards no process and no shared memory of theirs may be left."""
    made: list[tuple[LanePool, str]] = []

    def make(make_env: Callable[[], gym.Env], n_envs: int = 4, **options: Any) -> LanePool:
        envs = lane_pool(make_env, n_envs, **options)
        made.append((envs, envs._resources.shared.name))
        return envs

    yield make
    for envs, name in made:
        pids = worker_pids(envs)
        envs.close()
        envs.close()
        assert not [pid for pid in pids if is_alive(pid)]
        assert not (SHARED_MEMORY / name).exists()


def started(envs: VectorEnv, seeds: list[int] = SEEDS) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(seeds, row)
    return row


def actions_for(envs: VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """Random ones, as the policies give them."""
    rng = np.random.default_rng(seed)
    if isinstance(envs.action_space, gym.spaces.Discrete):
        return rng.integers(0, envs.action_space.n, (steps, envs.n_envs))
    return rng.uniform(-1, 1, (steps, envs.n_envs, *envs.action_space.shape))


# --- equal bits -----------------------------------------------------------------------------------------------------

Trace = tuple[list[bytes], list[tuple[int, bytes]]]


def shown(t: int, episode: EndedEpisode) -> tuple[int, bytes]:
    """An ended episode and its step."""
    final = episode.final_obs
    values = [final[key] for key in sorted(final)] if isinstance(final, dict) else [final]
    numbers = np.array([episode.index, episode.ret, episode.length, episode.terminated])
    return t, numbers.tobytes() + b"".join(np.asarray(value, np.float32).tobytes() for value in values)


def row_bytes(row: StepRow) -> bytes:
    """Everything in one row."""
    obs = [row.obs[key] for key in sorted(row.obs)] if isinstance(row.obs, dict) else [row.obs]
    arrays = [*obs, row.reward, row.terminated, row.truncated, row.mask]
    return b"|".join(array.tobytes() for array in arrays if array is not None)


def together(envs: VectorEnv, actions: np.ndarray) -> Trace:
    """All slots step by step."""
    rows, ended = [], []
    for t, action in enumerate(actions):
        row = envs.new_row()
        ended += [shown(t, episode) for episode in envs.step(action, row)]
        rows.append(row_bytes(row))
    return rows, ended


def apart(envs: LanePool, actions: np.ndarray, seed: int) -> tuple[Trace, int]:
    """Every lane at its own pace, some held back by chance; also how far lanes were apart."""
    rng = np.random.default_rng(seed)
    rows = [envs.new_row() for _ in actions]
    parts = [[some_rows(row, slots) for slots in envs.lanes] for row in rows]
    at, ended, spread = [0] * len(envs.lanes), [], 0
    held, under_way = list(range(len(envs.lanes))), 0
    while held or under_way:
        rng.shuffle(held)
        for lane in [lane for lane in held if rng.random() < (0.2 if lane % 3 else 0.9)] or held[: not under_way]:
            held.remove(lane)
            if at[lane] < len(actions):
                envs.send_lane(lane, actions[at[lane]][envs.lanes[lane]])
                under_way += 1
        if not under_way:
            continue
        for lane in envs.ready_lanes():
            ended += [shown(at[lane], episode) for episode in envs.recv_lane(lane, parts[at[lane]][lane])]
            at[lane] += 1
            under_way -= 1
            held.append(lane)
        spread = max(spread, max(at) - min(at))
    slot = functools.partial(np.frombuffer, dtype=np.float64, count=1)
    ended.sort(key=lambda found: (found[0], slot(found[1])[0]))
    return ([row_bytes(row) for row in rows], ended), spread


@pytest.mark.parametrize("name", ENVS)
def test_lanes_apart_equal_one_process(name: str, pool: MakePool) -> None:
    """Whoever is ahead: each slot has the same steps; over several rounds, with an odd number of envs."""
    seeds = list(range(7))
    with closing(InProcessVector(ENVS[name], 7)) as reference:
        envs = pool(ENVS[name], 7)
        assert [(lane.start, lane.stop) for lane in envs.lanes] == [(0, 2), (2, 3), (3, 5), (5, 7)]
        assert started(reference, seeds).obs is not None and started(envs, seeds) is not None
        for seed in range(2):
            actions = actions_for(reference, 60, seed)
            found, spread = apart(envs, actions, seed)
            assert found == together(reference, actions)
            assert spread > 5
            if seed == 0:
                assert together(envs, actions[:10]) == together(reference, actions[:10])  # and in step again


def test_masks_of_lanes_belong_to_their_slots(pool: MakePool) -> None:
    envs = pool(MaskedCounterEnv)
    assert envs.has_action_mask
    row = started(envs)
    rng = np.random.default_rng(0)
    for _ in range(40):
        assert row.mask.argmin(1).tolist() == ((row.obs[:, 0] + row.obs[:, 1]) % 4).tolist()
        envs.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in row.mask]), row)  # a wrong one raises


@pytest.mark.parametrize("make_env", [CounterEnv, MaskedCounterEnv])
def test_a_slot_at_rest_stands_still_until_the_next_reset(make_env: Callable[[], gym.Env], pool: MakePool) -> None:
    """The others of its lane go on as if it were not there."""
    with closing(InProcessVector(make_env, 8)) as reference:
        envs, seeds = pool(make_env, 8), list(range(8))
        row, expected = started(envs, seeds), started(reference, seeds)
        others = [0, *range(2, 8)]
        for t in range(40):
            if t == 10:
                envs.rest(1)
                before = row.obs[1].copy()
            actions = np.zeros(8, np.int64) if expected.mask is None else expected.mask.argmax(1)
            ended = envs.step(actions, row)
            indices = [episode.index for episode in reference.step(actions, expected)]
            assert [episode.index for episode in ended] == [i for i in indices if i != 1 or t < 10]
            assert row.obs[others].tolist() == expected.obs[others].tolist()
            assert row.reward[others].tolist() == expected.reward[others].tolist()
            if t >= 10:
                assert row.obs[1].tolist() == before.tolist() and row.reward[1] == 0
        row, expected = started(envs, seeds), started(reference, seeds)
        for _ in range(3):
            actions = np.zeros(8, np.int64) if expected.mask is None else expected.mask.argmax(1)
            envs.step(actions, row)
            reference.step(actions, expected)
            assert row_bytes(row) == row_bytes(expected)


def test_the_state_passes_between_lanes_and_other_pools(pool: MakePool) -> None:
    """All three ways round, in the middle of episodes."""
    for name in ("CartPole", "walk"):
        made: list[VectorEnv] = [
            pool(ENVS[name], 5),
            InProcessVector(ENVS[name], 5),
            WorkerPool(ENVS[name], 5, n_workers=2),
        ]
        for envs in made:
            started(envs, [1, 2, 3, 4, 5])
        together(made[0], actions_for(made[0], 37))
        for block, (first, second) in enumerate(((0, 1), (1, 0), (0, 2), (2, 0))):
            made[second].load_state(made[first].save_state())
            actions = actions_for(made[0], 40, seed=block)
            assert together(made[first], actions) == together(made[second], actions)
        for envs in made[1:]:
            envs.close()


# --- faults ---------------------------------------------------------------------------------------------------------


def lost(ended: list[EndedEpisode]) -> list[int]:
    """Slots whose episodes were interrupted, in the order in which they were told."""
    return [episode.index for episode in ended if episode.infos == {"worker_restarted": True}]


@pytest.mark.parametrize("fault", FAULTS)
def test_only_the_failed_worker_is_replaced(fault: str, pool: MakePool, caplog: pytest.LogCaptureFixture) -> None:
    """Both its lanes come back as interrupted once, the other worker's go on, and the message names env and action."""
    make_env, what, timeout = FAULTS[fault]
    envs = pool(functools.partial(make_env, at_step=3, seed=23), timeout=timeout)
    row = started(envs)
    healthy, faulty = worker_pids(envs)
    for _ in range(2):
        envs.step(NO_ACTION + 1, row)
    told: list[int] = []
    others: list[tuple[int, list[float]]] = []
    for step in range(3, 9):
        before = row.obs.copy()
        ended = envs.step(np.array([0, 0, 1, 2]), row)
        assert [episode.index for episode in ended] == sorted(episode.index for episode in ended)
        for slot in lost(ended):
            assert row.reward[slot] == 0 and row.truncated[slot] and not row.terminated[slot]
            assert row.obs[slot, :2].tolist() == [0, 0] and row.obs[slot, 2] not in SEEDS
        told += lost(ended)
        others += [(step, row.obs[0].tolist())]
        for slot in set(range(4)) - {episode.index for episode in ended}:
            assert row.obs[slot].tolist() == (before[slot] + [0, 1, 0]).tolist()  # a real transition
        if fault.startswith("hangs"):
            break
    else:
        assert sorted(told) == [2, 3]
    assert 3 in told and len(set(told)) == len(told)
    assert others[0] == (3, [1, 0, 20])
    assert envs.counters() == {"env/worker_restarts": 1}
    assert worker_pids(envs)[0] == healthy
    assert worker_pids(envs)[1] != faulty
    assert not is_alive(faulty)
    message = caplog.records[0].getMessage()
    assert f"Env 3 (in worker 1) {what}" in message
    assert "last reset with seed 23 and its last action was 2." in message
    assert ('in fail\n    raise RuntimeError("the simulator exploded")' in message) == (fault == "raises")


def test_a_failure_behind_an_ended_episode_keeps_its_traceback(
    pool: MakePool, caplog: pytest.LogCaptureFixture
) -> None:
    """One lane's message lies in front of the other's failure, whichever is asked for first."""
    for seeds in ([20, 21, 21, 20], [20, 21, 20, 21]):  # seed 21 ends at once, seed 20 fails
        caplog.clear()
        envs = pool(functools.partial(FaultyEnv, at_step=1, seed=20), n_workers=1)
        started(envs, seeds)
        for lane in (1, 0):
            envs.send_lane(lane, NO_ACTION[envs.lanes[lane]])
            time.sleep(0.3)
        row = envs.new_row()
        envs.recv(row)
        (record,) = caplog.records
        assert "raised RuntimeError: the simulator exploded" in record.getMessage()


def test_lost_returns_are_counted_up_to_the_last_step(pool: MakePool) -> None:
    envs = pool(CounterEnv)
    row = started(envs)
    for _ in range(2):
        envs.step(NO_ACTION + 1, row)
    os.kill(worker_pids(envs)[1], signal.SIGKILL)
    ended = envs.step(NO_ACTION, row)
    assert [(e.index, e.ret, e.length, e.final_obs) for e in ended if e.index >= 2] == [
        (2, 32.0, 2, None),
        (3, 0.0, 0, None),  # its episode of two steps had just ended
    ]
    assert lost(envs.step(NO_ACTION, row)) == []


@pytest.mark.parametrize("notice", ["save_state", "reset", "load_state"])
def test_a_worker_killed_between_steps(notice: str, pool: MakePool) -> None:
    """A checkpoint replaces it and the next step says so; a reset or loaded state has lost nothing."""
    envs = pool(functools.partial(gym.make, "CartPole-v1"))
    row = started(envs)
    state = envs.save_state()
    envs.step(NO_ACTION, row)
    expected = row.obs.copy()
    os.kill(worker_pids(envs)[1], signal.SIGKILL)
    if notice == "save_state":
        assert envs.save_state()["lengths"] == [1, 1, 0, 0]
        ended = envs.step(NO_ACTION, row)
        assert [(e.index, e.length, e.infos) for e in ended] == [(i, 1, {"worker_restarted": True}) for i in (2, 3)]
        assert row.truncated.tolist() == [False, False, True, True]
        assert (np.abs(row.obs[2:]) <= 0.05).all()  # CartPole starts within 0.05
    elif notice == "load_state":
        envs.load_state(state)
        assert not envs.step(NO_ACTION, row)
        assert np.array_equal(row.obs, expected)
    else:
        envs.reset(SEEDS, row)
        assert not envs.step(NO_ACTION, row)
    assert not envs.step(NO_ACTION, row)
    assert envs.counters() == {"env/worker_restarts": 1}


def test_a_loaded_state_forgets_what_was_lost(pool: MakePool) -> None:
    """Lanes that were lost but not yet told are none of the restored episodes' business."""
    envs = pool(functools.partial(gym.make, "CartPole-v1"))
    row = started(envs)
    state = envs.save_state()
    envs.step(NO_ACTION, row)
    expected = row.obs.copy()
    envs.send_lane(2, NO_ACTION[envs.lanes[2]])
    os.kill(worker_pids(envs)[1], signal.SIGKILL)
    assert envs.ready_lanes() == [2]
    assert lost(list(envs.recv_lane(2, some_rows(row, envs.lanes[2])))) == [2]
    envs.load_state(state)  # lane 3 was lost as well and has not been stepped since
    assert not envs.step(NO_ACTION, row)
    assert np.array_equal(row.obs, expected)


def test_too_many_restarts_end_the_run(pool: MakePool) -> None:
    envs = pool(functools.partial(FaultyEnv, at_step=1), n_workers=1, max_restarts=3)
    row = started(envs)
    with pytest.raises(EnvError, match=r"failed more than 3 times\. Env \d \(in worker 0\) raised RuntimeError"):
        for _ in range(20):
            envs.step(NO_ACTION, row)
    assert envs.counters() == {"env/worker_restarts": 3}
    with pytest.raises(EnvError, match="pool is closed"):
        envs.step(NO_ACTION, row)


def test_abort_closes_everything_and_says_why(pool: MakePool) -> None:
    envs = pool(functools.partial(FaultyEnv, at_step=1, seed=21), on_failure="abort")
    pids = worker_pids(envs)
    row = started(envs)
    with pytest.raises(EnvError, match=r"^Env 1 \(in worker 0\) raised RuntimeError: the simulator exploded\."):
        envs.step(np.array([3, 2, 1, 0]), row)
    assert not any(map(is_alive, pids))


def test_an_env_that_cannot_be_made_gives_one_error() -> None:
    with pytest.raises(EnvError, match=r"Worker 0 \(envs 0 to 1\) raised RuntimeError: no licence"):
        lane_pool(UnmakeableEnv)


def test_a_step_that_was_interrupted_half_way_is_refused(pool: MakePool) -> None:
    """Some lanes have stepped and some have not: neither a step nor a checkpoint may go on from there."""
    envs = pool(functools.partial(HangingEnv, at_step=1, seed=23))
    row = started(envs)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            envs.step(NO_ACTION, row)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for use in (
        lambda: envs.step(NO_ACTION, row),
        lambda: envs.send(NO_ACTION),
        lambda: envs.reset(SEEDS, row),
        envs.save_state,
    ):
        with pytest.raises(EnvError, match="interrupted half-way"):
            use()


def test_a_worker_that_slept_is_woken(pool: MakePool) -> None:
    """After a long update both lanes go on."""
    envs = pool(CounterEnv)
    row = started(envs)
    for _ in range(3):
        time.sleep(0.1)
        envs.step(NO_ACTION, row)
    assert row.obs[2].tolist() == [0, 3, 22]


def test_frames_and_executed_actions_come_from_the_right_env(pool: MakePool) -> None:
    envs = pool(functools.partial(gym.make, "CliffWalking-v1", render_mode="rgb_array"))
    row = started(envs)
    envs.step(np.array([2, 2, 2, 0]), row)  # only slot 3 moves up
    frames = [envs.render(i) for i in range(4)]
    assert frames[0] is not None and frames[0].ndim == 3
    assert np.array_equal(frames[0], frames[2]) and not np.array_equal(frames[0], frames[3])
    assert envs.executed(1) is None


# --- what uses them -------------------------------------------------------------------------------------------------


def test_games_are_stepped_by_lanes_where_cores_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like the ordinary pool in every number, wrappers of the batch included."""
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    data = {
        "id": "ALE/Pong-v5",
        "vectorization": "workers",
        "n_workers": 2,
        "atari": {"obs": "ram", "frame_cap": 120},
        "wrappers": ["reward_clip"],
    }
    config = EnvConfig.model_validate(data)
    traces = []
    for lanes_from in (10**6, 1):
        monkeypatch.setattr(making, "LANES_FROM", lanes_from)
        assert by_lanes(config, 5) == (lanes_from == 1)
        with closing(make_envs(config, 5)) as envs:
            assert isinstance(envs, LanePool) == (lanes_from == 1)
            started(envs, [1, 2, 3, 4, 5])
            traces.append(together(envs, actions_for(envs, 70)))
    assert traces[0] == traces[1]
    assert len(traces[0][1]) >= 5


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """This process on two cores, where two workers fill the machine and take turns."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(core_turns, "LEAST_WORKERS", 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(core_turns, "CLAIM", f"\0gymnast-core-turns-{os.getpid()}")
    cores = set(sorted(before)[:2])
    os.sched_setaffinity(0, cores)
    yield cores
    os.sched_setaffinity(0, before)


def places(envs: LanePool) -> list[set[int]]:
    return [os.sched_getaffinity(pid) for pid in worker_pids(envs)]


def steps_until(envs: LanePool, true: Callable[[], bool]) -> None:
    row, deadline = envs.new_row(), time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        envs.even_out()
        envs.step(NO_ACTION, row)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_workers_that_fill_the_machine_take_turns_on_its_cores(pool: MakePool, two_cores: set[int]) -> None:
    envs = pool(CounterEnv, core_turns="on")
    envs.reset(SEEDS, envs.new_row())
    steps_until(envs, lambda: [len(cores) for cores in places(envs)] == [1, 1])
    first = places(envs)
    assert set.union(*first) == two_cores
    steps_until(envs, lambda: places(envs) == first[::-1])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_a_worker_that_dies_does_not_stop_the_turns(pool: MakePool, two_cores: set[int]) -> None:
    envs = pool(CounterEnv, core_turns="on")
    envs.reset(SEEDS, envs.new_row())
    dead, alive = worker_pids(envs)
    os.kill(dead, signal.SIGKILL)
    steps_until(envs, lambda: dead not in worker_pids(envs))
    steps_until(envs, lambda: sorted(map(len, places(envs))) == [1, 1] and set.union(*places(envs)) == two_cores)
    assert alive in worker_pids(envs)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
@pytest.mark.parametrize(
    ("n_workers", "n_cores", "moved"),
    [(16, 16, True), (15, 16, True), (14, 16, False), (4, 4, True), (3, 4, False), (3, 3, False), (4, 2, False)],
)
def test_only_pools_that_fill_a_larger_machine_are_moved(
    n_workers: int, n_cores: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With at most one core left over; the scheduler evens out all others."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n_cores)))
    assert CoreTurns(n_workers, "auto").possible == CoreTurns(n_workers, "on").possible == moved
    assert not CoreTurns(n_workers, "off").possible


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_only_one_pool_of_a_machine_moves_its_workers(pool: MakePool, two_cores: set[int]) -> None:
    """A second one leaves its workers alone until the first is gone."""
    first, second = pool(CounterEnv, core_turns="on"), pool(CounterEnv, core_turns="on")
    for envs in (first, second):
        envs.reset(SEEDS, envs.new_row())
    steps_until(first, lambda: all(len(cores) == 1 for cores in places(first)))
    before = time.monotonic()
    steps_until(second, lambda: time.monotonic() > before + 5 * core_turns.TURN_SECONDS)
    assert places(second) == [two_cores, two_cores]
    first.close()
    steps_until(second, lambda: all(len(cores) == 1 for cores in places(second)))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_workers_are_let_loose_on_a_crowded_machine(
    pool: MakePool, two_cores: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = pool(CounterEnv, core_turns="on")
    envs.reset(SEEDS, envs.new_row())
    steps_until(envs, lambda: all(len(cores) == 1 for cores in places(envs)))
    monkeypatch.setattr(os, "getloadavg", lambda: (2.6, 0.0, 0.0))
    steps_until(envs, lambda: places(envs) == [two_cores, two_cores])
    monkeypatch.setattr(os, "getloadavg", lambda: (2.4, 0.0, 0.0))
    steps_until(envs, lambda: all(len(cores) == 1 for cores in places(envs)))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_workers_stay_where_they_are_until_turns_are_measured(
    pool: MakePool, two_cores: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off at first, then tried; back with the scheduler for good when that was not faster."""
    monkeypatch.setattr(core_turns, "ROUND_SECONDS", 0.1)
    monkeypatch.setattr(core_turns, "GAIN", 1e9)  # whatever is measured
    envs = pool(CounterEnv)
    envs.reset(SEEDS, envs.new_row())
    envs.even_out()
    assert places(envs) == [two_cores, two_cores]
    steps_until(envs, lambda: all(len(cores) == 1 for cores in places(envs)))
    steps_until(envs, lambda: not envs._turns.possible)
    assert places(envs) == [two_cores, two_cores]


@pytest.mark.parametrize(
    ("rates", "helps"),
    [
        ([100, 110, 101, 112, 99, 109], True),
        ([100, 101, 100, 101, 100, 101], False),  # too little
        ([100, 130, 100, 130, 100, 99], False),  # not every time
        ([110, 100, 110, 100, 110, 100], False),
    ],
)
def test_turns_stay_only_if_they_were_faster_every_time(rates: list[int], helps: bool) -> None:
    """Pauses, in which the policy learns or is evaluated, count for nothing."""
    trial, now, steps, moved = Trial(), 0.0, 0, []
    for rate in rates:
        assert trial.helps is None
        moved.append(trial.moving)
        for _ in range(33):
            trial.hear(now, steps)
            now, steps = now + 0.125, steps + rate
        now += 50.0
    assert moved == [False, True] * 3
    assert trial.helps is trial.moving is helps

"""Faults of the process pool, with real processes and real signals."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from counter_env import (
    CounterEnv,
    DyingEnv,
    FaultyEnv,
    GlobalRandomEnv,
    HangingEnv,
    ImportsEnv,
    LockHoldingEnv,
    PickyInfoEnv,
    UnmakeableEnv,
    UnresettableEnv,
)

from gymnast.envs.vector import StepRow
from gymnast.envs.workers import WorkerPool
from gymnast.errors import EnvError

SHARED_MEMORY = Path("/dev/shm")
MakePool = Callable[..., WorkerPool]
NO_ACTION = np.zeros(4, np.int64)
SEEDS = [20, 21, 22, 23]


@pytest.fixture
def pool() -> Iterator[MakePool]:
    """Makes pools of 4 envs in 2 workers; afterwards no process and no shared memory of theirs may be left."""
    made: list[tuple[WorkerPool, str]] = []

    def make(make_env: Callable[[], gym.Env], **options: Any) -> WorkerPool:
        envs = WorkerPool(make_env, 4, **{"n_workers": 2, "timeout": 20.0, **options})
        made.append((envs, envs._shared.name))
        return envs

    yield make
    for envs, name in made:
        pids = worker_pids(envs)
        start = time.monotonic()
        envs.close()
        envs.close()
        assert time.monotonic() - start < 1.0
        assert not [pid for pid in pids if is_alive(pid)]
        assert not (SHARED_MEMORY / name).exists()


def worker_pids(envs: WorkerPool) -> list[int]:
    """Processes of the workers."""
    return [worker.process.pid for worker in envs._workers]


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def started(envs: WorkerPool) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(SEEDS, row)
    return row


# --- a worker fails in a step --------------------------------------------------------------------------------------

FAULTS = {
    "raises": (FaultyEnv, "raised RuntimeError: the simulator exploded", 20.0),
    "dies": (DyingEnv, "was killed by signal 9 (SIGKILL)", 20.0),
    "hangs": (HangingEnv, "gave no answer within 1 s", 1.0),
    "hangs with the lock": (LockHoldingEnv, "gave no answer within 1 s", 1.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_only_the_failed_worker_is_replaced(fault: str, pool: MakePool, caplog: pytest.LogCaptureFixture) -> None:
    """Its episodes come back as interrupted, the other worker's go on, and the message names env, seed and action."""
    make_env, what, timeout = FAULTS[fault]
    envs = pool(functools.partial(make_env, at_step=3, seed=23), timeout=timeout)
    row = started(envs)
    healthy, faulty = worker_pids(envs)
    for _ in range(2):
        envs.step(NO_ACTION + 1, row)
    start = time.monotonic()
    ended = envs.step(np.array([0, 0, 1, 2]), row)
    assert time.monotonic() - start < 3

    lost = [e for e in ended if e.index >= 2]
    assert [(e.index, e.final_obs, e.terminated, e.infos) for e in lost] == [
        (2, None, False, {"worker_restarted": True}),
        (3, None, False, {"worker_restarted": True}),
    ]
    # Slot 2 (length 5) had made two steps of rewards 11 and 21, slot 3 (length 2) had just ended one: nothing yet.
    assert [(e.ret, e.length) for e in lost] == [(32.0, 2), (0.0, 0)]
    assert row.reward.tolist()[2:] == [0, 0]
    assert row.truncated.tolist()[2:] == [True, True]
    assert row.terminated.tolist()[2:] == [False, False]
    new_seeds = row.obs[2:, 2].tolist()
    assert row.obs[2:].tolist() == [[0, 0, seed] for seed in new_seeds]
    assert not set(new_seeds) & {20, 21, 22, 23}
    assert len(set(new_seeds)) == 2
    assert row.obs[0].tolist() == [1, 0, 20]  # the healthy worker: the third step ended slot 0's first episode
    assert (ended[0].index, ended[0].final_obs.tolist()) == (0, [0, -3, 20])

    assert envs.counters() == {"env/worker_restarts": 1}
    assert worker_pids(envs)[0] == healthy
    assert worker_pids(envs)[1] != faulty
    assert not is_alive(faulty)
    message = caplog.records[0].getMessage()
    assert f"Env 3 (in worker 1) {what}" in message
    assert "last reset with seed 23 and its last action was 2." in message
    assert ('in fail\n    raise RuntimeError("the simulator exploded")' in message) == (fault == "raises")

    envs.step(NO_ACTION, row)
    assert {tuple(place) for place in row.obs[2:, :2].tolist()} <= {(0, 1), (1, 0)}  # one step on, or a new episode


def test_restart_seeds_follow_from_the_original_seed_and_the_count(pool: MakePool) -> None:
    """Two runs that lose the same worker at the same moment go on alike; a second loss gives other seeds."""
    seen = []
    for _ in range(2):
        envs = pool(CounterEnv)
        row = started(envs)
        seeds = []
        for _ in range(2):
            os.kill(worker_pids(envs)[1], signal.SIGKILL)
            envs.step(NO_ACTION, row)
            seeds.append(row.obs[2:, 2].tolist())
        seen.append(seeds)
    assert seen[0] == seen[1]
    assert len({seed for pair in seen[0] for seed in pair}) == 4
    for restart, (slot_2, _) in enumerate(seen[0], start=1):
        assert slot_2 == np.float32(np.random.SeedSequence([22, restart]).generate_state(1)[0] >> 1)


def test_both_workers_may_fail_in_one_step(pool: MakePool) -> None:
    """Every slot is reported, in order."""
    envs = pool(functools.partial(FaultyEnv, at_step=2))
    row = started(envs)
    envs.step(NO_ACTION, row)
    assert [e.index for e in envs.step(NO_ACTION, row) if e.infos.get("worker_restarted")] == [0, 1, 2, 3]
    assert envs.counters() == {"env/worker_restarts": 2}


def test_lost_and_ended_episodes_come_in_order_of_their_slot(pool: MakePool) -> None:
    """As without faults, so that readers may rely on it."""
    envs = pool(CounterEnv)
    row = envs.new_row()
    envs.reset([20, 20, 21, 21], row)
    os.kill(worker_pids(envs)[0], signal.SIGKILL)
    ended = envs.step(NO_ACTION, row)
    assert [(e.index, e.final_obs is None) for e in ended] == [(0, True), (1, True), (2, False), (3, False)]


def test_abort_closes_everything_and_says_why(pool: MakePool) -> None:
    """The error holds the same sentence and traceback as the warning would."""
    envs = pool(functools.partial(FaultyEnv, at_step=1, seed=21), on_failure="abort")
    pids = worker_pids(envs)
    row = started(envs)
    with pytest.raises(EnvError) as caught:
        envs.step(np.array([3, 2, 1, 0]), row)
    text = str(caught.value)
    assert text.startswith("Env 1 (in worker 0) raised RuntimeError: the simulator exploded.")
    assert "last reset with seed 21 and its last action was 2." in text
    assert "counter_env.py" in text
    assert not any(map(is_alive, pids))
    with pytest.raises(EnvError, match="pool is closed"):
        envs.step(NO_ACTION, row)


def test_too_many_restarts_end_the_run(pool: MakePool) -> None:
    """An env that crashes at every first step is given up after the third restart, in bounded time."""
    envs = pool(functools.partial(FaultyEnv, at_step=1), n_workers=1, max_restarts=3)
    row = started(envs)
    start = time.monotonic()
    with pytest.raises(EnvError, match=r"failed more than 3 times\. Env 0 \(in worker 0\) raised RuntimeError"):
        for _ in range(10):
            envs.step(NO_ACTION, row)
    assert envs.counters() == {"env/worker_restarts": 3}
    assert time.monotonic() - start < 5


def test_the_same_traceback_is_shown_once(pool: MakePool, caplog: pytest.LogCaptureFixture) -> None:
    """An env that raises in every episode: each failure in a line, the lines of code once."""
    envs = pool(functools.partial(FaultyEnv, at_step=1), n_workers=1, max_restarts=3)
    row = started(envs)
    with caplog.at_level("WARNING"), pytest.raises(EnvError) as last:
        for _ in range(10):
            envs.step(NO_ACTION, row)
    said = [*caplog.messages, str(last.value)]
    assert len(said) == 4 and all("Env 0 (in worker 0) raised RuntimeError" in one for one in said)
    assert sum("Traceback" in one for one in said) == 1 and "Traceback" in said[0]
    assert sum("differs from one with the same seed" in one for one in said) == 1


# --- a worker fails elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_an_env_that_cannot_be_made_gives_one_error(start_method: str) -> None:
    """No restarts: it would fail again."""
    start = time.monotonic()
    with pytest.raises(EnvError, match=r"Worker 0 \(envs 0 to 1\) raised RuntimeError: no licence") as caught:
        WorkerPool(UnmakeableEnv, 4, n_workers=2, start_method=start_method)
    assert "Traceback of the worker" in str(caught.value)
    assert time.monotonic() - start < 10


def test_an_env_that_hangs_while_it_is_made_gives_one_error() -> None:
    """The timeout covers the start as well."""
    with pytest.raises(EnvError, match=r"gave no answer within 0\.5 s and counts as hung while making its envs"):
        WorkerPool(lambda: time.sleep(1000), 2, n_workers=2, timeout=0.5)  # type: ignore[arg-type,return-value]


def test_a_function_that_cannot_be_sent_gives_one_error() -> None:
    """A lock in a closure cannot be pickled."""
    lock = threading.Lock()
    with pytest.raises(EnvError, match="cannot be sent to a worker process"):
        WorkerPool(lambda: CounterEnv(bool(lock)), 2, n_workers=1)


def test_a_seed_that_cannot_be_reset_is_replaced(pool: MakePool) -> None:
    """Reset fails for one slot: its worker starts again with new seeds, nothing is reported as an episode."""
    envs = pool(functools.partial(UnresettableEnv, 23))
    row = started(envs)
    assert row.obs[:2, 2].tolist() == [20, 21]
    assert not {22, 23} & set(row.obs[2:, 2].tolist())
    assert not [e for e in envs.step(NO_ACTION, row) if e.infos.get("worker_restarted")]


def test_an_env_that_can_never_be_reset_ends_the_run(pool: MakePool) -> None:
    """In bounded time, with the last failure."""
    envs = pool(functools.partial(UnresettableEnv, -1), n_workers=1, max_restarts=2)
    with pytest.raises(
        EnvError, match=r"more than 2 times\. Env 0 \(in worker 0\) raised RuntimeError: seed \d+ cannot"
    ):
        started(envs)


def test_a_worker_killed_between_steps_is_noticed_by_save_state(pool: MakePool) -> None:
    """The checkpoint holds fresh envs; the next step reports the interrupted episodes and does not step them."""
    envs = pool(functools.partial(gym.make, "CartPole-v1"))
    row = started(envs)
    envs.step(NO_ACTION, row)
    before = row.obs.copy()
    os.kill(worker_pids(envs)[1], signal.SIGKILL)
    state = envs.save_state()
    assert state["lengths"] == [1, 1, 0, 0]
    ended = envs.step(NO_ACTION, row)
    assert [(e.index, e.length, e.infos) for e in ended] == [(i, 1, {"worker_restarted": True}) for i in (2, 3)]
    assert row.truncated.tolist() == [False, False, True, True]
    assert (np.abs(row.obs[2:]) <= 0.05).all()  # CartPole starts within 0.05
    assert not np.array_equal(row.obs[2:], before[2:])
    assert envs.step(NO_ACTION, row) == ()


def test_a_worker_killed_between_steps_is_noticed_by_load_state(pool: MakePool) -> None:
    """The state goes into the replacement, and the run continues exactly: nothing was lost."""
    envs = pool(functools.partial(gym.make, "CartPole-v1"))
    row = started(envs)
    state = envs.save_state()
    envs.step(NO_ACTION, row)
    expected = row.obs.copy()
    os.kill(worker_pids(envs)[0], signal.SIGKILL)
    envs.load_state(state)
    assert envs.step(NO_ACTION, row) == ()
    assert np.array_equal(row.obs, expected)


def test_a_command_that_raises_is_an_error_and_the_pool_lives(pool: MakePool) -> None:
    """A damaged state is no reason to replace workers."""
    envs = pool(functools.partial(gym.make, "CartPole-v1"))
    row = started(envs)
    state = envs.save_state()
    damaged = {**state, "envs": [{} for _ in state["envs"]]}
    with pytest.raises(EnvError, match="KeyError"):
        envs.load_state(damaged)
    envs.load_state(state)
    envs.step(NO_ACTION, row)
    assert envs.counters() == {"env/worker_restarts": 0}


# --- processes and memory ------------------------------------------------------------------------------------------


def test_the_hot_path_pickles_nothing(pool: MakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While no episode ends, nothing goes through the pipes."""
    envs = pool(functools.partial(gym.make, "Pendulum-v1"))
    row = started(envs)
    for worker in envs._workers:
        monkeypatch.setattr(worker, "conn", None)
    for _ in range(50):
        envs.step(np.zeros((4, 1), np.float32), row)
    monkeypatch.undo()


def test_workers_load_neither_torch_nor_the_script(tmp_path: Path) -> None:
    """From a script without `if __name__ == "__main__"` that imports torch and registers an env of its own."""
    script = f"""
        import torch, gymnasium, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from counter_env import ImportsEnv
        from gymnast.envs.workers import WorkerPool

        class MyEnv(ImportsEnv):
            pass

        gymnasium.register("Mine-v0", MyEnv)
        for method in ("forkserver", "spawn"):
            envs = WorkerPool(lambda: gymnasium.make("Mine-v0"), 2, n_workers=2, start_method=method)
            row = envs.new_row()
            envs.reset([1, 2], row)
            print(method, row.obs.tolist())
    """
    command = [sys.executable, script_file(script, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""  # nothing is closed on purpose: no complaint about processes or memory at exit either
    assert done.stdout == "".join(f"{method} {[[0.0] * 3] * 2}\n" for method in ("forkserver", "spawn"))


def script_file(script: str, folder: Path) -> Path:
    """A script on disk, as users have it."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    return path


def test_this_process_agrees_that_workers_have_no_torch(pool: MakePool) -> None:
    """The probe itself works: it finds torch where it is loaded."""
    import torch  # noqa: F401

    assert ImportsEnv().observe(0)[0] == 1
    envs = pool(ImportsEnv)
    assert started(envs).obs[:, 0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("make_env", ["CounterEnv", "HangingEnv", "LockHoldingEnv"])
def test_workers_die_with_a_killed_trainer(make_env: str, tmp_path: Path) -> None:
    """Idle, or hanging with or without the interpreter lock: no orphan, and no shared memory left behind."""
    script = f"""
        import sys, numpy as np
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import counter_env
        from gymnast.envs.workers import WorkerPool

        envs = WorkerPool(counter_env.{make_env}, 2, n_workers=2)
        row = envs.new_row()
        envs.reset([1, 2], row)
        print(envs._shared.name, *(worker.process.pid for worker in envs._workers), flush=True)
        for _ in range(2):
            envs.step(np.zeros(2, np.int64), row)
        sys.stdin.read()
    """
    trainer = subprocess.Popen(
        [sys.executable, script_file(script, tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    name, *pids = trainer.stdout.readline().decode().split()
    time.sleep(0.2)  # into the hang
    assert all(is_alive(int(pid)) for pid in pids)
    assert (SHARED_MEMORY / name).exists()
    trainer.kill()
    trainer.wait()
    assert wait_until(lambda: not any(is_alive(int(pid)) for pid in pids))
    assert wait_until(lambda: not (SHARED_MEMORY / name).exists())


def test_a_forgotten_pool_is_closed_by_the_garbage_collector() -> None:
    """Without close: no process and no memory left."""
    envs = WorkerPool(CounterEnv, 2, n_workers=2)
    pids, name = worker_pids(envs), envs._shared.name
    del envs
    gc.collect()
    assert not any(map(is_alive, pids))
    assert not (SHARED_MEMORY / name).exists()


def test_close_does_not_wait_for_a_hung_worker(pool: MakePool) -> None:
    """An interrupted step leaves the pool unusable but closable at once; the fixture checks time and processes."""
    envs = pool(functools.partial(HangingEnv, at_step=1))
    row = started(envs)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            envs.step(NO_ACTION, row)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(EnvError, match="interrupted half-way"):
        envs.save_state()


def test_workers_ignore_the_signals_meant_for_the_trainer(pool: MakePool) -> None:
    """Ctrl-C and SIGTERM reach the whole process group; the trainer still needs the envs for its checkpoint."""
    envs = pool(CounterEnv)
    row = started(envs)
    for pid in worker_pids(envs):
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    for _ in range(3):
        envs.step(NO_ACTION, row)
    assert envs.counters() == {"env/worker_restarts": 0}


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_to_the_whole_group_costs_no_worker(name: str, start_method: str, tmp_path: Path) -> None:
    """As `timeout`, service managers, a lost terminal and Ctrl-C send it: what workers are forked from lives on too."""
    script = f"""
        import signal, sys, time, numpy as np
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from counter_env import CounterEnv
        from gymnast.envs.workers import WorkerPool

        heard = []
        signal.signal(signal.{name}, lambda *_: heard.append(1))
        if __name__ == "__main__":
            envs = WorkerPool(CounterEnv, 4, n_workers=2, start_method={start_method!r})
            row = envs.new_row()
            envs.reset([20, 21, 22, 23], row)
            print("ready", flush=True)
            while not heard:
                time.sleep(0.01)
            time.sleep(0.3)
            for _ in range(3):
                envs.step(np.zeros(4, np.int64), row)
            print(envs.counters(), flush=True)
            envs.close()
    """
    trainer = subprocess.Popen(
        [sys.executable, script_file(script, tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert trainer.stdout.readline() == "ready\n"
    os.killpg(trainer.pid, getattr(signal, name))
    out, err = trainer.communicate(timeout=30)
    assert (out, err) == ("{'env/worker_restarts': 0}\n", "")


def test_pool_made_in_a_thread_outlives_the_thread() -> None:
    """The kernel's parent-death signal is about threads; a notebook or web page makes pools in short-lived ones."""
    for start_method in ("forkserver", "spawn"):
        made: list[WorkerPool] = []

        def make(start_method: str = start_method, made: list[WorkerPool] = made) -> None:
            made.append(WorkerPool(CounterEnv, 4, n_workers=2, start_method=start_method))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        row = started(made[0])
        made[0].step(NO_ACTION, row)
        assert made[0].counters() == {"env/worker_restarts": 0}
        made[0].close()


def test_infos_that_cannot_be_sent_are_left_out(pool: MakePool) -> None:
    """One odd info does not cost the worker."""
    envs = pool(PickyInfoEnv)
    row = started(envs)
    ended = [e for _ in range(5) for e in envs.step(NO_ACTION, row)]
    with pytest.raises(TypeError):
        pickle.dumps(i for i in range(3))
    assert ended
    assert all("generator" not in e.infos and e.infos["steps"] == e.length for e in ended)
    assert envs.counters() == {"env/worker_restarts": 0}


def test_workers_do_not_share_the_global_generator(pool: MakePool) -> None:
    """Forks of one server would all draw the same numbers."""
    first = started(pool(GlobalRandomEnv)).obs[:, 0]
    assert first[0] != first[2]


def test_large_final_observations_pass(pool: MakePool) -> None:
    """Ended episodes bigger than a pipe's buffer do not lock both sides up."""
    from gymnasium import spaces

    class BigEnv(gym.Env):
        observation_space = spaces.Box(0, 255, (400, 400), np.uint8)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            return np.zeros((400, 400), np.uint8), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
            return np.full((400, 400), 7, np.uint8), 0.0, True, False, {}

    envs = pool(BigEnv)
    row = started(envs)
    for _ in range(3):
        ended = envs.step(NO_ACTION, row)
        assert [e.final_obs.min() for e in ended] == [7] * 4
        assert row.obs.max() == 0


def test_frames_come_from_the_right_env(pool: MakePool) -> None:
    """Slot 3 is the second env of the second worker."""
    envs = pool(functools.partial(gym.make, "CliffWalking-v1", render_mode="rgb_array"))
    row = started(envs)
    envs.step(np.array([2, 2, 2, 0]), row)  # only slot 3 moves up
    frames = [envs.render(i) for i in range(4)]
    assert frames[0].ndim == 3
    assert np.array_equal(frames[0], frames[1])
    assert np.array_equal(frames[0], frames[2])
    assert not np.array_equal(frames[0], frames[3])
    assert pool(CounterEnv).render(1) is None


def test_more_workers_than_envs(pool: MakePool) -> None:
    """Nobody is idle: the number of workers is at most the number of envs."""
    envs = pool(CounterEnv, n_workers=9)
    assert envs.n_workers == 4
    assert envs.describe() == "4 envs in 4 worker processes"
    envs.step(NO_ACTION, started(envs))

"""A machine that stands still (SIGSTOP, a frozen container) makes nobody late: processes stopped longer than the timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from launch import environment

from gymnast.timing import AwakeClock

TESTS = Path(__file__).parent
TIMEOUT = 3.0
STOPPED = 4.0
BUSY = """
    import sys, time
    import gymnasium as gym
    from counter_env import CounterEnv

    class BusyEnv(CounterEnv):
        "Works for as long as its worker has the processor: not done the moment the machine goes on."
        seconds = 0.1
        def __init__(self):
            super().__init__()
            self.observation_space = gym.spaces.Box(-10.0, 2.0**32, (3,))  # it shows its seed, which is as large
        def step(self, action):
            until = time.process_time() + self.seconds
            while time.process_time() < until:
                pass
            return super().step(action)
"""
POOLS = {
    "WorkerPool": "WorkerPool(BusyEnv, 2, n_workers=1, timeout={timeout})",
    "LanePool": "LanePool(functools.partial(InProcessVector, BusyEnv), 2, n_workers=1, timeout={timeout})",
}
STEPS = """
    import functools
    import numpy as np
    from busy_env import BusyEnv
    from gymnast.envs.inprocess import InProcessVector
    from gymnast.envs.lanes import LanePool
    from gymnast.envs.workers import WorkerPool

    if __name__ == "__main__":
        envs = {pool}
        row = envs.new_row()
        envs.reset([20, 21], row)
        print("ready", flush=True)
        for _ in range(8):
            envs.step(np.zeros(2, np.int64), row)
        print(envs.counters(), flush=True)
        envs.close()
"""
EVALUATION = """
    import gymnasium as gym
    import busy_env
    from runs_alike import small
    from gymnast.runs import checkpoint
    from gymnast.training.build import build
    from gymnast.training.evaluating.worker import EvalWorker
    from gymnast.training.trainer import policy_tensors

    gym.register("Busy-v0", busy_env.BusyEnv, max_episode_steps=6)
    if __name__ == "__main__":
        config = small("ppo", {{"id": "Busy-v0", "worker_timeout": {timeout}}}, eval={{"episodes": 1}}).config
        trainer = build(config)
        worker = EvalWorker(config)
        worker.submit(checkpoint.pack(0, policy_tensors(trainer.policy), None, {{}}, {{}}).blobs[checkpoint.POLICY], 0)
        while not worker._shared[0]:
            worker.poll(0.1)
        print("ready", flush=True)
        while (found := worker.poll(0.1)) is None:
            pass
        print(len(found.returns), flush=True)
        worker.close()
"""


SCRIPTS = {name: STEPS.format(pool=pool.format(timeout=TIMEOUT)) for name, pool in POOLS.items()}
SCRIPTS["EvalWorker"] = EVALUATION.format(timeout=TIMEOUT)


def started(name: str, folder: Path) -> subprocess.Popen[str]:
    """A script that has come to its steps."""
    (folder / "busy_env.py").write_text(textwrap.dedent(BUSY))
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(SCRIPTS[name]))
    places = os.pathsep.join(map(str, (folder, TESTS, TESTS.parent, TESTS.parent / "training")))
    return subprocess.Popen(
        [sys.executable, path],
        env=environment(PYTHONPATH=places),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What the scripts print after all their processes were stopped in the middle of a step, each at its own time."""
    folder = tmp_path_factory.mktemp("scripts")

    def run(name: str) -> tuple[str, str]:
        trainer = started(name, folder)
        try:
            assert trainer.stdout is not None
            assert trainer.stdout.readline() == "ready\n"
            time.sleep(0.3)  # into a step
            os.killpg(trainer.pid, signal.SIGSTOP)
            time.sleep(STOPPED)
            os.killpg(trainer.pid, signal.SIGCONT)
            return trainer.communicate(timeout=60)
        finally:
            trainer.kill()

    with ThreadPoolExecutor(len(SCRIPTS)) as threads:
        return dict(zip(SCRIPTS, threads.map(run, SCRIPTS), strict=True))


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
@pytest.mark.parametrize("pool", POOLS)
def test_no_worker_is_taken_to_hang(pool: str, printed: dict[str, tuple[str, str]]) -> None:
    """The step under way when everything stopped is waited for as long as any other."""
    assert printed[pool] == ("{'env/worker_restarts': 0}\n", "")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_no_evaluation_is_taken_to_hang(printed: dict[str, tuple[str, str]]) -> None:
    """The worker that evaluates beside training neither."""
    assert printed["EvalWorker"] == ("1\n", "")


def test_only_time_that_is_looked_at_counts() -> None:
    """A gap counts up to its limit; looked at often enough, the clock runs as any other."""
    clock = AwakeClock(most=0.05)
    begin = clock()
    time.sleep(0.5)
    assert clock() - begin == pytest.approx(0.05)
    began, begin = time.monotonic(), clock()
    while time.monotonic() < began + 0.2:
        clock()
    assert 0.0 < clock() - begin <= time.monotonic() - began

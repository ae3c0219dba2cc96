"""Envs whose state cannot be saved: reset at every k-th boundary in every run, so that 2N = N + stop + N to the bit."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_envs
import torch
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, end_of, resume, run, small

from gymnast.config.load import Resolved
from gymnast.config.plan import make_plan
from gymnast.config.schema import EnvConfig
from gymnast.envs import make as making
from gymnast.envs.choose import native_form
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.vector import VectorEnv
from gymnast.errors import CheckpointError, EnvError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.rollout.collect import Ended
from gymnast.runs import checkpoint
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.keeping.report import Reporter
from gymnast.training.train import resume_point, train
from gymnast.training.trainer import repeats

HAS_ENVPOOL = importlib.util.find_spec("envpool") is not None
WALK = {"id": "Walk-v0", "vectorization": "native"}
POOL = {"id": "CartPole-v1", "vectorization": "envpool", "time_limit": 40, "n_workers": 2}
KINDS = [
    pytest.param(WALK, id="native"),
    pytest.param(POOL, id="EnvPool", marks=pytest.mark.skipif(not HAS_ENVPOOL, reason="EnvPool is not installed")),
]
NORMALISED = {"policy": {"hidden": [16], "normalize_obs": True}}
EVERY = 2
"""Iterations between two resets."""


class Stateless(InProcessVector):
    """Gives no access to its state, as envs in C++ do."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.exact_resume = "none"

    def save_state(self) -> dict[str, Any]:
        """Refused."""
        raise EnvError("cannot be saved")

    def load_state(self, state: dict[str, Any]) -> None:
        """Refused."""
        raise EnvError("cannot be loaded")


def stateless(config: EnvConfig) -> Callable[[int], VectorEnv] | None:
    """For Walk, envs that give no access to their state."""
    if config.id != "Walk-v0":
        return native_form(config)  # evaluations of EnvPool's CartPole are played by ours
    return functools.partial(Stateless, functools.partial(making.make_one, config))


@pytest.fixture(autouse=True)
def _native_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "native_form", stateless)


def config(env: dict[str, Any], algorithm: str = "ppo", **changes: Any) -> Resolved:
    """Six iterations, envs reset after every second one, rewards scaled."""
    algo = small(algorithm, env).config.algo.model_dump(mode="json")
    scaled = {"algo": {**algo, "normalize_reward": True}}
    return small(algorithm, {"resume_every": EVERY * PER_ITERATION, **env}, **{**NORMALISED, **scaled, **changes})


@pytest.mark.parametrize("env", KINDS)
@pytest.mark.parametrize("stop_after", [1, 2, 3, 5])
def test_stop_and_resume_equals_the_whole_run(env: dict[str, Any], stop_after: int, tmp_path: Path) -> None:
    """A stop between two resets goes back to the last one and comes the same way again."""
    straight, before, after = Watcher(), Watcher(stop_after=stop_after), Watcher()
    whole = run(config(env), tmp_path, straight)
    stopped = run(config(env), tmp_path, before)
    kept = stop_after - stop_after % EVERY
    assert stopped.interrupted
    assert stopped.env_steps == stopped.run.status().env_steps == kept * PER_ITERATION
    point, _ = resume_point(stopped.run)
    assert point.manifest.step == kept * PER_ITERATION
    assert point.state["session"]["envs"] == {"how": "boundary_reset", "exact": True, "state": None}
    finished = resume(config(env), stopped.run, after)
    assert not differences(straight.actions, before.actions[:kept] + after.actions)
    assert_same_end(whole.run, finished.run)
    assert [row["env_steps"] for row in MetricRows(finished.run.metrics_path)] == [
        PER_ITERATION * i for i in range(1, 7)
    ]


def test_stopped_again_and_again(tmp_path: Path) -> None:
    """Also where two stops come before the first reset."""
    whole = run(config(WALK, "a2c"), tmp_path)
    stopped = run(config(WALK, "a2c"), tmp_path, Watcher(stop_after=1))
    for iterations in (1, 3, 1):
        stopped = resume(config(WALK, "a2c"), stopped.run, Watcher(stop_after=iterations))
        assert stopped.interrupted
    assert_same_end(whole.run, resume(config(WALK, "a2c"), stopped.run).run)


@pytest.mark.parametrize("step", [1, PER_ITERATION + 1, 3 * PER_ITERATION + 7, 6 * PER_ITERATION])
def test_a_signal_at_any_step(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first iteration and in the last, too."""
    whole = run(config(WALK), tmp_path)
    plain, count = small_envs.Walk.step, itertools.count(1)

    def interrupting(self: small_envs.Walk, action: Any) -> Any:
        if next(count) == step:
            signal.raise_signal(signal.SIGINT)
        return plain(self, action)

    monkeypatch.setattr(small_envs.Walk, "step", interrupting)
    stopped = run(config(WALK), tmp_path)
    finished = resume(config(WALK), stopped.run) if stopped.interrupted else stopped
    assert_same_end(whole.run, finished.run)


@pytest.mark.skipif(not HAS_ENVPOOL, reason="EnvPool is not installed")
def test_evaluations_beside_training(tmp_path: Path) -> None:
    """Open evaluations are part of the boundary that is kept."""
    beside = {"eval": {"every": PER_ITERATION, "episodes": 3, "mode": "worker"}}
    whole = run(config(POOL, **beside), tmp_path)
    stopped = run(config(POOL, **beside), tmp_path, Watcher(stop_after=3))
    finished = resume(config(POOL, **beside), stopped.run)
    first, second = end_of(whole.run), end_of(finished.run)
    for part in ("policy", "counters", "rows"):
        assert not differences(first[part], second[part]), part


def test_saves_wait_for_a_reset_and_the_best_may_lie_between(tmp_path: Path) -> None:
    """`last` is a point to resume from; `best` holds the best weights, wherever they were."""
    often = {"train": {"env_steps": 6 * PER_ITERATION, "stop_when_solved": False, "checkpoint_every": 1}}
    judged = {"eval": {"every": PER_ITERATION, "episodes": 3}}
    changes = {**often, **judged}
    changes["train"] = {**often["train"], "keep_checkpoints": 20}
    stopped = run(config(WALK, **changes), tmp_path, Watcher(stop_after=5)).run
    exact = {}
    for step in checkpoint.steps(stopped.folder):
        saved = checkpoint.load(stopped.folder / "checkpoints" / f"step={step}")
        exact[step // PER_ITERATION] = saved.state["session"]["envs"]["exact"]
    assert {2, 4} <= exact.keys()
    assert all(is_exact == (i % EVERY == 0) for i, is_exact in exact.items())
    assert checkpoint.read_pointer(stopped.folder, "last") == f"step={4 * PER_ITERATION}"


def test_without_a_point_to_resume_from_the_best_does_with_a_warning(tmp_path: Path) -> None:
    """A run killed before its first reset may have left its best weights, and nothing else."""
    judged = {"eval": {"every": PER_ITERATION, "episodes": 3}}
    stopped = run(config(WALK, **judged), tmp_path, Watcher(stop_after=1)).run
    assert checkpoint.steps(stopped.folder) == [0, PER_ITERATION]
    for file in (stopped.folder / "checkpoints" / "step=0").iterdir():
        file.write_bytes(b"")
    point, said = resume_point(stopped)
    assert point.manifest.step == PER_ITERATION
    assert "between two resets of the envs: this resume is not exact" in said[-1]


def test_a_finished_run_goes_on_from_its_end(tmp_path: Path) -> None:
    """Five iterations end between two resets; more budget continues there, with fresh episodes."""
    ended = run(config(WALK, train={"env_steps": 5 * PER_ITERATION}), tmp_path)
    point, said = resume_point(ended.run)
    assert (point.manifest.step, said) == (5 * PER_ITERATION, [])
    assert resume(config(WALK), ended.run).env_steps == 6 * PER_ITERATION


def test_more_budget_stopped_before_the_first_reset(tmp_path: Path) -> None:
    """It goes on from the end of the first budget again, not from the reset before that."""
    rare = {**WALK, "resume_every": 3 * PER_ITERATION}
    first, more = (config(rare, train={"env_steps": n * PER_ITERATION}) for n in (4, 8))
    whole = resume(more, run(first, tmp_path).run)
    stopped = resume(more, run(first, tmp_path).run, Watcher(stop_after=1))
    assert (stopped.interrupted, stopped.env_steps) == (True, 4 * PER_ITERATION)
    assert_same_end(whole.run, resume(more, stopped.run).run)


def test_a_reset_is_no_end_of_an_episode() -> None:
    """The last step before it bootstraps from its own observation; statistics and reward sums hear nothing of it."""
    trainer = build(config(WALK).config)
    trainer.start()
    rollout, endings = trainer.rollout, []
    last = rollout.n_steps

    collect = trainer.collector.collect
    checked: list[int] = []

    def checking(*arguments: Any, **options: Any) -> Ended:
        ended = collect(*arguments, **options)
        running = ~(rollout.terminated[last - 1] | rollout.truncated[last - 1])
        with torch.inference_mode():
            values = trainer.policy.values(rollout.obs_at(last)).numpy()
        assert np.allclose(rollout.next["value"][last - 1][running], values[running], atol=1e-6)
        checked.append(int(running.sum()))
        return ended

    trainer.collector.collect = checking  # type: ignore[method-assign]
    for i in range(1, 2 * EVERY + 1):
        done = trainer.learn_once(StageTimer())
        endings += [episode for _, episode in done.ended]
        before = rollout.obs_arrays[last].copy()
        trainer.go_on()
        assert trainer.algorithm.reward_scaler is not None
        sums = trainer.algorithm.reward_scaler.state()["sums"]
        if i % EVERY == 0:
            assert not (rollout.obs_arrays[0] == before).any()
            assert not sums.any()
        else:
            assert (rollout.obs_arrays[0] == before).all()
            assert sums.any()
    assert len(checked) == 2 * EVERY and all(checked)
    assert len(trainer.window.state()["returns"]) == min(len(endings), 5)
    assert all(episode.length <= EVERY * last for episode in endings)
    trainer.close()


def test_whole_episodes_need_no_resets(tmp_path: Path) -> None:
    """REINFORCE starts afresh each iteration: every boundary can be resumed from."""
    whole = run(config(WALK, "reinforce", env_steps=15 * PER_ITERATION), tmp_path)
    stopped = run(config(WALK, "reinforce", env_steps=15 * PER_ITERATION), tmp_path, Watcher(stop_after=1))
    assert stopped.env_steps > 0
    finished = resume(config(WALK, "reinforce", env_steps=15 * PER_ITERATION), stopped.run)
    assert_same_end(whole.run, finished.run)


@pytest.mark.parametrize(
    ("horizon", "n_steps", "iterations"), [(500, 32, 157), (1000, 128, 79), (7, 16, 7), (None, 128, 79)]
)
def test_how_often_by_default(horizon: int | None, n_steps: int, iterations: int) -> None:
    """Ten horizons, from 100 to 10,000 vector steps: fewer than one sample in a hundred is the last before a reset."""
    algo = {**small("ppo", WALK).config.algo.model_dump(mode="json"), "n_steps": n_steps}
    plan = make_plan(small("ppo", WALK, env_steps=10**8, algo=algo).config, horizon=horizon)
    assert plan.resume_every == iterations
    assert plan.resume_every * n_steps >= 100


@pytest.mark.parametrize(("every", "warned"), [(2, True), (3, False)])
def test_resets_that_come_before_an_episode_can_end(every: int, warned: bool, tmp_path: Path) -> None:
    """In 32 steps no episode of 40 comes to its end, in 48 one does."""
    resolved = config({**WALK, "time_limit": 40, "resume_every": every * PER_ITERATION})
    result = train(resolved, tmp_path, reporter=Reporter(quiet=True))
    assert result is not None
    said = "resets every 32 steps of an env cut episodes that may last 40" in result.run.log_path.read_text()
    assert said == warned


@pytest.mark.parametrize("env", KINDS)
def test_weights_on_disk_never_stand_without_a_point_to_go_on_from(env: dict[str, Any], tmp_path: Path) -> None:
    """A kill right after the first best weights, long before the first reset, still leaves an exact point."""
    judged = {"eval": {"every": PER_ITERATION, "episodes": 2, "start_fraction": None}}
    resolved = config(env, **judged)
    far = resolved.config.env.model_copy(update={"resume_every": 10**6})
    resolved = Resolved(resolved.config.model_copy(update={"env": far}))
    exact: list[list[bool]] = []

    class Looking(Watcher):
        def update(self, history: Any, now: float, marks: Any = None) -> None:
            super().update(history, now, marks)
            (folder,) = tmp_path.glob("[a-z]????")
            exact.append([repeats(one.state) for one in self.on_disk(folder)])

        def on_disk(self, folder: Path) -> list[checkpoint.Checkpoint]:
            """All there is; looked for again when the saver's thread removes one meanwhile."""
            steps = checkpoint.steps(folder)
            try:
                return [checkpoint.load(folder / "checkpoints" / f"step={step}") for step in steps]
            except CheckpointError:
                if checkpoint.steps(folder) == steps:
                    raise
                return self.on_disk(folder)

    run(resolved, tmp_path, Looking())
    seen = [point for point in exact[:-1] if point]
    assert any(False in point for point in seen), "no weights were saved between resets"
    assert all(True in point for point in seen)

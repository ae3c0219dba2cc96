"""2N iterations = N + stop + resume + N, to the last bit, whatever stops the run (RUN-8)."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path
from typing import Any

import pytest
import small_envs
import torch
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, end_of, resume, run, small

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
ENVS: dict[str, dict[str, Any]] = {
    "CartPole native": CARTPOLE,
    "CartPole in-process": {**CARTPOLE, "vectorization": "inprocess"},
    "FrozenLake": {"id": "FrozenLake-v1", "time_limit": 30},
    "MultiDiscrete by replay": {"id": "Walk-v0"},
    "Pendulum": {"id": "Pendulum-v1", "time_limit": 30},
}
NORMALISED = {"policy": {"hidden": [16], "normalize_obs": True}}
ON = {"normalize_reward": True}


def algo(name: str, **changes: Any) -> dict[str, Any]:
    """The small algorithm section with changes."""
    return {**small(name, CARTPOLE).config.algo.model_dump(mode="json"), **changes}


JUMP = {"schedule": "piecewise", "points": [[0, 1e-2], [0.5, 1e-3]], "reset_optimizer": True}
WRAPPERS = [
    {"id": "sticky_actions", "probability": 0.3},
    {"id": "frame_skip", "skip": [1, 2]},
    {"id": "no_reward_timeout", "steps": 12},
    {"id": "observation_noise", "std": 0.1},
    {"id": "action_stack", "size": 2},
    {"id": "frame_stack", "size": 2},
]
SHORT_AND_LONG = {"short": {"env": {"time_limit": 9}}, "long": {"env": {"time_limit": 30}}}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    f"{algorithm}, {env}": (algorithm, ENVS[env], {**NORMALISED, "algo": algo(algorithm, **ON)})
    for algorithm, env in itertools.product(("ppo", "a2c", "reinforce"), ENVS)
}
CASES |= {
    "shared trunk": ("ppo", CARTPOLE, {"policy": {"hidden": [16], "shared_trunk": True}}),
    "observation stack": ("ppo", {**CARTPOLE, "wrappers": [{"id": "observation_stack", "size": 3}]}, NORMALISED),
    "sticky, skipped and noisy": ("ppo", {"id": "Walk-v0", "wrappers": WRAPPERS}, NORMALISED),
    "sticky, skipped and noisy CartPole": ("a2c", {**CARTPOLE, "wrappers": WRAPPERS}, NORMALISED),
    "worker pool": ("ppo", {"id": "Walk-v0", "vectorization": "workers", "n_workers": 2}, NORMALISED),
    "Box by replay": ("a2c", {"id": "Walk-v0", "kwargs": {"actions": "box"}}, NORMALISED),
    "Dict observations": ("ppo", {"id": "DictIdentity-v0"}, NORMALISED),
    "Tuple observations": ("ppo", {"id": "Blackjack-v1"}, {}),
    "nested observations": ("ppo", {"id": "NestedIdentity-v0"}, NORMALISED),
    "switches by replay": ("ppo", {"id": "Walk-v0", "kwargs": {"actions": "switches"}}, NORMALISED),
    "parts by replay": ("a2c", {"id": "Walk-v0", "kwargs": {"actions": "parts"}}, NORMALISED),
    "parts in a worker pool": (
        "ppo",
        {"id": "Walk-v0", "kwargs": {"actions": "parts"}, "vectorization": "workers", "n_workers": 2},
        {"policy": {"hidden": [16], "state_dependent_std": True, "squash_actions": True}},
    ),
    "action masks": ("ppo", {"id": "Taxi-v4", "time_limit": 20}, {}),
    "layer norm": ("ppo", CARTPOLE, {"policy": {"hidden": [16], "layer_norm": True}}),
    "batch norm": ("ppo", CARTPOLE, {"policy": {"hidden": [16], "batch_norm": True, "normalize_obs": True}}),
    "dropout": ("ppo", CARTPOLE, {"policy": {"hidden": [16], "dropout": 0.3}}),
    "jumping schedule": (
        "ppo",
        CARTPOLE,
        # The jump falls on the first resumed iteration, which must know that the one before it had another rate.
        {"algo": algo("ppo", learning_rate=JUMP)},
    ),
    "target KL": ("ppo", CARTPOLE, {"algo": algo("ppo", target_kl=1e-3, n_epochs=5)}),
    "measured n_steps": ("ppo", ENVS["Pendulum"], {"algo": algo("ppo", n_steps="auto", batch_size=0.5)}),
    "tasks by slot": ("ppo", CARTPOLE, {**NORMALISED, "plan": {"by": "slot", "tasks": SHORT_AND_LONG}}),
    "tasks by episode": ("a2c", CARTPOLE, {**NORMALISED, "plan": {"by": "episode", "tasks": SHORT_AND_LONG}}),
    "tasks by episode, by replay": ("ppo", {"id": "Walk-v0"}, {"plan": {"by": "episode", "tasks": SHORT_AND_LONG}}),
    "sampled evaluation": ("ppo", ENVS["Pendulum"], {"eval": {"every": 1, "episodes": 2, "deterministic": False}}),
}


@pytest.mark.parametrize("case", CASES)
def test_stop_and_resume_equals_the_whole_run(case: str, tmp_path: Path) -> None:
    """Weights, moments, schedules, statistics, generators, counters, window, rows and all actions."""
    algorithm, env, changes = CASES[case]
    # Whole episodes are longer than 16 steps: fewer and larger iterations.
    stop_after, env_steps = (2, 15 * PER_ITERATION) if algorithm == "reinforce" else (3, 6 * PER_ITERATION)
    resolved = small(algorithm, env, env_steps=env_steps, **changes)
    straight, before, after = Watcher(), Watcher(stop_after=stop_after), Watcher()
    whole = run(resolved, tmp_path, straight)
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    assert stopped.run.status().state == "interrupted"
    assert stopped.run.status().stop_reason == "interrupted (SIGINT)"
    assert stopped.env_steps < whole.env_steps
    finished = resume(resolved, stopped.run, after)
    assert len(before.actions) == stop_after
    assert len(after.actions) >= 2
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)
    assert finished.run.status().state == "finished"
    assert finished.run.status().attempt == 2
    assert whole.evaluation is not None
    assert finished.evaluation is not None
    assert whole.evaluation.returns == finished.evaluation.returns


def test_the_comparison_sees_what_it_must(tmp_path: Path) -> None:
    """Each part of a checkpoint that a resume could forget makes the ends differ."""
    resolved = small("ppo", ENVS["Pendulum"], **NORMALISED, algo=algo("ppo", **ON))
    end = end_of(run(resolved, tmp_path).run)
    leaves = [
        ("policy", "encoder.norm.mean"),
        ("state", "session", "optimizer", "mean"),
        ("state", "session", "generators", "actions"),
        ("state", "session", "algorithm", "reward_scaler"),
        ("state", "session", "window", "returns"),
        ("state", "session", "envs"),
        ("state", "session", "rollout", "obs"),
        ("state", "loop", "cadence"),
        ("rows", -1, "train/learning_rate"),
        ("counters", "evaluations"),
    ]
    for leaf in leaves:
        node: Any = end
        for key in leaf:
            node = node[key]
        assert node is not None, leaf
    touched = {**end, "policy": {**end["policy"]}}
    touched["policy"]["encoder.norm.mean"] = torch.nextafter(
        end["policy"]["encoder.norm.mean"], torch.tensor(9.0, dtype=torch.float64)
    )
    assert differences(end, touched)
    rates = [row["train/learning_rate"] for row in end["rows"]]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == len(rates)


@pytest.mark.parametrize("step", [1, PER_ITERATION, 5 * PER_ITERATION, 5 * PER_ITERATION + 7, 6 * PER_ITERATION])
def test_a_signal_at_any_step_loses_nothing(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the first iteration and in the last, whose evaluation is then due on resume."""
    resolved = small("ppo", {"id": "Walk-v0"}, eval={"every": 10**9, "episodes": 3})
    whole = run(resolved, tmp_path)
    plain, count = small_envs.Walk.step, itertools.count(1)

    def interrupting(self: small_envs.Walk, action: Any) -> Any:
        if next(count) == step:
            signal.raise_signal(signal.SIGINT)
        return plain(self, action)

    monkeypatch.setattr(small_envs.Walk, "step", interrupting)
    stopped = run(resolved, tmp_path)
    assert next(count) > step
    finished = resume(resolved, stopped.run) if stopped.run.status().state == "interrupted" else stopped
    assert finished.evaluation is not None
    assert finished.run.status().state == "finished"
    assert_same_end(whole.run, finished.run)


def test_a_signal_after_the_last_iteration_finishes_the_run(tmp_path: Path) -> None:
    """Everything is trained, judged and saved: there is nothing left to interrupt."""
    ended = run(small("ppo", CARTPOLE), tmp_path, Watcher(stop_after=6))
    assert ended.run.status().state == "finished"
    assert ended.stop_reason == "budget spent"
    assert ended.evaluation is not None


def test_a_run_stopped_many_times_equals_the_whole_run(tmp_path: Path) -> None:
    """Three attempts; the rows of all of them are one course without gaps or repeats."""
    resolved = small("a2c", {"id": "Walk-v0"}, **NORMALISED)
    whole = run(resolved, tmp_path)
    stopped = run(resolved, tmp_path, Watcher(stop_after=2))
    again = resume(resolved, stopped.run, Watcher(stop_after=1, number=signal.SIGTERM))
    assert again.stop_reason == "interrupted (SIGTERM)"
    finished = resume(resolved, again.run)
    assert_same_end(whole.run, finished.run)
    rows = list(MetricRows(finished.run.metrics_path))
    assert [row["env_steps"] for row in rows] == [PER_ITERATION * i for i in range(1, 7)]
    assert [row["attempt"] for row in rows] == [1, 1, 2, 3, 3, 3]


def test_a_stop_rule_keeps_what_is_needed_to_go_on(tmp_path: Path) -> None:
    """A run that a rule ended goes on without the rule as if it had never been there, but for the extra evaluation."""
    rule = {"env_steps": 6 * PER_ITERATION, "stop": [{"metric": "iteration", "at_least": 3}]}
    never = {"every": 10**9, "episodes": 3}
    whole = run(small("ppo", CARTPOLE, eval=never), tmp_path)
    stopped = run(small("ppo", CARTPOLE, train=rule, eval=never), tmp_path)
    assert stopped.stop_reason == "stop rule met (iteration ≥ 3)"
    assert stopped.env_steps == 3 * PER_ITERATION
    finished = resume(small("ppo", CARTPOLE, eval=never), stopped.run)
    first, second = end_of(whole.run), end_of(finished.run)
    assert not differences(first["policy"], second["policy"])
    assert not differences(first["state"]["session"], second["state"]["session"])


def test_schedules_span_the_whole_budget_on_both_sides_of_a_stop(tmp_path: Path) -> None:
    """The rate of iteration k is that of k/T, before and after the resume."""
    resolved = small("ppo", CARTPOLE)
    stopped = run(resolved, tmp_path, Watcher(stop_after=2))
    finished = resume(resolved, stopped.run)
    rates = [row["train/learning_rate"] for row in MetricRows(finished.run.metrics_path)]
    assert rates == pytest.approx([1e-2 * (1 - k / 6) for k in range(6)])


def test_optimizer_can_be_left_behind(tmp_path: Path) -> None:
    """Without its moments the same data gives other weights; everything else is as before."""
    from gymnast.training.train import Resume, resume_point, train

    resolved = small("ppo", CARTPOLE)
    whole = run(resolved, tmp_path)
    stopped = run(resolved, tmp_path, Watcher(stop_after=3))
    point, _ = resume_point(stopped.run)
    after = Watcher()
    train(resolved, tmp_path, reporter=after, resume=Resume(stopped.run, point, optimizer=False))
    first, second = end_of(whole.run), end_of(stopped.run)
    assert differences(first["policy"], second["policy"])
    steps = [end["state"]["session"]["optimizer"]["step"] for end in (first, second)]
    assert float(steps[1]) == float(steps[0]) / 2


def test_an_env_that_is_not_deterministic_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A replay that leads elsewhere is not exact, and that is logged."""
    resolved = small("ppo", {"id": "Walk-v0"})
    stopped = run(resolved, tmp_path, Watcher(stop_after=3))
    step = small_envs.Walk.step

    def other(self: Any, action: Any) -> Any:
        obs, *rest = step(self, action)
        return (obs + 1e-9, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_envs.Walk, "step", other)
        resume(resolved, stopped.run)
    assert "not exact" in caplog.text


def test_checkpoints_on_the_way_are_iteration_boundaries(tmp_path: Path) -> None:
    """Every kept checkpoint, not only the last, continues to the same end."""
    often = {"checkpoint_every": PER_ITERATION, "keep_checkpoints": 10, "env_steps": 6 * PER_ITERATION}
    resolved = small("ppo", ENVS["Pendulum"], **NORMALISED, train=often)
    whole = run(resolved, tmp_path)
    expected = end_of(whole.run)
    names = [f"step={step}" for step in checkpoint.steps(whole.run.folder)]
    assert names == [f"step={PER_ITERATION * i}" for i in range(1, 7)]
    from gymnast.training.train import Resume, train

    for name in names[1:5:2]:
        saved = checkpoint.load(whole.run.folder / "checkpoints" / name)
        train(resolved, tmp_path, reporter=Watcher(), resume=Resume(whole.run, saved))
        assert not differences(expected, end_of(whole.run))


def test_a_resume_elsewhere_says_that_bits_may_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another torch or another kind of CPU rounds differently: the log says so, and the run goes on."""
    resolved = small("ppo", CARTPOLE)
    here = checkpoint.versions()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(checkpoint, "versions", lambda: {**here, "torch": "9.9.9", "cpu": "Abacus 3000"})
        stopped = run(resolved, tmp_path, Watcher(stop_after=2))
    watcher = Watcher()
    finished = resume(resolved, stopped.run, watcher)
    (said,) = watcher.warnings
    assert f"torch 9.9.9, not {here['torch']}" in said
    assert "Abacus 3000" in said
    assert finished.run.status().state == "finished"

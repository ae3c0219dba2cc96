"""Alerts: each is raised by a real run that deserves it, and none by runs that are as they should be."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from recorded_runs import CARTPOLE, FAULTS, GO_ON, Recorded, recorded

from gymnast.api import train
from gymnast.config.load import resolve
from gymnast.errors import ConfigError, MissingPackageError, UsageError
from gymnast.metrics.alerts import machine
from gymnast.metrics.alerts.registry import SHIPPED, all_rules
from gymnast.metrics.alerts.watch import Watch, replay
from gymnast.metrics.catalogue import load_catalogue
from gymnast.service.configs import list_configs
from gymnast.service.health import alerts_of, diagnosis_of

BY_ID = {rule.id: rule for rule in SHIPPED}
Row = dict[str, Any]


def raised(watch: Watch, *, least: str = "info") -> dict[str, str]:
    """The alerts of at least that severity, by id."""
    order = ["info", "warning", "error"]
    return {alert.id: alert.message for alert in watch.alerts if order.index(alert.severity) >= order.index(least)}


# --- real runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_run_raises_its_alerts(fault: str) -> None:
    reference, overrides, env_steps, expected = FAULTS[fault]
    watch = recorded(reference, *overrides, env_steps=env_steps).watch()
    assert set(expected) <= raised(watch).keys()
    for alert in watch.alerts:
        assert alert.first_step <= alert.last_step and 1 <= alert.count <= watch.now.rows
        assert alert.numbers and all(map(math.isfinite, alert.numbers.values()))
        assert alert.advice and "nan" not in " ".join([alert.message, *alert.advice])


@pytest.mark.parametrize(
    "reference",
    ["CartPole-v1:ppo", "CartPole-v1:a2c", "CartPole-v1:reinforce", "gymnast/Bandit-v0:ppo", "FrozenLake-v1:ppo"],
)
@pytest.mark.learning
def test_a_healthy_run_raises_no_warning(reference: str) -> None:
    """All presets and more seeds: benchmarks/faults.py."""
    assert raised(recorded(reference, seed=1).watch(), least="warning") == {}


QUICK = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "FrozenLake-v1", "gymnast/Bandit-v0")
BRIEF = ("eval.episodes=1", "log.video=false", "log.rollouts=false", "log.report=false")
"""Nothing after the only iteration that takes time."""
PRESETS = [entry.config for entry in list_configs() if "*" not in entry.config]  # those of all Atari games name no env


def is_quick(preset: str) -> bool:
    return preset.partition(":")[0] in QUICK and "pixels" not in preset


@pytest.mark.parametrize(
    "reference", [pytest.param(one, marks=() if is_quick(one) else pytest.mark.full) for one in PRESETS]
)
def test_no_preset_begins_with_a_habit(reference: str) -> None:
    """Mean, spread and entropy of the first actions are about those of uniform play, and observations are of a fair size."""
    try:
        run = recorded(reference, "log.diagnostics_every=1", *BRIEF, env_steps=1)
    except MissingPackageError as error:
        pytest.skip(str(error))
    assert run.rows[0]["env_steps"] > 0
    assert raised(run.watch()).keys().isdisjoint(STARTS | {"observations_large"})


def test_every_alert_is_provoked_by_a_test() -> None:
    real = {alert for *_, expected in FAULTS.values() for alert in expected}
    assert set(BY_ID) == real | FAULTY_ENVS.keys() | {"identical_envs", "entropy_bound"}


def test_more_entropy_than_the_actions_allow_is_told() -> None:
    """The env's own space says how many there are; the labels of a wrong spec, where the status does not have the number."""
    run = recorded(CARTPOLE, "spec.actions=[push]", env_steps=3_000)
    assert run.status.choices == (2,) and "entropy_bound" not in raised(run.watch())
    assert "entropy_bound" in raised(replay(run.config, run.rows))


class Loop(gym.Env):
    """One action, and the same course of events in every copy and under every seed."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observed(), {}

    def observed(self) -> np.ndarray:
        return np.array([math.sin(self.steps), math.cos(self.steps)], np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observed(), 1.0, self.steps == 1000, False, {}


def test_copies_of_one_course_of_events_are_told() -> None:
    gym.register("Loop-v0", Loop)
    run = recorded("Loop-v0:ppo", "env.n_envs=8", "algo.n_steps=32", "spec.solved_at=1e9", env_steps=8 * 32 * 4)
    assert "identical_envs" in raised(run.watch())
    assert run.watch().alerts[0].rewind("abcde").startswith("gymnast rewind abcde --to ")


class Faulty(gym.Env):
    """An env of random observations of any size that says impossible things, becomes slower, or keeps all it ever made."""

    observation_space = gym.spaces.Box(-1000, 1000, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    hoard: ClassVar[list[np.ndarray]] = []
    steps: ClassVar[int] = 0

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 20
        return self.observed(), self.masks()

    def observed(self) -> np.ndarray:
        low, high = {"large": (900, 1000), "tiny": (-1e-3, 1e-3)}.get(self.fault, (-1, 1))
        return self.np_random.uniform(low, high, 2).astype(np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        Faulty.steps += 1
        self.left -= 1
        if self.fault == "slow" and Faulty.steps > 440:
            time.sleep(0.008)
        if self.fault == "leak" and Faulty.steps % 20 == 0:
            self.hoard.append(np.ones(8_000_000))
        info = {"regret": -3.0} if self.fault == "regret" and self.left == 0 else self.masks()
        return self.observed(), 1.0, self.left == 0, False, info

    def masks(self) -> dict[str, Any]:
        return {"action_mask": np.array([True, False])} if self.fault == "masked" else {}


RAW_OBS = "policy.normalize_obs=false"
CERTAIN = (RAW_OBS, "algo.n_steps=64", "policy.init=torch", "policy.activation=relu", "log.diagnostics_every=1")
"""A network that huge observations make certain before it has learnt anything."""
FAULTY_ENVS = {
    "hard_bound": ("regret", "algo.n_steps=4"),
    "fps_decay": ("slow", "algo.n_steps=4"),
    "memory_growth": ("leak", "algo.n_steps=4", "alerts.rules.memory_growth.threshold=1.1"),  # pytest is large by then
    "observations_large": ("large", "algo.n_steps=64", RAW_OBS),
    "observations_tiny": ("tiny", "algo.n_steps=16", RAW_OBS, "log.diagnostics_every=64"),
    "dead_relus": ("large", *CERTAIN, "algo.learning_rate=1.0"),
    "constant_action": ("large", *CERTAIN),
    "start_not_uniform": ("large", *CERTAIN),
    "start_off_centre": ("large", *CERTAIN),
}
"""Alert → what is wrong with the env, and settings."""


def faulty(fault: str, *settings: str) -> Recorded:
    """A run on the env, in this process: a busy machine makes it slow enough for workers, where nobody sees its memory."""
    kind = f"env.kwargs={{fault: {fault}}}"
    return recorded("Misbehaving-v0:ppo", kind, "env.n_envs=4", "env.vectorization=inprocess", *settings, env_steps=640)


@pytest.mark.parametrize("alert", FAULTY_ENVS)
def test_a_faulty_env_raises_its_alert(alert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed and memory are judged after half a minute; here after a tenth of a second."""
    monkeypatch.setattr(machine, "_SETTLED", 0.1)
    gym.register("Misbehaving-v0", Faulty)
    Faulty.steps = 0
    fault, *settings = FAULTY_ENVS[alert]
    try:
        assert alert in raised(faulty(fault, *settings).watch())
    finally:
        Faulty.hoard.clear()
        del gym.registry["Misbehaving-v0"]


STARTS = {"start_not_uniform", "start_off_centre"}


def test_a_start_that_masks_decide_is_no_habit() -> None:
    """One action is possible: nobody would try the other. What masks rule out is in the row; without it nobody knows."""
    gym.register("Misbehaving-v0", Faulty)
    try:
        masked, free = faulty("masked", "algo.n_steps=64"), faulty("large", *CERTAIN)
    finally:
        del gym.registry["Misbehaving-v0"]
    first = masked.rows[0]
    assert (first["rollout/action_entropy"], first["rollout/action_masked"]) == (0.0, 0.5)
    assert raised(masked.watch()).keys().isdisjoint(STARTS)
    assert raised(free.watch()).keys() >= STARTS
    unknown = [row | {"rollout/action_masked": None} for row in free.rows]
    assert raised(replay(free.config, unknown, actions=free.status.choices)).keys().isdisjoint(STARTS)


def test_whoever_asks_sees_the_alerts_of_an_env_without_labels(tmp_path: Path) -> None:
    """The studio's list and its diagnosis know the number of actions, too: it is in the status."""
    gym.register("Misbehaving-v0", Faulty)
    try:
        settings = ("env.kwargs={fault: large}", "env.n_envs=4", *CERTAIN, *BRIEF)
        run = train("Misbehaving-v0:ppo", *settings, env_steps=640, runs_dir=tmp_path).run
    finally:
        del gym.registry["Misbehaving-v0"]
    for alerts in (alerts_of(run), diagnosis_of(run).alerts):
        assert {alert.id for alert in alerts} >= STARTS | {"constant_action"}


# --- the evaluator against rows ---------------------------------------------------------------------------------------


def cartpole() -> tuple[dict[str, Any], list[Row]]:
    run = recorded(CARTPOLE, GO_ON, env_steps=12_000)
    return run.config, run.rows


def with_dead_relus() -> tuple[dict[str, Any], list[Row]]:
    """Rows of a healthy run with one value changed in every row, so that counts are known."""
    config, rows = cartpole()
    return json.loads(json.dumps(config)), [row | {"train/dead_relus": 0.9} for row in rows]


def test_infinities_of_a_row_that_is_not_yet_in_a_file_are_seen() -> None:
    config, rows = cartpole()
    watch = Watch(config)
    held = watch.observe(rows[0] | {"nonfinite": None, "train/loss": math.inf, "train/entropy": math.nan})
    assert [alert.id for alert in held] == ["not_finite"]
    assert set(held[0].metrics) == {"train/loss", "train/entropy"} and held[0].severity == "error"


# --- the evaluator ----------------------------------------------------------------------------------------------------


def test_rules_say_what_they_are() -> None:
    catalogue = {metric.name for metric in load_catalogue()}
    assert [rule.id for rule in all_rules()] == sorted(BY_ID) and len(BY_ID) == len(SHIPPED)
    for rule in SHIPPED:
        assert re.fullmatch("[a-z_]+", rule.id) and rule.means.endswith(".") and rule.says.endswith(".")
        assert set(rule.metrics) <= catalogue


def test_alerts_are_sorted_and_keep_count_and_steps() -> None:
    config, rows = with_dead_relus()
    for row in rows[::2]:
        row["train/dead_relus"] = 0.1
    watch = replay(config, rows)
    alert = next(alert for alert in watch.alerts if alert.id == "dead_relus")
    assert [one.id for one in watch.alerts] == sorted(one.id for one in watch.alerts)
    assert (alert.count, alert.first_step) == (len(rows[1::2]), rows[1]["env_steps"])
    assert alert.last_step == rows[1::2][-1]["env_steps"] and alert.metrics == ("train/dead_relus",)
    assert json.loads(json.dumps(alert.as_json("abcde")))["rewind"] == f"gymnast rewind abcde --to {alert.first_step}"


def test_a_replay_is_what_training_saw() -> None:
    """One row at a time, or all at once, or in two attempts: the same alerts to the number."""
    run = recorded(*FAULTS["rate too high"][:1], *FAULTS["rate too high"][1], env_steps=20_000)
    watch, seen = Watch(run.config), set()
    for row in run.rows:
        seen |= {alert.id for alert in watch.observe(row)}
    assert seen == raised(run.watch()).keys()
    again = [dataclasses.asdict(alert) for alert in run.watch().alerts]
    assert [dataclasses.asdict(alert) for alert in watch.alerts] == again


@pytest.mark.parametrize("missing", ["train/approx_kl", "train/entropy", "rollout/return_std", "progress"])
def test_rules_over_metrics_that_are_not_logged_stay_silent(missing: str) -> None:
    run = recorded(*FAULTS["rate too high"][:1], *FAULTS["rate too high"][1], env_steps=20_000)
    rows = [{name: value for name, value in row.items() if name != missing} for row in run.rows]
    assert not any(missing in alert.metrics for alert in replay(run.config, rows).alerts)


def test_a_config_of_another_version_still_has_alerts() -> None:
    _, rows = cartpole()
    assert raised(replay({}, rows), least="warning") == {}
    assert "not_finite" in raised(replay({}, [{"env_steps": 1, "nonfinite": ["train/loss"]}]))


def test_thresholds_are_the_configs() -> None:
    config, rows = with_dead_relus()
    config["alerts"] = {"rules": {"dead_relus": {"threshold": 0.95, "off": False}}}
    assert "dead_relus" not in raised(replay(config, rows))
    config["alerts"]["rules"]["dead_relus"]["threshold"] = None
    assert "dead_relus" in raised(replay(config, rows))
    config["alerts"]["rules"]["dead_relus"]["off"] = True
    assert "dead_relus" not in raised(replay(config, rows))
    config["alerts"]["rules"] = {"dead_relu": {"off": True}}
    with pytest.raises(UsageError, match="there is no alert 'dead_relu'.*dead_relus"):
        Watch(config)


def test_thresholds_are_set_on_the_command_line() -> None:
    _, rows = with_dead_relus()
    changes = ["alerts.rules.dead_relus.threshold=0.95", "alerts.rules.few_updates.off=true"]
    config = resolve(CARTPOLE, changes).config
    assert config.alerts.rules["few_updates"].off and not config.alerts.strict
    assert raised(replay(config.model_dump(mode="json"), rows)).keys().isdisjoint({"dead_relus", "few_updates"})
    with pytest.raises(ConfigError, match=r"alerts\.rules\.dead_relus\.limit"):
        resolve(CARTPOLE, ["alerts.rules.dead_relus.limit=1"])


def test_strict_ends_a_run_at_its_first_warning() -> None:
    reference, overrides, env_steps, _ = FAULTS["rate too high"]
    run = recorded(reference, *overrides, "alerts.strict=true", env_steps=env_steps)
    first = run.watch().alerts[0]
    assert len(run.rows) < 20 and run.rows[-1]["env_steps"] == first.first_step == first.last_step
    assert run.status.stop_reason == f"alert {first.id}: {first.message.rstrip('.')}"


def test_diagnose_knows_the_actions_of_an_env_without_labels() -> None:
    """While it trains a run sees the action space; afterwards its status tells."""
    gym.register("Unlabelled-v0", lambda: Faulty("none"))
    run = recorded("Unlabelled-v0:ppo", "env.n_envs=4", "algo.n_steps=16", env_steps=640)
    del gym.registry["Unlabelled-v0"]
    assert run.config["spec"]["actions"] == [] and run.status.choices == (2,)
    impossible = [row | {"train/entropy": 2.0} for row in run.rows]
    assert "entropy_bound" in raised(replay(run.config, impossible, actions=run.status.choices))
    assert "entropy_bound" not in raised(replay(run.config, run.rows, actions=run.status.choices))


def test_all_rules_cost_little_per_row() -> None:
    """Training evaluates them in every iteration: 0.3 ms at most, on a quiet machine a third of that."""
    config, rows = cartpole()
    best = math.inf
    for _ in range(15):
        watch = Watch(config, rules=SHIPPED)
        begin = time.process_time()
        for row in rows:
            watch.observe(row)
        best = min(best, (time.process_time() - begin) / len(rows))
    assert best < 0.3e-3


PLUGIN = """
from gymnast.metrics.alerts.alert import rule

told = {"says": "{n:.0f} iterations.", "means": "It is long.", "advise": lambda now, n: ("stop",)}

@rule("long_run", "info", "iteration", threshold=3, **told)
def long_run(now, threshold):
    n = now["iteration"].last
    return {"n": n} if n > threshold else None

kl_high = long_run
nonsense = "no rule"
"""


def test_packages_bring_alerts(install: Any) -> None:
    install("long_runs", PLUGIN, alerts="long_run = long_runs:long_run")
    config, rows = cartpole()
    alert = next(alert for alert in replay(config, rows).alerts if alert.id == "long_run")
    assert alert.count == len(rows) - 3 and alert.message == f"{len(rows)} iterations."


def test_an_entry_point_that_is_no_rule_is_named(install: Any) -> None:
    install("long_runs", PLUGIN, alerts="nonsense = long_runs:nonsense")
    with pytest.raises(UsageError, match="plug-in 'nonsense' .* is neither a gymnast Rule nor a list of them"):
        all_rules()

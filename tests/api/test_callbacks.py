"""Callbacks hear of a run, may end it, and cannot harm it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymnast
from gymnast.metrics.sinks.jsonl import MetricRows


class Everything(gymnast.Callback):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_start(self, run: Any) -> None:
        self.events.append(("start", run.id))

    def on_iteration(self, row: Any) -> None:
        self.events.append(("iteration", dict(row)))

    def on_evaluation(self, result: Any) -> None:
        self.events.append(("evaluation", (result.env_steps, result.mean)))

    def on_checkpoint(self, folder: Path) -> None:
        self.events.append(("checkpoint", (folder, (folder / "manifest.json").is_file())))

    def on_end(self, result: Any) -> None:
        self.events.append(("end", result))

    def of(self, kind: str) -> list[Any]:
        return [value for name, value in self.events if name == kind]


@pytest.mark.parametrize("mode", ["inprocess", "worker"])
def test_what_a_callback_hears_is_what_is_on_disk(folder: Path, tiny: dict[str, Any], mode: str) -> None:
    heard = Everything()
    result = gymnast.train(
        "CartPole-v1",
        env_steps=256,
        callbacks=heard,
        eval__every=128,
        train__checkpoint_every=128,
        eval__mode=mode,
        eval__start_fraction=None,
        train__stop_when_solved=False,
        **tiny,
    )
    rows = list(MetricRows(result.run.metrics_path))
    assert (
        [row["env_steps"] for row in heard.of("iteration")] == [row["env_steps"] for row in rows] == [64, 128, 192, 256]
    )
    assert [row["train/loss"] for row in heard.of("iteration")] == [row["train/loss"] for row in rows]
    judged = [(row["env_steps"], row["eval/return_mean"]) for row in rows if row.get("eval/return_mean") is not None]
    assert heard.of("evaluation") == judged
    assert len(judged) == 2
    assert {(path.name, whole) for path, whole in heard.of("checkpoint")} >= {("step=128", True), ("step=256", True)}
    assert heard.of("start") == [result.run.id]
    assert heard.of("end") == [result]
    assert [heard.events[0][0], heard.events[-1][0]] == ["start", "end"]


@pytest.mark.parametrize("event", ["on_iteration", "on_evaluation", "on_checkpoint"])
def test_false_ends_the_run_evaluated_and_saved(folder: Path, tiny: dict[str, Any], event: str) -> None:
    class Stop:
        def __getattr__(self, name: str) -> Any:
            if name == event:
                return lambda _: False
            raise AttributeError(name)

    result = gymnast.train(
        "CartPole-v1",
        env_steps=6400,
        callbacks=[Stop()],
        eval__every=64,
        eval__start_fraction=None,
        train__checkpoint_every=64,
        train__stop_when_solved=False,
        **tiny,
    )
    assert result.stop_reason == "stopped by Stop"
    assert result.env_steps <= 192
    assert result.evaluation is not None
    assert result.run.status().state == "finished"
    whole = gymnast.train("CartPole-v1", env_steps=6400, callbacks=lambda row: row["env_steps"] < 320, **tiny)
    assert whole.env_steps == 320
    assert gymnast.resume(whole.run, env_steps=6464, callbacks=lambda row: row["env_steps"] < 384).env_steps == 384


def test_a_mistake_in_a_callback_is_told_with_its_place_and_loses_nothing(
    folder: Path, tiny: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    heard = Everything()

    def wrong(row: Any) -> None:
        raise KeyError("no such metric")

    result = gymnast.train("CartPole-v1", env_steps=256, callbacks=[wrong, heard], **tiny)
    assert result.env_steps == 256
    assert len(heard.of("iteration")) == 4
    said = capsys.readouterr().err
    assert said.count("The callback wrong failed in on_iteration") == 1
    assert "test_callbacks.py line" in said
    assert "no such metric" in said
    assert "The callback wrong failed in on_iteration" in result.run.log_path.read_text()


def test_the_end_is_told_when_the_run_fails(folder: Path, tiny: dict[str, Any]) -> None:
    import gymnasium as gym
    from gymnasium.envs.classic_control import CartPoleEnv

    class Breaks(CartPoleEnv):
        steps = 0

        def step(self, action: Any) -> Any:
            Breaks.steps += 1
            if Breaks.steps > 100:
                raise RuntimeError("broken")
            return super().step(action)

    heard = Everything()
    with pytest.raises(gymnast.errors.EnvError, match="broken"):
        gymnast.train(lambda: gym.wrappers.TimeLimit(Breaks(), 9), env_steps=640, callbacks=heard, **tiny)
    assert heard.of("end") == [None]

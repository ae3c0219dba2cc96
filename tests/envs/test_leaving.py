"""`sys.exit` in an env, and modules that cannot be imported, are faults with a sentence: no command ends without a word."""

from __future__ import annotations

import logging
from pathlib import Path

import leaving_env
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs import first_look
from gymnast.envs.checking.check import check_env
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.registry import env_spec
from gymnast.errors import EnvError, GymnastError, UsageError
from gymnast.evaluation.stage import Stage

FINDINGS = {"init": "make-crash", "reset": "reset-crash", "step": "step-crash", "render": "render-crash"}


def leaving(where: str, **settings: object) -> EnvConfig:
    """The env that leaves there."""
    return EnvConfig.model_validate({"id": "Leaving-v0", "kwargs": {"where": where}, "n_envs": 2, **settings})


def test_it_is_sound_but_for_that() -> None:
    assert check_env(leaving("")).ok


@pytest.mark.parametrize("where", leaving_env.PLACES)
def test_check_names_the_method_that_leaves(where: str) -> None:
    """With the line of `sys.exit`."""
    report = check_env(leaving(where))
    (finding,) = report.findings
    assert finding.id == FINDINGS.get(where, "close-crash")
    assert "SystemExit: I leave" in finding.what
    assert finding.place is not None and finding.place.file == leaving_env.__file__


@pytest.mark.parametrize("where", ["init", "reset", "step"])
def test_playing_it_is_an_error_with_a_sentence(where: str) -> None:
    with pytest.raises(GymnastError, match="SystemExit: I leave"):
        _play(leaving(where, vectorization="inprocess"))


def _play(config: EnvConfig) -> None:
    envs = make_envs(config, 2)
    row = envs.new_row()
    envs.reset([1, 2], row)
    envs.step(envs.action_space.sample().repeat(2), row)


def test_drawing_it_is_an_error_with_a_sentence() -> None:
    stage = Stage(leaving("render"), drawn=True)
    stage.reset(1)
    with pytest.raises(EnvError, match="cannot render: it raised SystemExit: I leave"):
        stage.draw()


@pytest.mark.parametrize("where", ["reset", "step", "close"])
def test_measuring_what_a_step_costs_does_not_end_the_command(where: str) -> None:
    kind, _ = choose_vectorization(leaving(where))
    assert kind in ("inprocess", "workers")


def test_a_close_that_raises_is_a_warning_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost by it."""
    monkeypatch.setattr(first_look, "_said", set())
    with caplog.at_level(logging.WARNING, "gymnast"):
        make_envs(leaving("close", vectorization="inprocess"), 2).close()
        generic_defaults("Leaving-v0", "ppo", {"kwargs": {"where": "close"}})
    assert caplog.messages == ["warning: Leaving-v0 could not be closed: it raised SystemExit: I leave."]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no licence')", "it raised RuntimeError: no licence. The fault is in the module"),
        ("import sys; sys.exit(5)", "it raised SystemExit: 5. The fault is in the module"),
        ("def (:", r"it raised SyntaxError: invalid syntax \(wrong_module.py, line 1\)"),
        ("import nothing_of_this_name", "cannot be imported: No module named 'nothing_of_this_name'"),
    ],
)
@pytest.mark.parametrize("named", ["env.module", "id"])
def test_a_module_that_cannot_be_imported(
    source: str, said: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong_module.py").write_text(source, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        if named == "id":
            env_spec("wrong_module:Env-v0")
        else:
            make_one(EnvConfig.model_validate({"id": "Env-v0", "module": "wrong_module"}))

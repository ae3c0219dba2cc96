"""The steps of foreign_envs.py tell envs that come back from those that do not; its page says what was found."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import foreign_steps
import numpy as np
import pytest
from foreign_envs import FILE, is_done, key
from foreign_packages import ForeignEnv, Package, definition, packages
from foreign_page import PAGE, page
from foreign_steps import ITERATION, Trial, decoded, probe

from gymnast.evaluation.video import encode

TESTS = Path(__file__).resolve().parents[1]


class Here(Package):
    """A module that lies here, played by the interpreter that runs the tests."""

    @property
    def python(self) -> Path:
        """No environment of its own."""
        return Path(sys.executable)


@pytest.fixture
def trial(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """A short one of an env of the tests."""
    module, env_id = request.param.split(":")
    monkeypatch.setenv("PYTHONPATH", str(TESTS / ("envs" if module == "broken_envs" else "")))
    monkeypatch.setattr(foreign_steps, "MOST", 40 * ITERATION)
    env = ForeignEnv(env_id, {}, ())
    package = Here("tests", module, (), (), (), (env,))
    made = Trial(package, env, probe(package, env))
    yield made
    made.close()


@pytest.mark.full  # eight commands; the probe below is the short one
@pytest.mark.parametrize("trial", ["small_envs:Screen-v0"], indirect=True)
def test_a_sound_env_passes(trial: Trial) -> None:
    assert trial.probed["plays"] and trial.probed["draws"]
    outcomes = {name: step()["outcome"] for name, step in trial.steps().items()}
    assert outcomes.pop("check") in ("ok", "faults")
    assert outcomes == {"train": "ok", "kill": "exact", "terminate": "exact", "eval": "ok", "video": "ok"}


@pytest.mark.full
@pytest.mark.parametrize("trial", ["broken_envs:GlobalNumpy-v0"], indirect=True)
def test_an_env_that_plays_otherwise_every_time_is_not_called_exact(trial: Trial) -> None:
    assert trial.check()["faults"] == ["unseeded-random"]
    assert trial.train()["outcome"] == "ok"
    stopped = trial.stopped(foreign_steps.signal.SIGKILL)
    assert stopped["outcome"] in ("told", "unrepeatable")
    assert "weights" in stopped["different"] and not stopped["repeats"]


@pytest.mark.parametrize("trial", ["broken_envs:ActionCrash-v0"], indirect=True)
def test_an_env_that_cannot_be_played_is_known_by_the_probe(trial: Trial) -> None:
    assert not trial.probed["plays"] and trial.probed["error"]
    assert trial.check()["faults"]
    assert trial.train()["outcome"] == "refused"


def test_films_are_looked_at(tmp_path: Path) -> None:
    black = np.zeros((64, 64, 3), np.uint8)
    encode(tmp_path / "black.mp4", [black] * 5, 30)
    assert decoded(tmp_path / "black.mp4")[0] == 5 and decoded(tmp_path / "black.mp4")[1] < 32
    encode(tmp_path / "light.mp4", [black, black + 200, black], 30)
    frames, brightest, moving = decoded(tmp_path / "light.mp4")
    assert frames == 3 and brightest > 150 and moving


def test_what_was_asked_otherwise_is_not_done() -> None:
    package = packages()[0]
    wanted = definition(package, package.envs[0])
    assert is_done({"definition": wanted}, wanted)
    assert not is_done({"definition": wanted | {"kwargs": {"other": 1}}}, wanted)
    assert not is_done({"definition": wanted, "not_installed": "no such package"}, wanted)
    assert not is_done(None, wanted)


def test_the_page_is_written_from_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(FILE.read_text()))


def test_every_env_of_the_list_has_a_result() -> None:
    assert list(json.loads(FILE.read_text())["envs"]) == [
        key(package, env) for package in packages() for env in package.envs
    ]


def test_results_hold_no_paths_and_addresses() -> None:
    text = FILE.read_text()
    assert re.findall(r"(?<![\w.)\]])/\w+/|://", text) == []  # whatever machine they come from

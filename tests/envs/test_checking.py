"""Every broken env is found out by id and line; sound ones are not accused."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path

import broken_envs
import gymnasium as gym
import pytest
import small_envs

from gymnast.config.schema import EnvConfig
from gymnast.envs.checking import ending
from gymnast.envs.checking.check import Report, check_env
from gymnast.envs.checking.kinds import KINDS
from gymnast.errors import UsageError

MARK = re.compile(r"# fault: ([a-z-]+)")
NAMED = [kind.__name__ for kind in broken_envs.broken()]


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@functools.cache
def expected(kind: type[gym.Env]) -> tuple[str, int]:
    """Id and line of the mark in the source of a class."""
    lines, first = inspect.getsourcelines(kind)
    marks = [(found[1], first + i) for i, line in enumerate(lines) if (found := MARK.search(line))]
    (mark,) = marks
    return mark


def check(env_id: str, **settings: object) -> Report:
    """Of a registered env."""
    return check_env(EnvConfig.model_validate({"id": env_id, **settings}))


@pytest.mark.parametrize("name", NAMED)
def test_a_broken_env_is_named_with_its_line(name: str) -> None:
    """Exactly one finding: the one that was put there."""
    report = check(f"{name}-v0")
    found = [(finding.id, finding.place.line if finding.place else None) for finding in report.findings]
    assert found == [expected(getattr(broken_envs, name))]
    (finding,) = report.findings
    assert finding.place is not None and finding.place.file == broken_envs.__file__
    assert report.ok == (not KINDS[finding.id].is_fault)
    assert finding.what.endswith(".") and finding.advice.endswith(".")


def test_every_kind_of_finding_has_a_broken_env() -> None:
    """But for Gymnasium's own, which depend on its version, and what depends on speed."""
    shown = {expected(getattr(broken_envs, name))[0] for name in NAMED}
    assert shown == set(KINDS) - {"gymnasium", "gymnasium-warning", "may-not-end"}


def test_every_kind_of_finding_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "env-commands.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([a-z-]+)` \| (fault|warning) \| (.+) \|$", page, re.MULTILINE)
    assert documented == [(k, "fault" if kind.is_fault else "warning", kind.advice) for k, kind in KINDS.items()]


SMALL = ("Identity", "MultiIdentity", "BoxIdentity", "DictIdentity", "NestedIdentity", "TupleIdentity", "PartsIdentity")
CORRECT = [
    *("CartPole-v1", "FrozenLake-v1", "Pendulum-v1", "Blackjack-v1", "LunarLander-v3", "Taxi-v4", "Sound-v0"),
    *(f"{name}-v0" for name in (*SMALL, "SwitchIdentity", "MaskedIdentity", "Counting", "ShortOrLong", "Pictures")),
]


@pytest.mark.parametrize("env_id", CORRECT)
def test_correct_envs_have_no_fault(env_id: str) -> None:
    """Gymnasium's and small ones, with every kind of space and with masks."""
    assert small_envs is not None
    if env_id.startswith("LunarLander"):
        pytest.importorskip("Box2D")
    report = check(env_id)
    assert [finding.what for finding in report.findings.faults] == []
    assert report.gymnasium.startswith(("passes", "not run: it draws actions"))


def test_gymnasium_and_we_agree_about_the_sound_one() -> None:
    """No warning either."""
    report = check("Sound-v0")
    assert not list(report.findings) and report.gymnasium == "passes"


def test_an_exception_inside_a_step_is_led_back_to_its_line() -> None:
    """The innermost line of the env's own file."""
    (finding,) = check("Faulty-v0").findings
    lines, first = inspect.getsourcelines(small_envs.Faulty)
    line = first + next(i for i, text in enumerate(lines) if "raise RuntimeError" in text)
    assert finding.id == "step-crash" and "the simulator exploded" in finding.what
    assert finding.place is not None and finding.place.line == line


def test_a_time_limit_mends_an_env_that_never_ends() -> None:
    """As the advice says."""
    assert check("NeverEnds-v0", time_limit=20).ok


def test_a_slow_env_that_may_not_end_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the seconds of a check it cannot play enough steps to be sure."""
    monkeypatch.setattr(ending, "SECONDS", 0.0)
    (finding,) = check("NeverEnds-v0").findings
    assert finding.id == "may-not-end" and not finding.is_fault and "has no time limit" in finding.what


def test_an_unknown_env_is_the_users_mistake_not_the_envs() -> None:
    """An error, not a report."""
    with pytest.raises(UsageError, match="Unknown environment 'Saund-v0'. Did you mean 'Sound-v0'"):
        check("Saund-v0")


def test_the_report_as_json() -> None:
    """Plain values, places as file and line."""
    data = check("WrongDtype-v0").as_json()
    assert data["env"] == "WrongDtype-v0" and data["class"] == "broken_envs.WrongDtype" and data["ok"] is False
    (finding,) = data["findings"]
    assert (
        finding["severity"] == "fault" and finding["file"] == broken_envs.__file__ and isinstance(finding["line"], int)
    )

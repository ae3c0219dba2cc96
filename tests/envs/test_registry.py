"""Ids that name a module: what is imported, and what is said of an env that is not registered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from gymnast.config.load import resolve
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.families.mujoco.drawing import _found, choose_renderer
from gymnast.envs.registry import env_spec
from gymnast.errors import GymnastError, UsageError

MODULE = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Line(CartPoleEnv):
    pass

gym.register("Stroll-v0", CartPoleEnv, max_episode_steps=50)
gym.register("Unversioned", CartPoleEnv, max_episode_steps=50)
"""


@pytest.fixture(autouse=True)
def module(folder: Path) -> Iterator[None]:
    """`lines_of_mine.py` in the working folder; nothing of it stays."""
    registry = dict(gym.registry)
    Path("lines_of_mine.py").write_text(MODULE)
    yield
    sys.modules.pop("lines_of_mine", None)
    gym.registry.clear()
    gym.registry.update(registry)


def resolved(reference: str, *overrides: str):
    """As `gymnast train` resolves it."""
    return resolve(reference, overrides, generic=generic_defaults).config


@pytest.mark.parametrize(
    ("reference", "env_id", "algorithm"),
    [
        ("lines_of_mine:Stroll-v0", "lines_of_mine:Stroll-v0", "ppo"),
        ("lines_of_mine:Stroll-v0:a2c", "lines_of_mine:Stroll-v0", "a2c"),
        ("lines_of_mine:Unversioned", "lines_of_mine:Unversioned", "ppo"),
        ("lines_of_mine:Unversioned:a2c", "lines_of_mine:Unversioned", "a2c"),
    ],
)
def test_an_env_of_a_module(reference: str, env_id: str, algorithm: str) -> None:
    """With or without a version, and an algorithm."""
    config = resolved(reference)
    assert (config.env.id, config.algo.id, config.spec.horizon) == (env_id, algorithm, 50)


def test_a_class_of_a_module_needs_no_registration() -> None:
    """It has no registered time limit either."""
    config = resolved("lines_of_mine:Line")
    assert (config.env.id, config.algo.id, config.spec.horizon) == ("lines_of_mine:Line", "ppo", None)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (("Line", "env.module=lines_of_mine"), r"'lines_of_mine' was imported, but no environment 'Line' is registered.* has a "
         r"class of that name: say lines_of_mine:Line\."),
        (("lines_of_mine:Strolll-v0",), r"was imported, but no environment 'Strolll-v0' is registered. Did you mean 'Stroll-v0'"),
        (("Strol-v0", "env.module=lines_of_mine"), r"but no environment 'Strol-v0' is registered. Did you mean 'Stroll-v0'"),
        (("lines_of_yours:Line",), r"The module of 'lines_of_yours:Line' cannot be imported: No module named 'lines_of_yours'"),
        (("lines_of_mine:pppo",), r"There is no algorithm 'pppo', and lines_of_mine has no presets. Did you mean 'ppo'"),
        (("SuperTuxBasic-v1",), r"Unknown environment 'SuperTuxBasic-v1'\. `gymnast env list`"),
    ],
)  # fmt: skip
def test_what_is_said_of_one_that_is_not_there(reference: tuple[str, ...], words: str) -> None:
    with pytest.raises(GymnastError, match=words):
        resolved(reference[0], *reference[1:])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('no display')", r"The module of .* cannot be imported: it raised RuntimeError: no display\."),
        ("import sys; sys.exit(3)", r"cannot be imported: it raised SystemExit: 3\."),
        ("def", r"cannot be imported: it raised SyntaxError: invalid syntax \(module_that_fails.py, line 1\)\."),
    ],
)  # fmt: skip
def test_a_module_that_fails_when_it_is_imported(
    code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_fails.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        env_spec("module_that_fails:Env-v0")
    assert sys.path[0] != str(tmp_path)


def test_a_module_finds_the_way_to_draw_that_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo looks once, when it is imported, and a module may import it at its top."""
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    _found.cache_clear()
    (tmp_path / "module_that_looks.py").write_text("import os\nchosen = os.environ.get('MUJOCO_GL', '')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no environment"):
        env_spec("module_that_looks:Env-v0")
    way = choose_renderer()
    if not way:
        pytest.skip("this machine has no library that draws without a display")
    assert sys.modules["module_that_looks"].chosen == way

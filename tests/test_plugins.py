"""Plug-ins through entry points: the example package as a user would install it, and packages that are wrong."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import gymnasium as gym
import pytest
from installed import Install, pip_install
from launch import gymnast

from gymnast import plugins
from gymnast.algorithms import make_algorithm
from gymnast.algorithms.ppo import PPO
from gymnast.config import files
from gymnast.config.algorithms import config_of, names
from gymnast.config.load import resolve
from gymnast.config.schema import EnvConfig
from gymnast.config.variants import infer_algorithm
from gymnast.envs.make import make_envs
from gymnast.envs.registry import env_spec
from gymnast.errors import ConfigError, UsageError

EXAMPLE = Path(__file__).parents[1] / "examples" / "gymnast-plugin-example"


# --- the example, installed -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example package, offline."""
    return pip_install(EXAMPLE, tmp_path_factory.mktemp("plugin"))


def test_env_wrappers_and_algorithm_of_a_plugin_train_and_resume(site: Path, tmp_path: Path) -> None:
    """One run with all of them, envs in worker processes, and its continuation from what was saved."""
    wrappers = "env.wrappers=[{id: hurry, cost: 0.5}, mirror]"
    first = gymnast(
        *("train", "Example/Corridor-v0:awr", wrappers, "algo.temperature=0.3", "env.vectorization=workers"),
        *("env.n_workers=2", "eval.episodes=4", "-n", 1024, "-q"),
        cwd=tmp_path,
        PYTHONPATH=str(site),
    )
    assert first.returncode == 0, first.stderr
    saved = json.loads(next(tmp_path.glob("runs/*/config.json")).read_text())
    assert saved["algo"]["id"] == "awr" and saved["algo"]["temperature"] == 0.3
    assert saved["spec"]["actions"] == ["left", "right"]
    second = gymnast("resume", "@last", "-n", 2048, "-q", cwd=tmp_path, PYTHONPATH=str(site))
    assert second.returncode == 0 and "2,048 env steps" in second.stdout, second.stderr


def test_lists_show_what_plugins_bring(site: Path, tmp_path: Path) -> None:
    """Configs and the doctor's page."""
    listed = gymnast("config", "list", "Example", cwd=tmp_path, PYTHONPATH=str(site))
    assert listed.stdout.split() == ["Example/Corridor-v0:ppo", "Example/Corridor-v0:awr"]
    found = json.loads(gymnast("doctor", "--json", cwd=tmp_path, PYTHONPATH=str(site)).stdout)
    ours = {check["what"]: check for check in found if "plug-in" in check["what"]}
    assert set(ours) == {
        f"plug-in: {name}" for name in ("envs Example", "wrapper mirror", "wrapper hurry", "algorithm awr")
    }
    assert all(check["ok"] and check["detail"] == "gymnast-plugin-example 0.1.0" for check in ours.values())


# --- packages made here ---------------------------------------------------------------------------------------------

ALGORITHM = """
from typing import Literal
from gymnast.config.algorithms import PPOConfig
from gymnast.algorithms.ppo import PPO

class Config(PPOConfig):
    id: Literal["mine"]
    spice: float = 1.0

class Algorithm(PPO):
    pass
"""
ENV = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

gym.register("Mine/Pole-v0", CartPoleEnv, max_episode_steps=50)
"""


def test_an_algorithm_by_its_name(install: Install) -> None:
    """In a variant's name, its keys in overrides, and what makes it; shipped names are not even looked up."""
    install("one", ALGORITHM, algorithms="mine = one\nppo = nowhere")
    assert infer_algorithm("fast_mine") == "mine" and names()[-1] == "mine"
    config = resolve("CartPole-v1:ppo", settings={"env.time_limit": 9}).config
    assert type(make_algorithm(config.algo, 2)) is PPO
    borrowed = resolve("Acrobot-v1:mine").config  # a preset has no variant for it
    assert (borrowed.algo.id, borrowed.env.n_envs, borrowed.algo.gamma) == ("mine", 16, 0.99)
    assert resolve("Acrobot-v1", ["algo.id=mine", "algo.spice=2"]).config.algo.spice == 2
    mine = config_of("mine")
    assert mine is not None
    made = make_algorithm(mine(id="mine", spice=3.0), 2)
    assert type(made).__module__ == "one" and made.config.spice == 3.0


def test_its_keys_are_known(install: Install, tmp_path: Path) -> None:
    """By their last part, and a wrong one is refused with a suggestion."""
    install("one", ALGORITHM, algorithms="mine = one")
    file = tmp_path / "own.yaml"
    file.write_text("id: CartPole-v1\nvariants:\n  mine:\n    train: {env_steps: 1000}\n")
    assert resolve(f"{file}:mine", ["spice=3"]).config.algo.spice == 3.0
    with pytest.raises(UsageError, match="Did you mean 'algo.spice'"):
        resolve(f"{file}:mine", ["spise=3"])


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import nothing_of_this_name", "of broken 1.0 cannot be imported: ModuleNotFoundError: No module named"),
        ("raise RuntimeError('no licence')", "of broken 1.0 cannot be imported: RuntimeError: no licence."),
        ("class Config: pass", "of broken 1.0 has no `Config`"),
        ("raise SystemExit(3)", "of broken 1.0 cannot be imported: SystemExit: 3."),
        ("def", "of broken 1.0 cannot be imported: SyntaxError"),
    ],
)
def test_a_broken_algorithm_is_one_sentence(install: Install, code: str, sentence: str) -> None:
    """It names the package; other algorithms of other packages, and ours, are as ever."""
    install("broken", code, algorithms="hot = broken")
    install("one", ALGORITHM, algorithms="mine = one")
    with pytest.raises(plugins.PluginError, match=sentence):
        resolve("CartPole-v1:ppo", ["algo.id=hot"])
    assert resolve("CartPole-v1:ppo").config.algo.id == "ppo" and config_of("mine") is not None


def test_an_algorithm_without_its_class(install: Install) -> None:
    install("half", ALGORITHM.replace("class Algorithm(PPO)", "class Algorithm"), algorithms="mine = half")
    with pytest.raises(plugins.PluginError, match="half 1.0 has no `Algorithm`"):
        make_algorithm(config_of("mine")(id="mine"), 2)


def test_two_packages_with_one_name(install: Install) -> None:
    """Both are named; the first is not silently taken."""
    install("one", ALGORITHM, algorithms="mine = one")
    install("two", ALGORITHM, algorithms="mine = two")
    with pytest.raises(plugins.PluginError, match="algorithm 'mine': one 1.0 and two 1.0. Uninstall"):
        config_of("mine")
    assert config_of("ppo") is not None


def test_an_unknown_name_lists_plugins_too(install: Install) -> None:
    install("one", ALGORITHM, algorithms="mine = one")
    with pytest.raises(ConfigError, match="unknown algorithm 'mime'. Did you mean 'mine'.* Known: ppo, .*mine"):
        resolve("CartPole-v1:ppo", ["algo.id=mime"])


def test_envs_are_found_beside_a_broken_plugin(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """The broken one is a warning, and only where it is in question."""
    install("broken", "import nothing_of_this_name", envs="Mine = broken")
    install("one", ENV, envs="Pole = one")
    with caplog.at_level(logging.WARNING):
        assert env_spec("CartPole-v1").id == "CartPole-v1" and not caplog.messages
        assert env_spec("Mine/Pole-v0").max_episode_steps == 50
    assert len(caplog.messages) == 1 and "of broken 1.0 cannot be imported" in caplog.messages[0]
    with pytest.raises(UsageError, match="Unknown environment 'Mine/Pile-v0'. Did you mean 'Mine/Pole-v0'"):
        env_spec("Mine/Pile-v0")


def test_envs_that_are_there_stay(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """A plug-in that registers CartPole-v1 again does not get it."""
    before = gym.registry["CartPole-v1"]
    install("one", ENV + "gym.register('CartPole-v1', CartPoleEnv, max_episode_steps=3)\n", envs="Mine = one")
    assert env_spec("Mine/Pole-v0") and gym.registry["CartPole-v1"] is before
    assert "registers CartPole-v1, which is there already" in caplog.text


def test_presets_of_a_plugin_and_of_the_user(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """./configs lies on top of a plug-in's file; a plug-in's file for an env of ours is not read."""
    monkeypatch.chdir(tmp_path)
    for folder, steps in (("presets", 100), ("configs", 300)):
        (tmp_path / folder).mkdir()
        text = f"id: Mine/Pole-v0\nvariants:\n  ppo:\n    train: {{env_steps: {steps}}}\n"
        (tmp_path / folder / "Mine_Pole-v0.yaml").write_text(text)
    (tmp_path / "presets" / "Mine_Pole-v0.yaml").write_text(
        "id: Mine/Pole-v0\nvariants:\n  ppo:\n    env: {n_envs: 3}\n    train: {env_steps: 100}\n"
    )
    (tmp_path / "presets" / "CartPole-v1.yaml").write_text("id: CartPole-v1\nvariants:\n  ppo: {env: {n_envs: 1}}\n")
    install("one", ENV + f"PRESETS = {str(tmp_path / 'presets')!r}\n", envs="Mine = one")
    config = resolve("Mine/Pole-v0:ppo").config
    assert (config.env.n_envs, config.train.env_steps) == (3, 300)
    assert resolve("CartPole-v1:ppo").config.env.n_envs == 32
    listed = dict(files.known_envs())
    assert len(listed["Mine/Pole-v0"]) == 2 and len(listed["CartPole-v1"]) == 1
    assert "Mine/Pole-v0" in files.known_env_ids()


def test_wrappers_by_name(install: Install) -> None:
    """A class that is no wrapper and a name that nobody has are sentences."""
    install("one", "class Odd: pass", wrappers="odd = one:Odd\nreward_clip = one:Odd")
    with pytest.raises(plugins.PluginError, match="'odd' .* of one 1.0 is no wrapper"):
        make_envs(EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": ["odd"]}), 1)
    with pytest.raises(ConfigError, match="'od'.*Did you mean 'odd'"):
        make_envs(EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": ["od"]}), 1)
    make_envs(EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": ["reward_clip"]}), 1)

"""`gymnast env list | check | bench | audit`: once in processes of their own, otherwise in this one, which is faster."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from launch import TESTS, gymnast
from typer.testing import CliRunner

import gymnast as library
from gymnast.cli.app import app
from gymnast.config.schema import EnvConfig
from gymnast.envs.benching import Measurement, Setting
from gymnast.errors import GymnastError, MissingPackageError
from gymnast.runs import bench
from gymnast.training.env_checks import preset_check
from gymnast.training.env_checks.preset_check import FAILED, MISSING, OK, PresetResult, check_preset, check_presets

SMALL = ("env.n_envs=4", "algo.n_steps=8", "algo.batch_size=32", "eval.episodes=2")


@dataclass
class Result:
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    error: str


def run(*arguments: str) -> Result:
    """A command in this process; errors as `gymnast.cli.main` tells them."""
    result = CliRunner().invoke(app, ["env", *arguments])
    if isinstance(result.exception, GymnastError):
        return Result(result.exception.exit_code, result.stdout, str(result.exception))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def _envs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.syspath_prepend(str(TESTS / "envs"))


def test_list_shows_family_and_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row["id"]: row for row in json.loads(run("list", "--json").stdout)}
    assert (rows["CartPole-v1"]["family"], rows["CartPole-v1"]["installed"]) == ("classic", True)
    monkeypatch.setattr("gymnast.envs.packages.ENV_FAMILIES", {"Box2D": ("no_such_module", "x", "gymnast[box2d]")})
    lander = json.loads(run("list", "--json", "lander").stdout)[0]
    assert (lander["family"], lander["installed"], lander["install"]) == (
        "box2d",
        False,
        'pip install "gymnast[box2d]"',
    )
    assert "gymnast[box2d]" in "".join(run("list", "lander").stdout.split())
    assert {row["id"] for row in json.loads(run("list", "--all", "--json", "frozen").stdout)} > {"FrozenLake-v1"}
    none = run("list", "nosuch")
    assert none.returncode == 1 and "--all" in none.error


def test_check_names_the_fault_its_line_and_what_to_do(folder: Path) -> None:
    """In a process of its own: the module lies where the command is started."""
    (folder / "broken_envs.py").write_text((TESTS / "envs" / "broken_envs.py").read_text())
    result = gymnast("env", "check", "broken_envs:WrongDtype-v0", cwd=folder)
    assert result.returncode == 1 and result.stderr == ""
    assert "✗ obs-dtype  broken_envs.py:" in result.stdout and "→ Convert it" in result.stdout


def test_check_of_a_warning_leaves_zero(folder: Path) -> None:
    result = run("check", "broken_envs:LimitAsTerminated-v0", "--json")
    data = json.loads(result.stdout)
    assert result.returncode == 0 and data["ok"] and data["findings"][0]["severity"] == "warning"
    assert "No fault, 1 warning" in run("check", "broken_envs:LimitAsTerminated-v0").stdout
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Say which env"),
        (("--all", "CartPole-v1"), "leave out 'CartPole-v1'"),
        (("CartPoel-v1",), "Did you mean 'CartPole-v1'"),
        (("broken_envs:Soundd",), "no environment 'Soundd' is registered. Did you mean 'Sound-v0'?"),
        (("nosuch_module:Env-v0",), "cannot be imported"),
        (("CartPole-v1", "env.n_env=3"), "Unknown key"),
    ],
)
def test_check_of_what_is_not_there(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("check", *arguments)
    assert result.returncode == 2 and words in result.error


def test_bench_is_what_auto_becomes(folder: Path) -> None:
    """The number stands in the summary with its reason; the bench that gave it printed it."""
    data = json.loads(run("bench", "CartPole-v1", "env.vectorization=native", "-s", "0.03", "--json").stdout)
    assert data["recommended"]["n_envs"] >= 8 and {row["vectorization"] for row in data["measurements"]} == {"native"}
    bench.save(Path("runs"), EnvConfig(id="CartPole-v1"), [Measurement(Setting("native", 64), 41_000.0)])
    result = gymnast("train", "CartPole-v1:ppo", *SMALL, "env.n_envs=auto", "-n", "64", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert (
        "n_envs  64: the fewest near the best speed in `gymnast env bench` on this machine, 41k steps/s"
        in result.stdout
    )
    assert json.loads((folder / "runs" / "@last" / "config.json").read_text())["env"]["n_envs"] == 64
    shown = CliRunner().invoke(app, ["config", "show", "CartPole-v1", "n_envs=auto", "--json"]).stdout
    assert json.loads(shown)["derived"]["env.n_envs"].startswith("64: ")


def test_bench_as_text(folder: Path) -> None:
    result = run("bench", "FrozenLake-v1", "env.vectorization=inprocess", "-s", "0.02")
    assert result.returncode == 0
    for words in ("* fastest   ← recommended", "inprocess", "gymnast train FrozenLake-v1 env.n_envs=", "bench.json"):
        assert words in result.stdout


def test_audit_of_random_actions(folder: Path) -> None:
    data = json.loads(run("audit", "CartPole-v1", "-e", "20", "--json").stdout)
    assert (data["episodes"], data["reward"]["mean"], data["terminated"]) == (20, 1.0, 1.0)
    assert data["returns"] == data["lengths"] and data["policy"] == "random actions"
    assert data["n_steps"]["suggested"] == 128
    assert json.loads(run("audit", "CartPole-v1", "-e", "20", "--json").stdout) == data
    text = run("audit", "FrozenLake-v1", "-e", "10").stdout
    for words in ("outliers", "terminated", "Rewards", "Suggestions", "algo.n_steps="):
        assert words in text
    assert list(folder.iterdir()) == []


def test_audit_of_a_policy(folder: Path) -> None:
    library.train("CartPole-v1:ppo", *SMALL, env_steps=32)
    result = run("audit", "CartPole-v1", "--policy", "@last", "-e", "4")
    assert result.returncode == 0 and "policy of run" in result.stdout
    other = run("audit", "Pendulum-v1", "--policy", "@last")
    assert other.returncode == 2 and "the config it was trained on, CartPole-v1:ppo" in other.error
    wrong = run("audit", "CartPole-v1", "--policy", "rndom")
    assert wrong.returncode == 2 and "Did you mean 'random'?" in wrong.error


# ---- env check --all -------------------------------------------------------------------------------------------------

OWN = """
id: {id}
defaults: {{env: {{module: {module}, kwargs: {kwargs}}}, train: {{env_steps: 100}}}}
variants: {{ppo: {{}}}}
"""


def write_presets(folder: Path) -> list[str]:
    """Presets of the user's own: one that works, one that raises, one that ends its process."""
    (folder / "configs").mkdir()
    (folder / "ending.py").write_text(
        "import os\nimport gymnasium as gym\nfrom small_envs import Counting\n\n"
        "class Ending(Counting):\n    def step(self, action):\n        os._exit(3)\n\n"
        "gym.register('Ending-v0', 'ending:Ending')\n"
    )
    presets = {
        "Ending-v0": ("ending", "{}"),
        "Faulty-v0": ("small_envs", "{how: crash}"),
        "Identity-v0": ("small_envs", "{}"),
    }
    for env_id, (module, kwargs) in presets.items():
        text = OWN.format(id=env_id, module=module, kwargs=kwargs)
        (folder / "configs" / f"{env_id}.yaml").write_text(text)
    return [f"{env_id}:ppo" for env_id in presets]


def test_one_preset_that_ends_its_process_costs_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are checked by the next process; envs without pictures are not failures."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), str(folder))))
    ending, faulty, identity = check_presets(write_presets(folder))
    assert (ending.preset, ending.state) == ("Ending-v0:ppo", FAILED) and "exit code 3" in ending.detail
    assert (faulty.state, faulty.stages) == (FAILED, {"build": "ok", "step": "failed"})
    assert "the simulator exploded" in faulty.detail and faulty.detail.startswith("step: ")
    assert identity.state == OK
    outcomes = {"build": "ok", "step": "ok", "render": "skipped", "record": "skipped", "train": "ok"}
    assert identity.stages == outcomes


@pytest.mark.parametrize(
    "preset", ["CartPole-v1:ppo", "CartPole-v1:reinforce", "Pendulum-v1:ppo", "Taxi-v4:ppo_masked"]
)
def test_shipped_presets_work(preset: str) -> None:
    result = check_preset(preset)
    assert (result.state, set(result.stages.values())) == (OK, {"ok"}), result


def test_a_missing_package_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its install line is the answer."""

    def missing(config: object) -> bool:
        raise MissingPackageError("Environment 'CartPole-v1'", "atari")

    monkeypatch.setattr(preset_check, "STAGES", {"build": missing, "train": missing})
    result = check_preset("CartPole-v1:ppo")
    expected = PresetResult(
        "CartPole-v1:ppo", MISSING, 'pip install "gymnast[atari]"', {"build": MISSING}, result.seconds
    )
    assert result == expected

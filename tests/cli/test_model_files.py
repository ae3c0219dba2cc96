"""`gymnast eval` and `gymnast video` of Stable-Baselines3 models, in processes of their own."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from launch import environment, gymnast
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as rl-zoo writes it: the model, and its statistics in a folder of the env's name."""
    folder = tmp_path_factory.mktemp("zoo")
    vector = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
    model = PPO("MlpPolicy", vector, n_steps=64, batch_size=32, device="cpu", seed=0)
    model.learn(128)
    model.save(folder / "model.zip")
    (folder / "CartPole-v1").mkdir()
    vector.save(str(folder / "CartPole-v1" / "vecnormalize.pkl"))
    return folder


def sentence(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error."""
    assert result.returncode in (1, 2), result.stdout + result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_eval(zoo: Path) -> None:
    result = gymnast("eval", "model.zip", "--env", "CartPole-v1", "-e", 3, cwd=zoo)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("CartPole-v1:ppo model.zip (Stable-Baselines3 PPO)\n")
    assert "over 3 episodes, deterministic" in result.stdout
    found = "CartPole-v1/vecnormalize.pkl"
    assert result.stderr == (
        f"Observations are normalised as {found} says (VecNormalize, found next to the model; --no-vecnormalize ignores it).\n"
    )


def test_eval_as_json_with_and_without_statistics(zoo: Path) -> None:
    """A named file does what the found one does; none does something else."""
    ask = ("eval", "model.zip", "--env", "CartPole-v1", "-e", 3, "--seed", 4, "--json")
    found, named, none = (
        gymnast(*ask, *more, cwd=zoo)
        for more in ((), ("--vecnormalize", "CartPole-v1/vecnormalize.pkl"), ("--no-vecnormalize",))
    )
    results = [json.loads(result.stdout) for result in (found, named, none)]
    assert results[0] == results[1]
    assert results[0]["run"] is None
    assert results[0]["source"] == "model.zip (Stable-Baselines3 PPO)"
    assert results[2]["mean"] != results[0]["mean"]
    assert none.stderr == ""
    assert "VecNormalize" in named.stderr


def test_video(zoo: Path) -> None:
    result = gymnast("video", "model.zip", "--env", "CartPole-v1", cwd=zoo)
    assert result.returncode == 0, result.stderr
    assert (zoo / "model-seed0.mp4").stat().st_size > 1000
    about = json.loads((zoo / "model-seed0.json").read_text())
    assert (about["run"], about["config"]) == ("model.zip (Stable-Baselines3 PPO)", "CartPole-v1:ppo")
    assert not (zoo / "runs").exists()


def test_mistakes(zoo: Path) -> None:
    assert "name it with --env" in sentence(gymnast("eval", "model.zip", cwd=zoo))
    assert "There is no file 'other.zip'" in sentence(gymnast("eval", "other.zip", "--env", "CartPole-v1", cwd=zoo))
    assert "is a run" in sentence(gymnast("video", "@last", "--env", "CartPole-v1", cwd=zoo))
    both = ("--vecnormalize", "x.pkl", "--no-vecnormalize")
    assert "contradict" in sentence(gymnast("eval", "model.zip", "--env", "CartPole-v1", *both, cwd=zoo))
    wrong = gymnast("eval", "model.zip", "--env", "Acrobot-v1", "--no-vecnormalize", cwd=zoo)
    assert "(4,), float32), but Acrobot-v1 has Box(" in sentence(wrong)


class Evil:
    """Runs a shell command when unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch canary",)


def test_a_hostile_model_is_refused(zoo: Path, tmp_path: Path) -> None:
    inner = tmp_path / "policy.pth"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(), 2))
    with zipfile.ZipFile(zoo / "model.zip") as old, zipfile.ZipFile(tmp_path / "model.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, inner.read_bytes() if name == "policy.pth" else old.read(name))
    result = gymnast("eval", "model.zip", "--env", "CartPole-v1", cwd=tmp_path)
    assert "model.zip/policy.pth holds posix.system where a mapping should be." in sentence(result)
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "arguments", [["eval", "none.zip", "--env", "CartPole-v1"], ["eval", "@last"], ["video", "abc"]]
)
def test_mistakes_are_found_before_torch_is_imported(arguments: list[str], tmp_path: Path) -> None:
    code = (
        f"import sys\nsys.argv = ['gymnast', *{arguments!r}]\nfrom gymnast.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    print(left.code, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "2 False\n"

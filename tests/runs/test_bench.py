"""What was measured is found again for the same env on the same machine, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gymnast.config.load import Resolved, resolve
from gymnast.config.schema import EnvConfig
from gymnast.envs.benching import Measurement, Setting
from gymnast.errors import ConfigError
from gymnast.runs import bench
from gymnast.training.train import train

CARTPOLE = EnvConfig(id="CartPole-v1", n_envs="auto")
NATIVE = [Measurement(Setting("native", 8), 1e5), Measurement(Setting("native", 32), 41_000_000.0)]


def auto(**settings: object) -> Resolved:
    """A short CartPole training with `n_envs: auto`."""
    small = {"train.env_steps": 200, "algo.n_steps": 8, "algo.batch_size": 16, "eval.episodes": 2}
    return resolve("CartPole-v1:ppo", settings={"env.n_envs": "auto", **small, **settings})


def test_found_again_for_the_same_env_only(tmp_path: Path) -> None:
    """Another id, other arguments, other wrappers or another machine know nothing."""
    bench.save(tmp_path, CARTPOLE, NATIVE)
    assert bench.load(tmp_path, CARTPOLE) == NATIVE
    n_envs, reason = bench.recommended(tmp_path, CARTPOLE) or (0, "")
    assert n_envs == 32 and reason.startswith("32: ") and reason.endswith("41M steps/s")
    others = ({"id": "Pendulum-v1"}, {"kwargs": {"sutton_barto_reward": True}}, {"time_limit": 9})
    for change in (*others, {"vectorization": "inprocess"}):
        assert bench.recommended(tmp_path, CARTPOLE.model_copy(update=change)) is None
    path = tmp_path / bench.FILE
    path.write_text(path.read_text().replace('"cores": ', '"cores": 1'))
    assert bench.recommended(tmp_path, CARTPOLE) is None


def test_a_new_measurement_replaces_the_old_one_of_the_same_way(tmp_path: Path) -> None:
    slow = [Measurement(Setting("inprocess", 8), 5.0)]
    bench.save(tmp_path, CARTPOLE, [*NATIVE, *slow])
    bench.save(tmp_path, EnvConfig(id="Pendulum-v1"), slow)
    bench.save(tmp_path, CARTPOLE, NATIVE[:1])
    assert set(bench.load(tmp_path, CARTPOLE)) == {*slow, NATIVE[0]}
    assert bench.load(tmp_path, EnvConfig(id="Pendulum-v1")) == slow
    assert len(json.loads((tmp_path / bench.FILE).read_text())) == 2


@pytest.mark.parametrize("content", ["", "{", "[1, {}]", '{"a": 1}'])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / bench.FILE).write_text(content)
    assert bench.recommended(tmp_path, CARTPOLE) is None
    bench.save(tmp_path, CARTPOLE, NATIVE)
    assert bench.load(tmp_path, CARTPOLE) == NATIVE


def test_a_run_keeps_the_number(tmp_path: Path) -> None:
    """The saved config says how many, so the run can be repeated where nothing was measured."""
    bench.save(tmp_path, CARTPOLE, NATIVE)
    result = train(auto(), tmp_path)
    assert result is not None and result.run.config()["env"]["n_envs"] == 32
    assert bench.settled(auto(), tmp_path / "elsewhere").config.env.n_envs == 8


def test_a_number_is_left_alone(tmp_path: Path) -> None:
    bench.save(tmp_path, CARTPOLE, NATIVE)
    resolved = resolve("CartPole-v1:ppo")
    assert bench.settled(resolved, tmp_path) is resolved


def test_sizes_are_checked_once_the_number_is_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="larger than the rollout of 8 envs × 8 steps"):
        bench.settled(auto(**{"algo.batch_size": 512}), tmp_path)

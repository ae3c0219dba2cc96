"""The table of an episode next to the same episode in plain Gymnasium, read by polars."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest
from test_trace import ENVS, GAMMA, record

from gymnast.config.load import resolve
from gymnast.config.spec import EnvSpec
from gymnast.evaluation.table import columns_of, rows_of
from gymnast.runs.tables import write_rows


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_number_is_the_env_s(suffix: str, tmp_path: Path) -> None:
    spec = resolve("CartPole-v1:ppo").config.spec
    trace, _ = record({"id": "CartPole-v1"}, seed=11)
    path = tmp_path / f"best{suffix}"
    assert write_rows(path, columns_of(trace, spec), rows_of(trace, spec)) == len(trace)
    table = polars.read_parquet(path) if suffix == ".parquet" else polars.read_csv(path)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=11)
    rewards = []
    for step, row in enumerate(table.iter_rows(named=True)):
        named = [
            row[f"obs.{name}"] for name in ("cart position", "cart velocity", "pole angle", "pole angular velocity")
        ]
        np.testing.assert_allclose(named, obs, rtol=1e-6)
        assert row["step"] == step and row["action_label"] == ["push left", "push right"][row["action"]]
        chances = [row["p(push left)"], row["p(push right)"]]
        assert sum(chances) == pytest.approx(1, abs=1e-5)
        assert row["log_prob"] == pytest.approx(np.log(chances[row["action"]]), abs=1e-5)
        obs, reward, terminated, truncated, _ = env.step(row["action"])
        assert (row["reward"], row["env_reward"]) == (reward, reward)
        assert (row["terminated"], row["truncated"]) == (terminated, truncated)
        rewards.append(float(reward))
    expected = [sum(GAMMA**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))]
    np.testing.assert_allclose(table["return"].to_numpy(), expected, rtol=1e-4)
    assert table["advantage"].is_not_null().all() and table["value"].to_list() == pytest.approx(trace.values[:-1])


@pytest.mark.parametrize("name", ENVS)
def test_every_kind_of_space_has_columns(name: str, tmp_path: Path) -> None:
    trace, _ = record(ENVS[name])
    path = tmp_path / "t.parquet"
    write_rows(path, columns_of(trace, EnvSpec()), rows_of(trace, EnvSpec()))
    table = polars.read_parquet(path)
    assert table.height == len(trace)
    assert any(column.startswith("action") and column != "action_label" for column in table.columns)
    assert table["reward"].sum() == pytest.approx(sum(trace.rewards), abs=1e-4)


def test_terms_of_a_reward_are_columns() -> None:
    trace, _ = record({"id": "HalfCheetah-v5", "time_limit": 5})
    rows = list(rows_of(trace, EnvSpec()))
    for row in rows:
        assert row["term.reward_forward"] + row["term.reward_ctrl"] == pytest.approx(row["reward"], abs=1e-4)

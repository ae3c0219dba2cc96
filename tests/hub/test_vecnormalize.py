"""VecNormalize files: where they are looked for, and what is refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_models import OBSERVATIONS, env_id, make, normalised, observations
from stable_baselines3.common.vec_env import VecNormalize

import gymnast
from gymnast.errors import CheckpointError
from gymnast.hub.vecnormalize import load

ENV = env_id("Box", "Discrete")
FILE = pickle.dumps(normalised(ENV))


@pytest.fixture(scope="module")
def vector() -> VecNormalize:
    return normalised(ENV)


@pytest.fixture
def model(vector: VecNormalize, tmp_path: Path) -> Any:
    model = make("ppo", vector)
    model.save(tmp_path / "best_model.zip")
    return model


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_statistics(protocol: int, vector: VecNormalize, tmp_path: Path) -> None:
    """As any version of Python writes them."""
    path = tmp_path / "vecnormalize.pkl"
    path.write_bytes(pickle.dumps(vector, protocol))
    found = load(path)
    np.testing.assert_array_equal(found.moments[None].mean, vector.obs_rms.mean)
    np.testing.assert_array_equal(found.moments[None].variance, vector.obs_rms.var)
    assert found.moments[None].count == vector.obs_rms.count
    assert (found.clip, found.epsilon, found.scales_reward) == (10.0, 1e-8, True)


@pytest.mark.parametrize("place", [f"{ENV}/vecnormalize.pkl", "vecnormalize.pkl", "vec_normalize.pkl"])
def test_where_they_are_found(place: str, model: Any, vector: VecNormalize, tmp_path: Path) -> None:
    """As rl-zoo and the Hub lay them out; said so, and declined on request."""
    path = tmp_path / "best_model.zip"
    obs = observations(OBSERVATIONS["Box"], 300)
    normal, _ = model.predict(vector.normalize_obs(obs), deterministic=True)
    raw, _ = model.predict(obs, deterministic=True)
    assert (normal != raw).any()
    bare = gymnast.load(path, env=ENV)
    assert bare.notices == []
    np.testing.assert_array_equal(bare.predict(obs), raw)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    vector.save(str(tmp_path / place))
    agent = gymnast.load(path, env=ENV)
    np.testing.assert_array_equal(agent.predict(obs), normal)
    assert agent.notices == [
        f"Observations are normalised as {tmp_path / place} says (VecNormalize, found next to the model; "
        "--no-vecnormalize ignores it)."
    ]
    declined = gymnast.load(path, env=ENV, vecnormalize=False)
    assert declined.notices == []
    np.testing.assert_array_equal(declined.predict(obs), raw)


def test_a_named_file_wins(model: Any, vector: VecNormalize, tmp_path: Path) -> None:
    (tmp_path / "vecnormalize.pkl").write_bytes(b"nonsense")
    vector.save(str(tmp_path / "mine.pkl"))
    agent = gymnast.load(tmp_path / "best_model.zip", env=ENV, vecnormalize=tmp_path / "mine.pkl")
    assert agent.notices == [f"Observations are normalised as {tmp_path / 'mine.pkl'} says (VecNormalize)."]
    with pytest.raises(CheckpointError, match=r"vecnormalize\.pkl"):
        gymnast.load(tmp_path / "best_model.zip", env=ENV)


def test_statistics_of_another_env(model: Any, tmp_path: Path) -> None:
    normalised(env_id("Matrix", "Discrete")).save(str(tmp_path / "vecnormalize.pkl"))
    with pytest.raises(CheckpointError, match=r"of shape \(2, 3\), but the env has Box.*--no-vecnormalize"):
        gymnast.load(tmp_path / "best_model.zip", env=ENV)


def test_parts_that_our_clip_would_change(tmp_path: Path) -> None:
    """Ours clips the whole observation, theirs only the parts that it normalises."""
    env = env_id("Dict", "Discrete")
    vector = normalised(env, norm_obs_keys=["m"], clip_obs=5.0)
    make("ppo", vector).save(tmp_path / "model.zip")
    vector.save(str(tmp_path / "vecnormalize.pkl"))
    with pytest.raises(CheckpointError, match="may exceed its clip_obs of 5"):
        gymnast.load(tmp_path / "model.zip", env=env)


def test_normalised_bytes_are_refused(tmp_path: Path) -> None:
    env = env_id("Bytes", "Discrete")
    vector = normalised(env)
    make("ppo", vector).save(tmp_path / "model.zip")
    vector.save(str(tmp_path / "vecnormalize.pkl"))
    with pytest.raises(CheckpointError, match="uint8"):
        gymnast.load(tmp_path / "model.zip", env=env)


class Evil:
    """Runs a shell command when unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._canary}",)


@pytest.mark.parametrize("place", ["all", "obs_rms", "mean", "clip_obs", "old_obs"])
def test_a_hostile_file(place: str, model: Any, tmp_path: Path) -> None:
    """Refused where the field is needed, ignored where it is not; never run."""
    canary = tmp_path / "canary"
    hostile: Any = normalised(ENV)
    if place == "all":
        hostile = Evil(canary)
    elif place == "mean":
        hostile.obs_rms.mean = Evil(canary)
    else:
        setattr(hostile, place, Evil(canary))
    data = pickle.dumps(hostile)
    (tmp_path / "vecnormalize.pkl").write_bytes(data)
    if place == "old_obs":
        gymnast.load(tmp_path / "best_model.zip", env=ENV)
    else:
        with pytest.raises(CheckpointError, match=r"vecnormalize\.pkl .*system"):
            gymnast.load(tmp_path / "best_model.zip", env=ENV)
    assert not canary.exists()
    pickle.loads(data)
    assert canary.exists(), "the file would not have done anything"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clip_obs", -1.0),
        ("clip_obs", float("nan")),
        ("clip_obs", "10"),
        ("epsilon", -1.0),
        ("epsilon", None),
        ("mean", np.full(5, np.nan)),
        ("mean", np.zeros(4)),
        ("mean", np.zeros(5, "U3")),
        ("var", np.full(5, -1.0)),
        ("count", float("inf")),
    ],
)
def test_statistics_that_make_no_sense(field: str, value: Any, tmp_path: Path) -> None:
    vector = normalised(ENV)
    setattr(vector.obs_rms if field in ("mean", "var", "count") else vector, field, value)
    path = tmp_path / "vecnormalize.pkl"
    path.write_bytes(pickle.dumps(vector))
    with pytest.raises(CheckpointError, match=r"vecnormalize\.pkl "):
        load(path)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_give_statistics_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.pkl"
    content = bytearray(FILE)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 4)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert load(path).clip > 0
    except CheckpointError as error:
        assert str(error).startswith(str(path))

"""The files of ViZDoom's scenarios against the game, their old names, and what other ids get from the base (ENV-4)."""

from __future__ import annotations

from contextlib import closing
from functools import cache

import numpy as np
import pytest

from gymnast.config.files import SHIPPED, read
from gymnast.config.load import resolve
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.time_limits import time_limit_of
from gymnast.policies import make_policy

pytest.importorskip("vizdoom")
# Episodes of a fresh sample and the standard deviation of a random episode's return, from the runs behind random_score.
RANDOM = {
    "Basic": (40, 198.2),
    "DeadlyCorridor": (30, 82.4),
    "DefendCenter": (30, 1.11),
    "DefendLine": (20, 3.98),
    "HealthGathering": (20, 141.1),
    "MyWayHome": (4, 0.396),
    "PredictPosition": (60, 0.282),
    "TakeCover": (20, 144.5),
    "Deathmatch": (5, 5.54),
}
OLD = {
    **{f"VizDoom-{name}-v0": f"Vizdoom{name}-v1" for name in RANDOM if not name.startswith("Defend")},
    "VizDoom-DefendTheCenter-v0": "VizdoomDefendCenter-v1",
    "VizDoom-DefendTheLine-v0": "VizdoomDefendLine-v1",
}


def preset(name: str) -> str:
    return f"Vizdoom{name}-v1:ppo"


@cache
def random_episodes(name: str) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Rewards of all steps, returns, and the game variables seen, of random play."""
    env = make_one(resolve(preset(name)).config.env)
    rng = np.random.default_rng(11)
    rewards, returns, seen = [], [], []
    with closing(env):
        obs, _ = env.reset(seed=11)
        for _ in range(RANDOM[name][0]):
            total, over = 0.0, False
            while not over:
                obs, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
                rewards.append(reward)
                seen.append(obs.get("gamevariables", np.zeros(0)))
                total, over = total + reward, terminated or truncated
            returns.append(total)
            env.reset()
    return np.array(rewards), np.array(returns), seen


def test_every_file_is_tested() -> None:
    assert {path.name for path in (SHIPPED / "envs").glob("Vizdoom*")} == {f"Vizdoom{name}-v1.yaml" for name in RANDOM}


@pytest.mark.parametrize("name", RANDOM)
def test_spec_matches_the_game(name: str) -> None:
    config = resolve(preset(name)).config
    with closing(make_one(config.env)) as env:
        assert config.spec.actions == env.unwrapped.get_action_meanings()
        variables = env.unwrapped.scenario.variables
        assert [part.name for part in config.spec.observation] == list(variables)
    timeout = env.unwrapped.scenario.timeout
    assert config.spec.horizon == time_limit_of(config.env) == (timeout // 4 or None)


@pytest.mark.parametrize("name", RANDOM)
def test_random_play_stays_inside_the_ranges(name: str) -> None:
    spec = resolve(preset(name)).config.spec
    rewards, returns, seen = random_episodes(name)
    for values, (low, high) in ((rewards, spec.reward_range), (returns, spec.return_range)):
        assert low is None or values.min() >= low - 1e-3
        assert high is None or values.max() <= high + 1e-3
    for part, values in zip(spec.observation, np.array(seen).T, strict=True):
        assert part.low is None or values.min() >= part.low, part.name
        assert part.high is None or values.max() <= part.high, part.name


@pytest.mark.parametrize("name", RANDOM)
def test_random_score_fits_a_fresh_sample(name: str) -> None:
    _, returns, _ = random_episodes(name)
    standard_error = RANDOM[name][1] / np.sqrt(len(returns))
    score = resolve(preset(name)).config.spec.random_score
    assert score is not None and abs(returns.mean() - score.score) <= 5 * standard_error


@pytest.mark.parametrize("name", RANDOM)
def test_scores_are_in_order(name: str) -> None:
    spec = resolve(preset(name)).config.spec
    low, high = spec.return_range
    published = [score.score for score in spec.reference_scores.values()]
    order = [low, spec.random_score.score, spec.solved_at, *published[:1], high]
    known = [score for score in order if score is not None]
    assert known == sorted(known)


@pytest.mark.parametrize("old", OLD)
def test_old_ids_run_the_presets_of_today(old: str) -> None:
    resolved = resolve(old)
    assert resolved.config.name == f"{OLD[old]}:ppo"
    assert resolved.notices == [f"{old} is now {OLD[old]}; running that."]


def test_other_ids_have_the_base() -> None:
    """A map of Freedoom, and the game with a WAD of one's own."""
    for env_id in ("VizdoomFreedoom1E1M1-S3-v0", "VizdoomDoom-v1"):
        config = resolve(f"{env_id}:ppo", generic=generic_defaults).config
        assert (config.env.id, config.env.kwargs, config.env.n_envs) == (env_id, {"screen": [60, 80]}, 16)
    assert "ppo" in read(SHIPPED / "bases" / "vizdoom.yaml").variants


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", ["Basic", "MyWayHome"])
def test_one_picture_or_a_stack_is_read_by_the_cnn(name: str, size: int) -> None:
    """With variables beside it and without."""
    stack = [{"id": "frame_stack", "size": size}]
    config = resolve(preset(name), settings={"env.wrappers": stack, "env.vectorization": "inprocess"}).config
    with closing(make_envs(config.env, 1)) as envs:
        policy = make_policy(config.policy, envs.observation_space, envs.action_space)
    assert policy.encoder.pictured == ["screen"]
    assert policy.encoder.nets[0].shape == ((4, 60, 80, 1) if size == 4 else (60, 80, 1))
    assert policy.encoder.flat_size == (1 if name == "Basic" else 0)

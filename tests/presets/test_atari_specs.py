"""The files of Atari games against the games: labels, ranges, protocols, and what every other game gets from the base."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gymnast.config.files import SHIPPED, read, variant_names
from gymnast.config.load import resolve
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.registry import ids_like
from gymnast.envs.time_limits import time_limit_of

pytest.importorskip("ale_py")
GAMES = {"ALE/Pong-v5": "pong", "ALE/Breakout-v5": "breakout"}
# Episodes of a fresh sample and the standard deviation of a random episode's return, from the runs behind random_score.
RANDOM = {"ALE/Pong-v5": (6, 0.88), "ALE/Breakout-v5": (30, 1.39)}
SHARED = ["rgb_ppo", "rgb_deterministic_ppo", "ram_ppo", "ram_deterministic_ppo"]
OWN = [*SHARED, "objects_ppo", "objects_deterministic_ppo"]
PRESETS = [f"{game}:{variant}" for game in GAMES for variant in OWN]


def test_the_files_have_all_variants():
    for game in GAMES:
        assert list(read(SHIPPED / "envs" / f"{game.replace('/', '_')}.yaml").variants) == OWN
    assert variant_names([read(SHIPPED / "bases" / "atari.yaml")]) == SHARED


@pytest.mark.parametrize("preset", PRESETS)
def test_a_variant_is_what_its_name_says(preset):
    config = resolve(preset).config
    atari, variant = config.env.atari, preset.rpartition(":")[2]
    assert {"pixels": "rgb"}.get(atari.obs, atari.obs) == variant.partition("_")[0]
    assert atari.sticky == (0.0 if "deterministic" in variant else 0.25)
    assert (atari.skip, atari.noops, atari.frame_cap) == (4, 30, 108_000)
    assert config.spec.horizon == time_limit_of(config.env) == 27_000
    assert config.eval.episodes == 100
    assert atari.sticky or not config.eval.deterministic  # nothing else ends a rally that repeats itself
    if "Breakout" in preset:  # lives, and points of several sizes
        assert atari.life_loss == "terminal" and [wrapper.id for wrapper in config.env.wrappers] == ["reward_clip"]


@pytest.mark.parametrize("preset", PRESETS)
def test_spec_matches_the_game(preset):
    config = resolve(preset).config
    env = make_one(config.env)
    assert config.spec.actions == env.unwrapped.get_action_meanings()
    if config.env.atari.obs != "objects":
        assert config.spec.observation == []
        return
    from gymnast.envs.families.atari import objects

    components = objects.map_of(GAMES[config.env.id]).components
    assert config.spec.observation == list(components)
    assert env.observation_space.shape == (len(components),)


def test_thresholds_of_pong():
    marks = {variant: resolve(f"ALE/Pong-v5:{variant}").config.spec.solved_at for variant in OWN}
    assert marks == dict.fromkeys(OWN, 18)


@cache
def random_returns(game: str) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and returns of random play under the sticky protocol, from the memory so that no picture is made."""
    config = resolve(f"{game}:ram_ppo").config.env.model_copy(update={"vectorization": "inprocess", "wrappers": []})
    envs, rng = make_envs(config, 2), np.random.default_rng(5)
    row = envs.new_row()
    envs.reset([11, 12], row)
    rewards, returns = [], []
    while len(returns) < RANDOM[game][0]:
        returns += [episode.ret for episode in envs.step(rng.integers(envs.action_space.n, size=2), row)]
        rewards.append(row.reward.copy())
    envs.close()
    return np.array(rewards), np.array(returns)


@pytest.mark.parametrize("game", GAMES)
def test_random_play_fits_the_spec(game):
    spec = resolve(game).config.spec
    rewards, returns = random_returns(game)
    for values, (low, high) in ((rewards, spec.reward_range), (returns, spec.return_range)):
        assert values.min() >= low and (high is None or values.max() <= high)
    assert abs(returns.mean() - spec.random_score.score) <= 5 * RANDOM[game][1] / np.sqrt(len(returns))


@pytest.mark.parametrize("game", GAMES)
def test_scores_are_in_order(game):
    spec = resolve(game).config.spec
    low, high = spec.return_range
    known = [low, spec.random_score.score, spec.solved_at, spec.optimal_score.score]
    assert [score for score in known if score is not None] == sorted(score for score in known if score is not None)
    assert spec.optimal_score.score == high
    assert all(low < score.score <= high and score.protocol for score in spec.reference_scores.values())


def test_pong_paddle_goes_where_the_notes_say():
    config = resolve("ALE/Pong-v5:objects_deterministic_ppo").config
    env, labels, names = make_one(config.env), config.spec.actions, [part.name for part in config.spec.observation]
    moved = {}
    for label in ("NOOP", "RIGHT", "LEFT"):
        env.reset(seed=1)
        before = [env.step(labels.index("NOOP"))[0] for _ in range(10)][-1]
        after = [env.step(labels.index(label))[0] for _ in range(3)][-1]
        moved[label] = after[names.index("player y")] - before[names.index("player y")]
    assert moved["RIGHT"] < -5 and moved["LEFT"] > 5 and moved["NOOP"] == 0


def test_pong_ball_is_faster_when_struck_with_fire():
    """As the notes say: a player who follows the ball and holds the button sees it come back up to four times as fast."""
    config = resolve("ALE/Pong-v5:objects_deterministic_ppo").config
    labels, names = config.spec.actions, [part.name for part in config.spec.observation]
    dx, below = names.index("ball dx"), names.index("ball below player")
    fastest = {}
    for held, (still, up, down) in {"": ("NOOP", "RIGHT", "LEFT"), "FIRE": ("FIRE", "RIGHTFIRE", "LEFTFIRE")}.items():
        env = make_one(config.env)
        obs, _ = env.reset(seed=1)
        speeds = []
        for _ in range(1500):
            label = down if obs[below] > 4 else up if obs[below] < -4 else still
            obs = env.step(labels.index(label))[0]
            speeds.append(-obs[dx])  # towards the other player, who strikes as hard as it always does
        fastest[held] = max(speeds)
        env.close()
    assert fastest == {"": 4, "FIRE": 16}  # pixels per step of four frames


def test_every_game_resolves_from_the_base():
    games = ids_like("ALE/*-v5")
    assert len(games) > 100
    for game in games:
        resolved = resolve(game)
        assert resolved.config.name == f"{game}:rgb_ppo"
        if game not in GAMES:
            assert all(
                origin.startswith("presets/bases/atari.yaml:")
                for key, origin in resolved.origins.items()
                if key not in ("env.id", "algo.id")
            )


@pytest.mark.parametrize("variant", SHARED)
def test_a_game_without_a_file_can_be_played(variant):
    config = resolve(f"ALE/Seaquest-v5:{variant}").config
    envs = make_envs(config.env, 2)
    row = envs.new_row()
    envs.reset([1, 2], row)
    for _ in range(5):
        envs.step(np.array([1, 2]), row)
    assert row.obs.shape == ((2, 128) if "ram" in variant else (2, 4, 84, 84)) and row.obs.dtype == np.uint8
    envs.close()

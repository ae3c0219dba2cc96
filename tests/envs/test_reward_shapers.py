"""Every shipped shaper against numbers from plain Gymnasium, and potentials against dynamic programming."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config import shapers
from gymnast.config.load import resolve
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import make_envs
from gymnast.envs.rewards.vector import terms_of
from gymnast.envs.vector import VectorEnv

STEPS = 300
GAMMA = 0.98


def made(reference: str, terms: dict[str, Any], **env: Any) -> VectorEnv:
    """One copy of a preset's env with terms, and a discount that the test knows."""
    rewards = {"terms": terms, "discount": GAMMA, "own": 0}
    settings = {"env.rewards": rewards, "env.vectorization": "inprocess", "env.wrappers": []}
    config = resolve(reference, settings=settings | {f"env.{key}": value for key, value in env.items()}).config
    return make_envs(config.env, 1)


def paid(reference: str, shaper: str, **args: Any) -> list[float]:
    """What a shaper pays in every step of scripted play from seed 7."""
    found = []
    with closing(made(reference, {"it": {"shaper": shaper, "weight": 2, **args}})) as envs:
        row = envs.new_row()
        envs.reset([7], row)
        for action in script(envs.action_space.n):
            envs.step(np.array([action]), row)
            found.append(float(row.reward[0]))
    return found


def script(n_actions: int) -> list[int]:
    """Actions that are held for a while, so that cars roll and landers fall."""
    return [int(action) for action in np.repeat(np.random.default_rng(5).integers(0, n_actions, STEPS), 4)[:STEPS]]


def by_hand(env_id: str, pay: Callable[[np.ndarray, np.ndarray, bool], float], **kwargs: Any) -> list[float]:
    """The same play in plain Gymnasium: `pay` of the states before and after, and whether the latter is terminal."""
    env = gym.make(env_id, **kwargs)
    obs, _ = env.reset(seed=7)
    found = []
    for action in script(env.action_space.n):  # type: ignore[attr-defined]
        following, _, terminated, truncated, _ = env.step(action)
        found.append(pay(obs, following, terminated))
        obs = following
        if terminated or truncated:
            obs, _ = env.reset()
    env.close()
    return found


def from_potential(phi: Callable[[np.ndarray], float]) -> Callable[[np.ndarray, np.ndarray, bool], float]:
    """F = γΦ(s′) − Φ(s), with Φ = 0 in terminal states."""
    return lambda before, after, terminated: GAMMA * (0.0 if terminated else phi(after)) - phi(before)


def energy(obs: np.ndarray) -> float:
    """Of MountainCar's car, by its own constants: gravity 0.0025, a hill of height sin(3x)/3."""
    position, velocity = map(float, obs)
    return 600 * (velocity**2 / 2 + 0.0025 * (math.sin(3 * position) - 1) / 3)


def distress(obs: np.ndarray) -> float:
    """Of the lander: far away, fast and tilted."""
    x, y, vx, vy, angle = map(float, obs[:5])
    return -math.sqrt(x * x + y * y) - math.sqrt(vx * vx + vy * vy) - abs(angle)


SCRIPTED: dict[str, tuple[str, str, Callable[[np.ndarray, np.ndarray, bool], float]]] = {
    "cartpole_centring": (
        "CartPole-v1:ppo",
        "CartPole-v1",
        lambda before, after, over: -((float(after[0]) / 2.4) ** 2),
    ),
    "mountain_car_potential": ("MountainCar-v0:ppo", "MountainCar-v0", from_potential(energy)),
    "lunar_lander_potential": ("LunarLander-v3:a2c", "LunarLander-v3", from_potential(distress)),
    "time_penalty": ("LunarLander-v3:a2c", "LunarLander-v3", lambda before, after, over: -1.0),
}


@pytest.mark.parametrize("shaper", SCRIPTED)
def test_scripted_play(shaper: str) -> None:
    preset, env_id, pay = SCRIPTED[shaper]
    expected = by_hand(env_id, pay)
    assert len(set(expected)) > 100 or shaper == "time_penalty"
    np.testing.assert_allclose(paid(preset, shaper), np.multiply(2, expected), rtol=2e-5, atol=1e-7)


def test_the_count_bonus() -> None:
    """Against counts kept by hand: 1/√n of the n-th visit, over all episodes."""
    seen: dict[tuple[int, int], int] = {}

    def pay(before: np.ndarray, after: np.ndarray, over: bool) -> float:
        cell = (min(int((after[0] + 1.2) / 1.8 * 40), 39), min(int((after[1] + 0.07) / 0.14 * 40), 39))
        seen[cell] = seen.get(cell, 0) + 1
        return 1 / math.sqrt(seen[cell])

    expected = by_hand("MountainCar-v0", pay)
    assert len(seen) > 15
    np.testing.assert_allclose(paid("MountainCar-v0:ppo", "count_bonus", bins=40), np.multiply(2, expected), rtol=1e-6)


@pytest.fixture(scope="module")
def pong() -> tuple[list[dict[str, float]], list[float], list[dict[str, float]]]:
    """Objects, rewards and what both shapers paid while the paddle followed the ball; then the same from workers with lanes."""
    terms = {"hits": {"shaper": "pong_hits"}, "tracking": {"shaper": "pong_tracking"}}
    with closing(made("ALE/Pong-v5:objects_deterministic_ppo", terms)) as envs:
        config = resolve("ALE/Pong-v5:objects_deterministic_ppo").config
        names = [component.name for component in config.spec.observation]
        layer, row = terms_of(envs), envs.new_row()
        assert layer is not None
        envs.reset([3], row)
        objects, rewards, found = [dict(zip(names, row.obs[0].tolist(), strict=True))], [], []  # type: ignore[union-attr]
        for _ in range(900):
            now = objects[-1]
            off = now["ball below player"] + now["ball dy"] - now["player dy"]
            action = 0 if abs(off) < 8 else (3 if off > 0 else 2)
            if envs.step(np.array([action]), row):
                break
            objects.append(dict(zip(names, row.obs[0].tolist(), strict=True)))  # type: ignore[union-attr]
            assert row.own_reward is not None
            rewards.append(float(row.own_reward[0]))
            found.append(layer.latest())
    return objects, rewards, found


def test_hits_in_pong(pong: Any) -> None:
    """A ball that came from the left and now flies left, with no point between, was hit by the player."""
    objects, rewards, found = pong
    expected = []
    for before, after in itertools.pairwise(objects):
        both = before["ball visible"] and after["ball visible"]
        expected.append(float(both and before["ball dx"] > 0 > after["ball dx"]))
    assert [one["hits"] for one in found] == expected
    assert sum(expected) >= 3
    turned = [objects[t + 1]["ball x"] for t in range(len(expected)) if expected[t]]
    assert min(turned) > 100  # on the player's side of the court
    assert not any(expected[t] and rewards[t] for t in range(len(expected)))


def test_tracking_in_pong(pong: Any) -> None:
    def phi(state: dict[str, float]) -> float:
        coming = state["ball visible"] and state["ball dx"] > 0
        return -abs(state["ball below player"]) / 210 if coming else 0.0

    objects, _, found = pong
    expected = [GAMMA * phi(after) - phi(before) for before, after in itertools.pairwise(objects)]
    np.testing.assert_allclose([one["tracking"] for one in found], expected, atol=1e-9)
    assert np.count_nonzero(expected) > 100


def test_lanes_pay_the_same() -> None:
    """Where workers step without waiting, terms and wrappers of rewards run next to the envs."""
    terms = {"hits": {"shaper": "pong_hits"}, "shots": {"costs": {"FIRE": 0.5}}, "late": "step / 100"}
    settings = {"env.rewards": {"terms": terms}, "env.time_limit": 40, "env.n_workers": 2}
    config = resolve("ALE/Pong-v5:objects_deterministic_ppo", settings=settings).config.env
    told = []
    for way in ("inprocess", "workers"):
        with closing(make_envs(config.model_copy(update={"vectorization": way}), 4)) as envs:
            assert isinstance(envs, LanePool) == (way == "workers")
            row, steps = envs.new_row(), []
            envs.reset([1, 2, 3, 4], row)
            for t in range(90):
                ended = envs.step(np.array([(t + i) % 6 for i in range(4)]), row)
                steps.append((row.reward.tolist(), row.own_reward.tolist(), [(e.index, e.ret, e.infos) for e in ended]))  # type: ignore[union-attr]
            told.append(steps)
    assert told[0] == told[1]
    assert sum(len(ended) for _, _, ended in told[0]) == 8


DOOM = {
    "vizdoom_kills": ("KILLCOUNT", 1),
    "vizdoom_hits": ("HITCOUNT", 1),
    "vizdoom_damage": ("DAMAGECOUNT", 1),
    "vizdoom_items": ("ITEMCOUNT", 1),
    "vizdoom_health": ("HEALTH", 1),
    "vizdoom_damage_taken": ("DAMAGE_TAKEN", -1),
    "vizdoom_shots": ("SELECTED_WEAPON_AMMO", 1),
}
"""By shaper: the engine's own variable, and what one more of it pays."""


def test_events_in_doom() -> None:
    """Against the engine's variables, asked of the engine itself in every step of two lives in the round room."""
    import vizdoom

    terms = {name: {"shaper": name} for name in DOOM}
    with closing(made("VizdoomDefendCenter-v1:ppo", terms)) as envs:
        layer, row = terms_of(envs), envs.new_row()
        assert layer is not None
        envs.reset([2], row)
        bottom: Any = layer.inner
        game = bottom.envs[0].unwrapped._game
        variables = {name: getattr(vizdoom.GameVariable, variable) for name, (variable, _) in DOOM.items()}

        def now() -> dict[str, float]:
            return {name: game.get_game_variable(variable) for name, variable in variables.items()}

        sums, ended, before = dict.fromkeys(DOOM, 0.0), [], now()
        for t in range(200):
            ended = envs.step(np.array([4 if t % 5 == 0 else 1]), row)
            if ended:
                break
            after, found = now(), layer.latest()
            expected = {name: pays * (after[name] - before[name]) for name, (_, pays) in DOOM.items()}
            assert found == expected
            before = after
            for name, value in found.items():
                sums[name] += value
        assert sums["vizdoom_shots"] <= -15
        assert sums["vizdoom_kills"] >= 1
        assert sums["vizdoom_health"] < -50
        assert sums["vizdoom_damage_taken"] < -50


def test_every_shipped_shaper_is_tested_here() -> None:
    assert set(shapers.NAMES) == {*SCRIPTED, *DOOM, "count_bonus", "pong_hits", "pong_tracking"}


# ---- policy invariance ------------------------------------------------------------------------------------------------


def optimal(rewards: np.ndarray, transitions: np.ndarray, terminal: np.ndarray) -> np.ndarray:
    """Q* [S, A] by value iteration: rewards and probabilities [S, A, S′], and which (s, a, s′) end the episode."""
    q = np.zeros(rewards.shape[:2])
    for _ in range(4000):
        following = rewards + GAMMA * np.where(terminal, 0.0, q.max(1)[None, None, :])
        q = (transitions * following).sum(-1)
    return q


def frozen_lake() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slippery 4×4 FrozenLake: probabilities, rewards and ends [S, A, S′]."""
    table = gym.make("FrozenLake-v1").unwrapped.P  # type: ignore[attr-defined]
    probabilities, rewards, ends = (np.zeros((16, 4, 16)) for _ in range(3))
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for probability, following, reward, over in outcomes:
                probabilities[state, action, following] += probability
                rewards[state, action, following], ends[state, action, following] = reward, over
    return probabilities, rewards, ends.astype(bool)


def shaped(term: dict[str, Any], wanted: np.ndarray) -> np.ndarray:
    """What a term pays for every transition [S, A, S′], seen by playing until each of the wanted ones came."""
    settings = {"env.rewards": {"terms": {"it": term}, "discount": GAMMA, "own": 0}, "env.wrappers": []}
    config = resolve("FrozenLake-v1:ppo", settings={**settings, "env.vectorization": "inprocess"}).config
    found = np.full(wanted.shape, np.nan)
    with closing(make_envs(config.env, 16)) as envs:
        row, random = envs.new_row(), np.random.default_rng(0)
        envs.reset(list(range(16)), row)
        for _ in range(20_000):
            before, actions = np.array(row.obs), random.integers(0, 4, 16)
            finals = {episode.index: int(episode.final_obs) for episode in envs.step(actions, row)}
            after = [finals.get(i, int(now)) for i, now in enumerate(np.array(row.obs))]
            cut = row.truncated & ~row.terminated
            for i in np.flatnonzero(~cut):
                place = int(before[i]), int(actions[i]), after[i]
                assert np.isnan(found[place]) or found[place] == row.reward[i]
                found[place] = row.reward[i]
            if not np.isnan(found[wanted]).any():
                break
    assert not np.isnan(found[wanted]).any()
    return np.nan_to_num(found)


def test_a_potential_leaves_every_best_action_the_best() -> None:
    """Q* of the shaped lake is Q* − Φ, state by state (Ng, Harada, Russell 1999)."""
    probabilities, rewards, ends = frozen_lake()
    reachable = probabilities > 0
    reachable[ends.any(1).any(0) & (np.arange(16) > 0)] = False  # nobody acts in a terminal state
    plain = optimal(rewards, probabilities, ends)
    extra = shaped({"potential": "3 * sin(5 * obs) + obs / 4"}, reachable)
    states = np.flatnonzero(reachable.any((1, 2)))
    phi = 3 * np.sin(5 * states) + states / 4
    found = optimal(rewards + extra, probabilities, ends)
    np.testing.assert_allclose(found[states], plain[states] - phi[:, None], atol=1e-4)
    assert np.ptp(phi) > 10 * np.ptp(plain)  # the potential is no small thing


def test_another_term_does_change_it() -> None:
    """Otherwise the test above would prove nothing: the same function paid as it is."""
    probabilities, rewards, ends = frozen_lake()
    reachable = probabilities > 0
    reachable[ends.any(1).any(0) & (np.arange(16) > 0)] = False
    plain = optimal(rewards, probabilities, ends)
    found = optimal(rewards + shaped({"expression": "3 * sin(5 * obs) + obs / 4"}, reachable), probabilities, ends)
    states = np.flatnonzero(reachable.any((1, 2)))
    assert (plain[states].argmax(1) != found[states].argmax(1)).any()

"""The spec of every shipped env file against the env itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from optimal import optimal_return
from ruamel.yaml import YAML

from gymnast.config.load import resolve
from gymnast.config.schema import EnvConfig
from gymnast.config.spec import Component, EnvSpec
from gymnast.envs.make import make_one
from gymnast.envs.registry import env_spec
from gymnast.envs.spaces import canonical
from gymnast.evaluation.exact import exact_return, tabular_model

PRESETS = files("gymnast") / "presets"
NAMES = sorted(path.name.removesuffix(".yaml") for path in (PRESETS / "envs").iterdir() if path.name.endswith(".yaml"))

# Episodes of a fresh sample and the standard deviation of a random episode's return, from the runs behind random_score.
# The sample's own deviation would not do: ten random Acrobot episodes are mostly ten times -500.
RANDOM = {
    "Acrobot-v1": (10, 11.8),
    "Ant-v5": (4, 92.3),
    "BipedalWalker-v3": (4, 15.2),
    "Blackjack-v1": (3000, 0.895),
    "CartPole-v1": (200, 12.0),
    "CliffWalking-v1": (10, 68_000.0),
    "FrozenLake-v1": (2000, 0.117),
    "HalfCheetah-v5": (2, 77.9),
    "Hopper-v5": (50, 17.4),
    "LunarLander-v3": (25, 108.8),
    "MinAtar_Asterix-v1": (50, 0.863),
    "MinAtar_Breakout-v1": (300, 0.649),
    "MinAtar_Freeway-v1": (2, 0.602),
    "MinAtar_Seaquest-v1": (100, 0.38),
    "MinAtar_SpaceInvaders-v1": (50, 3.35),
    "MiniGrid-DoorKey-5x5-v0": (10, 0.105),
    "MiniGrid-DoorKey-6x6-v0": (5, 0.0906),
    "MiniGrid-DoorKey-8x8-v0": (2, 0.0516),
    "MiniGrid-Empty-16x16-v0": (2, 0.141),
    "MiniGrid-Empty-5x5-v0": (20, 0.273),
    "MiniGrid-Empty-8x8-v0": (10, 0.19),
    "MiniGrid-FourRooms-v0": (20, 0.104),
    "MountainCar-v0": (12, 0.0),
    "MountainCarContinuous-v0": (4, 3.4),
    "Pendulum-v1": (15, 290.0),
    "Taxi-v4": (20, 106.6),
    "Walker2d-v5": (50, 6.24),
}
TESTED = sorted(RANDOM)


@cache
def load(name: str) -> dict[str, Any]:
    return YAML(typ="rt").load((PRESETS / "envs" / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def spec_of(name: str) -> EnvSpec:
    return EnvSpec.model_validate(load(name)["spec"])


def make(name: str, **kwargs: Any) -> gym.Env:
    """The env of a file, as runs make it; MiniGrid's cells as the numbers that its spec names."""
    if name.startswith("MiniGrid"):
        kwargs.setdefault("encoding", "raw")
    return make_one(EnvConfig(id=load(name)["id"], kwargs=kwargs))


@cache
def random_episodes(name: str) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Values of each component, rewards `[steps]` and returns `[episodes]` of at least 2,000 random steps."""
    env = make(name)
    env.action_space.seed(11)
    rng = np.random.default_rng(11)
    draw = (lambda: int(rng.integers(env.action_space.n))) if spec_of(name).actions else env.action_space.sample
    observations, rewards, returns = [], [], []
    env.reset(seed=11)
    while len(returns) < RANDOM[name][0] or len(rewards) < 2000:
        obs, _ = env.reset()
        observations.append(obs)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(draw())
            observations.append(obs)
            rewards.append(reward)
            total += reward
            over = terminated or truncated
        returns.append(total)
    return components(observations, env.observation_space), np.array(rewards), np.array(returns)


def components(observations: list[Any], space: spaces.Space) -> list[np.ndarray]:
    """One array of values per component: numbers of a vector, planes of a picture, parts of a Dict."""
    if isinstance(space, spaces.Dict):
        parts = [components([obs[key] for obs in observations], part) for key, part in space.spaces.items()]
        return [values for part in parts for values in part]
    values = np.array(observations, np.float64)
    if values.ndim == 4:
        return list(np.moveaxis(values, -1, 0))
    return list(values.reshape(len(values), -1).T)


def inside(values: np.ndarray, low: float | None, high: float | None) -> bool:
    slack = 1e-5  # bounds are written with seven digits, observations are float32
    return (low is None or values.min() >= low - slack) and (high is None or values.max() <= high + slack)


def within_bounds(parts: list[Component], box: spaces.Box) -> None:
    """The spec's ranges lie in the space's; they may be narrower where the env promises more than its space says."""
    low = np.array([-np.inf if part.low is None else part.low for part in parts])
    high = np.array([np.inf if part.high is None else part.high for part in parts])
    planes = len(box.shape) == 3
    assert len(parts) == (box.shape[-1] if planes else int(np.prod(box.shape)))
    box_low, box_high = (bound.reshape(-1, len(parts)).astype(float) for bound in (box.low, box.high))
    assert (low >= box_low.min(0) - 1e-5).all() and (high <= box_high.max(0) + 1e-5).all()
    assert (low < high).all()


def test_every_file_is_tested():
    # test_bandits, test_atari_specs, test_vizdoom_specs
    elsewhere = {name for name in NAMES if name.startswith(("gymnast_", "ALE_", "Vizdoom"))}
    assert set(NAMES) - elsewhere == set(RANDOM)


@pytest.mark.parametrize("name", NAMES)
def test_file_is_well_formed(name):
    raw = load(name)
    assert raw["id"].replace("/", "_") == name
    assert set(raw) <= {"id", "aliases", "extends", "spec", "defaults", "variants"}
    assert "extends" not in raw or (PRESETS / "bases" / f"{raw['extends']}.yaml").is_file()
    spec = spec_of(name)
    assert spec.description and spec.notes and spec.solved_source and spec.random_score
    assert bool(spec.actions) != bool(spec.action_components)
    scores = [spec.random_score, spec.optimal_score, spec.best_published, *spec.reference_scores.values()]
    assert all(score.source for score in scores if score is not None)
    assert all(score.protocol for score in spec.reference_scores.values())


@pytest.mark.parametrize("name", TESTED)
def test_spec_matches_the_spaces(name):
    spec, env = spec_of(name), make(name)
    if isinstance(env.action_space, spaces.Discrete):
        assert len(spec.actions) == len(set(spec.actions)) == env.action_space.n
    else:
        within_bounds(spec.action_components, env.action_space)
    space = canonical(env.observation_space)
    assert len({part.name for part in spec.observation}) == len(spec.observation)
    if isinstance(space, spaces.Box):
        within_bounds(spec.observation, space)
        return
    if isinstance(space, spaces.Dict):
        direction, *cell = spec.observation
        assert len(direction.values) == space["direction"].n
        within_bounds(cell, space["image"])
        return
    sizes = [int(space.n)] if isinstance(space, spaces.Discrete) else space.nvec.tolist()
    assert len(spec.observation) == len(sizes)
    for part, size in zip(spec.observation, sizes):
        assert 0 <= part.low < part.high <= size - 1
        assert len(part.values) in (0, size)


@pytest.mark.parametrize("name", TESTED)
def test_horizon_and_threshold_are_the_registered_ones(name):
    spec, registered = spec_of(name), env_spec(load(name)["id"])
    own = getattr(make(name).unwrapped, "max_steps", None)  # MiniGrid cuts off by itself
    assert spec.horizon == (registered.max_episode_steps or own)
    if "registered in Gymnasium" in spec.solved_source:
        assert spec.solved_at == registered.reward_threshold
    else:
        assert registered.reward_threshold is None or name == "Taxi-v4"


@pytest.mark.parametrize("name", TESTED)
def test_aliases_are_former_versions_and_lead_here(name):
    for alias in load(name).get("aliases", []):
        former, _, version = alias.rpartition("-v")
        current, _, newest = name.rpartition("-v")
        assert former == current and int(version) < int(newest)
        resolved = resolve(alias)
        assert resolved.config.env.id == name
        assert [alias in notice and name in notice for notice in resolved.notices] == [True]


@pytest.mark.parametrize("name", TESTED)
def test_random_play_stays_inside_the_ranges(name):
    spec = spec_of(name)
    values, rewards, returns = random_episodes(name)
    assert len(rewards) >= 2000 and len(values) == len(spec.observation)
    for part, seen in zip(spec.observation, values):
        assert inside(seen, part.low, part.high), part.name
    assert inside(rewards, *spec.reward_range)
    assert inside(returns, *spec.return_range)


@pytest.mark.parametrize("name", TESTED)
def test_random_score_fits_a_fresh_sample(name):
    _, _, returns = random_episodes(name)
    standard_error = RANDOM[name][1] / np.sqrt(len(returns))
    assert abs(returns.mean() - spec_of(name).random_score.score) <= 5 * standard_error


@pytest.mark.parametrize("name", TESTED)
def test_scores_are_in_order(name):
    spec = spec_of(name)
    low, high = spec.return_range
    best = high if spec.optimal_score is None else spec.optimal_score.score
    order = [low, spec.random_score.score, spec.solved_at, best, high]
    known = [score for score in order if score is not None]
    assert known == sorted(known) and spec.random_score.score < (spec.solved_at or np.inf)
    published = [spec.best_published, *spec.reference_scores.values()]
    assert all(inside(np.array([score.score]), low, high) for score in published if score)


@pytest.mark.parametrize("name", TESTED)
def test_every_variant_resolves_with_its_own_spec(name):
    for variant in load(name)["variants"]:
        config = resolve(f"{load(name)['id']}:{variant}").config
        spec, env = config.spec, make_one(config.env)
        assert bool(spec.actions) == isinstance(env.action_space, spaces.Discrete), variant
        if spec.action_components:
            within_bounds(spec.action_components, env.action_space)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_tabular_scores_are_exact(name):
    model, spec = tabular_model(make(name)), spec_of(name)
    assert model is not None
    optimum, actions = optimal_return(model.P, model.initial_distribution, model.horizon)
    assert spec.optimal_score.score == pytest.approx(optimum, abs=1e-5)
    policy = np.full(model.P.probability.shape[:2], 1 / model.P.probability.shape[1])
    random = exact_return(model.P, model.initial_distribution, policy, model.horizon)
    assert spec.random_score.score == pytest.approx(random, rel=1e-4)
    # The largest return is that of the luckiest start; FrozenLake's is won or lost.
    if name != "FrozenLake-v1":
        states = np.eye(len(model.initial_distribution))[model.initial_distribution > 0]
        table = np.eye(policy.shape[1])[actions]
        best = max(exact_return(model.P, state, table, model.horizon) for state in states)
        assert spec.return_range[1] == pytest.approx(best)


MOVES = {"up": (-1, 0), "down": (1, 0), "north": (-1, 0), "south": (1, 0)}
MOVES |= {"left": (0, -1), "right": (0, 1), "west": (0, -1), "east": (0, 1)}


@pytest.mark.parametrize(
    ("name", "kwargs", "columns", "middle", "cell"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, 4, 9, lambda state: state),
        ("CliffWalking-v1", {}, 12, 17, lambda state: state),
        ("Taxi-v4", {}, 5, 12 * 20, lambda state: state // 20),
    ],
)
def test_labels_of_grid_moves_are_in_order(name, kwargs, columns, middle, cell):
    table = gym.make(name, **kwargs).unwrapped.P
    row, column = divmod(cell(middle), columns)
    for action, label in enumerate(spec_of(name).actions):
        if label in MOVES:
            _, next_state, _, _ = table[middle][action][0]
            assert divmod(int(cell(next_state)), columns) == (row + MOVES[label][0], column + MOVES[label][1]), label


def test_labels_of_the_other_actions_are_in_order():
    taxi = gym.make("Taxi-v4").unwrapped
    actions = spec_of("Taxi-v4").actions
    waiting, riding = taxi.encode(0, 0, 0, 1), taxi.encode(0, 4, 4, 1)
    assert taxi.P[waiting][actions.index("pick up")][0][1] == taxi.encode(0, 0, 4, 1)
    assert taxi.P[riding][actions.index("drop off")][0][2:] == (20, True)
    blackjack = gym.make("Blackjack-v1")
    blackjack.reset(seed=0)
    assert blackjack.step(spec_of("Blackjack-v1").actions.index("stick"))[2]
    for name, velocity, labels in [
        ("CartPole-v1", 1, ["push left", "push right"]),
        ("MountainCar-v0", 1, ["push left", "coast", "push right"]),
        ("Acrobot-v1", 5, ["torque -1", "no torque", "torque +1"]),
    ]:
        env, changes = gym.make(name), []
        for label in labels:
            env.reset(seed=0)
            changes.append(env.step(spec_of(name).actions.index(label))[0][velocity])
        assert changes == sorted(changes) and len(set(changes)) == len(labels)


def test_labels_of_the_lander_are_in_order():
    spec, env = spec_of("LunarLander-v3"), make("LunarLander-v3")
    after = {}
    for action, label in enumerate(spec.actions):
        env.reset(seed=0)
        after[label] = [env.step(action)[0] for _ in range(10)][-1]
    assert after["main engine"][3] > after["no engine"][3] + 0.1
    sideways = [after[label][2] for label in ("left engine", "no engine", "right engine")]
    assert sideways == sorted(sideways)
    legs = [leg.position.x - env.unwrapped.lander.position.x for leg in env.unwrapped.legs]
    assert [part.name.split()[0] for part in spec.observation[6:]] == ["right" if x > 0 else "left" for x in legs]


JOINTS = {"b": "back", "f": "front", "right": "right", "left": "left"}
ANT_LEGS = {"1": "front left", "2": "front right", "3": "back left", "4": "back right"}


def joint_label(name: str, joint: str) -> str:
    """The words for a joint's name in the model file."""
    if name == "Ant-v5":
        kind, _, leg = joint.partition("_")
        return f"{ANT_LEGS[leg]} {kind}"
    if name == "HalfCheetah-v5":
        return f"{JOINTS[joint[0]]} {joint[1:]}"
    part = joint.removesuffix("_joint")
    if name == "Hopper-v5":
        return part
    return f"left {part.removesuffix('_left')}" if part.endswith("_left") else f"right {part}"


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"])
def test_mujoco_labels_follow_the_model(name):
    spec, model = spec_of(name), make(name).unwrapped.model
    for index, part in enumerate(spec.action_components):
        joint = model.joint(int(model.actuator_trnid[index][0])).name
        assert part.name == f"torque of the {joint_label(name, joint)}"
        assert part.unit == f"{model.actuator_gear[index][0]:g} N m"
    hinges = [joint_label(name, model.joint(i).name) for i in range(model.njnt) if "root" not in model.joint(i).name]
    names = [part.name for part in spec.observation]
    for kind in ("angle", "angular velocity"):
        first = names.index(f"{hinges[0]} {kind}")
        assert names[first : first + len(hinges)] == [f"{hinge} {kind}" for hinge in hinges]


def test_contacts_of_the_ant_are_torque_then_force():
    env = make("Ant-v5")
    env.reset(seed=0)
    for _ in range(100):
        env.step(np.zeros(8, np.float32))
    total = env.unwrapped.data.cfrc_ext[1:].sum(0)
    weight = 9.81 * env.unwrapped.model.body_mass.sum()
    parts = [part.name.split(", ")[1] for part in spec_of("Ant-v5").observation[27:33]]
    assert parts[int(np.argmin(abs(total - weight)))] == "force z"


def test_labels_of_minatar_are_those_of_the_package():
    words = {"n": "no-op", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}
    for name in TESTED:
        if name.startswith("MinAtar"):
            env = make(name).unwrapped
            labels = [words[env.game.env.action_map[action]] for action in env.action_set]
            assert labels == spec_of(name).actions
            assert len(env.game.env.channels) == len(spec_of(name).observation)


def test_labels_of_minigrid_are_those_of_the_package():
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

    spec = spec_of("MiniGrid-DoorKey-5x5-v0")
    env = make("MiniGrid-DoorKey-5x5-v0")
    short = [action.name for action in env.unwrapped.actions]
    assert [label.replace("turn ", "").replace(" ", "") for label in spec.actions] == short
    values = [part.values for part in spec.observation]
    assert values[1:] == [list(table) for table in (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX)]
    planes = make("MiniGrid-DoorKey-5x5-v0", encoding="one_hot").observation_space["image"]
    assert planes.shape[-1] == sum(map(len, values[1:]))


def test_blackjack_scores_are_exact():
    assert gym.spec("Blackjack-v1").kwargs == {"sab": True, "natural": False}
    spec = spec_of("Blackjack-v1")
    model = tabular_model(make("Blackjack-v1"))
    table, start, seen, horizon = model.P, model.initial_distribution, model.observations, model.horizon
    optimum, actions = optimal_return(table, start, horizon)
    assert spec.optimal_score.score == pytest.approx(optimum, abs=1e-5)
    random = exact_return(table, start, np.full((len(start), 2), 0.5), horizon)
    assert spec.random_score.score == pytest.approx(random, abs=1e-5)

    def rule(hard: int, soft: int) -> float:
        hits = [int(total < (soft if ace else hard)) for total, _, ace in seen]
        return exact_return(table, start, np.eye(2)[hits], horizon)

    blind = max(rule(hard, soft) for hard in range(12, 19) for soft in range(16, 20))
    assert blind == pytest.approx(-0.0606, abs=1e-4)
    assert blind < spec.solved_at < optimum

    env = gym.make("Blackjack-v1", disable_env_checker=True)
    env.reset(seed=5)
    number = {tuple(obs): state for state, obs in enumerate(seen.tolist()) if state % 2 == 0}  # odd ones are naturals
    returns = []
    for _ in range(20_000):
        obs, _ = env.reset()
        over = False
        while not over:
            obs, reward, over, _, _ = env.step(int(actions[0][number[obs]]) if obs[0] < 21 else 0)
        returns.append(reward)
    assert abs(np.mean(returns) - optimum) < 4 * np.std(returns) / np.sqrt(len(returns))


def test_blackjack_notes_name_the_other_rules():
    for kwargs, score in (({"sab": False}, -0.0466), ({"sab": False, "natural": True}, -0.0257)):
        model = tabular_model(gym.make("Blackjack-v1", **kwargs))
        optimum, _ = optimal_return(model.P, model.initial_distribution, model.horizon)
        assert optimum == pytest.approx(score, abs=1e-4)
        assert str(score) in spec_of("Blackjack-v1").notes

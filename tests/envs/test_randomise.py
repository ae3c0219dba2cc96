"""Parameters drawn for every episode: against plain Gymnasium, across ways to step, and in the middle of an episode."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.box2d import lunar_lander

from gymnast.config.load import resolve
from gymnast.config.randomise import Between, Choices
from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError
from gymnast.evaluation.by_parameter import by_parameter
from gymnast.runs.trust import code_in
from gymnast.service.env_card import env_card

LANDER = {
    "gravity": [-12, -8],
    "wind_power": [0, 10],
    "turbulence_power": [0, 1],
    "engine_power": [0.85, 1.15],
    "initial_push": [0.5, 1.5],
}


def config(env_id: str, randomise: dict[str, Any], **env: Any) -> EnvConfig:
    """An env section without wrappers."""
    return EnvConfig.model_validate({"id": env_id, "randomise": randomise, "vectorization": "inprocess", **env})


def play(envs: VectorEnv, steps: int, *, begin: bool = True, first: int = 0) -> list[Any]:
    """Rewards, observations and ends under actions that depend on the step alone."""
    row, told = envs.new_row(), []
    if begin:
        envs.reset(list(range(envs.n_envs)), row)
    for t in range(first, first + steps):
        random = np.random.default_rng(t)
        space = envs.action_space
        if isinstance(space, spaces.Discrete):
            actions = random.integers(0, space.n, envs.n_envs)
        else:
            actions = random.uniform(-1, 1, (envs.n_envs, *space.shape)).astype(np.float32)  # type: ignore[misc]
        ended = envs.step(actions, row)
        told.append((row.reward.tolist(), np.array(row.obs).tolist(), [(e.index, e.ret, e.infos) for e in ended]))
    return told


def drawn_in(told: list[Any]) -> list[tuple[int, dict[str, Any]]]:
    """Slot and parameters of every episode that ended."""
    return [(index, infos["parameters"]) for _, _, ended in told for index, _, infos in ended]


def test_every_episode_of_every_slot_has_its_own() -> None:
    randomise = {"length": [0.3, 0.9], "force_mag": {"choices": [8, 10, 12]}, "gravity": 9}
    with closing(make_envs(config("CartPole-v1", randomise), 4)) as envs:
        episodes = drawn_in(play(envs, 600))
    assert len(episodes) > 60
    lengths = [one["length"] for _, one in episodes]
    assert len(set(lengths)) == len(lengths)
    assert 0.3 <= min(lengths) < 0.4
    assert 0.8 < max(lengths) <= 0.9
    assert {one["force_mag"] for _, one in episodes} == {8, 10, 12}
    assert {one["gravity"] for _, one in episodes} == {9}
    assert len({slot for slot, _ in episodes}) == 4


def test_the_lander_under_drawn_parameters_is_gymnasiums_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same arguments and, for engines and push, constants changed in the package itself."""
    actions = np.random.default_rng(0).integers(0, 4, 60)
    env = make_one(config("LunarLander-v3", LANDER))
    obs, info = env.reset(seed=11)
    drawn = info["parameters"]
    found = [obs, *[env.step(action)[0] for action in actions]]
    env.close()

    plain = gym.make(
        "LunarLander-v3",
        gravity=drawn["gravity"],
        enable_wind=True,
        wind_power=drawn["wind_power"],
        turbulence_power=drawn["turbulence_power"],
    )
    for constant, factor in (
        ("MAIN_ENGINE_POWER", "engine_power"),
        ("SIDE_ENGINE_POWER", "engine_power"),
        ("INITIAL_RANDOM", "initial_push"),
    ):
        monkeypatch.setattr(lunar_lander, constant, getattr(lunar_lander, constant) * drawn[factor])
    expected = [plain.reset(seed=11)[0], *[plain.step(action)[0] for action in actions]]
    plain.close()
    np.testing.assert_array_equal(found, expected)


def test_landers_of_one_process_do_not_share_their_engines() -> None:
    """Gymnasium keeps the power of engines in its module."""
    with closing(make_envs(config("LunarLander-v3", {"engine_power": [0.5, 2]}), 3)) as envs:
        together = play(envs, 30)
        push = lunar_lander.MAIN_ENGINE_POWER
    for slot in range(3):
        with closing(make_envs(config("LunarLander-v3", {"engine_power": [0.5, 2]}), 1)) as envs:
            row = envs.new_row()
            envs.reset([slot], row)
            for t, (_, observations, _) in enumerate(together):
                envs.step(np.random.default_rng(t).integers(0, 4, 3)[slot : slot + 1], row)
                assert np.array(row.obs)[0].tolist() == observations[slot]
    assert push == 13.0


def test_a_cart_under_drawn_parameters_is_gymnasiums_own() -> None:
    """What the env computes from its parameters when it is made follows them."""
    env = make_one(config("CartPole-v1", {"masspole": [0.3, 0.5], "length": [0.8, 0.9], "masscart": [2, 3]}))
    obs, info = env.reset(seed=4)
    found = [obs, *[env.step(t % 2)[0] for t in range(20)]]
    plain: Any = gym.make("CartPole-v1").unwrapped
    drawn = info["parameters"]
    plain.masspole, plain.length, plain.masscart = drawn["masspole"], drawn["length"], drawn["masscart"]
    plain.total_mass, plain.polemass_length = plain.masspole + plain.masscart, plain.masspole * plain.length
    expected = [plain.reset(seed=4)[0], *[plain.step(t % 2)[0] for t in range(20)]]
    np.testing.assert_array_equal(found, expected)


KINDS: dict[str, EnvConfig] = {
    "snapshot": config("CartPole-v1", {"length": [0.3, 1], "observation_noise": [0, 0.01], "action_noise": [0, 0.2]}),
    "replay": config("LunarLander-v3", {**LANDER, "observation_noise": [0, 0.1], "action_noise": [0, 0.2]}),
    "an env per episode": config("FrozenLake-v1", {"is_slippery": {"choices": [True, False]}}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_resume_in_mid_episode_is_exact(kind: str) -> None:
    """Also with workers in place of this process: parameters are the slot's own."""
    made = KINDS[kind]
    with closing(make_envs(made, 3)) as envs:
        assert envs.exact_resume == ("snapshot" if kind == "snapshot" else "replay")
        play(envs, 90)
        state = envs.save_state()
        expected = play(envs, 90, begin=False, first=90)
    assert drawn_in(expected)
    for way in ({"vectorization": "inprocess"}, {"vectorization": "workers", "n_workers": 2}):
        with closing(make_envs(made.model_copy(update=way), 3)) as envs:
            play(envs, 7)
            envs.load_state(state)
            assert play(envs, 90, begin=False, first=90) == expected


def test_envs_are_stepped_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnast.envs.parity.installed_version", lambda: "1.2.5")
    for env_id, parameter in (("CartPole-v1", "length"), ("LunarLander-v3", "gravity")):
        made = config(env_id, {parameter: -9.0 if parameter == "gravity" else 0.7}, vectorization="auto")
        kind, _ = choose_vectorization(made)
        assert kind in ("inprocess", "workers")
        assert choose_vectorization(made.model_copy(update={"randomise": {}}))[0] in ("native", "envpool")


def test_difficulty_shrinks_ranges_towards_the_usual_env() -> None:
    usual, half = (
        config("LunarLander-v3", {"gravity": [-12, -8], "engine_power": [0.5, 1.5]}, randomise_difficulty=share)
        for share in (0.0, 0.5)
    )
    with closing(make_envs(usual, 2)) as envs:
        told = play(envs, 150)
    assert {tuple(one.values()) for _, one in drawn_in(told)} == {(-10.0, 1.0)}
    with closing(make_envs(config("LunarLander-v3", {}), 2)) as envs:
        plain = play(envs, 150)
    assert [step[:2] for step in told] == [step[:2] for step in plain]
    with closing(make_envs(half, 2)) as envs:
        found = [one for _, one in drawn_in(play(envs, 1500))]
    assert len(found) > 15
    assert all(-11 <= one["gravity"] <= -9 and 0.75 <= one["engine_power"] <= 1.25 for one in found)
    assert max(one["gravity"] for one in found) - min(one["gravity"] for one in found) > 1


def test_noise_of_a_drawn_size() -> None:
    env = make_one(config("CartPole-v1", {"observation_noise": 0.5, "action_noise": 1.0}))
    env.reset(seed=0)
    differences, executed = [], set()
    for _ in range(40):
        obs, _, terminated, _, _ = env.step(1)
        differences.append(obs - np.array(env.unwrapped.state, np.float32))  # type: ignore[attr-defined]
        executed.add(env.env.env.given[0] if hasattr(env.env.env, "given") else None)  # type: ignore[attr-defined]
        if terminated:
            env.reset()
    assert 0.4 < np.std(np.array(differences)[:, [1, 3]]) < 0.6
    assert executed == {0, 1}


class Ramp(gym.Env):
    """A user's env that reads an attribute in `reset`."""

    observation_space = spaces.Box(-9, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, steps: int = 3) -> None:
        self.slope, self.steps = 1, steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.array([self.slope], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return np.array([self.slope], np.float32), float(self.slope), self.t >= self.steps, False, {}


def test_attributes_and_arguments_of_an_env_of_ones_own() -> None:
    """Whole numbers stay whole, where the env has a whole number."""
    gym.register("Ramp-v0", Ramp)
    try:
        with closing(make_envs(config("Ramp-v0", {"slope": [1, 3]}), 2)) as envs:
            told = play(envs, 60)
        with pytest.raises(ConfigError, match=r"Ramp has no parameter 'slop'\. Did you mean 'slope'\?"):
            make_envs(config("Ramp-v0", {"slop": 1}), 1)
    finally:
        del gym.registry["Ramp-v0"]
    slopes = [one["slope"] for _, one in drawn_in(told)]
    assert {type(slope) for slope in slopes} == {int}
    assert set(slopes) == {1, 2, 3}
    assert all(ret == 3 * infos["parameters"]["slope"] for _, _, ended in told for _, ret, infos in ended)


@pytest.mark.parametrize(
    ("randomise", "sentence"),
    [
        (
            {"gravty": [-12, -8]},
            r"LunarLander has no parameter 'gravty'\. Did you mean 'gravity'\? Parameters: action_noise",
        ),
        ({"gravity": [-20, -8]}, r"env\.randomise\.gravity \(in m/s²\) is -12 to -0\.1, so it cannot be -20\."),
        ({"gravity": "low"}, r"env\.randomise\.gravity \(in m/s²\) is -10\.0 and cannot be 'low'"),
        ({"observation_noise": -1}, r"is at least 0, so it cannot be -1"),
        ({"continuous": {"choices": [True]}}, r"other observations or actions, which one policy cannot serve"),
    ],
)
def test_what_cannot_be_drawn(randomise: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make_one(config("LunarLander-v3", randomise)).reset(seed=0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gravity: [-8, -12]", "the lowest number of a range comes first"),
        ("gravity: [1, 2, 3]", "a range .lowest, highest., one value, or {choices: .*} is needed"),
        ("gravity: {choices: []}", "at least 1 item"),
    ],
)
def test_what_is_no_range(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"'env\.randomise\.gravity.*{sentence}"):
        resolve("LunarLander-v3:ppo", [f"env.randomise={{{text}}}"])


def test_files_among_the_values_are_asked_about() -> None:
    section = config("FrozenLake-v1", {"map_name": {"choices": ["../../secret"]}}).model_dump(mode="json")
    assert [(code.key, code.value) for code in code_in({"env": section})] == [
        ("env.randomise.map_name.choices", "../../secret")
    ]


def test_returns_by_parameter() -> None:
    randomise = {
        "gravity": Between(low=-12, high=-8),
        "map": Choices(choices=["a", "b"]),
        "same": Choices(choices=[2.0]),
    }
    drawn = [
        {"gravity": g, "map": m, "same": 2.0}
        for g, m in ((-12, "a"), (-11.3, "b"), (-11.1, "a"), (-8, "b"), (-8.1, "b"))
    ]
    parts = by_parameter(randomise, drawn, [10, 20, 30, 40, 60])
    assert [(part.label, part.episodes, part.mean) for part in parts] == [
        ("-12 … -11.2", 2, 15),
        ("-11.2 … -10.4", 1, 30),
        ("-10.4 … -9.6", 0, None),
        ("-9.6 … -8.8", 0, None),
        ("-8.8 … -8", 2, 50),
        ("a", 2, 20),
        ("b", 3, 40),
        ("2", 5, 32),
    ]
    assert (parts[0].std, parts[0].metric) == (5, "eval/return_by/gravity_-12_to_-11.2")


def test_gravity_of_a_simulator_is_restored_too() -> None:
    """MuJoCo's parameters are in its model, which a snapshot does not hold."""
    made = config("Hopper-v5", {"gravity": [-15, -5]})
    with closing(make_envs(made, 2)) as envs:
        assert envs.exact_resume == "snapshot"
        play(envs, 45)
        state = envs.save_state()
        expected = play(envs, 60, begin=False, first=45)
    assert len({one["gravity"] for _, one in drawn_in(expected)}) == 2
    with closing(make_envs(made, 2)) as envs:
        play(envs, 20)
        envs.load_state(state)
        assert play(envs, 60, begin=False, first=45) == expected


def test_the_card_of_an_env_says_what_can_be_drawn() -> None:
    """And what a variant draws and learns from; no name of it leads nowhere."""
    card = env_card("LunarLander-v3")
    assert list(card.parameters) == list(LANDER)
    for name in card.parameters:
        make_one(config("LunarLander-v3", {name: -9 if name == "gravity" else 1})).close()
    drawn, terms = (
        env_card("LunarLander-v3:randomised_ppo").randomised,
        env_card("CartPole-v1:centred_ppo").reward_terms,
    )
    assert drawn["gravity"] == "-12 … -8"
    assert terms == {"centre": "4 × cartpole_centring"}


def test_how_hard_doom_is_differs_by_episode() -> None:
    with closing(make_envs(config("VizdoomBasic-v1", {"doom_skill": [1, 5]}, time_limit=4), 2)) as envs:
        row, skills = envs.new_row(), set()
        envs.reset([1, 2], row)
        bottom: Any = envs
        for _ in range(24):
            for episode in envs.step(np.zeros(2, np.int64), row):
                skills.add(episode.infos["parameters"]["doom_skill"])
            for env in bottom.envs:
                assert env.unwrapped._engine._skill == env.unwrapped.doom_skill  # what the engine was told
    assert len(skills) >= 3
    assert skills <= {1, 2, 3, 4, 5}

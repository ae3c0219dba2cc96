"""Terms of the reward around every kind of vector env: what is paid, what is counted, what is saved."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv
from gymnasium import spaces

from gymnast.config.load import from_saved, resolve
from gymnast.config.rewards import Names, RewardsConfig
from gymnast.config.schema import RunConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.rewards.vector import RewardTerms, terms_of
from gymnast.envs.vector import VectorEnv
from gymnast.errors import EnvError
from gymnast.runs.trust import code_in

TERMS = {
    "centre": {"shaper": "cartpole_centring", "weight": 0.5},
    "calm": {"potential": "-abs(pole_angle)", "weight": 2.0},
    "left": {"costs": {"push left": 0.25}},
    "late": "step > 10",
    "new": {"shaper": "count_bonus", "components": ["cart position", "pole angle"], "bins": 4},
}


def config(reference: str = "CartPole-v1:ppo", **env: Any) -> RunConfig:
    """A preset with some settings of its env."""
    return resolve(reference, settings={f"env.{key}": value for key, value in env.items()}).config


def play(envs: VectorEnv, steps: int, *, begin: bool = True, first: int = 0) -> list[Any]:
    """What rows and ended episodes say under actions that depend on the step alone."""
    row, told = envs.new_row(), []
    if begin:
        envs.reset(list(range(envs.n_envs)), row)
    for t in range(first, first + steps):
        actions = np.random.default_rng(t).integers(0, 2, envs.n_envs)
        ended = envs.step(actions, row)
        own = row.reward if row.own_reward is None else row.own_reward
        told.append((row.reward.tolist(), own.tolist(), [(one.index, one.ret, one.infos) for one in ended]))
    return told


WAYS: dict[str, dict[str, Any]] = {
    "native": {"vectorization": "native"},
    "workers": {"vectorization": "workers", "n_workers": 2},
    "EnvPool's form": {"vectorization": "envpool"},
}


@pytest.mark.parametrize("way", WAYS)
def test_terms_do_not_depend_on_who_steps_the_envs(way: str) -> None:
    """The same bits everywhere; EnvPool plays other episodes, whose own rewards are counted the same."""
    made = config(rewards={"terms": TERMS, "own": 0.5}).env
    with closing(make_envs(made.model_copy(update={"vectorization": "inprocess"}), 3)) as envs:
        expected = play(envs, 60)
    with closing(make_envs(made.model_copy(update=WAYS[way]), 3)) as envs:
        found = play(envs, 60)
    if way == "EnvPool's form":
        assert {own for _, step, _ in found for own in step} == {1.0}
    else:
        assert found == expected
    ended = [one for _, _, step in found for one in step]
    assert ended
    assert all(list(infos["reward_terms"]) == list(TERMS) for _, _, infos in ended)
    assert all(ret == int(ret) for _, ret, _ in ended)  # a point per step: no term is in it


def test_what_is_learned_from_is_the_sum_and_scores_are_the_envs_own() -> None:
    made = config(rewards={"terms": TERMS, "own": 0.5}, vectorization="inprocess").env
    with closing(make_envs(made, 2)) as envs:
        layer = terms_of(envs)
        assert layer is not None
        row = envs.new_row()
        envs.reset([3, 4], row)
        sums = np.zeros((len(TERMS), 2))
        finished = 0
        for t in range(50):
            ended = envs.step(np.array([t % 2, 0]), row)
            assert row.own_reward is not None
            assert row.own_reward.tolist() == [1, 1]
            np.testing.assert_allclose(row.reward, 0.5 + layer.paid.sum(0), rtol=1e-6)
            sums += layer.paid
            for episode in ended:
                slot = episode.index
                assert episode.ret == episode.length
                np.testing.assert_allclose(list(episode.infos["reward_terms"].values()), sums[:, slot], rtol=1e-12)
                sums[:, slot] = 0
                finished += 1
        assert finished >= 3


def around(rewards: dict[str, Any], n_envs: int = 2, observation: int = 3) -> RewardTerms:
    """Terms around the scripted env."""
    section = RewardsConfig.model_validate(rewards)
    section.learn_names(Names(gamma=0.9, observation=()))
    return RewardTerms(InProcessVector(CounterEnv, n_envs), section)


def test_a_potential_at_the_ends_of_episodes() -> None:
    """Φ of a terminal state is 0; the final state of a truncated episode keeps its own, and the next reset's is not in it.

    The counter's second number is how many steps were made, and -length at the end.
    """
    envs = around({"own": 0, "terms": {"phi": {"potential": "obs[1]"}}}, 1)
    row = envs.new_row()
    envs.reset([0], row)  # lengths 3 (terminated), 1 (truncated), 5 (terminated), 2 (truncated)
    paid = []
    for _ in range(11):
        envs.step(np.zeros(1, np.int64), row)
        paid.append(float(row.reward[0]))
    first = [0.9 * 1 - 0, 0.9 * 2 - 1, -2]
    second = [0.9 * -1 - 0]
    third = [0.9, 0.9 * 2 - 1, 0.9 * 3 - 2, 0.9 * 4 - 3, -4]
    fourth = [0.9, 0.9 * -2 - 1]
    np.testing.assert_allclose(paid, [*first, *second, *third, *fourth], rtol=1e-6)


class Telling(gym.Env):
    """Says in its info how many points there are: 2 more in every step, and 5 at the beginning of an episode of 3 steps."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.points = 5
        return np.zeros(1, np.float32), {"points": self.points}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.points += 2
        return np.zeros(1, np.float32), 0.0, self.points > 10, False, {"points": self.points, "who": "me"}


def test_infos_are_those_before_and_after_the_step() -> None:
    gym.register("Telling-v0", Telling)
    terms = {"points": "info.points", "gained": "info.points - before.info.points"}
    made = RunConfig.model_validate(
        {
            "env": {"id": "Telling-v0", "rewards": {"terms": terms}},
            "algo": {"id": "ppo"},
            "train": {"env_steps": 10},
        }
    ).env
    try:
        told = []
        for way in ({"vectorization": "inprocess"}, {"vectorization": "workers", "n_workers": 2}):
            with closing(make_envs(made.model_copy(update=way), 2)) as envs:
                told.append(play(envs, 7))
    finally:
        del gym.registry["Telling-v0"]
    assert told[0] == told[1]
    assert [step[0][0] for step in told[0]] == [7 + 2, 9 + 2, 11 + 2] * 2 + [7 + 2]
    assert told[0][2][2][0][2]["reward_terms"] == {"points": 27.0, "gained": 6.0}


def test_infos_are_refused_where_nobody_has_them() -> None:
    made = config(rewards={"terms": {"x": "info.speed"}}).env
    with closing(make_envs(made, 2)) as envs:  # auto steps the envs one by one
        assert "in this process" in envs.describe()
    with pytest.raises(EnvError, match=r"Term 'x' of env\.rewards reads infos.*env\.vectorization to auto"):
        RewardTerms(make_envs(config(vectorization="native").env, 2), made.rewards)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["native", "inprocess", "workers"])
def test_a_resume_in_mid_episode_pays_the_same(way: str) -> None:
    """Counts, sums, the last observation: all of it is saved, and by slot, so the number of workers may change."""
    made = config(rewards={"terms": TERMS}, vectorization=way, n_workers=2).env
    with closing(make_envs(made, 4)) as envs:
        play(envs, 33)
        state = envs.save_state()
        expected = play(envs, 40, begin=False, first=33)
    with closing(make_envs(made.model_copy(update={"n_workers": 3}), 4)) as envs:
        play(envs, 5)
        envs.load_state(state)
        assert play(envs, 40, begin=False, first=33) == expected


def test_a_resume_with_other_terms_is_refused() -> None:
    with closing(make_envs(config(rewards={"terms": {"a": "1"}}).env, 2)) as envs:
        play(envs, 3)
        state = envs.save_state()
    with (
        closing(make_envs(config(rewards={"terms": {"b": "1"}}).env, 2)) as envs,
        pytest.raises(EnvError, match=r"has the terms a of the reward, this run has b"),
    ):
        envs.load_state(state)


def test_wrappers_of_rewards_come_after_the_terms() -> None:
    made = config(rewards={"terms": {"bonus": "2"}}, wrappers=[{"id": "reward_scale", "factor": 10}]).env
    with closing(make_envs(made, 2)) as envs:
        assert play(envs, 1)[0][:2] == ([30, 30], [1, 1])


def test_a_term_that_pays_no_number_is_named() -> None:
    with (
        closing(make_envs(config(rewards={"terms": {"fine": "1", "bad": "1 / (step - 2)"}}).env, 2)) as envs,
        pytest.raises(EnvError, match=r"Term 'bad' of env\.rewards paid inf in env 0, step 2 of its episode"),
    ):
        play(envs, 3)


def test_terms_of_ones_own(folder: Any) -> None:
    """A class, a potential and a function, by import path: code that is asked about before a foreign run may use it."""
    (folder / "my_terms.py").write_text(
        "import numpy as np\n"
        "from gymnast.envs.rewards import Potential, Term\n"
        "class Twice(Term):\n"
        "    def __init__(self, layout, n_envs, value=1.0):\n"
        "        self.value = value\n"
        "    def pay(self, steps):\n"
        "        return np.full(len(steps.reward), 2 * self.value)\n"
        "class Upright(Potential):\n"
        "    def __init__(self, layout, n_envs):\n"
        "        self.place = layout.place('pole_angle', None)\n"
        "    def potential(self, states):\n"
        "        return -abs(states.numbers(*self.place))\n"
        "def one(steps):\n"
        "    return [1.0] * len(steps.reward)\n"
    )
    terms = {
        "twice": {"shaper": "my_terms:Twice", "value": 4},
        "upright": {"shaper": "my_terms:Upright"},
        "one": {"shaper": "my_terms:one"},
    }
    made = config(rewards={"terms": {**terms, "same": {"potential": "-abs(pole_angle)", "weight": -1}}, "own": 0})
    with closing(make_envs(made.env, 2)) as envs:
        for rewards, _, _ in play(envs, 20):
            np.testing.assert_allclose(rewards, 9, rtol=1e-6)
    found = [(code.key, code.value) for code in code_in(made.model_dump(mode="json"))]
    assert found == [(f"env.rewards.terms.{name}.shaper", term["shaper"]) for name, term in terms.items()]


def test_the_discount_is_the_learners() -> None:
    """It is not in the saved config: a run that goes on with another discount has that one."""
    made = config(rewards={"terms": {"phi": {"potential": "pole_angle"}}})
    assert made.env.rewards is not None
    assert made.env.rewards.names.gamma == 0.985
    again = from_saved(made.model_dump(mode="json"), ["algo.gamma=0.5"]).config
    assert again.env.rewards is not None
    assert again.env.rewards.names.gamma == 0.5
    assert again.env.rewards.discount is None

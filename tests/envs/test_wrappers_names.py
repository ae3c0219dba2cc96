"""Wrappers by name: what is refused and how that is said, the order, and what `env show` tells."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv
from gymnasium import spaces
from pydantic import ValidationError
from wrapper_envs import ImageEnv, LogEnv

from gymnast import plugins
from gymnast.config.load import validate
from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.config.wrappers import SETTINGS, Settings
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.wrappers import arrange, check, wrap, wrap_single
from gymnast.envs.wrappers.registry import KINDS, Kind
from gymnast.envs.wrappers.show import layers, lines
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import ConfigError

EXAMPLES = {
    "action_noise": {"std": 0.1},
    "mask_region": {"rectangles": [[0, 0, 1, 1]]},
    "no_reward_timeout": {"steps": 5},
    "observation_noise": {"std": 0.1},
    "quantise": {"levels": 4},
    "reward_scale": {"factor": 2},
    "select": {"components": [0]},
    "time_limit": {"steps": 5},
}
"""Arguments of those that need some."""


def named(*wrappers):
    return [
        WrapperConfig(id=w, args=EXAMPLES.get(w, {})) if isinstance(w, str) else WrapperConfig(id=w[0], args=w[1])
        for w in wrappers
    ]


def numbered():
    return gym.wrappers.TransformObservation(CounterEnv(), lambda obs: abs(int(obs[1])) % 3, spaces.Discrete(3))


def unbounded():
    env = CounterEnv()
    env.observation_space = spaces.Box(-np.inf, np.inf, (3,))
    return env


def test_every_wrapper_has_arguments_and_a_place():
    assert list(SETTINGS) == list(KINDS)
    check(named(*(w for w in KINDS if KINDS[w].batch is None)))
    for name, kind in KINDS.items():
        assert kind.single or kind.batch
        assert kind.about and kind.about[0].islower()
        check(named(name))
        if name not in EXAMPLES:
            check([WrapperConfig(id=name)])


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "action_noise"])
def test_arguments_that_are_needed(name):
    with pytest.raises(ValidationError, match=rf"wrapper '{name}' needs the argument '{next(iter(EXAMPLES[name]))}'"):
        WrapperConfig(id=name)


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        (
            {"id": "frame_skip", "skp": 4},
            "wrapper 'frame_skip' has no argument 'skp'. Did you mean 'skip'? Its arguments: skip, choices, max_pool",
        ),
        ({"id": "gray", "size": 4}, "wrapper 'gray' has no argument 'size'. Its arguments: none"),
        ({"id": "frame_skip", "skip": 0}, "at least 1, or a range [lowest, highest] is needed (got 0)"),
        ({"id": "frame_skip", "skip": True}, "(got True)"),
        ({"id": "frame_skip", "skip": [5, 2]}, "(got [5, 2])"),
        ({"id": "frame_skip", "skip": [1, 2, 3]}, "(got [1, 2, 3])"),
        ({"id": "frame_skip", "skip": 2, "choices": [1, 2]}, "give skip or choices, not both"),
        ({"id": "frame_skip", "choices": [2, 2]}, "choices must differ"),
        ({"id": "frame_stack", "size": 0}, "size: input should be greater than 0 (got 0)"),
        ({"id": "frame_stack", "size": "4"}, "(got '4')"),
        ({"id": "frame_stack", "padding": "last"}, "padding: input should be 'first' or 'zero' (got 'last')"),
        ({"id": "action_noise"}, "give std (Box actions) or probability (all others)"),
        ({"id": "action_noise", "std": 0.1, "probability": 0.1}, "give std"),
        ({"id": "sticky_actions", "probability": 1.5}, "less than 1 (got 1.5)"),
        ({"id": "reward_clip", "low": 1, "high": 1}, "low must be below high (got 1.0 and 1.0)"),
        ({"id": "mask_region", "rectangles": [[1, 2, 3]]}, "rectangles"),
        ({"id": "quantise", "levels": 1}, "greater than or equal to 2 (got 1)"),
        ({"id": "resize", "width": 84.5}, "(got 84.5)"),
    ],
)
def test_wrong_arguments_are_refused_when_the_config_is_read(wrapper, words):
    with pytest.raises(ConfigError) as caught:
        validate(
            {"env": {"id": "CartPole-v1", "wrappers": ["array", wrapper]}, "train": {"env_steps": 1}},
            {"env.wrappers": "my.yaml:7"},
        )
    assert words in str(caught.value)
    assert str(caught.value).startswith("my.yaml:7: 'env.wrappers.1': wrapper ")


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"Unknown wrapper 'frame_stak'\. Did you mean 'frame_stack'"):
        make_envs(EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": ["frame_stak"]}), 1)


@pytest.mark.parametrize(
    ("name", "args", "make_env", "words"),
    [
        ("one_hot", {}, CounterEnv, "'one_hot' needs Discrete or Tuple-of-Discrete observations, this env has Box"),
        ("array", {}, CounterEnv, "'array' needs Discrete or Tuple-of-Discrete observations, this env has Box"),
        ("frame_stack", {}, numbered, "needs Box observations, this env has Discrete"),
        ("action_clip", {}, CounterEnv, "'action_clip' needs a Box action space, this env has Discrete"),
        (
            "action_noise",
            {"std": 0.1},
            CounterEnv,
            "'action_noise' needs probability for the actions of this env, Discrete",
        ),
        (
            "action_noise",
            {"probability": 0.1},
            lambda: LogEnv(spaces.Box(-1, 1)),
            "'action_noise' needs std for the actions",
        ),
        (
            "action_noise",
            {"std": 0.1},
            lambda: LogEnv(spaces.Tuple([spaces.Box(-1, 1)])),
            "needs actions without parts",
        ),
        ("frame_skip", {"max_pool": True}, CounterEnv, "'frame_skip' with max_pool needs images, this env has Box"),
        ("quantise", {"levels": 3}, unbounded, "'quantise' needs observations with finite bounds"),
        ("gray", {}, numbered, "'gray' needs Box observations, this env has Discrete(3)"),
    ],
)
def test_what_does_not_fit_is_said(name, args, make_env, words):
    with pytest.raises(ConfigError) as caught:
        wrap(InProcessVector(lambda: wrap_single(make_env(), named((name, args))), 1), named((name, args)))
    assert words in str(caught.value)


# ---- order -----------------------------------------------------------------------------------------------------------


def order(*names, **how):
    return tuple([wrapper.id for wrapper in part] for part in arrange(named(*names), **how))


def test_the_order_is_kept_and_pictures_change_beside_the_env_as_long_as_they_can():
    assert order("gray", "frame_skip", "resize", "frame_stack") == (["gray", "frame_skip", "resize"], ["frame_stack"])
    assert order("gray", "frame_stack", "crop") == (["gray"], ["frame_stack", "crop"])
    assert order("gray", "resize", "frame_stack", single_envs=False) == ([], ["gray", "resize", "frame_stack"])
    assert order("reward_clip", "reward_scale") == ([], ["reward_clip", "reward_scale"])


MOVED = ["time_limit behind reward_clip", "time_limit behind action_stack", "no_reward_timeout behind frame_stack"]
MOVED += ["sticky_actions behind observation_noise", "sticky_actions behind reward_clip", "frame_skip behind one_hot"]
MOVED += ["action_noise behind frame_stack", "no_reward_timeout behind action_clip"]
REFUSED = ["frame_skip behind frame_stack", "frame_skip behind reward_clip", "frame_skip behind action_stack"]
REFUSED += [
    "sticky_actions behind action_stack",
    "sticky_actions behind action_clip",
    "no_reward_timeout behind reward_scale",
]
REFUSED += ["action_noise behind action_stack", "frame_skip behind observation_noise"]


@pytest.mark.parametrize("pair", MOVED)
def test_what_commutes_is_moved(pair):
    later, first = pair.split(" behind ")
    assert order(first, later) == ([later], [first])


@pytest.mark.parametrize("pair", REFUSED)
def test_other_orders_are_refused_with_the_way_out(pair):
    later, first = pair.split(" behind ")
    with pytest.raises(ConfigError, match=f"'{later}' cannot come after '{first}'.*List '{later}' before '{first}'"):
        order(first, later)


@pytest.mark.parametrize(
    ("first", "later"),
    [("time_limit", "frame_stack"), ("sticky_actions", "reward_clip"), ("no_reward_timeout", "frame_stack")],
)
def test_moving_changes_nothing(first, later):
    """Both orders of a pair that commutes give the same numbers."""

    def run(*names):
        wrappers = named(*names)
        envs = wrap(InProcessVector(lambda: wrap_single(LogEnv(), wrappers), 2), wrappers)
        row, seen = envs.new_row(), []
        envs.reset([1, 2], row)
        for step in range(60):
            envs.step(np.array([step % 5, step % 3]), row)
            seen.append((row.obs.copy(), row.reward.copy(), row.truncated.copy()))
        return seen

    np.testing.assert_equal(run(first, later), run(later, first))


def test_native_envs_step_beside_no_wrapper():
    config = EnvConfig.model_validate({"id": "CartPole-v1", "wrappers": ["sticky_actions"]})
    assert choose_vectorization(config)[0] == "inprocess"
    assert (
        choose_vectorization(config.model_copy(update={"wrappers": named("time_limit", "frame_stack")}))[0] == "native"
    )
    with pytest.raises(ConfigError, match="'sticky_actions' runs around each env, but env.vectorization is native"):
        make_envs(config.model_copy(update={"vectorization": "native"}), 2)


# ---- plug-ins and `env show` -------------------------------------------------------------------------------------------


class Doubling(gym.RewardWrapper):
    """Doubles the reward."""

    def __init__(self, env, factor=2.0):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward):
        return self.factor * reward


class Nothing(VectorWrapper):
    """Changes nothing."""


class PluginSettings(Settings):
    factor: float


@pytest.mark.parametrize("found", [Doubling, Nothing, Kind("doubles", single=Doubling, settings=PluginSettings)])
def test_plug_ins_stand_beside_ours(monkeypatch, found):
    plugin = plugins.Plugin(plugins.WRAPPERS, None)
    monkeypatch.setattr(
        plugins, "find", lambda group, name: plugin if (group, name) == (plugins.WRAPPERS, "mine") else None
    )
    monkeypatch.setattr(plugins, "load", lambda _: found)
    args = {} if found is Nothing else {"factor": 3.0}
    wrappers = [*named("sticky_actions", ("mine", args)), *named("frame_stack")]
    envs = wrap(InProcessVector(lambda: wrap_single(CounterEnv(), wrappers), 1), wrappers)
    row = envs.new_row()
    envs.reset([0], row)
    envs.step(np.zeros(1, np.int64), row)
    assert row.reward[0] == (10.0 if found is Nothing else 30.0)
    with pytest.raises(ConfigError, match="mine"):
        wrong = named(("mine", {"wrong": 1}))
        wrap(InProcessVector(lambda: wrap_single(CounterEnv(), wrong), 1), wrong)


def test_the_lines_of_env_show():
    gym.register("ShownImages-v0", ImageEnv)
    wrappers = [
        "gray",
        {"id": "frame_skip", "choices": [1, 4]},
        {"id": "resize", "width": 6, "height": 8},
        {"id": "time_limit", "steps": 9},
    ]
    config = EnvConfig.model_validate({"id": "ShownImages-v0", "wrappers": [*wrappers, "frame_stack", "reward_clip"]})
    found = layers(config)
    assert found[0].observation_space == spaces.Box(0, 255, (12, 10, 3), np.uint8)
    first, *each = lines(found)
    assert first == (
        "gray → frame_skip(the policy's choice of 1, 4) → resize(6×8) → time_limit(9) → frame_stack(4) → "
        "reward_clip(-1 … 1): Box(0, 255, (4, 8, 6), uint8)"
    )
    assert each[0] == "gray: brightness instead of colours; observation Box(0, 255, (12, 10), uint8)"
    assert each[1].endswith("; action MultiDiscrete([3 2])")
    assert each[3] == "time_limit(9): cuts episodes off"
    assert lines(layers(EnvConfig(id="CartPole-v1"))) == ["none"]

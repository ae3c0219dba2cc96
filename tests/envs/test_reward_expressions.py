"""The language of reward terms: what it says, what it refuses, and that it runs nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from gymnast.config.expressions import DEEPEST, ExpressionError, parse
from gymnast.config.rewards import Names
from gymnast.config.spec import Component
from gymnast.envs.rewards.expressions import function_of
from gymnast.envs.rewards.steps import Layout, States, Steps
from gymnast.errors import ConfigError, EnvError

NAMES = Names(
    observation=(Component(name="cart position"), Component(name="facing", values=["left", "right"])),
    actions=("wait", "fire left"),
)
LAYOUT = Layout(spaces.Box(-9, 9, (2,)), spaces.Discrete(2), NAMES)
CAMERA = Layout(
    spaces.Dict({"picture": spaces.Box(0, 255, (2, 2), np.uint8), "game.health": spaces.Box(0, 100, ())}),
    spaces.Box(-1, 1, (2,)),
    Names(action_components=("main engine", "side engines")),
)
STEPS = Steps(
    before=States(np.array([[0.5, 0.0], [3.0, 1.0]], np.float32), [{"kills": 1}, {}]),
    after=States(np.array([[-2.0, 1.0], [4.0, 0.0]], np.float32), [{"kills": 3}, {"kills": 4, "name": "x"}]),
    action=np.array([0, 1]),
    reward=np.array([1.0, -2.0]),
    terminated=np.array([False, True]),
    truncated=np.array([False, False]),
    number=np.array([1, 7]),
    ended=np.array([False, True]),
)


def values(text: str, layout: Layout = LAYOUT, steps: Steps = STEPS) -> list[float]:
    """The value for both copies."""
    return np.broadcast_to(np.asarray(function_of(parse(text), layout, "mine")(steps), float), 2).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", [1, 1]),
        ("-cart_position", [2, -4]),
        ("+cart_position ** 2 - 1", [3, 15]),
        ("cart_position - before.cart_position", [-2.5, 1]),
        ("obs[0] * before.obs[1]", [0, 4]),
        ("reward * step", [1, -14]),
        ("terminated and not truncated", [0, 1]),
        ("terminated or cart_position < 0", [1, 1]),
        ("0 < cart_position <= 4", [0, 1]),
        ("10 if action == 'fire left' else -10", [-10, 10]),
        ("action != 'fire left'", [1, 0]),
        ("'right' == facing", [1, 0]),
        ("info.kills - before.info.kills", [2, 4]),  # what the first info did not have counts as 0
        ("max(cart_position, 0, 3)", [3, 4]),
        ("min(cart_position, 0)", [-2, 0]),
        ("clip(cart_position, -1, 1)", [-1, 1]),
        ("hypot(3, 4) + atan2(0, 1)", [5, 5]),
        ("7 // 2 + 7 % 4", [6, 6]),
        ("sqrt(4) + abs(-1) + sign(-3) + floor(2.7) + round(1.6)", [6, 6]),
        ("cos(pi) + exp(0) + log(1) + sin(0) + tan(0) + tanh(0)", [0, 0]),
        ("1 if\n  True else 0", [1, 1]),
    ],
)
def test_what_an_expression_says(text: str, expected: list[float]) -> None:
    assert values(text) == expected


def test_parts_of_observations_and_actions() -> None:
    """Parts are named with letters, digits and underscores; numbers inside count from 0."""
    pictures = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    states = States({"picture": pictures, "game.health": np.array([50.0, 80.0], np.float32)})
    actions = np.array([[0.5, -1.0], [0.25, 0.0]], np.float32)
    steps = Steps(states, states, actions, *[np.zeros(2)] * 5)
    assert values("game_health / 10 + picture[3]", CAMERA, steps) == [8, 15]
    assert values("abs(action.side_engines) + action[0]", CAMERA, steps) == [1.5, 0.25]


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("cart_positon", 1, "Did you mean 'cart_position'"),
        ("1 + speed", 5, "The observation has cart_position, facing"),
        ("obs", 1, r"write obs\[0\] to obs\[1\]"),
        ("obs[2]", 1, "2 numbers, counted from 0"),
        ("'ä' + reward", 1, "only be compared"),
        ("action == 'fire lft'", 11, "Did you mean 'fire left'"),
        ("cart_position == 'left'", 18, "no names for the values"),
        ("facing == 'wait'", 11, "Known: left, right"),
        ("action.engine", 1, "has no component 'engine'"),
        ("action[1]", 1, "has 1 numbers"),
    ],
)
def test_names_that_the_env_does_not_have(text: str, place: int, what: str) -> None:
    with pytest.raises(ConfigError, match=rf"^env\.rewards\.terms\.mine: character {place} of .*{what}"):
        values(text)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("1 +", 4, "invalid syntax"),
        ("(1", 1, "was never closed"),
        ("sine(1)", 1, "Did you mean 'sin'"),
        ("1 + sin(1, 2)", 5, "takes 1 argument, not 2"),
        ("max(1)", 1, "takes at least 2 arguments"),
        ("'ä' == sin(x=1)", 8, "no meaning"),
        ("__import__('os').system('ls')", 1, "no meaning"),
        ("(1).__class__", 2, "no meaning"),
        ("obs.__class__", 1, "only before, info and action"),
        ("[x for x in (1, 2)]", 1, "no meaning"),
        ("lambda: 1", 1, "no meaning"),
        ("(x := 1)", 2, "no meaning"),
        ("1 in obs", 1, "no meaning"),
        ("1 << 9", 1, "no meaning"),
        ("obs[0:1]", 1, "a whole number"),
        ("obs[-1]", 1, "a whole number"),
        ("None", 1, "is no number"),
        ("1" + "0" * 400, 1, "is no number"),
        ("before.reward", 1, "one number of the step itself"),
        ("before.action", 1, "not known"),
        ("info", 1, r"write info\.NAME"),
        ("-" * (DEEPEST + 5) + "1", DEEPEST + 2, "nested deeper"),
    ],
)
def test_what_is_no_expression(text: str, place: int, what: str) -> None:
    with pytest.raises(ExpressionError, match=rf"^character {place} of .*{what}"):
        parse(text)


@pytest.mark.parametrize("text", ["1 + " * 400 + "1", "(" * 900 + ")" * 900, "\0"])
def test_huge_or_broken_texts_are_errors_too(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_infos_that_are_not_there_or_no_numbers() -> None:
    with pytest.raises(
        EnvError, match=r"env\.rewards\.terms\.mine reads info\.kils.*Did you mean 'kills'.*It tells: kills"
    ):
        values("info.kils")
    with pytest.raises(EnvError, match=r"env\.rewards\.terms\.mine reads info\.name.*It tells: kills"):
        values("info.name")


arithmetic = st.recursive(
    st.one_of(st.integers(0, 9).map(str), st.sampled_from(["cart_position", "before.cart_position", "reward", "step"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(inner, inner).map("min({0[0]}, {0[1]})".format),
        st.tuples(inner, st.sampled_from(["<", ">=", "=="]), inner, inner, inner).map(
            "({0[3]} if {0[0]} {0[1]} {0[2]} else {0[4]})".format
        ),
        inner.map("abs(-{0})".format),
    ),
    max_leaves=8,
)


def by_hand(node: Any, names: dict[str, float]) -> float:
    """Python's own meaning of the few nodes that `arithmetic` makes, for one copy."""
    import ast
    import operator

    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return names[ast.unparse(node)]
    if isinstance(node, ast.UnaryOp):
        return -by_hand(node.operand, names)
    if isinstance(node, ast.BinOp):
        operation = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}[type(node.op)]
        return operation(by_hand(node.left, names), by_hand(node.right, names))
    if isinstance(node, ast.IfExp):
        test = node.test
        operation = {ast.Lt: operator.lt, ast.GtE: operator.ge, ast.Eq: operator.eq}[type(test.ops[0])]
        holds = operation(by_hand(test.left, names), by_hand(test.comparators[0], names))
        return by_hand(node.body if holds else node.orelse, names)
    function = {"min": min, "abs": abs}[node.func.id]
    return function(*(by_hand(part, names) for part in node.args))


@given(arithmetic)
def test_it_means_what_python_means(text: str) -> None:
    import ast

    tree = ast.parse(text, mode="eval").body
    for copy, found in enumerate(values(text)):
        names = {
            "cart_position": float(STEPS.after.obs[copy, 0]),
            "before.cart_position": float(STEPS.before.obs[copy, 0]),
            "reward": float(STEPS.reward[copy]),
            "step": float(STEPS.number[copy]),
        }
        assert math.isclose(found, by_hand(tree, names))

"""Expressions as functions of a step: each node of the tree becomes one numpy operation on all env copies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from gymnast.config.expressions import (
    ACTION,
    INFO,
    OBS,
    Expression,
    Node,
    Number,
    Operation,
    Reference,
    Text,
    identifier,
)
from gymnast.envs.rewards.steps import Layout, States, Steps
from gymnast.errors import ConfigError, did_you_mean

Value = Any
"""An array [N], or a number that is the same for all."""
Function = Callable[[Steps], Value]
OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": lambda *parts: reduce(np.logical_and, parts),
    "or": lambda *parts: reduce(np.logical_or, parts),
    "not": np.logical_not,
    "negative": np.negative,
    "if": np.where,
    "abs": np.abs,
    "atan2": np.arctan2,
    "clip": np.clip,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "hypot": np.hypot,
    "log": np.log,
    "max": lambda *parts: reduce(np.maximum, parts),
    "min": lambda *parts: reduce(np.minimum, parts),
    "round": np.round,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
COMPARISONS = ("==", "!=")
SCALARS: dict[str, Callable[[Steps], np.ndarray]] = {
    "reward": lambda steps: steps.reward,
    "step": lambda steps: steps.number,
    "terminated": lambda steps: steps.terminated,
    "truncated": lambda steps: steps.truncated,
}


def function_of(expression: Expression, layout: Layout, term: str) -> Function:
    """The expression on a layout; a ConfigError that names the term for names it does not have."""
    return _Compiler(expression, layout, term).compile(expression.tree)


def potential_of(expression: Expression, layout: Layout, term: str) -> Callable[[States], Value]:
    """The same of a function of states, which may be asked of either side of a step."""
    function = function_of(expression, layout, term)
    nothing = np.empty(0)

    def potential(states: States) -> Value:
        return function(Steps(states, states, nothing, nothing, nothing, nothing, nothing, nothing))

    return potential


class _Compiler:
    def __init__(self, expression: Expression, layout: Layout, term: str) -> None:
        self._expression, self._layout, self._term = expression, layout, term

    def compile(self, node: Node) -> Function:
        if isinstance(node, Number):
            value = np.float64(node.value)
            return lambda steps: value
        if isinstance(node, Reference):
            return self._reference(node)
        if isinstance(node, Text):
            raise self._wrong(node.at, f"'{node.value}' in quotes can only be compared with the action or a component")
        parts = node.parts
        if node.name in COMPARISONS:
            parts = self._without_texts(*parts)
        operation, functions = OPERATIONS[node.name], [self.compile(part) for part in parts]
        if len(functions) == 1:
            (only,) = functions
            return lambda steps: operation(only(steps))
        if len(functions) == 2:
            first, second = functions
            return lambda steps: operation(first(steps), second(steps))
        return lambda steps: operation(*[function(steps) for function in functions])

    def _reference(self, node: Reference) -> Function:
        if node.scope in SCALARS:
            return SCALARS[node.scope]
        if node.scope == ACTION:
            return self._action(node)
        if node.scope == INFO:
            key, term = node.name, self._term
            if node.before:
                return lambda steps: steps.before.told(key, term, 0.0)
            return lambda steps: steps.after.told(key, term)
        try:
            part, place = self._layout.place(node.name, node.index)
        except ConfigError as error:
            raise self._wrong(node.at, str(error)) from None
        if node.before:
            return lambda steps: steps.before.numbers(part, place)
        return lambda steps: steps.after.numbers(part, place)

    def _action(self, node: Reference) -> Function:
        space, known = self._layout.action_space, self._layout.action_components
        size = int(np.prod(space.shape or ()))
        place = node.index
        if node.name:
            if node.name not in known:
                raise self._wrong(
                    node.at,
                    f"the action has no component '{node.name}'.{did_you_mean(node.name, known)}"
                    + (f" It has {', '.join(known)}." if known else " Its components have no names: write action[0]."),
                )
            place = known[node.name]
        if place is None and size > 1:
            raise self._wrong(node.at, f"the action has {size} numbers: write action[0] to action[{size - 1}]")
        if place is not None and place >= size:
            raise self._wrong(node.at, f"the action has {size} numbers, counted from 0")
        return partial(_number_of_action, place=place or 0)

    def _without_texts(self, left: Node, right: Node) -> tuple[Node, Node]:
        """A comparison with the numbers that texts mean."""
        if isinstance(left, Text):
            left, right = right, left
        if isinstance(right, Text):
            right = Number(self._number_of(right, left))
        return left, right

    def _number_of(self, text: Text, beside: Node) -> float:
        known: dict[str, int] = {}
        if isinstance(beside, Reference) and beside.scope == ACTION and not beside.name and beside.index is None:
            known = self._layout.labels
        elif isinstance(beside, Reference) and beside.scope == OBS:
            component = self._layout.component(beside.name)
            known = {value: number for number, value in enumerate(component.values if component else ())}
        if not known:
            raise self._wrong(text.at, f"'{text.value}': there are no names for the values of what it is compared with")
        if text.value not in known:
            hint = did_you_mean(text.value, known)
            raise self._wrong(text.at, f"there is no '{text.value}'.{hint} Known: {', '.join(known)}.")
        return float(known[text.value])

    def _wrong(self, at: int, what: str) -> ConfigError:
        return ConfigError(f"env.rewards.terms.{self._term}: {self._expression.refuse(at, what)}")


def _number_of_action(steps: Steps, place: int) -> np.ndarray:
    action = steps.action
    return np.array(action.reshape(len(action), -1)[:, place], np.float64)


__all__ = ["Function", "Operation", "function_of", "identifier", "potential_of"]

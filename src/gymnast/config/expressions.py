"""The small language of reward terms: arithmetic over named numbers of a step, read with Python's grammar and never run.

Python's parser makes a tree of the text. Only the few kinds of nodes below are taken from it, into data of our own that
`envs/rewards/expressions.py` computes with numpy. Nothing else that Python can say has a meaning here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gymnast.errors import did_you_mean

LONGEST, DEEPEST = 1000, 40
"""Characters of a text, and levels of its tree."""
BEFORE = "before"
"""`before.x` is x as it was when the action was chosen; a plain `x` is what the step led to."""
INFO, ACTION, OBS = "info", "action", "obs"
SCALARS = ("reward", "step", "terminated", "truncated")
"""Names of single numbers that every step has."""
CONSTANTS = {"pi": math.pi, "True": 1.0, "False": 0.0}
FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "atan2": (2, 2),
    "clip": (3, 3),
    "cos": (1, 1),
    "exp": (1, 1),
    "floor": (1, 1),
    "hypot": (2, 2),
    "log": (1, 1),
    "max": (2, None),
    "min": (2, None),
    "round": (1, 1),
    "sign": (1, 1),
    "sin": (1, 1),
    "sqrt": (1, 1),
    "tan": (1, 1),
    "tanh": (1, 1),
}
"""Least and most arguments of each function."""
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "and",
    ast.Or: "or",
    ast.USub: "negative",
    ast.Not: "not",
}


class ExpressionError(ValueError):
    """A text that is no expression; the sentence says where in it, and what would do."""


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Text:
    """The name of an action or of a component's value, which means its number in a comparison."""

    value: str
    at: int


@dataclass(frozen=True)
class Reference:
    """A number of the step by its name."""

    scope: str
    """`obs`, `info`, `action`, or one of SCALARS."""
    name: str = ""
    """Of a component or part of the observation, of an info key, of a component of the action; empty for the whole."""
    index: int | None = None
    before: bool = False
    at: int = 0

    def __str__(self) -> str:
        start = "before." if self.before else ""
        if self.scope == INFO:
            name = f"info.{self.name}"
        elif self.scope == ACTION:
            name = f"action.{self.name}" if self.name else ACTION
        else:
            name = self.name or self.scope
        return start + name + ("" if self.index is None else f"[{self.index}]")


@dataclass(frozen=True)
class Operation:
    """An operator or function and what it is applied to."""

    name: str
    parts: tuple[Node, ...]


Node = Number | Text | Reference | Operation


@dataclass(frozen=True)
class Expression:
    """A text and its tree."""

    text: str
    tree: Node

    def references(self) -> Iterator[Reference]:
        """All numbers of the step that it reads."""
        return (node for node in _walk(self.tree) if isinstance(node, Reference))

    def refuse(self, at: int, what: str) -> ExpressionError:
        """An error about the text at a place."""
        return ExpressionError(f"character {at + 1} of '{self.text}': {what}")


def identifier(name: str) -> str:
    """What an expression calls a component: `cart_position` for `cart position`."""
    letters = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    if letters[:1].isdigit():
        return f"_{letters}"
    return letters


def parse(text: str) -> Expression:
    """The expression that a text says; an `ExpressionError` with the place where it does not say one."""
    if len(text) > LONGEST:
        raise ExpressionError(f"it is longer than {LONGEST:,} characters: make several terms of it")
    text = " ".join(text.split())
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = error.offset - 1 if error.offset else len(text)
        raise ExpressionError(f"character {place + 1} of '{text}': {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"'{text}' is no expression") from None
    return Expression(text, _Reader(text).read(body, 0))


class _Reader:
    """Takes the tree over, node by node."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ways: dict[type[ast.AST], Callable[..., Node]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._name,
            ast.Subscript: self._name,
            ast.BinOp: self._arithmetic,
            ast.UnaryOp: self._sign,
            ast.BoolOp: self._logic,
            ast.Compare: self._comparison,
            ast.IfExp: self._choice,
            ast.Call: self._call,
        }

    def read(self, node: ast.expr, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._wrong(node, f"it is nested deeper than {DEEPEST} levels: make several terms of it")
        way = self._ways.get(type(node))
        if way is None:
            raise self._wrong(node, f"`{self._piece(node)}` has no meaning in a reward term")
        return way(node, partial(self.read, depth=depth + 1))

    def _constant(self, node: ast.Constant, _: object) -> Node:
        if isinstance(node.value, str):
            return Text(node.value, self._at(node))
        if isinstance(node.value, (bool, int, float)):
            try:
                value = float(node.value)
            except OverflowError:
                value = math.inf
            if math.isfinite(value):
                return Number(value)
        raise self._wrong(node, f"`{self._piece(node)}` is no number")

    def _name(self, node: ast.expr, _: object) -> Node:
        index = None
        whole = node
        if isinstance(node, ast.Subscript):
            index, node = self._index(node), node.value
        path = self._path(node)
        before = path[0] == BEFORE and len(path) > 1
        scope, *rest = path[1:] if before else path
        at = self._at(whole)
        if scope in CONSTANTS and not rest:
            return Number(CONSTANTS[scope])
        if scope in (INFO, ACTION):
            if len(rest) > 1 or (scope == INFO and not rest):
                raise self._wrong(whole, f"write {scope}.NAME")
            if scope == ACTION and before:
                raise self._wrong(whole, "the action before this one is not known")
            return Reference(scope, "".join(rest), index, before, at)
        if rest:
            raise self._wrong(whole, f"`{self._piece(whole)}`: only before, info and action have names behind a dot")
        if scope in SCALARS:
            if before or index is not None:
                raise self._wrong(whole, f"`{scope}` is one number of the step itself")
            return Reference(scope, at=at)
        return Reference(OBS, "" if scope == OBS else scope, index, before, at)

    def _path(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.Name):
            return [node.id]
        if isinstance(node, ast.Attribute):
            return [*self._path(node.value), node.attr]
        raise self._wrong(node, f"`{self._piece(node)}` has no meaning in a reward term")

    def _index(self, node: ast.Subscript) -> int:
        index = node.slice
        if isinstance(index, ast.Constant) and type(index.value) is int and index.value >= 0:
            return index.value
        raise self._wrong(node, "in square brackets stands a whole number from 0")

    def _arithmetic(self, node: ast.BinOp, read: Callable[[ast.expr], Node]) -> Node:
        return Operation(self._operator(node, node.op), (read(node.left), read(node.right)))

    def _sign(self, node: ast.UnaryOp, read: Callable[[ast.expr], Node]) -> Node:
        if isinstance(node.op, ast.UAdd):
            return read(node.operand)
        return Operation(self._operator(node, node.op), (read(node.operand),))

    def _logic(self, node: ast.BoolOp, read: Callable[[ast.expr], Node]) -> Node:
        return Operation(self._operator(node, node.op), tuple(map(read, node.values)))

    def _comparison(self, node: ast.Compare, read: Callable[[ast.expr], Node]) -> Node:
        parts = [read(part) for part in (node.left, *node.comparators)]
        pairs = tuple(
            Operation(self._operator(node, op), (left, right))
            for op, left, right in zip(node.ops, parts, parts[1:], strict=False)
        )
        if len(pairs) == 1:
            return pairs[0]
        return Operation("and", pairs)

    def _choice(self, node: ast.IfExp, read: Callable[[ast.expr], Node]) -> Node:
        return Operation("if", (read(node.test), read(node.body), read(node.orelse)))

    def _call(self, node: ast.Call, read: Callable[[ast.expr], Node]) -> Node:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self._wrong(node, f"`{self._piece(node)}` has no meaning in a reward term")
        name = node.func.id
        if name not in FUNCTIONS:
            hint = did_you_mean(name, FUNCTIONS)
            raise self._wrong(node, f"there is no function '{name}'.{hint} Functions: {', '.join(FUNCTIONS)}")
        least, most = FUNCTIONS[name]
        if len(node.args) < least or (most is not None and len(node.args) > most):
            needed = f"{least}" if least == most else f"at least {least}"
            raise self._wrong(
                node, f"{name} takes {needed} argument{'' if needed == '1' else 's'}, not {len(node.args)}"
            )
        return Operation(name, tuple(map(read, node.args)))

    def _operator(self, node: ast.expr, op: ast.AST) -> str:
        if type(op) not in OPERATORS:
            raise self._wrong(node, f"`{self._piece(node)}` has no meaning in a reward term")
        return OPERATORS[type(op)]

    def _piece(self, node: ast.expr) -> str:
        return ast.get_source_segment(self._text, node) or ast.unparse(node)

    def _at(self, node: ast.expr) -> int:
        """Python counts bytes."""
        return len(self._text.encode()[: node.col_offset].decode(errors="ignore"))

    def _wrong(self, node: ast.expr, what: str) -> ExpressionError:
        return ExpressionError(f"character {self._at(node) + 1} of '{self._text}': {what}")


def _walk(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Operation):
        for part in node.parts:
            yield from _walk(part)

"""Python expressions in other people's files, read as data: parsed, never evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection
from typing import Any

from gymnast.errors import ConfigError


def read_literal(text: str, names: Collection[str] = ()) -> Any:
    """Numbers, text, lists, tuples (as lists), `{…}` and `dict(…)`; a dotted name in `names` is read as its own text.

    Everything else (calls, lambdas, arithmetic, other names) is refused with the piece that cannot be read.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConfigError(f"{_quoted(text)} is not a Python literal") from None


def _value(node: ast.expr, names: Collection[str]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str, type(None))):
        if isinstance(node.value, float) and not math.isfinite(node.value):
            raise _refused(node)
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        number = _value(node.operand, names)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise _refused(node)
        if isinstance(node.op, ast.USub):
            return -number
        return number
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(item, names) for item in node.elts]
    if isinstance(node, ast.Dict):
        return dict(_pair(key, value, node, names) for key, value in zip(node.keys, node.values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        if node.args or any(keyword.arg is None for keyword in node.keywords):
            raise _refused(node)
        return {str(keyword.arg): _value(keyword.value, names) for keyword in node.keywords}
    if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names:
        return ast.unparse(node)
    raise _refused(node)


def _pair(key: ast.expr | None, value: ast.expr, node: ast.Dict, names: Collection[str]) -> tuple[str, Any]:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        raise _refused(node)
    return key.value, _value(value, names)


def _refused(node: ast.expr) -> ConfigError:
    return ConfigError(f"{_quoted(ast.unparse(node))} is Python code that is not run: only plain values are read")


def _quoted(text: str) -> str:
    short = " ".join(text.split())
    return f"`{short if len(short) <= 100 else short[:97] + '...'}`"

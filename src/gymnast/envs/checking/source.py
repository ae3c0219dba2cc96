"""Where in an env's source something happens: definitions, assignments, calls, returns and exceptions."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        path = Path(self.file)
        if path.is_relative_to(Path.cwd()):
            shown = path.relative_to(Path.cwd())
        else:
            shown = path
        return f"{shown}:{self.line}"


# What gives other values every time, however the env was seeded; by full name, or the beginning of one.
UNREPEATABLE = ("numpy.random.", "random.", "time.", "os.urandom", "uuid.", "secrets.", "datetime.")


class EnvSource:
    """The source of an env's own class and of the classes it inherits from."""

    def __init__(self, kind: type[gym.Env]) -> None:
        self.kind = kind
        self._returns: dict[tuple[str, int | None], Place | None] = {}

    @property
    def classes(self) -> list[type]:
        """The class and its ancestors, without Gymnasium's base."""
        return [kind for kind in self.kind.__mro__ if kind not in (gym.Env, object) and kind.__module__ != "typing"]

    def definition(self, method: str) -> Place | None:
        """The line of `def method`, or of the class when it has none."""
        for file, _, function in self._functions(method):
            return Place(file, function.lineno)
        return self.class_line()

    def class_line(self) -> Place | None:
        """Where the class begins."""
        for file, node in self._class_nodes:
            return Place(file, node.lineno)
        return None

    def assignment(self, attribute: str, *methods: str) -> Place | None:
        """The first line that gives `self.attribute` a value, looked for in these methods (all of them when none is named)."""
        for file, name, function in self._functions():
            if methods and name not in methods:
                continue
            for node in ast.walk(function):
                if any(_is_attribute(target, attribute) for target in _targets(node)):
                    return Place(file, node.lineno)  # type: ignore[attr-defined]
        return None

    def change_of_argument(self, method: str) -> Place | None:
        """The line of a method that writes into its first argument."""
        for file, _, function in self._functions(method):
            name = ""
            if len(function.args.args) > 1:
                name = function.args.args[1].arg
            for node in ast.walk(function):
                if any(_written_into(node, target) == name for target in _targets(node)) or _out_argument(node) == name:
                    return Place(file, node.lineno)  # type: ignore[attr-defined]
        return self.definition(method)

    def call_of_super(self, method: str) -> Place | None:
        """The line of `super().method(...)` inside that method."""
        for file, _, function in self._functions(method):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == f"super().{method}":
                    return Place(file, node.lineno)
        return None

    def unrepeatable_call(self, *first: str) -> tuple[Place, str] | None:
        """A call that no seed can repeat, and its text: in the methods named, else in the class, else in its file's functions."""
        own = self._functions()
        searched = [(file, node) for name in first for file, method, node in own if method == name]
        searched += [(file, node) for file, _, node in own]
        for file in dict.fromkeys(file for file, _ in self._class_nodes):
            tree = _parsed(file)
            searched += [(file, node) for node in (tree.body if tree else []) if isinstance(node, ast.FunctionDef)]
        for file, node in searched:
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and self._is_unrepeatable(call):
                    return Place(file, call.lineno), ast.unparse(call.func)
        return None

    def _is_unrepeatable(self, call: ast.Call) -> bool:
        return self._full_name(call.func).startswith(UNREPEATABLE) and not _seeded(call)

    def raised(self, error: BaseException) -> Place | None:
        """The innermost line of the env's own files that an exception passed; else where it was raised."""
        files = {file for file, _ in self._class_nodes}
        trace, own, last = error.__traceback__, None, None
        while trace is not None:
            last = Place(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            own = last if last.file in files else own
            trace = trace.tb_next
        return own or last

    def returned(self, method: str, line: int | None) -> Place | None:
        """The beginning of the return statement that ended `method` on `line`."""
        if (method, line) not in self._returns:
            self._returns[method, line] = self._find_return(method, line)
        return self._returns[method, line]

    def _find_return(self, method: str, line: int | None) -> Place | None:
        for file, _, function in self._functions(method):
            returns = sorted(node.lineno for node in ast.walk(function) if isinstance(node, ast.Return))
            if not returns:
                continue
            inside = line is not None and function.lineno <= line <= (function.end_lineno or line)
            if line is None or not inside:
                return Place(file, returns[-1])
            # A return spread over lines ends on a later one, a return inside `with` on an earlier one.
            spans = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
            within = [node.lineno for node in spans if node.lineno <= line <= (node.end_lineno or node.lineno)]
            after = [start for start in returns if start >= line]
            return Place(file, (within or after or returns[-1:])[0])
        return self.definition(method)

    @functools.cached_property
    def _class_nodes(self) -> list[tuple[str, ast.ClassDef]]:
        found: list[tuple[str, ast.ClassDef]] = []
        for kind in self.classes:
            try:
                file, line = inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]
            except (OSError, TypeError):  # made in a notebook, or compiled
                continue
            tree = _parsed(file) if file else None
            for node in ast.walk(tree) if tree is not None and file else ():
                if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                    if line in (first, node.lineno):
                        found.append((str(file), node))
        return found

    @functools.cached_property
    def _all_functions(self) -> list[tuple[str, str, ast.FunctionDef]]:
        return [
            (file, function.name, function)
            for file, node in self._class_nodes
            for function in node.body
            if isinstance(function, ast.FunctionDef)
        ]

    def _functions(self, method: str | None = None) -> list[tuple[str, str, ast.FunctionDef]]:
        """The methods with their files: an overridden one after the one that overrides it."""
        return [entry for entry in self._all_functions if method in (None, entry[1])]

    def _full_name(self, function: ast.expr) -> str:
        """The name of a called function with its module's real name, whatever it was imported as."""
        first, _, rest = ast.unparse(function).partition(".")
        known = None
        if self.kind.__module__ in sys.modules:
            known = vars(sys.modules[self.kind.__module__]).get(first)
        if isinstance(known, types.ModuleType):
            return f"{known.__name__}.{rest}"
        if isinstance(owner := getattr(known, "__self__", None), np.random.RandomState):
            return f"numpy.random.{first}"
        if owner is None or isinstance(owner, types.ModuleType):
            owner = known
        module = getattr(owner, "__module__", "")
        if known is not None and module:
            return f"{module}.{first}"
        return ""


@functools.lru_cache(maxsize=64)
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def _seeded(call: ast.Call) -> bool:
    """Whether a call like `default_rng(seed)` makes a generator that a seed repeats."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in ("default_rng", "Random", "RandomState", "SeedSequence") and bool(call.args or call.keywords)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [
            part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [node.target]
    return []


def _is_attribute(target: ast.expr, attribute: str) -> bool:
    """Whether `target` is `self.attribute`, or an item of it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute) and target.attr == attribute and ast.unparse(target.value) == "self"


def _written_into(node: ast.AST, target: ast.expr) -> str | None:
    """Name of the variable whose memory an assignment changes: `a[0] = 1`, `a += 1`, but not `a = 1`."""
    inner = target
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    in_place = isinstance(target, ast.Subscript) or isinstance(node, ast.AugAssign)
    if in_place and isinstance(inner, ast.Name):
        return inner.id
    return None


def _out_argument(node: ast.AST) -> str | None:
    """Name of the variable given as `out=` of a numpy function."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "out" and isinstance(keyword.value, ast.Name):
                return keyword.value.id
    return None


def line_of_return(function: Any, call: Callable[[], Any]) -> tuple[Any, int | None]:
    """What `call` gives, and the line on which `function`, somewhere inside it, returned last."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    line: int | None = None

    def watch(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal line
        if event == "return" and frame.f_code is code:
            line = frame.f_lineno

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        value = call()
    finally:
        sys.setprofile(before)
    return value, line

"""Canonical key order of config files with every comment kept (CFG-3). The order is that of the typed models."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from gymnast.config.algorithms import CONFIGS
from gymnast.config.files import TOP_KEYS, parse_yaml
from gymnast.config.layout import Item, block_items, compose
from gymnast.config.model import Model
from gymnast.config.schedule import Constant, Linear, Piecewise
from gymnast.config.schema import RunConfig
from gymnast.config.variants import infer_algorithm
from gymnast.errors import ConfigError


@dataclass(frozen=True)
class Shape:
    """The order of a mapping's keys and the shape of their values; a list has the shape of its elements."""

    keys: dict[str, Shape] = field(default_factory=dict)
    rest: Shape | None = None
    """Values of keys that are not listed."""

    def inside(self, name: str) -> Shape:
        """The shape of a value."""
        return self.keys.get(name) or self.rest or _OPEN

    def order(self, names: list[str]) -> list[int]:
        """Positions of the names in canonical order: merge keys, known ones, then the others as they were."""
        ranks = {name: rank for rank, name in enumerate(("<<", *self.keys))}
        return sorted(range(len(names)), key=lambda i: ranks.get(names[i], len(ranks)))


_OPEN = Shape()
_SCHEDULE = Shape(
    dict.fromkeys(("schedule", *Constant.model_fields, *Linear.model_fields, *Piecewise.model_fields), _OPEN)
)


def format_text(text: str, label: str) -> str:
    """The text in canonical order; means the same, and formatting it again changes nothing."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    node = compose(text, label)
    if node is None:
        return text
    before = parse_yaml(text, label)[0]
    if not node.flow_style:
        new = _block(text, node, 0, len(text), file_shape(before), root=True)
    else:
        new = text
    try:
        same = parse_yaml(new, label)[0] == before
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(
            f"{label} cannot be put in order without changing what it says, because an anchor (&name) would come after its "
            "alias (*name) or because of a '|+' text. It is left as it is: move those keys by hand."
        )
    return new


# ---- the order -----------------------------------------------------------------------------------------------------


def file_shape(data: dict[str, Any]) -> Shape:
    """The shape of this file: its variants keep their order, each has the keys of its algorithm."""
    variants = data.get("variants")
    variants = variants if isinstance(variants, dict) else {}
    shapes = {name: _settings(_algorithm(name, variants), extends=True) for name in variants}
    special = {"spec": _model(RunConfig).keys["spec"], "defaults": _settings(None), "variants": Shape(shapes)}
    return Shape({name: special.get(name, _OPEN) for name in TOP_KEYS})


def _settings(algorithm: str | None, *, extends: bool = False) -> Shape:
    """The sections of a variant or of `defaults`."""
    keys = {name: shape for name, shape in _model(RunConfig).keys.items() if name != "name"}
    if algorithm in CONFIGS:
        chosen = [CONFIGS[algorithm]]
    else:
        chosen = list(CONFIGS.values())
    keys["algo"] = Shape({name: shape for model in chosen for name, shape in _model(model).keys.items()})
    return Shape({"extends": _OPEN, **keys} if extends else keys)


def _algorithm(name: str, variants: dict[str, Any]) -> str | None:
    """The algorithm of a variant as far as its own file says."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        body = variants.get(name)
        body = body if isinstance(body, dict) else {}
        algo = body.get("algo")
        if isinstance(algo, dict) and "id" in algo:
            return str(algo["id"])
        if found := infer_algorithm(name):
            return found
        name = str(body.get("extends"))
    return None


def _model(model: type[Model]) -> Shape:
    return Shape({name: _annotation(info.annotation) for name, info in model.model_fields.items()})


def _annotation(annotation: Any) -> Shape:
    if annotation is Any:
        return _SCHEDULE
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return _model(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        if arguments[1] is Any:
            return _OPEN
        return Shape(rest=_annotation(arguments[1]))
    if origin is Annotated:
        return _annotation(arguments[0])
    if origin in (list, Union, UnionType):
        return next((shape for shape in map(_annotation, arguments) if shape != _OPEN), _OPEN)
    return _OPEN


# ---- moving text ---------------------------------------------------------------------------------------------------


def _value(text: str, node: Any, start: int, end: int, shape: Shape) -> str:
    """`text[start:end]`, which holds the value `node`, with everything inside it in order."""
    if not start <= node.start_mark.index < end or getattr(node, "flow_style", None) not in (True, False):
        return text[start:end]  # an alias refers to a node elsewhere; a scalar has no keys
    if node.id == "sequence":
        return _sequence(text, node, start, end, shape)
    if not node.value:
        return text[start:end]
    if not node.flow_style:
        return _block(text, node, start, end, shape)
    first, last = text.index("{", node.start_mark.index), node.end_mark.index
    return text[start:first] + _flow(text, node, first, last, shape) + text[last:end]


def _sequence(text: str, node: Any, start: int, end: int, shape: Shape) -> str:
    """Elements stay in their order; only what is inside them moves."""
    pieces, at = [], start
    for number, element in enumerate(node.value):
        begin = element.start_mark.index
        if node.flow_style or number + 1 == len(node.value):
            stop = element.end_mark.index if node.flow_style else end
        else:  # up to the line of the next dash
            stop = text.rfind("\n", 0, node.value[number + 1].start_mark.index) + 1
        if not at <= begin < stop <= end:  # an alias, or dashes on one line
            continue
        pieces += [text[at:begin], _value(text, element, begin, stop, shape)]
        at = stop
    return "".join(pieces) + text[at:end]


def _block(text: str, node: Any, start: int, end: int, shape: Shape, *, root: bool = False) -> str:
    items = block_items(text, node, start, end, root=root)
    if any(before.key >= after.key for before, after in itertools.pairwise(items)):
        return text[start:end]  # keys that are aliases have no place of their own
    bodies = [_value(text, item.value, item.key, item.end, shape.inside(item.name)) for item in items]
    leads = [text[item.start : item.key] for item in items]
    order = shape.order([item.name for item in items])
    if order != sorted(order):
        leads, bodies = _reordered(leads, bodies, order, node.value[0][0].start_mark.column, _dashed(text, items[0]))
    parts = [part for pair in zip(leads, bodies, strict=True) for part in pair]
    return text[start : items[0].start] + "".join(parts) + text[items[-1].end : end]


def _dashed(text: str, item: Item) -> bool:
    """Whether the mapping begins behind a dash."""
    return item.key > 0 and text[item.key - 1] != "\n"


def _reordered(
    leads: list[str], bodies: list[str], order: list[int], column: int, dashed: bool
) -> tuple[list[str], list[str]]:
    """Leads and bodies in a new order. Blank lines stay at their place, comments go with their key."""
    comments = [[line.strip(" ") for line in lead.splitlines(keepends=True)] for lead in leads]
    blanks = ["".join(_leading(lines, lambda line: not line.strip())) for lines in comments]
    indent = " " * column
    if dashed:
        if any("#" in lead for lead in leads):
            return leads, bodies  # a comment has no place behind the dash
        moved = [bodies[i].removeprefix(indent) for i in order]
        return blanks, [moved[0], *(indent + body for body in moved[1:])]
    new = []
    for position, i in enumerate(order):
        rest = comments[i][len(_leading(comments[i], lambda line: not line.strip())) :]
        new.append(blanks[position] + "".join(indent + line if line.strip() else line for line in rest))
    return new, [bodies[i] for i in order]


def _leading(lines: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
    found = []
    for line in lines:
        if not wanted(line):
            break
        found.append(line)
    return found


_BETWEEN = re.compile(r"(?P<comma>(?:[ \t]*,)?)(?P<rest>[ \t]*(?:#[^\n]*)?\r?\n)(?P<lead>.*)", re.DOTALL)


def _flow(text: str, node: Any, start: int, end: int, shape: Shape) -> str:
    """A `{…}` mapping: the text between items stays, or moves with its item if there are comments."""
    spans, bodies = [], []
    for key, value in node.value:
        first, last = key.start_mark.index, max(key.end_mark.index, value.end_mark.index)
        if not start < first <= value.start_mark.index or last > end:
            return text[start:end]  # an alias
        inner = _value(text, value, key.end_mark.index, last, shape.inside(str(key.value)))
        spans.append((first, last))
        bodies.append((text[first : key.end_mark.index] + inner).rstrip())
    edges = [start, *(edge for span in spans for edge in span), end]
    gaps = [text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]
    gaps = [gaps[0]] + [_lost(text, span) + gap for span, gap in zip(spans, gaps[1:], strict=True)]
    order = shape.order([str(key.value) for key, _ in node.value])
    if order != sorted(order):
        if any("#" in gap for gap in gaps):
            return _commented_flow(gaps, bodies, order)
        bodies = [bodies[i] for i in order]
    return gaps[0] + "".join(body + gap for body, gap in zip(bodies, gaps[1:], strict=True))


def _lost(text: str, span: tuple[int, int]) -> str:
    """Space that a value's end mark counts as its own."""
    body = text[span[0] : span[1]]
    return body[len(body.rstrip()) :]


def _commented_flow(gaps: list[str], bodies: list[str], order: list[int]) -> str:
    """One item per line, each with its comments; several on a line stay as they are, a comment would swallow them."""
    matches = [_BETWEEN.fullmatch(gap) for gap in (gaps[0].replace("{", "", 1), *gaps[1:])]
    if any(match is None for match in matches):
        return gaps[0] + "".join(body + gap for body, gap in zip(bodies, gaps[1:], strict=True))
    found = [match.groupdict() for match in matches if match is not None]
    leads = [gap["lead"] for gap in found[:-1]]
    lines = [
        leads[i] + bodies[i] + gap["comma"] + found[i + 1]["rest"] for i, gap in zip(order, found[1:], strict=True)
    ]
    return "{" + found[0]["rest"] + "".join(lines) + found[-1]["lead"]

"""JSON Schema of config files for editors (CFG-2), made from the typed models.

Draft-07, which every YAML editor plug-in knows. A layer of a config is partial, so nothing is required in it but the parts of
lists and schedules. Descriptions are the texts under the fields: read from the source here and only here, because pydantic's own
way (`use_attribute_docstrings`) would read every file at every start.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from gymnast.config import schedule
from gymnast.config.algorithms import CONFIGS
from gymnast.config.merging import SECTIONS
from gymnast.config.model import Model
from gymnast.config.randomise import Between
from gymnast.config.rewards import TermConfig
from gymnast.config.schedule import SCHEDULES, Piecewise, Range, number_or_schedule
from gymnast.config.schema import RunConfig, StopRule, WrapperConfig
from gymnast.config.spec import Component

_ANY = Range(None, None, open_low=False)
# Written whole wherever they occur: elements of lists, and schedules, which replace each other.
_WHOLE = (Component, StopRule, WrapperConfig, *SCHEDULES.values())
_LINK = "gymnast:definition"
_NUMBER = r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_TOP = {
    "id": "The environment this file is for.",
    "aliases": "Former ids of the environment.",
    "extends": "A shared base: a file in ./configs/bases or among the shipped ones.",
    "for": "Of a shared base: the envs (ALE/*-v5) that have its defaults and variants without a file of their own.",
    "spec": "What is known about the environment.",
    "defaults": "Settings of all variants.",
    "variants": "Settings by name: `gymnast train ENV:NAME`. The algorithm is named in `algo.id` or in the name (my_ppo).",
}


def config_schema() -> dict[str, Any]:
    """The schema of one config file."""
    sections = {name: _section(name) for name in SECTIONS if name != "algo"}
    models = [*sections.values(), *CONFIGS.values()]
    definitions = {**_definitions(models), **_schedules()}
    for model in models:
        definitions[model.__name__]["type"] = ["object", "null"]  # `env:` with nothing below it yet
    definitions["AnyAlgorithm"] = _any_algorithm(definitions)
    layer = {name: {"$ref": f"#/definitions/{model.__name__}"} for name, model in sections.items()}
    layer = {name: layer[name] if name in layer else _algorithm() for name in SECTIONS}
    parent = {"type": ["string", "null"], "description": "The variant of this environment whose settings these change."}
    definitions["Defaults"] = _mapping(layer)
    definitions["Variant"] = _mapping({"extends": parent, **layer})
    text: dict[str, Any] = {"type": ["string", "null"]}
    ids = {"type": ["array", "null"], "items": {"type": "string"}}
    special: dict[str, dict[str, Any]] = {
        "aliases": ids,
        "for": ids,
        "spec": {"$ref": f"#/definitions/{sections['spec'].__name__}"},
        "defaults": {"$ref": "#/definitions/Defaults"},
        "variants": {"type": ["object", "null"], "additionalProperties": {"$ref": "#/definitions/Variant"}},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {name: {"description": about, **special.get(name, text)} for name, about in _TOP.items()},
        "additionalProperties": False,
        "definitions": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The schema as a file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


def _section(name: str) -> type[Model]:
    model: Any = RunConfig.model_fields[name].annotation
    if isinstance(model, UnionType):  # a section that may be absent
        model = next(kind for kind in model.__args__ if kind is not NoneType)
    assert isinstance(model, type) and issubclass(model, Model)
    return model


def _mapping(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


# ---- algorithms ----------------------------------------------------------------------------------------------------


def _algorithm() -> dict[str, Any]:
    """The keys of the algorithm that is named; those of all when the name of the variant says it."""
    chosen: dict[str, Any] = {"$ref": "#/definitions/AnyAlgorithm"}
    for name, model in reversed(CONFIGS.items()):
        named = {"type": "object", "properties": {"id": {"const": name}}, "required": ["id"]}
        chosen = {"if": named, "then": {"$ref": f"#/definitions/{model.__name__}"}, "else": chosen}
    return chosen


def _any_algorithm(definitions: dict[str, Any]) -> dict[str, Any]:
    """Every key of every algorithm. Where they differ in more than the default, one of the forms must fit."""
    forms: dict[str, list[dict[str, Any]]] = {}
    for model in CONFIGS.values():
        for key, form in definitions[model.__name__]["properties"].items():
            forms.setdefault(key, []).append({k: v for k, v in form.items() if k != "default"})
    properties = {key: _one_form(found) for key, found in forms.items()}
    properties["id"] = {"enum": list(CONFIGS)}
    return {"description": "Hyperparameters of the algorithm.", **_mapping(properties)}


def _one_form(forms: list[dict[str, Any]]) -> dict[str, Any]:
    bare = [{key: value for key, value in form.items() if key != "description"} for form in forms]
    if all(form == bare[0] for form in bare):
        return forms[0]
    return {"anyOf": [form for i, form in enumerate(forms) if bare[i] not in bare[:i]]}


# ---- numbers that may be schedules ---------------------------------------------------------------------------------


def _schedule_name(bounds: Range) -> str:
    name = "Schedule"
    if bounds.low is not None:
        name += "Above" if bounds.open_low else "From"
        name += f"{bounds.low:g}"
    if bounds.high is not None:
        name += f"To{bounds.high:g}"
    return name


def _bounds(bounds: Range, *, first: bool) -> dict[str, Any]:
    """The first value may not lie on an open bound, later ones may fall to it."""
    limits: dict[str, Any] = {"type": "number"}
    if bounds.low is not None:
        limits["exclusiveMinimum" if bounds.open_low and first else "minimum"] = bounds.low
    if bounds.high is not None:
        limits["maximum"] = bounds.high
    return limits


def _schedules() -> dict[str, Any]:
    """A definition for every range the algorithms ask for."""
    asked: dict[str, Range] = {}
    for model in CONFIGS.values():
        for info in model.model_fields.values():
            asked |= {_schedule_name(bounds): bounds for bounds in _ranges(info.metadata) + _ranges([info.annotation])}
    return {name: _schedule(bounds) for name, bounds in asked.items()}


def _ranges(parts: Any) -> list[Range]:
    found: list[Range] = []
    for part in parts:
        if isinstance(function := getattr(part, "func", None), Range):
            found.append(function)
        found += _ranges(getattr(part, "__metadata__", ())) + _ranges(getattr(part, "__args__", ()))
    return found


def _schedule(bounds: Range) -> dict[str, Any]:
    sign = "[+-]?"
    if bounds.low is not None and bounds.low >= 0:
        sign = r"\+?"
    linear = {
        "type": "string",
        "pattern": f"^(lin_)?{sign}{_NUMBER}$",
        "description": "lin_3e-4: linear from 3e-4 to zero.",
    }
    first, later = _point(bounds, first=True), _point(bounds, first=False)
    points = {"type": "array", "items": [first], "additionalItems": later, "minItems": 1}
    short = {**points, "description": "[[0, 1e-3], [1, 1e-4]]: straight lines between shares of the budget."}
    kinds = [_kind(model, bounds, points) for model in SCHEDULES.values()]
    return {"anyOf": [_bounds(bounds, first=True), linear, short, *kinds]}


def _point(bounds: Range, *, first: bool) -> dict[str, Any]:
    pair = [{"type": "number"}, _bounds(bounds, first=first)]
    return {"type": "array", "items": pair, "minItems": 2, "maxItems": 2}


def _kind(model: type[Model], bounds: Range, points: dict[str, Any]) -> dict[str, Any]:
    """One schedule as a mapping, its values inside the bounds."""
    kind: dict[str, Any] = _definitions([model])[model.__name__]
    properties = kind["properties"]
    for name, first in (("value", True), ("start", True), ("end", False)):
        if name in properties:
            # Exponential decay has bounds of its own: the values must lie inside both.
            properties[name] = {**properties[name], "allOf": [_bounds(bounds, first=first)]}
    if model is Piecewise:
        properties["points"] = points
    return kind


# ---- models --------------------------------------------------------------------------------------------------------


def _definitions(models: list[type[Model]]) -> dict[str, Any]:
    """The models and what they hold, by class name."""
    _, made = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/definitions/{model}", schema_generator=_Generator
    )
    asked = {model.__name__ for model in models}
    linked: dict[str, Any] = _linked(made["$defs"])
    # pydantic also makes the schedules, once and without bounds.
    return {name: form for name, form in linked.items() if name in asked or not hasattr(schedule, name)}


def _linked(part: Any) -> Any:
    """References to the schedules, which pydantic's generator would refuse because it did not make them."""
    if isinstance(part, list):
        return [_linked(item) for item in part]
    if not isinstance(part, dict):
        return part
    made = {key: _linked(value) for key, value in part.items() if key != _LINK}
    if _LINK in part:
        made["$ref"] = f"#/definitions/{part[_LINK]}"
    return made


class _Generator(GenerateJsonSchema):
    """pydantic's generator in draft-07, with our schedules, partial models and the texts under the fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Titles would only repeat the keys."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """A model: partial unless it is written whole."""
        model, made = schema["cls"], super().model_schema(schema)
        if model is WrapperConfig:  # its arguments may come with the name, and the name alone is enough
            named = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
            return {"description": made["description"], "anyOf": [{"type": "string"}, named]}
        made.pop("title", None)
        for name, text in _field_texts(model).items():
            if name in made["properties"]:
                made["properties"][name] = {"description": text, **made["properties"][name]}
        if not issubclass(model, _WHOLE):
            made.pop("required", None)
        if model is Between:  # a list or one value will do
            pair = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
            return {"anyOf": [pair, {"type": ["number", "string"]}, made]}
        if model is TermConfig:  # a shaper's arguments may come with it, and the text of an expression is enough
            return {"anyOf": [{"type": "string"}, {**made, "additionalProperties": True}]}
        return made

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """`prefixItems` is newer than draft-07."""
        made = super().tuple_schema(schema)
        return {("items" if key == "prefixItems" else key): value for key, value in made.items()}

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        """A number or schedule without bounds."""
        if schema["function"]["function"] is number_or_schedule:
            return {_LINK: _schedule_name(_ANY)}
        return super().function_plain_schema(schema)

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonSchemaValue:
        """A number or schedule with bounds."""
        bounds = schema["function"]["function"]
        if isinstance(bounds, Range):
            return {_LINK: _schedule_name(bounds)}
        return super().function_after_schema(schema)


def _field_texts(model: type[BaseModel]) -> dict[str, str]:
    """The text under each field, own ones before inherited ones."""
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, BaseModel) and parent is not BaseModel:
            texts |= _module_texts(inspect.getsourcefile(parent) or "").get(parent.__qualname__, {})
    return texts


@functools.cache
def _module_texts(path: str) -> dict[str, dict[str, str]]:
    """Class → field → the string that follows it, of one source file."""
    found: dict[str, dict[str, str]] = {}
    for statement in ast.parse(Path(path).read_text(encoding="utf-8")).body:
        if not isinstance(statement, ast.ClassDef):
            continue
        texts = found.setdefault(statement.name, {})
        for field, below in zip(statement.body, statement.body[1:]):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = inspect.cleandoc(text)
    return found

"""Variants written into config files. What a file already says stays as it is, to the letter."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import MappingNode, Node
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from gymnast.config.files import parse_yaml
from gymnast.config.yaml_limits import refuse_excess
from gymnast.errors import ConfigError


class _Representer(RoundTripRepresenter):
    """Writes `null`, where ruamel leaves the value out."""

    def represent_null(self, data: None) -> Node:
        """Write None as the word `null`, not as nothing."""
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _Representer.represent_null)


def with_variant(
    text: str, env_id: str, name: str, variant: dict[str, Any], comments: Sequence[str], label: str
) -> str:
    """The text of a config file (empty for a new one) with this variant, headed by `comments`; an old one is replaced."""
    refuse_excess(text, label)
    lines = text.splitlines()
    pairs = {}
    if text.strip():
        pairs = _pairs(YAML(typ="rt").compose(text))
    if "variants" not in pairs:
        edited = [*lines, "variants:", *_block(name, variant, comments, 2)]
    elif not _pairs(pairs["variants"][1]):
        at = pairs["variants"][0].start_mark.line
        edited = [*lines[:at], "variants:", *_block(name, variant, comments, 2), *lines[at + 1 :]]
    else:
        start, end, column = _place(pairs, name, lines)
        edited = [*lines[:start], *_block(name, variant, comments, column), *lines[end:]]
    if "id" not in pairs:
        first = min((key.start_mark.line for key, _ in pairs.values()), default=len(lines))
        edited.insert(first, f"id: {env_id}")
    written = "\n".join(edited) + "\n"
    if not _only_adds(text, written, env_id, name, variant):
        raise ConfigError(f"{label} is laid out in a way that cannot be edited automatically: choose another --output.")
    return written


def _pairs(node: Node | None) -> dict[str, tuple[Node, Node]]:
    if isinstance(node, MappingNode):
        return {str(key.value): (key, value) for key, value in node.value}
    return {}


def _place(pairs: dict[str, tuple[Node, Node]], name: str, lines: list[str]) -> tuple[int, int, int]:
    """The lines the variant takes the place of (none for a new one), and the column of its name."""
    variants = _pairs(pairs["variants"][1])
    starts = {known: key.start_mark.line for known, (key, _) in variants.items()}
    column = next(iter(variants.values()))[0].start_mark.column
    start = starts.get(name, max(starts.values()))
    keys = [*starts.values(), *(key.start_mark.line for key, _ in pairs.values())]
    end = min((line for line in keys if line > start), default=len(lines))
    # Comments above the next key are about that key, unless they are indented like what comes before.
    own = column + 1 if name in variants else column
    while end > start + 1 and _is_about_next(lines[end - 1], own):
        end -= 1
    return (start if name in variants else end), end, column


def _is_about_next(line: str, column: int) -> bool:
    bare = line.lstrip()
    return not bare or (bare.startswith("#") and len(line) - len(bare) < column)


def _block(name: str, variant: dict[str, Any], comments: Sequence[str], column: int) -> list[str]:
    yaml = YAML(typ="rt")
    yaml.Representer = _Representer
    yaml.width = 4096
    out = io.StringIO()
    yaml.dump(_node(variant), out)
    body = [*(f"# {comment}" for comment in comments), *out.getvalue().splitlines()]
    return [" " * column + f"{name}:", *(" " * (column + 2) + line for line in body)]


def _node(value: Any) -> Any:
    """Mappings as blocks, lists in one line; what older YAML reads as a switch in quotes."""
    if isinstance(value, dict):
        return CommentedMap((key, _node(item)) for key, item in value.items())
    if isinstance(value, list):
        sequence = CommentedSeq(_node(item) for item in value)
        sequence.fa.set_flow_style()
        return sequence
    if isinstance(value, str) and value in ("on", "off"):
        return DoubleQuotedScalarString(value)
    return value


def _only_adds(before: str, after: str, env_id: str, name: str, variant: dict[str, Any]) -> bool:
    """Whether nothing but the variant is different."""
    try:
        old, new = (parse_yaml(text, "")[0] or {} for text in (before, after))
    except ConfigError:
        return False
    variants = (old.get("variants") or {}) | {name: variant}
    return bool(new == {"id": env_id} | old | {"variants": variants})

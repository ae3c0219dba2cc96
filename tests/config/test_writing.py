"""Variants put into files: everything else stays to the letter."""

from __future__ import annotations

import pytest

from gymnast.config.files import parse_yaml
from gymnast.config.writing import with_variant
from gymnast.errors import ConfigError

VARIANT = {
    "env": {"n_envs": 1, "wrappers": [{"id": "x", "size": 2}]},
    "algo": {"id": "ppo", "rate": 1e-5, "mask": "off", "kl": None},
}
FILE = """\
# mine
id:   'A-v0'   # the env
variants:
    # about one
    one:
        algo: {gamma: 9.0e-1}   # short
        # end of one

    # about two
    two: {env: {n_envs: ~}}
    # end of variants

# about the defaults
defaults:
  env: {n_envs: 0x10}
"""


def put(text: str, name: str = "zoo", comments: tuple[str, ...] = ("said here",)) -> str:
    return with_variant(text, "A-v0", name, VARIANT, comments, "a.yaml")


def test_a_new_file() -> None:
    assert put("") == (
        "id: A-v0\nvariants:\n  zoo:\n    # said here\n    env:\n      n_envs: 1\n      wrappers: [{id: x, size: 2}]\n"
        '    algo:\n      id: ppo\n      rate: 1e-05\n      mask: "off"\n      kl: null\n'
    )


def test_a_new_variant_comes_last_and_nothing_else_changes() -> None:
    lines = put(FILE).splitlines()
    start = lines.index("    zoo:")
    assert lines[start - 1] == "    # end of variants"
    block = 10
    assert "\n".join(lines[:start] + lines[start + block :]) + "\n" == FILE


@pytest.mark.parametrize(("name", "old_lines"), [("one", 2), ("two", 1)])
def test_a_variant_is_replaced_where_it_stands(name: str, old_lines: int) -> None:
    text = put(FILE, name)
    assert parse_yaml(text, "")[0]["variants"][name] == VARIANT
    assert [line for line in text.splitlines() if "about" in line] == [
        old for old in FILE.splitlines() if "about" in old
    ]
    assert text.index(" one:") < text.index(" two:") < text.index("defaults:")
    gone = [line for line in FILE.splitlines() if line not in text.splitlines()]
    assert len(gone) == old_lines


def test_replacing_again_changes_nothing() -> None:
    once = put(FILE, "one")
    assert put(once, "one") == once
    assert "# said here" not in put(once, "one", ())


@pytest.mark.parametrize(
    "text",
    ["variants:\n", "variants: {}  # none yet\n", "spec: {}\n", "id: A-v0", "# only a comment\n", "---\nspec: {}\n"],
)
def test_files_without_variants_or_id(text: str) -> None:
    data = parse_yaml(put(text), "")[0]
    assert (data["id"], data["variants"]) == ("A-v0", {"zoo": VARIANT})


def test_a_layout_that_cannot_be_edited_is_left_alone() -> None:
    with pytest.raises(ConfigError, match=r"a\.yaml is laid out in a way"):
        put("id: A-v0\nvariants: {one: {}, two: {}}\n")

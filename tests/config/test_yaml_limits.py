"""YAML that would take all memory or the whole stack is refused at once, wherever it is read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gymnast.config.files import own_files, parse_yaml, read
from gymnast.config.format import format_text
from gymnast.config.load import resolve
from gymnast.config.overrides import parse_value
from gymnast.config.writing import with_variant
from gymnast.config.yaml_limits import DEEPEST
from gymnast.errors import ConfigError, UsageError

TIMES_EIGHT = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 12)]
BOMB = "\n".join(["id: CartPole-v1", "a0: &a0 [x, x, x, x]", *TIMES_EIGHT])
MERGED = "\n".join(["a0: &a0 {x: 1, y: 2}", *(f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}}}" for i in range(1, 40))])
FLOW = "id: CartPole-v1\nvariants: " + "[" * 5_000 + "]" * 5_000
PAIRS = "id: CartPole-v1\nvariants: " + "{a: " * 3_000 + "1" + "}" * 3_000
BLOCK = "\n".join(" " * level + "a:" for level in range(1_000))
DASHES = "a:\n  " + "- " * 1_000 + "1"
ALL = {"bomb": BOMB, "merged": MERGED, "flow": FLOW, "pairs": PAIRS, "block": BLOCK, "dashes": DASHES}


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    """In a file, in order, and edited: with the line, and before anything grows."""
    file = tmp_path / "CartPole-v1.yaml"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(ConfigError, match=r"CartPole-v1.yaml:\d+ (holds more than|is nested more than)"):
        read(file)
    with pytest.raises(ConfigError, match="which no config needs"):
        format_text(text, "x")
    with pytest.raises(ConfigError, match="which no config needs"):
        with_variant(text, "CartPole-v1", "mine", {"train": {"env_steps": 1}}, [], "x")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("start", ["", "{a: "])
def test_deep_values_on_the_command_line(start: str) -> None:
    deep = start + "[" * 5_000 + "]" * 5_000 + ("}" if start else "")
    with pytest.raises(ConfigError, match="is nested more than"):
        parse_value(deep, "env.kwargs=")


CHAIN = "\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 400))])
"""Each line is two levels deep; with aliases replaced, the last is four hundred."""


def test_depth_through_aliases() -> None:
    for read_it in (parse_yaml, format_text):
        with pytest.raises(ConfigError, match=r"x:\d+ is nested more than 50"):
            read_it(CHAIN, "x")


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a\n  b: [1, *a]", "a: &a {b: &b {c: *a}}"])
def test_a_value_inside_itself(text: str) -> None:
    """Formatting such a file ended in a RecursionError."""
    for read_it in (parse_yaml, format_text):
        with pytest.raises(ConfigError, match=r"x:\d: '\*a' is used inside the value that it names"):
            read_it(text, "x")


def test_anchors_and_some_depth_are_read() -> None:
    """rl-zoo's files use both."""
    data, _ = parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: [*a, *a]}", "x")
    assert data == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}, {"x": 1}]}}
    deep = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert parse_yaml(f"a: {deep}", "x")[0]["a"]


def test_an_id_longer_than_a_file_name() -> None:
    """File systems refuse to look for it."""
    assert own_files("A" * 100_000) == [] and own_files("ä" * 200) == []
    with pytest.raises(UsageError, match="No config for"):
        resolve("A" * 100_000 + ":ppo")

"""Canonical order: every comment stays with its key, nothing else changes."""

from __future__ import annotations

import random
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymnast.config.algorithms import CONFIGS
from gymnast.config.files import SHIPPED, parse_yaml
from gymnast.config.format import format_text
from gymnast.errors import ConfigError

PRESETS = sorted([*SHIPPED.glob("envs/*.yaml"), *SHIPPED.glob("bases/*.yaml")])


def formatted(text: str) -> str:
    """In order, the same meaning, and the same when done again."""
    text = textwrap.dedent(text).lstrip("\n")
    new = format_text(text, "a.yaml")
    assert parse_yaml(new, "new")[0] == parse_yaml(text, "old")[0]
    assert format_text(new, "a.yaml") == new
    return new


def check(before: str, after: str) -> None:
    assert formatted(before) == textwrap.dedent(after).lstrip("\n")


def test_all_the_places_a_comment_can_stand() -> None:
    check(
        """
        # yaml-language-server: $schema=config.schema.json
        # About this file.

        # about the variants
        variants:  # beside variants
          # about b
          b_ppo:
            log: {window: 5}  # beside log
            # about env, first line
            #   second line, set off
            env:
              n_envs: 4  # beside n_envs
              # about id
              id: X
              # ends env
            extends: a
            # ends b
          # about a

          a: {algo: {id: ppo}}
        # about the id
        id: X-v0   # beside id
        defaults:
            # about train
            train: {env_steps: 5}
              # deep: belongs to train
            policy: {}

        # the end
        """,
        """
        # yaml-language-server: $schema=config.schema.json
        # About this file.

        # about the id
        id: X-v0   # beside id
        defaults:
            policy: {}
            # about train
            train: {env_steps: 5}
              # deep: belongs to train
        # about the variants
        variants:  # beside variants
          # about b
          b_ppo:
            extends: a
            # about env, first line
            #   second line, set off
            env:
              # about id
              id: X
              n_envs: 4  # beside n_envs
              # ends env
            log: {window: 5}  # beside log
            # ends b
          # about a

          a: {algo: {id: ppo}}

        # the end
        """,
    )


def test_flow_quotes_numbers_and_widths_stay() -> None:
    wide = ", ".join(f"k{i}: 'text {i}'" for i in range(60))
    check(
        f"""
        variants:
          ppo:
            algo: {{gamma: 0.990,   learning_rate: 2.0e-3, clip_range: "lin_0.2", odd: ~, optimizer: {{eps: 1E-5, id: 'adam'}}}}
            env: {{kwargs: {{z: 1, a: 2, {wide}}}, n_envs: 0x10}}
        """,
        f"""
        variants:
          ppo:
            env: {{n_envs: 0x10, kwargs: {{z: 1, a: 2, {wide}}}}}
            algo: {{learning_rate: 2.0e-3,   gamma: 0.990, optimizer: {{id: 'adam', eps: 1E-5}}, clip_range: "lin_0.2", odd: ~}}
        """,
    )


def test_flow_over_several_lines() -> None:
    check(
        """
        defaults:
          policy: {normalize_obs: true,
                   hidden: [1,
                            2]}
          train: {
            # about seed
            seed: 1,  # beside seed
            env_steps: 5  # beside env_steps
          }
          log: {interval: 1, window: 2, # several on this line
                max_log_bytes: 3}
        """,
        """
        defaults:
          policy: {hidden: [1,
                            2],
                   normalize_obs: true}
          train: {
            env_steps: 5,  # beside env_steps
            # about seed
            seed: 1  # beside seed
          }
          log: {interval: 1, window: 2, # several on this line
                max_log_bytes: 3}
        """,
    )


def test_texts_lists_schedules_and_unknown_keys() -> None:
    check(
        """
        mystery: 1
        spec:
          notes: |
            # not a comment
            text
          observation:
          - low: 1   # of a
            name: a
          # about b
          - {high: 2, name: b}
          description: >-
            folded

            text
        variants:
          ppo:
            algo:
              gamma: {end: 1, start: 0.5, schedule: linear}
            train:
              stop:
                - at_least: 1
                  metric: x
        id: X
        """,
        """
        id: X
        spec:
          description: >-
            folded

            text
          observation:
          - name: a
            low: 1   # of a
          # about b
          - {name: b, high: 2}
          notes: |
            # not a comment
            text
        variants:
          ppo:
            algo:
              gamma: {schedule: linear, start: 0.5, end: 1}
            train:
              stop:
                - metric: x
                  at_least: 1
        mystery: 1
        """,
    )


def test_the_order_of_algo_is_its_algorithms() -> None:
    """By id, by name, or by the name of the parent."""
    keys = "vf_coef: 1, ent_coef: 0, normalize_advantage: batch, max_steps: 9, learning_rate: 1"
    text = formatted(
        f"""
        variants:
          reinforce: {{algo: {{{keys}}}}}
          child: {{algo: {{{keys}}}, extends: reinforce}}
          named: {{algo: {{{keys}, id: reinforce}}}}
        """
    )
    order = [key for key in CONFIGS["reinforce"].model_fields if key in keys]
    for line in text.splitlines()[1:]:
        assert [key for key in re.findall(r"(\w+):", line.partition("algo:")[2]) if key != "id"] == order
    assert "child: {extends: reinforce, algo:" in text


def test_blank_lines_windows_lines_and_missing_newline() -> None:
    assert format_text("defaults: {}\n\nextends: a\n\nid: X", "f") == "id: X\n\nextends: a\n\ndefaults: {}\n"
    assert format_text("defaults: {}\r\n# c\r\nid: X", "f") == "# c\r\nid: X\r\ndefaults: {}\r\n"
    assert format_text("", "f") == ""
    assert format_text("# only a comment\n", "f") == "# only a comment\n"
    assert format_text("{variants: {}, id: X}\n", "f") == "{variants: {}, id: X}\n"


def test_anchors_move_when_they_can() -> None:
    check(
        """
        variants:
          ppo: &base
            train: {seed: 1, env_steps: 5}
            env: &e {n_envs: 2}
          b_ppo:
            train: {seed: 2}
            <<: *base
        id: X
        """,
        """
        id: X
        variants:
          ppo: &base
            env: &e {n_envs: 2}
            train: {env_steps: 5, seed: 1}
          b_ppo:
            <<: *base
            train: {seed: 2}
        """,
    )
    with pytest.raises(ConfigError, match="cannot be put in order without changing what it says"):
        format_text("variants:\n  ppo: {train: &t {env_steps: 5}}\ndefaults: {train: *t}\n", "f")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id: X\nvariants: {\n", r"a\.yaml:3 is not valid YAML"),
        ("id: X\n  bad: 1\n", r"a\.yaml:2 is not valid YAML"),
        ("id: X\nid: Y\n", r"a\.yaml:2 .*duplicate key"),
        ("- 1\n", "holds no mapping"),
        ("id: X\n---\nid: Y\n", "a.yaml.* is not valid YAML"),
    ],
)
def test_broken_files_are_named_with_their_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        format_text(text, "a.yaml")


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_shipped_files_are_canonical(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text, path.name) == text


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_shuffled_presets_come_back(path: Path, seed: int) -> None:
    """The sections of the variants in any order, each with a comment above and beside it."""
    rng = random.Random(seed)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.startswith("variants:")), len(lines))
    body = [line for line in lines[start:] if not line.lstrip().startswith("#")]
    marked, group, number = [], [], 0
    for line in [*body, ""]:
        if re.match(r" {4}\w+: *\{.*\}", line):
            bare = line.partition("  #")[0].rstrip("\n")
            group.append(f"    # above {number}\n{bare}  # beside {number}\n")
            number += 1
            continue
        marked += rng.sample(group, len(group))
        group = []
        marked.append(line)
    text = "".join(lines[:start] + marked)
    new = format_text(text, path.name)
    assert parse_yaml(new, "new")[0] == parse_yaml(text, "old")[0]
    assert format_text(new, path.name) == new
    for n in range(number):
        assert len(re.findall(rf"    # above {n}\n    \w+: .*  # beside {n}\n", new)) == 1
    assert sorted(new) == sorted(text)
    keys = [re.findall(r"^ {4}(\w+):", block, re.M) for block in re.split(r"^ {2}\w+:", new, flags=re.M)[1:]]
    order = ["extends", "env", "policy", "algo", "train", "eval", "log", "spec"]
    assert all(found == [key for key in order if key in found] for found in keys if set(found) <= set(order))

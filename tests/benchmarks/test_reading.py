"""The counts of how code reads, on modules small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reading import count_source, main, main_class

BRANCHES = '''
def f(rows, flag):
    """Not a line of the body."""
    if flag and rows or not rows:
        return [row for row in rows if row]
    elif rows:
        for row in rows:
            with row:
                assert row
    while flag:
        try:
            return 1 if rows else 2
        except ValueError:
            pass
    match rows:
        case []:
            return 3
'''


def test_every_kind_of_branch_counts_once() -> None:
    counts = count_source(BRANCHES)
    # 1 + if, and, or, for and if of the comprehension, elif, for, while, conditional expression, except, case.
    assert counts.branches == 12
    assert counts.body_lines == 14
    assert counts.conditional_expressions == 1


def test_nested_functions_are_counted_once() -> None:
    counts = count_source(
        "def f(x):\n    def g(y):\n        import os\n        return 1 if y else os\n    return g(x)\n"
    )
    assert (counts.functions, counts.body_lines, counts.branches) == (2, 4, 3)
    assert counts.imports_in_functions == 1


def test_code_outside_functions_has_conditional_expressions_but_no_branches() -> None:
    counts = count_source("import os\nx = 1 if os else 2\nif x:\n    import sys\n")
    assert (counts.branches, counts.conditional_expressions, counts.imports_in_functions) == (0, 1, 0)


def test_licence_and_type_comments_are_no_comments() -> None:
    source = (
        "# Copyright (c) somebody\n#\n# SPDX-License-Identifier: MIT\nx = 1  # type: ignore[misc]\ny = 2  # why\n# a\n"
    )
    assert count_source(source).comments == 2


def test_annotations_and_docstrings() -> None:
    source = '''
class A:
    """Short."""
    def __init__(self, x: int):
        """Four words are enough."""
    def open(self, x) -> None:
        """Opens it."""
    def _inner(self, *rest: int) -> None: ...
'''
    counts = count_source(source)
    assert (counts.functions, counts.annotated) == (3, 2)
    assert counts.short_docstrings == 2
    assert (counts.public_functions, counts.public_with_docstring) == (1, 1)


def test_collaborators_are_objects_of_the_packages_own_classes() -> None:
    source = """
from dataclasses import dataclass
from house import TABLE, Door, Wall, build
from pathlib import Path

@dataclass
class Room:
    door: Door | None
    size: tuple[int, int]
    path: Path = Path()
    def open(self):
        self.wall, self.count = Wall(), 1
        self.window = build(TABLE)
        self.size = (1, 2)
"""
    held = main_class(source, "Room", "house")
    assert held is not None
    assert held.attributes == ["door", "size", "path", "wall", "count", "window"]
    assert held.collaborators == ["door", "wall"]
    assert main_class(source, "Hall", "house") is None


def test_a_collaborator_may_come_in_as_a_parameter() -> None:
    source = """
from typing import TYPE_CHECKING
from house import Door
if TYPE_CHECKING:
    from house import Lamp
class Room:
    def __init__(self, door: Door, lamp: Lamp | None = None, *, size: int = 3):
        self.door, self.size = door, size
        self._lamp = lamp
        self.wide = size > 2
"""
    held = main_class(source, "Room", "house")
    assert held is not None
    assert held.attributes == ["door", "size", "_lamp", "wide"]
    assert held.collaborators == ["door", "_lamp"]


def test_folders_give_a_table_or_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "door.py").write_text("x = 1\n\ny = 2 if x else 3\n")
    (tmp_path / "top.py").write_text("# why\nx = 1\n")
    assert main([str(tmp_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)[str(tmp_path)]
    assert record["packages"]["rooms"]["conditional_expressions_per_1000_lines"] == 500
    assert record["packages"]["total"]["lines"] == 5
    assert record["packages"]["total"]["comments_per_1000_lines"] == 200
    assert main([str(tmp_path), "--main-class", "top.py:Nothing"]) == 0
    assert "main class: not found" in capsys.readouterr().out

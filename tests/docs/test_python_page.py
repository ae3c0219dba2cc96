"""docs/python.md is one program, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from launch import environment

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL)
MARK = "-- next block --"


def shape(text: str) -> list[str]:
    """What is printed without what differs from machine to machine: numbers, ids of runs, and spaces that follow from them."""
    masked = re.sub(r"-?\d[\d,.]*", "N", re.sub(r"\b[a-hj-km-np-z][a-hj-km-np-z2-9]{4}\b", "RUN", text))
    return [" ".join(line.split()) for line in masked.strip().splitlines()]


@pytest.mark.full  # a dozen trainings
def test_the_page_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 10
    program = "".join(f"{code}\nprint({MARK!r})\n" for code, _ in blocks)
    (tmp_path / "page.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (code, said), found in zip(blocks, printed, strict=False):
        if said:
            assert shape(found) == shape(said), code

"""Why a policy cannot be exported, in one sentence."""

from __future__ import annotations

import contextlib
import re
import traceback
from pathlib import Path

import torch

from gymnast.errors import GymnastError

_OPERATION = re.compile(r"OpOverload\(op='([\w.]+)'|(?<![\w.])(aten\.\w+)")


def cannot_export(target: str, error: Exception) -> GymnastError:
    """One sentence with the operation the exporter does not know, or where in the network it gave up."""
    chain = _chain(error)
    operation = next((m[1] or m[2] for e in chain for m in _OPERATION.finditer(str(e)) if m), None)
    line = next((text for e in chain for text in str(e).splitlines() if text.strip()), type(error).__name__)
    if operation:
        what = f"there is no form of the operation {operation}"
    else:
        what = " ".join(line.split()).rstrip(".")
    other = "Try --format torch" if target == "to ONNX" else "Use tensor operations only, without branches on values"
    return GymnastError(
        f"This policy cannot be exported {target}: {what}{_where(chain)}. {other}, or replace that layer or activation."
    )


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, the first cause first."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found[::-1]


def _where(chain: list[BaseException]) -> str:
    """The innermost line of code that is neither torch's nor the export's own."""
    skipped = (Path(torch.__file__).parent, Path(contextlib.__file__).parent, Path(__file__).with_name("export"))
    ours = tuple(map(str, skipped))
    for error in chain:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(ours)]
        if frames and frames[-1].filename.endswith(".py"):
            last = frames[-1]
            return f" (in {last.name}, {Path(last.filename).name} line {last.lineno})"
    return ""

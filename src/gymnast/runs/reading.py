"""JSON out of run files, which anybody may have written: strict, and within bounds.

A file of ours is small, flat and finite. One that is not is damaged or forged, and reading it is a `ValueError` with words
for the user, whatever is wrong with it.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 64 << 20
"""The largest JSON file that is read whole; the state tree of a checkpoint with many envs comes to a few MiB."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_json(path: Path, *, limit: int = MAX_BYTES) -> Any:
    """The content of a file; `OSError` if it cannot be read, `ValueError` if it is not sound."""
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ValueError(f"it is larger than {limit >> 20} MiB")
    return parse_json(raw)


def parse_json(raw: bytes, *, any_text: bool = False) -> Any:
    """Strict JSON: no NaN or infinity (also not as 1e400), no endless nesting, no text that cannot be encoded.

    `any_text` lets such text pass: the saved state of an env may hold it.
    """
    try:
        content = json.loads(raw, parse_float=_finite, parse_constant=_refuse)
        if not any_text and _SURROGATE.search(raw):  # half a character: neither SQLite nor a terminal takes it
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeError:
        raise ValueError("it is not valid text") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return content


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a finite number")

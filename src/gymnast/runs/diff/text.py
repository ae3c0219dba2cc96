"""Numbers for people."""

from __future__ import annotations

import json
from typing import Any


def pair(a: Any, b: Any) -> tuple[str, str]:
    """Two values with as many digits as it takes to tell them apart."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        for digits in range(4, 18):
            texts = f"{a:.{digits}g}", f"{b:.{digits}g}"
            if texts[0] != texts[1]:
                return texts
    return plain(a), plain(b)


def plain(value: Any) -> str:
    """One value, cut short."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= 60:
        return text
    return text[:57] + "…"

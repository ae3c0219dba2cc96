"""Results of this layer as plain JSON, for programs."""

from __future__ import annotations

import dataclasses
import math
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

NOT_JSON = {"json": False}
"""Metadata of a field that only this process can use, an open handle."""


def plain(value: Any) -> Any:
    """A result of this layer as dicts, lists, texts, numbers and null. NaN and infinity become null: strict JSON has neither."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy need not be imported for a result without arrays
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in dataclasses.fields(value) if field.metadata != NOT_JSON]
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, (Path, datetime)):
        return str(value)
    return value

"""Amounts of steps in a config: env steps, or vec steps where that is said (`500 vec_steps`)."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt

VEC_STEPS, ENV_STEPS = "vec_steps", "env_steps"
_AMOUNT = re.compile(r"(?P<number>[0-9][0-9_,.]*(e\+?[0-9]+)?)\s*(?P<axis>(vec|env)[ _-]steps)?", re.IGNORECASE)


def amount_of_steps(raw: Any) -> Any:
    """An amount as a config keeps it: a whole number of env steps, or text such as `500 vec_steps`."""
    if not isinstance(raw, str):
        return raw
    found = _AMOUNT.fullmatch(raw.strip())
    if found is None:
        raise ValueError(f"'{raw}' is not a number of steps: write a number of env steps, or '500 vec_steps'")
    try:
        number = float(found["number"].replace("_", "").replace(",", ""))
    except ValueError:
        raise ValueError(f"'{found['number']}' is no number") from None
    if not math.isfinite(number) or number != round(number):
        raise ValueError(f"must be a whole number of steps, not '{raw}'")
    axis = (found["axis"] or ENV_STEPS).lower()
    if axis.startswith("env"):
        return int(number)
    return f"{int(number)} {VEC_STEPS}"


def in_env_steps(amount: int | str, n_envs: int) -> int:
    """The same amount in env steps, of so many envs."""
    if isinstance(amount, str):
        return int(amount.removesuffix(VEC_STEPS)) * n_envs
    return amount


InVecSteps = Annotated[str, Field(pattern=r"^[1-9][0-9]* vec_steps$")]
Cadence = Annotated[PositiveInt | InVecSteps, BeforeValidator(amount_of_steps)]
"""Every so many steps."""
Wait = Annotated[NonNegativeInt | InVecSteps, BeforeValidator(amount_of_steps)]
"""Not before so many steps."""

"""The `env.randomise` section: parameters of the env that are drawn anew for every episode."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from gymnast.config.model import Model

Value = bool | float | str
NEEDED = "a range [lowest, highest], one value, or {choices: [...]} is needed"


class Between(Model):
    """Any number between two, all alike likely: `[-12, -8]`. Whole numbers where the parameter is one."""

    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Between:
        if self.low > self.high:
            raise ValueError(f"the lowest number of a range comes first (got {self.low:g} and {self.high:g})")
        return self

    def __str__(self) -> str:
        return f"{self.low:g} … {self.high:g}"


class Choices(Model):
    """One of several values, all alike likely."""

    choices: list[Value] = Field(min_length=1)

    def __str__(self) -> str:
        return " or ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in self.choices)


def _drawn(raw: Any) -> Any:
    if isinstance(raw, (Between, Choices)):
        return raw
    if isinstance(raw, dict):
        if "choices" in raw:
            return Choices.model_validate(raw)
        return Between.model_validate(raw)
    if isinstance(raw, list):
        if len(raw) != 2 or not all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in raw):
            raise ValueError(NEEDED)
        return Between(low=raw[0], high=raw[1])
    if isinstance(raw, (int, float, str)):
        return Choices(choices=[raw])
    raise ValueError(NEEDED)


Drawn = Annotated[Between | Choices, BeforeValidator(_drawn)]

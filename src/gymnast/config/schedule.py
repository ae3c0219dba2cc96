"""Hyperparameters that change during training (CFG-4).

Any float hyperparameter takes a number, or a mapping with `schedule:` (constant, linear, cosine, exponential, piecewise),
or the short forms `lin_3e-4` (rl-zoo: linear to zero) and `[[0, 1e-3], [1, 1e-4]]` (straight lines between points).
Schedules are pure functions of the clock, so a resumed run continues them unchanged.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, PlainValidator, model_validator

from gymnast.config.model import Model

Axis = Literal["progress", "env_steps", "vec_steps"]


@dataclass(frozen=True)
class Clock:
    """The progress of a run, which schedules read."""

    env_steps: int
    vec_steps: int
    progress: float


class _Decay(Model):
    start: float
    """Value before the decay begins."""
    end: float = 0.0
    """Value when the decay is over."""
    decay_start: float = Field(0.0, ge=0)
    """Where the decay begins, on `axis`."""
    decay_end: float | None = Field(None, gt=0)
    """Where it ends, on `axis`; the end of the budget by default."""
    floor: float | None = None
    """The value never falls below this."""
    axis: Axis = "progress"
    """What the schedule reads: share of the budget done, env steps or vector steps."""

    @model_validator(mode="after")
    def _ordered(self) -> _Decay:
        if self.axis != "progress" and self.decay_end is None:
            raise ValueError(f"a schedule over {self.axis} needs decay_end, the step at which it ends")
        if self.decay_end is not None and self.decay_end <= self.decay_start:
            raise ValueError("decay_end must lie after decay_start")
        return self

    def _fraction(self, clock: Clock) -> float:
        position = float(getattr(clock, self.axis))
        end = 1.0 if self.decay_end is None else self.decay_end
        return min(1.0, max(0.0, (position - self.decay_start) / (end - self.decay_start)))

    def values(self) -> list[float]:
        """The extreme values this schedule can take, for range checks."""
        bounds = [self.start, self.end]
        if self.floor is not None:
            bounds.append(self.floor)
        return bounds

    def _shape(self, fraction: float) -> float:
        raise NotImplementedError

    def at(self, clock: Clock) -> float:
        """Value at this moment."""
        value = self._shape(self._fraction(clock))
        if self.floor is None:
            return value
        return max(value, self.floor)


class Linear(_Decay):
    """Straight line from start to end."""

    schedule: Literal["linear"]

    def _shape(self, fraction: float) -> float:
        return self.start + (self.end - self.start) * fraction


class Cosine(_Decay):
    """Half a cosine from start to end."""

    schedule: Literal["cosine"]

    def _shape(self, fraction: float) -> float:
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * fraction))


class Exponential(_Decay):
    """Constant ratio per step from start to end (both above zero)."""

    schedule: Literal["exponential"]
    end: float = Field(gt=0)
    start: float = Field(gt=0)

    def _shape(self, fraction: float) -> float:
        return float(self.start * (self.end / self.start) ** fraction)


class Constant(Model):
    """The same value throughout."""

    schedule: Literal["constant"]
    value: float

    def values(self) -> list[float]:
        """The only value it ever takes."""
        return [self.value]

    def at(self, clock: Clock) -> float:
        """Value at this moment."""
        return self.value


class Piecewise(Model):
    """Steps between `[position, value]` points, or straight lines between them."""

    schedule: Literal["piecewise"]
    points: list[tuple[float, float]] = Field(min_length=1)
    interpolate: Literal["step", "linear"] = "step"
    floor: float | None = None
    """The value never falls below this."""
    axis: Axis = "progress"
    reset_optimizer: bool = False
    """Clear the optimizer's moments at each jump."""

    @model_validator(mode="after")
    def _sorted(self) -> Piecewise:
        positions = [position for position, _ in self.points]
        if positions != sorted(positions) or len(set(positions)) != len(positions):
            raise ValueError("positions of a piecewise schedule must increase")
        return self

    def values(self) -> list[float]:
        """All point values, and the floor."""
        bounds = [value for _, value in self.points]
        if self.floor is not None:
            bounds.append(self.floor)
        return bounds

    def segment(self, clock: Clock) -> int:
        """Index of the last point reached; a change of it is a jump."""
        position = float(getattr(clock, self.axis))
        return max(0, sum(position >= at for at, _ in self.points) - 1)

    def at(self, clock: Clock) -> float:
        """Value at this moment."""
        value = self._between_points(clock)
        if self.floor is None:
            return value
        return max(value, self.floor)

    def _between_points(self, clock: Clock) -> float:
        i = self.segment(clock)
        (x0, y0) = self.points[i]
        if self.interpolate == "step" or i + 1 == len(self.points):
            return y0
        (x1, y1) = self.points[i + 1]
        position = float(getattr(clock, self.axis))
        return y0 + (y1 - y0) * max(0.0, (position - x0) / (x1 - x0))


Schedule = Constant | Linear | Cosine | Exponential | Piecewise
SCHEDULES: dict[str, type[Constant | Linear | Cosine | Exponential | Piecewise]] = {
    "constant": Constant,
    "linear": Linear,
    "cosine": Cosine,
    "exponential": Exponential,
    "piecewise": Piecewise,
}


def _short_forms(raw: Any) -> Any:
    if isinstance(raw, str) and raw.startswith("lin_"):
        try:
            return {"schedule": "linear", "start": float(raw[4:]), "end": 0.0}
        except ValueError:
            raise ValueError(f"'{raw}' is not a schedule: after lin_ comes a number, as in lin_2.5e-4") from None
    if isinstance(raw, list):
        return {"schedule": "piecewise", "points": raw, "interpolate": "linear"}
    if isinstance(raw, dict) and str(raw.get("schedule")) not in SCHEDULES:
        raise ValueError(f"a schedule needs 'schedule:' with one of {', '.join(SCHEDULES)}")
    return raw


def number_or_schedule(raw: Any) -> Any:
    """A finite number or a schedule from what a file or command line says."""
    raw = _short_forms(raw)
    if isinstance(raw, (Constant, Linear, Cosine, Exponential, Piecewise)):
        return raw
    if isinstance(raw, dict):
        return SCHEDULES[raw["schedule"]].model_validate(raw)
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError("expected a number or a schedule")
    try:
        number = float(raw)
    except ValueError:
        raise ValueError(f"expected a number or a schedule, not '{raw}'") from None
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


if TYPE_CHECKING:
    Scheduled = float | Schedule
else:
    # Validated by hand: a union of five models in each of twenty fields would cost a tenth of a second at every start.
    Scheduled = Annotated[Any, PlainValidator(number_or_schedule, json_schema_input_type=float | Schedule)]


@functools.cache
def scheduled_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Names of a model's fields that take a number or a schedule, in their order."""

    def takes_schedules(annotation: Any) -> bool:
        return annotation is Any or any(map(takes_schedules, get_args(annotation)))

    return tuple(name for name, field in model.model_fields.items() if takes_schedules(field.annotation))


@dataclass(frozen=True)
class Range:
    """Bounds of every value a schedule can take; it may fall to an open bound, not start there."""

    low: float | None
    high: float | None
    open_low: bool

    def __call__(self, value: float | Schedule) -> float | Schedule:
        """The value, or an error."""
        for i, number in enumerate([value] if isinstance(value, float) else value.values()):
            closed = not self.open_low or i > 0
            if self.low is not None and (number < self.low if closed else number <= self.low):
                raise ValueError(f"must be {'at least' if closed else 'above'} {self.low:g} (got {number:g})")
            if self.high is not None and number > self.high:
                raise ValueError(f"must be at most {self.high:g} (got {number:g})")
        return value


def within(low: float | None = None, high: float | None = None, *, open_low: bool = False) -> AfterValidator:
    """Range check of a number or schedule."""
    return AfterValidator(Range(low, high, open_low))


def value_at(value: float | Schedule, clock: Clock) -> float:
    """The number a hyperparameter has at this moment."""
    if isinstance(value, (int, float)):
        return value
    return value.at(clock)


def over_the_budget(values: dict[str, Any]) -> dict[str, str]:
    """How each schedule that follows the share of the budget runs, in words: `3e-3 → 0`. Its end moves with the budget."""
    words = {}
    for name, value in values.items():
        if isinstance(value, _Decay) and value.axis == "progress":
            words[name] = f"{value.start:g} → {value.end:g}"
        elif isinstance(value, Piecewise) and value.axis == "progress" and len(value.points) > 1:
            words[name] = " → ".join(f"{number:g}" for _, number in value.points)
    return words


def segments(values: dict[str, Any], clock: Clock) -> dict[str, int]:
    """Segment index of every piecewise schedule that asks for an optimizer reset at its jumps."""
    return {k: v.segment(clock) for k, v in values.items() if isinstance(v, Piecewise) and v.reset_optimizer}

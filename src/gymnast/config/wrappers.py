"""The arguments of every wrapper, checked when a config is read, long before an env is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError, field_validator
from pydantic import model_validator as validator

from gymnast.config.model import Model
from gymnast.errors import did_you_mean

Rectangle = Annotated[list[NonNegativeInt], Field(min_length=4, max_length=4)]


class Settings(Model):
    """Arguments of one wrapper. Strict: `true` is not a number and "4" not a size."""

    model_config = ConfigDict(strict=True)

    def text(self) -> str:
        """The arguments, as shown in brackets after the name."""
        shown = {key: value for key, value in dict(self).items() if value not in (None, False)}
        if len(shown) == 1 and True not in shown.values():
            return _short(*shown.values())
        return ", ".join(key if value is True else f"{key}={_short(value)}" for key, value in shown.items())


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


class Nothing(Settings):
    """Settings of a wrapper that takes no arguments."""


class ActionNoise(Settings):
    """Noise on the way to the env."""

    std: PositiveFloat | None = None
    """Of a Gaussian added to Box actions, which are then clipped to their bounds."""
    probability: float | None = Field(None, gt=0, le=1)
    """Of a random possible action instead of the chosen one, for all other spaces."""

    @validator(mode="after")
    def _one(self) -> ActionNoise:
        if (self.std is None) == (self.probability is None):
            raise ValueError("give std (Box actions) or probability (all others)")
        return self


class ActionStack(Settings):
    """How many actions are remembered."""

    size: PositiveInt = 4


class Crop(Settings):
    """Pixels cut off at each side."""

    top: NonNegativeInt = 0
    bottom: NonNegativeInt = 0
    left: NonNegativeInt = 0
    right: NonNegativeInt = 0

    def text(self) -> str:
        """Only the sides that lose something."""
        return ", ".join(f"{side}={pixels}" for side, pixels in dict(self).items() if pixels)


class FrameSkip(Settings):
    """How often an action is repeated."""

    skip: int | list[int] = 4
    """A fixed number of steps, or [lowest, highest]: drawn afresh for every action, both included."""
    choices: list[PositiveInt] | None = Field(None, min_length=2)
    """Numbers of steps among which the policy chooses with every action, instead of `skip`."""
    max_pool: bool = False
    """The pixelwise maximum of the last two frames, for images that flicker."""

    @field_validator("skip", mode="wrap")
    @classmethod
    def _steps(cls, value: Any, _: Any) -> int | list[int]:
        if isinstance(value, list) and len(value) == 2:
            ends = value
        else:
            ends = [value, value]
        if any(isinstance(end, bool) or not isinstance(end, int) or end < 1 for end in ends) or ends[0] > ends[1]:
            raise ValueError(f"a whole number of at least 1, or a range [lowest, highest] is needed (got {value!r})")
        if isinstance(value, int):
            return value
        return ends

    @validator(mode="after")
    def _one_way(self) -> FrameSkip:
        if self.choices is not None and "skip" in self.model_fields_set:
            raise ValueError("give skip or choices, not both")
        if self.choices is not None and len(set(self.choices)) < len(self.choices):
            raise ValueError(f"choices must differ (got {self.choices})")
        return self

    def text(self) -> str:
        """`4`, `2 to 5 at random`, `the policy's choice of 1, 2, 4`."""
        if self.choices is not None:
            number = f"the policy's choice of {', '.join(map(str, self.choices))}"
        elif isinstance(self.skip, int):
            number = str(self.skip)
        else:
            number = "{} to {} at random".format(*self.skip)
        if self.max_pool:
            return f"{number}, max_pool"
        return number

    @property
    def least(self) -> int:
        """Fewest steps of the env per step of the agent."""
        return min(self.choices or [self.skip if isinstance(self.skip, int) else self.skip[0]])

    @property
    def mean(self) -> float | None:
        """Steps of the env per step of the agent; None if the policy decides."""
        if self.choices is not None:
            return None
        if isinstance(self.skip, int):
            return float(self.skip)
        return sum(self.skip) / 2


class MaskRegion(Settings):
    """What is blacked out."""

    rectangles: list[Rectangle] = Field(min_length=1)
    """Each [x, y, width, height] in pixels, counted from the upper left corner."""


class NoRewardTimeout(Settings):
    """When to give up."""

    steps: PositiveInt


class ObservationNoise(Settings):
    """Noise on what is seen."""

    std: PositiveFloat
    """Of a Gaussian, in the units of the observation (of pixels: 0 to 255)."""


class Quantise(Settings):
    """How many values are left."""

    levels: int = Field(ge=2, le=256)


class Resize(Settings):
    """The new size of an image."""

    width: PositiveInt = 84
    height: PositiveInt = 84
    keep_aspect: bool = False
    """Scale both sides alike and fill the rest with black."""

    def text(self) -> str:
        """The new size as it is shown, `84×84`."""
        size = f"{self.width}×{self.height}"
        if self.keep_aspect:
            return f"{size}, keep_aspect"
        return size


class RewardClip(Settings):
    """Bounds of the reward the learner sees."""

    low: float = -1.0
    high: float = 1.0

    @validator(mode="after")
    def _ordered(self) -> RewardClip:
        if not self.low < self.high:
            raise ValueError(f"low must be below high (got {self.low} and {self.high})")
        return self

    def text(self) -> str:
        """The range as it is shown, `-1 … 1`."""
        return f"{self.low:g} … {self.high:g}"


class RewardScale(Settings):
    """The reward the learner sees is reward × factor + offset."""

    factor: float
    offset: float = 0.0

    def text(self) -> str:
        """Factor and offset as they are shown, `×0.1 - 1`."""
        factor = f"×{self.factor:g}"
        if self.offset:
            return f"{factor} {self.offset:+g}"
        return factor


class Stack(Settings):
    """How many observations are kept, and what comes before the first one."""

    size: PositiveInt = 4
    padding: Literal["first", "zero"] = "first"
    """`first` repeats an episode's first observation, `zero` is black frames as ALE's own vector env has them."""

    def text(self) -> str:
        """The number of entries as it is shown, `4`."""
        return f"{self.size}{', padding=zero' if self.padding == 'zero' else ''}"


class Select(Settings):
    """Which components are seen."""

    components: list[NonNegativeInt] = Field(min_length=1)
    """Their numbers from 0, in the order in which they are to be seen."""

    @field_validator("components")
    @classmethod
    def _once(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value):
            raise ValueError(f"each component once (got {value})")
        return value


class StickyActions(Settings):
    """How likely the last action is executed again."""

    probability: float = Field(0.25, ge=0, lt=1)


class TimeLimit(Settings):
    """When episodes are cut off."""

    steps: PositiveInt


SETTINGS: dict[str, type[Settings]] = {
    "action_clip": Nothing,
    "action_noise": ActionNoise,
    "action_stack": ActionStack,
    "array": Nothing,
    "crop": Crop,
    "frame_skip": FrameSkip,
    "frame_stack": Stack,
    "gray": Nothing,
    "mask_region": MaskRegion,
    "no_reward_timeout": NoRewardTimeout,
    "observation_noise": ObservationNoise,
    "observation_stack": Stack,
    "one_hot": Nothing,
    "pixels": Nothing,
    "quantise": Quantise,
    "resize": Resize,
    "reward_clip": RewardClip,
    "reward_scale": RewardScale,
    "select": Select,
    "sticky_actions": StickyActions,
    "time_limit": TimeLimit,
}


def unknown(name: str, *plugins: str) -> str:
    """What to say about a wrapper that does not exist."""
    known = [*SETTINGS, *plugins]
    return f"Unknown wrapper '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}."


def settings_of(name: str, args: dict[str, Any], model: type[Settings] | None = None) -> Settings:
    """The checked arguments of a known wrapper; a ValueError that names the allowed ones otherwise."""
    model = model or SETTINGS[name]
    try:
        return model.model_validate(args)
    except ValidationError as error:
        raise ValueError(f"wrapper '{name}' {problem_of(model, error.errors()[0])}") from None


def problem_of(model: type[Settings], problem: Any) -> str:
    """What is wrong with an argument, as the end of a sentence that begins with what it belongs to."""
    allowed = ", ".join(model.model_fields) or "none"
    key = ".".join(str(part) for part in problem["loc"][:1])
    if problem["type"] == "extra_forbidden":
        return f"has no argument '{key}'.{did_you_mean(key, model.model_fields)} Its arguments: {allowed}."
    if problem["type"] == "missing":
        return f"needs the argument '{key}'. Its arguments: {allowed}."
    message = str(problem["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if "(got " in message or not key:
        got = ""
    else:
        got = f" (got {problem['input']!r})"
    return f"cannot be made: {key + ': ' if key else ''}{message}{got}. Its arguments: {allowed}."

"""The `env.rewards` section: what is learned from besides the env's own reward. Scores are of the env's own reward alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from gymnast import own_code, plugins
from gymnast.config import shapers
from gymnast.config.expressions import Expression, ExpressionError, parse
from gymnast.config.model import Model
from gymnast.config.spec import Component

KINDS = ("shaper", "expression", "potential", "costs")
"""What a term can be: exactly one of these."""
OWN = "own"
"""The env's own reward, which no term may be called."""


@dataclass(frozen=True)
class Names:
    """What terms may name, from the env's spec card, and the learner's discount."""

    gamma: float | None = None
    """None if it is not one number."""
    observation: Sequence[Component] = field(default_factory=tuple)
    actions: Sequence[str] = ()
    action_components: Sequence[str] = ()


class TermConfig(Model):
    """One term of the reward: `{shaper: cartpole_centring, weight: 0.5}`, or just the text of an expression."""

    weight: float = 1.0
    """What its value is multiplied by before it is added."""
    shaper: str | None = None
    """A shipped one, a plug-in's, or one of your own by import path (`my_module:MyTerm`)."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Of the shaper."""
    expression: str | None = None
    """The value as an expression over named components, the action, reward, step and info: `-abs(pole_angle)`."""
    potential: str | None = None
    """A potential Φ of the state as an expression: pays γΦ(next) - Φ(here), which leaves the best policy the best."""
    costs: dict[str, float] | None = None
    """What each of these actions costs, by label: `{main engine: 0.3}`."""

    @field_validator("expression", "potential")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        if text is not None:
            parse(text)
        return text

    @model_validator(mode="after")
    def _one_kind(self) -> TermConfig:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(
                f"a term has exactly one of {', '.join(KINDS)} (got {' and '.join(given) or 'none of them'})"
            )
        if self.args and self.shaper is None:
            raise ValueError("args are those of a shaper, and this term has none")
        if self.shaper in shapers.NAMES:
            shapers.arguments(str(self.shaper), self.args)
        elif self.shaper is not None:
            _known_elsewhere(self.shaper)
        if self.costs is not None and not self.costs:
            raise ValueError("costs needs at least one action by its label")
        for text in (
            self.potential,
            shapers.RECIPES[self.shaper].potential if self.shaper in shapers.RECIPES else None,
        ):
            if text:
                of_states_alone(parse(text))
        return self

    def __str__(self) -> str:
        """`0.5 × cartpole_centring`, `-abs(pole_angle)`."""
        if self.shaper is not None:
            what = self.shaper
        elif self.potential is not None:
            what = f"potential {self.potential}"
        elif self.costs is not None:
            what = "costs " + ", ".join(f"{label} {cost:g}" for label, cost in self.costs.items())
        else:
            what = str(self.expression)
        if self.weight == 1:
            return what
        return f"{self.weight:g} × {what}"


def _known_elsewhere(name: str) -> None:
    """Refuse a shaper that nobody brings; nothing is imported yet."""
    if own_code.is_own(name) or plugins.find(plugins.REWARDS, name) is not None:
        return
    raise ValueError(shapers.unknown(name, *(one.name for one in plugins.installed(plugins.REWARDS))))


def of_states_alone(expression: Expression) -> None:
    """Refuse a potential that reads anything but a state."""
    for one in expression.references():
        if one.before or one.scope not in ("obs", "info"):
            raise expression.refuse(one.at, f"a potential is a function of one state, so it cannot read '{one}'")


def _term(raw: Any) -> Any:
    if isinstance(raw, str):
        return {"expression": raw}
    if isinstance(raw, dict) and "shaper" in raw and "args" not in raw:
        own = {key: value for key, value in raw.items() if key in TermConfig.model_fields}
        return {**own, "args": {key: value for key, value in raw.items() if key not in own}}
    return raw


class RewardsConfig(Model):
    """What is learned from: the env's own reward and further terms, each with a weight, each logged by its name."""

    own: float = 1.0
    """Weight of the env's own reward."""
    terms: dict[str, Annotated[TermConfig, BeforeValidator(_term)]] = Field(default_factory=dict)
    discount: float | None = Field(None, ge=0, le=1)
    """Of potentials; `algo.gamma` by default, with which the best policy stays the best."""
    _names: Names = PrivateAttr(default_factory=Names)

    @property
    def names(self) -> Names:
        """What the terms may name."""
        return self._names

    def learn_names(self, names: Names) -> None:
        """Take in what the rest of a config says of the env; `RunConfig` does so when it is made."""
        self._names = names

    @model_validator(mode="after")
    def _good_names(self) -> RewardsConfig:
        for name in self.terms:
            if not name.replace("_", "").replace("-", "").isalnum() or name == OWN:
                raise ValueError(f"a term's name has letters, digits, - and _ only and is not '{OWN}' (got '{name}')")
        return self


__all__ = ["ExpressionError", "Names", "RewardsConfig", "TermConfig"]

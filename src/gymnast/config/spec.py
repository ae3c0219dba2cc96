"""What is known about an environment (CFG-6): labels, ranges, thresholds and scores with their sources."""

from __future__ import annotations

from pydantic import Field

from gymnast.config.model import Model


class Component(Model):
    """One component of the observation (or of a continuous action)."""

    name: str
    low: float | None = None
    high: float | None = None
    """`null` means unbounded."""
    unit: str = ""
    values: list[str] = Field(default_factory=list)
    """Names of the values of a discrete component."""


class Score(Model):
    """A published or computed score and where it comes from."""

    score: float
    source: str
    protocol: str = ""


class EnvSpec(Model):
    """Spec card of one environment."""

    description: str = ""
    actions: list[str] = Field(default_factory=list)
    """Label of each discrete action, in order."""
    action_components: list[Component] = Field(default_factory=list)
    """Components of a continuous action."""
    observation: list[Component] = Field(default_factory=list)
    reward_range: tuple[float | None, float | None] | None = None
    """Smallest and largest reward of one step; `null` means unbounded."""
    return_range: tuple[float | None, float | None] | None = None
    horizon: int | None = None
    """Steps after which an episode is cut off."""
    solved_at: float | None = None
    """Mean return at which the environment counts as solved."""
    solved_source: str = ""
    random_score: Score | None = None
    optimal_score: Score | None = None
    """Exact optimum, where one is known."""
    reference_scores: dict[str, Score] = Field(default_factory=dict)
    best_published: Score | None = None
    notes: str = ""

"""Toy text: Gymnasium's small problems with a table of states. Its line in `gymnast doctor` is that of classic control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family
from gymnast.envs.keyboard import Choices, by_id

if TYPE_CHECKING:
    from gymnast.config.schema import EnvConfig

HOME = "gymnasium.envs.toy_text"
SLIPPERY = ("FrozenLake", "CliffWalking")
"""Envs that become random by an argument."""

KEYS = {
    "FrozenLake": Choices({"left": 0, "down": 1, "right": 2, "up": 3}, turns=True),
    "CliffWalking": Choices({"up": 0, "right": 1, "down": 2, "left": 3}, turns=True),
    "Taxi": Choices({"down": 0, "up": 1, "right": 2, "left": 3, "space": 4, "enter": 5}, turns=True),
    "Blackjack": Choices({"space": 1, "enter": 0}, turns=True),
}
"""By the beginning of the id."""


def _randomness(config: EnvConfig) -> str | None:
    if config.id.startswith(SLIPPERY):
        return "env.kwargs.is_slippery=true"
    return None


TOY_TEXT = Family(
    name="toy_text",
    homes=(HOME,),
    step_milliseconds=0.01,
    fields={
        f"{HOME}.frozen_lake.FrozenLakeEnv": ("s", "lastaction"),
        f"{HOME}.taxi.TaxiEnv": ("s", "lastaction", "fickle_step", "taxi_orientation"),
        f"{HOME}.cliffwalking.CliffWalkingEnv": ("s", "lastaction"),
        f"{HOME}.blackjack.BlackjackEnv": (
            "dealer",
            "player",
            "dealer_top_card_suit",
            "dealer_top_card_value_str",
        ),
    },
    draws_anywhere=True,
    keyboard=by_id(KEYS),
    randomness=_randomness,
)

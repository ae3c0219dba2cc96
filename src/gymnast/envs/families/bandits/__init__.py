"""Multi-armed bandits, ours (ENV-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family

if TYPE_CHECKING:
    from gymnast.config.schema import EnvConfig
    from gymnast.envs.families.family import NativeForm

HORIZON = 200
"""Pulls in an episode: a time limit like any other, `env.time_limit` changes it."""

# The ten arms of distribution 12 of Auer, Cesa-Bianchi and Fischer 2002, best arm first.
AUER_12 = [0.9, 0.8, 0.8, 0.8, 0.7, 0.7, 0.7, 0.6, 0.6, 0.6]

REGISTERED: dict[str, dict[str, Any]] = {
    "gymnast/Bandit-v0": {"means": AUER_12},
    "gymnast/RandomBandit-v0": {"arms": 5, "observe": "statistics"},
    "gymnast/DriftingBandit-v0": {"arms": 5, "drift": 0.03, "observe": "statistics", "memory": 0.95},
    "gymnast/ContextualBandit-v0": {"arms": 4, "context": 2},
}
"""Env ids and their default arguments."""

HOME = "gymnast.envs.families.bandits"


def _native(config: EnvConfig) -> NativeForm | str:
    from gymnast.envs.families.bandits.vector import native_bandit

    return native_bandit(config)


BANDITS = Family(
    name="bandits",
    prefixes=("gymnast/",),
    homes=(HOME,),
    registers=f"{HOME}.registered",
    native=_native,
    step_milliseconds=0.01,
    fields={f"{HOME}.env.BanditEnv": ("state",)},
    draws_anywhere=True,
)

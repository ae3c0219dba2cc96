"""Lists and cards of envs, and results as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gymnast.service.env_card import env_card
from gymnast.service.envs import list_envs
from gymnast.service.plain import plain


def test_list() -> None:
    (entry,) = list_envs(["frozen"])
    assert (entry.id, entry.family, entry.installed) == ("FrozenLake-v1", "toy_text", True)
    assert "ppo" in entry.variants
    assert {one.id for one in list_envs(["frozen"], everything=True)} > {"FrozenLake-v1"}


def test_card() -> None:
    card = env_card("CartPole-v1")
    assert (card.id, card.time_limit, card.spec.solved_at) == ("CartPole-v1", 500, 475)
    assert card.action_space == "Discrete(2)"
    data = plain(card)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["spec"]["actions"] == ["push left", "push right"]


@dataclass(frozen=True)
class Thing:
    path: Path
    numbers: np.ndarray
    inner: tuple[dict[str, float], ...]


def test_any_result_is_strict_json() -> None:
    thing = Thing(Path("a/b"), np.array([[1.0, math.nan]]), ({"x": math.inf, "y": np.float32(0.5)},))
    assert plain(thing) == {"path": "a/b", "numbers": [[1.0, None]], "inner": [{"x": None, "y": 0.5}]}
    assert plain(np.int64(3)) == 3 and plain(True) is True

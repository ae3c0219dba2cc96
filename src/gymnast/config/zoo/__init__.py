"""rl-baselines3-zoo's hyperparameters as variants of ours."""

from __future__ import annotations

from gymnast.config.zoo.defaults import ALGORITHMS, OTHER_ALGORITHMS, TEMPLATES
from gymnast.config.zoo.entry import Translation, known_keys, translate

__all__ = ["ALGORITHMS", "OTHER_ALGORITHMS", "TEMPLATES", "Translation", "known_keys", "translate"]

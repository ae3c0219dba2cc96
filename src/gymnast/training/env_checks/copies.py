"""A warning at the start of a run whose envs are all the same (RUN-11)."""

from __future__ import annotations

from gymnast.config.schema import RunConfig
from gymnast.envs.alike import plays_alike, randomness, starts_alike
from gymnast.envs.spaces import Observation


class Copies:
    """Looks once, at the envs of a new run."""

    def __init__(self, config: RunConfig, n_envs: int) -> None:
        self._config, self._n_envs = config, n_envs
        self._suspicious = False

    def begin(self, obs: Observation) -> None:
        """The first observations of a new run. Most envs begin differently in every slot: then there is nothing to look at."""
        self._suspicious = self._n_envs > 1 and starts_alike(obs)

    def check(self) -> list[str]:
        """What to know about copies of an env that plays the same under every seed; nothing if copies differ."""
        if not self._suspicious:
            return []
        self._suspicious = False
        config = self._config
        if not plays_alike(config.env):
            return []
        evaluation = ""
        if config.eval.deterministic:
            evaluation = " Deterministic evaluations always play the same episode: one (eval.episodes=1) is enough."
        return [
            f"{config.env.id} plays the same under every seed: equal actions led to equal observations, rewards and ends. Its "
            f"{self._n_envs} copies differ only in the actions that are sampled, so fewer (env.n_envs) may do as well."
            f"{evaluation} To train on more than one course of events, make it random: {randomness(config.env)}."
        ]

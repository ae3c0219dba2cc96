"""A word about envs whose episodes do not end, before hours of training lead to an evaluation that cannot end either."""

from __future__ import annotations

from gymnast.config.schema import RunConfig
from gymnast.envs.time_limits import ENDLESS_ADVICE, UNLIMITED_STEPS, time_limit_of
from gymnast.errors import EnvError

SUSPICIOUS_STEPS = 2_000


class Endings:
    """Looks at every iteration boundary, until the first episode has ended."""

    def __init__(self, config: RunConfig, n_envs: int) -> None:
        self._env_id, self._n_envs = config.env.id, n_envs
        self._open = time_limit_of(config.env) is None
        self._warned = False

    def check(self, vec_steps: int, episodes: int) -> list[str]:
        """Warn after some steps of each env without any end, give up after many more."""
        if not self._open:
            return []
        if episodes:
            self._open = False
            return []
        if vec_steps < SUSPICIOUS_STEPS:
            return []
        what = (
            f"No episode of {self._env_id} has ended in the first {vec_steps:,} steps of {self._n_envs} envs, and it has "
            "no time limit."
        )
        if vec_steps >= UNLIMITED_STEPS:
            raise EnvError(
                f"{what} Returns and evaluations need whole episodes: please {ENDLESS_ADVICE}. "
                "If its episodes are meant to be longer, a larger env.time_limit says so."
            )
        if self._warned:
            return []
        self._warned = True
        return [f"{what} If they never end, {ENDLESS_ADVICE}."]

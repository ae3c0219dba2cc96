"""What an env returns in its first steps, held against what it promised; afterwards nothing is looked at and it costs nothing.

Without it a wrong env would be trained on in silence (see `conformity`). What can only be misread is an error; what is merely odd
is a warning, said once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from gymnast.envs.conformity import NUMBERS, amount, as_array, misfit, oddities, short
from gymnast.envs.spaces import n_masked_actions
from gymnast.errors import EnvError
from gymnast.redaction import logger

STEPS = 100
"""Steps of each slot that are looked at."""
EPISODES = 5
"""Resets and final observations of each slot that are looked at."""
Step = Callable[[Any], Any]
log = logger(__name__)
_said: set[str] = set()


def warn(key: str | None, text: str) -> None:
    """Say a warning, once per key: many envs and processes may have it. A worker passes it on, and the trainer says it."""
    if key is None:
        log.warning("warning: %s", text)
    elif key not in _said:
        _said.add(key)
        log.warning("warning: %s", text, extra={"once": key})


class FirstLook:
    """Looks at the outcomes of N single envs until each slot has shown enough."""

    def __init__(self, env: gym.Env, n_envs: int) -> None:
        if env.spec:
            self.env_id = env.spec.id
        else:
            self.env_id = type(env.unwrapped).__name__
        self.first_slot = 0
        """Number of the first slot in the whole pool, for messages; a worker sets its own."""
        self.masked = False
        """Whether every info must hold an action mask."""
        self._observation, self._action = env.observation_space, env.action_space
        self._steps, self._resets, self._finals = ([count] * n_envs for count in (STEPS, EPISODES, EPISODES))

    def watched(self, slot: int, steps: list[Step], step: Step) -> Step:
        """The step function with a look at its outcomes, which puts the bare one into `steps` when it has seen enough."""
        if not self._steps[slot]:
            return step

        def looking(action: Any) -> Any:
            outcome = step(action)
            self.step(slot, outcome)
            self._steps[slot] -= 1
            if not self._steps[slot]:
                steps[slot] = step
            return outcome

        return looking

    def reset(self, slot: int, value: Any) -> None:
        """Look at what the `reset` of a slot returned."""
        if not self._resets[slot]:
            return
        self._resets[slot] -= 1
        if not (isinstance(value, tuple) and len(value) == 2):
            self._refuse(slot, f"reset returned {amount(value)} instead of (observation, info)")
        obs, info = value
        self._info(slot, info, "reset")
        self._observed(slot, obs, "reset")
        if self.masked:
            self._mask(slot, info, "reset")

    def step(self, slot: int, outcome: Any) -> None:
        """Look at what the `step` of a slot returned."""
        if not (isinstance(outcome, tuple) and len(outcome) == 5):
            self._refuse(
                slot,
                f"step returned {amount(outcome)} instead of (observation, reward, terminated, truncated, info)",
            )
        obs, reward, terminated, truncated, info = outcome
        self._reward(slot, reward)
        ended = self._flag(slot, "terminated", terminated) | self._flag(slot, "truncated", truncated)
        self._info(slot, info, "step")
        if not ended:  # a final observation is looked at by itself, and nothing is chosen after it
            self._observed(slot, obs, "step")
            if self.masked:
                self._mask(slot, info, "step")

    def final(self, slot: int, obs: Any) -> None:
        """The last observation of an episode, whenever it ends."""
        if self._finals[slot]:
            self._finals[slot] -= 1
            self._observed(slot, obs, "the last step of an episode")

    def has_mask(self, info: dict[str, Any]) -> bool:
        """Whether there is a mask, one entry per action; a mask of another shape is refused."""
        if "action_mask" not in info:
            return False
        self._mask(0, info, "reset")
        return True

    def _mask(self, slot: int, info: dict[str, Any], source: str) -> None:
        if "action_mask" not in info:
            self._refuse(slot, f"{source} returned no info['action_mask'], the first reset did", NO_MASK)
        n_actions, mask = n_masked_actions(self._action), as_array(info["action_mask"])
        if mask is None or mask.shape != (n_actions,):
            got = "of unlike parts" if mask is None else f"of shape {mask.shape}"
            self._refuse(slot, f"{source} returned an info['action_mask'] {got} for {n_actions} actions", NO_MASK)

    def _info(self, slot: int, info: Any, source: str) -> None:
        if not isinstance(info, dict):
            self._refuse(slot, f"{source} returned an info of type {type(info).__name__} instead of a dict")

    def _reward(self, slot: int, reward: Any) -> None:
        array = as_array(reward)
        if array is None or array.dtype.kind not in NUMBERS:
            self._refuse(slot, f"step returned the reward {short(reward)}, which is no number", "Return a float")
        elif array.shape != ():
            self._refuse(
                slot, f"step returned a reward of shape {array.shape} instead of one number", "Return float(reward)"
            )

    def _flag(self, slot: int, name: str, flag: Any) -> bool:
        array = as_array(flag)
        if array is None or array.shape != () or array.dtype.kind not in NUMBERS or array not in (0, 1):
            self._refuse(slot, f"step returned {name} = {short(flag)} instead of True or False")
        assert array is not None
        if array.dtype.kind != "b":
            what = f"step returned {name} = {short(flag)}, which is taken for {bool(flag)}"
            warn(f"{self.env_id} {name}", f"{self.env_id}: {what}.")
        return bool(array)

    def _observed(self, slot: int, obs: Any, source: str) -> None:
        problem = misfit(self._observation, obs)
        if problem is not None:
            self._refuse(slot, f"{source} returned an observation{problem}")
        for key, what in oddities(self._observation, obs):
            warn(f"{self.env_id} {key}", f"{self.env_id}: {source} returned an observation{what}.")

    def out_of_range(self, slot: int, obs: Any) -> None:
        """A later observation names a choice that does not exist, so it points beyond a table."""
        self._refuse(slot, f"it returned an observation{misfit(self._observation, obs) or f' = {short(obs)}'}")

    def _refuse(self, slot: int, what: str, advice: str = "Fix the env or the space it declares") -> None:
        raise EnvError(
            f"Env {self.first_slot + slot} ({self.env_id}): {what}. {advice}; "
            "`gymnast env check` looks at everything that it returns."
        )


NO_MASK = "Give one entry per action with every reset and step, or set env.action_mask=off to ignore masks"

"""An agent behind Stable-Baselines3's `predict`, for their evaluation helpers and whatever else expects a model of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnast.api.agent import Agent


class SB3Model:
    """`predict(observation, state, episode_start, deterministic)` gives actions and state, as Stable-Baselines3's models do."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.observation_space = agent.observation_space
        self.action_space = agent.action_space

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[Any, tuple[np.ndarray, ...] | None]:
        """Actions for one observation or a batch; `state` is what a policy with memory carries from step to step."""
        agent = self.agent
        if agent.policy.state_shape is not None:
            return agent.predict(  # type: ignore[no-any-return]
                observation, deterministic, mask=action_masks, state=state, start=episode_start
            )
        found = agent.predict(observation, deterministic, mask=action_masks)
        return (np.asarray(found) if np.isscalar(found) else found), None

"""An agent behind Stable-Baselines3's `predict`, for their evaluation helpers and whatever else expects a model of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gymnast.envs.actions import executed
from gymnast.errors import UsageError

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
        """Actions for one observation or a batch; `state` is what a policy that remembers carries from step to step."""
        if self.agent.policy.state_shape is None:
            found = self.agent.predict(observation, deterministic, mask=action_masks)
            return (np.asarray(found) if np.isscalar(found) else found), None
        return self._remembering(observation, state, episode_start, deterministic, action_masks)

    def _remembering(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None,
        episode_start: np.ndarray | None,
        deterministic: bool,
        masks: np.ndarray | None,
    ) -> tuple[Any, tuple[np.ndarray, ...]]:
        agent = self.agent
        batch, mask, noise, single = agent.batch(observation, masks, deterministic)
        n = len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)
        fresh = agent.policy.initial_state(n)
        assert fresh is not None
        if state is None:
            memory = fresh
        else:
            memory = torch.from_numpy(np.array(state[0], np.float32))
            if memory.shape != fresh.shape:
                raise UsageError(f"The state has shape {tuple(memory.shape)}; {n} episodes need {tuple(fresh.shape)}.")
            begins = torch.as_tensor(np.zeros(n, bool) if episode_start is None else np.asarray(episode_start, bool))
            memory[begins] = fresh[begins]
        with torch.inference_mode():
            outputs = agent.policy.act(batch, noise, mask, memory)
        actions = executed(outputs["action"].numpy(), agent.action_space)
        return (actions[0] if single else actions), (outputs["state"].numpy(),)

"""The best policies of tabular envs, which the numbers of the presets' specs are checked against."""

from __future__ import annotations

import numpy as np

from gymnast.evaluation.exact import RawTransitions, Transitions

MAX_SWEEPS = 1_000_000


def optimal_return(
    P: Transitions | RawTransitions,
    initial_distribution: np.ndarray,
    horizon: int | None,
) -> tuple[float, np.ndarray]:
    """The best expected return and a policy that has it: actions `[H, S]`, one row per step, since the best action
    may depend on how much time is left. Without a time limit the actions are `[S]`.
    """
    table = P if isinstance(P, Transitions) else Transitions.from_table(P)
    reward, continuing, next_state = table.expected_reward, table.continuing, table.next_state
    value = np.zeros(len(reward))
    if horizon is not None:
        actions = np.zeros((horizon, len(reward)), np.int64)
        for step in reversed(range(horizon)):
            action_value = reward + (continuing * value[next_state]).sum(-1)
            actions[step] = action_value.argmax(-1)
            value = action_value.max(-1)
        return float(initial_distribution @ value), actions
    # Only when going on always costs does value iteration from 0 descend to the optimum, and no tie hides a loop.
    if (table.reward[continuing > 0] >= 0).any():
        raise ValueError(
            "without a time limit, every step that does not end the episode must cost something; give a horizon"
        )
    for _ in range(MAX_SWEEPS):
        action_value = reward + (continuing * value[next_state]).sum(-1)
        previous, value = value, action_value.max(-1)
        if np.abs(value - previous).max() <= 1e-12 * (1.0 + np.abs(value).max()):
            return float(initial_distribution @ value), action_value.argmax(-1)
    raise ValueError("some state has no way to end the episode; give a horizon")

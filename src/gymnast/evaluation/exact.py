"""Exact evaluation of tabular policies: dynamic programming on the transition table that toy-text envs carry.

A hundred episodes cannot tell a good toy-text policy from an optimal one: the optimal FrozenLake policy (0.744) misses
the threshold of 0.70 in 13 % of such evaluations. The table `env.unwrapped.P` gives the expected return without any
sampling error. Returns are undiscounted and include the time limit.

Shapes: `S` states, `A` actions, `K` outcomes per state and action (padded with probability 0), `H` steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces, wrappers

Outcome = tuple[float, int, float, bool]
"""Probability, next state, reward, terminated."""
RawTransitions = Mapping[int, Mapping[int, Sequence[Outcome]]]

# Wrappers that leave observation, action and reward as they are; below any other one the table may not hold.
TRANSPARENT_WRAPPERS = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.HumanRendering,
)
MAX_SWEEPS = 1_000_000


@dataclass(frozen=True)
class Transitions:
    """The transition table as arrays `[S, A, K]`."""

    probability: np.ndarray
    next_state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray

    @classmethod
    def from_table(cls, table: RawTransitions) -> Transitions:
        """Pad `state → action → outcomes` to arrays; states and actions are numbered from 0."""
        n_states, n_actions = len(table), len(table[0])
        width = max(len(outcomes) for actions in table.values() for outcomes in actions.values())
        nothing: Outcome = (0.0, 0, 0.0, True)
        rows = [
            outcome
            for state in range(n_states)
            for action in range(n_actions)
            for outcome in (*table[state][action], *[nothing] * (width - len(table[state][action])))
        ]
        # float64 holds every state number exactly, so one array serves all four columns.
        probability, next_state, reward, terminated = np.array(rows, np.float64).T.reshape(
            4, n_states, n_actions, width
        )
        sums = probability.sum(-1)
        if not np.allclose(sums, 1.0, atol=1e-6):
            state, action = np.argwhere(~np.isclose(sums, 1.0, atol=1e-6))[0]
            raise ValueError(
                f"outcomes of state {state}, action {action} have probability {sums[state, action]:g}, not 1"
            )
        return cls(probability, next_state.astype(np.int64), reward, terminated.astype(bool))

    @property
    def expected_reward(self) -> np.ndarray:
        """`[S, A]` reward of one step."""
        return np.asarray((self.probability * self.reward).sum(-1))

    @property
    def continuing(self) -> np.ndarray:
        """`[S, A, K]` probability of the outcome where the episode goes on, else 0."""
        return np.where(self.terminated, 0.0, self.probability)


@dataclass(frozen=True)
class TabularModel:
    """All that decides the expected return of a tabular policy."""

    P: Transitions
    initial_distribution: np.ndarray
    """`[S]`"""
    horizon: int | None
    """Steps of the TimeLimit; None when episodes are never cut off."""
    mask: np.ndarray | None = None
    """`[S, A]` possible actions, where the env can tell them for every state (Taxi's `action_mask`)."""


def why_not_tabular(env: gym.Env) -> str | None:
    """Why no exact evaluation of `env` is possible, as a sentence; None when it is."""
    inner = env.unwrapped
    table, initial = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if not isinstance(table, Mapping) or initial is None:
        return f"{_name(env)} has no transition table (P and initial_state_distrib)."
    observation, action = inner.observation_space, inner.action_space
    if not (isinstance(observation, spaces.Discrete) and isinstance(action, spaces.Discrete)):
        return f"{_name(env)} has spaces that are not discrete: {observation}, {action}."
    if observation.start != 0 or action.start != 0:
        return f"{_name(env)} does not number its states and actions from 0: {observation}, {action}."
    if len(table) != observation.n or any(len(actions) != action.n for actions in table.values()):
        return f"{_name(env)}'s transition table does not cover its states and actions."
    if getattr(inner, "fickle_passenger", False):
        # Taxi draws the new destination in step(), and whether it will is hidden from state and table.
        return "Taxi's fickle passenger changes the destination outside the transition table."
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer) not in TRANSPARENT_WRAPPERS:
            return f"the wrapper {type(layer).__name__} may change what the transition table of {_name(env)} describes."
        layer = layer.env
    return None


def tabular_model(env: gym.Env) -> TabularModel | None:
    """The model of a tabular env, made with its kwargs; None where `why_not_tabular` names a reason."""
    if why_not_tabular(env) is not None:
        return None
    inner: Any = env.unwrapped
    limits = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, wrappers.TimeLimit):
            limits.append(layer._max_episode_steps)
        layer = layer.env
    initial = np.asarray(inner.initial_state_distrib, np.float64)
    mask = None
    if callable(getattr(inner, "action_mask", None)):
        mask = np.array([inner.action_mask(state) for state in range(len(inner.P))], bool)
    return TabularModel(Transitions.from_table(inner.P), initial / initial.sum(), min(limits, default=None), mask)


def exact_return(
    P: Transitions | RawTransitions,  # noqa: N803 (the name everyone uses for the table)
    initial_distribution: np.ndarray,
    action_probabilities: np.ndarray,
    horizon: int | None,
) -> float:
    """Expected undiscounted return of a policy `[S, A]`, or of one that depends on the step `[H, S, A]`.

    Without a time limit the value may be infinite: minus infinity for a CliffWalking policy that walks in a circle.
    """
    table = P if isinstance(P, Transitions) else Transitions.from_table(P)
    policy = np.asarray(action_probabilities, np.float64)
    expected_shape = table.probability.shape[:2]
    if policy.shape not in (expected_shape, (horizon, *expected_shape)):
        raise ValueError(
            f"action_probabilities has shape {policy.shape}, expected {expected_shape} or (horizon, *{expected_shape})"
        )
    sums = policy.sum(-1, keepdims=True)
    if (policy < 0).any() or not np.allclose(sums, 1.0, atol=1e-4):
        raise ValueError("action_probabilities must be non-negative and sum to 1 in every state")
    policy = policy / sums  # what float32 softmax leaves over would add up over the steps
    if horizon is None:
        return _endless_return(table, initial_distribution, policy)
    reward, continuing, next_state = table.expected_reward, table.continuing, table.next_state
    value = np.zeros(len(reward))
    for step in reversed(range(horizon)):
        action_value = reward + (continuing * value[next_state]).sum(-1)
        value = ((policy[step] if policy.ndim == 3 else policy) * action_value).sum(-1)
    return float(initial_distribution @ value)


def optimal_return(
    P: Transitions | RawTransitions,  # noqa: N803
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


def _endless_return(table: Transitions, initial_distribution: np.ndarray, policy: np.ndarray) -> float:
    """Expected return without a time limit: a linear system over the states the policy visits."""
    n_states = len(policy)
    flow = np.zeros((n_states, n_states))
    weights = policy[:, :, None] * table.continuing
    np.add.at(flow, (np.arange(n_states)[:, None, None], table.next_state), weights)
    reward = (policy * table.expected_reward).sum(-1)
    ends = (policy[:, :, None] * table.probability * table.terminated).sum((1, 2)) > 0

    reaches = (flow > 0) | np.eye(n_states, dtype=bool)
    for _ in range(n_states.bit_length()):  # paths of length 1, 2, 4, …
        reaches = (reaches.astype(np.float32) @ reaches.astype(np.float32)) > 0
    visited = reaches[np.asarray(initial_distribution) > 0].any(0)
    # Recurrent without an end: everything the state leads to leads back to it. The episode stays there for ever.
    endless = visited & ~(reaches & ends).any(1) & (~reaches | reaches.T).all(1)
    forever = reward[endless]
    if (forever < 0).any() and (forever > 0).any():
        raise ValueError("the policy gathers gains and losses for ever; its return is undefined without a horizon")
    if forever.any():
        return float(np.copysign(np.inf, forever[forever != 0][0]))
    transient = visited & ~endless
    value = np.zeros(n_states)
    inner = flow[np.ix_(transient, transient)]
    value[transient] = np.linalg.solve(np.eye(len(inner)) - inner, reward[transient])
    return float(initial_distribution @ value)


def _name(env: gym.Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__

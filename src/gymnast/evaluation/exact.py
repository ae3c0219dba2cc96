"""Exact evaluation of tabular policies: dynamic programming on the transition table that toy-text envs carry (for
Blackjack on ours).

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
from gymnasium.envs.toy_text.blackjack import BlackjackEnv

from gymnast.evaluation.blackjack import MOST_CARDS, blackjack

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
    observations: np.ndarray | None = None
    """What the policy sees in each state, where that is not the state's number."""


def why_not_tabular(env: gym.Env) -> str | None:
    """Why no exact evaluation of `env` is possible, as a sentence; None when it is."""
    inner = env.unwrapped
    if type(inner) is not BlackjackEnv and (reason := _why_no_table(inner, _name(env))) is not None:
        return reason
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer) not in TRANSPARENT_WRAPPERS:
            return f"the wrapper {type(layer).__name__} may change what the transition table of {_name(env)} describes."
        layer = layer.env
    return None


def _why_no_table(inner: Any, name: str) -> str | None:
    """Why the env itself gives no table that describes it."""
    table, initial = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if not isinstance(table, Mapping) or initial is None:
        return f"{name} has no transition table (P and initial_state_distrib)."
    observation, action = inner.observation_space, inner.action_space
    if not (isinstance(observation, spaces.Discrete) and isinstance(action, spaces.Discrete)):
        return f"{name} has spaces that are not discrete: {observation}, {action}."
    if observation.start != 0 or action.start != 0:
        return f"{name} does not number its states and actions from 0: {observation}, {action}."
    if len(table) != observation.n or any(len(actions) != action.n for actions in table.values()):
        return f"{name}'s transition table does not cover its states and actions."
    if getattr(inner, "fickle_passenger", False):
        # Taxi draws the new destination in step(), and whether it will is hidden from state and table.
        return "Taxi's fickle passenger changes the destination outside the transition table."
    return None


def tabular_model(env: gym.Env) -> TabularModel | None:
    """The model of a tabular env, made with its kwargs; None if `why_not_tabular` names a reason."""
    if why_not_tabular(env) is not None:
        return None
    inner: Any = env.unwrapped
    limit = _time_limit(env)
    if isinstance(inner, BlackjackEnv):
        game = blackjack(sab=inner.sab, natural=inner.natural)
        horizon = MOST_CARDS if limit is None else min(limit, MOST_CARDS)
        return TabularModel(Transitions.from_table(game.table), game.start, horizon, observations=game.observations)
    initial = np.asarray(inner.initial_state_distrib, np.float64)
    mask = None
    if callable(getattr(inner, "action_mask", None)):
        mask = np.array([inner.action_mask(state) for state in range(len(inner.P))], bool)
    return TabularModel(Transitions.from_table(inner.P), initial / initial.sum(), limit, mask)


def _time_limit(env: gym.Env) -> int | None:
    """The tightest of the TimeLimits around an env."""
    limits = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, wrappers.TimeLimit):
            limits.append(layer._max_episode_steps)
        layer = layer.env
    return min(limits, default=None)


def exact_return(
    P: Transitions | RawTransitions,  # noqa: N803 (the name everyone uses for the table)
    initial_distribution: np.ndarray,
    action_probabilities: np.ndarray,
    horizon: int | None,
) -> float:
    """Expected undiscounted return of a policy `[S, A]`, or of one that depends on the step `[H, S, A]`.

    Without a time limit the value may be infinite: minus infinity for a CliffWalking policy that walks in a circle.
    """
    if isinstance(P, Transitions):
        table = P
    else:
        table = Transitions.from_table(P)
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
        now = policy[step] if policy.ndim == 3 else policy
        value = (now * action_value).sum(-1)
    return float(initial_distribution @ value)


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
    # Recurrent without an end: everything the state leads to leads back to it. The episode stays there forever.
    endless = visited & ~(reaches & ends).any(1) & (~reaches | reaches.T).all(1)
    forever = reward[endless]
    if (forever < 0).any() and (forever > 0).any():
        raise ValueError("the policy collects rewards forever; its return is undefined without a horizon")
    if forever.any():
        return float(np.copysign(np.inf, forever[forever != 0][0]))
    transient = visited & ~endless
    value = np.zeros(n_states)
    inner = flow[np.ix_(transient, transient)]
    value[transient] = np.linalg.solve(np.eye(len(inner)) - inner, reward[transient])
    return float(initial_distribution @ value)


def _name(env: gym.Env) -> str:
    if env.spec is not None:
        return env.spec.id
    return type(env.unwrapped).__name__

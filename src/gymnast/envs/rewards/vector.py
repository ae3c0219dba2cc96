"""Terms of the reward around any vector env, innermost of all that works on the whole batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gymnast.config.rewards import RewardsConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.rewards.making import make_terms
from gymnast.envs.rewards.steps import Layout, States, Steps
from gymnast.envs.spaces import allocate, copy_rows, put
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import EnvError

TERMS = "reward_terms"
"""In the infos of an ended episode: what each term added up to, with its weight."""


class RewardTerms(VectorWrapper):
    """Adds terms to the reward. Scores stay the env's own: it counts them below, and `own_reward` keeps its rewards."""

    def __init__(self, inner: VectorEnv, rewards: RewardsConfig) -> None:
        super().__init__(inner)
        self.changes_reward = True
        layout = Layout(inner.observation_space, inner.action_space, rewards.names)
        self._terms = make_terms(rewards, layout, self.n_envs)
        self._own = rewards.own
        self._weights = [config.weight for config in rewards.terms.values()]
        self.names = list(self._terms)
        self.paid = np.zeros((len(self._terms), self.n_envs))
        """What each term added in the last step, with its weight."""
        self._sums = np.zeros_like(self.paid)
        self._numbers = np.zeros(self.n_envs, np.int64)
        self._looks = any(term.reads_observations for term in self._terms.values())
        copies = self.n_envs if self._looks else 0
        self._before = allocate(inner.observation_space, (copies,))
        self._after = allocate(inner.observation_space, (copies,))
        self._told: list[Mapping[str, Any]] | None = None
        self._actions: np.ndarray = np.empty(0)
        self._source = self._source_of_infos()

    def _source_of_infos(self) -> InProcessVector | None:
        """Who has the infos, asked to keep them; None if no term reads them."""
        readers = [name for name, term in self._terms.items() if term.reads_info]
        if not readers:
            return None
        if not isinstance(self.inner, InProcessVector):
            raise EnvError(
                f"Term '{readers[0]}' of env.rewards reads infos, which envs that are stepped all at once do not have: set "
                "env.vectorization to auto, inprocess or workers."
            )
        self.inner.keep_infos()
        return self.inner

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Every copy begins anew, and so do the terms."""
        self.inner.reset(seeds, row)
        for term in self._terms.values():
            term.reset()
        self._sums[:], self._numbers[:], self.paid[:] = 0.0, 0, 0.0
        self._look(row)

    def _look(self, row: StepRow) -> None:
        """Remember where the copies are now."""
        if self._looks:
            copy_rows(self._before, row.obs)
        if self._source is not None:
            self._told = list(self._source.infos)

    def send(self, actions: np.ndarray) -> None:
        """Note what is done."""
        self._actions = np.array(actions)
        self.inner.send(actions)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Add what the terms pay."""
        ended = self.inner.recv(row)
        # Rounded as rollouts keep it, so that the sum does not depend on who steps the envs.
        own = row.reward.astype(np.float32).astype(np.float64)
        if row.own_reward is not None:
            row.own_reward[...] = row.reward
        steps = self._steps(row, own, ended)
        total = own * self._own
        with np.errstate(all="ignore"):  # what is not finite is said below, with the name of the term
            for k, (term, weight) in enumerate(zip(self._terms.values(), self._weights, strict=True)):
                np.multiply(term.pay(steps), weight, out=self.paid[k])
                total += self.paid[k]
        if not np.isfinite(total).all():
            self._refuse_non_finite()
        self._sums += self.paid
        lost = [episode.index for episode in ended if episode.final_obs is None]
        if lost:
            total[lost], self.paid[:, lost] = 0.0, 0.0
        row.reward[...] = total
        for episode in ended:
            slot = episode.index
            if episode.final_obs is not None:
                episode.infos[TERMS] = dict(zip(self.names, self._sums[:, slot].tolist(), strict=True))
            self._sums[:, slot], self._numbers[slot] = 0.0, 0
        self._look(row)
        return ended

    def _steps(self, row: StepRow, own: np.ndarray, ended: Sequence[EndedEpisode]) -> Steps:
        self._numbers += 1
        if self._looks:
            copy_rows(self._after, row.obs)
        over = np.zeros(self.n_envs, np.bool_)
        told = None if self._source is None else list(self._source.infos)
        for episode in ended:
            over[episode.index] = True
            if self._looks and episode.final_obs is not None:
                put(self._after, episode.index, episode.final_obs)
            if told is not None and self._source is not None:
                told[episode.index] = self._source.final_infos.get(episode.index, {})
        before, after = States(self._before, self._told), States(self._after, told)
        return Steps(before, after, self._actions, own, row.terminated, row.truncated, self._numbers, over)

    def _refuse_non_finite(self) -> None:
        for name, paid in zip(self.names, self.paid, strict=True):
            bad = np.flatnonzero(~np.isfinite(paid))
            if len(bad):
                slot = int(bad[0])
                raise EnvError(
                    f"Term '{name}' of env.rewards paid {paid[slot]} in env {slot}, step {self._numbers[slot]} of its episode, "
                    f"after action {self._actions[slot].tolist()}. A number is needed in every step."
                )

    def latest(self, slot: int = 0) -> dict[str, float]:
        """What each term added in the last step of a slot."""
        return dict(zip(self.names, self.paid[:, slot].tolist(), strict=True))

    def save_state(self) -> dict[str, Any]:
        """The inner state, with an entry per slot of what the terms remember."""
        entries = []
        for slot in range(self.n_envs):
            entries.append(
                {
                    "before": _copy_of(self._before, slot) if self._looks else None,
                    "sums": self._sums[:, slot].tolist(),
                    "number": int(self._numbers[slot]),
                    "told": None if self._told is None else _numbers_of(self._told[slot]),
                    "terms": {name: term.save(slot) for name, term in self._terms.items()},
                }
            )
        return {**self.inner.save_state(), "rewards": entries}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue with the same sums, counts and last observations."""
        self.inner.load_state({key: value for key, value in state.items() if key != "rewards"})
        if "rewards" not in state:
            raise EnvError(
                "The saved state knows no terms of the reward: resume with the same env.rewards as the run had."
            )
        if self._source is not None:
            self._told = [{} for _ in range(self.n_envs)]
        for slot, entry in enumerate(state["rewards"]):
            if set(entry["terms"]) != set(self.names):
                raise EnvError(
                    f"The saved state has the terms {', '.join(entry['terms'])} of the reward, this run has "
                    f"{', '.join(self.names)}: resume with the same env.rewards as the run had."
                )
            if self._looks:
                put(self._before, slot, entry["before"])
            self._sums[:, slot] = [dict(zip(entry["terms"], entry["sums"], strict=True))[name] for name in self.names]
            self._numbers[slot] = entry["number"]
            if self._told is not None:
                self._told[slot] = entry["told"] or {}
            for name, term in self._terms.items():
                term.load(slot, entry["terms"][name])


def _copy_of(obs: Any, slot: int) -> Any:
    if isinstance(obs, dict):
        return {key: array[slot].copy() for key, array in obs.items()}
    return obs[slot].copy()


def _numbers_of(info: Mapping[str, Any]) -> dict[str, float]:
    """What expressions can read of an info."""
    return {str(key): float(value) for key, value in info.items() if isinstance(value, (bool, int, float, np.number))}


def terms_of(envs: Any) -> RewardTerms | None:
    """The layer with the terms inside wrappers of the batch; None if there is none in this process."""
    while envs is not None and not isinstance(envs, RewardTerms):
        envs = getattr(envs, "inner", None)
    return envs

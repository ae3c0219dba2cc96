"""A trained policy that takes raw env observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.algorithms.credit import Credit
from gymnast.api.files import save_agent
from gymnast.api.process import left_as_it_was
from gymnast.api.recording import Cut, Recorded, episodes_of, progression_of
from gymnast.api.sb3 import SB3Model
from gymnast.config.plan import FULL_EPISODES
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import executed, row
from gymnast.envs.batches import one_or_several
from gymnast.envs.choose import playable
from gymnast.envs.spaces import encoder, n_masked_actions, stack
from gymnast.errors import UsageError
from gymnast.evaluation.evaluate import Evaluation, tensors
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.hub.export import SUFFIXES, Exported, Format, export
from gymnast.policies.base import Policy
from gymnast.policies.encoders import Observation
from gymnast.runs.store import Run
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.evaluator import Evaluator
from gymnast.training.evaluating.setup import eval_env_config, eval_settings
from gymnast.training.machine import prepare_acting

State = tuple[np.ndarray, ...] | None
"""What episodes are remembered by, as `predict` gives and takes it."""
FRESH = 1_000_000
"""The turn of evaluations outside training: other episodes than any evaluation of the run had."""


class Agent:
    """A trained policy that takes raw env observations, single or batched."""

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        raw_space: spaces.Space,
        action_space: spaces.Space,
        run: Run | None,
        name: str,
        *,
        source: str = "",
        notices: Sequence[str] = (),
        only_deterministic: str | None = None,
        credit: Callable[[], Credit] | None = None,
    ) -> None:
        self.config = config
        self.policy = policy
        self.run = run
        """None for a model that gymnast did not train."""
        self.checkpoint = name
        self.source = source or f"run {run.id if run else '?'}, {name}"
        """Where the policy comes from, for messages."""
        self.notices = list(notices)
        """What the user should know about how it was loaded."""
        self.only_deterministic = only_deterministic
        self._credit = credit
        self.observation_space = raw_space
        self.action_space = action_space
        self._canonical = policy.encoder.space
        self._encode = encoder(raw_space)
        self._generator = torch.Generator().manual_seed(config.train.seed)

    def __repr__(self) -> str:
        return f"Agent({self.config.name}, {self.source})"

    def credit(self) -> Credit:
        """What this agent's own learner makes of steps: its reward scale, baseline and coefficients."""
        if self._credit is None:
            raise UsageError(f"{self.source} does not say how its rewards were scaled.")
        return self._credit()

    def predict(
        self,
        obs: Any,
        deterministic: bool = True,
        *,
        mask: np.ndarray | None = None,
        state: State = None,
        start: Any = None,
    ) -> Any:
        """Action(s) for one observation or a batch, ready for `env.step`; continuous ones are clipped to the bounds.

        A policy with a memory gives a pair, actions and state: hand `state` back with the next observation. `start` says of each
        episode whether it begins with this observation; without a state, all do. What is no observation raises a `UsageError`
        that says which shape is right.
        """
        self.check_sampling(deterministic)
        batch, masks, noise, single = self.batch(obs, mask, deterministic)
        before = None
        if self.policy.state_shape is not None:
            n = len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)
            before = self._remembered(n, state, start)
        elif state is not None:
            raise UsageError(f"{self.source} has a policy without memory: leave `state` out.")
        with torch.inference_mode():
            outputs = self.policy.act(batch, noise, masks, before)
        actions = executed(outputs["action"].numpy(), self.action_space)
        if single:
            actions = row(actions, 0)
        if before is None:
            return actions
        return actions, (outputs["state"].numpy(),)

    def _remembered(self, n: int, state: State, start: Any) -> Tensor:
        """What n episodes are remembered by before a step."""
        fresh = self.policy.initial_state(n)
        assert fresh is not None
        if state is None:
            return fresh
        before = torch.from_numpy(np.array(state[0], np.float32))
        if before.shape != fresh.shape:
            raise UsageError(f"The state has shape {tuple(before.shape)}; {n} episodes need {tuple(fresh.shape)}.")
        if start is not None:
            begins = np.atleast_1d(np.asarray(start, bool))
            if begins.shape != (n,):
                raise UsageError(f"`start` has shape {np.shape(start)}; {n} episodes need ({n},).")
            before[torch.from_numpy(begins)] = 0.0
        return before

    def batch(
        self, obs: Any, mask: np.ndarray | None, deterministic: bool
    ) -> tuple[Observation, Tensor | None, Tensor | None, bool]:
        """Observations, masks and noise as the policy takes them, and whether it was a single observation."""
        items, single = one_or_several(obs, self.observation_space)
        batch = tensors(stack([self._encode(item) if self._encode else item for item in items], self._canonical))
        masks = noise = None
        if mask is not None:
            masks = torch.from_numpy(self._masks(mask, len(items)))
        if not deterministic:
            noise = self.policy.distribution.noise((len(items),), self._generator)
        return batch, masks, noise, single

    def _masks(self, mask: np.ndarray, n: int) -> np.ndarray:
        """One row of possible actions per observation."""
        n_actions, masks = n_masked_actions(self.action_space), np.atleast_2d(mask).astype(bool)
        if n_actions is None:
            raise UsageError(f"{self.action_space} has no action mask: leave `mask` out.")
        if masks.shape != (n, n_actions):
            raise UsageError(
                f"The mask has shape {np.shape(mask)}; {n_actions} actions need ({n_actions},), "
                f"a batch of {n} observations ({n}, {n_actions})."
            )
        return masks

    def check_sampling(self, deterministic: bool) -> None:
        """Refuse sampled actions of a policy whose noise could not be taken over."""
        if self.only_deterministic and not deterministic:
            raise UsageError(f"{self.source} can only act deterministically: {self.only_deterministic}.")

    # ---- playing whole episodes ------------------------------------------------------------------------------------

    def evaluate(
        self,
        episodes: int | None = None,
        *,
        steps: int | None = None,
        seed: int | None = None,
        deterministic: bool | None = None,
        on_episode: Callable[[int], None] | None = None,
    ) -> Evaluation:
        """Play whole episodes on fresh envs, as `gymnast eval` does: 100, so many, or as many as take so many `steps`.

        `deterministic` is as in the run's own evaluations unless it is given; `seed` repeats the same episodes.
        """
        extent = self.extent(episodes, steps)
        changed = {
            "episodes": None if extent.steps is not None else extent.episodes,
            "steps": extent.steps,
            "deterministic": self.acts_deterministically(deterministic),
        }
        config = self.config.model_copy(update={"eval": self.config.eval.model_copy(update=changed)})
        settings = [replace(setting, env=playable(setting.env)) for setting in eval_settings(config)]
        with left_as_it_was():
            prepare_acting(self.policy)
            evaluator = Evaluator(config, settings=settings)
            try:
                return evaluator(self.policy, FRESH, extent, on_episode, seed=seed)
            finally:
                evaluator.close()
                self.policy.cpu()

    def extent(self, episodes: int | None, steps: int | None) -> Extent:
        """How much an evaluation plays: as asked for, else in steps as the run's own evaluations, else 100 episodes."""
        if episodes is not None and steps is not None:
            raise UsageError("Give episodes or steps, not both: one is the size of the evaluation.")
        if episodes is None and steps is None:
            steps = self.config.eval.steps
        return Extent(episodes or FULL_EPISODES, steps=steps)

    def record(
        self,
        path: str | Path | None = None,
        *,
        episodes: int = 1,
        seed: int = 0,
        deterministic: bool | None = None,
        overlay: bool = True,
        publish: bool = False,
        progression: bool = False,
    ) -> Recorded:
        """Film episodes, as `gymnast video` does: .mp4, .webm or .gif, by default among the videos of the run.

        `overlay` writes step, action, reward, return and value below the pictures; `publish` lays them on a page of 1920×1080
        with a title; `progression` films one episode before training and by every checkpoint of the run.
        """
        if progression and episodes > 1:
            raise UsageError("A progression has one episode per checkpoint: leave `episodes` out.")
        cut = Cut(episodes, seed, self.acts_deterministically(deterministic), overlay, publish)
        where = None if path is None else Path(path)
        with left_as_it_was():
            if progression:
                return progression_of(self, where, cut).make()
            return episodes_of(self, where, cut).make()

    def trace(self, *, seed: int = 0, deterministic: bool | None = None, frames: bool = False) -> EpisodeTrace:
        """One episode with everything: observations, actions, probabilities, values, rewards, advantages, and frames if asked."""
        env_config = playable(eval_env_config(self.config)[0])
        credit = None if self._credit is None else self._credit()
        with left_as_it_was():
            return record_episode(
                self.policy,
                env_config,
                seed=seed,
                deterministic=self.acts_deterministically(deterministic),
                credit=credit,
                frames=frames,
            )

    def acts_deterministically(self, asked: bool | None) -> bool:
        """As asked for; else as the run's own evaluations were, so that scores can be compared."""
        if asked is None:
            return self.config.eval.deterministic or self.only_deterministic is not None
        self.check_sampling(asked)
        return asked

    # ---- leaving Python --------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write policy and config into one safetensors file, which `gymnast.load` reads anywhere; no pickle in it."""
        return save_agent(self, Path(path))

    def export(self, path: str | Path | None = None, *, format: Format | None = None, check: bool = True) -> Exported:
        """Write the deterministic policy as ONNX or a torch.export program, compared with this one on random observations."""
        if format is None:
            format = "torch" if path is not None and Path(path).suffix in (".pt2", ".pt") else "onnx"
        folder = Path() if self.run is None else self.run.folder / "exports"
        where = folder / f"{Path(self.checkpoint).stem}{SUFFIXES[format]}" if path is None else Path(path)
        return export(self, where, format, check=check)

    def as_sb3(self) -> SB3Model:
        """The agent behind Stable-Baselines3's `predict`, which gives `(actions, state)`, for their evaluation helpers."""
        return SB3Model(self)

"""On-policy training: collect with the current policy, compute targets, learn from all of it, forget it.

One iteration is one method with an optional observer. The loop, `gymnast rewind` and the step-for-step test next to
Stable-Baselines3 run the very same code.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast import seeding
from gymnast.algorithms.base import Algorithm, Coefficients, coefficients
from gymnast.algorithms.optimizer import Optimizer
from gymnast.config.plan import Plan
from gymnast.config.schedule import Clock, segments
from gymnast.config.schema import RunConfig
from gymnast.config.tasks import with_task
from gymnast.envs.actions import choices_of
from gymnast.envs.rewards.vector import TERMS
from gymnast.envs.tasks import stage_envs
from gymnast.envs.vector import VectorEnv
from gymnast.evaluation.evaluate import regret_of, success_of, task_of
from gymnast.metrics.histogram import Histogram
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import Collector, Ended
from gymnast.rollout.returns import RewardScaler
from gymnast.timing import StageTimer
from gymnast.training.diagnostics.looks import cadence, histograms, is_due, look
from gymnast.training.env_checks.copies import Copies
from gymnast.training.env_checks.endings import Endings
from gymnast.training.measures import measures
from gymnast.training.trainer import About, Counters, Row, Trainer, load_policy, some_of
from gymnast.training.update import Learner, Observer, UpdateResult
from gymnast.training.updater import Updater
from gymnast.training.warm_up import warm_up_normaliser


@dataclass(frozen=True)
class Iteration:
    """What an iteration did."""

    ended: Ended
    batch: Batch
    advantage_mean: float
    """Before normalisation, as is the std."""
    advantage_std: float
    advantage_min: float
    advantage_max: float
    result: UpdateResult
    coefficients: Coefficients


@dataclass
class OnPolicyTrainer(Trainer):
    """The moving parts of a run that learns from its own rollouts."""

    config: RunConfig
    plan: Plan
    device: torch.device
    envs: VectorEnv
    learner: Learner
    collector: Collector
    recollect: Callable[[VectorEnv], Collector]
    """Makes the collector of other envs."""
    action_generator: torch.Generator
    window: EpisodeWindow
    counters: Counters = field(default_factory=Counters)
    reset_every: int | None = None
    """Iterations between resets of envs whose state cannot be saved; None if it can, or if every iteration resets."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the machine is used as it is, by config key."""
    loading: threading.Thread | None = None
    """Loads the GPU's libraries while the envs start."""
    observer: Observer | None = None
    """Looks on at every update of the run."""

    def __post_init__(self) -> None:
        self.updater = Updater(self.learner)
        self._look_every = cadence(self.config)
        self._histograms: dict[str, Histogram] = {}
        self._jump_segments: dict[str, int] = {}
        self._restored = False
        # Whether the coming collection starts with fresh episodes: in a new run, and where no env states were restored.
        self._afresh = True
        self._copies = Copies(self.config, self.plan.n_envs)
        self._endings = Endings(self.config, self.plan.n_envs)
        stages = () if self.config.plan is None else self.config.plan.stages
        self._stage = next(iter(stages), None)
        """Of a plan by stage: whose envs these are."""
        self._stage_began: int | None = None
        """The iteration before which its first episodes began: a run that goes on from there begins them anew."""

    # ---- its parts -------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """What is evaluated, saved and exported."""
        return self.learner.policy

    @property
    def flat(self) -> FlatParameters:
        """The policy's weights and gradients."""
        return self.learner.flat

    @property
    def algorithm(self) -> Algorithm:
        """What computes targets and loss."""
        return self.learner.algorithm

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of the policy's weights."""
        return self.learner.optimizer

    @property
    def reward_scaler(self) -> RewardScaler | None:
        """Statistics of rewards, which a run that begins with these weights takes over."""
        return self.algorithm.reward_scaler

    @property
    def rollout(self) -> Rollout:
        """The one that was filled last."""
        return self.collector.rollout

    @property
    def about(self) -> About:
        """For the summary before training."""
        every = None
        if self.reset_every is not None:
            every = self.reset_every * self.steps_per_iteration
        return About(self.envs.describe(), self.device, choices_of(self.envs.action_space), self.reasons, every)

    @property
    def steps_per_iteration(self) -> int:
        """Env steps of an iteration; fewer where whole episodes end before."""
        return self.rollout.n_steps * self.plan.n_envs

    # ---- one iteration ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Make the first row of the rollout ready: fresh episodes in a new run, the last observations in a resumed one."""
        if not self._restored:
            warm_up_normaliser(self)
        if self._afresh:
            self._start_episodes()
        else:
            self.rollout.carry_over()
        if self.counters.iteration == 0:
            self._copies.begin(self.rollout.first_row.obs)
        if self.loading is not None:
            self.loading.join()

    def iterate(self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = False) -> Row:
        """Collect, learn, and make the next first row ready; returns what it did, as metrics."""
        before = self.counters.env_steps
        done = self.learn_once(timer, on_step, drain=drain)
        row = measures(self, done)
        if is_due(self._look_every, before, self.counters.env_steps):
            row |= look(self, done)
            if self.wants_histograms:
                self._histograms = histograms(self, done)
        self.go_on()
        return row

    def learn_once(
        self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = True
    ) -> Iteration:
        """Collect and learn; afterwards the counters are at the next boundary, and the rollout still holds the data."""
        counters = self.counters
        self._forget_moments_at_jumps()
        c = self.coefficients()
        ended = self.collector.collect(timer, on_step, run_on=not drain)
        begin = time.perf_counter()
        self._seed_layers()
        batch = self.algorithm.targets(self.rollout, c, self.policy)
        raw = batch["advantage"]
        low, high = raw.aminmax()
        advantage = float(raw.mean()), float(raw.std(correction=0)), float(low), float(high)
        batch = self.algorithm.weighted(batch)
        running = self.updater.launch(batch.to(self.device), c, self.observer)
        self.collector.serve_while(running.busy)
        result = running.result()
        self._update_normaliser()
        timer.add("learn", time.perf_counter() - begin)
        for _, episode in ended:
            if episode.final_obs is not None:
                self.window.add(
                    episode.ret,
                    episode.length,
                    success_of(episode),
                    regret_of(episode),
                    episode.infos.get(TERMS),
                    task_of(episode),
                )
        counters.advance(self.rollout.length, self.plan.n_envs, updates=result.updates, epochs=result.epochs)
        counters.kl_stops += result.stopped_by_kl
        if self.observer is not None:
            self.observer.finished(counters.iteration, counters.env_steps)
        return Iteration(ended, batch, *advantage, result, c)

    def histograms(self) -> dict[str, Histogram]:
        """Of the last iteration, if it was looked at closely; given once."""
        found, self._histograms = self._histograms, {}
        return found

    def go_on(self) -> None:
        """Carry the last observations over, or start fresh episodes: for whole ones, and where envs cannot be saved."""
        if self.algorithm.episodes_per_env is not None or self._resets_here:
            self._start_episodes()
        else:
            self.rollout.carry_over()

    def clock(self) -> Clock:
        """The clock of the schedules."""
        return self.counters.clock(self.plan.env_steps)

    def coefficients(self) -> Coefficients:
        """Every scheduled hyperparameter's value for the coming iteration; None-valued ones are left out."""
        return coefficients(self.config.algo, self.clock())

    def _forget_moments_at_jumps(self) -> None:
        """Where a schedule jumps and says so, the optimizer begins again."""
        now = segments(dict(self.config.algo), self.clock())
        if self._jump_segments and now != self._jump_segments:
            self.optimizer.reset()
        self._jump_segments = now

    def _seed_layers(self) -> None:
        """Dropout draws from torch's global generator: seed it per iteration, so that a resumed run draws the same."""
        if self.policy.draws:
            turn = np.random.SeedSequence([self.config.train.seed, self.counters.iteration])
            torch.manual_seed(int(turn.generate_state(1)[0]))

    def _update_normaliser(self) -> None:
        encoder = self.policy.encoder
        if encoder.norm is None and not self.policy.absorbs:
            return
        seen = self.rollout.flat_obs(self.rollout.length)
        if encoder.norm is not None:
            encoder.norm.update(encoder.flat(seen).to(self.device))
        if self.policy.absorbs:
            self.policy.absorb(some_of(seen, self.device))

    def _start_episodes(self) -> None:
        """Fresh episodes in every slot: the first collection, each one of whole episodes, and where envs are reset.

        The episodes under way are cut off. Their last steps were bootstrapped from their true observations, as at the end of
        every rollout. These episodes did not end, so no statistic counts them.
        """
        if self.algorithm.reward_scaler is not None:
            self.algorithm.reward_scaler.start_episodes()
        seeds = seeding.env_seeds(self.config.train.seed, "train_envs", self.plan.n_envs, turn=self.counters.iteration)
        self.collector.start_episodes(seeds)

    # ---- stages ----------------------------------------------------------------------------------------------------

    def enter_stage(self, stage: str, *, fresh_optimizer: bool = False) -> None:
        """Go on with the envs of another stage, in fresh episodes, with all that was learned."""
        self._take_envs_of(stage)
        self.window.forget()
        if fresh_optimizer:
            self.optimizer.reset()
        self._stage_began = self.counters.iteration
        self._start_episodes()

    def _take_envs_of(self, stage: str) -> None:
        self.envs.close()
        self._stage, self.envs = stage, stage_envs(self.config, stage, self.plan.n_envs)
        self.collector = self.recollect(self.envs)
        self.reset_every = None
        if self.envs.exact_resume == "none" and self.algorithm.episodes_per_env is None:
            self.reset_every = self.plan.resume_every
        self._endings = Endings(with_task(self.config, stage), self.plan.n_envs)

    # ---- boundaries ------------------------------------------------------------------------------------------------

    @property
    def _resets_here(self) -> bool:
        """Whether the envs are reset at this boundary because their state cannot be saved."""
        return self.reset_every is not None and self.counters.iteration % self.reset_every == 0

    @property
    def resumable(self) -> bool:
        """Whether a run that goes on from this boundary goes on from all there is: no lane of envs is ahead of it."""
        if self.collector.ahead:
            return False
        return self.reset_every is None or self._resets_here or self.counters.env_steps >= self.plan.env_steps

    @property
    def stands(self) -> bool:
        """Whether no lane of envs is in the next rollout already."""
        return not self.collector.ahead

    def concerns(self) -> list[str]:
        """What the last iteration has shown of the envs."""
        return self._endings.check(self.counters.vec_steps, self.window.episodes) + self._copies.check()

    def evidence(self) -> dict[str, Tensor]:
        """What the envs gave in the iteration under way: one observation more than steps."""
        rollout = self.rollout
        obs = rollout.host_obs()
        if isinstance(obs, dict):
            arrays = {f"obs.{name}": array for name, array in obs.items()}
        else:
            arrays = {"obs": obs}
        given = {name: torch.from_numpy(array) for name, array in arrays.items()}
        t = rollout.length
        return given | {"action": rollout["action"][:t], "reward": torch.from_numpy(rollout.reward[:t])}

    def state(self) -> dict[str, Any]:
        """The checkpoint's state tree."""
        whole_episodes = self.algorithm.episodes_per_env is not None
        fresh = whole_episodes or self._stage_began == self.counters.iteration
        goes_on = not fresh and self.reset_every is None and not self.collector.ahead
        generators = {"actions": self.action_generator, "batches": self.learner.generator}
        state: dict[str, Any] = {
            "optimizer": self.optimizer.state(),
            "algorithm": self.algorithm.state(),
            "generators": {name: generator.get_state() for name, generator in generators.items()},
            "window": self.window.state(),
            "jumps": dict(self._jump_segments),
            # Envs of whole-episode algorithms start afresh each iteration, those of a stage with it: there is nothing to carry.
            "envs": None if fresh else self._env_state(),
            "rollout": self.rollout.state() if goes_on else None,
        }
        if self._stage is not None:
            state["stage"] = self._stage
        if self.learner.modules:
            state["modules"] = {network.name: network.state() for network in self.learner.modules}
        return state

    def _env_state(self) -> dict[str, Any]:
        if self.reset_every is None and not self.collector.ahead:
            return {"how": self.envs.exact_resume, "exact": True, "state": self.envs.save_state()}
        return {"how": "boundary_reset", "exact": self.resumable, "state": None}

    def load_state(
        self, policy: dict[str, Tensor], state: dict[str, Any], counters: dict[str, Any], *, optimizer: bool = True
    ) -> None:
        """Continue exactly where `state` was taken."""
        if self._stage is not None and state["stage"] != self._stage:
            self._take_envs_of(state["stage"])
        load_policy(self.policy, policy)
        if optimizer:
            self.optimizer.load_state(state["optimizer"])
        for network in self.learner.modules:
            network.load_state(state["modules"][network.name], optimizer=optimizer)
        self.algorithm.load_state(state["algorithm"])
        self.action_generator.set_state(state["generators"]["actions"])
        self.learner.generator.set_state(state["generators"]["batches"])
        self.window.load(state["window"])
        self._jump_segments = dict(state["jumps"])
        self.counters = Counters.restored(counters)
        self._restored = True
        self._afresh = self.reset_every is not None or state["rollout"] is None
        if not self._afresh:
            self.envs.load_state(state["envs"]["state"])
            self.rollout.load_state(state["rollout"])

    def close(self) -> None:
        """Close the training envs."""
        self.envs.close()

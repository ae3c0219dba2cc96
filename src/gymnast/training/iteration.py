"""One iteration of training: collect, compute targets, update, count. What the loop and `gymnast rewind` both run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gymnast.algorithms.base import Coefficients
from gymnast.envs.lanes import LanePool
from gymnast.evaluation.evaluate import regret_of, success_of
from gymnast.rollout.buffer import Batch
from gymnast.rollout.collect import Ended, collect
from gymnast.rollout.turns import collect_by_turns, turns_pay
from gymnast.timing import StageTimer
from gymnast.training.captured import can_capture
from gymnast.training.session import Session, warm_up_normaliser
from gymnast.training.update import LaunchedUpdate, Observer, UpdateResult, update


@dataclass(frozen=True)
class Iteration:
    """What an iteration did."""

    ended: Ended
    batch: Batch
    result: UpdateResult
    coefficients: Coefficients


def start(session: Session) -> None:
    """Make the first row of the rollout ready: fresh episodes in a new run, the last observations in a resumed one."""
    if not session.restored:
        warm_up_normaliser(session)
    if session.afresh:
        session.start_episodes()
    else:
        session.rollout.carry_over()
    if session.loading is not None:
        session.loading.join()


def iterate(
    session: Session,
    timer: StageTimer,
    *,
    observer: Observer | None = None,
    on_step: Callable[[int], None] | None = None,
    on_collected: Callable[[], None] | None = None,
) -> Iteration:
    """Collect and learn; the counters stand at the next boundary afterwards."""
    counters = session.counters
    c = session.coefficients()
    ended = _collect(session, timer, on_step)
    if on_collected is not None:
        on_collected()
    begin = time.perf_counter()
    session.seed_layers()
    batch = session.algorithm.targets(session.rollout, c)
    result = _learn(session, batch, c, observer)
    if session.policy.encoder.norm is not None:
        samples = session.policy.encoder.flat(session.rollout.flat_obs(session.rollout.length))
        session.policy.encoder.norm.update(samples.to(session.device))
    timer.add("learn", time.perf_counter() - begin)
    for _, episode in ended:
        if episode.final_obs is not None:
            session.window.add(episode.ret, episode.length, success_of(episode), regret_of(episode))
    counters.iteration += 1
    counters.vec_steps += session.rollout.length
    counters.env_steps += session.rollout.length * session.plan.n_envs
    counters.updates += result.updates
    counters.epochs += result.epochs
    counters.kl_stops += result.stopped_by_kl
    return Iteration(ended, batch, result, c)


def _learn(session: Session, batch: Batch, c: Coefficients, observer: Observer | None) -> UpdateResult:
    """Update; where lanes of envs are ahead they are acted for meanwhile."""
    collector, learner, ours = session.collector, session.learner, batch.to(session.device)
    if collector is None or collector.drained or observer is not None or not can_capture(learner, ours):
        return update(learner, ours, c, observer)
    stream, acting = session.learner_stream(), torch.cuda.current_stream()
    stream.wait_stream(acting)
    with torch.cuda.stream(stream):
        launched = LaunchedUpdate(learner, ours, c)
    collector.serve_while(launched.busy)
    acting.wait_stream(stream)
    return launched.result()


def _collect(session: Session, timer: StageTimer, on_step: Callable[[int], None] | None) -> Ended:
    if session.collector is not None:
        session.publish()
        rollout, ended = session.collector(session.action_generator, timer, on_step, runs_on=session.runs_on)
        session.rollout = rollout
        return ended
    policy, envs, whole_episodes = session.policy, session.envs, session.algorithm.episodes_per_env is not None
    if isinstance(envs, LanePool) and turns_pay(policy, envs) and not whole_episodes:
        return collect_by_turns(policy, envs, session.rollout, session.action_generator, timer, on_step)
    return collect(
        policy,
        envs,
        session.rollout,
        session.action_generator,
        timer,
        episodes_per_env=session.algorithm.episodes_per_env,
        on_step=on_step,
    )


def prepare_next(session: Session) -> None:
    """Carry the last observations over, or start fresh episodes: whole ones, or after a reset of envs that cannot be saved."""
    if session.algorithm.episodes_per_env is not None or session.resets_here:
        session.start_episodes()
    else:
        session.rollout.carry_over()

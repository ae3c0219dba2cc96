"""Filling a rollout: act, step, and afterwards everything that can be done for all steps at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.envs.spaces import stack
from gymnast.envs.vector import EndedEpisode, VectorEnv
from gymnast.errors import EnvError, NonFiniteError
from gymnast.policies.base import Policy
from gymnast.rollout.batch import Observation
from gymnast.rollout.buffer import Rollout, parts
from gymnast.timing import StageTimer

Ended = list[tuple[int, EndedEpisode]]
OnStep = Callable[[int], None]
"""Called now and then with how many steps of the rollout are filled."""


class Collector(Protocol):
    """What fills rollouts. Only it knows of envs, lanes, devices and streams."""

    @property
    def rollout(self) -> Rollout:
        """The one that was filled last."""

    @property
    def ahead(self) -> bool:
        """Whether some envs are already in the next rollout, so that a run cannot resume from this boundary."""

    def collect(self, timer: StageTimer, on_step: OnStep | None = None, *, run_on: bool = False) -> Ended:
        """Fill the next rollout; return the episodes that ended, with their steps.

        With `run_on`, envs that are through may go on into the rollout after it.
        """

    def serve_while(self, busy: Callable[[], bool]) -> None:
        """Go on with the envs that are ahead as long as something else takes."""

    def start_episodes(self, seeds: list[int]) -> None:
        """Begin fresh episodes in every slot."""


class StepCollector:
    """Steps all envs together, in ordinary memory; with `episodes_per_env`, until every slot has finished that many."""

    ahead = False

    def __init__(
        self,
        policy: Policy,
        envs: VectorEnv,
        rollout: Rollout,
        generator: torch.Generator,
        *,
        episodes_per_env: int | None = None,
    ) -> None:
        self.rollout = rollout
        self._policy, self._envs, self._generator = policy, envs, generator
        self._episodes = episodes_per_env

    def collect(self, timer: StageTimer, on_step: OnStep | None = None, *, run_on: bool = False) -> Ended:
        """Fill the rollout, all envs step by step."""
        return collect(
            self._policy,
            self._envs,
            self.rollout,
            self._generator,
            timer,
            episodes_per_env=self._episodes,
            on_step=on_step,
        )

    def serve_while(self, busy: Callable[[], bool]) -> None:
        """Nothing runs ahead of learning, so there is nothing to serve."""

    def start_episodes(self, seeds: list[int]) -> None:
        """Begin fresh episodes in every slot."""
        self._envs.reset(seeds, self.rollout.first_row)
        self.rollout.start_episodes()


class Quota:
    """Whole episodes that every slot has to play, where it is episodes that are counted and not steps."""

    def __init__(self, n_envs: int, each: int | None) -> None:
        self._each = each
        self._finished = np.zeros(n_envs, np.int64)

    def met_with(self, done: Sequence[EndedEpisode]) -> bool:
        """Whether these were the last episodes that were missing."""
        if self._each is None:
            return False
        self._finished[[episode.index for episode in done]] += 1
        return bool((self._finished >= self._each).all())


def collect(
    policy: Policy,
    envs: VectorEnv,
    rollout: Rollout,
    generator: torch.Generator,
    timer: StageTimer,
    *,
    episodes_per_env: int | None = None,
    on_step: OnStep | None = None,
) -> Ended:
    """Play `rollout.n_steps` steps from the observations in row 0; return the episodes that ended, with their steps.

    With `episodes_per_env`, stop when every slot has finished that many and mark only their samples as valid.
    """
    ended: Ended = []
    quota = Quota(envs.n_envs, episodes_per_env)
    clock, in_env, in_policy = time.perf_counter, 0.0, 0.0
    device, elsewhere = generator.device, generator.device.type != "cpu"
    states = rollout.steps.get("state")
    remembered = None if states is None else Remembered(rollout)
    rollout.length = rollout.n_steps
    with torch.inference_mode(), policy.encoder.held():
        start = clock()
        # All noise at once: a draw per step costs more than the step of a small network.
        noise = policy.distribution.noise((rollout.n_steps, rollout.n_envs), generator)
        for t in range(rollout.n_steps):
            obs, mask = rollout.obs_steps[t], rollout.mask_steps[t]
            if elsewhere:
                obs, mask = _on(device, obs), _mask_on(device, mask)
            if states is None:
                outputs = policy.act(obs, noise[t], mask)
            else:
                outputs = policy.act(obs, noise[t], mask, states[t].to(device))
                states[t + 1].copy_(outputs.pop("state"))
            for name, tensor in outputs.items():
                rollout.steps[name][t].copy_(tensor)
            # The clock is read by hand: a context manager per step would show in the steps per second.
            acted = clock()
            done = envs.step(rollout.action_arrays[t], rollout.rows[t])
            stepped = clock()
            in_policy += acted - start
            in_env += stepped - acted
            start = stepped
            if remembered is not None:
                remembered.after(t, done)
            if on_step is not None and t % 64 == 63:
                on_step(t + 1)
            if done:
                ended.extend((t, episode) for episode in done)
                if quota.met_with(done):
                    rollout.length = t + 1
                    break
        finish(policy, envs, rollout, ended, device, remembered)
        in_policy += clock() - start
    if episodes_per_env is not None:
        rollout.valid = _whole_episodes(rollout, ended, episodes_per_env)
    timer.add("env", in_env)
    timer.add("policy", in_policy)
    check(rollout, envs)
    return ended


class Remembered:
    """What a policy remembers is forgotten where an episode ends; a cut-off one is bootstrapped from what it remembered."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._last: dict[tuple[int, int], Tensor] = {}

    def after(self, t: int, done: Sequence[EndedEpisode]) -> None:
        """The envs have made step `t`, and these episodes have ended with it."""
        states, starts = self._rollout["state"], self._rollout["starts"]
        starts[t + 1].fill_(False)
        for episode in done:
            if not episode.terminated:
                self._last[t, episode.index] = states[t + 1, episode.index].clone()
            states[t + 1, episode.index] = 0.0
            starts[t + 1, episode.index] = True

    def at_end(self, found: Ended, device: torch.device) -> Tensor:
        """The states after the last steps of these cut-off episodes."""
        return torch.stack([self._last[t, episode.index] for t, episode in found]).to(device)


def finish(
    policy: Policy,
    envs: VectorEnv,
    rollout: Rollout,
    ended: Ended,
    device: torch.device,
    remembered: Remembered | None = None,
) -> None:
    """What is cheaper for all steps at once than step by step, and what each step bootstraps from."""
    t = rollout.length
    for name, tensor in policy.afterwards(rollout.flat_fields(t)).items():
        rollout[name][:t] = tensor.view(t, -1, *tensor.shape[1:])
    if not rollout.bootstrapped:
        return
    if policy.values_with_actions:
        state = None
        if "state" in rollout:
            state = rollout["state"][t].to(device)
        for name, tensor in policy.bootstrap(_on(device, rollout.obs_steps[t]), state).items():
            rollout[name][t] = tensor
    else:
        for name, tensor in policy.bootstrap(_on(device, rollout.flat_obs(t + 1))).items():
            rollout[name][: t + 1] = tensor.view(t + 1, -1, *tensor.shape[1:])
    for name in rollout.bootstrapped:
        rollout.next[name][:t] = rollout[name][1 : t + 1].numpy()
    bootstrap_cut(policy, envs, rollout, ended, device, remembered)


def bootstrap_cut(
    policy: Policy,
    envs: VectorEnv,
    rollout: Rollout,
    ended: Ended,
    device: torch.device,
    remembered: Remembered | None = None,
) -> None:
    """What is expected of the final observations of cut-off episodes; 0 where the env was lost and there is none."""
    cut = [(step, episode) for step, episode in ended if not episode.terminated]
    known = [(step, episode) for step, episode in cut if episode.final_obs is not None]
    for step, episode in cut:
        for following in rollout.next.values():
            following[step, episode.index] = 0.0
    if not known:
        return
    arrays = stack([episode.final_obs for _, episode in known], envs.observation_space)
    for name, array in (arrays if isinstance(arrays, dict) else {"final observation": arrays}).items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            step, episode = known[int(np.argwhere(~np.isfinite(array))[0][0])]
            raise _non_finite(rollout, name, episode.index, step)
    state = None if remembered is None else remembered.at_end(known, device)
    expected = policy.bootstrap(_on(device, parts(torch.from_numpy, arrays)), state)
    for name, tensor in expected.items():
        for (step, episode), value in zip(known, tensor.cpu().numpy(), strict=True):
            rollout.next[name][step, episode.index] = value


def _whole_episodes(rollout: Rollout, ended: Ended, quota: int) -> np.ndarray:
    """True if a sample belongs to one of the first `quota` episodes of its slot and that episode ended."""
    last = np.full(rollout.n_envs, -1)
    count = np.zeros(rollout.n_envs, np.int64)
    for step, episode in ended:
        count[episode.index] += 1
        if count[episode.index] <= quota:
            last[episode.index] = step
    valid = np.arange(rollout.n_steps)[:, None] <= last
    if not valid.any():
        raise EnvError(
            f"No episode ended within {rollout.n_steps} steps, and only whole episodes can be learned from: "
            "raise algo.max_steps, or cut episodes off earlier with env.time_limit."
        )
    return valid


def _on(device: torch.device, obs: Observation) -> Observation:
    if device.type == "cpu":
        return obs
    moved: Observation = parts(lambda tensor: tensor.to(device), obs)
    return moved


def _mask_on(device: torch.device, mask: torch.Tensor | None) -> torch.Tensor | None:
    if mask is None or device.type == "cpu":
        return mask
    return mask.to(device)


def check(rollout: Rollout, envs: VectorEnv) -> None:
    """Bad data stops the run here, before it reaches the weights, with the env and step it came from."""
    t = rollout.length
    if isinstance(rollout.obs, dict):
        obs = rollout.obs
    else:
        obs = {"observation": rollout.obs}
    # The observation after the last step is bootstrapped from, so it counts too.
    for name, tensor in {
        **{key: o[: t + 1] for key, o in obs.items()},
        "reward": torch.from_numpy(rollout.reward[:t]),
    }.items():
        # A NaN or infinity anywhere makes the sum NaN or infinite: one cheap pass instead of a test per element.
        if tensor.is_floating_point() and not math.isfinite(float(tensor.sum(dtype=torch.float64))):
            bad = (~torch.isfinite(tensor)).nonzero()
            if len(bad):
                step, env = bad[0].tolist()[:2]
                raise _non_finite(rollout, name, env, step if name == "reward" else max(step - 1, 0))
    if rollout.mask is not None:
        possible = _possible(rollout.mask[:t].cpu().numpy(), envs.action_space)
        if not possible.all():
            step, env = (int(i) for i in np.argwhere(~possible)[0])
            raise EnvError(f"Env {env} gave an action mask with no possible action before step {step} of this rollout.")


def _non_finite(rollout: Rollout, name: str, env: int, step: int) -> NonFiniteError:
    return NonFiniteError(
        f"The environment returned NaN or infinity ({name}) in env {env}, step {step} of this rollout, after action "
        f"{rollout.action_arrays[step][env].tolist()}. The weights are unchanged."
    )


def _possible(mask: np.ndarray, space: spaces.Space) -> np.ndarray:
    """Whether each row of masks [T, N, A] leaves something to choose, in every choice of a MultiDiscrete action."""
    if not isinstance(space, spaces.MultiDiscrete):
        return np.asarray(mask.any(-1))
    starts = np.concatenate(([0], np.cumsum(np.ravel(space.nvec))[:-1]))
    return np.asarray(np.logical_or.reduceat(mask, starts, axis=-1).all(-1))

"""Filling a rollout: act, step, and afterwards everything that can be done for all steps at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces

from gymnast.envs.spaces import stack
from gymnast.envs.vector import EndedEpisode, VectorEnv
from gymnast.errors import EnvError, NonFiniteError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.buffer import Observation, Rollout
from gymnast.timing import StageTimer

Ended = list[tuple[int, EndedEpisode]]


def collect(
    policy: ActorCritic,
    envs: VectorEnv,
    rollout: Rollout,
    generator: torch.Generator,
    timer: StageTimer,
    *,
    episodes_per_env: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Ended:
    """Play `rollout.n_steps` steps from the observations in row 0; return the episodes that ended, with their steps.

    With `episodes_per_env`, stop when every slot has finished that many and mark only their samples as valid.
    `on_step` hears of the progress now and then.
    """
    ended: Ended = []
    finished = np.zeros(envs.n_envs, np.int64)
    clock = time.perf_counter
    in_env = in_policy = 0.0
    device = generator.device
    rollout.length = rollout.n_steps
    with torch.inference_mode(), policy.encoder.held():
        start = clock()
        noise = policy.distribution.noise((rollout.n_steps, rollout.n_envs), generator)
        for t in range(rollout.n_steps):
            obs, mask = _on(device, rollout.obs_steps[t]), _mask_on(device, rollout.mask_steps[t])
            action, params, value = policy.act(obs, noise[t], mask)
            rollout.action_steps[t].copy_(action)
            rollout.params_steps[t].copy_(params)
            if value is not None:
                rollout.value_steps[t].copy_(value)
            acted = clock()
            done = envs.step(rollout.action_arrays[t], rollout.rows[t])
            stepped = clock()
            in_policy += acted - start
            in_env += stepped - acted
            start = stepped
            if on_step is not None and t % 64 == 63:
                on_step(t + 1)
            if done:
                ended.extend((t, episode) for episode in done)
                if episodes_per_env is not None:
                    finished[[episode.index for episode in done]] += 1
                    if (finished >= episodes_per_env).all():
                        rollout.length = t + 1
                        break
        finish(policy, envs, rollout, ended, device)
        in_policy += clock() - start
    if episodes_per_env is not None:
        rollout.valid = _whole_episodes(rollout, ended, episodes_per_env)
        if not rollout.valid.any():
            raise EnvError(
                f"No episode ended within {rollout.n_steps} steps, and only whole episodes can be learned from: "
                "raise algo.max_steps, or cut episodes off earlier with env.time_limit."
            )
    timer.add("env", in_env)
    timer.add("policy", in_policy)
    check(rollout, envs)
    return ended


def finish(policy: ActorCritic, envs: VectorEnv, rollout: Rollout, ended: Ended, device: torch.device) -> None:
    """Log-probabilities and values of all steps in one batch each, and what each step bootstraps from."""
    t = rollout.length
    params = rollout.params[:t].flatten(0, 1)
    log_prob, _, _ = policy.distribution.evaluate(params, rollout.action[:t].flatten(0, 1))
    rollout.log_prob[:t] = log_prob.view(t, -1)
    if not policy.has_critic:
        return
    if policy.shared:
        rollout.value[t] = policy.values(_on(device, rollout.obs_steps[t]))
    else:
        rollout.value[: t + 1] = policy.values(_on(device, rollout.flat_obs(t + 1))).view(t + 1, -1)
    rollout.next_value[:t] = rollout.value[1 : t + 1].numpy()
    bootstrap_cut(policy, envs, rollout, ended, device)


def bootstrap_cut(policy: ActorCritic, envs: VectorEnv, rollout: Rollout, ended: Ended, device: torch.device) -> None:
    """Values of the final observations of cut-off episodes; 0 where the env was lost and there is none."""
    cut = [(step, episode) for step, episode in ended if not episode.terminated]
    known = [(step, episode) for step, episode in cut if episode.final_obs is not None]
    for step, episode in cut:
        rollout.next_value[step, episode.index] = 0.0
    if known:
        arrays = stack([episode.final_obs for _, episode in known], envs.observation_space)
        for name, array in (arrays if isinstance(arrays, dict) else {"final observation": arrays}).items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                step, episode = known[int(np.argwhere(~np.isfinite(array))[0][0])]
                raise _non_finite(rollout, name, episode.index, step)
        final: Observation = (
            {key: torch.from_numpy(array) for key, array in arrays.items()}
            if isinstance(arrays, dict)
            else torch.from_numpy(arrays)
        )
        values = policy.values(_on(device, final)).tolist()
        for (step, episode), value in zip(known, values, strict=True):
            rollout.next_value[step, episode.index] = value


def _whole_episodes(rollout: Rollout, ended: Ended, quota: int) -> np.ndarray:
    """True where a sample belongs to one of the first `quota` episodes of its slot and that episode ended."""
    last = np.full(rollout.n_envs, -1)
    count = np.zeros(rollout.n_envs, np.int64)
    for step, episode in ended:
        count[episode.index] += 1
        if count[episode.index] <= quota:
            last[episode.index] = step
    return np.arange(rollout.n_steps)[:, None] <= last


def _on(device: torch.device, obs: Observation) -> Observation:
    if device.type == "cpu":
        return obs
    return {key: tensor.to(device) for key, tensor in obs.items()} if isinstance(obs, dict) else obs.to(device)


def _mask_on(device: torch.device, mask: torch.Tensor | None) -> torch.Tensor | None:
    return mask if mask is None or device.type == "cpu" else mask.to(device)


def check(rollout: Rollout, envs: VectorEnv) -> None:
    """Bad data stops the run here, before it reaches the weights, with the env and step it came from."""
    t = rollout.length
    obs = rollout.obs if isinstance(rollout.obs, dict) else {"observation": rollout.obs}
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

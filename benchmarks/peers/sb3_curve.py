"""One learning curve of Stable-Baselines3 PPO under an rl-zoo entry, run by the interpreter in `.peers/sb3`.

The entry comes as JSON, as the zoo's YAML has it: `lin_x` is a linear decay to zero and `normalize: true` is VecNormalize
of observations and rewards, which is what rl-zoo makes of them. Prints `{env_steps: [...], return_mean: [...], seconds}`:
SB3's own `rollout/ep_rew_mean` (raw returns of the last 100 episodes) after every rollout.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize


class Curve(BaseCallback):
    """The mean return of the last 100 episodes after every rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.env_steps: list[int] = []
        self.return_mean: list[float | None] = []

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer or []
        self.env_steps.append(self.num_timesteps)
        self.return_mean.append(sum(e["r"] for e in episodes) / len(episodes) if episodes else None)

    def _on_step(self) -> bool:
        return True


def value(raw: Any) -> Any:
    """A zoo value: numbers stay, `lin_x` becomes a schedule."""
    if isinstance(raw, str) and raw.startswith("lin_"):
        start = float(raw.removeprefix("lin_"))
        return lambda progress_remaining: progress_remaining * start
    return raw


def main() -> None:
    """Train one seed and print the curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", required=True)
    parser.add_argument("--entry", required=True, help="the rl-zoo entry as JSON")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    entry = {key: value(raw) for key, raw in json.loads(options.entry).items()}
    budget, policy = int(entry.pop("n_timesteps")), entry.pop("policy")
    # make_vec_env asks for rgb_array by default, for which LunarLander simulates smoke: five times slower, same physics.
    still = {"render_mode": None}
    envs: Any = make_vec_env(options.env, n_envs=entry.pop("n_envs", 1), seed=options.seed, env_kwargs=still)
    if entry.pop("normalize", False):
        envs = VecNormalize(envs, gamma=entry.get("gamma", 0.99))
    curve, began = Curve(), time.perf_counter()
    PPO(policy, envs, seed=options.seed, device="cpu", **entry).learn(budget, callback=curve)
    seconds = time.perf_counter() - began
    print(json.dumps({"env_steps": curve.env_steps, "return_mean": curve.return_mean, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()

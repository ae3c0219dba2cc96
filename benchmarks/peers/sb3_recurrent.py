"""sb3-contrib's RecurrentPPO on CartPole without velocities, for `benchmarks/recurrent.py`; runs where sb3-contrib is installed.

Prints `{steps_per_second, env_steps, seconds}`, counted from the end of the second iteration. It neither evaluates nor saves.
"""

from __future__ import annotations

import argparse
import json
import time

import gymnasium as gym
import numpy as np
from sb3_contrib import RecurrentPPO
from sb3_ppo import WarmClock
from stable_baselines3.common.env_util import make_vec_env

SHOWN = [0, 2]


class Positions(gym.ObservationWrapper):
    """Leaves the velocities out."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gym.spaces.Box(space.low[SHOWN], space.high[SHOWN], dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Position of the cart and angle of the pole."""
        return observation[SHOWN]


def main() -> None:
    """Train and print the warm rate as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=20_000)
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    model = RecurrentPPO(
        "MlpLstmPolicy",
        make_vec_env("CartPole-v1", n_envs=options.n_envs, seed=options.seed, wrapper_class=Positions),
        n_steps=128,
        batch_size=128,
        n_epochs=4,
        learning_rate=3e-4,
        gamma=0.99,
        gae_lambda=0.95,
        max_grad_norm=0.5,
        policy_kwargs={"lstm_hidden_size": options.size, "net_arch": [64]},
        seed=options.seed,
        device="cpu",
    )
    clock = WarmClock()
    model.learn(options.env_steps, callback=clock)
    seconds = time.perf_counter() - clock.began
    steps = model.num_timesteps - clock.steps_before
    print(json.dumps({"steps_per_second": steps / seconds, "env_steps": steps, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()

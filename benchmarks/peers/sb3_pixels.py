"""stable-baselines3 PPO on an Atari game's pixels, as its users run it, for `benchmarks/pixels.py`.

`make_atari_env` (DummyVecEnv, or SubprocVecEnv on demand) with its AtariWrapper, four stacked frames, `CnnPolicy`: the
Nature network with one linear layer each for actor and critic. Numbers of rl-zoo:
https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/hyperparams/ppo.yml
Logging is what rl-zoo has on: Monitor and the table on the terminal. It neither evaluates nor saves.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import ale_py
import gymnasium
import torch
from sb3_ppo import WarmClock, linear
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack

VEC_ENVS = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}


def make_model(options: argparse.Namespace) -> PPO:
    """PPO with the game's envs."""
    gymnasium.register_envs(ale_py)
    name = f"{options.game.capitalize()}NoFrameskip-v4"
    envs = make_atari_env(name, n_envs=options.n_envs, seed=options.seed, vec_env_cls=VEC_ENVS[options.vec_env])
    return PPO(
        "CnnPolicy",
        VecFrameStack(envs, 4),
        n_steps=options.n_steps,
        batch_size=options.batch_size,
        n_epochs=options.n_epochs,
        learning_rate=linear(2.5e-4),
        clip_range=0.1,
        ent_coef=0.01,
        vf_coef=0.5,
        seed=options.seed,
        verbose=1,
        device=options.device,
    )


def main() -> None:
    """Train and print the warm rate as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--vec-env", choices=list(VEC_ENVS), default="dummy")
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--n-epochs", type=int, default=4)
    parser.add_argument("--env-steps", type=int, default=10_240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch; its own default otherwise")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    model, clock = make_model(options), WarmClock()
    model.learn(options.env_steps, callback=clock)
    seconds, steps = time.perf_counter() - clock.began, model.num_timesteps - clock.steps_before
    outcome = {
        "env_steps": steps,
        "seconds": seconds,
        "steps_per_second": steps / seconds,
        "updates": model._n_updates * (options.n_envs * options.n_steps // options.batch_size),
        "parameters": sum(parameter.numel() for parameter in model.policy.parameters()),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if model.device.type == "cuda" else "cpu",
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()

"""Stable-Baselines3 PPO on CartPole-v1 or LunarLander-v3, run by the interpreter in `.peers/sb3`.

`--mode throughput` prints `{env_steps, seconds, steps_per_second, peak_rss_mb}`: timed from the end of the second
iteration, so start-up is left out. `--mode solve` trains with the rl-zoo settings to the shared stop rule (see
stop_rule.py), or with `--stopper sb3` to SB3's own EvalCallback and StopTrainingOnRewardThreshold. Logging is what
rl-zoo has on: Monitor and the table on the terminal. rl-zoo settings:
https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/hyperparams/ppo.yml
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_vec_env
from stop_rule import StopRule, add_options


def linear(start: float) -> Any:
    """rl-zoo's `lin_x`: from `start` to zero over the budget."""
    return lambda progress_remaining: progress_remaining * start


CARTPOLE, LUNAR = "CartPole-v1", "LunarLander-v3"
SETTINGS: dict[str, dict[str, Any]] = {
    "zoo": {
        "env": CARTPOLE,
        "budget": 100_000,
        "n_envs": 8,
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 20,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "learning_rate": linear(1e-3),
        "clip_range": linear(0.2),
        "ent_coef": 0.0,
    },
    "large": {"env": CARTPOLE, "budget": 100_000, "n_envs": 64, "n_steps": 128, "batch_size": 2048, "n_epochs": 4},
    "lunar": {
        "env": LUNAR,
        "budget": 1_000_000,
        "n_envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "n_epochs": 4,
        "gamma": 0.999,
        "gae_lambda": 0.98,
        "ent_coef": 0.01,
    },
}


def make_model(setting: str, seed: int) -> PPO:
    """PPO with SB3's MlpPolicy: separate 64×64 tanh networks for actor and critic."""
    settings = {key: value for key, value in SETTINGS[setting].items() if key not in ("env", "budget")}
    # make_vec_env asks for rgb_array by default, for which LunarLander simulates smoke: five times slower, same physics.
    still = {"render_mode": None}
    envs = make_vec_env(SETTINGS[setting]["env"], n_envs=settings.pop("n_envs"), seed=seed, env_kwargs=still)
    return PPO("MlpPolicy", envs, seed=seed, verbose=1, device="cpu", **settings)


class WarmClock(BaseCallback):
    """Reads the clock when the third iteration begins."""

    def __init__(self) -> None:
        super().__init__()
        self.iterations = 0

    def _on_rollout_start(self) -> None:
        if self.iterations == 2:
            self.began, self.steps_before = time.perf_counter(), self.num_timesteps
        self.iterations += 1

    def _on_step(self) -> bool:
        return True


class SharedStop(BaseCallback):
    """The shared stop rule, asked after every update."""

    def __init__(self, rule: StopRule) -> None:
        super().__init__()
        self.rule, self.solved, self.env_steps = rule, False, 0

    def act(self, observation: Any) -> Any:
        """Most likely actions."""
        return self.model.predict(observation, deterministic=True)[0]

    def _on_rollout_start(self) -> None:
        self.env_steps = self.num_timesteps
        episodes = self.model.ep_info_buffer
        mean = sum(episode["r"] for episode in episodes) / len(episodes) if episodes else None
        self.solved = self.rule.met(mean, self.num_timesteps, self.act)

    def _on_step(self) -> bool:
        return not self.solved


def throughput(setting: str, env_steps: int, seed: int) -> None:
    """Train and print the warm rate."""
    model, clock = make_model(setting, seed), WarmClock()
    model.learn(env_steps, callback=clock)
    seconds, steps = time.perf_counter() - clock.began, model.num_timesteps - clock.steps_before
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcome = {"env_steps": steps, "seconds": seconds, "steps_per_second": steps / seconds, "peak_rss_mb": rss}
    print(json.dumps(outcome), flush=True)


def solve(options: argparse.Namespace) -> None:
    """Train to the bar and print the outcome."""
    env, budget = SETTINGS[options.setting]["env"], SETTINGS[options.setting]["budget"]
    model, rule = make_model(options.setting, options.seed), StopRule(options, env)
    callback = SharedStop(rule)
    if options.stopper == "shared":
        model.learn(budget, callback=callback)
        if not callback.solved:
            rule.judge(model.num_timesteps, callback.act)
    else:
        envs = make_vec_env(env, n_envs=10, seed=options.seed + 1000, env_kwargs={"render_mode": None})
        own = EvalCallback(
            envs,
            callback_on_new_best=StopTrainingOnRewardThreshold(options.solved_at, verbose=1),
            n_eval_episodes=options.episodes,
            eval_freq=max(1, options.eval_every // model.n_envs),
        )
        model.learn(budget, callback=own)
        mean = float(own.last_mean_reward)
        rule.evaluations.append({"env_steps": model.num_timesteps, "mean": mean, "std": None})
    rule.report(callback.env_steps if callback.solved else model.num_timesteps, stopper=options.stopper)


def main() -> None:
    """Read the command line and run one mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["throughput", "solve"], required=True)
    parser.add_argument("--setting", choices=list(SETTINGS), default="zoo")
    parser.add_argument("--env-steps", type=int, default=100_000, help="of --mode throughput")
    parser.add_argument("--stopper", choices=["shared", "sb3"], default="shared")
    add_options(parser)
    options = parser.parse_args()
    if options.mode == "throughput":
        throughput(options.setting, options.env_steps, options.seed)
    else:
        solve(options)


if __name__ == "__main__":
    main()

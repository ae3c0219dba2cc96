"""Training throughput of a recurrent policy against sb3-contrib's RecurrentPPO: `python benchmarks/recurrent.py`.

CartPole without velocities, an LSTM each for actor and critic with one layer of 64 behind it, the same hyperparameters and
as many updates. The rate is env steps per second from the end of the second iteration; our evaluation, metrics and
checkpoints are on. Both run with one torch thread. Bar (issue 22): ≥ 3×.
"""

from __future__ import annotations

import sys
from typing import Any

from contestants import PEERS, OurRun
from harness import finish, interleave, ratio, spread, verdict, versions
from harness import parser as make_parser
from process import run_process

BAR = 3.0
OVERRIDES = [
    "env.wrappers=[{id: select, components: [0, 2]}]",
    "policy.memory=lstm",
    "policy.hidden=[64]",
    "policy.normalize_obs=false",
    "policy.normalize_obs_steps=null",
    "algo.normalize_reward=false",
    "algo.learning_rate=3e-4",
    "algo.gamma=0.99",
    "algo.gae_lambda=0.95",
    "algo.n_steps=128",
    "algo.batch_size=128",
    "algo.n_epochs=4",
    "algo.clip_range=0.2",
    "algo.max_grad_norm=0.5",
    "train.stop_when_solved=false",
    "train.threads=1",
    "log.video=false",  # made, as are these tables, by a process that outlives the run
    "log.rollouts=false",
    "eval.every=25000",
    "eval.start_fraction=null",
]


def ours(env_steps: int, n_envs: int, size: int, seed: int) -> dict[str, Any]:
    """One run of gymnast."""
    sizes = [f"env.n_envs={n_envs}", f"policy.memory_size={size}"]
    run = OurRun(["--seed", str(seed), "-n", str(env_steps), *OVERRIDES, *sizes])
    steps, seconds = run.steady_rate()
    rate = {"steps_per_second": steps / seconds, "env_steps": steps, "seconds": seconds}
    return rate | {"foreign": run.process.foreign}


def theirs(env_steps: int, n_envs: int, size: int, seed: int) -> dict[str, Any]:
    """One run of sb3-contrib, with the interpreter that runs this benchmark."""
    options = ["--seed", seed, "--env-steps", env_steps, "--n-envs", n_envs, "--size", size]
    command = [sys.executable, PEERS / "sb3_recurrent.py", *map(str, options)]
    process = run_process(command, env={"OMP_NUM_THREADS": "1"})
    return process.json_line() | {"foreign": process.foreign}


def main() -> None:
    """One results file."""
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--env-steps", type=int, default=40_000)
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--size", type=int, default=64, help="units of each LSTM")
    options = parser.parse_args()
    sizes = (options.env_steps, options.n_envs, options.size)
    config = {"env_steps": options.env_steps, "n_envs": options.n_envs, "size": options.size, "pairs": options.pairs}
    config |= {"overrides": OVERRIDES, "versions": versions()}
    contestants = {"gymnast": lambda i: ours(*sizes, i), "sb3-contrib": lambda i: theirs(*sizes, i)}
    name = f"recurrent_{options.n_envs}x{options.size}"
    record = interleave(name, config, contestants, options.pairs, quiet=not options.no_wait)
    ratios = ratio(record, "steps_per_second", "gymnast", "sb3-contrib")
    finish(
        record,
        {
            "gymnast steps/s": spread(record, "steps_per_second", "gymnast"),
            "sb3-contrib steps/s": spread(record, "steps_per_second", "sb3-contrib"),
            "gymnast ÷ sb3-contrib": ratios,
            "bar": verdict(ratios["median"], f"≥ {BAR:g}× sb3-contrib", at_least=BAR),
        },
    )


if __name__ == "__main__":
    main()

"""Training throughput on CartPole-v1 against stable-baselines3: `python benchmarks/throughput.py`.

Both train separate 64×64 tanh networks with identical hyperparameters and the same number of updates. The rate is env
steps per second from the end of the second iteration; our evaluation, metrics, live table and checkpoints are on.
Bars (issue 2): ≥ 2.5× at the rl-zoo setting, ≥ 3× at the large one.
"""

from __future__ import annotations

from typing import Any

from contestants import OVERRIDES, OurRun, all_versions, run_peer
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser

BARS = {"zoo": 2.5, "large": 3.0}
ENV_STEPS = {"zoo": 100_000, "large": 500_000}


def ours(setting: str, env_steps: int, seed: int) -> dict[str, Any]:
    """One run of gymnast."""
    run = OurRun(["--seed", str(seed), "-n", str(env_steps), *OVERRIDES[setting]])
    steps, seconds = run.steady_rate()
    evaluations = sum(row.get("eval/return_mean") is not None for row in run.rows)
    rate = {"steps_per_second": steps / seconds, "env_steps": steps, "seconds": seconds, "evaluations": evaluations}
    return rate | {"foreign": run.process.foreign}


def sb3(setting: str, env_steps: int, seed: int, threads: int | None) -> dict[str, Any]:
    """One run of stable-baselines3."""
    options = ["--mode", "throughput", "--setting", setting, "--env-steps", str(env_steps), "--seed", str(seed)]
    process = run_peer("sb3", options, threads=threads)
    return process.json_line() | {"foreign": process.foreign}


def main() -> None:
    """Both settings, one results file each."""
    parser = make_parser(__doc__)
    parser.add_argument("--setting", choices=list(BARS), action="append", help="one setting only; both by default")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--env-steps", type=int, help="per run; 100,000 (zoo) and 500,000 (large) by default")
    parser.add_argument("--peer-threads", type=int, help="torch threads of the peer; its own default otherwise")
    parser.add_argument("--aa", action="store_true", help="the peer against itself: how far two equals differ here")
    options = parser.parse_args()
    for setting in options.setting or BARS:
        env_steps, threads = options.env_steps or ENV_STEPS[setting], options.peer_threads
        config = {"setting": setting, "env_steps": env_steps, "peer_threads": threads, "pairs": options.pairs}
        config |= {"overrides": OVERRIDES[setting], "versions": all_versions("sb3")}

        def peer(i: int, s: str = setting, n: int = env_steps, t: int | None = threads) -> dict[str, Any]:
            return sb3(s, n, i, t)

        def own(i: int, s: str = setting, n: int = env_steps) -> dict[str, Any]:
            return ours(s, n, i)

        name, first = (f"throughput_{setting}_aa", "sb3_again") if options.aa else (f"throughput_{setting}", "gymnast")
        record = interleave(
            name, config, {first: peer if options.aa else own, "sb3": peer}, options.pairs, quiet=not options.no_wait
        )
        summary: dict[str, Any] = {
            f"{first} steps/s": spread(record, "steps_per_second", first),
            "sb3 steps/s": spread(record, "steps_per_second", "sb3"),
            f"{first} ÷ sb3": ratio(record, "steps_per_second", first, "sb3"),
        }
        if not options.aa:
            median = summary["gymnast ÷ sb3"]["median"]
            summary["bar"] = verdict(median, f"≥ {BARS[setting]}× sb3", at_least=BARS[setting])
        finish(record, summary)


if __name__ == "__main__":
    main()

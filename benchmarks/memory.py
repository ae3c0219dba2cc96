"""Peak memory of the process tree against stable-baselines3, rl-zoo CartPole setting: `python benchmarks/memory.py`.

Resident memory of the process and all its children, polled every 20 ms, and the kernel's own peak of the main process
where that is higher. Bar (issue 2): no higher than stable-baselines3's.
"""

from __future__ import annotations

from typing import Any

from contestants import OVERRIDES, OurRun, all_versions, run_peer
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser


def main() -> None:
    """Interleaved pairs."""
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--env-steps", type=int, default=20_000)
    parser.add_argument("--aa", action="store_true", help="the peer against itself")
    options = parser.parse_args()
    steps = str(options.env_steps)

    def ours(i: int) -> dict[str, Any]:
        process = OurRun(["--seed", str(i), "-n", steps, *OVERRIDES["zoo"]], memory=True).process
        return {"peak_mb": process.peak_mb, "foreign": process.foreign}

    def sb3(i: int) -> dict[str, Any]:
        options = ["--mode", "throughput", "--setting", "zoo", "--env-steps", steps, "--seed", str(i)]
        process = run_peer("sb3", options, memory=True)
        return {
            "peak_mb": process.peak_mb,
            "own_peak_mb": process.json_line()["peak_rss_mb"],
            "foreign": process.foreign,
        }

    config = {"env_steps": options.env_steps, "pairs": options.pairs, "versions": all_versions("sb3")}
    name, first = ("memory_aa", "sb3_again") if options.aa else ("memory", "gymnast")
    record = interleave(
        name, config, {first: sb3 if options.aa else ours, "sb3": sb3}, options.pairs, quiet=not options.no_wait
    )
    summary: dict[str, Any] = {
        f"{first} MB": spread(record, "peak_mb", first),
        "sb3 MB": spread(record, "peak_mb", "sb3"),
        f"{first} ÷ sb3": ratio(record, "peak_mb", first, "sb3"),
    }
    if not options.aa:
        summary["bar"] = verdict(summary["gymnast ÷ sb3"]["median"], "no more than sb3", at_most=1.0)
    finish(record, summary)


if __name__ == "__main__":
    main()

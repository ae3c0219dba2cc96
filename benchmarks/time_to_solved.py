"""Process start to a solved CartPole-v1 against stable-baselines3 and CleanRL: `python benchmarks/time_to_solved.py`.

Ours is `gymnast train CartPole-v1:ppo --seed S` as users type it; the peers have their own tuned settings for CartPole
and our stop rule (peers/stop_rule.py), read from our preset. The time runs from the start of the process to the printed
100-episode evaluation of at least 475, failed evaluations included; the time to the exit is recorded beside it.
Bars (issue 2): at most 0.6 of CleanRL's median and 0.47 of stable-baselines3's.

`--calibrate` looks for the stop rule that suits each peer best, on seeds that no table uses; give the peers that one
with `--peer-stop AT:EVERY` when it beats ours. `--sb3-stopper sb3` measures SB3's own EvalCallback instead.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from contestants import CONFIG, SOLVED_LINE, OurRun, all_versions, run_peer
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser

BARS = {"cleanrl": 0.6, "sb3": 0.47}
HELD_OUT = "1000-1004"
CALIBRATION_SEEDS = "100-104"
GRID = list(product((50.0, 100.0, 150.0, 200.0), (1000, 2500, 5000)))


def seeds_of(text: str) -> list[int]:
    """`0-4` or `0,2,5`."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(part) for part in text.split(",")]


def our_stop() -> tuple[float, int]:
    """When our preset begins to evaluate, and how often."""
    from gymnast.config.load import resolve
    from gymnast.config.plan import make_plan

    plan = make_plan(resolve(CONFIG).config)
    return plan.eval_start_at or 0.0, plan.eval_every


def ours(seed: int) -> dict[str, Any]:
    """One run of gymnast."""
    run = OurRun(["--seed", str(seed)])
    printed = run.process.time_of(SOLVED_LINE)
    if printed is None:
        raise SystemExit(f"No evaluation line in the output of gymnast:\n{run.process.text[-2000:]}")
    evaluations = [row["eval/return_mean"] for row in run.rows if row.get("eval/return_mean") is not None]
    outcome = {"printed": printed, "exited": run.process.wall, "solved": run.status["solved"], "mean": evaluations[-1]}
    return outcome | {
        "env_steps": run.status["env_steps"],
        "evaluations": len(evaluations),
        "foreign": run.process.foreign,
    }


def peer(name: str, seed: int, stop: tuple[float, int], threads: int | None, stopper: str) -> dict[str, Any]:
    """One run of a peer."""
    options = ["--seed", str(seed), "--eval-at", str(stop[0]), "--eval-every", str(stop[1])]
    options += ["--mode", "solve", "--stopper", stopper] if name == "sb3" else []
    process = run_peer(name, options, threads=threads)
    line = process.json_line()
    outcome = {"printed": process.time_of(r'\{"solved": .*\}'), "exited": process.wall, "solved": line["solved"]}
    outcome |= {"mean": line["mean"], "env_steps": line["env_steps"], "evaluations": len(line["evaluations"])}
    return outcome | {"foreign": process.foreign}


def calibrate(options: argparse.Namespace) -> None:
    """Median seconds of each peer for each stop rule in the grid."""
    seeds = seeds_of(CALIBRATION_SEEDS)
    contestants = {
        f"{name} {at:g}:{every}": lambda i, n=name, s=(at, every): peer(n, seeds[i], s, options.peer_threads, "shared")
        for name in BARS
        for at, every in GRID
    }
    config = {"seeds": seeds, "peer_threads": options.peer_threads, "versions": all_versions(*BARS)}
    record = interleave("time_to_solved_calibration", config, contestants, len(seeds), quiet=not options.no_wait)
    finish(record, {contestant: spread(record, "printed", contestant) for contestant in contestants})


def main() -> None:
    """One table."""
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--held-out", action="store_true", help=f"seeds {HELD_OUT}: once, reported whatever they show")
    parser.add_argument("--peer", choices=list(BARS), action="append", help="one peer only; both by default")
    parser.add_argument("--peer-threads", type=int, help="torch threads of the peers; their own default otherwise")
    parser.add_argument("--peer-stop", metavar="AT:EVERY", help="another stop rule for the peers than our preset's")
    parser.add_argument("--sb3-stopper", choices=["shared", "sb3"], default="shared")
    parser.add_argument("--peers-only", action="store_true", help="leave ours out")
    parser.add_argument("--calibrate", action="store_true")
    options = parser.parse_args()
    if options.calibrate:
        calibrate(options)
        return
    seeds = seeds_of(HELD_OUT if options.held_out else options.seeds)
    peers = options.peer or list(BARS)
    if options.peer_stop:
        at, _, every = options.peer_stop.partition(":")
        stop = (float(at), int(every))
    else:
        stop = our_stop()
    contestants: dict[str, Any] = {} if options.peers_only else {"gymnast": lambda i: ours(seeds[i])}
    run = partial(peer, stop=stop, threads=options.peer_threads, stopper=options.sb3_stopper)
    contestants |= {name: (lambda i, n=name: run(n, seeds[i])) for name in peers}
    config = {"seeds": seeds, "peer_stop": list(stop), "peer_threads": options.peer_threads}
    config |= {"sb3_stopper": options.sb3_stopper, "contestants": list(contestants), "versions": all_versions(*peers)}
    name = "time_to_solved" + "_held_out" * options.held_out + "_peers" * options.peers_only
    record = interleave(name, config, contestants, len(seeds), quiet=not options.no_wait)
    rows = record["rounds"]
    summary: dict[str, Any] = {f"{n} solved": f"{sum(r[n]['solved'] for r in rows)}/{len(rows)}" for n in contestants}
    summary |= {f"{n} seconds to the evaluation": spread(record, "printed", n) for n in contestants}
    summary |= {f"{n} seconds to the exit": spread(record, "exited", n) for n in contestants}
    for name in [] if options.peers_only else peers:
        medians = median(r["gymnast"]["printed"] for r in rows) / median(r[name]["printed"] for r in rows)
        summary[f"gymnast ÷ {name}, per seed"] = ratio(record, "printed", "gymnast", name)
        summary[f"bar {name}"] = verdict(medians, f"medians ≤ {BARS[name]}× {name}", at_most=BARS[name])
    finish(record, summary)


if __name__ == "__main__":
    main()

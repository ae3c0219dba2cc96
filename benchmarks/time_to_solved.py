"""Process start to a solved env against the peers: `python benchmarks/time_to_solved.py [--env LunarLander-v3]`.

Ours is `gymnast train ENV:ppo --seed S` as users type it, on LunarLander also with `env.vectorization=inprocess`, which is
what users without EnvPool get; the peers have their own tuned settings for the env and our stop rule
(peers/stop_rule.py), read from our preset. The time runs from the start of the process to the printed 100-episode
evaluation that reaches the threshold, failed evaluations included; the time to the exit is recorded beside it.
Bars, as shares of the peer's median: CartPole-v1 0.6 of CleanRL and 0.47 of stable-baselines3 (issue 2); LunarLander-v3
0.35 of stable-baselines3, 0.5 without EnvPool (issue 5).

`--calibrate` looks for the stop rule that suits each peer best, on seeds that no table uses; give the peers that one
with `--peer-stop AT:EVERY` when it beats ours. `--sb3-stopper sb3` measures SB3's own EvalCallback instead.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from contestants import SOLVED_LINE, OurRun, all_versions, run_peer
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser

WITHOUT_ENVPOOL = "gymnast, no EnvPool"
OURS = {"CartPole-v1": {"gymnast": []}}
OURS["LunarLander-v3"] = {"gymnast": [], WITHOUT_ENVPOOL: ["env.vectorization=inprocess"]}
BARS: dict[str, dict[tuple[str, str], float]] = {
    "CartPole-v1": {("gymnast", "cleanrl"): 0.6, ("gymnast", "sb3"): 0.47},
    "LunarLander-v3": {("gymnast", "sb3"): 0.35, (WITHOUT_ENVPOOL, "sb3"): 0.5},
}
"""Ours, the peer, and the largest share of its median."""
SB3_SETTING = {"CartPole-v1": "zoo", "LunarLander-v3": "lunar"}
SOLVED_AT = {"CartPole-v1": 475, "LunarLander-v3": 200}
HELD_OUT = "1000-1004"
CALIBRATION_SEEDS = "100-104"
GRID = list(product((50.0, 100.0, 150.0, 200.0), (1000, 2500, 5000)))


def seeds_of(text: str) -> list[int]:
    """`0-4` or `0,2,5`."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(part) for part in text.split(",")]


def peers_of(env: str) -> list[str]:
    """Whom we are compared with."""
    return list(dict.fromkeys(peer for _, peer in BARS[env]))


def our_stop(env: str) -> tuple[float, int]:
    """When our preset begins to evaluate, and how often."""
    from gymnast.config.load import resolve
    from gymnast.config.plan import make_plan

    plan = make_plan(resolve(f"{env}:ppo").config)
    return plan.eval_start_at or 0.0, plan.eval_every


def ours(env: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """One run of gymnast."""
    run = OurRun(["--seed", str(seed), *settings], config=f"{env}:ppo")
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


def peer(name: str, env: str, seed: int, stop: tuple[float, int], threads: int | None, stopper: str) -> dict[str, Any]:
    """One run of a peer."""
    options = ["--seed", str(seed), "--eval-at", str(stop[0]), "--eval-every", str(stop[1])]
    options += ["--solved-at", str(SOLVED_AT[env])]
    options += ["--mode", "solve", "--setting", SB3_SETTING[env], "--stopper", stopper] if name == "sb3" else []
    process = run_peer(name, options, threads=threads)
    line = process.json_line()
    outcome = {"printed": process.time_of(r'\{"solved": .*\}'), "exited": process.wall, "solved": line["solved"]}
    outcome |= {"mean": line["mean"], "env_steps": line["env_steps"], "evaluations": len(line["evaluations"])}
    return outcome | {"foreign": process.foreign}


def calibrate(options: argparse.Namespace) -> None:
    """Median seconds of each peer for each stop rule in the grid."""
    seeds = seeds_of(CALIBRATION_SEEDS)
    contestants = {
        f"{name} {at:g}:{every}": lambda i, n=name, s=(at, every): peer(
            n, options.env, seeds[i], s, options.peer_threads, "shared"
        )
        for name in peers_of(options.env)
        for at, every in GRID
    }
    config = {
        "env": options.env,
        "seeds": seeds,
        "peer_threads": options.peer_threads,
        "versions": all_versions(*peers_of(options.env)),
    }
    record = interleave("time_to_solved_calibration", config, contestants, len(seeds), quiet=not options.no_wait)
    finish(record, {contestant: spread(record, "printed", contestant) for contestant in contestants})


def main() -> None:
    """One table."""
    parser = make_parser(__doc__)
    parser.add_argument("--env", choices=list(BARS), default="CartPole-v1")
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--held-out", action="store_true", help=f"seeds {HELD_OUT}: once, reported whatever they show")
    parser.add_argument("--peer", action="append", help="one peer only; all by default")
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
    env, peers = options.env, options.peer or peers_of(options.env)
    if options.peer_stop:
        at, _, every = options.peer_stop.partition(":")
        stop = (float(at), int(every))
    else:
        stop = our_stop(env)
    own = {} if options.peers_only else OURS[env]
    contestants: dict[str, Any] = {
        name: (lambda i, s=settings: ours(env, seeds[i], s)) for name, settings in own.items()
    }
    run = partial(peer, env=env, stop=stop, threads=options.peer_threads, stopper=options.sb3_stopper)
    contestants |= {name: (lambda i, n=name: run(n, seed=seeds[i])) for name in peers}
    config = {"env": env, "seeds": seeds, "peer_stop": list(stop), "peer_threads": options.peer_threads}
    config |= {"sb3_stopper": options.sb3_stopper, "contestants": list(contestants), "versions": all_versions(*peers)}
    name = (
        "time_to_solved"
        + "_lunarlander" * (env == "LunarLander-v3")
        + "_held_out" * options.held_out
        + "_peers" * options.peers_only
    )
    record = interleave(name, config, contestants, len(seeds), quiet=not options.no_wait)
    rows = record["rounds"]
    summary: dict[str, Any] = {f"{n} solved": f"{sum(r[n]['solved'] for r in rows)}/{len(rows)}" for n in contestants}
    summary |= {f"{n} seconds to the evaluation": spread(record, "printed", n) for n in contestants}
    summary |= {f"{n} seconds to the exit": spread(record, "exited", n) for n in contestants}
    for (we, they), bar in BARS[env].items():
        if we not in own or they not in peers:
            continue
        medians = median(r[we]["printed"] for r in rows) / median(r[they]["printed"] for r in rows)
        summary[f"{we} ÷ {they}, per seed"] = ratio(record, "printed", we, they)
        summary[f"bar {we} ÷ {they}"] = verdict(medians, f"medians ≤ {bar}× {they}", at_most=bar)
    finish(record, summary)


if __name__ == "__main__":
    main()

"""Atari games as users train them: `python benchmarks/atari.py solve|speed|breakout`.

solve     `gymnast train ALE/Pong-v5:VARIANT --seed S`: seconds from the start of the process to the 100-episode evaluation
          of at least 18, and to the end of the first iteration. With a GPU one short process runs before the timed ones,
          because the first one on a fresh machine reads the GPU's libraries from the disk. `--on` trains on after 18.
speed     Training's steady rate at the preset's setting against stepping the same envs with random actions, by turns,
          and against the best setting of `gymnast env bench`: ALE's threads or our processes, all cores or one less.
breakout  10M steps without sticky actions, in as many sittings as it takes: `--seconds` ends one, `--folder` has the run.

Bars (issue 6). One H200 and 16 cores: rgb_ppo and rgb_deterministic_ppo in 150 s, aim 90, the first step in 10 s; 85 % of the
env-only rate; Breakout 400. Two cores: objects_deterministic_ppo in 300 s. Trained on, without sticky actions: 20.
SB3's throughput on the same machine: `benchmarks/pixels.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import time
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from contestants import OurRun, gymnast
from harness import RESULTS, finish, interleave, machine, ratio, source, spread, verdict, versions, write
from harness import parser as make_parser

from gymnast.metrics.sinks.jsonl import MetricRows

SOLVED_AT = 18.0
SOLVED_LINE = r"-?[\d.]+ ± [\d.]+ over 100 episodes"
SECONDS = {"rgb_ppo": 150.0, "rgb_deterministic_ppo": 150.0, "objects_deterministic_ppo": 300.0}
"""Bars by variant."""
BREAKOUT = "ALE/Breakout-v5:rgb_deterministic_ppo"
POINTS = 100
"""Of a curve in the results."""
FAST_SIZES = {"native": (64, 128), "workers": (32, 64, 128, 256)}
"""The part of `gymnast env bench`'s grid that holds its fastest settings on 16 cores, as measured once (docs/performance.md): 256
games in ALE's threads are as fast as 128, and take a quarter of a minute to start."""


def gpu() -> str | None:
    """Its name, where there is one."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    if shutil.which(command[0]) is None:
        return None
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def solve(options: argparse.Namespace) -> None:
    """One variant, some seeds."""
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    name = f"ALE/Pong-v5:{options.variant}"
    settings = [*options.settings, *(["train.stop_when_solved=false"] if options.on else [])]
    if gpu() is not None and not options.warm:
        OurRun(["-n", "20000", "eval.episodes=1", "eval.env={time_limit: 50}"], config=name)

    def one(index: int) -> dict[str, Any]:
        run = OurRun(["--seed", str(seeds[index]), *settings], config=name, timeout=3600.0)
        printed = run.process.time_of(SOLVED_LINE)
        ended = datetime.fromisoformat(run.status["ended"]).timestamp() - run.process.started
        before = ended - run.status["wall_seconds"]  # imports, until the run's own clock starts
        judged = [(row, row["eval/return_mean"]) for row in run.rows if row.get("eval/return_mean") is not None]
        solved = next((row for row, score in judged if score >= SOLVED_AT), None)
        return {
            # A run that stops there has printed it last; of one that trains on, the time of the row is known.
            "solved_seconds": None if solved is None else before + solved["time/seconds"] if options.on else printed,
            "solved_steps": None if solved is None else solved["env_steps"],
            "scores": [[row["env_steps"], round(score, 2)] for row, score in judged],
            "first_iteration": before + run.rows[0]["time/seconds"],
            "steps_per_second": run.rows[-1]["time/fps"],
            "curve": curve(run.rows),
            "foreign": run.process.foreign,
        }

    config = {"config": name, "settings": settings, "seeds": seeds, "gpu": gpu(), "versions": versions()}
    suffix = ("_held_out" if seeds[0] >= 1000 else "") + ("_on" if options.on else "")
    record = interleave(f"pong_{options.variant}{suffix}", config, {"gymnast": one}, len(seeds), quiet=gpu() is None)
    runs = [row["gymnast"] for row in record["rounds"]]
    summary: dict[str, Any] = {"best evaluation": max(score for run in runs for _, score in run["scores"])}
    summary["first iteration, s"] = spread(record, "first_iteration", "gymnast")
    if all(run["solved_seconds"] for run in runs):
        slowest = max(run["solved_seconds"] for run in runs)
        summary["seconds to 18"] = spread(record, "solved_seconds", "gymnast")
        summary["steps to 18"] = spread(record, "solved_steps", "gymnast")
        summary["slowest"] = round(slowest, 1)
        if bar := SECONDS.get(options.variant):
            summary["bar"] = verdict(slowest, f"{len(runs)} of {len(runs)} in {bar:g} s", at_most=bar)
    else:
        summary["bar"] = f"missed: {sum(run['solved_seconds'] is None for run in runs)} of {len(runs)} not solved"
    finish(record, summary)


def curve(rows: list[dict[str, Any]]) -> list[list[float]]:
    """Env steps, seconds and training return of about a hundred iterations."""
    known = [row for row in rows if row.get("rollout/return_mean") is not None]
    shown = known[:: max(1, len(known) // POINTS)]
    return [[row["env_steps"], round(row["time/seconds"], 1), round(row["rollout/return_mean"], 2)] for row in shown]


def speed(options: argparse.Namespace) -> None:
    """Training against its envs alone."""
    from gymnast.config.load import resolve
    from gymnast.config.plan import make_plan
    from gymnast.envs.benching import Setting, measure
    from gymnast.envs.choose import cores

    name = f"ALE/{options.game}-v5:rgb_ppo"
    config = resolve(name, options.settings).config
    env = config.env
    setting = Setting("workers", int(env.n_envs), cores() - 1)

    cadence = make_plan(config).checkpoint_every  # of the preset's budget: a checkpoint waits for all envs

    def training(index: int) -> dict[str, Any]:
        settings = ["train.stop_when_solved=false", "eval.episodes=1", "eval.env={time_limit: 50}", *options.settings]
        settings += [f"train.checkpoint_every={cadence}"]
        run = OurRun(["--seed", str(index), "-n", str(options.steps), *settings], config=name)
        rows = [row for row in run.rows if row["env_steps"] >= options.steps // 3]
        steps, seconds = (rows[-1][key] - rows[0][key] for key in ("env_steps", "time/seconds"))
        return {"steps_per_second": steps / seconds, "env_steps": steps, "seconds": seconds}

    def envs(index: int) -> dict[str, Any]:
        return {"steps_per_second": measure(env, setting, 6.0)}

    settings = [Setting(way, n, k) for way, sizes in FAST_SIZES.items() for k in (cores() - 1, cores()) for n in sizes]
    grid = [asdict(one) | {"steps_per_second": measure(env, one, 1.0)} for one in settings]
    about = {"config": name, "settings": options.settings, "setting": str(setting), "grid": grid, "gpu": gpu()}
    contestants = {"training": training, "envs alone": envs}
    record = interleave(
        f"speed_gpu_{options.game.lower()}", about | {"versions": versions()}, contestants, 3, quiet=False
    )
    best = max(one["steps_per_second"] for one in grid)
    alone = spread(record, "steps_per_second", "envs alone")
    share = ratio(record, "steps_per_second", "training", "envs alone")
    summary = {
        "training": spread(record, "steps_per_second", "training"),
        "envs alone": alone,
        "training ÷ envs": share,
    }
    summary |= {"best of env bench": round(best), "envs ÷ best": round(alone["median"] / best, 3)}
    finish(record, summary | {"bar": verdict(share["median"], "≥ 0.85 of its envs alone", at_least=0.85)})


def breakout(options: argparse.Namespace) -> None:
    """Train or train on, then write the curve so far."""
    command = [*gymnast(), "train", BREAKOUT, "--resume", "--runs-dir", str(options.folder), *options.settings]
    process = subprocess.Popen(command)
    try:
        process.wait(options.seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    run = max(options.folder.glob("*/metrics.jsonl"), key=lambda path: path.stat().st_mtime).parent
    rows, status = list(MetricRows(run / "metrics.jsonl")), json.loads((run / "status.json").read_text())
    judged = [row for row in rows if row.get("eval/return_mean") is not None]
    scores = [[row["env_steps"], round(row["eval/return_mean"], 1)] for row in judged]
    record = {"name": "breakout_gpu", "complete": status["state"] == "finished", "config": BREAKOUT, "gpu": gpu()}
    record |= {"settings": options.settings, "source": source(), "machine": machine(), "versions": versions()}
    record |= {"finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "state": status["state"]}
    record |= {"env_steps": rows[-1]["env_steps"], "seconds": rows[-1]["time/seconds"], "scores": scores}
    write(RESULTS / "breakout_gpu.json", record | {"curve": curve(rows)})
    print(
        f"{rows[-1]['env_steps']:,} steps, training return {rows[-1]['rollout/return_mean']}, evaluations {scores[-3:]}"
    )


def main() -> None:
    """Read the command line."""
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    one = partial(commands.add_parser, formatter_class=argparse.RawDescriptionHelpFormatter)
    solving, speeding, breaking = one("solve"), one("speed"), one("breakout")
    solving.add_argument("--variant", default="rgb_ppo")
    solving.add_argument("--seeds", default="0-2")
    solving.add_argument("--on", action="store_true", help="train on after 18")
    solving.add_argument("--warm", action="store_true", help="a gymnast process has run on this machine before")
    speeding.add_argument("--game", default="Pong")
    speeding.add_argument("--steps", type=int, default=500_000)
    breaking.add_argument("--folder", type=Path, default=Path("runs"))
    breaking.add_argument("--seconds", type=float, default=540.0)
    for command, function in ((solving, solve), (speeding, speed), (breaking, breakout)):
        command.add_argument("settings", nargs="*", help="overrides, for trying; none in a measurement")
        command.set_defaults(function=function)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()

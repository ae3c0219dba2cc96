"""Training from an Atari game's pixels against stable-baselines3: `python benchmarks/pixels.py`.

The same network (Nature's, one linear layer each for actor and critic), hyperparameters, protocol (no sticky actions, no
more than 30 no-ops, clipped rewards, a lost life ends the credit) and number of updates for all: 8 games × 128 steps, 4
epochs, minibatches of 256. Contestants are gymnast in each `--precision`, and SB3 with its envs in one process (what
`make_atari_env` gives) and in processes of their own; what counts is the ratio to the faster one of its two.

The rate is env steps per second from the end of the second iteration. Metrics, live table and checkpoints (two of them
inside the measured window) are ours; SB3 has Monitor and its table. Nobody evaluates inside the window. Memory is that of
the process tree, with pages that its processes share counted once (proportional) and in each of them (resident), compared
with SB3 in one process, which takes less. It is polled in a run of its own for each contestant, after the timed ones.
Bars (issue 6, two cores): ≥ 1.6× SB3 in float32, ≥ 2.3× in bf16, no more memory.

`--scores` is about what bf16 costs instead: the same short training in both precisions, on the same seeds.
On a machine with a GPU, where only the rate is compared: `--device cuda --threads 0 --peer-python PYTHON [--peer-path FOLDER]`.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from contestants import PEERS, OurRun, peer_python
from harness import finish, interleave, ratio, spread, verdict, versions
from harness import parser as make_parser
from process import Process, run_process

BARS = {"float32": 1.6, "bf16": 2.3}
VEC_ENVS = ("dummy", "subproc")
SCORES_CONFIG = "CartPole-v1:pixels_ppo"


def overrides(options: argparse.Namespace, precision: str) -> list[str]:
    """What peers/sb3_pixels.py trains with, as overrides of our preset."""
    return [
        f"env.n_envs={options.n_envs}",
        f"env.vectorization={options.vectorization}",
        "env.atari.sticky=0",
        "env.atari.skip=4",
        "env.atari.noops=30",
        "env.atari.life_loss=terminal",
        "env.wrappers=[reward_clip]",
        "policy.cnn=nature",
        "policy.background=0",
        "policy.hidden=[]",
        "policy.shared_trunk=false",
        "policy.init=orthogonal",
        "policy.normalize_obs=false",
        f"policy.precision={precision}",
        f"algo.n_steps={options.n_steps}",
        f"algo.batch_size={options.batch_size}",
        f"algo.n_epochs={options.n_epochs}",
        "algo.learning_rate=lin_2.5e-4",
        "algo.gamma=0.99",
        "algo.gae_lambda=0.95",
        "algo.clip_range=0.1",
        "algo.clip_range_vf=null",
        "algo.ent_coef=0.01",
        "algo.vf_coef=0.5",
        "algo.max_grad_norm=0.5",
        "algo.normalize_advantage=batch",
        "algo.normalize_reward=false",
        "algo.target_kl=null",
        f"train.device={options.device}",
        f"train.threads={options.threads or 'auto'}",
        f"train.checkpoint_every={_env_steps(options) // 2}",
        "train.stop_when_solved=false",
        # One short episode after the last iteration, because every run ends with an evaluation.
        f"eval.every={1000 * _env_steps(options)}",
        "eval.episodes=1",
        "eval.env={time_limit: 100}",
    ]


def _env_steps(options: argparse.Namespace) -> int:
    return int(options.iterations * options.n_envs * options.n_steps)


def ours(options: argparse.Namespace, precision: str, seed: int, *, memory: bool = False) -> dict[str, Any]:
    """One run of gymnast."""
    arguments = ["--seed", str(seed), "-n", str(_env_steps(options)), *overrides(options, precision)]
    run = OurRun(arguments, config=f"ALE/{options.game.capitalize()}-v5:rgb_deterministic_ppo", memory=memory)
    steps, seconds = run.steady_rate()
    outcome: dict[str, Any] = {"steps_per_second": steps / seconds, "env_steps": steps, "seconds": seconds}
    outcome |= {"updates": run.rows[-1]["updates"], **(_memory(run.process) if memory else {})}
    outcome |= {stage: run.rows[-1][f"time/{stage}"] for stage in ("env", "policy", "learn")}
    return outcome | {"cpu_seconds": run.process.cpu, "foreign": run.process.foreign}


def sb3(options: argparse.Namespace, vec_env: str, seed: int, *, memory: bool = False) -> dict[str, Any]:
    """One run of stable-baselines3."""
    settings = {
        "game": options.game,
        "vec-env": vec_env,
        "n-envs": options.n_envs,
        "n-steps": options.n_steps,
        "batch-size": options.batch_size,
        "n-epochs": options.n_epochs,
        "env-steps": _env_steps(options),
        "seed": seed,
        "device": options.device,
    }
    if options.threads:
        settings["threads"] = options.threads
    arguments = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
    python = options.peer_python or peer_python("sb3")
    env = {"PYTHONPATH": str(options.peer_path)} if options.peer_path else None
    process = run_process([python, PEERS / "sb3_pixels.py", *arguments], env=env, memory=memory)
    outcome = process.json_line() | {"cpu_seconds": process.cpu, "foreign": process.foreign}
    return outcome | (_memory(process) if memory else {})


def _memory(process: Process) -> dict[str, float | None]:
    return {"resident_mb": process.peak_mb, "proportional_mb": process.proportional_mb}


def summarise(record: dict[str, Any], precisions: list[str]) -> dict[str, Any]:
    """Ratios to the faster SB3, and to the smaller one for memory."""
    peers = [name for name in record["rounds"][0] if name.startswith("sb3")]
    for row in record["rounds"]:
        counts = {name: row[name]["updates"] for name in row if isinstance(row[name], dict)}
        if len(set(counts.values())) > 1:
            raise SystemExit(f"The contestants made different numbers of updates, so nothing is compared: {counts}")
    best = max(peers, key=lambda peer: spread(record, "steps_per_second", peer)["median"])
    summary: dict[str, Any] = {f"{peer} steps/s": spread(record, "steps_per_second", peer) for peer in peers}
    summary["faster peer"] = best
    for precision in precisions:
        name = f"gymnast {precision}"
        summary[f"{name} steps/s"] = spread(record, "steps_per_second", name)
        speed = summary[f"{name} ÷ sb3"] = ratio(record, "steps_per_second", name, best)
        if "memory" not in record:
            continue
        for kind in ("proportional", "resident"):
            summary[f"{name} MB, {kind}"] = record["memory"][name][f"{kind}_mb"]
        part = record["memory"][name]["proportional_mb"] / record["memory"]["sb3 dummy"]["proportional_mb"]
        if bar := BARS.get(precision):
            summary[f"bar of {precision}"] = verdict(speed["median"], f"≥ {bar}× sb3", at_least=bar)
        summary[f"bar of {precision}, memory"] = verdict(part, "no more than sb3", at_most=1.0)
    if "memory" in record:
        for kind in ("proportional", "resident"):
            summary[f"sb3 dummy MB, {kind}"] = record["memory"]["sb3 dummy"][f"{kind}_mb"]
    return summary


def throughput(options: argparse.Namespace) -> None:
    """Interleaved rounds of all contestants."""
    precisions = options.precision or ["float32", "bf16"]
    contestants: dict[str, Callable[..., dict[str, Any]]] = {
        f"gymnast {precision}": functools.partial(ours, options, precision) for precision in precisions
    }
    contestants |= {f"sb3 {kind}": functools.partial(sb3, options, kind) for kind in options.vec_env or VEC_ENVS}
    if options.device == "cpu" and "sb3 dummy" not in contestants:
        raise SystemExit("Memory is compared with SB3 in one process: --vec-env dummy must be among the contestants.")
    names = ("game", "device", "n_envs", "n_steps", "batch_size", "n_epochs", "iterations", "threads", "pairs")
    config = {name: getattr(options, name) for name in names}
    config |= {"overrides": {precision: overrides(options, precision) for precision in precisions}}
    config["versions"] = {"gymnast": versions()}
    if not options.peer_path:
        config["versions"]["sb3"] = versions(options.peer_python or peer_python("sb3"))
    suffix = "" if (options.game, options.device) == ("pong", "cpu") else f"_{options.game}_{options.device}"
    name = options.name or f"pixels{suffix}"
    record = interleave(name, config, contestants, options.pairs, quiet=not options.no_wait)
    if options.device == "cpu":
        contestants.pop("sb3 subproc", None)  # a process per env: it needs more memory anyway
        record["memory"] = {name: run(0, memory=True) for name, run in contestants.items()}
    finish(record, summarise(record, precisions))


def scores(options: argparse.Namespace) -> None:
    """Final evaluations after the same short training in both precisions."""

    def one(precision: str, seed: int) -> dict[str, Any]:
        arguments = ["--seed", str(seed), f"policy.precision={precision}", "train.stop_when_solved=false"]
        arguments += [f"train.threads={options.threads or 'auto'}", "eval.episodes=100"]
        # Judged once, at the end, whatever the training return is.
        arguments += ["-n", str(options.score_steps), f"eval.every={options.score_steps}", "eval.start_fraction=null"]
        run = OurRun(arguments, config=SCORES_CONFIG)
        last = [row["eval/return_mean"] for row in run.rows if row.get("eval/return_mean") is not None][-1]
        return {"score": last, "training_return": run.rows[-1]["rollout/return_mean"]} | _seconds(run)

    config = {"config": SCORES_CONFIG, "env_steps": options.score_steps, "threads": options.threads}
    config |= {"seeds": list(range(options.pairs)), "versions": {"gymnast": versions()}}
    contestants = {precision: functools.partial(one, precision) for precision in ("float32", "bf16")}
    record = interleave(options.name or "pixels_scores", config, contestants, options.pairs, quiet=False)
    means = {name: mean(row[name]["score"] for row in record["rounds"]) for name in contestants}
    summary: dict[str, Any] = {f"{name} score": spread(record, "score", name) for name in contestants}
    finish(record, summary | {f"{name} mean": round(value, 2) for name, value in means.items()})


def _seconds(run: OurRun) -> dict[str, Any]:
    return {"seconds": run.rows[-1]["time/seconds"], "foreign": run.process.foreign}


def main() -> None:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--game", default="pong", help="pong, breakout, …")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", action="append", help="of gymnast; float32 and bf16 by default")
    parser.add_argument("--vectorization", default="auto", help="of gymnast's envs")
    parser.add_argument("--vec-env", choices=VEC_ENVS, action="append", help="of SB3; both by default")
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--n-epochs", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=12, help="per run; the first two are not timed")
    parser.add_argument("--threads", type=int, default=2, help="of torch, for both; 0: what each has by itself")
    parser.add_argument("--pairs", type=int, help="rounds, or seeds of --scores; 5 and 3 by default")
    parser.add_argument("--peer-python", type=Path, help="an interpreter that has SB3; that of .peers/sb3 by default")
    parser.add_argument("--peer-path", type=Path, help="PYTHONPATH of the peer, where SB3 lies in a folder")
    parser.add_argument("--name", help="of the results file")
    parser.add_argument("--scores", action="store_true", help="what bf16 does to the score")
    parser.add_argument("--score-steps", type=int, default=60_000, help="env steps of one training of --scores")
    options = parser.parse_args()
    options.pairs = options.pairs or (3 if options.scores else 5)
    (scores if options.scores else throughput)(options)


if __name__ == "__main__":
    main()

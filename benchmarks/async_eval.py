"""What evaluation beside training costs training: `python benchmarks/async_eval.py`.

Pendulum-v1 (every episode has 200 steps, so every evaluation is equally long) is trained without evaluation, with
evaluation in the training process, and with evaluation in the worker, with one torch thread and with two. The cadence
makes evaluation a tenth of the work; the share that was really measured stands in the summary. The rate is env steps per
second from the end of the second iteration to the last, waits and the worker's start included.
Bar (issue 4): on two cores the worker costs training with one thread at most 5 %; with two threads it is reported.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from contestants import all_versions, gymnast
from harness import finish, interleave, parser, ratio, spread, verdict
from process import run_process

TRAINING = [
    "env.n_envs=8",
    "env.vectorization=inprocess",
    "algo.n_steps=128",
    "algo.batch_size=256",
    "algo.n_epochs=10",
    "policy.hidden=[64,64]",
    "train.stop_when_solved=false",
    "train.checkpoint_every=1000000000",
    "eval.n_envs=20",
    "eval.start_fraction=null",
]
MODES = {"none": "inprocess", "inprocess": "inprocess", "beside": "worker"}
BAR = 0.95


def train(kind: str, threads: int, seed: int, options: dict[str, int]) -> dict[str, Any]:
    """One run: its rate, and how much of its time evaluation held it up."""
    every = 10**9 if kind == "none" else options["every"]
    settings = [*TRAINING, f"train.threads={threads}", f"eval.every={every}", f"eval.mode={MODES[kind]}"]
    settings.append(f"eval.episodes={options['episodes']}")
    with tempfile.TemporaryDirectory(prefix="gymnast-runs-") as folder:
        command = [*gymnast(), "train", "Pendulum-v1:ppo", "--seed", str(seed), "-n", str(options["env_steps"])]
        process = run_process([*command, *settings, "--runs-dir", folder])
        if process.exit_code:
            raise SystemExit(f"gymnast train failed:\n{process.text[-3000:]}")
        (log,) = Path(folder).glob("[a-z]*/metrics.jsonl")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    rows = [line for line in lines if "amends" not in line]
    warm, last = rows[1], rows[-1]
    steps, seconds = last["env_steps"] - warm["env_steps"], last["time/seconds"] - warm["time/seconds"]
    evaluations = sum(line.get("eval/return_mean") is not None for line in lines)
    return {
        "steps_per_second": steps / seconds,
        "seconds": seconds,
        "evaluations": evaluations,
        "eval_share": last["time/eval"] or 0.0,
        "foreign": process.foreign,
    }


def main() -> None:
    """All three kinds with one thread and with two, interleaved, in one results file."""
    made = parser(__doc__)
    made.add_argument("--pairs", type=int, default=6)
    made.add_argument("--env-steps", type=int, default=800_000, help="per run")
    made.add_argument("--every", type=int, default=105_000, help="env steps between evaluations")
    made.add_argument("--episodes", type=int, default=200, help="per evaluation")
    made.add_argument("--threads", type=int, action="append", help="torch threads of training; 1 and 2 by default")
    given = made.parse_args()
    options = {"env_steps": given.env_steps, "every": given.every, "episodes": given.episodes}
    threads = given.threads or [1, 2]
    names = {f"{kind}, {count} thread{'s'[: count - 1]}": (kind, count) for count in threads for kind in MODES}
    contestants = {
        name: lambda i, kind=kind, count=count: train(kind, count, i, options) for name, (kind, count) in names.items()
    }
    config = {**options, "pairs": given.pairs, "threads": threads, "settings": TRAINING, "versions": all_versions()}
    record = interleave("async_eval", config, contestants, given.pairs, quiet=not given.no_wait)
    summary: dict[str, Any] = {f"{name}: steps/s": spread(record, "steps_per_second", name) for name in names}
    for count in threads:
        none, inside, beside = (name for name, (_, threads) in names.items() if threads == count)
        summary[f"evaluation's share of the work, {count} thr."] = spread(record, "eval_share", inside)
        summary[f"in process ÷ none, {count} thr."] = ratio(record, "steps_per_second", inside, none)
        found = summary[f"beside ÷ none, {count} thr."] = ratio(record, "steps_per_second", beside, none)
        if count == 1:
            summary["bar"] = verdict(found["median"], "beside ≥ 0.95 × none with one thread", at_least=BAR)
    finish(record, summary)


if __name__ == "__main__":
    main()

"""What looking on costs a training: `python benchmarks/observing.py`.

Steps per second with closer looks (`log.diagnostics_every: auto`) against without, at CartPole's large setting and with a
256×256 ReLU network; and with W&B at a server that never answers against no tracker. Every pair trains the same weights.
Bars: looks cost at most 3 %, an outage less than 1 %. CPU seconds of the whole tree, the process that
tries to send included, stand next to the wall time. `--steps` makes short runs, to see that it works.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from contestants import OVERRIDES, OurRun, all_versions
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser

RELU = ["policy.hidden=[256,256]", "policy.activation=relu"]
OFF, ON = "log.diagnostics_every=null", "log.diagnostics_every=auto"
STUDIES: dict[str, dict[str, Any]] = {
    "looks_large": {
        "steps": 400_000,
        "bar": 0.97,
        "with": [*OVERRIDES["large"], ON],
        "without": [*OVERRIDES["large"], OFF],
    },
    "looks_relu": {
        "steps": 100_000,
        "bar": 0.97,
        "with": [*OVERRIDES["large"], *RELU, ON],
        "without": [*OVERRIDES["large"], *RELU, OFF],
    },
    "outage": {
        "steps": 400_000,
        "bar": 0.99,
        "with": [*OVERRIDES["large"], "log.sinks=[wandb]"],
        "without": OVERRIDES["large"],
    },
}


def rate(study: dict[str, Any], side: str, seed: int) -> dict[str, Any]:
    """One run of gymnast: steps per second from its second iteration to its last."""
    run = OurRun(["--seed", str(seed), "-n", str(study["steps"]), *study[side]])
    steps, seconds = run.steady_rate()
    return {
        "steps_per_second": steps / seconds,
        "env_steps": steps,
        "seconds": seconds,
        "cpu": run.process.cpu,
        "last_loss": run.rows[-1]["train/loss"],
        "foreign": run.process.foreign,
    }


def silent_server() -> socket.socket:
    """A W&B server that takes connections and never says a word."""
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    os.environ["WANDB_BASE_URL"] = f"http://127.0.0.1:{server.getsockname()[1]}"
    os.environ["WANDB_API_KEY"] = "0" * 40
    return server


def main() -> None:
    """All studies, one results file each."""
    parser = make_parser(__doc__)
    parser.add_argument("--study", choices=list(STUDIES), action="append", help="one study only; all by default")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--steps", type=int, help="env steps of every run; by default those of the study")
    options = parser.parse_args()
    server = silent_server()
    for name in options.study or STUDIES:
        study = STUDIES[name] if options.steps is None else STUDIES[name] | {"steps": options.steps}
        sides = {side: lambda i, study=study, side=side: rate(study, side, i) for side in ("with", "without")}
        config = {**json.loads(json.dumps(study)), "pairs": options.pairs, "versions": all_versions()}
        title = f"observing_{name}" if options.steps is None else "observing_smoke"
        record = interleave(title, config, sides, options.pairs, quiet=not options.no_wait)
        summary: dict[str, Any] = {f"{side} steps/s": spread(record, "steps_per_second", side) for side in sides}
        summary["with ÷ without"] = ratio(record, "steps_per_second", "with", "without")
        summary["CPU with ÷ without"] = ratio(record, "cpu", "with", "without")
        losses = [(row["with"]["last_loss"], row["without"]["last_loss"]) for row in record["rounds"]]
        summary["same weights"] = f"{sum(one == other for one, other in losses)} of {len(losses)} pairs"
        median = summary["with ÷ without"]["median"]
        summary["bar"] = verdict(median, f"≥ {study['bar']} of the speed without", at_least=study["bar"])
        finish(record, summary)
    server.close()


if __name__ == "__main__":
    main()

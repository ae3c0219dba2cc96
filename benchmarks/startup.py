"""How fast gymnast starts and ends: `python benchmarks/startup.py`.

Three processes in turn: a bare `import torch, gymnasium`; a short `gymnast train`, from its start to the first env step
(policy, optimizer, run folder and sinks are built by then) and from its last output to its exit; and `gymnast --help`.
Bars (issue 2): first env step ≤ 1.3× the bare import, `--help` ≤ 0.35 s, last output to prompt ≤ 1 s.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from contestants import OurRun, all_versions, gymnast
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser
from process import run_process

BARE = "import torch, gymnasium, time; print('imported', time.time())"


def moment(text: str, word: str) -> float:
    """The unix time a process printed after `word`."""
    found = re.search(rf"{word} (\d+\.\d+)", text)
    if found is None:
        raise SystemExit(f"'{word} <unix time>' is missing in:\n{text[-2000:]}")
    return float(found.group(1))


def bare(_: int) -> dict[str, Any]:
    """The floor: the two imports, without the time of the interpreter's end."""
    process = run_process([sys.executable, "-c", BARE])
    seconds = moment(process.text, "imported") - process.started
    return {"seconds": seconds, "exited": process.wall, "foreign": process.foreign}


def train(seed: int) -> dict[str, Any]:
    """A short training run."""
    process = OurRun(["--seed", str(seed), "-n", "2000"], env={"GYMNAST_TRACE_STARTUP": "1"}).process
    seconds = moment(process.text, "first-env-step") - process.started
    return {"seconds": seconds, "after_output": process.after_output, "foreign": process.foreign}


def usage(_: int) -> dict[str, Any]:
    """The help text."""
    process = run_process([*gymnast(), "--help"])
    if process.exit_code:
        raise SystemExit(f"gymnast --help failed:\n{process.text[-2000:]}")
    return {"seconds": process.wall, "foreign": process.foreign}


def main() -> None:
    """Interleaved repeats after one warm round that writes bytecode and fills the page cache."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--bare-only", action="store_true", help="only the floor, against itself")
    options = parser.parse_args()
    contestants = {"train": train, "bare": bare, "help": usage}
    if options.bare_only:
        contestants = {"train": bare, "bare": bare}
    for contestant in contestants.values():
        contestant(0)
    config = {"repeats": options.repeats, "versions": all_versions()}
    name = "startup_aa" if options.bare_only else "startup"
    record = interleave(name, config, contestants, options.repeats, quiet=not options.no_wait)
    first = ratio(record, "seconds", "train", "bare")
    summary: dict[str, Any] = {f"{name} seconds": spread(record, "seconds", name) for name in contestants}
    summary["first env step ÷ bare import"] = first
    if not options.bare_only:
        end = spread(record, "after_output", "train")
        summary |= {
            "last output to exit, seconds": end,
            "bar first step": verdict(first["median"], "≤ 1.3× the bare import", at_most=1.3),
            "bar help": verdict(summary["help seconds"]["median"], "≤ 0.35 s", at_most=0.35),
            "bar end": verdict(end["median"], "≤ 1 s", at_most=1.0),
        }
    finish(record, summary)


if __name__ == "__main__":
    main()

"""Does `gymnast diagnose` help? A study of mis-configured and healthy runs, as a queue that can be stopped at any time.

    python benchmarks/fault_study.py base build       # 30 healthy runs, then faulty ones until 30 of them cost enough
    python benchmarks/fault_study.py diagnose build   # what diagnose says of each: alerts, causes, the next command
    python benchmarks/fault_study.py cure build       # that command, as it is printed, with three seeds
    python benchmarks/fault_study.py again build      # the faulty run once more, unchanged, with three seeds
    python benchmarks/fault_study.py report           # benchmarks/results/faults.json from all lines

`held` in place of `build` is the half that is looked at once, at the end. Every run is one line of `results/faults.jsonl`, and
a line that is there is not run again: the same command goes on where it was stopped. `diagnose` writes its lines anew each
time, since it only reads. Each run is trained by the `gymnast` command line in a process of its own, on one thread.

A score is the last evaluation: the exact expected return where there is one, else the mean return. What a run lost is counted in
shares of the way from random play to the mean of the healthy runs of its preset. A suggested command has the budget of the
faulty run, also where it prints a longer one.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from faulty_configs import BUDGETS, COST, HELD, KINDS, PARTS, Case, Part, costs, faulty, healthy, parse, preset
from harness import RESULTS, machine, source, versions, write

EACH = 30
"""Healthy runs of each half, and faulty ones."""
SEEDS = 3
TOP = 3
LONGEST = 240.0
"""Seconds after which a run is killed; it then counts with the score it had."""
Line = dict[str, Any]


class Lines:
    """The results file: one JSON object per line, only ever appended to; the last line of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[tuple[str, str, str], Line] = {}
        for text in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(ValueError):  # torn by a kill: its run is repeated
                line = json.loads(text)
                self.known[_key(line)] = line

    def add(self, line: Line) -> Line:
        """Append it."""
        self.known[_key(line)] = line
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write("\n" * torn + json.dumps(line, allow_nan=False) + "\n")
        return line

    def of(self, part: Part, stage: str) -> list[Line]:
        """All lines of a stage."""
        return [line for (its_part, its_stage, _), line in self.known.items() if (its_part, its_stage) == (part, stage)]


def _key(line: Line) -> tuple[str, str, str]:
    return line["part"], line["stage"], line["name"]


# --- one run --------------------------------------------------------------------------------------------------------


class Runner:
    """Trains by command lines, one process after the other."""

    def __init__(self, lines: Lines, part: Part, runs: Path, seeds: int = SEEDS) -> None:
        self.lines, self.part, self.runs, self.seeds = lines, part, runs, seeds
        self.source = source()
        importlib.import_module("gymnast.cli.launch")  # torch once: every run is a fork of this process

    def run(self, stage: str, name: str, command: Sequence[str], **more: Any) -> Line:
        """Train one command line, if its line is not there yet."""
        known = self.lines.known.get((self.part, stage, name))
        if known is not None:
            return known
        folder = self.folder(stage, name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        began = time.monotonic()
        code = _forked([*command, "--runs-dir", str(folder)], folder / "output.txt")
        line: Line = {
            "part": self.part,
            "stage": stage,
            "name": name,
            "command": shlex.join(["gymnast", *command]),
            **more,
        }
        line |= {"exit": code, "seconds": round(time.monotonic() - began, 1), **outcome(folder), "source": self.source}
        print(f"{stage} {name}: {line['score']} ({line['seconds']} s, exit {code})", flush=True)
        return self.lines.add(line)

    def folder(self, stage: str, name: str) -> Path:
        """Where a run lies."""
        return self.runs / self.part / stage / name.replace("/", "_")


def _forked(command: Sequence[str], output: Path) -> int:
    """`gymnast COMMAND` in a fork of this process, which has imported everything already; gives its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with output.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            sys.argv = ["gymnast", *command]
            from gymnast.cli.entry import main

            main()
            status = 0
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 124


def outcome(folder: Path) -> Line:
    """Score, env steps and id of the run in a folder; no run, no score."""
    from gymnast.metrics.sinks.jsonl import MetricRows

    found = [path.parent for path in folder.glob("*/config.json") if not path.parent.is_symlink()]
    if not found:
        return {"run": None, "score": None, "env_steps": 0}
    score, steps = None, 0
    path = found[0] / "metrics.jsonl"
    for row in MetricRows(path) if path.exists() else ():
        steps = row["env_steps"]
        for name in ("eval/exact_return", "eval/return_mean"):
            if row.get(name) is not None:
                score = row[name]
                break
    return {"run": found[0].name, "score": score, "env_steps": steps}


# --- the stages -----------------------------------------------------------------------------------------------------


def base(runner: Runner) -> None:
    """Healthy runs first, since what a fault costs is counted from them."""
    for case in _first(healthy(runner.part), EACH):
        runner.run("healthy", case.name, case.command)
    accepted = 0
    for case in faulty(runner.part):
        if accepted == EACH:
            break
        line = runner.run("faulty", case.name, case.command)
        accepted += counts(runner.lines, line)


def again(runner: Runner) -> None:
    """Faulty runs unchanged, with other seeds."""
    for line in accepted_of(runner.lines, runner.part):
        case = parse(line["name"])
        for seed in range(1, runner.seeds + 1):
            command = [*case.command[:-3], "--seed", str(case.seed + 100_000 * seed), "--quiet"]
            runner.run("again", f"{case.name}#{seed}", command)


def diagnose(runner: Runner) -> None:
    """What diagnose makes of every counted run, by its command line."""
    lines, part = runner.lines, runner.part
    for line in [*lines.of(part, "healthy"), *accepted_of(lines, part)]:
        page = _page(runner.folder(line["stage"], line["name"]), line["run"])
        causes = [[one["id"], round(one["confidence"], 4)] for one in page["causes"]]
        alerts = {one["id"]: one["severity"] for one in page["alerts"]}
        command = page["experiment"] and page["experiment"]["command"]
        said: Line = {
            "part": part,
            "stage": "diagnosis",
            "name": line["name"],
            "health": page["health"],
            "alerts": alerts,
        }
        said |= {"causes": causes, "suggested": command, "source": runner.source}
        old = lines.known.get(_key(said))
        if old is None or {**old, "source": 0} != {**said, "source": 0}:
            lines.add(said)


def _page(folder: Path, run: str | None) -> Line:
    if run is None:
        return {"health": "unknown", "causes": [], "alerts": [], "experiment": None}
    from gymnast.cli.diagnose import diagnose_run

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        diagnose_run(run, as_json=True, runs_dir=folder)
    page: Line = json.loads(text.getvalue())
    return page


def cure(runner: Runner) -> None:
    """The suggested commands, with other seeds and the same budget."""
    lines = runner.lines
    for line in accepted_of(lines, runner.part):
        suggested = lines.known[runner.part, "diagnosis", line["name"]]["suggested"]
        if suggested is None:
            continue
        case = parse(line["name"])
        for seed in range(1, runner.seeds + 1):
            command = as_printed(suggested, case.seed + 100_000 * seed, BUDGETS[case.preset])
            runner.run("cure", f"{case.name}#{seed}: {suggested}", command, suggested=suggested)


def as_printed(suggested: str, seed: int, budget: int) -> list[str]:
    """The words behind `gymnast`, with another seed and never a longer budget."""
    words = shlex.split(suggested)
    if words[:2] != ["gymnast", "train"] or words[-2] != "--seed":
        raise SystemExit(f"This is no command of one run: {suggested}")
    kept = [word for word in words[1:-2] if not word.startswith("train.env_steps=")]
    return [*kept, f"train.env_steps={budget}", "--seed", str(seed), "--quiet"]


def _first(cases: Iterator[Case], number: int) -> list[Case]:
    return [case for case, _ in zip(cases, range(number))]


# --- what counts ----------------------------------------------------------------------------------------------------


def healthy_score(lines: Lines, part: Part, reference: str) -> float:
    """Mean score of the healthy runs of a preset."""
    return mean(line["score"] for line in lines.of(part, "healthy") if parse(line["name"]).preset == reference)


def random_score(reference: str) -> float:
    """Of uniform play."""
    spec = preset(reference).spec
    assert spec.random_score is not None
    return spec.random_score.score


def loss(lines: Lines, part: Part, reference: str, score: float | None) -> float:
    """Share of what there is to gain that a score misses; a run that broke down before it was evaluated missed all of it."""
    if score is None:
        return 1.0
    return costs(score, healthy_score(lines, part, reference), random_score(reference))


def counts(lines: Lines, line: Line) -> bool:
    """Whether a faulty run is one: it was trained, and the fault cost enough."""
    if line["run"] is None:
        return False
    return loss(lines, line["part"], parse(line["name"]).preset, line["score"]) >= COST


def accepted_of(lines: Lines, part: Part) -> list[Line]:
    """The faulty runs that count, in the order they were drawn."""
    return [line for line in lines.of(part, "faulty") if counts(lines, line)][:EACH]


# --- the report -----------------------------------------------------------------------------------------------------


def closes(lines: Lines, part: Part, line: Line, runs: Iterable[Line]) -> float | None:
    """Share of the gap to the healthy score that the mean of other runs closes."""
    reference = parse(line["name"]).preset
    lost = loss(lines, part, reference, line["score"])
    losses = [loss(lines, part, reference, run["score"]) for run in runs]
    return (lost - mean(losses)) / lost if losses else None


def summary(lines: Lines, part: Part) -> Line:
    """All figures of one half."""
    faults = [_fault(lines, part, line) for line in accepted_of(lines, part)]
    healthy_lines = lines.of(part, "healthy")
    said = [(line["name"], lines.known.get((part, "diagnosis", line["name"]))) for line in healthy_lines]
    warned = {
        name: {alert: severity for alert, severity in one["alerts"].items() if severity != "info"}
        for name, one in said
        if one is not None
    }
    confused: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in faults:
        confused[one["kind"]][one["causes"][0] if one["causes"] else "none"] += 1
    unseen = {kind.id for kind in HELD}
    return {
        "faults": len(faults),
        "kinds_not_used_while_building": sum(one["kind"] in unseen for one in faults),
        "true_cause_in_top_3": _share(one["found"] for one in faults),
        "true_cause_first": _share(one["first"] for one in faults),
        "healthy": len(healthy_lines),
        "healthy_with_a_warning": sum(bool(alerts) for alerts in warned.values()),
        "cured": _share(_mended(one["cured"]) for one in faults if one["cured"] is not None or not one["suggested"]),
        "cured_by_running_again": _share(_mended(one["again"]) for one in faults if one["again"] is not None),
        "run_again": sum(one["again"] is not None for one in faults),
        "warnings_of_healthy_runs": {name: alerts for name, alerts in warned.items() if alerts},
        "confusion": {kind: dict(found.most_common()) for kind, found in sorted(confused.items())},
        "runs": faults,
    }


def _fault(lines: Lines, part: Part, line: Line) -> Line:
    case = parse(line["name"])
    assert case.kind is not None
    said = lines.known.get((part, "diagnosis", line["name"])) or {"causes": [], "alerts": {}, "suggested": None}
    causes = [cause for cause, _ in said["causes"]]
    true = KINDS[case.kind].causes
    cures = [run for run in lines.of(part, "cure") if run["name"].startswith(f"{case.name}#")]
    cures = [run for run in cures if run["suggested"] == said["suggested"]]
    repeats = [run for run in lines.of(part, "again") if run["name"].startswith(f"{case.name}#")]
    return {
        "name": case.name,
        "kind": case.kind,
        "cost": round(loss(lines, part, case.preset, line["score"]), 3),
        "true": list(true),
        "causes": causes[:TOP],
        "found": any(cause in true for cause in causes[:TOP]),
        "first": bool(causes) and causes[0] in true,
        "suggested": said["suggested"],
        "cured": _rounded(closes(lines, part, line, cures)),
        "again": _rounded(closes(lines, part, line, repeats)),
    }


def _mended(closed: float | None) -> bool:
    """Whether at least half of the gap was closed."""
    return closed is not None and closed >= 0.5


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _share(found: Iterable[bool]) -> float | None:
    marks = list(found)
    return round(mean(marks), 4) if marks else None


def report(lines: Lines) -> None:
    """Write the figures, and print them."""
    seconds = [line["seconds"] for line in lines.known.values() if "seconds" in line]
    record: Line = {"machine": machine(), "versions": versions(), "source": source(), "trained": len(seconds)}
    record |= {"median_seconds": median(seconds), "over_a_minute": sum(one > 60 for one in seconds)}
    for part in PARTS:
        figures = summary(lines, part)
        record[part] = figures
        print(f"--- {part}")
        for key, value in figures.items():
            if key not in ("runs", "confusion"):
                print(f"{key:32}{value}")
        for one in figures["runs"]:
            mark = "first" if one["first"] else "top 3" if one["found"] else "MISSED"
            print(f"{one['name']:58} {mark:7} {', '.join(one['causes']):64} {one['cured']!s:>7} {one['again']!s:>7}")
    write(RESULTS / "faults.json", record)


STAGES = {"base": base, "again": again, "diagnose": diagnose, "cure": cure}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=[*STAGES, "report"])
    parser.add_argument("part", choices=PARTS, nargs="?")
    parser.add_argument("--results", type=Path, default=RESULTS / "faults.jsonl")
    parser.add_argument(
        "--runs-dir", type=Path, default=Path("runs/faults"), help="where the runs lie, one folder each"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of cure and again")
    given = parser.parse_args()
    lines = Lines(given.results)
    if given.stage == "report":
        report(lines)
        return
    if given.part is None:
        parser.error("say which half: build or held")
    STAGES[given.stage](Runner(lines, given.part, given.runs_dir.resolve(), given.seeds))


if __name__ == "__main__":
    main()

"""From the results of `foreign_envs.py` to docs/foreign-envs.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness import ROOT

PAGE = ROOT / "docs" / "foreign-envs.md"
STEPS = {
    "check": "check",
    "train": "train",
    "kill": "SIGKILL, resume",
    "terminate": "SIGTERM, resume",
    "eval": "eval",
    "video": "video",
}
GOOD = ("ok", "exact", "told")
HEAD = """# Third-party envs

gymnast on {envs} envs of {packages} packages that it knows nothing about. Every env goes through the commands of a working day:

1. `gymnast env check` looks for broken promises. Faults are the env's own.
2. `gymnast train`, a short one.
3. The same training, ended by `SIGKILL` about half-way, then `gymnast resume`: weights, optimizer and metrics must
   equal those of the training that nothing happened to, bit by bit, and no process may be left behind. The same with `SIGTERM`.
4. `gymnast eval`, two episodes.
5. `gymnast video`. The film is decoded: one frame before every step and one after the last, and not all of them black.

Before that, plain Gymnasium plays the env, so that what an env cannot do by itself is not counted against gymnast.

{summary}

| env | package | {titles} |
|---|---|{rules}
{rows}

**exact**: equal bits. **said**: the resume said that this env cannot be brought back exactly. **faults**: the check found
some, listed below. **refused**: one sentence instead of a result. **–**: not tried, because something before it did not work.
**unrepeatable**: not equal, and the same training without any signal is not equal to itself either: the env draws from a
generator that no seed reaches. Where the resume notices that, it says so; here it did not.
"""
TAIL = """
## What was said

{notes}

## Repeat it

```
python benchmarks/foreign_envs.py                # what has no result yet
python benchmarks/foreign_envs.py highway-env    # a package, or an env, once more
```

The list is `benchmarks/queues/foreign_envs.yaml`; results with all versions are in `benchmarks/results/foreign_envs.json`,
from which this page is written. Each package gets a virtual environment under `.peers/`, which shares torch and the tested
set with the one that runs the script. Episodes are cut off after {longest} steps, so that evaluations and films end.
Machine: {machine}.
"""


def page(record: dict[str, Any]) -> str:
    """The whole page."""
    found = list(record["envs"].values())
    packages = dict.fromkeys(one["definition"]["package"] for one in found)
    rows = [f"| `{name(one)}` | {version(one)} | {' | '.join(cells(one))} |" for one in found]
    notes = [f"| `{name(one)}` | {what} | {cell(said)} |" for one in found for what, said in remarks(one)]
    machine = record["machine"]
    return HEAD.format(
        envs=len(found),
        packages=len(packages),
        summary=summary(found),
        titles=" | ".join(STEPS.values()),
        rules="---|" * len(STEPS),
        rows="\n".join(rows),
    ) + TAIL.format(
        notes="\n".join(["| env | step | |", "|---|---|---|", *notes]) if notes else "Nothing.",
        longest=record["longest_episode"],
        machine=f"{machine['cores']} cores, {machine['memory_gb']:.0f} GB",
    )


def summary(found: list[dict[str, Any]]) -> str:
    """How many, in a few sentences."""
    playing = [one for one in found if one.get("probe", {}).get("plays")]
    trained = [one for one in found if outcome(one, "train") == "ok"]
    resumed = [[outcome(one, "kill"), outcome(one, "terminate")] for one in trained]
    exact, said = (
        sum(all(way in kinds for way in ways) for ways in resumed) for kinds in (["exact"], ["exact", "told"])
    )
    refused = sum(outcome(one, "train") == "refused" for one in playing)
    filmed = [one for one in trained if outcome(one, "video") == "ok"]
    beyond = sum(not one["probe"]["draws"] for one in filmed)
    undrawn = sum(word(one, "video") == "no pictures" for one in trained)
    return (
        f"{len(playing)} of the {len(found)} envs run under plain Gymnasium here. gymnast trains {len(trained)} of them "
        f"and refuses {refused} with a reason.\n"
        f"After both signals {exact} of these come back exactly; {said - exact} more say that they cannot.\n"
        f"{len(filmed)} are filmed, among them {beyond} that plain Gymnasium cannot draw on this machine; "
        f"{undrawn} give no pictures."
    )


def name(one: dict[str, Any]) -> str:
    """The env as it is given to gymnast."""
    asked = one["definition"]
    arguments = "".join(f" {key}={value}" for key, value in asked["kwargs"].items())
    return f"{asked['module']}:{asked['id']}{arguments}"


def version(one: dict[str, Any]) -> str:
    """The package and its version."""
    package = one["definition"]["package"]
    known = {name.lower().replace("_", "-"): number for name, number in one.get("versions", {}).items()}
    return f"{package} {known.get(package.lower().replace('_', '-'), '')}".strip()


def outcome(one: dict[str, Any], step: str) -> str:
    """Of a step; empty where it was not tried."""
    return str(one.get("steps", {}).get(step, {}).get("outcome", ""))


def cells(one: dict[str, Any]) -> list[str]:
    """One word for every step."""
    return [word(one, step) for step in STEPS]


def word(one: dict[str, Any], step: str) -> str:
    """What a step came to."""
    kind = outcome(one, step)
    if kind == "told":
        return "said"
    if kind == "failed":
        return "**failed**"
    if kind == "refused" and step == "video" and not one["probe"]["draws"]:
        return "no pictures"
    if kind == "ok" and step == "video":
        return f"{one['steps'][step]['frames']} frames"
    return kind or "–"


def remarks(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything that was said about an env."""
    if "not_installed" in one:
        yield "install", one["not_installed"]
        return
    probed = one["probe"]
    if not probed["plays"]:
        yield "Gymnasium", probed.get("error", "")
    elif not probed["draws"]:
        yield "Gymnasium", probed.get("no_picture", "render gives no picture")
    for step, title in STEPS.items():
        result = one["steps"].get(step, {})
        if result.get("faults"):
            yield title, f"{', '.join(result['faults'])}: {result['said']}"
        elif result.get("said"):
            yield title, result["said"]


def cell(text: str) -> str:
    """A sentence that cannot break the table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("*", "\\*")

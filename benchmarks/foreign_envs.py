"""gymnast on envs that others wrote: `python benchmarks/foreign_envs.py`.

Every env of `benchmarks/queues/foreign_envs.yaml` is played by plain Gymnasium first, then checked, trained, killed,
resumed, evaluated and filmed by the real commands. Each package has a virtual environment of its own
(`foreign_packages.py`). Every step has a time limit, and an env that fails never stops the others. Results are saved after
each env; the same command goes on after an interruption and does not repeat what is there. Words on the command line are
packages or env ids that are tried again. The page docs/foreign-envs.md is written from the results (`--page` does only that).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from foreign_packages import ForeignEnv, Package, definition, install, packages, versions
from foreign_page import PAGE, page
from foreign_steps import LONGEST_EPISODE, Trial, end_all, probe
from harness import RESULTS, machine, source, write

FILE = RESULTS / "foreign_envs.json"
_writing = threading.Lock()


def main() -> None:
    """Try what has no result yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("again", nargs="*", metavar="PACKAGE|ENV", help="tried again, whatever is known of them")
    parser.add_argument("--jobs", type=int, default=1, help="packages at the same time")
    parser.add_argument("--page", action="store_true", help="write the page from the results and do nothing else")
    arguments = parser.parse_args()
    again, listed = set(arguments.again), packages()
    if unknown := again - {package.name for package in listed} - {env.id for one in listed for env in one.envs}:
        parser.error(f"not in the list: {', '.join(sorted(unknown))}")
    record: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"envs": {}}
    record |= {"machine": machine(), "longest_episode": LONGEST_EPISODE}
    if not arguments.page:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(lambda package: try_package(package, record, again), listed))
    keys = [key(package, env) for package in listed for env in package.envs]
    record["envs"] = {one: record["envs"][one] for one in keys if one in record["envs"]}
    write(FILE, record)
    PAGE.write_text(page(record), encoding="utf-8")


def _leave(number: int, _frame: object) -> None:
    """End at once with everything that was started; what is finished is saved."""
    with _writing:
        end_all()
        os._exit(128 + number)


def try_package(package: Package, record: dict[str, Any], again: set[str]) -> None:
    """All envs of a package that have no result of this definition."""
    waiting = [
        env
        for env in package.envs
        if again & {package.name, env.id}
        or not is_done(record["envs"].get(key(package, env)), definition(package, env))
    ]
    if not waiting or (again and not again & {package.name, *(env.id for env in package.envs)}):
        return
    why_not = install(package)
    for env in waiting:
        found: dict[str, Any] = {"definition": definition(package, env), "source": source()}
        if why_not:
            found["not_installed"] = why_not
        else:
            found |= {"versions": versions(package), **try_env(package, env)}
        with _writing:
            record["envs"][key(package, env)] = found
            write(FILE, record)


def try_env(package: Package, env: ForeignEnv) -> dict[str, Any]:
    """All steps; what a step of this script cannot cope with is that step's outcome."""
    probed = probe(package, env)
    print(f"{key(package, env)}: {json.dumps(probed)}", flush=True)
    found: dict[str, Any] = {"probe": probed, "steps": {}}
    trial = Trial(package, env, probed)
    try:
        for name, step in trial.steps().items():
            if name in ("kill", "terminate", "eval", "video") and found["steps"]["train"]["outcome"] != "ok":
                continue
            began = time.monotonic()
            try:
                outcome = step()
            except Exception as error:  # one env never stops the rest
                outcome = {"outcome": "failed", "said": f"this script: {type(error).__name__}: {error}"[:300]}
            found["steps"][name] = {**outcome, "seconds": round(time.monotonic() - began, 1)}
            print(f"{key(package, env)} {name}: {json.dumps(found['steps'][name])}", flush=True)
    finally:
        trial.close()
    return found


def key(package: Package, env: ForeignEnv) -> str:
    """What a result is filed under."""
    arguments = ", ".join(f"{name}={value}" for name, value in env.kwargs.items())
    return f"{package.name} {env.id}" + (f" ({arguments})" if arguments else "")


def is_done(found: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    """Whether there is a result of this very definition."""
    return found is not None and found["definition"] == wanted and "not_installed" not in found


if __name__ == "__main__":
    main()

"""Run references: `@last`, a run id or its beginning, `@best`, `@best:ENV`, a path; `/CHECKPOINT` may follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from gymnast.config.names import SETTLED_LATE
from gymnast.errors import UsageError, did_you_mean
from gymnast.runs.checkpoint import MASTER, POINTERS, masters, read_pointer, steps
from gymnast.runs.index import RunRow, list_runs
from gymnast.runs.store import Run, is_id, last_run

_CHECKPOINT = re.compile(r"@?best|@?last|@?newest|step=[0-9]+|stage=[A-Za-z0-9][A-Za-z0-9_-]*")


def resolve_run(root: Path, ref: str, *, paths: bool = True) -> Run:
    """The run a reference names. `paths=False` refuses paths: the choice for text that came over a network."""
    head, tail = _split(ref, paths)
    run = _run(root, head, ref, paths)
    if tail is not None:
        raise UsageError(f"'{ref}' names a checkpoint, and a run is wanted here: use '{head}'.")
    return run


def resolve_runs(root: Path, refs: Iterable[str], *, paths: bool = True) -> list[Run]:
    """The runs that references name, each once."""
    return list(dict.fromkeys(resolve_run(root, ref, paths=paths) for ref in refs))


def resolve_checkpoint(
    root: Path, ref: str, *, prefer: Literal["best", "last"] = "best", paths: bool = True
) -> tuple[Run, str]:
    """The run and the checkpoint name (`step=120000`). Without a checkpoint part: `prefer`, else the other one."""
    head, tail = _split(ref, paths)
    run = _run(root, head, ref, paths)
    if tail is not None:
        return run, _checkpoint(run, tail, ref)
    for pointer in (prefer, "last", "best"):
        if name := read_pointer(run.folder, pointer):
            return run, name
    if found := steps(run.folder):  # the pointer files are gone
        return run, f"step={found[-1]}"
    raise UsageError(f"Run {run.id} has no checkpoint yet. {_advice(run)}")


def unfinished_run(root: Path, config: dict[str, Any]) -> Run | None:
    """The newest run that began with exactly this config and has not finished; one that still trains counts."""
    train, default = config.get("train", {}), _default(config)
    for row in list_runs(root, config=config.get("name") or None, seed=train.get("seed")):
        run = Run(root / row.id)
        open_ = row.status == "running" or (row.status != "finished" and steps(run.folder))
        if open_ and _as_asked(_completed(run.config_of(1), config, default), config) == config:
            return run
    return None


def _default(config: dict[str, Any]) -> dict[str, Any]:
    """The default config of this env and algorithm."""
    # Only who trains comes here, and has imported the schema; those who name a run do not wait for it.
    from gymnast.config.schema import RunConfig

    least = {name: {"id": config[name]["id"]} for name in ("env", "algo", "policy")}
    return RunConfig.model_validate({**least, "train": {"env_steps": 1}}).model_dump(mode="json")


def _completed(began: dict[str, Any], config: dict[str, Any], default: Any) -> dict[str, Any]:
    """A run's config with the keys that an earlier version did not have, where they have their default now."""
    defaults = default if isinstance(default, dict) else {}
    found = dict(began)
    for key, value in config.items():
        if key not in found and value == defaults.get(key):  # keys of schedules, which have no default, are None
            found[key] = value
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _completed(found[key], value, defaults.get(key))
    return found


def _as_asked(began: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """A run's config with `auto` where that is asked for, and what is shown or told as it is asked for now."""
    asked = dict(began)
    for key in SETTLED_LATE:
        section, name = key.split(".")
        open_value = config.get(section, {}).get(name, "not a setting")
        if open_value in ("auto", None):
            asked[section] = {**asked.get(section, {}), name: open_value}
    return {**asked, "log": config.get("log")}


def _split(ref: str, paths: bool) -> tuple[str, str | None]:
    """Cut the checkpoint part off; env ids (`@best:ALE/Pong-v5`) and paths have slashes of their own."""
    ref = ref.strip().rstrip("/")
    if paths and not ref.startswith("@") and _at_path(ref):
        return ref, None  # `runs/@last`, as the shell completes it
    head, slash, tail = ref.rpartition("/")
    if not slash or not _CHECKPOINT.fullmatch(tail):
        return ref, None
    return (head.removesuffix("/checkpoints") if paths else head), tail.removeprefix("@")


def _run(root: Path, head: str, ref: str, paths: bool) -> Run:
    root = Path(root)
    if head == "@last":
        return _last(root)
    if head == "@best" or head.startswith("@best:"):
        return _best(root, head.removeprefix("@best").removeprefix(":"))
    if is_id(head) and (run := Run(root / head)).exists():
        return run
    if paths and (there := _at_path(head)):
        return there
    rows = list_runs(root)
    matches = [row.id for row in rows if head and row.id.startswith(head)]
    if len(matches) == 1:
        return Run(root / matches[0])
    if matches:
        raise UsageError(
            f"'{head}' is the beginning of {len(matches)} runs: {', '.join(matches[:8])}. Type one more letter."
        )
    if not rows:
        raise _no_runs(root)
    raise UsageError(
        f"There is no run '{ref}' in '{root}'.{did_you_mean(head, [row.id for row in rows])} {_newest(rows)} "
        "A reference is @last, @best, @best:ENV, a run id or a path, with /best, /last or /step=N for a checkpoint."
    )


def _at_path(text: str) -> Run | None:
    try:
        run = Run(Path(text).resolve())
    except (OSError, ValueError, RuntimeError):  # text that cannot be a path
        return None
    if text and run.exists():
        return run
    return None


def _last(root: Path) -> Run:
    if run := last_run(root):
        return run
    rows = list_runs(root, limit=1)  # the link is gone or its run was removed
    if not rows:
        raise _no_runs(root)
    return Run(root / rows[0].id)


def _best(root: Path, env: str) -> Run:
    rows = list_runs(root)
    if not rows:
        raise _no_runs(root)
    if not env:
        last = _last(root)
        env = next((row.env for row in rows if row.id == last.id), "")
    same = [row for row in rows if row.env.lower() == env.lower()]
    if not same:
        known = sorted({row.env for row in rows})
        raise UsageError(
            f"There is no run of '{env}' in '{root}'.{did_you_mean(env, known)} Envs with runs: {', '.join(known)}."
        )
    scored = [(row.best_return, row) for row in same if row.best_return is not None]
    if not scored:
        raise UsageError(
            f"No run of '{env}' has been evaluated yet, so none is the best. {_newest(same)} Name one, or use @last."
        )
    # Rows come newest first; of equal scores the earlier run was there first.
    return Run(root / max(reversed(scored), key=lambda pair: pair[0])[1].id)


def _checkpoint(run: Run, name: str, ref: str) -> str:
    if name in POINTERS or name.startswith(MASTER):
        if found := read_pointer(run.folder, name):
            return found
        if name.startswith(MASTER):
            raise _no_master(run, name.removeprefix(MASTER))
    else:
        step = int(name.removeprefix("step="))
        if step in steps(run.folder):
            return f"step={step}"
    raise UsageError(f"There is no checkpoint '{ref}'. {_advice(run)}")


def _no_master(run: Run, stage: str) -> UsageError:
    ended = masters(run.folder)
    if not ended:
        return UsageError(
            f"Run {run.id} has ended no stage of a plan: it has no checkpoint 'stage={stage}'. {_advice(run)}"
        )
    known = ", ".join(f"stage={one}" for one in ended)
    return UsageError(f"Run {run.id} has ended no stage '{stage}'.{did_you_mean(stage, ended)} It has {known}.")


def _advice(run: Run) -> str:
    found = steps(run.folder)
    if not found:
        return f"Run {run.id} has none yet: the first is written during training; see: gymnast runs show {run.typed}"
    pointers = {name: read_pointer(run.folder, name) for name in POINTERS}
    notes = "".join(f"; {name} is {target}" for name, target in pointers.items() if target)
    return f"Run {run.id} has {', '.join(f'step={step}' for step in found)}{notes}."


def _newest(rows: list[RunRow]) -> str:
    shown = ", ".join(f"{row.id} ({row.config or row.env or 'no config'}, {row.status})" for row in rows[:5])
    return f"Newest runs: {shown}."


def _no_runs(root: Path) -> UsageError:
    return UsageError(
        f"There are no runs in '{root}'. Train one (gymnast train CartPole-v1:ppo), "
        "or name the folder that holds them with --runs-dir or GYMNAST_HOME."
    )

"""Code of the user's own that a config names: `module:Name` by import, `python:Name` for an object of a running program.

A module is looked for in the current folder first, as the user's env modules are. An object that no other process could
import (a lambda, a class in a notebook or in a script itself) is remembered here under a name of its own: a run that was made
from it says so, and goes on where Python gives the object again.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gymnast.errors import RAISED_BY_ENVS, GymnastError, UsageError, did_you_mean, in_one_line

PYTHON = "python"
"""In place of a module: the name belongs to an object of the running program."""
ARGUMENTS = {"env.id": "env", "policy.encoder": "encoder", "policy.id": "policy", "env.wrappers": "wrappers"}
"""What Python calls the keys that may name an object."""
_lock = threading.Lock()
_objects: dict[str, Any] = {}
_packed: dict[str, Callable[[], Any]] = {}
"""In a worker process: objects that are unpacked when they are needed."""
_folders: dict[str, set[Path]] = {}
"""The runs of this process that were made with an object, by its reference."""


def is_own(reference: Any) -> bool:
    """Whether a text in a config names code of the user's own."""
    return isinstance(reference, str) and ":" in reference


def is_object(reference: Any) -> bool:
    """Whether it is an object that only a Python program can give."""
    return isinstance(reference, str) and reference.startswith(f"{PYTHON}:")


# ---- from an object to a reference ---------------------------------------------------------------------------------


def reference_to(thing: Any, name: str = "") -> str:
    """What a config calls a class, a function or another object; `name` is for objects that have none."""
    path = _import_path(thing)
    if path is not None:
        return path
    name = re.sub(r"\W+", "_", name or getattr(thing, "__name__", "") or type(thing).__name__).strip("_") or "object"
    with _lock:
        free, number = name, 1
        while _objects.get(free, thing) is not thing:  # another object has the name: a run must not mistake them
            number += 1
            free = f"{name}_{number}"
        _objects[free] = thing
    return f"{PYTHON}:{free}"


def _import_path(thing: Any) -> str | None:
    """`module:Name` where another process finds this very object there."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not name or module in ("__main__", "builtins") or "<" in name:
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not thing or not _is_importable(module):
        return None
    return f"{module}:{name}"


def _is_importable(module: str) -> bool:
    """Whether there is a file or package behind it: a module may have been made by hand."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


# ---- from a reference to the object --------------------------------------------------------------------------------


def find(reference: str, key: str) -> Any:
    """The object that `key` of a config names."""
    module, _, name = reference.partition(":")
    if module == PYTHON:
        return _remembered(name, key)
    found = import_module(module, f"{key} ({reference})")
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [known for known in vars(found) if not known.startswith("_")])
            raise UsageError(f"{key}: there is no '{name}' in the module '{module}'.{hint}")
        found = getattr(found, part)
    return found


def _remembered(name: str, key: str) -> Any:
    if name in _packed:
        return _packed[name]()
    if name not in _objects:
        raise UsageError(missing(name, key))
    return _objects[name]


def missing(name: str, key: str) -> str:
    """What to say where an object is not there."""
    argument = ARGUMENTS.get(key, "env")
    return (
        f"{key} is '{name}', an object of the Python program that started the run, and is not on disk. "
        f"Pass it again in Python: gymnast.resume(run, {argument}=…) or gymnast.load(run, {argument}=…)."
    )


def import_module(module: str, what: str) -> Any:
    """A module of the user's, from the current folder or installed; a sentence where that fails."""
    sys.path.insert(0, here := os.getcwd())  # noqa: PTH109 - users' modules lie where they start the command
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} cannot be imported: {error}.") from None
    except GymnastError:
        raise
    except RAISED_BY_ENVS as error:
        raise UsageError(
            f"{what} cannot be imported: it raised {in_one_line(error)}. "
            "The fault is in the module: --debug shows its traceback."
        ) from error
    finally:
        sys.path.remove(here)


# ---- objects of a run ----------------------------------------------------------------------------------------------


def objects_in(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and reference of every object that a saved config names."""
    policy = _part(config, "policy")
    yield from _objects_of(_part(config, "env"))
    settings = _part(config, "eval").get("env")
    for overrides in settings if isinstance(settings, list) else [settings]:
        if isinstance(overrides, dict):
            yield from _objects_of(overrides)
    for task in _part(_part(config, "plan"), "tasks").values():
        if isinstance(task, dict):
            yield from _objects_of(_part(task, "env"))
    for key in ("id", "encoder"):
        if is_object(policy.get(key)):
            yield f"policy.{key}", policy[key]


def _objects_of(env: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if is_object(env.get("id")):
        yield "env.id", env["id"]
    wrappers = env.get("wrappers")
    for wrapper in wrappers if isinstance(wrappers, list) else []:
        name = wrapper.get("id") if isinstance(wrapper, dict) else wrapper
        if is_object(name):
            yield "env.wrappers", str(name)


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = config.get(name)
    return part if isinstance(part, dict) else {}


def note_run(config: Mapping[str, Any], folder: Path) -> None:
    """The run in this folder was made with the objects that its config names."""
    with _lock:
        for _, reference in objects_in(config):
            _folders.setdefault(reference, set()).add(folder.resolve())


def check_run(config: Mapping[str, Any], folder: Path) -> None:
    """Refuse a run whose objects this program does not have: another object may go by the same name."""
    for key, reference in objects_in(config):
        if folder.resolve() not in _folders.get(reference, ()):
            raise UsageError(missing(reference.partition(":")[2], key))


# ---- in other processes --------------------------------------------------------------------------------------------


def remembered() -> dict[str, Any]:
    """All objects by name, for processes that this one starts."""
    with _lock:
        return dict(_objects)


def unpack_later(packed: Mapping[str, Callable[[], Any]]) -> None:
    """In a process that was started: objects by name, each unpacked when it is needed."""
    _packed.update(packed)

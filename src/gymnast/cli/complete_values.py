"""What configs, keys and runs complete to. It needs the schema and the store: imported where one of them is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from gymnast.config.algorithms import PPOConfig, config_of, names
from gymnast.config.files import env_files, known_env_ids, variant_names
from gymnast.config.foreign_keys import TRANSLATIONS
from gymnast.config.names import ALIASES
from gymnast.config.overrides import find_key, known_keys
from gymnast.config.schema import RunConfig
from gymnast.config.variants import infer_algorithm
from gymnast.runs.index import list_runs
from gymnast.runs.store import runs_root

MOST_RUNS = 100


def starting(current: str, words: Iterable[str]) -> Iterator[str]:
    """Those words that the current one is the beginning of."""
    return (word for word in words if word.startswith(current))


def env_ids(current: str) -> Iterator[str]:
    """Ids of envs that have config files."""
    return starting(current, known_env_ids())


def algorithms(current: str) -> Iterator[str]:
    """Ids of algorithms, those of plug-ins included."""
    return starting(current, names())


# ---- configs -------------------------------------------------------------------------------------------------------


def configs(current: str) -> Iterator[str]:
    """Envs first, then the variants of the one that is meant: so one file is parsed and not all."""
    env, colon, _ = current.partition(":")
    if colon:
        envs = [env]
    else:
        envs = list(starting(current, known_env_ids()))
    if len(envs) != 1:
        yield from (f"{one}:" for one in envs)
        return
    yield from starting(current, (f"{envs[0]}:{name}" for name in variant_names(env_files(envs[0]))))


# ---- keys ----------------------------------------------------------------------------------------------------------


def settings(current: str, positional: list[str]) -> Iterator[str]:
    """`algo.gamma=`, and after the `=` what the key can be where that is a choice."""
    algorithm = _algorithm(positional)
    key, equals, _ = current.partition("=")
    if equals:
        yield from starting(current, (f"{key}={value}" for value in _choices(key, algorithm)))
        return
    keys = [name for name in known_keys(algorithm) if not name.startswith("spec.")]
    full = [f"{name}=" for name in keys if name.startswith(current)]
    yield from full
    if not full:  # the last part alone is enough, and so is another library's name
        short = [name.rpartition(".")[2] for name in keys]
        yield from starting(current, (f"{name}=" for name in (*short, *ALIASES, *TRANSLATIONS)))


def _algorithm(positional: list[str]) -> str:

    variant = ""
    if positional:
        variant = positional[0].partition(":")[2]
    return infer_algorithm(variant) or "ppo"


def _choices(key: str, algorithm: str) -> list[str]:
    """Words that a key takes: those of a Literal, and true and false."""
    path = find_key(key, algorithm)
    model: Any = RunConfig
    for part in path[:-1]:
        if part == "algo":
            model = config_of(algorithm) or PPOConfig
        else:
            model = model.model_fields[part].annotation
    annotation = model.model_fields[path[-1]].annotation
    return [str(word) for word in _words(annotation)]


def _words(annotation: Any) -> Iterator[Any]:
    if annotation is bool:
        yield from ("true", "false")
    for argument in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield argument
        else:
            yield from _words(argument)


# ---- runs ----------------------------------------------------------------------------------------------------------


def runs(current: str, root: str | None) -> Iterator[str]:
    """`@last`, `@best:ENV`, ids, and behind a `/` the checkpoints of a run."""
    folder = runs_root(Path(root) if root else None)
    if not folder.is_dir():
        return
    name, slash, _ = current.partition("/")
    if slash and (folder / name / "checkpoints").is_dir():
        found = sorted(path.name for path in (folder / name / "checkpoints").iterdir() if path.is_dir())
        yield from starting(current, (f"{name}/{point}" for point in ("best", "last", *found)))
        return
    rows = list_runs(folder, notice=lambda _: None, limit=MOST_RUNS)
    if rows:
        yield from starting(current, ("@last", "@best", *(f"@best:{row.env}" for row in rows)))
    yield from starting(current, (row.id for row in rows))

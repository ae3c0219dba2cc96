"""What a run from elsewhere may import: nothing but the known env packages, until its user trusts it.

A config names code: the module of an env, a plug-in, an environment variable it reads. A run that was begun here may use all
of it, and so may one that its user said `--trust` to. Both are recorded in the run's folder by a seal: an HMAC of the run's
id and its whole config with a key of this user, which lies outside every store of runs. So neither an archive nor a copied
folder or store can bring a seal along, and a config that was changed afterwards has none.

This is the only way from a run to a config that can be used (`usable`). Whatever learns to import by a name from a config
adds that name to `code_in`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast import own_code
from gymnast.config.algorithms import CONFIGS
from gymnast.config.load import Resolved, from_saved
from gymnast.config.schema import SHIPPED_POLICY
from gymnast.config.shapers import NAMES as SHAPERS
from gymnast.config.wrappers import SETTINGS
from gymnast.errors import UsageError
from gymnast.metrics.sinks.tracked import SHIPPED
from gymnast.redaction import is_reference, logger
from gymnast.runs.files import write_atomic
from gymnast.runs.reading import read_json

if TYPE_CHECKING:
    from gymnast.runs.store import Run

FILE = "trust.json"
MAX_SEALS = 100
log = logger("gymnast")
_accepted: set[str] = set()
"""Digests of configs that are trusted in this process alone, where a folder or the key cannot be written."""


class ForeignCodeError(UsageError):
    """A run from elsewhere would run code that its user has not agreed to."""


@dataclass(frozen=True)
class Code:
    """Something in a config that leads to code, files or secrets of this machine."""

    key: str
    value: str
    what: str

    def __str__(self) -> str:
        if len(self.value) <= 80:
            shown = self.value
        else:
            shown = f"{self.value[:77]}..."
        return f"{self.what} {shown!r} ({self.key})"


# --- what a config asks for ------------------------------------------------------------------------------------------


def code_in(config: dict[str, Any], *, playing: bool = True) -> list[Code]:
    """Everything in a config, as it is saved, that is not data alone.

    `playing=False` is for those who only read the config and make no env: then only the algorithm's settings are imported.
    """
    found = []
    algorithm = _part(config, "algo").get("id")
    if algorithm is not None and str(algorithm) not in CONFIGS:
        found.append(Code("algo.id", str(algorithm), "the plug-in"))
    policy = _part(config, "policy").get("id", SHIPPED_POLICY)
    if policy != SHIPPED_POLICY:
        found.append(Code("policy.id", str(policy), _kind(policy)))
    encoder = _part(config, "policy").get("encoder")
    if encoder is not None:
        found.append(Code("policy.encoder", str(encoder), _kind(encoder)))
    if playing:
        sinks = _part(config, "log").get("sinks")
        if isinstance(sinks, list):
            plugins = [str(name) for name in sinks if name not in SHIPPED]
            found += [Code("log.sinks", name, "the plug-in") for name in plugins]
        found += _env_code(_part(config, "env"), "env")
        settings = _part(config, "eval").get("env")
        for overrides in settings if isinstance(settings, list) else [settings]:
            if isinstance(overrides, dict):
                found += _env_code(overrides, "eval.env")
        for name, task in _part(_part(config, "plan"), "tasks").items():
            found += _env_code(_part(task, "env"), f"plan.tasks.{name}.env")
    # An object of a Python program is imported from nowhere: only whoever has it can give it.
    return [code for code in found if not own_code.is_object(code.value)]


def _kind(reference: Any) -> str:
    """What a name leads to: a module of the user's, or an installed plug-in."""
    if own_code.is_own(reference):
        return "the Python code"
    return "the plug-in"


def _env_code(env: dict[str, Any], where: str) -> Iterator[Code]:
    if env.get("module"):
        yield Code(f"{where}.module", str(env["module"]), "the Python module")
    if "id" in env and not _is_known(env["id"]):
        yield Code(f"{where}.id", str(env["id"]), "whatever brings the env")
    wrappers = env.get("wrappers")
    for wrapper in wrappers if isinstance(wrappers, list) else []:
        name = wrapper.get("id") if isinstance(wrapper, dict) else wrapper
        if str(name) not in SETTINGS:
            yield Code(f"{where}.wrappers", str(name), _kind(name))
    terms = _part(_part(env, "rewards"), "terms")
    for term, settings in terms.items():
        name = settings.get("shaper") if isinstance(settings, dict) else None
        if name is not None and str(name) not in SHAPERS:
            yield Code(f"{where}.rewards.terms.{term}.shaper", str(name), _kind(name))
    given = [*_texts(env.get("kwargs"), f"{where}.kwargs"), *_texts(env.get("randomise"), f"{where}.randomise")]
    for key, value in given:
        if is_reference(value):
            yield Code(key, value, "the environment variable")
        elif "/" in value or "\\" in value:
            yield Code(key, value, "the file")


def _is_known(env_id: Any) -> bool:
    """Whether an env is Gymnasium's own, one of ours, or of a family that gymnast ships a record of."""
    import gymnasium as gym

    from gymnast.envs.families import shipped_family

    if not isinstance(env_id, str) or ":" in env_id:  # `module:Env-v0` imports the module
        return False
    if shipped_family(env_id) is not None:
        return True
    spec = gym.registry.get(env_id)
    return spec is not None and str(spec.entry_point).startswith(("gymnasium.envs.", "gymnast."))


def _part(config: Any, name: str) -> dict[str, Any]:
    part = config.get(name) if isinstance(config, dict) else None
    if isinstance(part, dict):
        return part
    return {}


def _texts(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, f"{path}.{key}")
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, path)
    elif isinstance(data, str):
        yield path, data


# --- the gate --------------------------------------------------------------------------------------------------------


def usable(
    run: Run,
    overrides: Sequence[str] = (),
    settings: dict[str, Any] | None = None,
    *,
    attempt: int | None = None,
    playing: bool = True,
) -> Resolved:
    """The config a run was saved with, ready for use; a `ForeignCodeError` where that would import what nobody agreed to.

    `attempt` asks for the config of an earlier attempt, and `playing=False` says that no env will be made of it. What the
    user lays over it (`overrides`, `settings`) is the user's own word.
    """
    if attempt is None:
        config = run.config()
    else:
        config = run.config_of(attempt)
    if code := _open_questions(run.folder, config, playing):
        raise ForeignCodeError(
            f"Run {run.id} was not begun here by you, or its config was changed since. Using it would import or read "
            f"{', '.join(map(str, code))}. Look at that first; if you trust it, add --trust (in Python: trust=True). "
            "It is asked once per run."
        )
    return from_saved(config, overrides, settings)


def usable_config(config: dict[str, Any], where: str, settings: dict[str, Any], *, trust: bool) -> Resolved:
    """A config from a single file, which no seal can vouch for: code that it names needs the user's word every time."""
    if (code := code_in(config)) and not trust:
        raise ForeignCodeError(
            f"Using '{where}' would import or read {', '.join(map(str, code))}. Look at that first; if you trust it, add "
            "trust=True."
        )
    return from_saved(config, (), settings)


def given_config(config: dict[str, Any], overrides: Sequence[str], settings: dict[str, Any]) -> Resolved:
    """A whole config that a Python program gives as a mapping: the user's own word, as a config file is."""
    return from_saved(config, overrides, settings)


def asks_for(run: Run) -> list[Code]:
    """What a run would import or read if its user let it; empty if the user has said so, or there is nothing."""
    return _open_questions(run.folder, run.config(), playing=True)


def _open_questions(folder: Path, config: dict[str, Any], playing: bool) -> list[Code]:
    code = code_in(config, playing=playing)
    if code and not _is_sealed(folder, config):
        return code
    return []


def accept(run: Run) -> None:
    """The user trusts this run with all that its configs name now; a config that changes later is asked about again."""
    for path in (run.config_path, *run.folder.glob("config-*.json")):
        with contextlib.suppress(OSError, ValueError):
            config = read_json(path)
            if code_in(config) and not _is_sealed(run.folder, config):
                _accepted.add(_digest(run.folder, config))
                seal(run.folder, config)


def seal(folder: Path, config: dict[str, Any]) -> None:
    """Record that this user begins the run with this config, or trusts it; nothing if it names no code.

    A resume seals its config before it writes it, so that a kill in between leaves no run that asks for --trust.
    """
    if not code_in(config):
        return
    try:
        key = _key(make=True)
        assert key is not None
        seals = [*_seals(folder), _seal_of(key, folder, config)]
        write_atomic(folder / FILE, json.dumps({"seals": seals[-MAX_SEALS:]}) + "\n")
    except (OSError, RuntimeError) as error:  # no home, or one that is not writable
        log.warning(
            "warning: That run %s is trusted could not be recorded (%s): commands will ask for --trust.",
            folder.name,
            getattr(error, "strerror", None) or error,
        )


def _is_sealed(folder: Path, config: dict[str, Any]) -> bool:
    if _digest(folder, config) in _accepted:
        return True
    with contextlib.suppress(OSError, RuntimeError):
        if key := _key(make=False):
            expected = _seal_of(key, folder, config)
            return any(hmac.compare_digest(expected, known) for known in _seals(folder))
    return False


def _seals(folder: Path) -> list[str]:
    try:
        found = read_json(folder / FILE)["seals"]
        return [text for text in found if isinstance(text, str) and text.isascii()][-MAX_SEALS:]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _content(folder: Path, config: dict[str, Any]) -> bytes:
    return json.dumps([folder.resolve().name, config], sort_keys=True).encode()


def _digest(folder: Path, config: dict[str, Any]) -> str:
    return hashlib.sha256(_content(folder, config)).hexdigest()


def _seal_of(key: bytes, folder: Path, config: dict[str, Any]) -> str:
    return hmac.digest(key, _content(folder, config), "sha256").hex()


# --- the key ---------------------------------------------------------------------------------------------------------


def key_path() -> Path:
    """Where this user's key lies: `gymnast/key` in the folder for the state of programs."""
    base = os.environ.get("XDG_STATE_HOME")
    if not base and os.name == "nt":
        base = os.environ.get("LOCALAPPDATA")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    return folder / "gymnast" / "key"


def _key(*, make: bool) -> bytes | None:
    """32 bytes that only this user can read; None if there are none and none shall be made."""
    path = key_path()
    with contextlib.suppress(FileNotFoundError):
        key = path.read_bytes()
        if len(key) == 32:
            return key
    if not make:
        return None
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".key.{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(temporary, path)  # of two processes that make one at once, the first wins
        except OSError:
            if not path.exists() or path.stat().st_size != 32:  # no links here, or a damaged key
                temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path.read_bytes()

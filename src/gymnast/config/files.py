"""Config files: where they are, how they are read, and the line of each key."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast import plugins
from gymnast.config.yaml_limits import refuse_excess
from gymnast.errors import ConfigError, did_you_mean

SHIPPED = Path(__file__).parent.parent / "presets"
USER_FOLDER = Path("configs")
BASES = "bases"
LONGEST_NAME = 255
"""Bytes of a file name."""
NAMESPACES = ("ALE", "MinAtar", "gymnast")
"""Of env ids with a slash, which file names have as an underscore."""
TOP_KEYS = ("id", "aliases", "extends", "for", "spec", "defaults", "variants")
Path_ = tuple[str, ...]


@dataclass(frozen=True)
class ConfigFile:
    """A parsed file and the line of each key."""

    path: Path
    data: dict[str, Any]
    lines: dict[Path_, int]

    @property
    def variants(self) -> dict[str, Any]:
        """The variants by name; a body may be None."""
        return self.data.get("variants") or {}

    @property
    def patterns(self) -> list[str]:
        """Of a base: ids of the envs that have it without saying so, `*` for any characters."""
        return self.data.get("for") or []

    def is_for(self, env_id: str) -> bool:
        """Whether an env has this base without saying so."""
        return any(fnmatch.fnmatchcase(env_id, pattern) for pattern in self.patterns)

    @property
    def label(self) -> str:
        """Short name for messages: shipped files relative to the package, others as given."""
        if self.path.is_relative_to(SHIPPED):
            return str(self.path.relative_to(SHIPPED.parent))
        return str(self.path)

    def where(self, path: Path_) -> str:
        """`file:line` of a key; the nearest enclosing key when the line is unknown."""
        while path and path not in self.lines:
            path = path[:-1]
        if path:
            return f"{self.label}:{self.lines[path]}"
        return self.label


def _plain(node: Any, path: Path_, lines: dict[Path_, int]) -> Any:
    """Ordinary dicts and lists, with the line of each key noted on the way."""
    if isinstance(node, dict):
        plain = {}
        for key, value in node.items():
            position = (node.lc.data or {}).get(key)  # type: ignore[attr-defined]
            if position is not None:  # keys that `<<` brings in have no line of their own here
                lines[(*path, str(key))] = position[0] + 1
            plain[str(key)] = _plain(value, (*path, str(key)), lines)
        return plain
    if isinstance(node, list):
        return [_plain(value, (*path, str(i)), lines) for i, value in enumerate(node)]
    if isinstance(node, float):
        return float(node)
    if isinstance(node, int) and not isinstance(node, bool):
        return int(node)
    if isinstance(node, str):
        return str(node)
    return node


def parse_yaml(text: str, label: str) -> tuple[Any, dict[Path_, int]]:
    """YAML 1.2 (`1e-4` is a number, `on` is text); duplicate keys are an error with its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        refuse_excess(text, label)
        node = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = " ".join(str(error.problem or error.context).split())
        raise ConfigError(f"{label}{line} is not valid YAML: {problem}.") from None
    except YAMLError as error:
        raise ConfigError(f"{label} is not valid YAML: {' '.join(str(error).split())}.") from None
    lines: dict[Path_, int] = {}
    return _plain(node, (), lines), lines


@functools.lru_cache(maxsize=64)
def _read(path: Path, modified: int) -> ConfigFile:
    label = str(path)
    data, lines = parse_yaml(path.read_text(encoding="utf-8"), label)
    if not isinstance(data, dict):
        raise ConfigError(f"{label} holds no mapping: expected keys such as id, defaults and variants.")
    file = ConfigFile(path, data, lines)
    for key in data:
        if key not in TOP_KEYS:
            raise ConfigError(
                f"{file.where((key,))}: unknown key '{key}'.{did_you_mean(key, TOP_KEYS)} Known: {', '.join(TOP_KEYS)}."
            )
    for key in ("spec", "defaults", "variants"):
        if not isinstance(data.get(key, {}), (dict, type(None))):
            raise ConfigError(f"{file.where((key,))}: '{key}' must be a mapping.")
    for key in ("id", "extends"):
        if not isinstance(data.get(key, ""), (str, type(None))):
            raise ConfigError(f"{file.where((key,))}: '{key}' must be text (got {data[key]!r}).")
    for key in ("aliases", "for"):
        ids = []
        if data.get(key) is not None:
            ids = data[key]
        if not isinstance(ids, list) or not all(isinstance(env_id, str) for env_id in ids):
            raise ConfigError(f"{file.where((key,))}: '{key}' must be a list of env ids (got {ids!r}).")
    if file.patterns and path.parent.name != BASES:
        where = f"{USER_FOLDER / BASES}/NAME.yaml"
        raise ConfigError(
            f"{file.where(('for',))}: 'for' belongs in a shared base ({where}); this file is for one env."
        )
    if file.patterns and not file.variants:
        raise ConfigError(f"{file.where(('for',))}: 'for' needs variants, which are what those envs are trained with.")
    for name, body in file.variants.items():
        if not isinstance(body, (dict, type(None))):
            raise ConfigError(f"{file.where(('variants', name))}: variant '{name}' must be a mapping, got {body!r}.")
        parent = (body or {}).get("extends")
        if not isinstance(parent, (str, type(None))):
            where = file.where(("variants", name, "extends"))
            raise ConfigError(f"{where}: 'extends' must be the name of a variant (got {parent!r}).")
    layers: dict[Path_, Any] = {("defaults",): data.get("defaults")}
    layers |= {("variants", name): body for name, body in file.variants.items()}
    for layer, body in layers.items():
        if "name" in (body or {}):  # a run has one, but it is made from the env and the variant
            raise ConfigError(f"{file.where((*layer, 'name'))}: unknown key 'name'.")
    return file


def read(path: Path) -> ConfigFile:
    """Parse a config file (cached until it changes)."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ConfigError(f"Cannot read config file {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"Cannot read config file {path}: it is not UTF-8 text.") from None


def base_of(file: ConfigFile) -> ConfigFile:
    """The shared base that a file extends, from ./configs/bases or the shipped ones."""
    name, known = str(file.data["extends"]), _bases()
    if name in known:
        return read(known[name])
    where = file.where(("extends",))
    raise ConfigError(f"{where}: unknown base '{name}'.{did_you_mean(name, known)} Known: {', '.join(sorted(known))}.")


def _bases() -> dict[str, Path]:
    """All bases by name; the user's own take the place of shipped ones."""
    return {path.stem: path for folder in (SHIPPED, USER_FOLDER) for path in sorted((folder / BASES).glob("*.yaml"))}


def general_bases() -> list[ConfigFile]:
    """The bases that say for which envs they are."""
    return [file for file in map(read, _bases().values()) if file.patterns]


def _general_base(env_id: str, own: list[ConfigFile]) -> list[ConfigFile]:
    """The base that is for this env, unless its own files extend another one (which may be unknown: that is said later)."""
    named = [str(file.data["extends"]) for file in own if file.data.get("extends")]
    if named:
        found = [read(path) for name, path in _bases().items() if name == named[-1]]
    else:
        found = general_bases()
    return [file for file in found if file.is_for(env_id)][:1]


def variant_names(stack: list[ConfigFile]) -> list[str]:
    """The variants of an env, by the files that are layered for it."""
    return list(dict.fromkeys(name for file in stack for name in file.variants))


def env_files(env_id: str) -> list[ConfigFile]:
    """The files of an env in the order they are layered: a base that is for it, its own one, shipped or of a plug-in, and the
    user's in ./configs."""
    own = own_files(env_id)
    return [*_general_base(env_id, own), *own]


def own_files(env_id: str) -> list[ConfigFile]:
    """The files that are for this env alone."""
    name = env_id.replace("/", "_") + ".yaml"
    if len(name.encode()) > LONGEST_NAME:
        return []  # no file can have that name, and file systems refuse to look for it
    folders = [SHIPPED / "envs"]
    if not (folders[0] / name).is_file():
        folders = [folder for folder in plugins.preset_folders() if (folder / name).is_file()]
    if len(folders) > 1:
        raise ConfigError(f"Several plug-ins provide a file for '{env_id}': {', '.join(map(str, folders))}.")
    return [read(folder / name) for folder in (*folders, USER_FOLDER) if (folder / name).is_file()]


def known_envs() -> Iterator[tuple[str, list[ConfigFile]]]:
    """Every env with a file: shipped, of a plug-in, or in ./configs."""
    names: dict[str, list[ConfigFile]] = {}
    shipped = {path.name for path in (SHIPPED / "envs").glob("*.yaml")}
    for folder in (SHIPPED / "envs", *plugins.preset_folders(), USER_FOLDER):
        for path in sorted(folder.glob("*.yaml")):
            if path.name in shipped and folder not in (SHIPPED / "envs", USER_FOLDER):
                continue  # ours stays
            file = read(path)
            names.setdefault(str(file.data.get("id", path.stem)), []).append(file)
    for env_id, own in sorted(names.items()):
        yield env_id, [*_general_base(env_id, own), *own]


def known_env_ids() -> list[str]:
    """Ids of all envs with a file; for our own and the user's the file names tell them, and nothing is parsed."""
    paths = [*(SHIPPED / "envs").glob("*.yaml"), *USER_FOLDER.glob("*.yaml")]
    others = [read(path) for folder in plugins.preset_folders() for path in folder.glob("*.yaml")]
    return sorted({*map(_env_id, (path.stem for path in paths)), *(str(file.data.get("id")) for file in others)})


def _env_id(stem: str) -> str:
    """`ALE_Pong-v5` is the file of ALE/Pong-v5; other underscores are part of a name."""
    namespace, _, name = stem.partition("_")
    if namespace in NAMESPACES and name:
        return f"{namespace}/{name}"
    return stem

"""Every key of a config, and the names that others have for them. It needs the schema."""

from __future__ import annotations

from gymnast.config.algorithms import CONFIGS
from gymnast.config.foreign_keys import TRANSLATIONS
from gymnast.config.names import ALIASES, NO_KEYS
from gymnast.config.overrides import OPEN_SECTIONS, known_keys


def every_key() -> list[str]:
    """Every key of every shipped algorithm, and the names that others have for them."""
    names = dict.fromkeys(name for algorithm in CONFIGS for name in known_keys(algorithm))
    return [*ALIASES, *TRANSLATIONS, *(name for name in names if not name.startswith("spec."))]


def is_key(key: str) -> bool:
    """Whether some algorithm has this key, in full, by its last part, or by another library's name for it."""
    path = tuple(key.split("."))
    if key in NO_KEYS or any(path[: len(section)] == section for section in OPEN_SECTIONS):
        return True
    names = every_key()
    return key in names or key in {name.rpartition(".")[2] for name in names}

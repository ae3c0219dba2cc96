"""Secrets: which names and values are secret, how text is cleaned of them, and how a config refers to one.

A config never holds a secret in clear. `env.kwargs.token: $MY_TOKEN` is a reference: it is saved as it stands and read
from the environment only when the env is made.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import traceback
from collections.abc import Iterator
from typing import Any

from gymnast.errors import ConfigError, UsageError

HIDDEN = "***"
_SHORTEST = 8
"""Shorter values of secret variables are words like `none`; hiding those would garble every sentence."""
_NAME = (
    r"(?:token|secret|password|passwd|passphrase|credentials?|authorization|bearer"
    r"|(?:api|access|secret|private)[_-]?key(?:[_-]?id)?)"
)
_SECRET_NAME = re.compile(rf"(?:.*[_.\-])?{_NAME}|.*(?:password|apikey)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_TOKENS = re.compile(
    r"\bhf_[A-Za-z0-9]{20,}"  # Hugging Face
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
# 40 hexadecimal digits are also a git commit: only next to the name of the tracker whose keys look like that.
_WANDB = re.compile(r"(?i)(wandb[^\n]{0,60}?)\b[0-9a-f]{40}\b")
# Repetitions are bounded where the next try would start inside the last: a long line must not take a quadratic time.
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s/@:]{0,200}:)[^\s/@]{1,1000}(?=@)", re.IGNORECASE)
_AFTER_NAME = re.compile(
    rf"(?i)((?<![a-z0-9])(?:[\w.\-]{{0,60}}[_.\-])?{_NAME}[\"']?\s*[:=]\s*(?:bearer\s+|basic\s+)?+)"
    r"(?![\"']?(?:\$|\*\*\*))(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;}\])]+)"
)
_HINT = re.compile(
    r"hf_|gh[a-z]_|github_pat_|sk-|glpat-|xox|AKIA|ASIA|eyJ|-----B|wandb|://|token|secret|pass|credential|authorization|bearer|key",
    re.IGNORECASE,
)
"""Without any of this no pattern matches; most texts have none of it, and looking for one thing is quicker than for all."""
_known: set[str] = set()
"""Values that references of this process were replaced with."""


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether something of this name is a secret: `token`, `HF_TOKEN`, `apiKey`; not `max_tokens` or `tokenizer`."""
    return _SECRET_NAME.fullmatch(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None


def redact(text: str) -> str:
    """`text` with `***` in place of everything that looks like a secret or is one of this process."""
    return _redacted(text, _values())


def _redacted(text: str, values: list[str]) -> str:
    for value in values:
        text = text.replace(value, HIDDEN)
    if _HINT.search(text) is None:
        return text
    text = _IN_URL.sub(rf"\1{HIDDEN}", _TOKENS.sub(HIDDEN, text))
    return _AFTER_NAME.sub(rf"\1{HIDDEN}", _WANDB.sub(rf"\1{HIDDEN}", text))


def redact_tree(data: Any, name: str = "") -> Any:
    """A config or another JSON tree without secrets; references stay."""
    return _redacted_tree(data, name, _values())


def _redacted_tree(data: Any, name: str, values: list[str]) -> Any:
    if isinstance(data, dict):
        return {key: _redacted_tree(value, str(key), values) for key, value in data.items()}
    if isinstance(data, list):
        return [_redacted_tree(value, name, values) for value in data]
    if not isinstance(data, str) or is_reference(data):
        return data
    if data and is_secret_name(name):
        return HIDDEN
    return _redacted(data, values)


class _Clean(logging.Filter):
    """Takes secrets out of a record before any handler sees it: a user's own handlers know nothing of secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info))).rstrip()
            record.exc_info = None
        return True


def logger(name: str) -> logging.Logger:
    """The logger of that name, whose records hold no secrets; the package has no others."""
    found = logging.getLogger(name)
    if not any(isinstance(one, _Clean) for one in found.filters):
        found.addFilter(_Clean())
    return found


def _values() -> list[str]:
    """Secret values of this process, the longest first: one may be the beginning of another."""
    named = (value for name, value in os.environ.items() if len(value) >= _SHORTEST and is_secret_name(name))
    return sorted({*_known, *named}, key=len, reverse=True)


# --- configs --------------------------------------------------------------------------------------------------------


def is_reference(value: Any) -> bool:
    """Whether a value names an environment variable: `$NAME` or `${NAME}`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def refuse_secrets(config: dict[str, Any], origins: dict[str, str] | None = None) -> None:
    """A ConfigError for the first secret in clear: it would be saved with the run, logged and exported."""
    for key, value in _texts(config, ""):
        if is_reference(value) or not value:
            continue
        name = key.rpartition(".")[2]
        in_clear = is_secret_name(name) and not key.startswith("spec.")
        if not in_clear and _TOKENS.search(value) is None and _IN_URL.search(value) is None:
            continue
        origin = (origins or {}).get(key, "")
        at = ""
        if origin and not origin.startswith("command line"):  # which shows the value itself
            at = f"{origin}: "
        what = "was not saved with the run" if value == HIDDEN else "is a secret in plain text, and configs are saved"
        raise ConfigError(
            f"{at}'{key}' {what}. Put it into an environment variable and name that, in single quotes so that the "
            f"shell leaves it alone: '{key}=$MY_{re.sub(r'[^A-Z0-9]', '_', name.upper())}'"
        )


def _texts(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value, path)
    elif isinstance(data, str):
        yield path, data


def expand(data: Any, where: str) -> Any:
    """Replace references by the values of their variables, at any depth; `where` names the key in errors."""
    if isinstance(data, dict):
        return {key: expand(value, f"{where}.{key}") for key, value in data.items()}
    if isinstance(data, list):
        return [expand(value, where) for value in data]
    match = _REFERENCE.fullmatch(data) if isinstance(data, str) else None
    if match is None:
        return data
    name = match[1] or match[2]
    value = os.environ.get(name)
    if value is None:
        raise UsageError(f"'{where}' is read from the environment variable {name}, which is not set: export it first.")
    if len(value) >= _SHORTEST:
        _known.add(value)
    return value

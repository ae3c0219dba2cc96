"""Which differing config keys can explain that two runs part, and which cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnast.config.leaves import leaves
from gymnast.envs.families import shipped_family

BUDGET = ("train.env_steps", "train.vec_steps")
HARMLESS = {
    "name": "a name",
    "log.": "changes only what is shown",
    "eval.": "changes only how the policy is evaluated",
    "spec.horizon": "changes only how much memory is set aside",
    "spec.": "changes only how the policy is evaluated and when training stops",
    "train.checkpoint_every": "changes only when checkpoints are written",
    "train.keep_checkpoints": "changes only what is kept",
    "train.stop": "changes only when training stops",
    "env.worker_timeout": "changes only when a worker counts as hung",
    "env.on_worker_failure": "matters only when a worker fails",
    "env.max_restarts": "matters only when a worker fails",
}
"""By the beginning of the key."""
ROUNDING = {
    "train.device": "another device rounds differently",
    "train.threads": "another number of threads rounds differently",
    "env.vectorization": "the adapters give the same numbers",
    "env.n_workers": "the adapters give the same numbers",
    "env.start_method": "the adapters give the same numbers",
    "env.core_turns": "only changes where workers run",
}
"""Not meant to change a result, but no proof that they did not."""
_ORDER = ("train.seed", "env.", "algo.", "policy.", "train.")


@dataclass(frozen=True)
class KeyChange:
    """A config key that differs."""

    key: str
    a: Any
    b: Any
    role: str
    """`training` (can explain a difference), `rounding` (should not) or `harmless` (cannot)."""
    why: str = ""


def classify(changes: list[tuple[str, Any, Any]], first: dict[str, Any], second: dict[str, Any]) -> list[KeyChange]:
    """Keys with what they can do, those that explain most first."""
    scheduled = any(_follows_budget(config) for config in (first, second))
    engine = _native_engine(first) or _native_engine(second)
    found = [_change(key, a, b, scheduled=scheduled, engine=engine) for key, a, b in changes]
    roles = ("training", "rounding", "harmless")
    return sorted(found, key=lambda change: (roles.index(change.role), _rank(change.key)))


def _change(key: str, a: Any, b: Any, *, scheduled: bool, engine: str) -> KeyChange:
    if key in BUDGET:
        if scheduled:
            return KeyChange(key, a, b, "training", "schedules run over the budget")
        return KeyChange(key, a, b, "harmless", "changes only how long training goes on")
    if key == "env.vectorization" and "envpool" in (a, b):
        return KeyChange(key, a, b, "training", "EnvPool plays other episodes")
    if key == "env.vectorization" and engine and "native" in (a, b):
        return KeyChange(key, a, b, "training", f"{engine} plays other episodes")
    for start, why in ROUNDING.items():
        if key == start:
            return KeyChange(key, a, b, "rounding", why)
    for start, why in HARMLESS.items():
        if key.startswith(start):
            return KeyChange(key, a, b, "harmless", why)
    return KeyChange(key, a, b, "training")


def _native_engine(config: dict[str, Any]) -> str:
    """Who steps the native form of this env, where it plays other episodes than single envs do."""
    family = shipped_family(str((config.get("env") or {}).get("id", "")))
    if family is None:
        return ""
    return family.native_engine


def _follows_budget(config: dict[str, Any]) -> bool:
    values = leaves({"algo": config.get("algo") or {}}).values()
    return any(isinstance(value, dict) and value.get("axis", "progress") == "progress" for value in values if value)


def _rank(key: str) -> int:
    if key in BUDGET:
        return len(_ORDER)
    return next((i for i, start in enumerate(_ORDER) if key.startswith(start)), len(_ORDER))

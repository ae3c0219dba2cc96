"""What `gymnast env bench` measured on this machine, kept next to the runs for `n_envs: auto`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gymnast.config.load import Resolved, check_sizes
from gymnast.config.plan import AUTO, make_plan
from gymnast.config.schema import EnvConfig
from gymnast.envs.benching import Measurement, Setting, machine, recommend
from gymnast.envs.choose import choose_vectorization, cores
from gymnast.runs.files import now, write_atomic
from gymnast.runs.reading import read_json

FILE = "bench.json"


def save(root: Path, config: EnvConfig, measurements: Sequence[Measurement]) -> Path:
    """Keep the measurements of this env on this machine, in place of earlier ones of the same ways to step it."""
    kinds = {one.setting.vectorization for one in measurements}
    kept = [one for one in load(root, config) if one.setting.vectorization not in kinds]
    entry = {
        "env": _identity(config),
        "machine": machine(),
        "measured_at": now(),
        "measurements": [
            {**asdict(one.setting), "steps_per_second": round(one.steps_per_second, 1)}
            for one in (*kept, *measurements)
        ],
    }
    others = [known for known in _entries(root) if not _fits(known, config)]
    root.mkdir(parents=True, exist_ok=True)
    path = root / FILE
    write_atomic(path, json.dumps([*others, entry], indent=2) + "\n")
    return path


def load(root: Path, config: EnvConfig) -> list[Measurement]:
    """What was measured of this env on this machine."""
    for entry in _entries(root):
        if _fits(entry, config):
            return [_measurement(one) for one in entry["measurements"]]
    return []


def recommended(root: Path, config: EnvConfig) -> tuple[int, str] | None:
    """How many envs to run by the measurements of the way this config steps them, and the reason."""
    measurements = load(root, config)
    if not measurements:
        return None
    kind, _ = choose_vectorization(config)
    best = recommend([one for one in measurements if _is_way(one.setting, kind, config)])
    if best is None:
        return None
    n_envs, rate = best.setting.n_envs, best.steps_per_second
    return (
        n_envs,
        f"{n_envs}: the fewest near the best speed in `gymnast env bench` on this machine, {short(rate)} steps/s",
    )


def settled(resolved: Resolved, root: Path) -> Resolved:
    """`n_envs: auto` as its number on this machine, so that the config saved with a run repeats it anywhere."""
    config = resolved.config
    if config.env.n_envs != "auto":
        return resolved
    plan = make_plan(config, recommended=recommended(root, config.env))
    config = config.model_copy(update={"env": config.env.model_copy(update={"n_envs": plan.n_envs})})
    origins = {**resolved.origins, "env.n_envs": f"{AUTO}{plan.reasons['env.n_envs']}"}
    check_sizes(config, origins)
    return replace(resolved, config=config, origins=origins)


def short(rate: float) -> str:
    """A rate in three digits, such as `41k` or `1.2M`."""
    if rate >= 1e6:
        return f"{rate / 1e6:.3g}M"
    if rate >= 1e3:
        return f"{rate / 1e3:.3g}k"
    return f"{rate:.3g}"


def _is_way(setting: Setting, kind: str, config: EnvConfig) -> bool:
    """Whether a run with this config would be stepped like that."""
    wanted = config.n_workers if isinstance(config.n_workers, int) else cores()
    return setting.vectorization == kind and setting.n_workers in (None, min(wanted, setting.n_envs), wanted)


def _identity(config: EnvConfig) -> dict[str, Any]:
    """What makes an env the same one, as JSON gives it back."""
    data = config.model_dump(mode="json", include={"id", "kwargs", "wrappers", "time_limit"})
    return dict(json.loads(json.dumps(data)))


def _fits(entry: dict[str, Any], config: EnvConfig) -> bool:
    return bool(entry["env"] == _identity(config) and entry["machine"] == machine())


def _measurement(data: dict[str, Any]) -> Measurement:
    setting = Setting(data["vectorization"], data["n_envs"], data["n_workers"])
    return Measurement(setting, data["steps_per_second"])


def _entries(root: Path) -> list[dict[str, Any]]:
    """Everything in the file; a damaged one counts as empty, for it can be measured again."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        data = read_json(root / FILE)
        keys = {"env", "machine", "measurements"}
        return [entry for entry in data if isinstance(entry, dict) and keys <= entry.keys()]
    return []

"""Checkpoints: `checkpoints/step=<env_steps>/` with policy, state and a manifest of hashes; atomic, no pickle.

`policy.safetensors` is what is needed to act. `state.safetensors` and the `state` tree of the manifest are the rest:
the tree holds JSON values and, where a tensor was, `{"$tensor": name}`. Every file is verified before it is used,
because safetensors loads a flipped bit without complaint. What is too big for every checkpoint lies in `bulk`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.errors import CheckpointError
from gymnast.later import Later
from gymnast.runs import bulk, durable
from gymnast.runs.files import now
from gymnast.runs.manifest import FILE as MANIFEST
from gymnast.runs.manifest import FORMAT, Manifest, damaged, is_count, parse, sealed
from gymnast.runs.process import cpu_name, installed_version
from gymnast.runs.tree import decode, encode, encode_array

if TYPE_CHECKING:
    import safetensors
    import safetensors.torch as tensor_files
    import torch
    from torch import Tensor
else:
    safetensors, tensor_files, torch = Later("safetensors"), Later("safetensors.torch"), Later("torch")

POLICY, STATE = "policy.safetensors", "state.safetensors"
PARTS = frozenset({POLICY, STATE, MANIFEST})
ALWAYS = ("best", "last")
NEWEST = "newest"
"""Weights beyond `last`, from where a run cannot go on exactly."""
POINTERS = (*ALWAYS, NEWEST)
MASTER = "stage="
"""How the name of a pointer begins that holds the weights at the end of a plan's stage; the stage's name follows."""
_STEP = re.compile(r"step=(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint in memory, tensors on the CPU."""

    folder: Path
    policy: dict[str, Tensor]
    state: Any
    manifest: Manifest


# --- save ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packed:
    """A checkpoint as bytes, ready to be written; nothing in it changes any more."""

    step: int
    blobs: dict[str, bytes]
    bulk: Mapping[str, bulk.Series] = field(default_factory=dict)
    """Data that it refers to, which must be on disk before it is written."""


def pack(
    step: int,
    policy: dict[str, Tensor],
    state: Any,
    metrics: dict[str, Any],
    counters: dict[str, Any],
    series: Mapping[str, bulk.Series] | None = None,
) -> Packed:
    """Serialise a checkpoint in memory; `series` is the bulk data it refers to."""
    step = int(step)
    if step < 0:
        raise CheckpointError(f"A checkpoint needs a step of 0 or more, not {step}.")
    tensors: dict[str, Tensor] = {}
    tree = encode(state, tensors, "state")
    blobs = {POLICY: tensor_files.save(_ready(_checked_policy(policy))), STATE: tensor_files.save(_ready(tensors))}
    files = {name: {"sha256": hashlib.sha256(blob).hexdigest(), "size": len(blob)} for name, blob in blobs.items()}
    referred = {}
    if series:
        referred = {"bulk": {name: one.as_json() for name, one in series.items()}}
    blobs[MANIFEST] = sealed(
        format=FORMAT,
        step=step,
        created=now(),
        versions=versions(),
        counters=encode(counters, None, "counters"),
        metrics=encode(metrics, None, "metrics"),
        files=files,
        policy=list(policy),
        state=tree,
        **referred,
    )
    return Packed(step, blobs, series or {})


def packed_from(folder: Path) -> Packed:
    """A checkpoint on disk as bytes, as `pack` made it."""
    manifest = read_manifest(folder)
    blobs = {name: _read(Path(folder) / name) for name in (POLICY, STATE, MANIFEST)}
    return Packed(manifest.step, blobs, manifest.bulk)


def repacked(step: Any, blobs: Any) -> Packed:
    """A packed checkpoint out of another one's state, verified: its keys become names of files."""
    if not is_count(step) or not isinstance(blobs, dict) or blobs.keys() != PARTS:
        raise CheckpointError("An open evaluation of the checkpoint is damaged: it is not a checkpoint itself.")
    where = Path(f"step={step}")
    manifest = parse(blobs[MANIFEST], where / MANIFEST)
    for name in (POLICY, STATE):
        _verify(blobs[name], where / name, manifest)
    return Packed(step, blobs, manifest.bulk)


@contextlib.contextmanager
def understood(folder: Path) -> Iterator[None]:
    """Reading a checkpoint's state may fail anywhere, because anybody may have written it: that is an error of the checkpoint."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError, AssertionError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise damaged(folder / MANIFEST, f"its state does not fit this run ({what})") from error


def with_metrics(packed: Packed, metrics: dict[str, Any]) -> Packed:
    """The same checkpoint with more metrics in its manifest: what became known of it later."""
    content = json.loads(packed.blobs[MANIFEST])
    del content["sha256"]
    content["metrics"] |= encode(metrics, None, "metrics")
    return Packed(packed.step, {**packed.blobs, MANIFEST: sealed(**content)}, packed.bulk)


def write(
    run_folder: Path,
    packed: Packed,
    *,
    sync: bool = True,
    latest: bool = True,
    best: bool = False,
    newest: bool = False,
    master: str | None = None,
) -> Path:
    """Write a packed checkpoint and point `last` at it; whole or not at all, an older one stays until then.

    A checkpoint of the same step is replaced. `sync=False` skips fsync: safe against a kill, not against a power cut.
    `latest=False` leaves `last` alone: for the checkpoint of an earlier boundary. `best` points there before `last` does:
    a run killed between them goes on from before this checkpoint, and comes to it again. `newest` is for weights beyond
    `last`, which become old as soon as `last` moves on. `master` names the stage of a plan that has ended with this one.
    """
    checkpoints = Path(run_folder) / "checkpoints"
    target = checkpoints / f"step={packed.step}"
    temporary = durable.temporary_beside(checkpoints)
    try:
        checkpoints.mkdir(exist_ok=True)
        durable.sweep(checkpoints)
        temporary.mkdir()
        for name, blob in packed.blobs.items():
            durable.write_file(temporary / name, blob, sync)
        if sync:
            durable.sync_folder(temporary)
        durable.move(temporary, target)
        if best:
            durable.point(checkpoints, "best", target.name, sync)
        if newest:
            durable.point(checkpoints, NEWEST, target.name, sync)
        if master is not None:
            durable.point(checkpoints, f"{MASTER}{master}", target.name, sync)
        if latest:
            durable.point(checkpoints, "last", target.name, sync)
            (checkpoints / NEWEST).unlink(missing_ok=True)
        elif sync:
            durable.sync_folder(checkpoints)
    except OSError as error:
        raise CheckpointError(
            f"Checkpoint {target.name} could not be written in '{checkpoints}': {error.strerror or error}. "
            "The earlier checkpoints are intact. Free some space or check the folder's permissions, then resume."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # gone already when all went well
    return target


def prune(run_folder: Path, keep: int) -> list[str]:
    """Remove all but the newest `keep` checkpoints, `best`, `last` and the masters; returns the names of the removed ones."""
    checkpoints = Path(run_folder) / "checkpoints"
    protected = {read_pointer(run_folder, name) for name in POINTERS} | set(masters(run_folder).values())
    removed = [name for name in _newest_first(run_folder)[max(keep, 0) :] if name not in protected]
    for name in removed:
        _remove(checkpoints / name)
    return removed


def _remove(folder: Path) -> None:
    """Moved aside first: a process killed half-way through the removal leaves no half checkpoint."""
    temporary = durable.temporary_beside(folder.parent)
    folder.rename(temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def prune_bulk(run_folder: Path, in_memory: Iterable[Packed] = ()) -> list[str]:
    """Remove files of bulk data that no checkpoint refers to, on disk or `in_memory`; returns their names."""
    needed = {name for packed in in_memory for name in bulk.files_of(packed.bulk.values())}
    for step in steps(run_folder):
        try:
            manifest = read_manifest(Path(run_folder) / "checkpoints" / f"step={step}")
        except CheckpointError:
            return []  # what a damaged one needs is unknown
        needed |= bulk.files_of(manifest.bulk.values())
    return bulk.prune(Path(run_folder), needed)


def tidy(run_folder: Path, start: str, best_step: int | None = None) -> None:
    """Before going on from checkpoint `start`: remove what killed saves left, and write pointers that could not be written.

    Every save does so too, but a run may need none any more. `best_step` is the best that `start` knows of.
    """
    checkpoints = Path(run_folder) / "checkpoints"
    with contextlib.suppress(OSError):
        durable.sweep(checkpoints)
        for name in ALWAYS:
            if read_pointer(run_folder, name) is None:
                durable.point(checkpoints, name, start, True)
        known = f"step={best_step}"
        if (checkpoints / known).is_dir() and _step(read_pointer(run_folder, "best")) < _step(known):
            durable.point(checkpoints, "best", known, True)


def forget_after(run_folder: Path, step: int) -> None:
    """Remove checkpoints that lie beyond where the run goes on: it will come there again, by another way perhaps."""
    best = read_pointer(run_folder, "best")
    for later in steps(run_folder):
        name = f"step={later}"
        if later > step and name != best:
            _remove(Path(run_folder) / "checkpoints" / name)
    if read_pointer(run_folder, NEWEST) != f"step={step}":
        (Path(run_folder) / "checkpoints" / NEWEST).unlink(missing_ok=True)


def _step(name: str | None) -> int:
    if name is None:
        return -1
    return int(name.removeprefix("step="))


# --- find ---------------------------------------------------------------------------------------------------


def steps(run_folder: Path) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    try:
        names = [entry.name for entry in (Path(run_folder) / "checkpoints").iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in map(_STEP.fullmatch, names) if match)


def read_pointer(run_folder: Path, name: str) -> str | None:
    """The checkpoint `best` or `last` points at (`step=120000`); None when it points at none."""
    checkpoints = Path(run_folder) / "checkpoints"
    try:
        target = (checkpoints / name).read_text().strip()
    except (OSError, ValueError):
        return None
    if _STEP.fullmatch(target) and (checkpoints / target).is_dir():
        return target
    return None


def masters(run_folder: Path) -> dict[str, str]:
    """The checkpoint that each stage of a plan has ended with, by the name of the stage."""
    try:
        names = [entry.name for entry in (Path(run_folder) / "checkpoints").iterdir() if entry.name.startswith(MASTER)]
    except OSError:
        return {}
    found = {name.removeprefix(MASTER): read_pointer(run_folder, name) for name in names}
    known = {stage: target for stage, target in found.items() if target is not None}
    return dict(sorted(known.items(), key=lambda one: _step(one[1])))


def _newest_first(run_folder: Path) -> list[str]:
    """Names from `last` downwards; steps above `last` come at the end: a rewound attempt left them behind."""
    last = read_pointer(run_folder, "last")
    top = int(last.removeprefix("step=")) if last else math.inf
    return [f"step={step}" for step in sorted(steps(run_folder), key=lambda step: (step > top, -step))]


# --- load ---------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest:
    """Metrics, counters and versions of a checkpoint, verified against its own seal; does not touch the tensors."""
    path = Path(folder) / MANIFEST
    return parse(_read(path), path)


def load(folder: Path, *, with_state: bool = True) -> Checkpoint:
    """Read and verify a checkpoint; a damaged file is named. `with_state=False` reads only what is needed to act."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"There is no checkpoint '{folder}'.")
    manifest = read_manifest(folder)
    with torch.inference_mode(False):  # tensors made in inference mode could not be trained on
        unordered = _load_tensors(folder / POLICY, manifest)
        if unordered.keys() != set(manifest.policy):
            raise damaged(folder / MANIFEST, f"its list of names does not fit {POLICY}")
        policy = {name: unordered[name] for name in manifest.policy}
        if not with_state:
            return Checkpoint(folder, policy, None, manifest)
        tensors = _load_tensors(folder / STATE, manifest)
        try:
            state = decode(manifest.tree, tensors)
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise damaged(folder / MANIFEST, f"its state does not fit {STATE} ({error!r})") from error
    bulk.verify(folder.parent.parent, manifest.bulk.values())
    return Checkpoint(folder, policy, state, manifest)


def load_latest(
    run_folder: Path, *, with_state: bool = True, accept: Callable[[Checkpoint], bool] | None = None
) -> tuple[Checkpoint, list[str]]:
    """The newest checkpoint that is whole and `accept`ed, and a sentence about each damaged one that had to be skipped."""
    skipped: list[str] = []
    for name in _newest_first(run_folder):
        try:
            found = load(Path(run_folder) / "checkpoints" / name, with_state=with_state)
            with understood(found.folder):
                if accept is None or accept(found):
                    return found, skipped
        except CheckpointError as error:
            skipped.append(f"{name} was skipped: {error}")
    if skipped:
        raise CheckpointError(f"Run '{run_folder}' has no whole checkpoint. " + " ".join(skipped))
    raise CheckpointError(f"Run '{run_folder}' has no checkpoint yet.")


def read_verified(path: Path, manifest: Manifest) -> bytes:
    """The bytes of a checkpoint's tensor file, verified against the manifest."""
    raw = _read(path)
    _verify(raw, path, manifest)
    return raw


def _verify(raw: bytes, path: Path, manifest: Manifest) -> None:
    expected = manifest.files.get(path.name, {})
    if len(raw) != expected.get("size"):
        raise damaged(path, f"it has {len(raw)} bytes instead of {expected.get('size')}")
    if hashlib.sha256(raw).hexdigest() != expected.get("sha256"):
        raise damaged(path, "its content does not match its checksum")


def _load_tensors(path: Path, manifest: Manifest) -> dict[str, Tensor]:
    raw = read_verified(path, manifest)
    try:
        return tensor_files.load(raw)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise damaged(path, f"it is not a safetensors file ({error})") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error


# --- tensors -------------------------------------------------------------------------------------------------


def _checked_policy(policy: dict[str, Tensor]) -> dict[str, Tensor]:
    """The policy's tensors, refused when the file format cannot hold one of them as it is."""
    tensors: dict[str, Tensor] = {}
    for name, value in policy.items():
        entry = encode_array(value, tensors, name)
        if entry != {"$tensor": name}:
            raise CheckpointError(
                f"The policy tensor '{name}' cannot be saved: it is a {type(value).__name__} of {value.dtype}. "
                "Convert it to a tensor of a usual type first."
            )
    return tensors


def _ready(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous (channels-last is refused) and without shared memory (views of one flat tensor are refused)."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        ready = tensor.contiguous()
        memory = ready.untyped_storage().data_ptr()
        if memory in seen:
            ready = ready.clone()
            memory = ready.untyped_storage().data_ptr()
        seen.add(memory)
        result[name] = ready
    return result


@functools.cache
def versions() -> dict[str, str]:
    """What wrote a checkpoint: packages, and the kind of CPU, on which the last bits depend too."""
    found = {name: installed_version(name) for name in ("gymnast", "numpy", "gymnasium")}
    cpu = f"{cpu_name()} ({torch.backends.cpu.get_cpu_capability()})"
    return {**found, "torch": torch.__version__, "python": platform.python_version(), "cpu": cpu}

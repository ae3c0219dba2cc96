"""`train.init_from` as a fact: what a reference names now, by a name that means the same tomorrow."""

from __future__ import annotations

from pathlib import Path

from gymnast.errors import UsageError
from gymnast.runs.refs import resolve_checkpoint


def is_model_file(reference: str) -> bool:
    """Whether a reference names a model file instead of a run."""
    return reference.lower().endswith(".zip")


def pinned(root: Path, reference: str) -> str:
    """`@last` → `k3v9x/step=4096`; runs of another folder and model files by their absolute path."""
    if is_model_file(reference):
        path = Path(reference).expanduser().resolve()
        if not path.is_file():
            raise UsageError(f"There is no file '{reference}'.")
        return str(path)
    run, name = resolve_checkpoint(root, reference)
    here = run.root.resolve() == Path(root).resolve()
    return f"{run.id if here else run.folder.resolve()}/{name}"

"""Run folders for tests, made in a moment and without torch: real files, only the weights are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnast.runs.index import upsert
from gymnast.runs.store import Run


def make_run(root: Path, *, env: str = "CartPole-v1", algo: str = "ppo", seed: int = 0, **kwargs: Any) -> Run:
    """A run of this process in state `running`; `kwargs` are those of its env."""
    env_section = {"id": env, "kwargs": kwargs}
    data = {"name": f"{env}:{algo}", "env": env_section, "algo": {"id": algo}, "train": {"seed": seed}}
    run = Run.create(root, data)
    run.metrics_path.write_text('{"env_steps":64,"eval/return_mean":9.5}\n')
    run.log_path.write_text("a line\n")
    upsert(run)
    return run


def finished_run(root: Path, score: float | None = None, state: str = "finished", **settings: Any) -> Run:
    """A run that ended, evaluated at `score`."""
    run = make_run(root, **settings)
    run.finish(state, "budget spent", best_return=score, last_return=score, env_steps=64, wall_seconds=2.0)
    upsert(run)
    return run


def add_checkpoints(run: Run, *steps: int, best: int | None = None) -> None:
    """Folders with the names of checkpoints; the last step is `last`."""
    for step in steps:
        folder = run.checkpoints / f"step={step}"
        folder.mkdir()
        for name in ("manifest.json", "policy.safetensors", "state.safetensors"):
            (folder / name).write_bytes(f"{name} {step}".encode() * 20)
    (run.checkpoints / "last").write_text(f"step={steps[-1]}\n")
    (run.checkpoints / "best").write_text(f"step={steps[0] if best is None else best}\n")


def contents(folder: Path) -> dict[str, bytes]:
    """Everything under a folder but the index, which a listing may write."""
    files = [path for path in folder.rglob("*") if path.is_file() and "index" not in path.name]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}

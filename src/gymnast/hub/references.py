"""Which references name a file instead of a run; light, so that mistakes are found before torch is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gymnast.errors import UsageError


def is_model_file(reference: str) -> bool:
    """Whether a reference is a Stable-Baselines3 model file."""
    return reference.lower().endswith(".zip")


def check_reference(reference: str, env: str | None, vecnormalize: str | Path | Literal[False] | None = None) -> None:
    """Refuse a model file without its env, and options for model files next to a run."""
    if not is_model_file(reference):
        if env is not None:
            given = "--env"
        elif vecnormalize is not None:
            given = "--vecnormalize"
        else:
            given = None
        if given:
            raise UsageError(
                f"{given} is for model files (model.zip); '{reference}' is a run and has its own env and statistics."
            )
        return
    if not Path(reference).is_file():
        raise UsageError(f"There is no file '{reference}'.")
    if vecnormalize and not Path(vecnormalize).is_file():
        raise UsageError(f"There is no file '{vecnormalize}' (--vecnormalize).")
    if not env:
        raise UsageError(
            f"'{reference}' does not say which environment it plays: name it with --env, for example --env CartPole-v1."
        )

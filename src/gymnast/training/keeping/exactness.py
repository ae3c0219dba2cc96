"""Where the promise of equal bits ends: what a resume must say before it goes on."""

from __future__ import annotations

from gymnast.config.schema import RunConfig
from gymnast.runs.checkpoint import versions

DECIDE_BITS = ("torch", "numpy", "gymnasium", "cpu")
"""What rounds, or steps an env, differently in another version."""


def caveats(config: RunConfig, written_with: dict[str, str], device: str) -> list[str]:
    """One sentence for each reason why a continuation may differ from the uninterrupted run in the last bits."""
    here = versions()
    changed = []
    for name in DECIDE_BITS:
        if name not in written_with or written_with[name] == here[name]:
            continue
        if name == "cpu":  # its name says what it is
            changed.append(f"{written_with[name]} instead of {here[name]}")
        else:
            changed.append(f"{name} {written_with[name]}, not {here[name]}")
    said = []
    if changed:
        said.append(
            f"The checkpoint was written with {'; '.join(changed)}: the run goes on, but its bits may differ from those of an "
            "uninterrupted run."
        )
    if device == "cuda" and not config.train.deterministic:
        said.append(
            "On a GPU bits repeat only with train.deterministic=true: this run goes on, but not to the same bits."
        )
    return said

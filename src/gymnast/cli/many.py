"""What `train` is asked for besides one run: several seeds, or a chain. Without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from gymnast.errors import UsageError

Until = Literal["solved", "end"]


@dataclass(frozen=True)
class Several:
    """More than one run of one config."""

    seeds: int | list[int] = 1
    jobs: int | None = None
    """Runs at the same time; as many as there are cores where it is None."""
    chain: int | None = None
    """Runs of which each begins with the best weights of the one before."""
    until: Until = "solved"


def several_of(
    seeds: str | None, jobs: int | None, chain: int | None, until: str | None, alone: dict[str, bool]
) -> Several | None:
    """What the options say; None for one run. `alone` are options that go with one run only, and whether they are given."""
    if seeds is None and chain is None:
        if jobs is not None:
            extra = "--jobs"
        elif until is not None:
            extra = "--until"
        else:
            extra = None
        if extra is not None:
            needed = "--seeds" if extra == "--jobs" else "--chain"
            raise UsageError(f"{extra} says how {needed} trains: give {needed}, too.")
        return None
    name = "--seeds" if seeds is not None else "--chain"
    if seeds is not None and chain is not None:
        raise UsageError("Give --seeds or --chain, not both: for a chain per seed, run one command per seed.")
    for other, given in alone.items():
        if given:
            raise UsageError(f"{other} is for one run, and {name} trains several.")
    if until not in (None, "solved", "end"):
        raise UsageError(
            f"--until is 'solved' (a chain ends with the run that solves the env) or 'end', not '{until}'."
        )
    if seeds is None:
        return Several(chain=chain, until=cast("Until", until or "solved"))
    return Several(seeds=_numbers(seeds), jobs=jobs)


def _numbers(text: str) -> int | list[int]:
    """`5` is how many, `0,7,12` are the seeds themselves."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() for word in words):
        raise UsageError(f"--seeds takes a number of seeds (5) or the seeds themselves (0,7,12), not '{text}'.")
    numbers = [int(word) for word in words]
    if "," not in text:
        return numbers[0]
    return numbers

"""Runs one after the other, each from the best checkpoint of the one before (RUN-9).

Whether the optimizer's moments should come along is asked by doing both: two chains share their first run, and one of them
takes the optimizer over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gymnast.config.load import Resolved
from gymnast.errors import UsageError
from gymnast.runs import lineage
from gymnast.runs.origin import pinned
from gymnast.runs.settling import settle_envs
from gymnast.runs.store import Run
from gymnast.training.keeping.result import TrainResult

Until = Literal["solved", "end"]
ORIGIN = "chain"
"""Where the settings come from that a link of a chain has of its own, for `runs show`."""
SHORTEST = 2


@dataclass(frozen=True)
class Link:
    """One run of a chain."""

    run: Run
    before: float | None
    """Score of the weights it began with, before its first update; None for the first run."""
    best: float | None
    """Its best evaluation."""
    solved: bool
    env_steps: int
    vec_steps: int


@dataclass
class Chain:
    """Runs of which each began with the one before."""

    optimizer: bool
    """Whether the optimizer's state came along."""
    links: list[Link] = field(default_factory=list)

    @property
    def solved(self) -> bool:
        """Whether its last run solved the env."""
        return bool(self.links) and self.links[-1].solved


@dataclass(frozen=True)
class ChainResult:
    """Both chains; the first run is the same in both."""

    fresh: Chain
    """Each run begins with new moments."""
    kept: Chain
    """Each run goes on with the moments of the one before."""
    interrupted: bool = False

    @property
    def chains(self) -> Sequence[Chain]:
        """Without the optimizer, and with it."""
        return (self.fresh, self.kept)


def train_chain(
    resolved: Resolved,
    length: int,
    root: Path,
    *,
    here: Callable[[Resolved], TrainResult | None],
    until: Until = "solved",
    said: Callable[[str], None] = lambda _: None,
) -> ChainResult:
    """Train two chains of `length` runs; one that has solved its env ends there, unless `until` is `end`.

    `here` trains one run, `said` is called with what comes next.
    """
    if length < SHORTEST:
        raise UsageError(f"A chain has at least {SHORTEST} runs (got {length}); one run is trained without --chain.")
    resolved = settle_envs(resolved, root)
    chains = (Chain(optimizer=False), Chain(optimizer=True))
    said(f"run 1 of {length}, the first of both chains")
    first = here(_with_origin(resolved, root))
    if first is None:
        return ChainResult(*chains, interrupted=True)
    for chain in chains:
        chain.links.append(_link(first, None))
    stopped = first.interrupted
    for chain in chains:
        while not stopped and len(chain.links) < length and not (chain.solved and until == "solved"):
            how = "with" if chain.optimizer else "without"
            said(f"run {len(chain.links) + 1} of {length}, {how} the optimizer of the run before")
            result = here(_next(resolved, chain, root))
            if result is None:
                return ChainResult(*chains, interrupted=True)
            chain.links.append(_link(result, lineage.read(result.run.folder).parent))
            stopped = result.interrupted
    return ChainResult(*chains, interrupted=stopped)


def _with_origin(resolved: Resolved, root: Path) -> Resolved:
    """The config with its own `init_from` named for good: @last must not become a run of the chain."""
    source = resolved.config.train.init_from
    if source is None:
        return resolved
    train = resolved.config.train.model_copy(update={"init_from": pinned(root, source)})
    return replace(resolved, config=resolved.config.model_copy(update={"train": train}))


def _next(resolved: Resolved, chain: Chain, root: Path) -> Resolved:
    """From the best checkpoint of the last run, under a seed of its own: the same one would repeat the same episodes."""
    train = resolved.config.train
    values = {
        "init_from": pinned(root, chain.links[-1].run.id),
        "init_optimizer": chain.optimizer,
        "seed": train.seed + len(chain.links),
    }
    origins = {**resolved.origins, **{f"train.{name}": ORIGIN for name in values}}
    config = resolved.config.model_copy(update={"train": train.model_copy(update=values)})
    return replace(resolved, config=config, origins=origins)


def _link(result: TrainResult, parent: dict[str, Any] | None) -> Link:
    scores = (parent or {}).get("score_before_training") or {}
    if scores.get("exact") is None:
        before = scores.get("mean")
    else:
        before = scores["exact"]
    best = result.best
    if best is None and result.evaluation is not None:
        best = result.evaluation.score
    return Link(
        run=result.run,
        before=float(before) if isinstance(before, (int, float)) else None,
        best=best,
        solved=result.solved,
        env_steps=result.env_steps,
        vec_steps=result.vec_steps,
    )

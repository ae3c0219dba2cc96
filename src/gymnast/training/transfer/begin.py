"""`train.init_from`: a new run begins with the weights of another (RUN-9).

Layers load whole, where every tensor fits by name and shape; the others stay as they were initialised, and the reason is
told. Statistics of the normalisers come along, so that the loaded layers read what they were trained on.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from gymnast.config.load import Resolved
from gymnast.config.schema import PolicyConfig, RunConfig
from gymnast.errors import CheckpointError, GymnastError, UsageError
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.metrics.verdict import spread
from gymnast.runs import checkpoint, lineage
from gymnast.runs.manifest import Manifest
from gymnast.runs.origin import is_model_file, pinned
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run
from gymnast.runs.trust import usable
from gymnast.training.evaluating.cadence import UNKNOWN_HORIZON, EvalCadence
from gymnast.training.evaluating.jobs import Evaluations
from gymnast.training.keeping.report import Reporter
from gymnast.training.trainer import Trainer
from gymnast.training.transfer.fitting import NORMALISER, Part, fit, layers_of, nothing_learnt

REWARDS, OPTIMIZER = "reward statistics", "optimizer"
TURN = 1_000_001
"""Number of the evaluation before training: training counts from 0, `gymnast eval` plays number 1,000,000."""
MEANING = ("activation", "normalize_obs", "squash_actions", "background")
"""Settings of the policy under which the same tensors compute something else."""


@dataclass(frozen=True)
class Score:
    """How the source was evaluated."""

    mean: float
    std: float | None
    env_steps: int
    episodes: int | None = None
    exact: float | None = None
    evaluated: bool = True
    """False: these weights were never evaluated, and this is the return in training."""

    def sentence(self) -> str:
        """`487.2 ± 12.0 at step 40,000`."""
        deviation = ""
        if self.std is not None:
            deviation = f" ± {spread(self.std, self.mean)}"
        exact = ""
        if self.exact is not None:
            exact = f" (exact expectation {self.exact:.4g})"
        kind = "" if self.evaluated else " in training"
        return f"{self.mean:.4g}{deviation}{exact}{kind} at step {self.env_steps:,}"


@dataclass(frozen=True)
class Source:
    """Where weights come from, read and verified."""

    reference: str
    """What `train.init_from` becomes: it still names the same weights tomorrow."""
    title: str
    tensors: Mapping[str, Tensor]
    policy: PolicyConfig
    about: dict[str, Any]
    """Facts for the lineage; `sha256` is that of the weights."""
    env: str | None = None
    score: Score | None = None
    rewards: dict[str, Any] | None = None
    """State of the reward scaler."""
    optimizer: tuple[str, dict[str, Any]] | None = None
    """Its kind and its state."""
    notices: tuple[str, ...] = ()

    def pin(self, resolved: Resolved) -> Resolved:
        """The config with this source in place of a reference that means another run tomorrow."""
        train = resolved.config.train.model_copy(update={"init_from": self.reference})
        return dataclasses.replace(resolved, config=resolved.config.model_copy(update={"train": train}))


@dataclass
class Transfer:
    """What a new run took over, and how good that is before it learns anything."""

    source: Source
    env: str
    """Of the new run."""
    parts: list[Part]
    notes: list[str]
    """What fits by shape and still does not compute the same."""
    parameters: tuple[int, int]
    """Loaded, and all of the new network."""
    evaluation: Evaluation | None = None

    def lines(self) -> list[str]:
        """For the summary before training."""
        loaded, total = self.parameters
        lines = [f"{'from':>8}  {self.source.title}: {loaded:,} of {total:,} parameters"]
        reasons: dict[tuple[str, str], list[str]] = {}
        for part in self.parts:
            reasons.setdefault((part.outcome, part.why), []).append(part.name)
        for (outcome, why), names in sorted(reasons.items(), key=lambda item: item[0][0] != "loaded"):
            because = f" ({why})" if why else ""
            lines.append(f"{'':>8}  {outcome}: {', '.join(names)}{because}")
        return lines + [f"{'':>8}  {notice}" for notice in self.source.notices]

    def comparison(self) -> str:
        """The source's score next to that of the new run before its first update."""
        source, here = self.source, self.evaluation
        score = "not evaluated" if source.score is None else source.score.sentence()
        where = ""
        if source.env not in (None, self.env):
            where = f" on {source.env}"
        return f"source {score}{where} · here before training {here.sentence() if here else 'not evaluated'}"

    def as_json(self) -> dict[str, Any]:
        """The parent in the lineage."""
        source = self.source
        return {
            "source": source.reference,
            "title": source.title,
            **source.about,
            "loaded": [part.name for part in self.parts if part.loaded],
            "skipped": {part.name: part.why for part in self.parts if not part.loaded},
            "parameters": list(self.parameters),
            "notes": self.notes,
            "source_score": None if source.score is None else dataclasses.asdict(source.score),
            "score_before_training": None if self.evaluation is None else self.evaluation.as_json(),
            "comparison": self.comparison(),
        }


# ---- the source ----------------------------------------------------------------------------------------------------


def find_source(config: RunConfig, root: Path) -> Source | None:
    """The checkpoint that `train.init_from` names, read and verified; None when it names nothing."""
    reference = config.train.init_from
    if reference is None:
        return None
    if is_model_file(reference):
        raise UsageError(f"'{reference}' is a model file: only `gymnast train` and gymnast.train can start from one.")
    reference = pinned(root, reference)
    run, name = resolve_checkpoint(root, reference)
    saved = checkpoint.load(run.checkpoints / name)
    theirs = usable(run, playing=False).config
    with checkpoint.understood(saved.folder):
        rewards = saved.state["session"].get("algorithm", {}).get("reward_scaler")
        optimizer = saved.state["session"]["optimizer"]
    return Source(
        reference=reference,
        title=f"run {run.id}, {name} ({theirs.name})",
        tensors=saved.policy,
        policy=theirs.policy,
        about={
            "run": run.id,
            "checkpoint": name,
            "env": theirs.env.id,
            "sha256": saved.manifest.files[checkpoint.POLICY]["sha256"],
            "ancestors": lineage.ancestors_of(lineage.read(run.folder)),
        },
        env=theirs.env.id,
        score=_score(run, saved.manifest),
        rewards=rewards,
        optimizer=(theirs.algo.optimizer.id, optimizer),
    )


def _score(run: Run, manifest: Manifest) -> Score | None:
    """From the checkpoint, or from its row: an evaluation next to training may have ended after the checkpoint."""
    metrics = manifest.metrics
    if metrics.get("eval/return_mean") is None:
        rows = (row for row in MetricRows(run.metrics_path) if row["env_steps"] == manifest.step)
        metrics = metrics | next(rows, {})
    mean = metrics.get("eval/return_mean")
    if mean is not None:
        episodes = metrics.get("eval/episodes")
        return Score(
            mean,
            metrics.get("eval/return_std"),
            manifest.step,
            None if episodes is None else int(episodes),
            metrics.get("eval/exact_return"),
        )
    mean = metrics.get("rollout/return_mean")
    if mean is None:
        return None
    return Score(mean, None, manifest.step, evaluated=False)


# ---- taking over ---------------------------------------------------------------------------------------------------


def take_over(trainer: Trainer, source: Source) -> Transfer:
    """Load what fits into a trainer that has not begun; a UsageError when nothing does, or not what was asked for."""
    _refuse_broken(source)
    own = trainer.policy.state_dict()
    parts = fit(own, source.tensors)
    if nothing_learnt(parts):
        raise _nothing_fits(trainer, source, parts)
    with checkpoint.understood(Path(source.reference)):
        extras = [part for part in (_rewards(trainer, source), _optimizer(trainer, source, parts)) if part is not None]
    loaded = {part.name for part in parts if part.loaded}
    names = [name for layer, names in layers_of(own).items() if layer in loaded for name in names]
    for name in names:
        own[name].copy_(source.tensors[name])
    if trainer.policy.encoder.norm is not None:
        trainer.policy.encoder.norm.refresh()
    counts = {name: parameter.numel() for name, parameter in trainer.policy.named_parameters()}
    shares = sum(counts.get(name, 0) for name in names), sum(counts.values())
    return Transfer(source, trainer.config.env.id, parts + extras, _notes(trainer.config, source), shares)


def _refuse_broken(source: Source) -> None:
    for name, tensor in source.tensors.items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"{source.title} has NaN or infinity in '{name}': start from an earlier checkpoint.")


def _nothing_fits(trainer: Trainer, source: Source, parts: list[Part]) -> UsageError:
    theirs, ours = source.policy, trainer.config.policy
    keys = ("hidden", "critic_hidden", "shared_trunk", "layer_norm", "batch_norm")
    settings = [
        f"policy.{key}={_text(getattr(theirs, key))}" for key in keys if getattr(theirs, key) != getattr(ours, key)
    ]
    advice = f" It was made with {', '.join(settings)}." if settings else ""
    reasons = "; ".join(f"{part.name}: {part.why}" for part in [part for part in parts if not part.loaded][:3])
    return UsageError(
        f"Nothing of {source.title} fits the network of {trainer.config.name}, so there is nothing to start from "
        f"({reasons}).{advice}"
    )


def _rewards(trainer: Trainer, source: Source) -> Part | None:
    """Statistics of rewards mean nothing in an env with other rewards; the sums of running episodes start afresh."""
    scaler = trainer.reward_scaler
    if scaler is None:
        if source.rewards is None:
            return None
        return Part(REWARDS, "not scaled in the new run", new=False)
    if source.rewards is None:
        return Part(REWARDS, "missing in the source")
    if source.env != trainer.config.env.id:
        return Part(REWARDS, f"the source's are those of {source.env}")
    scaler.load_state({**source.rewards, "sums": scaler.state()["sums"]})
    return Part(REWARDS)


def _optimizer(trainer: Trainer, source: Source, parts: list[Part]) -> Part:
    if not trainer.config.train.init_optimizer:
        return Part(OPTIMIZER, "train.init_optimizer is false")
    why = None
    kind = trainer.config.algo.optimizer.id
    unlike = next((part for part in parts if not part.loaded and part.name != NORMALISER), None)
    if source.optimizer is None:
        why = "a model file holds none that could be read"
    elif source.optimizer[0] != kind:
        why = f"that is the state of {source.optimizer[0]}, and this run uses {kind}"
    elif unlike is not None:
        why = f"the networks differ in {unlike.name} ({unlike.why})"
    if why is not None or source.optimizer is None:
        raise UsageError(
            f"train.init_optimizer=true requests the optimizer's state of {source.title}, but {why}. "
            "Start with a fresh optimizer instead: train.init_optimizer=false"
        )
    trainer.optimizer.load_state(source.optimizer[1])
    return Part(OPTIMIZER)


def _notes(config: RunConfig, source: Source) -> list[str]:
    """Settings that the loaded layers do not know of."""
    notes = []
    for key in MEANING:
        theirs, ours = getattr(source.policy, key), getattr(config.policy, key)
        if key == "activation" and not (source.policy.hidden or source.policy.critic_hidden):
            continue  # a CNN with linear heads has none of these
        if theirs != ours:
            notes.append(
                f"policy.{key} was {_text(theirs)} in the source and is {_text(ours)} here: the loaded layers now compute "
                f"something else. policy.{key}={_text(theirs)} keeps it."
            )
    return notes


def _text(value: Any) -> str:
    """As it is written in a config."""
    if isinstance(value, str):
        return value
    return json.dumps(value)


# ---- the beginning of a run ----------------------------------------------------------------------------------------


def evaluate_beginning(
    transfer: Transfer,
    trainer: Trainer,
    evaluations: Evaluations,
    cadence: EvalCadence,
    reporter: Reporter,
    run: Run,
) -> None:
    """Record the parent, and evaluate before the first update; nothing that training draws from or counts is touched."""
    _record(run, transfer)
    extent = cadence.extent(trainer.config.eval.episodes, None, UNKNOWN_HORIZON)
    transfer.evaluation = evaluations.here(trainer.policy, TURN, extent, what="evaluating before training")
    _record(run, transfer)
    reporter.say(transfer.comparison())


def _record(run: Run, transfer: Transfer) -> None:
    try:
        lineage.set_parent(run.folder, transfer.as_json())
    except OSError as error:
        raise GymnastError(f"'{run.folder / lineage.FILE}' cannot be written: {error.strerror or error}.") from error


def begin_again(trainer: Trainer, run: Run) -> None:
    """Load the first weights of a run that began with another's once more, to repeat it."""
    source = find_source(trainer.config, run.root)
    if source is None:
        return
    parent = lineage.read(run.folder).parent
    if parent is not None and parent.get("sha256") != source.about["sha256"]:
        raise UsageError(f"Run {run.id} began with {source.reference}, whose weights have changed since.")
    take_over(trainer, source)

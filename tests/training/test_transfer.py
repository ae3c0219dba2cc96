"""`train.init_from`: what a new run takes over from another, what it says about it, and that it is exact (RUN-9)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved as saved_checkpoints
import torch
from faults.server import Server
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, end_of, resume, run, small

import gymnast
from gymnast.config.load import Resolved
from gymnast.errors import CheckpointError, ConfigError, UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint, index, lineage
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training import train
from gymnast.training.build import build
from gymnast.training.diagnostics.rewind import rewind
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.jobs import Evaluations
from gymnast.training.keeping.signals import StopRequest
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.trainer import policy_tensors
from gymnast.training.transfer.begin import Transfer, find_source, take_over
from gymnast.training.transfer.fitting import fit

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
PENDULUM = {"id": "Pendulum-v1", "time_limit": 30}
STATISTICS: dict[str, Any] = {
    "policy": {"hidden": [16], "normalize_obs": True},
    "algo": {"id": "ppo", "n_steps": 16, "batch_size": 32, "normalize_reward": True},
}
DEEP: dict[str, Any] = {"policy": {"hidden": [16, 16]}}
SHORT = {"env_steps": 3 * PER_ITERATION}


def begun(reference: str, algorithm: str = "ppo", env: dict[str, Any] | None = None, **changes: Any) -> Resolved:
    """The config of a run that begins with another's weights."""
    base = small("ppo", CARTPOLE).config.train.model_dump()
    train = {**base, "init_from": reference, "seed": 5, **changes.pop("train", {})}
    return small(algorithm, env or CARTPOLE, train=train, **changes)


@dataclass(frozen=True)
class House:
    """A folder with a run of each kind."""

    root: Path
    full: Run
    """CartPole with statistics of observations and rewards."""
    deep: Run
    actor: Run
    """REINFORCE without a critic."""
    pendulum: Run


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Made once: nothing here changes them."""
    root = tmp_path_factory.mktemp("house")
    reinforce: dict[str, Any] = {"algo": {"id": "reinforce", "baseline": "mean"}}
    return House(
        root,
        full=run(small("ppo", CARTPOLE, **STATISTICS), root).run,
        deep=run(small("ppo", CARTPOLE, **DEEP, train=SHORT), root).run,
        actor=run(small("reinforce", CARTPOLE, **reinforce, train=SHORT), root).run,
        pendulum=run(small("ppo", PENDULUM, train=SHORT), root).run,
    )


@pytest.fixture
def own(house: House, tmp_path: Path) -> Run:
    """A copy of the full run, alone in a folder, to do as one likes with."""
    shutil.copytree(house.full.folder, tmp_path / "runs" / house.full.id)
    copy = Run(tmp_path / "runs" / house.full.id)
    index.upsert(copy)
    return copy


@contextmanager
def taken(resolved: Resolved, root: Path) -> Iterator[tuple[OnPolicyTrainer, Transfer]]:
    """A trainer that took over what fits."""
    source = find_source(resolved.config, root)
    assert source is not None
    trainer = build(resolved.config)
    try:
        yield trainer, take_over(trainer, source)
    finally:
        trainer.close()


def best(trained: Run) -> checkpoint.Checkpoint:
    """What a reference without a checkpoint names."""
    return checkpoint.load(trained.checkpoints / str(checkpoint.read_pointer(trained.folder, "best")))


def reasons(transfer: Transfer) -> dict[str, str]:
    """By part; empty for what was loaded."""
    return {part.name: part.why for part in transfer.parts if part.name != "optimizer"}


def parent_of(trained: Run) -> dict[str, Any]:
    """What its lineage says."""
    parent = lineage.read(trained.folder).parent
    assert parent is not None
    return parent


# ---- what is loaded ------------------------------------------------------------------------------------------------


def test_all_that_fits_is_taken_over_to_the_bit(house: House) -> None:
    """Weights and both kinds of statistics, for another number of envs; the warm-up does not overwrite them."""
    source = best(house.full)
    with taken(begun(house.full.id, env={**CARTPOLE, "n_envs": 2}, **STATISTICS), house.root) as (trainer, transfer):
        layers = {f"{chain}.layers.{i}": "" for chain in ("actor", "critic") for i in (0, 1)}
        assert reasons(transfer) == {"encoder.norm": "", "reward statistics": "", **layers}
        trainer.start()
        assert not differences(dict(policy_tensors(trainer.policy)), dict(source.policy))
        norm = trainer.policy.encoder.norm
        assert norm is not None
        assert torch.equal(norm.shift, source.policy["encoder.norm.mean"].float())
        theirs, ours = (
            state["reward_scaler"] for state in (source.state["session"]["algorithm"], trainer.algorithm.state())
        )
        assert {key: ours[key] for key in ("mean", "m2", "count")} == {
            key: theirs[key] for key in ("mean", "m2", "count")
        }
        assert theirs["count"] > 0
        np.testing.assert_array_equal(ours["sums"], [0.0, 0.0])
        assert float(trainer.optimizer.state()["step"]) == 0
        total = trainer.flat.values.numel()
        assert transfer.parameters == (total, total)


OTHER_HEADS = {"actor.layers.2": "2×16 in the source, 3×16 here"}
CRITIC = dict.fromkeys(("critic.layers.0", "critic.layers.1"), "missing in the source")
CASES: dict[str, tuple[str, Resolved, dict[str, str]]] = {
    "another algorithm": ("full", begun("x", "a2c", policy=STATISTICS["policy"]), {}),
    "other observations and actions": (
        "deep",
        begun("x", env={"id": "Acrobot-v1", "time_limit": 40}, **DEEP),
        OTHER_HEADS | dict.fromkeys(("actor.layers.0", "critic.layers.0"), "16×4 in the source, 16×6 here"),
    ),
    "other observations, statistics": (
        "full",
        begun("x", env={**CARTPOLE, "wrappers": [{"id": "observation_stack", "size": 2}]}, **STATISTICS),
        {"encoder.norm": "4 in the source, 8 here"}
        | dict.fromkeys(("actor.layers.0", "critic.layers.0"), "16×4 in the source, 16×8 here"),
    ),
    "a deeper network": (
        "full",
        begun("x", policy={"hidden": [16, 16], "normalize_obs": True}),
        {
            "actor.layers.1": "2×16 in the source, 16×16 here",
            "critic.layers.1": "1×16 in the source, 16×16 here",
            "actor.layers.2": "missing in the source",
            "critic.layers.2": "missing in the source",
        },
    ),
    "a new critic": ("actor", begun("x"), CRITIC),
    "no critic any more": (
        "deep",
        begun("x", "reinforce", **DEEP, algo={"id": "reinforce", "baseline": "mean"}),
        {f"critic.layers.{i}": "not in the new network" for i in range(3)},
    ),
    "no statistics any more": ("full", begun("x"), {"encoder.norm": "not in the new network"}),
    "other layers in the critic": (
        "deep",
        begun("x", policy={"hidden": [16, 16], "critic_hidden": [16, 8]}),
        {"critic.layers.1": "16×16 in the source, 8×16 here", "critic.layers.2": "1×16 in the source, 1×8 here"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rest_is_loaded_and_every_layer_has_its_reason(case: str, house: House) -> None:
    """What does not fit is exactly as in a run from nothing."""
    name, resolved, expected = CASES[case]
    trained: Run = getattr(house, name)
    resolved.config = resolved.config.model_copy(
        update={"train": resolved.config.train.model_copy(update={"init_from": trained.id})}
    )
    untouched = build(resolved.config)
    untouched.close()
    fresh, source = policy_tensors(untouched.policy), best(trained).policy
    with taken(resolved, house.root) as (trainer, transfer):
        found = reasons(transfer)
        assert {layer: why for layer, why in found.items() if why and layer != "reward statistics"} == expected
        for tensor_name, tensor in policy_tensors(trainer.policy).items():
            loaded = not found[tensor_name.rpartition(".")[0]]
            assert torch.equal(tensor, source[tensor_name] if loaded else fresh[tensor_name]), tensor_name
        assert 0 < transfer.parameters[0] <= transfer.parameters[1]
        trainer.start()
        norm = trainer.policy.encoder.norm
        assert norm is None or norm.count > 0


def test_layers_of_the_same_shape_in_another_place_are_not_mixed_up() -> None:
    """A hidden layer with as many outputs as there are actions is not the output layer; a spread goes with its layer."""
    square, pair, spread = torch.zeros(2, 2), torch.zeros(2), torch.zeros(2)

    def chain(count: int) -> dict[str, torch.Tensor]:
        tensors = {
            f"actor.layers.{i}.{what}": one for i in range(count) for what, one in (("weight", square), ("bias", pair))
        }
        return {"log_std": spread, **tensors}

    parts = {part.name: part.why for part in fit(chain(2), chain(3))}
    assert parts == {
        "actor.layers.0": "",
        "actor.layers.1": "an output layer in one network, a hidden one in the other",
        "log_std": "without the actor's output layer",
        "actor.layers.2": "not in the new network",
    }
    assert not any(part.why for part in fit(chain(2), chain(2)))
    assert fit(chain(1), {"actor.layers.0.weight": square})[1].why == "actor.layers.0.bias is missing in the source"


def test_reward_statistics_stay_in_their_env(house: House) -> None:
    with taken(begun(house.deep.id, **(STATISTICS | DEEP)), house.root) as (_, transfer):
        assert reasons(transfer)["reward statistics"] == "missing in the source"
    acrobot = begun(house.full.id, env={"id": "Acrobot-v1", "time_limit": 40}, **STATISTICS)
    with taken(acrobot, house.root) as (trainer, transfer):
        assert reasons(transfer)["reward statistics"] == "the source's are those of CartPole-v1"
        assert trainer.algorithm.state()["reward_scaler"]["count"] == 0
        assert reasons(transfer)["critic.layers.1"] == ""


def test_settings_that_change_what_the_weights_mean_are_warned_of(house: House) -> None:
    with taken(begun(house.full.id, policy={"hidden": [16], "activation": "relu"}), house.root) as (_, transfer):
        assert [note.partition(":")[0] for note in transfer.notes] == [
            "policy.activation was tanh in the source and is relu here",
            "policy.normalize_obs was true in the source and is false here",
        ]
    with taken(begun(house.full.id, policy=STATISTICS["policy"]), house.root) as (_, transfer):
        assert transfer.notes == []


# ---- the optimizer -------------------------------------------------------------------------------------------------


def test_the_optimizer_comes_along_when_asked(house: House) -> None:
    source = best(house.full).state["session"]["optimizer"]
    with taken(begun(house.full.id, **STATISTICS, train={"init_optimizer": True}), house.root) as (trainer, transfer):
        assert not differences(trainer.optimizer.state(), source)
        assert float(source["step"]) > 0
        assert "optimizer" in [part.name for part in transfer.parts if part.loaded]


def test_an_optimizer_that_does_not_fit_is_refused(house: House) -> None:
    """It was asked for by name: going on without it would be another training than the one that was wanted."""
    asked = {"init_optimizer": True}
    reinforce = begun(house.actor.id, policy={"hidden": [16]}, train=asked)
    others = begun(house.full.id, "a2c", policy=STATISTICS["policy"], train=asked)
    for resolved, words in ((reinforce, "differ in critic.layers.0"), (others, "of adam, and this run uses rmsprop")):
        with pytest.raises(UsageError, match=words), taken(resolved, house.root):
            pass
    with pytest.raises(ConfigError, match="init_optimizer needs init_from"):
        small("ppo", CARTPOLE, train={"env_steps": 64, **asked})


# ---- a run that begins with another --------------------------------------------------------------------------------


def test_the_run_says_where_it_comes_from(own: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A reference becomes a fact; screen, log and lineage tell the same; runs chain."""
    from rich.console import Console

    from gymnast.training.keeping.report import Reporter

    root, name = own.root, str(checkpoint.read_pointer(own.folder, "best"))
    own.point_last()
    resolved = begun("@last", policy={"hidden": [16], "normalize_obs": True, "critic_hidden": [8]}, train=SHORT)
    child = train.train(resolved, root, reporter=Reporter(Console(width=200)))
    assert child is not None
    assert child.run.config()["train"]["init_from"] == f"{own.id}/{name}"
    parent = parent_of(child.run)
    assert (parent["source"], parent["run"], parent["checkpoint"]) == (f"{own.id}/{name}", own.id, name)
    assert parent["loaded"] == ["encoder.norm", "actor.layers.0", "actor.layers.1"]
    assert parent["skipped"]["critic.layers.1"] == "1×16 in the source, 1×8 here"
    metrics = best(own).manifest.metrics
    assert parent["source_score"]["mean"] == metrics["eval/return_mean"]
    assert parent["score_before_training"]["episodes"] == 3
    shown, logged = capsys.readouterr().out, child.run.log_path.read_text()
    for text in (shown, logged):
        assert parent["comparison"] in text
        assert "new: critic.layers.0 (16×4 in the source, 8×4 here)" in text
    assert f"source {metrics['eval/return_mean']:.4g} ± " in parent["comparison"]
    grandchild = run(begun(f"{child.run.id}/last", policy=resolved.config.policy.model_dump(), train=SHORT), root)
    last = f"{child.run.id}/{checkpoint.read_pointer(child.run.folder, 'last')}"
    assert lineage.ancestors_of(lineage.read(grandchild.run.folder)) == [last, f"{own.id}/{name}"]


def test_the_first_evaluation_judges_the_loaded_weights(house: House, tmp_path: Path) -> None:
    """Many episodes of the same weights score the same, and they are the source's own policy."""
    config = begun(house.full.id, policy=STATISTICS["policy"], eval={"episodes": 40, "every": 10**9}, train=SHORT)
    child = run(config, house.root).run
    with taken(config, house.root) as (trainer, _):
        trainer.start()
        evaluations = Evaluations(config.config, Watcher(), StageTimer(), StopRequest())
        expected = evaluations.here(trainer.policy, 1_000_001, Extent(40))
        evaluations.close()
    assert parent_of(child)["score_before_training"] == expected.as_json()
    assert next(iter(MetricRows(child.metrics_path)))["env_steps"] == PER_ITERATION


def test_the_first_evaluation_changes_nothing(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Actions, weights, generators, counters and later evaluations are those of a run without it."""
    resolved = begun(str(house.full.folder), env=CARTPOLE, **STATISTICS, train=SHORT)
    judged, silent = Watcher(), Watcher()
    first = run(resolved, tmp_path, judged)
    monkeypatch.setattr(train, "evaluate_beginning", lambda *_: None)
    second = run(resolved, tmp_path, silent)
    assert lineage.read(second.run.folder).parent is None
    assert not differences(judged.actions, silent.actions)
    assert_same_end(first.run, second.run)


def test_the_same_seed_and_source_give_the_same_run(house: House, tmp_path: Path) -> None:
    """To the bit; another seed, another source or none at all give another."""
    source = str(house.full.folder)
    first = run(begun(source, **STATISTICS, train=SHORT), tmp_path).run
    again = run(begun(source, **STATISTICS, train=SHORT), tmp_path).run
    assert_same_end(first, again)
    assert first.config()["train"]["init_from"] == f"{house.full.folder.resolve()}/{best(house.full).folder.name}"
    nothing = small("ppo", CARTPOLE, **STATISTICS, train={**SHORT, "seed": 5})
    for other in (begun(source, **STATISTICS, train={**SHORT, "seed": 6}), nothing):
        assert differences(end_of(first)["policy"], end_of(run(other, tmp_path).run)["policy"])


@pytest.mark.parametrize("changes", [STATISTICS, {**STATISTICS, "train": {"init_optimizer": True}}, DEEP])
def test_stop_and_resume_equals_the_whole_run(changes: dict[str, Any], own: Run) -> None:
    """The source is not needed any more, and nothing is loaded from it twice."""
    resolved = begun(own.id, **changes)
    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole = run(resolved, own.root, straight).run
    stopped = run(resolved, own.root, before).run
    parent = parent_of(stopped)
    shutil.rmtree(own.folder)
    pinned = Resolved(resolved.config.model_validate(stopped.config()))
    finished = resume(pinned, stopped, after).run
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole, finished)
    assert parent_of(finished) == parent
    assert len(lineage.read(finished.folder).attempts) == 1


def test_rewind_begins_with_the_source_again(own: Run) -> None:
    """The hashes of the first iteration prove it; a source that changed meanwhile is refused."""
    child = run(begun(own.id, **STATISTICS, train={**SHORT, "trace_hashes": True}), own.root).run
    done = rewind(child, PER_ITERATION)
    assert (done.start, done.proof) == ("the beginning", "equal")
    policy = {name: tensor + 1 for name, tensor in best(own).policy.items()}
    saved = best(own)
    saved_checkpoints.save(own.folder, saved.manifest.step, policy, saved.state, {}, saved.manifest.counters)
    with pytest.raises(UsageError, match="whose weights have changed since"):
        rewind(child, PER_ITERATION)


# ---- what cannot be ------------------------------------------------------------------------------------------------


def test_nothing_is_written_when_nothing_fits(own: Run) -> None:
    """Neither a run nor a new meaning of @last."""
    with pytest.raises(UsageError, match=r"Nothing of run .* fits .*It was made with policy.hidden=\[16\]"):
        run(begun(own.id, policy={"hidden": [8], "normalize_obs": True}), own.root)
    for reference, words in (("zzzzz", "There is no run"), (f"{own.id}/step=1", "There is no checkpoint")):
        with pytest.raises(UsageError, match=words):
            run(begun(reference), own.root)
    assert {path.name for path in own.root.iterdir() if "index" not in path.name} == {own.id}


def test_damaged_and_failed_sources_are_refused(own: Run) -> None:
    saved = best(own)
    broken = {**saved.policy, "actor.layers.0.bias": torch.full((16,), torch.nan)}
    saved_checkpoints.save(own.folder, saved.manifest.step, broken, saved.state, {}, saved.manifest.counters)
    with pytest.raises(CheckpointError, match="has NaN or infinity in 'actor.layers.0.bias'"):
        run(begun(own.id), own.root)
    weights = saved.folder / checkpoint.POLICY
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(CheckpointError, match="is damaged: its content does not match its checksum"):
        run(begun(own.id), own.root)
    assert [path.name for path in own.root.iterdir() if path.is_dir()] == [own.id]


def test_a_source_without_an_evaluation_tells_its_training_return(own: Run) -> None:
    saved = best(own)
    saved_checkpoints.save(
        own.folder, 7, saved.policy, saved.state, {"rollout/return_mean": 21.5}, saved.manifest.counters
    )
    saved_checkpoints.save(own.folder, 8, saved.policy, saved.state, {}, saved.manifest.counters)
    for step, words in ((7, "source 21.5 in training at step 7 ·"), (8, "source not evaluated ·")):
        with taken(begun(f"{own.id}/step={step}", policy=STATISTICS["policy"]), own.root) as (_, transfer):
            assert transfer.comparison().startswith(words)


# ---- by command ----------------------------------------------------------------------------------------------------


def test_the_command_and_its_names(own: Run, commands: Server) -> None:
    """`--init-from`, rl-zoo's names for it, the config's key and the API; a resume does not take another source."""
    folder, own_id = own.root.parent, own.id
    tiny = ("policy.hidden=[16]", "env.n_envs=4", "env.time_limit=40", "n_steps=32", "batch_size=64", "eval.episodes=2")
    for option in ("--init-from", "-i", "--trained-agent"):
        done = commands.run("train", "CartPole-v1:ppo", option, own_id, *tiny, "-n", 512, cwd=folder)
        assert (done.code, done.err) == (0, "")
        assert f"from  run {own_id}" in done.out
    done = commands.run("train", "CartPole-v1:ppo", "init_from=@best:CartPole-v1", *tiny, "-n", 512, cwd=folder)
    assert (done.code, done.err) == (0, "")
    pinned = f"{own_id}/{best(own).folder.name}"
    result = gymnast.train(
        "CartPole-v1:ppo", *tiny, env_steps=512, init_from=own_id, init_optimizer=False, runs_dir=own.root
    )
    assert result.run.config()["train"]["init_from"] == pinned
    shown = commands.run("runs", "show", cwd=folder).out
    assert f"began from: {pinned}\n" in shown
    assert "here before training" in shown
    for arguments, words in (
        (("train", "CartPole-v1:ppo", "-i", "none.zip"), "There is no file 'none.zip'"),
        (("train", "CartPole-v1:ppo", "-i", "@best:Nothing-v0"), "There is no run of 'Nothing-v0'"),
        (("resume", "@last", "-n", "2048", "--with", "init_from=@last"), "has begun already"),
    ):
        refused = commands.run(*arguments, cwd=folder)
        assert refused.code == 2
        assert words in refused.err
    assert commands.run("resume", "@last", "-n", "1024", cwd=folder).code == 0

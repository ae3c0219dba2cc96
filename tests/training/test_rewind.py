"""`gymnast rewind`: what it writes is what happened, by the hashes the run logged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import saved as saved_checkpoints
import torch
from faults.server import Server
from runs_alike import PER_ITERATION, Watcher, resume, run, small
from safetensors.torch import load_file

from gymnast.config.load import Resolved, from_saved
from gymnast.errors import UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.diagnostics.rewind import Rewound, rewind
from gymnast.training.diagnostics.tracing import TraceFile, digest, read_trace
from gymnast.training.train import Resume, train

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
OFTEN = {"trace_hashes": True, "checkpoint_every": 2 * PER_ITERATION, "keep_checkpoints": 10}
NEVER = {"trace_hashes": True, "checkpoint_every": 10**9}
QUIET = {"every": 10**9, "episodes": 2}


def traced(algorithm: str = "ppo", env: dict[str, Any] | None = None, **changes: Any) -> Resolved:
    """A config that logs its hashes, with a checkpoint every other iteration."""
    changes = {"train": OFTEN, "eval": QUIET, **changes}
    return small(algorithm, env or CARTPOLE, **changes)


def update_of(done: Rewound) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The dump."""
    return load_file(done.folder / "update.safetensors"), json.loads((done.folder / "update.json").read_text())


CASES: dict[str, tuple[Resolved, int]] = {
    "ppo": (traced(), 8),
    "ppo with statistics": (
        traced(
            policy={"hidden": [16], "normalize_obs": True},
            algo={"n_steps": 16, "batch_size": 32, "normalize_reward": True},
        ),
        20,
    ),
    "ppo with a shared trunk": (traced(policy={"hidden": [16], "shared_trunk": True}), 4),
    "ppo with dropout": (traced(policy={"hidden": [16], "dropout": 0.3}), 4),
    "a2c": (traced("a2c", {"id": "Pendulum-v1", "time_limit": 30}), 1),
    "reinforce": (traced("reinforce", env_steps=15 * PER_ITERATION), 1),
    "replayed env": (traced("ppo", {"id": "Walk-v0"}), 4),
    "masks": (traced("ppo", {"id": "Taxi-v4", "time_limit": 20}), 4),
    "parts": (traced("ppo", {"id": "NestedIdentity-v0"}), 4),
    "workers": (traced("ppo", {"id": "Walk-v0", "vectorization": "workers", "n_workers": 2}), 4),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_what_was_logged(case: str, tmp_path: Path) -> None:
    """At the beginning, in the middle and at the end; the first update, one of the others and the last."""
    trained = run(CASES[case][0], tmp_path).run
    lines = [json.loads(line) for line in (trained.folder / "trace.jsonl").read_text().splitlines()]
    before = {path: path.read_bytes() for path in trained.folder.rglob("*") if path.is_file()}
    for line in (lines[0], lines[len(lines) // 2], lines[-1]):
        count = len(line["weights"])
        for number in {1, count // 2 + 1, None}:
            done = rewind(trained, line["env_steps"], update=number, folder=tmp_path / "dump")
            assert done.proof == "equal"
            assert (done.target.iteration, done.target.env_steps) == (line["iteration"], line["env_steps"])
            assert done.update == (number or count)
            assert len(done.updates) == count
            tensors, about = update_of(done)
            assert about["hashes"] == {key: line[key] for key in ("batch", "gradients", "weights")}
            after = torch.cat([tensors[name].flatten() for name in order(trained, tensors)])
            assert digest(after) == line["weights"][done.update - 1]
    assert before == {path: path.read_bytes() for path in trained.folder.rglob("*") if path.is_file()}


def order(trained: Run, tensors: dict[str, torch.Tensor]) -> list[str]:
    """The names of the weights in the order of the network, which the file does not keep."""
    names = checkpoint.read_manifest(trained.checkpoints / str(checkpoint.read_pointer(trained.folder, "last"))).policy
    return [f"weights_after.{name}" for name in names if f"weights_after.{name}" in tensors]


def test_the_numbers_fit_together(tmp_path: Path) -> None:
    """Weights move by the step, the next update begins where this one ends, and the loss is that of the metrics."""
    trained = run(traced(), tmp_path).run
    first, _ = update_of(rewind(trained, 3 * PER_ITERATION, update=1))
    second, about = update_of(rewind(trained, 3 * PER_ITERATION, update=2))
    names = [name.removeprefix("weights_after.") for name in first if name.startswith("weights_after.")]
    assert names
    for name in names:
        assert torch.equal(first[f"weights_after.{name}"], second[f"weights_before.{name}"])
        assert second[f"gradient.{name}"].shape == second[f"weights_before.{name}"].shape
    norm = torch.cat([second[f"gradient.{name}"].flatten() for name in names]).norm()
    assert float(norm) == pytest.approx(about["losses"][1]["train/grad_norm"])
    assert second["batch.obs"].shape == (PER_ITERATION, 4)
    assert second["minibatch.obs"].shape == (32, 4)
    assert second["outputs.value"].shape == second["loss.d_value"].shape == (32,)
    assert about["updates_in_iteration"] == 4
    row = list(MetricRows(trained.metrics_path))[2]
    for key in ("train/policy_loss", "train/value_loss", "train/entropy"):
        assert sum(one[key] for one in about["losses"]) / 4 == pytest.approx(row[key], rel=1e-5)
    assert about["coefficients"]["learning_rate"] == pytest.approx(row["train/learning_rate"])


def test_the_nearest_start_is_taken(tmp_path: Path) -> None:
    trained = run(traced(), tmp_path).run
    assert checkpoint.steps(trained.folder) == [PER_ITERATION * i for i in (2, 4, 6)]
    done = rewind(trained, 5 * PER_ITERATION - 1)
    assert (done.start, done.iterations, done.target.iteration) == (f"step={4 * PER_ITERATION}", 1, 5)
    done = rewind(trained, 4 * PER_ITERATION)
    assert (done.start, done.iterations, done.target.iteration) == (f"step={2 * PER_ITERATION}", 2, 4)
    done = rewind(trained, 1)
    assert (done.start, done.iterations, done.target.iteration) == ("the beginning", 1, 1)
    (trained.checkpoints / f"step={4 * PER_ITERATION}" / checkpoint.STATE).write_bytes(b"")
    done = rewind(trained, 5 * PER_ITERATION)
    assert (done.start, done.iterations, done.proof) == (f"step={2 * PER_ITERATION}", 3, "equal")
    whole = run(traced(train=NEVER), tmp_path).run
    done = rewind(whole, 6 * PER_ITERATION)
    assert (done.start, done.iterations, done.proof) == ("the beginning", 6, "equal")


def test_after_a_resume(tmp_path: Path) -> None:
    """On both sides of it, also from before it when nothing was changed."""
    resolved = traced(train=NEVER)
    stopped = run(resolved, tmp_path, Watcher(stop_after=3)).run
    resume(resolved, stopped)
    for iteration in range(1, 7):
        done = rewind(stopped, iteration * PER_ITERATION)
        assert done.proof == "equal"
        assert done.start == ("the beginning" if iteration <= 3 else f"step={3 * PER_ITERATION}")
    for path in (stopped.checkpoints / f"step={3 * PER_ITERATION}").iterdir():
        path.write_bytes(b"")
    assert rewind(stopped, 5 * PER_ITERATION).proof == "equal"


@pytest.mark.parametrize("optimizer", [True, False])
def test_after_a_resume_under_other_settings(optimizer: bool, tmp_path: Path) -> None:
    """Every attempt is repeated under its own; where that cannot be, it is said."""
    stopped = run(traced(train=NEVER), tmp_path, Watcher(stop_after=3)).run
    other = from_saved(stopped.config(), ["algo.ent_coef=0.2", "train.checkpoint_every=128"] if optimizer else [])
    saved = checkpoint.load(stopped.checkpoints / f"step={3 * PER_ITERATION}")
    train(other, tmp_path, reporter=Watcher(), resume=Resume(stopped, saved, optimizer))
    for iteration in (1, 3, 4, 5, 6):
        done = rewind(stopped, iteration * PER_ITERATION)
        assert done.proof == "equal", iteration
        assert done.target.attempt == 1 + (iteration > 3)
        assert update_of(done)[1]["coefficients"].get("ent_coef", 0.0) == (0.2 if optimizer and iteration > 3 else 0.0)
    for step in checkpoint.steps(stopped.folder):
        for path in (stopped.checkpoints / f"step={step}").iterdir():
            path.write_bytes(b"")
    for iteration in (4, 6):
        with pytest.raises(UsageError, match=r"other settings at 192 env steps.*keep_checkpoints"):
            rewind(stopped, iteration * PER_ITERATION)
    assert rewind(stopped, 2 * PER_ITERATION).proof == "equal"


def test_checkpoints_of_a_course_that_was_left_are_not_started_from(tmp_path: Path) -> None:
    """A run taken up again at an earlier checkpoint passes the later ones on another way: they go, and where some were put
    back, as by a backup, no repetition begins with them."""
    trained = run(traced(train={**OFTEN, "checkpoint_every": PER_ITERATION}), tmp_path).run
    saved = checkpoint.load(trained.checkpoints / f"step={2 * PER_ITERATION}")
    other = from_saved(trained.config(), ["algo.ent_coef=0.2", "train.checkpoint_every=1000000"])
    backup = shutil.copytree(trained.checkpoints, tmp_path / "backup", symlinks=True)
    train(other, tmp_path, reporter=Watcher(), resume=Resume(trained, saved))
    left = [f"step={PER_ITERATION * i}" for i in (4, 5)]
    assert not any((trained.checkpoints / name).exists() for name in left)
    for name in left:
        shutil.copytree(backup / name, trained.checkpoints / name)
    done = rewind(trained, 6 * PER_ITERATION)
    assert (done.start, done.proof) == (f"step={3 * PER_ITERATION}", "equal")


@pytest.mark.parametrize("part", ["batch", "gradients", "weights"])
def test_a_changed_trace_says_different(part: str, tmp_path: Path) -> None:
    trained = run(traced(), tmp_path).run
    path = trained.folder / "trace.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    value = lines[3][part]
    if part == "batch":
        lines[3][part] = value[:-1] + ("0" if value[-1] != "0" else "1")
    else:
        value[-1] = value[0]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert rewind(trained, 4 * PER_ITERATION).proof == "different"
    assert rewind(trained, 3 * PER_ITERATION).proof == "equal"


def test_a_changed_checkpoint_says_different(tmp_path: Path) -> None:
    """One with a true seal, as only a program writes it."""
    trained = run(traced(), tmp_path).run
    step = 4 * PER_ITERATION
    saved = checkpoint.load(trained.checkpoints / f"step={step}")
    next(iter(saved.policy.values())).view(-1)[0] += 1e-6
    saved_checkpoints.save(
        trained.folder, step, saved.policy, saved.state, saved.manifest.metrics, saved.manifest.counters
    )
    assert rewind(trained, 5 * PER_ITERATION).proof == "different"


def test_refusals(tmp_path: Path) -> None:
    trained = run(traced(train={"checkpoint_every": 10**9}), tmp_path).run
    assert rewind(trained, PER_ITERATION).proof == "not traced"
    with pytest.raises(UsageError, match="reached 384 env steps, not 385"):
        rewind(trained, 6 * PER_ITERATION + 1)
    with pytest.raises(UsageError, match=r"has 4 updates: --update goes from 1 to that"):
        rewind(trained, PER_ITERATION, update=5)
    trained.metrics_path.write_text("")
    with pytest.raises(UsageError, match="no metrics yet"):
        rewind(trained, 1)


def test_a_torn_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    first = TraceFile(path)
    from gymnast.training.diagnostics.tracing import Hashes

    first.write(1, 10, Hashes("a", ["b"], ["c"]))
    first.close()
    path.write_bytes(path.read_bytes() + b'{"iteration": 2, "env_st')
    again = TraceFile(path)
    again.write(2, 20, Hashes("d", ["e"], ["f"]))
    again.close()
    assert read_trace(path, 1) == Hashes("a", ["b"], ["c"])
    assert read_trace(path, 2) == Hashes("d", ["e"], ["f"])
    assert read_trace(path, 3) is None


def test_the_command(tmp_path: Path, commands: Server) -> None:
    trained = run(traced(), tmp_path / "runs").run
    done = commands.run("rewind", "--to", 300, "--update", 2, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["proof"] == "equal"
    assert (facts["iteration"], facts["update"], facts["updates"], facts["from"]) == (5, 2, 4, "step=256")
    assert (tmp_path / facts["folder"] / "update.safetensors").exists()
    shown = commands.run("rewind", trained.id, "--to", "3e2", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "equal to what the run logged" in shown.out
    for arguments, words in (
        ((), "--to"),
        (("--to", 1000), "not 1,000"),
        (("--to", 64, "--update", 9), "4 updates"),
    ):
        refused = commands.run("rewind", *arguments, cwd=tmp_path)
        assert refused.code == 2
        assert refused.err.startswith("error: ") or "error: " in refused.err
        assert words in refused.err

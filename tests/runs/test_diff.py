"""`gymnast diff` on real runs: equal ones are equal to the bit, others part where they must and for the right reason."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import saved as saved_checkpoints
import torch
from launch import gymnast

import gymnast as library
from gymnast.config.load import from_saved
from gymnast.errors import UsageError
from gymnast.metrics.history import History
from gymnast.runs import checkpoint
from gymnast.runs.diff import diff_runs, verdict
from gymnast.runs.diff.keys import classify
from gymnast.runs.diff.rows import Ignored, compare_rows
from gymnast.runs.store import Run
from gymnast.training.keeping.report import Reporter
from gymnast.training.train import Resume, resume_point, train

PER_ITERATION = 64
BASE: dict[str, Any] = {
    "env_steps": 4 * PER_ITERATION,
    "env__n_envs": 4,
    "algo__n_steps": 16,
    "algo__batch_size": 32,
    "algo__n_epochs": 2,
    "algo__learning_rate": 1e-3,
    "policy__hidden": [8],
    "policy__normalize_obs": True,
    "eval__every": 2 * PER_ITERATION,
    "eval__episodes": 3,
    "eval__start_fraction": None,
    "train__checkpoint_every": PER_ITERATION,
    "train__keep_checkpoints": 20,
    "train__stop_when_solved": False,
}


def trained(root: Path, reference: str = "CartPole-v1:ppo", **changes: Any) -> Run:
    """A run of four iterations with a checkpoint after each."""
    return library.train(reference, runs_dir=root, **{**BASE, **changes}).run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs that no test changes."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def base(root: Path) -> Run:
    """The run the others are compared with."""
    return trained(root)


def copy_of(run: Run, folder: Path) -> Run:
    """A copy to be changed."""
    return Run(Path(shutil.copytree(run.folder, folder / run.id)))


def rewrite(run: Run, step: int, change: Any) -> None:
    """Change a checkpoint and seal it again."""
    saved = checkpoint.load(run.checkpoints / f"step={step}")
    change(saved)
    manifest = saved.manifest
    saved_checkpoints.save(run.folder, step, saved.policy, saved.state, manifest.metrics, manifest.counters, sync=False)


# ---- equal ---------------------------------------------------------------------------------------------------------


def test_the_same_config_and_seed(root: Path, base: Run) -> None:
    """Nothing differs but the times."""
    found = diff_runs(base, trained(root))
    assert found.equal
    assert verdict(found) == "Equal to the last bit: 4 iterations, 4 common checkpoints."
    assert (found.keys, found.versions, found.notes, found.trouble) == ([], {}, [], [])


class Stopper(Reporter):
    """Sends this process SIGINT after some iterations."""

    def __init__(self, after: int) -> None:
        super().__init__(quiet=True)
        self.after = after

    def update(self, history: History, now: float, marks: Any = None) -> None:
        """After every iteration."""
        if history.rows == self.after:
            signal.raise_signal(signal.SIGINT)


def test_a_resumed_run_equals_a_straight_one(root: Path, base: Run) -> None:
    """Also when the killed attempt had gone on after its checkpoint: those rows are dropped."""
    resolved = from_saved(base.config())
    stopped = train(resolved, root, reporter=Stopper(2))
    assert stopped is not None
    assert stopped.interrupted
    lines = stopped.run.metrics_path.read_text().splitlines()
    beyond = json.loads(lines[-1]) | {"iteration": 3, "env_steps": 3 * PER_ITERATION, "train/loss": 1e9}
    stopped.run.metrics_path.write_text("\n".join([*lines, json.dumps(beyond)]) + "\n")
    point, _ = resume_point(stopped.run)
    train(resolved, root, reporter=Reporter(quiet=True), resume=Resume(stopped.run, point))
    found = diff_runs(base, stopped.run)
    assert found.equal, verdict(found)
    assert found.iterations == 4
    assert found.b.resumed_from == [2 * PER_ITERATION]


def test_a_longer_budget_is_equal_as_far_as_the_shorter_goes(root: Path, base: Run) -> None:
    """The end of the shorter one is evaluated, which the longer one is not there."""
    longer = trained(root, env_steps=7 * PER_ITERATION, eval__every=None)
    found = diff_runs(base, longer)
    assert found.equal, verdict(found)
    text = verdict(found)
    assert text.startswith("Equal to the last bit as far as the shorter goes: 4 iterations, 4 common checkpoints.")
    assert text.endswith("B goes on for 3 iterations.")
    assert {change.role for change in found.keys} == {"harmless"}


def test_a_longer_budget_matters_to_schedules(root: Path) -> None:
    """A rate that falls over the budget is another rate from the second iteration on."""
    schedule = {"algo__learning_rate": "lin_1e-3"}
    found = diff_runs(trained(root, **schedule), trained(root, env_steps=8 * PER_ITERATION, **schedule))
    assert found.parting is not None
    assert found.parting.iteration == 2
    assert found.parting.metrics[0].name == "train/learning_rate"
    assert "Explained by train.env_steps 256 → 512." in verdict(found)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"eval__episodes": 4, "eval__every": PER_ITERATION}, "evaluations are not compared"),
        ({"log__window": 2}, "running means of episodes are not compared"),
        ({"train__checkpoint_every": 2 * PER_ITERATION}, None),
    ],
)
def test_settings_that_cannot_change_training(change: dict[str, Any], note: str | None, root: Path, base: Run) -> None:
    """Said to be harmless, and what they change is not taken for a difference."""
    found = diff_runs(base, trained(root, **change))
    assert found.equal, verdict(found)
    assert found.keys
    assert all(key.role == "harmless" for key in found.keys)
    assert [text.startswith(note) for text in found.notes] == [True] if note else found.notes == []


def test_how_envs_are_stepped_makes_no_difference(root: Path) -> None:
    """Only the run with worker processes counts how many it had to replace."""
    here = trained(root, "MountainCar-v0:ppo", env__vectorization="inprocess")
    workers = trained(root, "MountainCar-v0:ppo", env__vectorization="workers", env__n_workers=2)
    found = diff_runs(here, workers)
    assert found.equal, verdict(found)
    assert {(key.key, key.role) for key in found.keys} >= {("env.vectorization", "rounding")}


def test_a_metric_that_one_run_never_used() -> None:
    """Nulls on one side and zeros on the other say the same; where anything was ever counted they do not."""
    nothing = Ignored([], [{}, {}])
    nulls, zeros = ([{"iteration": i, "env_steps": i, "env/lost": value} for i in (1, 2, 3)] for value in (None, 0.0))
    assert compare_rows(nulls, zeros, nothing)[:3] == (None, None, 3)
    assert compare_rows(zeros, nulls, nothing)[:3] == (None, None, 3)
    counted = [*zeros[:2], {**zeros[2], "env/lost": 1.0}]
    parting = compare_rows(nulls, counted, nothing)[0]
    assert parting is not None
    assert parting.iteration == 1
    parting = compare_rows(zeros, [*zeros[:2], {**zeros[2], "env/lost": None}], nothing)[0]
    assert parting is not None
    assert parting.iteration == 3


# ---- different -----------------------------------------------------------------------------------------------------


def test_another_learning_rate(root: Path, base: Run) -> None:
    """The first rollout is the same; the rate, then the losses, then the weights are not."""
    found = diff_runs(base, trained(root, algo__learning_rate=2e-3, eval__episodes=4))
    assert found.parting is not None
    assert (found.parting.iteration, found.parting.last_equal) == (1, None)
    stages = [change.stage for change in found.parting.metrics]
    assert stages[0] == "settings"
    assert set(stages) == {"settings", "update"}
    assert found.parting.metrics[0].name == "train/learning_rate"
    assert found.differing_checkpoint == PER_ITERATION
    assert found.tensors[0].name == "policy/actor.layers.0.weight"  # the normaliser before it is still equal
    assert [(key.key, key.role) for key in found.keys] == [
        ("algo.learning_rate", "training"),
        ("eval.episodes", "harmless"),
    ]
    assert "The data are still equal" in verdict(found)
    assert verdict(found).endswith("Explained by algo.learning_rate 0.001 → 0.002.")


def test_a_later_parting(root: Path, base: Run) -> None:
    """A rate that changes after half of the budget: the first two iterations are equal."""
    jump = {"schedule": "piecewise", "points": [[0.0, 1e-3], [0.5, 5e-3]]}
    later = trained(root, algo__learning_rate=jump)
    found = diff_runs(base, later)
    assert found.parting is not None
    assert (found.parting.iteration, found.parting.last_equal, found.iterations) == (3, 2, 2)
    assert found.checkpoints == [PER_ITERATION, 2 * PER_ITERATION]
    assert found.differing_checkpoint == 3 * PER_ITERATION


def test_another_seed(root: Path, base: Run) -> None:
    """The data part first, and the seed is named before what is likely less."""
    found = diff_runs(base, trained(root, seed=1, algo__gamma=0.9))
    assert found.parting is not None
    assert found.parting.iteration == 1
    assert found.parting.metrics[0].stage == "data"
    assert [key.key for key in found.keys] == ["train.seed", "algo.gamma"]
    assert "The data part first. Explained by train.seed 0 → 1" in verdict(found)
    assert found.tensors[0].name == "policy/encoder.norm.mean"


def test_other_envs_and_algorithms(root: Path, base: Run) -> None:
    """Shapes, tensors and metrics that only one side has are told as such."""
    found = diff_runs(base, trained(root, "Pendulum-v1:ppo"))
    assert "env.id CartPole-v1 → Pendulum-v1" in verdict(found)
    by_name = {difference.name: difference for difference in found.tensors}
    assert (by_name["policy/actor.layers.0.weight"].shape, by_name["policy/actor.layers.0.weight"].shape_b) == (
        [8, 4],
        [8, 3],
    )
    assert by_name["policy/log_std"].a == "missing"
    settings = {k: v for k, v in BASE.items() if k not in ("algo__n_steps", "algo__batch_size", "algo__n_epochs")}
    other = library.train("CartPole-v1:reinforce", runs_dir=root, **settings).run
    found = diff_runs(base, other)
    assert "algo.id ppo → reinforce" in verdict(found)
    assert not any(key.key == "algo.clip_range" for key in found.keys)  # follows from the algorithm


class Moody(gym.Env):
    """An env that ignores its seed."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start."""
        return np.random.uniform(-1, 1, 1).astype(np.float32), {}  # noqa: NPY002 - that is the fault

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Anything may happen."""
        chance = np.random.uniform()  # noqa: NPY002
        return np.array([chance], np.float32), float(chance), chance > 0.9, False, {}


def test_nondeterminism_is_called_by_its_name(root: Path) -> None:
    """Same config, same seed, another result."""
    if "Moody-v0" not in gym.registry:
        gym.register("Moody-v0", Moody, max_episode_steps=20)
    found = diff_runs(trained(root, "Moody-v0:ppo"), trained(root, "Moody-v0:ppo"))
    assert found.keys == []
    assert found.parting is not None
    assert found.parting.iteration == 1
    assert "not deterministic (an env that ignores its seed" in verdict(found)


# ---- checkpoints ---------------------------------------------------------------------------------------------------


def test_a_replaced_worker_is_named(root: Path, base: Run, tmp_path: Path) -> None:
    """It is the reason where the data part, not a difference of its own."""
    other = copy_of(base, tmp_path)
    rows = [json.loads(line) for line in other.metrics_path.read_text().splitlines()]
    for row in rows[2:]:
        row["env/worker_restarts"] = 1
    other.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert diff_runs(base, other).equal
    rows[2]["rollout/return_mean"] += 1.0
    other.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "B had to replace an env worker (env/worker_restarts)" in verdict(diff_runs(base, other))


def test_one_element_of_one_tensor(base: Run, tmp_path: Path) -> None:
    """Found with its name and place, although no metric shows it."""
    other = copy_of(base, tmp_path)

    def touch(saved: checkpoint.Checkpoint) -> None:
        weight = saved.policy["critic.layers.0.weight"]
        weight[3, 1] = torch.nextafter(weight[3, 1], torch.tensor(9.0))

    rewrite(other, 3 * PER_ITERATION, touch)
    found = diff_runs(base, other)
    assert not found.equal
    assert found.parting is None
    assert found.checkpoints == [PER_ITERATION, 2 * PER_ITERATION]
    (difference,) = found.tensors
    assert difference.name == "policy/critic.layers.0.weight"
    assert (difference.shape, difference.differing, difference.index) == ([8, 4], 1, [3, 1])
    assert difference.largest is not None
    assert 0 < difference.largest < 1e-6
    text = verdict(found)
    assert "The 4 common iterations of the metrics are equal, but checkpoint step=192 differs" in text
    assert "1 of 32 elements" in text
    first, second = text.partition("first at [3, 1] (")[2].partition(")")[0].split(" → ")
    assert first != second


def test_every_part_of_a_checkpoint_is_compared(base: Run, tmp_path: Path) -> None:
    """Optimizer, generators, env states, normaliser, counters, window; NaN and the sign of zero count."""

    def touch(saved: checkpoint.Checkpoint) -> None:
        session = saved.state["session"]
        saved.policy["encoder.norm.mean"][2] = np.nan
        saved.policy["actor.layers.1.bias"][0] = -0.0
        session["optimizer"]["square"][5] += 1.0
        session["generators"]["actions"][40] ^= 1
        session["envs"]["state"]["state"][0, 1] += 0.5
        session["window"]["returns"][0] += 1.0
        saved.manifest.counters["updates"] += 1

    other, zero = copy_of(base, tmp_path / "a"), copy_of(base, tmp_path / "b")
    rewrite(zero, PER_ITERATION, lambda saved: saved.policy["actor.layers.1.bias"].__setitem__(0, 0.0))
    rewrite(other, PER_ITERATION, touch)
    found = diff_runs(zero, other)
    assert {d.name: d.index for d in found.tensors} == {
        "policy/encoder.norm.mean": [2],
        "policy/actor.layers.1.bias": [0],
        "counters/updates": None,
        "state/session/optimizer/square": [5],
        "state/session/generators/actions": [40],
        "state/session/window/returns": None,
        "state/session/envs/state/state": [0, 1],
    }
    assert [d.group for d in found.tensors][:4] == ["policy", "policy", "counters", "optimizer"]
    assert found.tensors[0].largest is None
    assert "with NaN" in found.tensors[0].sentence()


def test_other_versions(base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When no key explains it, versions do."""
    other = copy_of(base, tmp_path)
    versions = {**checkpoint.versions(), "torch": "9.9.9"}
    monkeypatch.setattr(checkpoint, "versions", lambda: versions)
    rewrite(other, 4 * PER_ITERATION, lambda saved: saved.policy["actor.layers.0.bias"].add_(1.0))
    found = diff_runs(base, other)
    assert "No config key explains it: different versions (torch " in verdict(found)
    assert "→ 9.9.9)" in verdict(found)


def damage(run: Run, step: int, name: str) -> Path:
    """Flip a bit."""
    path = run.checkpoints / f"step={step}" / name
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 8
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("name", [checkpoint.POLICY, checkpoint.STATE, checkpoint.MANIFEST])
def test_a_damaged_checkpoint_is_named(name: str, base: Run, tmp_path: Path) -> None:
    """The others are compared all the same; the command says so and exits with 2."""
    other = copy_of(base, tmp_path)
    path = damage(other, 2 * PER_ITERATION, name)
    found = diff_runs(base, other)
    assert found.equal
    assert len(found.checkpoints) == 3
    assert len(found.trouble) == 1
    assert str(path) in found.trouble[0]
    if name == checkpoint.POLICY:
        done = gymnast("diff", base.folder, other.folder, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("not compared: The checkpoint file")
        assert "1 piece could not be read" in done.stdout


# ---- rows ----------------------------------------------------------------------------------------------------------


def test_values_are_compared_to_the_bit() -> None:
    """The last digit, the sign of zero, a NaN that became null; times and memory are not looked at."""
    rows = [
        {"env_steps": 8 * i, "iteration": i, "train/loss": 0.1, "time/fps": float(i), "nonfinite": []} for i in (1, 2)
    ]
    nothing = Ignored([], [{}, {}])

    def first(**changes: Any) -> str | None:
        parting, _, _, _ = compare_rows(rows, [rows[0], {**rows[1], **changes}], nothing)
        assert parting is None or (parting.iteration, parting.last_equal) == (2, 1)
        return None if parting is None else parting.metrics[0].name

    assert first() is None
    assert first(**{"time/fps": 99.0}) is None
    assert first(**{"train/loss": np.nextafter(0.1, 1.0).item()}) == "train/loss"
    zeros = [{**row, "train/loss": 0.0} for row in rows]
    assert compare_rows(zeros, [{**row, "train/loss": -0.0} for row in rows], nothing)[0] is not None
    null = {"train/loss": None}
    assert (
        compare_rows([{**rows[0], **null}], [{**rows[0], **null, "nonfinite": ["train/loss"]}], nothing)[0] is not None
    )


def test_causes_come_before_effects() -> None:
    """Whatever the order in the file: data, settings, targets, update."""
    names = ["train/loss", "train/learning_rate", "train/advantage_mean", "updates", "rollout/return_mean", "env_steps"]
    rows = [[{"env_steps": 8, "iteration": 1} | dict.fromkeys(names, float(side))] for side in (1, 2)]
    parting, _, equal, _ = compare_rows(*rows, Ignored([], [{}, {}]))
    assert parting is not None
    assert equal == 0
    assert [change.name for change in parting.metrics] == [
        "env_steps",
        "rollout/return_mean",
        "train/learning_rate",
        "train/advantage_mean",
        "updates",
        "train/loss",
    ]


def test_which_keys_explain() -> None:
    """Seed, env, algo, policy; then what may round differently; then what cannot matter."""
    keys = ["log.window", "train.threads", "policy.hidden", "algo.gamma", "env.id", "train.seed", "train.env_steps"]
    changes = classify([(key, 1, 2) for key in keys], {}, {})
    assert [change.key for change in changes] == [
        "train.seed", "env.id", "algo.gamma", "policy.hidden", "train.threads", "log.window", "train.env_steps",
    ]  # fmt: skip
    assert [change.role for change in changes][-3:] == ["rounding", "harmless", "harmless"]


# ---- the command ---------------------------------------------------------------------------------------------------


def test_the_command(root: Path, base: Run, tmp_path: Path) -> None:
    """0 for equal, 1 for different, 2 for wrong usage; JSON is strict; torch is not imported."""
    same, other = trained(root), trained(root, algo__learning_rate=5e-3)
    done = gymnast("diff", base.id, same.id, "--runs-dir", root, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Equal to the last bit: 4 iterations, 4 common checkpoints." in done.stdout
    done = gymnast("diff", base.id, other.id, "--runs-dir", root, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "They part at iteration 1 (env_steps 64): train/learning_rate 0.001 → 0.005" in done.stdout
    done = gymnast("diff", base.id, other.id, "--json", "--runs-dir", root, cwd=tmp_path)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["equal"], told["parting"]["iteration"], told["keys"][0]["key"]) == (False, 1, "algo.learning_rate")
    done = gymnast("diff", base.id, "zzzzz", "--runs-dir", root, cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no run 'zzzzz'" in done.stderr
    code = (
        "import sys; from pathlib import Path; from gymnast.runs.diff import diff_runs; from gymnast.runs.store import Run\n"
        f"assert diff_runs(Run(Path({str(base.folder)!r})), Run(Path({str(same.folder)!r}))).equal\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_run_that_cannot_be_compared(base: Run, tmp_path: Path) -> None:
    """A config that is no JSON is a sentence and exit code 2, and so is a run without a row."""
    broken = copy_of(base, tmp_path / "a")
    broken.config_path.write_text("{")
    done = gymnast("diff", base.folder, broken.folder, cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    empty = copy_of(base, tmp_path / "b")
    empty.metrics_path.unlink()
    shutil.rmtree(empty.checkpoints)
    with pytest.raises(UsageError, match="Nothing to compare"):
        diff_runs(base, empty)

"""Ejected scripts: trained, ejected and run where gymnast cannot be imported, they give the run's weights to the bit."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import launch
import pytest
from safetensors.torch import load_file

import gymnast
from gymnast.config.load import from_saved
from gymnast.errors import UsageError
from gymnast.hub.eject import Ejected, check, eject, write
from gymnast.hub.ejected.facts import digest
from gymnast.hub.ejected.template import chosen, wrapped
from gymnast.runs import checkpoint, lineage, trust
from gymnast.runs.store import Run
from gymnast.training.train import Resume, resume_point, train

PROJECT = Path(__file__).parents[2]
ALLOWED = {"__future__", "collections", "hashlib", "itertools", "math", "typing", "gymnasium", "numpy", "torch"}
OWN = "env.module=small_envs"
PIECEWISE = "{schedule: piecewise, points: [[0, 0.005], [0.5, 0.001]], reset_optimizer: true}"
CLOCKS = "{schedule: piecewise, points: [[0, 0.95], [50, 0.99]], interpolate: linear, axis: vec_steps}"
EPOCHS = "{schedule: linear, start: 5, end: 2, axis: env_steps, decay_end: 2000}"

CASES: dict[str, tuple[str, int, list[str]]] = {
    "ppo preset: normaliser, falling rate, evaluations": ("CartPole-v1:ppo", 4000, ["eval.every=1000"]),
    "ppo with a continuous action and scaled rewards": ("Pendulum-v1:ppo", 4096, ["algo.n_epochs=3"]),
    "ppo, two continuous actions, entropy bonus": (
        "BoxIdentity-v0:ppo",
        2048,
        [OWN, "algo.n_steps=64", "algo.ent_coef=0.01"],
    ),
    "ppo in a worker pool": (
        "Pendulum-v1:ppo",
        2048,
        ["algo.n_steps=64", "env.vectorization=workers", "env.n_workers=2"],
    ),
    "a2c preset": ("CartPole-v1:a2c", 2000, []),
    "a2c with torch's rmsprop": ("CartPole-v1:a2c", 640, ["algo.optimizer={id: rmsprop_torch}"]),
    "a2c with rmsprop, raw observations": (
        "CartPole-v1:a2c",
        2000,
        ["algo.optimizer={id: rmsprop, weight_decay: 0.001}", "policy.normalize_obs=false"],
    ),
    "reinforce preset": ("CartPole-v1:reinforce", 2000, []),
    "reinforce, learned baseline, shared trunk": (
        "CartPole-v1:reinforce",
        2000,
        ["algo.baseline=learned", "policy.shared_trunk=true", "algo.normalize_reward=true", "algo.episodes_per_env=2"],
    ),
    "masked table": ("Taxi-v4:ppo_masked", 3072, ["algo.n_steps=32"]),
    "tuple of numbers": ("Blackjack-v1:ppo", 2048, ["algo.n_steps=32"]),
    "several choices, one not from zero": ("MultiIdentity-v0:ppo", 2048, [OWN, "policy.hidden=[16]"]),
    "dict observation, normalised": (
        "DictIdentity-v0:ppo",
        2048,
        [OWN, "policy.normalize_obs=true", "normalize_obs_steps=700"],
    ),
    "float64 env with arguments": ("Walk-v0:ppo", 2048, [OWN, "algo.n_steps=64", "env.kwargs={actions: box}"]),
    "shared trunk, relu": ("CartPole-v1:ppo", 2048, ["policy.shared_trunk=true", "policy.activation=relu"]),
    "shared trunk, gelu, table": (
        "Taxi-v4:ppo_masked",
        3072,
        ["algo.n_steps=32", "policy.shared_trunk=true", "policy.hidden=[16]", "policy.activation=gelu"],
    ),
    "target_kl, clipped values, scaled rewards": (
        "CartPole-v1:ppo",
        3000,
        [
            "policy.normalize_obs_steps=null",
            "algo.target_kl=0.01",
            "algo.clip_range_vf=0.2",
            "algo.normalize_reward=true",
            "algo.ent_coef=0.01",
        ],
    ),
    "huber, critic of its own size, torch's init, elu": (
        "CartPole-v1:ppo",
        2048,
        ["algo.value_loss=huber", "policy.critic_hidden=[32]", "policy.init=torch", "policy.activation=elu"],
    ),
    "a last minibatch of one": ("CartPole-v1:ppo", 1024, ["algo.batch_size=127", "env.n_envs=8"]),
    "one minibatch": ("CartPole-v1:ppo", 2048, ["algo.batch_size=1.0", "algo.target_kl=0.02"]),
    "layer norm and dropout": ("CartPole-v1:ppo", 2048, ["policy.layer_norm=true", "policy.dropout=0.1"]),
    "schedules on every clock": (
        "CartPole-v1:ppo",
        3000,
        [
            f"algo.learning_rate={PIECEWISE}",
            f"algo.gamma={CLOCKS}",
            f"algo.n_epochs={EPOCHS}",
            "algo.max_grad_norm=null",
            "algo.normalize_reward=false",
        ],
    ),
    "wrappers": (
        "Taxi-v4:ppo",
        2048,
        [
            "algo.n_steps=32",
            "env.wrappers=[one_hot, {id: reward_scale, factor: 0.1, offset: 0.05}, reward_clip]",
            "policy.hidden=[16]",
        ],
    ),
    "two threads": ("CartPole-v1:ppo", 2048, ["train.threads=2", "policy.hidden=[256, 256]"]),
    "time limit, measured n_steps": ("CartPole-v1:ppo", 3000, ["env.time_limit=15", "algo.n_steps=auto"]),
}
RESUMED = "resumed with more budget"

# Runs scripts one after the other in one process, where `import gymnast` fails.
RUNNER = """
import contextlib, io, runpy, sys
sys.modules["gymnast"] = None
sys.path.insert(0, sys.argv[1])
for path in sys.argv[2:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(path, run_name="__main__")
    print(path, said.getvalue().split("sha256 ")[1].split()[0], flush=True)
"""


@dataclass
class Case:
    """One run, its script and what the script gave."""

    run: Run
    ejected: Ejected
    path: Path
    digest: str = ""


def trained(reference: str, env_steps: int, overrides: list[str], root: Path) -> Run:
    """A short run."""
    few = "eval.episodes=2"
    return gymnast.train(reference, few, *overrides, env_steps=env_steps, runs_dir=root).run


def resumed(run: Run, *overrides: str, env_steps: int) -> None:
    """Continue a run in this process."""
    resolved = from_saved(run.config(), overrides, {"train.env_steps": env_steps})
    assert train(resolved, run.root, resume=Resume(run, resume_point(run)[0])) is not None


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """All cases trained, ejected, and run."""
    root, folder = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("scripts")
    runs = {name: trained(*case, root) for name, case in CASES.items()}
    runs[RESUMED] = trained("CartPole-v1:ppo", 1024, ["algo.learning_rate=0.003"], root)
    resumed(runs[RESUMED], env_steps=2048)
    found = {}
    for name, run in runs.items():
        found[name] = Case(run, eject(run), folder / f"{run.id}.py")
        write(found[name].ejected, found[name].path)
    paths = [str(case.path) for case in found.values()]
    command = [sys.executable, "-c", RUNNER, str(launch.TESTS), *paths]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=launch.PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = dict(line.split() for line in done.stdout.splitlines())
    for case in found.values():
        case.digest = said[str(case.path)]
    return found


@pytest.mark.parametrize("name", [*CASES, RESUMED])
class TestScripts:
    def test_gives_the_bytes_of_the_runs_policy(self, cases: dict[str, Case], name: str) -> None:
        """Compared with the hash of the tensors as the checkpoint's own file holds them."""
        case = cases[name]
        last = checkpoint.read_pointer(case.run.folder, "last")
        tensors = load_file(case.run.checkpoints / str(last) / "policy.safetensors")
        order = checkpoint.read_manifest(case.run.checkpoints / str(last)).policy
        assert case.digest == digest({key: tensors[key] for key in order}) == case.ejected.expected

    def test_is_short_and_needs_only_torch_and_gymnasium(self, cases: dict[str, Case], name: str) -> None:
        """At most 400 lines; the imports are read from the syntax tree."""
        source = cases[name].ejected.source
        assert len(source.splitlines()) <= 400
        tree = ast.parse(source)
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {module.split(".")[0] for module in modules} <= ALLOWED
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert all(node.returns is not None for node in functions)
        assert all(ast.get_docstring(node) for node in functions if node.name != "__init__")


def test_scripts_are_clean(cases: dict[str, Case]) -> None:
    """ruff finds nothing to say and nothing to format, with the project's settings."""
    paths = [str(case.path) for case in cases.values()]
    for arguments in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", str(PROJECT / "pyproject.toml"), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]


def test_holds_only_what_the_run_uses(cases: dict[str, Case]) -> None:
    """No advantages in REINFORCE, no reward scaler where it is off, one distribution."""
    plain, scaled = (
        cases["reinforce preset"].ejected.source,
        cases["target_kl, clipped values, scaled rewards"].ejected.source,
    )
    assert "GAE_LAMBDA" not in plain and "critic" not in plain.partition("class Agent")[2].partition("__init__")[2]
    assert "RewardScaler" not in plain and "RewardScaler" in scaled
    assert "log_std" not in scaled and "CHOICES" not in scaled


def test_the_script_says_itself_that_it_is_equal(cases: dict[str, Case]) -> None:
    """In a fresh isolated process with the machine's own number of threads."""
    case = cases["ppo preset: normaliser, falling rate, evaluations"]
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in threads}
    command = [sys.executable, "-I", str(case.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=launch.PATIENCE, check=True)
    assert f"final weights are those of run {case.run.id}, to the bit" in done.stdout
    assert re.search(r"greedy policy: mean return [\d.]+ over 10 episodes", done.stdout)


def test_check_sees_another_result(cases: dict[str, Case], tmp_path: Path) -> None:
    """Another seed is another result; a script that fails gives none."""
    case = cases["a2c preset"]
    path = tmp_path / "changed.py"
    path.write_text(case.ejected.source.replace("SEED = 0", "SEED = 1"))
    result = check(path)
    assert result.digest not in (None, case.ejected.expected) and "ARE NOT" in result.output
    path.write_text(f"print('sha256 {case.ejected.expected}')\nraise RuntimeError")
    assert check(path).digest is None


def test_command(cases: dict[str, Case], tmp_path: Path) -> None:
    """Eject and check by command, once with success and once from a config that is not the run's own."""
    run = cases[RESUMED].run
    done = launch.gymnast("eject", run.id, "--output", "mine.py", "--verify", "--runs-dir", run.root, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine.py  (" in done.stdout and "equal to the bit: sha256 " in done.stdout
    assert "The run was resumed" in done.stdout
    other = copy_of(cases["a2c preset"], tmp_path, train__seed=1)
    done = launch.gymnast("eject", other.folder, "--verify", cwd=tmp_path)
    assert done.returncode == 1 and "NOT equal" in done.stderr
    assert (tmp_path / f"{other.id}.py").is_file()


# ---- refusals ------------------------------------------------------------------------------------------------------


def copy_of(case: Case, root: Path, **changes: Any) -> Run:
    """A copy of a run with other settings in its config (`section__key=value`)."""
    folder = root / case.run.id
    shutil.copytree(case.run.folder, folder)
    run = Run(folder)
    config = run.config()
    for name, value in changes.items():
        section, key = name.split("__")
        config[section] = {**(config[section] or {}), key: value}
    run.config_path.write_text(json.dumps(config))
    trust.accept(run)
    return run


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train__device": "cuda"}, "was trained on cuda"),
        (
            {"plan__by": "slot", "plan__tasks": {"a": {}, "b": {}}},
            "has plan, which an ejected script cannot follow yet",
        ),
        ({"env__kwargs": {"token": "${TOKEN}"}}, "reads env.kwargs from the environment"),
        ({"policy__squash_actions": True}, "policy.squash_actions=True, which an ejected script cannot follow yet"),
        ({"policy__state_dependent_std": True}, "policy.state_dependent_std=True"),
        ({"env__wrappers": [{"id": "observation_stack", "args": {"size": 2}}]}, "the wrapper 'observation_stack'"),
        ({"policy__shared_trunk": True, "policy__layer_norm": True}, "shared_trunk with layer_norm or dropout"),
        ({"policy__shared_trunk": True, "policy__hidden": []}, "shared_trunk with no hidden layer"),
    ],
)
def test_refuses_settings(cases: dict[str, Case], tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    run = copy_of(cases["ppo preset: normaliser, falling rate, evaluations"], tmp_path, **changes)
    with pytest.raises(UsageError, match=re.escape(words)):
        eject(run)


@pytest.mark.parametrize(
    ("env", "words"), [("SwitchIdentity-v0", "has actions MultiBinary"), ("NestedIdentity-v0", "has observations Dict")]
)
def test_refuses_spaces(tmp_path: Path, env: str, words: str) -> None:
    run = trained(f"{env}:ppo", 1024, [OWN], tmp_path)
    with pytest.raises(UsageError, match=words):
        eject(run)


@pytest.mark.parametrize("env", ["MiniGrid-Empty-5x5-v0", "BipedalWalker-v3", "gymnast/Bandit-v0"])
def test_refuses_envs_that_need_gymnast(tmp_path: Path, env: str) -> None:
    small = ["env.n_envs=2", "algo.n_steps=8", "algo.batch_size=16", "env.vectorization=inprocess", "env.time_limit=8"]
    run = trained(f"{env}:ppo", 16, [*small, "eval.episodes=1"], tmp_path)
    with pytest.raises(UsageError, match="a script without gymnast cannot have that env"):
        eject(run)


def test_refuses_a_run_that_lost_a_worker(cases: dict[str, Case], tmp_path: Path) -> None:
    run = copy_of(cases["ppo in a worker pool"], tmp_path)
    rows = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    rows[-1]["env/worker_restarts"] = 1
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="lost an env worker"):
        eject(run)


@pytest.mark.parametrize("setting", ["algo.clip_range=0.1", "algo.batch_size=128", "env.time_limit=100"])
def test_refuses_a_run_resumed_under_other_settings(tmp_path: Path, setting: str) -> None:
    run = trained("CartPole-v1:ppo", 1024, ["algo.learning_rate=0.003"], tmp_path)
    resumed(run, setting, env_steps=2048)
    with pytest.raises(UsageError, match=f"resumed at step=1024 with {setting.partition('=')[0]} changed"):
        eject(run)


def test_refuses_a_run_whose_schedule_was_stretched(tmp_path: Path) -> None:
    """More budget moves a falling learning rate: the steps before were trained on another line."""
    run = trained("CartPole-v1:ppo", 1024, [], tmp_path)
    resumed(run, env_steps=2048)
    with pytest.raises(UsageError, match=r"with train.env_steps changed"):
        eject(run)


def test_refuses_other_beginnings(cases: dict[str, Case], tmp_path: Path) -> None:
    """A resume without the optimizer's state, and weights of another run."""
    run = copy_of(cases["a2c preset"], tmp_path)
    lineage.add_attempt(run.folder, lineage.Attempt(2, "step=256", optimizer=False))
    with pytest.raises(UsageError, match="without its optimizer's state"):
        eject(run)
    lineage.set_parent(run.folder, {"source": "k3v9x"})
    with pytest.raises(UsageError, match="another run's weights"):
        eject(run)


def test_refuses_a_run_that_still_trains(cases: dict[str, Case], tmp_path: Path) -> None:
    run = copy_of(cases["a2c preset"], tmp_path)
    run.begin(run.config(), start="step=256")
    with pytest.raises(UsageError, match="is still training"):
        eject(run)


# ---- templates -----------------------------------------------------------------------------------------------------


def test_conditions() -> None:
    """Nested, negated and joined."""
    lines = [
        "a",
        "#: if x and not y",
        "b",
        "    #: if z",
        "c",
        "    #: else",
        "d",
        "    #: end",
        "#: elif y",
        "e",
        "#: end",
    ]
    assert chosen(lines, {"x"}) == ["a", "b", "d"]
    assert chosen(lines, {"x", "z"}) == ["a", "b", "c"]
    assert chosen(lines, {"x", "y", "z"}) == ["a", "e"]
    assert chosen(lines, set()) == ["a"]
    with pytest.raises(ValueError, match="without its"):
        chosen(["#: if x"], set())


def test_long_lines_are_broken_as_ruff_breaks_them() -> None:
    names = [f"argument_{i}: dict[str, int]" for i in range(4)]
    assert wrapped(f"def function({', '.join(names)}) -> None:").splitlines() == [
        "def function(",
        f"    {', '.join(names)}",
        ") -> None:",
    ]
    many = wrapped(f"    call({', '.join(names * 2)})").splitlines()
    assert many[0] == "    call(" and many[1] == f"        {names[0]}," and many[-1] == "    )" and len(many) == 10

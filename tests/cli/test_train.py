"""`gymnast train` in a process of its own: what it prints, how it ends, and what it leaves behind."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from launch import COMMAND, Terminal, environment, gymnast, start, stop, until, wait_for_rows

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run, last_run

CONFIG = """\
id: Identity-v0
spec: {solved_at: 9.5, solved_source: tests}
defaults:
  env: {module: small_envs, n_envs: 8}
  policy: {hidden: [32]}
  train: {env_steps: 8000}
  eval: {every: 800, episodes: 20}
variants:
  ppo: {algo: {n_steps: 16, batch_size: 32, n_epochs: 4, learning_rate: 0.01, gamma: 0.0}}
  a2c: {algo: {n_steps: 4, learning_rate: 0.02, gamma: 0.0}}
"""
SIZES = ("env.n_envs=4", "algo.n_steps=16", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=3")
ESCAPE = "\x1b"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture
def here(folder: Path) -> Path:
    """A working folder with a config of the user's own."""
    (folder / "configs").mkdir()
    (folder / "configs" / "Identity-v0.yaml").write_text(CONFIG)
    return folder


def only_run(folder: Path) -> Run:
    """The one run below `folder`."""
    (found,) = folder.glob("[a-z]????")
    return Run(found)


def contents(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_one_paragraph(result: CompletedProcess[str], *words: str) -> None:
    """An error for people: no traceback, no blank line, all the words that help."""
    assert result.stderr.startswith("error: "), result.stderr
    assert "Traceback" not in result.stderr
    paragraph = result.stderr.strip()
    assert "\n\n" not in paragraph
    for word in words:
        assert word in paragraph, f"{word!r} is not in: {paragraph}"


# ---- a good run ----------------------------------------------------------------------------------------------------


def test_a_solved_run(here: Path) -> None:
    """The evaluation as a sentence, the reason, the time, the place and the next commands; exit code 0."""
    result = gymnast("train", "Identity-v0:ppo", cwd=here)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    run = only_run(here / "runs")
    out = result.stdout
    for line in ("config  Identity-v0:ppo, seed 0", "solved at 9.5", "budget  8,000 env steps"):
        assert line in out
    assert re.search(r"^(10|9\.\d+)(\.0)? ± [\d.]+ over 20 episodes, deterministic$", out, re.MULTILINE), out
    number = r"[\d,]+"
    assert re.search(rf"^solved: (10|9)\.\d+ ≥ 9\.5( \+ .*)?, evaluated at {number} env steps$", out, re.MULTILINE), out
    assert re.search(rf"^stopped after {number} env steps .* steps/s$", out, re.MULTILINE)
    assert f"run {run.id} in " in out
    for command in ("gymnast video @last", "gymnast eval @last", "gymnast runs show @last"):
        assert command in out
    assert ESCAPE not in out
    assert "\r" not in out
    status = run.status()
    assert (status.state, status.solved) == ("finished", True)
    assert status.stop_reason == "solved" and str(status.verdict).startswith("solved: ")
    assert (status.best_at, status.last_at) == (status.env_steps, status.env_steps)
    assert run.log_path.read_text().count("over 20 episodes, deterministic") >= 1
    assert checkpoint.read_pointer(run.folder, "best") is not None
    files = {path.name for path in run.folder.iterdir()}
    assert {"config.json", "metrics.jsonl", "checkpoints", "log.txt", "status.json"} <= files


def test_the_printed_way_to_train_on_works(here: Path) -> None:
    """The command a solved run offers really trains on, up to the budget it names."""
    result = gymnast("train", "Identity-v0:ppo", "eval.every=128", "eval.deterministic=false", cwd=here)
    line = next(line for line in result.stdout.splitlines() if "gymnast resume" in line)
    command = shlex.split(line.strip().partition("   ")[0])
    budget = int(command[command.index("-n") + 1])
    resumed = gymnast(*command[1:], cwd=here)
    assert resumed.returncode == 0, resumed.stderr
    run = only_run(here / "runs")
    assert run.status().env_steps >= budget, resumed.stdout
    assert f"Run {run.id} is solved already" in resumed.stdout


def test_quiet_prints_only_the_result(here: Path) -> None:
    """A handful of lines: no summary, no progress, no advice."""
    result = gymnast("train", "Identity-v0:ppo", "--quiet", cwd=here)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line]
    assert len(lines) <= 4
    assert "over 20 episodes, deterministic" in lines[0]
    assert lines[1].startswith("solved: ") and lines[2].startswith("stopped after ")
    assert only_run(here / "runs").id in lines[3]
    assert result.stderr == ""


def test_algo_and_env_as_in_rl_zoo(here: Path) -> None:
    """`--algo` and `--env`, rl-zoo's name of the budget, and overrides by the names other libraries use."""
    result = gymnast("train", "--algo", "a2c", "--env", "Identity-v0", "--n-timesteps", "64", "lr=1e-5", cwd=here)
    assert result.returncode == 0, result.stderr
    run = only_run(here / "runs")
    config = run.config()
    assert (config["name"], config["algo"]["id"], config["train"]["env_steps"]) == ("Identity-v0:a2c", "a2c", 64)
    assert config["algo"]["learning_rate"] == 1e-5
    assert "budget spent after 64 env steps" in result.stdout


def test_budgets_and_where_runs_lie(here: Path) -> None:
    """`-n 1e3`, `--vec-steps`, GYMNAST_HOME, and `--runs-dir`, which wins over it; seeds are kept."""
    home, other = here / "home", here / "other" / "deep"
    first = gymnast(
        "train",
        "Identity-v0:ppo",
        "-q",
        "-n",
        "1e3",
        "--seed",
        7,
        "train.stop_when_solved=false",
        cwd=here,
        GYMNAST_HOME=str(home),
    )
    assert first.returncode == 0, first.stderr
    run = only_run(home)
    assert run.config()["train"]["env_steps"] == 1000
    assert run.config()["train"]["seed"] == 7
    assert run.status().env_steps == 1024
    second = gymnast(
        "train", "Identity-v0:ppo", "-q", "--vec-steps", 32, "--runs-dir", other, cwd=here, GYMNAST_HOME=str(home)
    )
    assert second.returncode == 0, second.stderr
    run = only_run(other)
    assert run.status().vec_steps == 32
    assert run.status().env_steps == 256
    assert len(list(home.glob("[a-z]????"))) == 1
    assert not (here / "runs").exists()


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_confirm_no_leaves_nothing(answer: str, here: Path) -> None:
    """The summary is shown, and a no (or no answer at all) writes nothing."""
    before = contents(here)
    result = gymnast("train", "CartPole-v1:ppo", "--confirm", cwd=here, answer=answer)
    assert "CartPole-v1" in result.stdout
    assert "Start training?" in result.stdout
    assert "Traceback" not in result.stderr
    assert contents(here) == before


def test_confirm_yes_trains(here: Path) -> None:
    """The default answer starts."""
    result = gymnast("train", "Identity-v0:ppo", "--confirm", "-n", 128, cwd=here, answer="\n")
    assert result.returncode == 0, result.stderr
    assert only_run(here / "runs").status().env_steps == 128


# ---- any env (ENV-7) -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("BoxIdentity-v0", ("env.module=small_envs",)),
        ("MaskedIdentity-v0:a2c", ("env.module=small_envs",)),
        ("DictIdentity-v0:reinforce", ("env.module=small_envs",)),
        ("small_envs:Walk-v0", ()),
        ("CliffWalkingSlippery-v1", ("env.time_limit=20",)),
    ],
)
def test_an_env_without_a_preset_trains(reference: str, words: tuple[str, ...], folder: Path) -> None:
    """Settings are chosen from its spaces; own modules are found by import path."""
    result = gymnast("train", reference, *words, "-q", "-n", 64, "eval.episodes=2", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "over 2 episodes" in result.stdout
    assert only_run(folder / "runs").status().state == "finished"


def test_a_module_in_the_working_folder_is_found(folder: Path) -> None:
    """Users' env files lie where they start the command, for workers and evaluation beside training as well.

    Each process imports the module for itself, and none of them complains that its envs are known already.
    """
    (folder / "mine.py").write_text(
        "import gymnasium as gym\nfrom small_envs import Identity\n\n\n"
        "class Mine(Identity):\n    pass\n\n\n"
        "gym.register('Mine-v0', 'mine:Mine', max_episode_steps=10)\n"
    )
    processes = ("env.vectorization=workers", "env.n_envs=4", "env.n_workers=2", "eval.mode=worker", "eval.every=32")
    settings = ("algo.n_steps=16", "algo.batch_size=64", "eval.episodes=2", *processes)
    result = gymnast("train", "mine:Mine-v0", "-q", "-n", 64, *settings, cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")


# ---- bad input -----------------------------------------------------------------------------------------------------

FAULTY = ("Faulty-v0", "env.module=small_envs", "-n", "100000", "-q", "env.n_envs=2")
RAW = ("policy.normalize_obs=false",)
BAD: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "unknown env": (("train", "CartPoel-v1"), 2, ("CartPoel-v1", "Did you mean", "CartPole-v1", "gymnast env list")),
    "unknown env with a variant": (("train", "Nothing-v9:ppo"), 2, ("Nothing-v9",)),
    "unknown variant": (("train", "CartPole-v1:ppp"), 2, ("ppp", "Did you mean 'ppo'", "a2c")),
    "unknown algorithm": (("train", "Walk-v0:dqn", "env.module=small_envs"), 2, ("dqn", "ppo")),
    "nothing to train": (("train",), 2, ("gymnast train CartPole-v1:ppo",)),
    "unknown key": (
        ("train", "CartPole-v1:ppo", "algo.learning_rat=1"),
        2,
        ("algo.learning_rat", "Did you mean", "learning_rate"),
    ),
    "not an override": (("train", "CartPole-v1:ppo", "fast"), 2, ("'fast'", "key=value")),
    "wrong type": (("train", "CartPole-v1:ppo", "algo.gamma=high"), 2, ("algo.gamma", "high")),
    "wrong choice": (("train", "CartPole-v1:ppo", "policy.activation=than"), 2, ("policy.activation", "tanh")),
    "out of range": (("train", "CartPole-v1:ppo", "algo.gamma=1.5"), 2, ("algo.gamma", "1.5")),
    "no envs": (("train", "CartPole-v1:ppo", "env.n_envs=0"), 2, ("env.n_envs", "greater than 0")),
    "negative envs": (("train", "CartPole-v1:ppo", "env.n_envs=-3"), 2, ("env.n_envs", "-3")),
    "no steps": (("train", "CartPole-v1:ppo", "-n", "0"), 2, ("train.env_steps", "greater than 0")),
    "steps that are no number": (("train", "CartPole-v1:ppo", "-n", "nan"), 2, ("nan",)),
    "endless steps": (("train", "CartPole-v1:ppo", "-n", "inf"), 2, ("inf",)),
    "no layers": (("train", "CartPole-v1:ppo", "policy.hidden=[0]"), 2, ("policy.hidden",)),
    "negative rollout": (("train", "CartPole-v1:ppo", "algo.n_steps=-1"), 2, ("algo.n_steps", "-1")),
    "batch larger than the rollout": (
        ("train", "CartPole-v1:ppo", "algo.batch_size=100000"),
        2,
        ("algo.batch_size", "100000", "larger than the rollout", "lower it"),
    ),
    "two budgets": (("train", "CartPole-v1:ppo", "-n", "100", "--vec-steps", "100"), 2, ("budget", "not both")),
    "unknown device": (("train", "CartPole-v1:ppo", "--device", "abacus"), 2, ("abacus", "cpu")),
    "a device that cannot train": (("train", "CartPole-v1:ppo", "--device", "meta"), 2, ("meta", "cpu")),
    "unknown wrapper": (("train", "CartPole-v1:ppo", "env.wrappers=[one_hott]"), 2, ("one_hott", "one_hot")),
    "wrapper without its argument": (("train", "CartPole-v1:ppo", "env.wrappers=[time_limit]"), 2, ("time_limit",)),
    "wrapper that does not fit": (("train", "CartPole-v1:ppo", "env.wrappers=[one_hot]"), 2, ("one_hot", "Discrete")),
    "wrong env argument": (("train", "CartPole-v1:ppo", "env.kwargs.gravity=1"), 2, ("env.kwargs", "gravity")),
    "wrong value of an env argument": (
        ("train", "FrozenLake8x8-v1:ppo", "env.kwargs.map_name=5x5", "-n", "100"),
        2,
        ("env.kwargs", "5x5"),
    ),
    "unknown stop metric": (
        ("train", "CartPole-v1:ppo", "train.stop=[{metric: eval/retrun_mean, at_least: 1}]"),
        2,
        ("eval/retrun_mean", "eval/return_mean"),
    ),
    "a module that is not there": (("train", "Some-v0", "env.module=nowhere"), 2, ("env.module", "nowhere")),
    "config file that is not there": (("train", "nowhere.yaml:ppo"), 2, ("nowhere.yaml", "No such file")),
    "episodes longer than max_steps": (
        ("train", "CartPole-v1:reinforce", "algo.max_steps=3", "-n", "4000"),
        1,
        ("algo.max_steps",),
    ),
    "no such run": (("resume", "qqqqq"), 2, ("gymnast train",)),
    "no run to evaluate": (("eval",), 2, ("gymnast train",)),
    "no run to film": (("video",), 2, ("gymnast train",)),
    "a video of a kind we do not write": (("video", "-o", "x.avi"), 2, ("'.avi'", ".mp4, .webm or .gif")),
    "no run to show": (("runs", "show"), 2, ("gymnast train",)),
    "NaN observation": (("train", *FAULTY, *RAW, "env.kwargs.how=nan"), 1, ("NaN", "in env", "observation", "action")),
    "infinite observation": (("train", *FAULTY, *RAW, "env.kwargs.how=inf"), 1, ("infinity", "in env", "observation")),
    "NaN reward": (("train", *FAULTY, *RAW, "env.kwargs.how=reward"), 1, ("NaN", "env 0", "reward", "action")),
    "NaN while the statistics warm up": (("train", *FAULTY, "env.kwargs.how=nan"), 1, ("NaN", "env 0", "observation")),
    "an env that crashes": (("train", *FAULTY), 1, ("Env 0", "RuntimeError: the simulator exploded", "seed", "action")),
    "a worker that crashes": (
        ("train", *FAULTY, "env.vectorization=workers", "env.on_worker_failure=abort"),
        1,
        ("Env 0", "worker", "RuntimeError: the simulator exploded", "seed", "action"),
    ),
}

KEEP_THE_ROLLOUT = ("NaN observation", "infinite observation", "NaN reward")


Outcome = tuple[CompletedProcess[str], list[str]]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Outcome]]]:
    """The selected cases, each in its own process and empty folder, two at a time."""

    def run(case: str) -> Outcome:
        folder = tmp_path_factory.mktemp("bad")
        return gymnast(*BAD[case][0], cwd=folder), contents(folder)

    tests = [item for item in request.session.items if getattr(item, "originalname", "") == "test_bad_input"]
    with ThreadPoolExecutor(2) as pool:
        yield {item.callspec.params["case"]: pool.submit(run, item.callspec.params["case"]) for item in tests}  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, outcomes: dict[str, Future[Outcome]]) -> None:
    """One paragraph that says what is wrong and what to do, the right exit code, and nothing left behind but evidence."""
    _, code, words = BAD[case]
    result, left = outcomes[case].result()
    assert_one_paragraph(result, *words)
    assert result.returncode == code
    if case in KEEP_THE_ROLLOUT:
        assert any(name.endswith("nan/step=0.safetensors") for name in left)
    else:
        assert left == []


def test_missing_optional_package(folder: Path) -> None:
    """The install line, without what only programmers read."""
    pytest.importorskip("gymnasium")
    try:
        import Box2D  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("Box2D is installed")
    result = gymnast("train", "LunarLander-v3", cwd=folder)
    assert result.returncode == 2
    assert_one_paragraph(result, "LunarLander-v3", "pip install")
    assert "env.kwargs" not in result.stderr
    assert contents(folder) == []
    atari = gymnast("train", "ALE/Pong-v5", cwd=folder)
    assert atari.returncode == 2
    assert_one_paragraph(atari, "ALE/Pong-v5", 'pip install "gymnast[atari]"')


@pytest.mark.parametrize("where", ["file/runs", "/proc/runs", "file"])
def test_unwritable_run_folder(where: str, folder: Path) -> None:
    """Named before training starts, with the options that help."""
    (folder / "file").write_text("not a folder")
    result = gymnast("train", "CartPole-v1:ppo", "--runs-dir", where, cwd=folder)
    assert result.returncode == 2
    assert_one_paragraph(result, where, "--runs-dir", "GYMNAST_HOME")
    assert contents(folder) == ["file"]


def test_bad_config_files_name_file_and_line(folder: Path) -> None:
    """Unknown keys, wrong values and broken YAML in the user's own files."""
    head = "id: CartPole-v1\nvariants:\n  my_ppo:\n    train: {env_steps: 1}\n"
    broken = {
        "key": (head + "    algo:\n      n_step: 3\n", "key.yaml:6", "n_step"),
        "value": (head + "    algo: {gamma: 2.0}\n", "value.yaml:5", "algo.gamma"),
        "text": ("id: CartPole-v1\nvariants: [\n", "text.yaml:", "YAML"),
        "twice": ("id: CartPole-v1\nid: CartPole-v1\n", "twice.yaml:2", "id"),
        "top": ("id: CartPole-v1\nvariant: {}\n", "top.yaml:2", "variants"),
    }
    for name, (text, where, word) in broken.items():
        (folder / f"{name}.yaml").write_text(text)
        result = gymnast("train", f"{name}.yaml:my_ppo", cwd=folder)
        assert result.returncode == 2, name
        assert_one_paragraph(result, where, word)
    assert not (folder / "runs").exists()


def test_debug_shows_the_traceback(folder: Path) -> None:
    """Of our own errors and of the env's."""
    result = gymnast("--debug", "train", "CartPole-v1:ppp", cwd=folder)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "UsageError: CartPole-v1 has no variant 'ppp'" in result.stderr
    crash = gymnast("train", *FAULTY, "--debug", cwd=folder)
    assert "small_envs.py" in crash.stderr
    assert "the simulator" in crash.stderr


@pytest.mark.parametrize(
    ("where", "words"),
    [("training", ("in env", "weights are unchanged")), ("evaluation", ("in env", "evaluation", "reward"))],
)
def test_a_fault_after_some_training_keeps_what_was_learnt(where: str, words: tuple[str, ...], folder: Path) -> None:
    """The run is marked as failed with the reason, and its checkpoint loads."""
    faults = {
        "training": ("env.kwargs.how=nan", "env.kwargs.at=100", "eval.every=100000"),
        # The training envs are past the bad step when the evaluation's come to it.
        "evaluation": ("env.kwargs.how=reward", "policy.normalize_obs=true", "eval.every=64"),
    }
    sizes = ("env.n_envs=2", "algo.n_steps=16", "algo.batch_size=16", "train.checkpoint_every=32", "eval.episodes=2")
    arguments = ("train", "Faulty-v0", "env.module=small_envs", *faults[where], *sizes, "-n", "6400")
    result = gymnast(*arguments, cwd=folder)
    assert result.returncode == 1
    assert_one_paragraph(result, "NaN", *words)
    run = only_run(folder / "runs")
    assert run.status().state == "failed"
    assert "NaN" in str(run.status().stop_reason)
    saved, skipped = checkpoint.load_latest(run.folder)
    assert not skipped
    assert 0 < saved.manifest.step <= 192
    listed = gymnast("runs", "list", cwd=folder, COLUMNS="200")
    assert "failed" in listed.stdout


# ---- signals -------------------------------------------------------------------------------------------------------

ENDLESS = ("train", "CartPole-v1:ppo", *SIZES, "-n", "100000000", "train.stop_when_solved=false")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_before_training_starts_leaves_nothing(number: signal.Signals, folder: Path) -> None:
    """While Python still imports: gone, without a trace and without a traceback."""
    process = start(*ENDLESS, cwd=folder)
    until(lambda: "libtorch" in Path(f"/proc/{process.pid}/maps").read_text())
    _, err = stop(process, number)
    assert process.returncode in (130, -number)
    assert "Traceback" not in err
    assert contents(folder) == []


def test_live_table_and_ctrl_c_once(folder: Path) -> None:
    """The table is drawn and taken away, the cursor comes back, the result is printed, and the run can go on."""
    terminal = Terminal(*ENDLESS, "log.interval=0.05", cwd=folder)
    terminal.wait_for(HIDE_CURSOR)
    terminal.wait_for("return_mean")
    run = Run(wait_for_rows(terminal, folder / "runs", 5))
    terminal.interrupt()
    assert terminal.end() == 130
    assert terminal.output.rindex(SHOW_CURSOR) > terminal.output.rindex(HIDE_CURSOR)
    assert terminal.output.rindex(f"gymnast resume {run.id}") > terminal.output.rindex(SHOW_CURSOR)
    assert run.status().state == "interrupted"
    done = checkpoint.load_latest(run.folder)[0].manifest.step
    assert done == list(MetricRows(run.metrics_path))[-1]["env_steps"]
    assert ESCAPE not in run.log_path.read_text()
    finished = gymnast("resume", "-q", "-n", done + 640, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert run.status().state == "finished"
    assert last_run(folder / "runs") is not None


def test_ctrl_c_twice_leaves_at_once(folder: Path) -> None:
    """Even in an iteration that would take for ever; the cursor is visible again and the terminal sane."""
    (folder / "sleepy.py").write_text(
        "import time\nimport gymnasium as gym\nfrom small_envs import Counting\n\n\n"
        "class Sleepy(Counting):\n"
        "    def step(self, action):\n"
        "        if Counting.steps > 300:\n            time.sleep(0.2)\n"
        "        return super().step(action)\n\n\n"
        "gym.register('Sleepy-v0', 'sleepy:Sleepy', max_episode_steps=50)\n"
    )
    (folder / "sleepy.yaml").write_text(
        "id: Sleepy-v0\nvariants:\n  ppo:\n    env: {module: sleepy, n_envs: 4}\n"
        "    algo: {n_steps: 64, batch_size: 64}\n    train: {env_steps: 100000, checkpoint_every: 256}\n"
        "    eval: {every: 100000}\n    log: {interval: 0.01}\n"
    )
    terminal = Terminal("train", "sleepy.yaml:ppo", cwd=folder)
    terminal.wait_for(HIDE_CURSOR)
    run = Run(wait_for_rows(terminal, folder / "runs", 1))
    terminal.interrupt()
    terminal.interrupt()
    assert terminal.end() == 130
    assert terminal.output.rindex(SHOW_CURSOR) > terminal.output.rindex(HIDE_CURSOR)
    assert "Traceback" not in terminal.output
    assert run.status().state == "interrupted"
    saved, _ = checkpoint.load_latest(run.folder)
    assert saved.manifest.step == 256


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    """`gymnast config show … | head -1` ends quietly."""
    command = f"{COMMAND} config show CartPole-v1:ppo | head -1"
    result = subprocess.run(
        ["/bin/bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert "CartPole-v1:ppo" in result.stdout

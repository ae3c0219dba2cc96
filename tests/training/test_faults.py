"""Faults at named places of real runs: what was saved stays readable, the run can go on, and its end is the same."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from faults.files import DAMAGES
from faults.points import Fault
from faults.server import Child, Server
from launch import until
from runs_alike import assert_same_end, differences, end_of

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint, index
from gymnast.runs.store import Run

CONFIG = """\
id: CartPole-v1
variants:
  ppo:
    env: {n_envs: 4, time_limit: 60}
    policy: {hidden: [8], normalize_obs: true}
    algo: {n_steps: 16, batch_size: 32, n_epochs: 2, learning_rate: lin_1e-2, normalize_reward: true}
    train: {env_steps: 1280, checkpoint_every: 192, stop_when_solved: false}
    eval: {every: 320, episodes: 3, start_fraction: null}
    log: {video: false, rollouts: false, report: false}
"""
TRAIN = ("train", "quick.yaml:ppo", "-q")
STEPS = [64 * i for i in range(1, 21)]


@pytest.fixture
def quick(folder: Path) -> Path:
    """A working folder with the config."""
    (folder / "quick.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def whole(commands: Server, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "quick.yaml").write_text(CONFIG)
    assert commands.run(*TRAIN, cwd=folder).code == 0
    return only_run(folder)


def only_run(folder: Path) -> Run:
    """The one run there is."""
    (found,) = (folder / "runs").glob("[a-z]????")
    return Run(found)


def assert_sound(run: Run) -> int:
    """`last` loads without help, and the rows up to it are all there; its step."""
    saved, skipped = checkpoint.load_latest(run.folder)
    assert not skipped
    assert checkpoint.read_pointer(run.folder, "last") == f"step={saved.manifest.step}"
    steps = [row["env_steps"] for row in MetricRows(run.metrics_path)]
    assert [step for step in steps if step <= saved.manifest.step] == STEPS[: saved.manifest.step // 64]
    return saved.manifest.step


def assert_goes_on(commands: Server, folder: Path, whole: Run) -> Run:
    """`gymnast resume` comes to the end of the whole run, in the same folder, and tidies up."""
    resumed = commands.run("resume", "-q", cwd=folder)
    assert resumed.code == 0, resumed.err
    run = only_run(folder)
    assert run.status().state == "finished"
    assert_same_end(whole, run)
    assert [row["env_steps"] for row in MetricRows(run.metrics_path)] == STEPS
    assert not list(run.checkpoints.glob(".*"))
    assert [row.status for row in index.list_runs(run.root)] == ["finished"]
    return run


def assert_one_sentence(child: Child, *words: str) -> None:
    """An error for people."""
    assert child.code == 1, (child.out, child.err)
    assert child.err.count("error: ") == 1
    assert "Traceback" not in child.err
    for word in words:
        assert word in child.err


# ---- signals --------------------------------------------------------------------------------------------------------

PLACES = [
    ("act", 100),
    ("update", 37),
    ("save file", 5),
    ("save pointer", 3),
    ("evaluation", 2),
    ("metrics", 7),
    ("create", 1),
]


def _everywhere() -> list[Any]:
    """Ctrl-C at every place; the other signals are handled by the same lines, so one place each says that they arrive."""
    full = pytest.mark.full
    others = [(name, *place) for name in ("SIGTERM", "SIGHUP") for place in PLACES]
    first = PLACES[0]
    return [
        *(("SIGINT", *place) for place in PLACES),
        *(pytest.param(*one, marks=() if one[1:] == first else full) for one in others),
    ]


@pytest.mark.parametrize(("name", "point", "nth"), _everywhere())
def test_a_signal_leaves_a_checkpoint_of_everything(
    name: str, point: str, nth: int, commands: Server, quick: Path, whole: Run
) -> None:
    stopped = commands.run(*TRAIN, cwd=quick, faults=[Fault(point, name, nth)])
    run = only_run(quick)
    assert stopped.code == 130, stopped.err
    assert "Traceback" not in stopped.err
    assert run.status().state == "interrupted"
    assert run.status().stop_reason == f"interrupted ({name})"
    assert assert_sound(run) == list(MetricRows(run.metrics_path))[-1]["env_steps"] == run.status().env_steps
    assert f"gymnast resume {run.id}" in stopped.out
    assert_goes_on(commands, quick, whole)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_while_filming_harms_nothing(name: str, commands: Server, tmp_path: Path, whole: Run) -> None:
    target = tmp_path / "film.mp4"
    arguments = ("video", whole.id, "--runs-dir", whole.root, "-o", target)
    before = end_of(whole)
    assert commands.run(*arguments, cwd=tmp_path, faults=[Fault("frame", name, 5)]).code in (130, -9, -15)
    assert not target.exists()
    assert not differences(before, end_of(whole))
    again = commands.run(*arguments, cwd=tmp_path)
    assert again.code == 0, again.err
    assert target.stat().st_size > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.json", "film.mp4"]


KILLS = [
    ("update", 70, False),
    ("save file", 6, False),
    ("save move", 3, True),
    ("save pointer", 3, False),
    ("save prune", 4, False),
    ("metrics", 12, True),
    ("status", 5, False),
    ("index", 4, True),
    ("evaluation", 3, False),
    ("finish", 1, False),
]


@pytest.mark.parametrize(("point", "nth", "after"), KILLS, ids=[point for point, *_ in KILLS])
def test_a_kill_costs_only_what_came_after_the_checkpoint(
    point: str, nth: int, after: bool, commands: Server, quick: Path, whole: Run
) -> None:
    killed = commands.run(*TRAIN, cwd=quick, faults=[Fault(point, "SIGKILL", nth, after)])
    assert killed.code == -9
    run = only_run(quick)
    assert run.shown_state() == "crashed"
    assert_sound(run)
    finished = assert_goes_on(commands, quick, whole)  # one killed after its last checkpoint only gets its last word
    assert finished.status().last_return == whole.status().last_return
    assert finished.status().best_return == whole.status().best_return
    refused = commands.run("resume", cwd=quick)
    assert "is finished (budget spent after 1,280 env steps)" in refused.err


@pytest.mark.parametrize("nth", range(1, 7))
def test_a_kill_beside_the_pointers_keeps_the_best_and_the_last_together(
    nth: int, commands: Server, quick: Path, whole: Run
) -> None:
    """Which checkpoint is the best is known to the pointer and to the state; neither may run ahead of the other."""
    killed = commands.run(*TRAIN, cwd=quick, faults=[Fault("save pointer", "SIGKILL", nth, after=True)])
    assert killed.code == -9
    if checkpoint.steps(only_run(quick).folder):
        assert_goes_on(commands, quick, whole)


def test_a_kill_while_resuming(commands: Server, quick: Path, whole: Run) -> None:
    """Each step of a resume may be the last one; another resume takes over."""
    commands.run(*TRAIN, cwd=quick, faults=[Fault("update", "SIGKILL", 40)])
    for point in ("restore", "begin", "lineage", "start"):
        assert commands.run("resume", "-q", cwd=quick, faults=[Fault(point, "SIGKILL", after=True)]).code == -9
        assert_sound(only_run(quick))
    assert_goes_on(commands, quick, whole)


# ---- iterations longer than the grace period --------------------------------------------------------------------------

SLEEPY = """\
import time
from pathlib import Path
import gymnasium as gym
from small_envs import Walk

class Sleepy(Walk):
    def step(self, action):
        time.sleep(0.2 if Path("slow").exists() else 0.005)
        return super().step(action)

gym.register("Sleepy-v0", "sleepy:Sleepy", max_episode_steps=30)
"""
SLEEPY_CONFIG = """\
id: Sleepy-v0
variants:
  ppo:
    env: {module: sleepy, n_envs: 1, vectorization: inprocess}
    policy: {hidden: [8], normalize_obs: false}
    algo: {n_steps: 50, batch_size: 25, n_epochs: 2}
    train: {env_steps: 150, checkpoint_every: 1000, stop_when_solved: false, grace_period: 0.4}
    eval: {every: 1000, episodes: 1, start_fraction: null}
"""


@pytest.fixture
def sleepy(folder: Path) -> Path:
    """A config whose iterations take a quarter of a second, or ten; the grace period is between them."""
    (folder / "sleepy.py").write_text(SLEEPY)
    (folder / "sleepy.yaml").write_text(SLEEPY_CONFIG)
    return folder


def test_a_long_iteration_is_left_in_the_grace_period(commands: Server, sleepy: Path) -> None:
    """Nobody waits for its end: the boundary before it is written, and repeated from there on resume."""
    arguments = ("train", "sleepy.yaml:ppo", "-q")
    assert commands.run(*arguments, "--runs-dir", "whole", cwd=sleepy).code == 0
    child = commands.start(*arguments, cwd=sleepy)
    until(lambda: any(path.read_bytes().count(b"\n") == 1 for path in sleepy.glob("runs/[a-z]????/metrics.jsonl")))
    (sleepy / "slow").touch()  # the second iteration takes ten seconds
    time.sleep(0.1)
    began = time.monotonic()
    child.signal(15)
    assert child.wait() == 130, child.err
    assert time.monotonic() - began < 5, "it waited for the end of the iteration"
    run = only_run(sleepy)
    assert run.status().state == "interrupted"
    assert run.status().stop_reason == "interrupted (SIGTERM) in iteration 2"
    saved, skipped = checkpoint.load_latest(run.folder)
    assert not skipped
    assert saved.manifest.step == run.status().env_steps == 50

    (sleepy / "slow").unlink()
    resumed = commands.start("resume", "-q", cwd=sleepy)
    until(lambda: run.status().attempt == 2)
    (sleepy / "slow").touch()
    time.sleep(0.05)
    resumed.signal(2)  # in the first iteration after a resume: its boundary is on disk already
    assert resumed.wait() == 130, resumed.err
    assert run.status().env_steps == 50
    (sleepy / "slow").unlink()
    finished = commands.run("resume", "-q", cwd=sleepy)
    assert finished.code == 0, finished.err
    (expected,) = (sleepy / "whole").glob("[a-z]????")
    assert_same_end(Run(expected), run)


def test_a_long_first_iteration_leaves_nothing(commands: Server, sleepy: Path) -> None:
    """Nothing was learnt yet, so there is nothing to keep."""
    (sleepy / "slow").touch()
    child = commands.start("train", "sleepy.yaml:ppo", "-q", cwd=sleepy)
    until(lambda: bool(list(sleepy.glob("runs/[a-z]????/log.txt"))))
    time.sleep(0.1)
    child.signal(15)
    assert child.wait() == 130
    assert "Traceback" not in child.err
    assert not (sleepy / "runs").exists()


def test_a_second_signal_while_the_boundary_is_written(commands: Server, sleepy: Path) -> None:
    """It leaves at once, and the run says how it ended."""
    faults = [Fault("save file", "sleep=3", 1)]
    child = commands.start("train", "sleepy.yaml:ppo", "-q", cwd=sleepy, faults=faults)
    until(lambda: any(path.read_bytes().count(b"\n") == 1 for path in sleepy.glob("runs/[a-z]????/metrics.jsonl")))
    (sleepy / "slow").touch()
    time.sleep(0.1)
    child.signal(15)
    time.sleep(1)  # the grace period is over, the save has begun and sleeps
    child.signal(2)
    assert child.wait() == 130, child.err
    assert only_run(sleepy).status().state == "interrupted"


def test_the_same_command_goes_on_where_it_was_stopped(commands: Server, quick: Path, whole: Run) -> None:
    """With --resume there is no second run, however often the command is given; without it a new one says what is left."""
    again = (*TRAIN, "--resume")
    assert commands.run(*again, cwd=quick, faults=[Fault("update", "SIGTERM", 30)]).code == 130
    assert commands.run(*again, cwd=quick, faults=[Fault("update", "SIGKILL", 30)]).code == -9
    first = only_run(quick)
    assert commands.run(*again, cwd=quick).code == 0
    assert_same_end(whole, only_run(quick))
    assert commands.run(*again, cwd=quick).code == 0  # finished: there is nothing to go on with
    assert len(list((quick / "runs").glob("[a-z]????"))) == 2
    assert commands.run(*again, "algo.gamma=0.9", cwd=quick, faults=[Fault("update", "SIGTERM", 60)]).code == 130
    (left,) = (row.id for row in index.list_runs(first.root) if row.status == "interrupted")
    fresh = commands.run("train", "quick.yaml:ppo", "algo.gamma=0.9", "-n", 1280, cwd=quick)
    assert fresh.code == 0, fresh.err
    assert f"gymnast resume {left}" in fresh.out


# ---- disks ------------------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_for_a_while(commands: Server, quick: Path, whole: Run) -> None:
    """Checkpoints and status that do not fit are warned of once, and training goes on to the same end."""
    faults = [Fault("save file", "ENOSPC", 4), Fault("status", "ENOSPC", 5, times=2), Fault("index", "ENOSPC", 99)]
    child = commands.run(*TRAIN, cwd=quick, faults=faults)
    assert child.code == 0, child.err
    assert "No space left on device" in child.out
    assert "intact" in child.out
    assert child.out.count("The status of run") == 1
    assert_same_end(whole, only_run(quick))
    assert "No space left" in only_run(quick).log_path.read_text()


def test_the_best_checkpoint_is_tried_again(commands: Server, quick: Path, whole: Run) -> None:
    """Whichever pointer or file does not fit, in the end the best one is there."""
    for point, count in (("save pointer", 8), ("save move", 6)):
        for nth in range(1, count):
            child = commands.run(*TRAIN, "--runs-dir", f"{point}{nth}", cwd=quick, faults=[Fault(point, "ENOSPC", nth)])
            assert child.code == 0, child.err
            (found,) = (quick / f"{point}{nth}").glob("[a-z]????")
            assert_same_end(whole, Run(found))


def test_what_the_last_save_left_behind_is_removed(commands: Server, quick: Path, whole: Run) -> None:
    """Also when all that a resume has to do is to write how the run ended."""
    commands.run(*TRAIN, cwd=quick, faults=[Fault("finish", "SIGKILL", 1)])
    left = only_run(quick).checkpoints / ".tmp-4194304-99-3"
    left.mkdir()
    (left / checkpoint.POLICY).write_bytes(b"half")
    assert_goes_on(commands, quick, whole)


def test_a_whole_checkpoint_that_nothing_points_at(commands: Server, quick: Path, whole: Run) -> None:
    """The folders fit on the disk, the pointers never did: a resume finds the newest and points at it."""
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("save pointer", "ENOSPC", 1, times=10**6)])
    assert_one_sentence(child, "its end could not be saved", "No space left on device")
    run = only_run(quick)
    assert checkpoint.read_pointer(run.folder, "last") is None
    resumed = commands.run("resume", "-q", cwd=quick)
    assert resumed.code == 0, resumed.err
    assert run.status().state == "finished"
    assert_same_end(whole, run)


def test_the_last_word_does_not_fit(commands: Server, quick: Path, whole: Run) -> None:
    """All is trained and saved, only the status is not: a resume writes it."""
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("finish", "ENOSPC", 1)])
    assert child.code == 1
    assert only_run(quick).status().state == "failed"
    assert_goes_on(commands, quick, whole)


def test_a_resume_without_space_leaves_the_run_as_it_was(commands: Server, quick: Path, whole: Run) -> None:
    commands.run(*TRAIN, cwd=quick, faults=[Fault("update", "SIGTERM", 40)])
    before = only_run(quick).status()
    for point, nth in (("lineage", 1), ("status", 1), ("atomic", 1)):
        child = commands.run("resume", "-q", cwd=quick, faults=[Fault(point, "ENOSPC", nth)])
        assert_one_sentence(child, "No space left on device")
        assert only_run(quick).status() == before
    assert_goes_on(commands, quick, whole)


def test_a_disk_too_full_for_any_checkpoint(commands: Server, quick: Path, whole: Run) -> None:
    """An end that is not saved is no success."""
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("save file", "ENOSPC", 9, times=10**6)])
    assert_one_sentence(
        child, "its end could not be saved", "No space left on device", "earlier checkpoints are intact"
    )
    assert only_run(quick).status().state == "failed"
    assert assert_sound(only_run(quick)) < STEPS[-1]
    assert_goes_on(commands, quick, whole)


@pytest.mark.parametrize("limit", [6000, 20_000])
def test_a_file_system_that_takes_no_more(limit: int, commands: Server, quick: Path, whole: Run) -> None:
    """The kernel refuses: a clean stop with one sentence, everything before it readable, and later it goes on."""
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("rollout", f"FSIZE={limit}", 9)])
    assert_one_sentence(child, "metrics", "File too large", "gymnast resume")
    assert_sound(only_run(quick))
    assert_goes_on(commands, quick, whole)


def test_a_reader_that_goes_away(quick: Path, whole: Run) -> None:
    """`gymnast train … | head -1`: the training goes on without its words."""
    command = [sys.executable, "-m", "gymnast", "train", "quick.yaml:ppo"]
    child = subprocess.Popen(command, cwd=quick, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.close()
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert only_run(quick).status().state == "finished"
    assert_same_end(whole, only_run(quick))


def test_output_that_leads_to_a_full_disk(commands: Server, quick: Path, whole: Run) -> None:
    """`gymnast train … > file`: the words are lost, the training is not."""
    child = commands.run("train", "quick.yaml:ppo", cwd=quick, faults=[Fault("rollout", "full stdout", 2)])
    assert child.code == 0, child.err
    assert "Traceback" not in child.err
    assert_same_end(whole, only_run(quick))


@pytest.mark.skipif(os.getuid() != 0, reason="gives its own rights away, which only root can")
def test_a_folder_that_becomes_read_only(commands: Server, quick: Path, whole: Run) -> None:
    quick.chmod(0o755)  # whoever may not write may still look
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("rollout", "read-only", 9)])
    assert_one_sentence(child, "its end could not be saved", "Permission denied")
    assert child.out.count("The status of run") == 1
    run = only_run(quick)
    assert assert_sound(run) < 9 * 64
    assert run.shown_state() == "crashed"  # it could not write how it ended
    assert_goes_on(commands, quick, whole)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoints_are_named_and_passed_over(damage: str, commands: Server, quick: Path, whole: Run) -> None:
    commands.run(*TRAIN, cwd=quick, faults=[Fault("update", "SIGKILL", 70)])
    run = only_run(quick)
    newest = checkpoint.read_pointer(run.folder, "last")
    assert newest is not None
    name = random.Random(damage).choice([checkpoint.POLICY, checkpoint.STATE, checkpoint.MANIFEST])
    DAMAGES[damage](run.checkpoints / newest / name, random.Random(damage))
    resumed = commands.run("resume", "-q", cwd=quick)
    assert resumed.code == 0, resumed.err
    assert f"{newest} was skipped" in resumed.out
    assert name in resumed.out
    assert_same_end(whole, run)


# ---- numbers and memory -----------------------------------------------------------------------------------------------


def test_a_gradient_that_is_not_finite(commands: Server, quick: Path, whole: Run) -> None:
    """Found in the same update; the batch is kept, the checkpoint is the one before, and the run can go on."""
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("gradients", "nan", 41, after=True)])
    run = only_run(quick)
    dump = run.folder / "nan" / "step=640.safetensors"
    assert_one_sentence(child, "gradient is NaN", "weights are unchanged", f"runs/{run.id}/nan/step=640.safetensors")
    assert run.status().state == "failed"
    assert str(run.status().stop_reason).startswith("NonFiniteError: The gradient is NaN")
    assert assert_sound(run) <= 640
    assert run.status().env_steps == 640
    from safetensors.torch import load_file

    tensors = load_file(dump)
    assert tensors["obs"].shape == (64, 4)
    assert tensors["advantage"].isfinite().all()
    about = json.loads(dump.with_suffix(".json").read_text())
    assert (about["iteration"], about["env_steps"]) == (11, 640)
    assert "gradient" in about["reason"]
    assert_goes_on(commands, quick, whole)


def test_the_first_batch_is_kept_too(commands: Server, quick: Path) -> None:
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault("gradients", "nan", 1, after=True)])
    assert_one_sentence(child, "gradient is NaN", "nan/step=0.safetensors")
    assert only_run(quick).status().state == "failed"


@pytest.mark.parametrize("how", ["nan", "reward"])
def test_bad_numbers_from_an_env(how: str, commands: Server, folder: Path) -> None:
    """The rollout is kept as the env gave it."""
    sizes = ("env.n_envs=2", "algo.n_steps=16", "algo.batch_size=16", "policy.normalize_obs=false", "eval.every=9999")
    fault = ("env.module=small_envs", f"env.kwargs.how={how}", "env.kwargs.at=40", "train.checkpoint_every=32")
    child = commands.run("train", "Faulty-v0", *fault, *sizes, "-q", "-n", 640, cwd=folder)
    assert_one_sentence(child, "NaN", "in env 0, step 7 of this rollout", "nan/step=64.safetensors")
    run = only_run(folder)
    about = json.loads((run.folder / "nan" / "step=64.json").read_text())
    bad = {name: one["nonfinite"] for name, one in about["tensors"].items()}
    assert bad == {"obs": 2 * (how == "nan"), "action": 0, "reward": 2 * (how == "reward")}
    assert checkpoint.load_latest(run.folder)[0].manifest.step == 64


def test_bad_numbers_in_the_first_rollout(commands: Server, folder: Path) -> None:
    """There is no checkpoint to go back to, but what the env gave is kept."""
    sizes = ("env.n_envs=2", "algo.n_steps=16", "algo.batch_size=16", "policy.normalize_obs=false")
    fault = ("env.module=small_envs", "env.kwargs.how=nan", "env.kwargs.at=5")
    child = commands.run("train", "Faulty-v0", *fault, *sizes, "-q", "-n", 640, cwd=folder)
    assert_one_sentence(child, "NaN", "nan/step=0.safetensors")
    assert only_run(folder).status().state == "failed"
    assert (only_run(folder).folder / "nan" / "step=0.json").exists()


@pytest.mark.parametrize(
    ("kind", "point"), [("memory", "act"), ("torch memory", "gradients"), ("memory", "evaluation")]
)
def test_memory_that_runs_out(kind: str, point: str, commands: Server, quick: Path, whole: Run) -> None:
    nth = {"act": 150, "gradients": 40, "evaluation": 2}[point]
    child = commands.run(*TRAIN, cwd=quick, faults=[Fault(point, kind, nth)])
    assert_one_sentence(child, "Memory ran out", "env.n_envs=4", "algo.n_steps=16", "algo.batch_size=32", "intact")
    run = only_run(quick)
    assert run.status().state == "failed"
    assert "Memory ran out" in str(run.status().stop_reason)
    assert_sound(run)
    assert_goes_on(commands, quick, whole)


def test_a_rollout_that_does_not_fit_into_memory(commands: Server, quick: Path) -> None:
    """Really refused by the system, before anything is written."""
    sizes = ("algo.n_steps=500000000", "-n", 10**10, "--yes")
    child = commands.run(*TRAIN, *sizes, cwd=quick, limits={"AS": 10 * 2**30})
    assert_one_sentence(child, "Memory ran out", "algo.n_steps=500000000")
    assert not (quick / "runs").exists()


# ---- clocks and workers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_jumps(seconds: int, commands: Server, quick: Path, whole: Run) -> None:
    """Durations come from a clock that cannot be set; the run ends as ever and no time is negative."""
    jump = Fault("rollout", f"clock={seconds}", 6)
    stopped = commands.run(*TRAIN, cwd=quick, faults=[jump, Fault("update", "SIGTERM", 60)])
    assert stopped.code == 130, stopped.err
    run = only_run(quick)
    assert not run.is_alive()
    assert_goes_on(commands, quick, whole)
    rows = list(MetricRows(run.metrics_path))
    for key in ("time/seconds", "time/eta", "time/fps", "time/fps_now"):
        assert all(row[key] >= 0 for row in rows), key
    seconds_shown = [row["time/seconds"] for row in rows]
    assert seconds_shown == sorted(seconds_shown)
    assert 0 < run.status().wall_seconds < 600
    for command in (("runs", "list"), ("runs", "show", run.id)):
        shown = commands.run(*command, cwd=quick)
        assert shown.code == 0, shown.err


def test_a_worker_that_dies_is_replaced_and_counted(commands: Server, folder: Path) -> None:
    (folder / "dying.py").write_text(
        "import os\nimport gymnasium as gym\nfrom small_envs import Counting\n\n\n"
        "class Dying(Counting):\n    def step(self, action):\n"
        "        if Counting.steps == 45:\n            os._exit(3)\n        return super().step(action)\n\n\n"
        "gym.register('Dying-v0', 'dying:Dying', max_episode_steps=50)\n"
    )
    sizes = ("env.n_envs=2", "env.n_workers=2", "algo.n_steps=16", "algo.batch_size=16", "eval.episodes=1")
    words = ("env.module=dying", "env.vectorization=workers", "policy.normalize_obs=false", *sizes, "-q", "-n", 192)
    child = commands.run("train", "Dying-v0", *words, cwd=folder)
    assert child.code == 0, child.err
    restarts = [row["env/worker_restarts"] for row in MetricRows(only_run(folder).metrics_path)]
    assert restarts[0] == 0
    assert restarts[-1] >= 2
    assert restarts == sorted(restarts)
    # Said where the user looks, now and later: which env, how to repeat it, and what it means for the result.
    for said in (child.out, (only_run(folder).folder / "log.txt").read_text()):
        assert "warning: Env 0 (in worker 0) ended its process (exit code 3)." in said
        assert re.search(r"It was last reset with seed \d+ and its last action was \d\.", said)
        assert "The worker is replaced (restart 1 of 10)." in said
        assert "differs from one with the same seed that lost no worker" in said

    always = commands.run("train", "Dying-v0", *words[:-1], 10**6, "env.max_restarts=2", cwd=folder)
    assert always.code == 1
    assert "failed more than 2 times" in always.err
    assert "seed" in always.err

"""Whether a change of the code changed any bit of what is trained.

    python benchmarks/unchanged.py record [NAME …]     write the hashes of this tree into results/unchanged.json
    python benchmarks/unchanged.py check [NAME …]      train again and compare; exit status 1 where something differs
    python benchmarks/unchanged.py list

Each configuration is trained for a few seconds through the command line, in a folder of its own. Three hashes are taken of the
run as it lies on disk: the weights of the newest checkpoint, the tensors of its optimizer, and the rows of `metrics.jsonl`
without what depends on the clock or the machine. Nothing of gymnast is imported, so that any two versions can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "unchanged.json"
CLOCKED = ("time/", "sys/")
NOT_COMPARED = ("attempt", "resumed_from")
STOP_AFTER = "STOP"
"""A step of a configuration: stop the training by a signal once it has a few iterations, then go on."""

MLP = ["policy.hidden=[16,16]"]
CARTPOLE = ["CartPole-v1:ppo", *MLP, "train.stop_when_solved=false", "eval.every=3000", "eval.episodes=5"]
SMALL = ["train.stop_when_solved=false", *MLP]
NO_RESETS = "env.resume_every=1000000"
"""For envs that cannot be saved (EnvPool): when they are reset on purpose was changed, and is not what is compared here."""


@dataclass(frozen=True)
class Case:
    """Commands that train one run, in order; the last run of the folder is hashed."""

    commands: tuple[tuple[str, ...], ...]


def train(*words: str) -> Case:
    """One training."""
    return Case((("train", *words),))


CASES: dict[str, Case] = {
    # Algorithms and their options.
    "ppo": train(*CARTPOLE, "-n", "8000"),
    "ppo_shared": train(*CARTPOLE, "-n", "8000", "policy.shared_trunk=true"),
    "ppo_clip_vf_huber": train(
        *CARTPOLE, "-n", "6000", "algo.clip_range_vf=0.2", "algo.value_loss=huber", "algo.normalize_advantage=rollout"
    ),
    "ppo_target_kl": train(*CARTPOLE, "-n", "6000", "algo.target_kl=0.002", "algo.n_epochs=10"),
    "ppo_schedules": train(
        *CARTPOLE,
        "-n",
        "8000",
        "algo.learning_rate={schedule: cosine, start: 1e-3, end: 1e-5}",
        "algo.clip_range={schedule: linear, start: 0.3, end: 0.1}",
        "algo.n_epochs={schedule: linear, start: 8, end: 2}",
        "algo.ent_coef={schedule: piecewise, points: [[0, 0.02], [0.5, 0.0]]}",
    ),
    "ppo_layer_norm_dropout": train(*CARTPOLE, "-n", "6000", "policy.layer_norm=true", "policy.dropout=0.1"),
    "ppo_normalised": train("MountainCar-v0:ppo", *SMALL, NO_RESETS, "-n", "8000", "algo.normalize_reward=true"),
    "a2c": train("CartPole-v1:a2c", *SMALL, "-n", "6000", "eval.every=3000", "eval.episodes=5"),
    "a2c_rmsprop_torch": train(
        "Acrobot-v1", "--algo", "a2c", *SMALL, NO_RESETS, "-n", "6000", "algo.optimizer.id=rmsprop_torch"
    ),
    "reinforce": train("CartPole-v1:reinforce", *SMALL, "-n", "6000"),
    "reinforce_mean": train("CartPole-v1:reinforce", *SMALL, "-n", "6000", "algo.baseline=mean"),
    "reinforce_none": train("FrozenLake-v1:reinforce", *SMALL, "-n", "4000", "algo.baseline=none"),
    # Spaces.
    "gaussian": train("Pendulum-v1:ppo", *SMALL, "-n", "8000", "eval.episodes=4"),
    "squashed": train("Pendulum-v1:ppo", *SMALL, "-n", "6000", "policy.squash_actions=true", "eval.episodes=4"),
    "state_dependent_std": train(
        "MountainCarContinuous-v0:ppo",
        *SMALL,
        NO_RESETS,
        "-n",
        "6000",
        "policy.state_dependent_std=true",
        "eval.episodes=4",
    ),
    "discrete_observations": train("Taxi-v4:ppo", *SMALL, "-n", "8000", "eval.episodes=5"),
    "masks": train("Taxi-v4:ppo", *SMALL, "-n", "6000", "env.action_mask=auto", "eval.episodes=5"),
    "tuple_observations": train("Blackjack-v1:ppo", *SMALL, "-n", "6000", "eval.episodes=5"),
    "dict_and_images": train("MiniGrid-Empty-5x5-v0:ppo", *SMALL, "-n", "3000", "eval.episodes=5"),
    "bandit": train("gymnast/Bandit-v0:ppo", *SMALL, "-n", "4000"),
    # Ways to step the envs.
    "workers": train("Acrobot-v1:ppo", *SMALL, "-n", "6000", "env.vectorization=workers", "eval.episodes=5"),
    "envpool": train(
        "Acrobot-v1:ppo",
        *SMALL,
        "-n",
        "12000",
        "env.vectorization=envpool",
        "eval.episodes=5",
        NO_RESETS,
    ),
    "box2d": train("LunarLander-v3:ppo", *SMALL, "-n", "6000", "env.vectorization=inprocess", "eval.episodes=4"),
    "mujoco": train("Hopper-v5:ppo", *SMALL, "-n", "6000", "env.vectorization=inprocess", "eval.episodes=4"),
    "wrappers": train(
        *CARTPOLE,
        "-n",
        "6000",
        "env.wrappers=[{id: frame_stack, args: {size: 3}}, {id: sticky_actions, args: {probability: 0.2}}, "
        "{id: reward_scale, args: {factor: 0.1}}]",
    ),
    # Images, and envs stepped lane by lane.
    "images": train(
        "ALE/Pong-v5:rgb_ppo",
        *SMALL,
        "-n",
        "512",
        "env.n_envs=4",
        "algo.n_steps=64",
        "algo.batch_size=64",
        "algo.n_epochs=1",
        "eval.episodes=1",
        "policy.precision=float32",
        "policy.cnn=nature",
        "eval.every=100000",
        "train.threads=1",
    ),
    "lanes": train(
        "ALE/Pong-v5:objects_ppo",
        *SMALL,
        "-n",
        "2048",
        "env.n_envs=4",
        "algo.n_steps=128",
        "algo.batch_size=128",
        "env.vectorization=workers",
        "eval.every=100000",
        "eval.episodes=1",
    ),
    "image_parts": train(
        "MinAtar/Breakout-v1:ppo",
        "train.stop_when_solved=false",
        "-n",
        "3000",
        "policy.hidden=[16]",
        "env.n_envs=4",
        "algo.n_steps=64",
        "algo.batch_size=64",
        "eval.episodes=3",
        "train.threads=1",
    ),
    # Runs that do not begin, or go on, from nothing.
    "resumed": Case((("train", *CARTPOLE, "-n", "60000", "train.checkpoint_every=4000"), (STOP_AFTER,))),
    "resumed_workers": Case(
        (("train", "LunarLander-v3:ppo", *SMALL, "-n", "24000", "env.vectorization=workers"), (STOP_AFTER,))
    ),
    "transfer": Case(
        (
            ("train", *CARTPOLE, "-n", "6000"),
            (
                "train",
                "Acrobot-v1:ppo",
                *SMALL,
                "-n",
                "6000",
                "--init-from",
                "@last",
                "eval.episodes=5",
                NO_RESETS,
            ),
        )
    ),
    "evaluated_beside": train(*CARTPOLE, "-n", "10000", "eval.mode=worker"),
}


def main() -> None:
    """Record or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["record", "check", "list"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the version to try")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - CASES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    names = arguments.names or list(CASES)
    if arguments.what == "list":
        print("\n".join(names))
        return
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = dict(zip(names, pool.map(lambda name: outcome(name, arguments.python), names), strict=True))
    failed = [name for name, one in found.items() if "failed" in one]
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    if arguments.what == "record":
        record(found)
        sys.exit(int(bool(failed)))
    sys.exit(differences(found))


def outcome(name: str, python: str) -> dict[str, str]:
    """The hashes of one configuration, trained now."""
    folder = Path(tempfile.mkdtemp(prefix=f"unchanged-{name}-"))
    began = time.perf_counter()
    try:
        run_case(CASES[name], folder, python)
        found = hashes(newest_run(folder))
    except subprocess.CalledProcessError as error:
        found = {"failed": str(error)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return found


def run_case(case: Case, folder: Path, python: str) -> None:
    """Type the commands."""
    waiting: list[tuple[str, ...]] = list(case.commands)
    while waiting:
        words = waiting.pop(0)
        stops = bool(waiting) and waiting[0] == (STOP_AFTER,)
        if stops:
            waiting.pop(0)
            stopped_and_resumed(words, folder, python)
        else:
            subprocess.run(command(words, folder, python), env=environment(), check=True, stdout=subprocess.DEVNULL)


def stopped_and_resumed(words: tuple[str, ...], folder: Path, python: str) -> None:
    """Train until some rows are written, stop by a signal, resume to the end."""
    process = subprocess.Popen(command(words, folder, python), env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None and rows_written(folder) < 4:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait()
    resume = command(("resume", "@last"), folder, python)
    subprocess.run(resume, env=environment(), check=True, stdout=subprocess.DEVNULL)


def command(words: tuple[str, ...], folder: Path, python: str) -> list[str]:
    """How a person types it."""
    return [python, "-m", "gymnast", *words, "--runs-dir", str(folder)]


def environment() -> dict[str, str]:
    """One torch thread unless a configuration says otherwise."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy", "COLUMNS": "200"}


def rows_written(folder: Path) -> int:
    """Of the newest run, 0 before there is one."""
    files = list(folder.glob("*/metrics.jsonl"))
    return sum(file.read_bytes().count(b"\n") for file in files)


def newest_run(folder: Path) -> Path:
    """The run that was made last."""
    runs = [path.parent for path in folder.glob("*/config.json") if not path.parent.is_symlink()]
    return max(runs, key=lambda run: (run / "config.json").stat().st_mtime_ns)


def hashes(run: Path) -> dict[str, str]:
    """What a run came to: weights, optimizer, rows."""
    steps = [path for path in (run / "checkpoints").glob("step=*") if path.is_dir()]
    last = max(steps, key=lambda path: int(path.name.removeprefix("step=")))
    optimizer = {name: blob for name, blob in tensors(last / "state.safetensors").items() if "optimizer" in name}
    return {
        "weights": digest(tensors(last / "policy.safetensors").items()),
        # By their bytes alone: where in the state they lie may change.
        "optimizer": digest(("", blob) for blob in sorted(optimizer.values())),
        "rows": digest(rows(run / "metrics.jsonl")),
    }


def tensors(path: Path) -> dict[str, bytes]:
    """Of a safetensors file: an 8-byte length, a JSON header, then the data."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    data = content[8 + size :]
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            found[name] = data[begin:end]
    return found


def rows(path: Path) -> list[tuple[str, bytes]]:
    """Rows as they stand after resumes, without what the clock decides and what has no value."""
    kept: dict[int, dict[str, object]] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row.get("resumed_from") is not None:
            kept = {step: old for step, old in kept.items() if step <= row["resumed_from"]}
        plain = {key: value for key, value in row.items() if value is not None and key not in NOT_COMPARED}
        compared = {key: value for key, value in plain.items() if not key.startswith(CLOCKED) and key != "amends"}
        if "amends" in row:
            kept[row["amends"]] |= compared
        else:
            kept[row["env_steps"]] = compared
    return [(str(step), json.dumps(row, sort_keys=True).encode()) for step, row in sorted(kept.items())]


def digest(parts: object) -> str:
    """One hash of named bytes."""
    whole = hashlib.sha256()
    for name, blob in sorted(parts):  # type: ignore[call-overload]
        whole.update(name.encode() + b"\0" + blob + b"\0")
    return str(whole.hexdigest()[:16])


def record(found: dict[str, dict[str, str]]) -> None:
    """Keep them, next to those of other configurations."""
    known = json.loads(RESULTS.read_text())["cases"] if RESULTS.exists() else {}
    known |= {name: one for name, one in found.items() if "failed" not in one}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    ).stdout
    content = {"commit": commit.strip(), "machine": platform.machine(), "cpu": cpu(), "cases": known}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


def cpu() -> str:
    """Other CPUs choose other kernels and so may give other bits."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def differences(found: dict[str, dict[str, str]]) -> int:
    """Print what is not as recorded; 1 where anything is."""
    recorded = json.loads(RESULTS.read_text())
    if recorded["cpu"] != cpu():
        print(f"recorded on {recorded['cpu']}, this is {cpu()}: bits may differ for that reason alone")
    worse = 0
    for name, now in found.items():
        before = recorded["cases"].get(name, {})
        other = [what for what in now if now[what] != before.get(what)]
        print(f"{name}: {'equal' if not other else 'DIFFERENT ' + ', '.join(other)}")
        worse += bool(other)
    print(f"{len(found) - worse} of {len(found)} equal")
    return int(worse > 0)


if __name__ == "__main__":
    main()

"""Whether a preset works from end to end on this machine: built, stepped, rendered, recorded, trained one iteration.

`python -m gymnast.training.env_checks.preset_check` takes config ids on its standard input and answers each
with a line of JSON. It is a process of its own, so that a preset that takes the process down costs one line of the answer.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gymnast.config.load import resolve
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.closing import close
from gymnast.envs.families import rendering_advice
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.registry import env_spec
from gymnast.errors import MissingPackageError
from gymnast.evaluation.video import encode
from gymnast.timing import StageTimer
from gymnast.training.build import build

OK, FAILED, MISSING, SKIPPED = "ok", "failed", "missing", "skipped"
STEPS = 20
PATIENCE = 300.0
"""Seconds after which a preset counts as hung."""


@dataclass
class PresetResult:
    """How far a preset came."""

    preset: str
    state: str = OK
    """`ok`, `failed`, or `missing` where something is not installed."""
    detail: str = ""
    """What failed, or what to install."""
    stages: dict[str, str] = field(default_factory=dict)
    """Outcome of each stage: `ok`, `failed`, `missing` or `skipped`."""
    seconds: float = 0.0


def check_preset(reference: str) -> PresetResult:
    """Go through all stages; what cannot be drawn may still be trained."""
    began = time.perf_counter()
    result = PresetResult(reference)
    try:
        config = small(reference)
        for name, stage in STAGES.items():
            result.stages[name] = _outcome(result, name, stage, config)
            if result.stages[name] != OK and name in ("build", "step"):
                break
    except Exception as error:  # a config that cannot be read is an answer, too
        result.state, result.detail = FAILED, _sentence(error)
    result.seconds = time.perf_counter() - began
    return result


def _outcome(result: PresetResult, name: str, stage: Stage, config: RunConfig) -> str:
    try:
        if stage(config) is False:
            return SKIPPED
        return OK
    except MissingPackageError as error:
        result.state, result.detail = MISSING, _install_line(str(error))
    except Exception as error:  # whatever goes wrong is the answer
        advice = ""
        if name in ("render", "record"):
            advice = rendering_advice(env_spec(config.env.id, config.env.module))
        if advice and result.state == OK:
            result.state, result.detail = MISSING, advice.strip()
        elif not advice and result.state != FAILED:
            result.state, result.detail = FAILED, f"{name}: {_sentence(error)}"
        if advice:
            return MISSING
        return FAILED
    return MISSING


def _sentence(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _install_line(text: str) -> str:
    if "pip install" in text:
        return text[text.index("pip install") :]
    return text


def small(reference: str) -> RunConfig:
    """The preset with two envs and the shortest rollout that still is one."""
    config = resolve(reference).config
    changes = {
        "n_steps": STEPS,
        "batch_size": 2 * STEPS,
        "n_epochs": 1,
        "max_steps": STEPS,
        "episodes_per_env": 1,
    }
    algo = config.algo.model_copy(update={key: value for key, value in changes.items() if hasattr(config.algo, key)})
    env = config.env.model_copy(update={"n_envs": 2, "n_workers": 1})
    if hasattr(config.algo, "episodes_per_env"):  # whole episodes: let them be short
        env = env.model_copy(update={"time_limit": STEPS})
    train = config.train.model_copy(update={"env_steps": 2 * STEPS, "vec_steps": None, "init_from": None})
    return config.model_copy(update={"env": env, "algo": algo, "train": train})


def _build(config: RunConfig) -> bool:
    make_envs(config.env, 2).close()
    return True


def _step(config: RunConfig) -> bool:
    envs = make_envs(config.env, 2)
    try:
        row, random = envs.new_row(), np.random.default_rng(0)
        envs.reset([1, 2], row)
        for _ in range(STEPS):
            envs.step(random_actions(envs.action_space, 2, random, row.mask), row)
            if not np.isfinite(row.reward).all():
                raise ValueError(f"a reward is {row.reward.tolist()}")
    finally:
        envs.close()
    return True


def _frames(config: RunConfig) -> list[Any]:
    """A few pictures; none of an env that does not say it can draw."""
    one = make_one(config.env)
    modes = one.metadata.get("render_modes") or []
    close(one)
    if "rgb_array" not in modes:
        return []
    envs = make_envs(config.env, 1, render_mode="rgb_array")
    try:
        row, random = envs.new_row(), np.random.default_rng(0)
        envs.reset([1], row)
        frames = [envs.render()]
        for _ in range(4):
            envs.step(random_actions(envs.action_space, 1, random, row.mask), row)
            frames.append(envs.render())
        return frames
    finally:
        envs.close()


def _render(config: RunConfig) -> bool:
    frames = _frames(config)
    if any(frame is None or frame.ndim != 3 for frame in frames):
        raise ValueError("the env gave no picture")
    return bool(frames)


def _record(config: RunConfig) -> bool:
    frames = _frames(config)
    if not frames:
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "preset.mp4"
        if encode(path, frames, 10) != len(frames) or not path.stat().st_size:
            raise ValueError("the video is empty")
    return True


def _train(config: RunConfig) -> bool:
    trainer = build(config)
    try:
        trainer.start()
        trainer.iterate(StageTimer())
    finally:
        trainer.close()
    return True


Stage = Callable[[RunConfig], bool]
STAGES: dict[str, Stage] = {"build": _build, "step": _step, "render": _render, "record": _record, "train": _train}


# ---- a process for the presets ---------------------------------------------------------------------------------------


def check_presets(references: Sequence[str]) -> Iterator[PresetResult]:
    """Results in order, as they come; one process checks them all until one of them ends it."""
    left = list(references)
    while left:
        with _start(left) as process:
            answers = _answers(process)
            try:
                while left and (line := answers()):
                    left.pop(0)
                    yield PresetResult(**json.loads(line))
            finally:
                process.kill()
            if left:
                yield PresetResult(left.pop(0), FAILED, _how_it_ended(process))


def _start(references: Sequence[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    assert process.stdin is not None
    process.stdin.write("\n".join(references) + "\n")
    process.stdin.close()
    return process


def _answers(process: subprocess.Popen[str]) -> Callable[[], str]:
    """A function that waits for the next line; it gives an empty one when the process has ended or is silent for too long."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        process.wait()
        lines.put("")

    threading.Thread(target=read, daemon=True).start()

    def answer() -> str:
        try:
            return lines.get(timeout=PATIENCE)
        except queue.Empty:
            return ""

    return answer


def _how_it_ended(process: subprocess.Popen[str]) -> str:
    code = process.wait()
    if code == -signal.SIGKILL:
        return f"was stopped: killed from outside, or silent for {PATIENCE:g} s"
    if code < 0:
        return f"crashed its process (signal {-code})"
    return f"ended its process (exit code {code})"


def main() -> None:
    """Answer the config ids on standard input; what envs print goes nowhere."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for reference in sys.stdin.read().split():
        answers.write(json.dumps(asdict(check_preset(reference))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""What a person does with an env that gymnast has never seen, typed as commands: check, train, kill, resume, eval, video.

Each step gives a record with an `outcome`. `ok` and `exact` are as promised. `refused` is a sentence of gymnast with its
exit code, which is right where the env itself cannot do what was asked. `failed` is everything else: a traceback, a hang,
orphans, a picture that is black, other weights than those of the run that nothing happened to.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
from foreign_packages import HOME, ForeignEnv, Package
from harness import ROOT
from unchanged import digest, hashes, newest_run, rows, rows_written

N_ENVS, N_STEPS = 2, 32
ITERATION = N_ENVS * N_STEPS
TRAINING_SECONDS = 3.0
"""How long the envs are stepped in one training, as far as the limits below allow."""
FEWEST, MOST = 6 * ITERATION, 120 * ITERATION
LONGEST_EPISODE = 200
"""Steps; longer episodes are cut off, so that evaluations and films end."""
PATIENCE = {"probe": 60.0, "check": 300.0, "train": 240.0, "stop": 60.0, "eval": 150.0, "video": 200.0}
"""Seconds that a step may take."""
POLL_SECONDS = 0.005
ORPHAN_SECONDS = 10.0
"""How long worker processes may live after their trainer was killed."""
QUIET_LINES = 20
"""Lines on stderr of a quiet training; more are noted."""

Record = dict[str, Any]
_running: set[int] = set()
"""Commands under way, each the leader of a session."""


class Trial:
    """One env through all steps."""

    def __init__(self, package: Package, env: ForeignEnv, probed: Record) -> None:
        self.package, self.env, self.probed = package, env, probed
        self.folder = Path(tempfile.mkdtemp(prefix="foreign-"))
        self.reference: dict[str, str] = {}
        """Hashes of the run that nothing happened to."""

    def steps(self) -> dict[str, Callable[[], Record]]:
        """In the order in which they are done."""
        return {
            "check": self.check,
            "train": self.train,
            "kill": lambda: self.stopped(signal.SIGKILL),
            "terminate": lambda: self.stopped(signal.SIGTERM),
            "eval": self.evaluate,
            "video": self.video,
        }

    def close(self) -> None:
        """Remove all runs."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the steps ----------------------------------------------------------------------------------------------------

    def check(self) -> Record:
        """`gymnast env check`: faults are the env's; no answer would be gymnast's."""
        code, out, err = self._run(["env", "check", self._id(), *self._kwargs(), "--json"], PATIENCE["check"])
        report = _last_json(out)
        if report is None:
            return self._answer(code, err)
        found = report["findings"]
        names = {kind: sorted({one["id"] for one in found if one["severity"] == kind}) for kind in ("fault", "warning")}
        outcome = "faults" if names["fault"] else "ok"
        said = next((one["what"] for one in found if one["severity"] == "fault"), "")
        return {"outcome": outcome, "faults": names["fault"], "warnings": names["warning"], "said": self._clean(said)}

    def train(self) -> Record:
        """A short training to its end."""
        code, _, err = self._run(["train", *self._training(), "-q", *self._runs("whole")], PATIENCE["train"])
        if code != 0:
            return self._answer(code, err)
        self.reference = fingerprint(newest_run(self.folder / "whole"))
        record = {"outcome": "ok", "env_steps": self._budget(), "stderr_lines": len(err.splitlines())}
        if "Traceback" in err:
            return {**record, "outcome": "failed", "said": f"a traceback: {self._clean(err)}"}
        if len(err.splitlines()) > QUIET_LINES:
            record["said"] = self._clean(err)
        return record

    def stopped(self, number: signal.Signals) -> Record:
        """The same training, stopped by a signal about half-way and resumed; its weights against the reference."""
        name = number.name
        argv = self._argv(["train", *self._training(), "-q", *self._runs(name)])
        with (self.folder / f"{name}.err").open("w") as errors:
            process = subprocess.Popen(
                argv,
                env=self._environment(),
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            _running.add(process.pid)
            try:
                struck = self._strike(process, number)
                code = process.wait(PATIENCE["stop"])
            except subprocess.TimeoutExpired:
                return {"outcome": "failed", "said": f"it did not end within {PATIENCE['stop']:.0f} s after {name}"}
            finally:
                orphans = _outlive(process.pid)
                _end_session(process.pid)
        if not struck:
            return {"outcome": "failed", "said": f"the training ended before {name}, with exit code {code}"}
        if orphans:
            return {"outcome": "failed", "said": f"{orphans} processes were still there {ORPHAN_SECONDS:.0f} s later"}
        code, out, err = self._run(["resume", "@last", "-q", *self._runs(name)], PATIENCE["train"])
        if code != 0:
            return self._answer(code, err)
        return self._compared(fingerprint(newest_run(self.folder / name)), out + err)

    def evaluate(self) -> Record:
        """Two whole episodes."""
        code, out, err = self._run(["eval", "@last", "-e", "2", "--json", *self._runs("whole")], PATIENCE["eval"])
        result = _last_json(out)
        if code != 0 or result is None:
            return self._answer(code, err)
        mean = result.get("mean", math.nan)
        if not isinstance(mean, (int, float)) or not math.isfinite(mean):
            return {"outcome": "failed", "said": f"the mean return is {mean}"}
        return {"outcome": "ok", "return_mean": mean}

    def video(self) -> Record:
        """One episode as MP4, decoded here: a picture before every step and one after the last, and not all black."""
        path = self.folder / "film.mp4"
        code, _, err = self._run(["video", "@last", "-o", str(path), *self._runs("whole")], PATIENCE["video"])
        if code != 0:
            return self._answer(code, err)
        episodes = json.loads(path.with_suffix(".json").read_text())["episodes"]
        expected = sum(one["length"] + 1 for one in episodes)
        frames, brightest, moving = decoded(path)
        record = {"outcome": "ok", "frames": frames, "steps": expected - len(episodes), "moving": moving}
        if frames != expected:
            return {**record, "outcome": "failed", "said": f"{frames} frames instead of {expected}"}
        if brightest < 32:
            return {**record, "outcome": "failed", "said": "all frames are black"}
        return record

    # --- how they are typed -------------------------------------------------------------------------------------------

    def _id(self) -> str:
        return f"{self.package.module}:{self.env.id}"

    def _kwargs(self) -> list[str]:
        return [f"env.kwargs.{key}={json.dumps(value)}" for key, value in self.env.kwargs.items()]

    def _training(self) -> list[str]:
        own = self.probed.get("time_limit")
        limit = [] if own is not None and own <= LONGEST_EPISODE else [f"env.time_limit={LONGEST_EPISODE}"]
        sizes = (f"env.n_envs={N_ENVS}", f"algo.n_steps={N_STEPS}", "algo.batch_size=32", "policy.hidden=[16]")
        steps = self._budget()
        pace = (f"train.checkpoint_every={max(ITERATION, steps // 8)}", f"eval.every={steps}", "eval.episodes=2")
        words = [self._id(), "--algo", "ppo", "-n", str(steps), "train.stop_when_solved=false", *sizes, *pace, *limit]
        return [*words, *self._kwargs(), *self.env.settings]

    def _budget(self) -> int:
        steps = TRAINING_SECONDS * 1000 / max(float(self.probed.get("milliseconds", 1.0)), 1e-3)
        return int(min(MOST, max(FEWEST, steps))) // ITERATION * ITERATION

    def _runs(self, name: str) -> list[str]:
        return ["--runs-dir", str(self.folder / name)]

    def _argv(self, words: list[str]) -> list[str]:
        return [str(self.package.python), "-m", "gymnast", *words]

    def _environment(self) -> dict[str, str]:
        """A machine without a display, as servers are; SDL finds its own way there."""
        kept = {key: value for key, value in os.environ.items() if key not in ("SDL_VIDEODRIVER", "DISPLAY")}
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), kept.get("PYTHONPATH")]))
        return {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": path}

    def _run(self, words: list[str], patience: float) -> tuple[int, str, str]:
        """Exit code, stdout and stderr; a command that takes too long is ended, and so is all that it started."""
        process = subprocess.Popen(
            self._argv(words),
            env=self._environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _running.add(process.pid)
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            _end_session(process.pid)
            process.communicate()
            return TIMEOUT, "", f"not done after {patience:.0f} s"
        finally:
            _end_session(process.pid)
        return process.returncode, out, err

    def _strike(self, process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
        """Signal the trainer alone when half of the rows and a checkpoint are written; whether it still lived."""
        half = self._budget() // ITERATION // 2
        runs, deadline = self.folder / number.name, time.monotonic() + PATIENCE["train"]
        while process.poll() is None and time.monotonic() < deadline:
            if rows_written(runs) >= half and any(runs.glob("*/checkpoints/last")):
                process.send_signal(number)
                return True
            time.sleep(POLL_SECONDS)
        return False

    # --- what it means ------------------------------------------------------------------------------------------------

    def _compared(self, found: dict[str, str], told: str) -> Record:
        """The resumed run against the one that nothing happened to."""
        other = [what for what in found if found[what] != self.reference.get(what)]
        if not other:
            return {"outcome": "exact"}
        record = {"different": other, "told": "not exact" in told, "repeats": self._repeats()}
        if record["told"]:
            return {**record, "outcome": "told", "said": "resume said that this env cannot come back exactly"}
        if not record["repeats"]:
            return {**record, "outcome": "unrepeatable", "said": "the env plays differently under one seed"}
        return {**record, "outcome": "failed", "said": f"other {', '.join(other)} than without the signal, in silence"}

    def _repeats(self) -> bool:
        """Whether the same training gives the same bits when nothing happens to it either time."""
        shutil.rmtree(self.folder / "again", ignore_errors=True)
        code, _, _ = self._run(["train", *self._training(), "-q", *self._runs("again")], PATIENCE["train"])
        return code == 0 and fingerprint(newest_run(self.folder / "again")) == self.reference

    def _answer(self, code: int, err: str) -> Record:
        """A command that did not do what it was asked for."""
        said = self._clean(err)
        refused = code in (1, 2) and "Traceback" not in err and "rror" in err
        return {"outcome": "refused" if refused else "failed", "code": code, "said": said}

    def _clean(self, text: str) -> str:
        """The end of what was said, without colours and paths of this machine."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        for path, name in ((str(self.folder), "RUNS"), (str(HOME / self.package.name), "VENV"), (str(ROOT), "ROOT")):
            plain = plain.replace(path, name)
        plain = re.sub(r"/\S*/site-packages/", "", plain)
        return " ".join(plain.split())[-400:]


TIMEOUT = 124


def probe(package: Package, env: ForeignEnv) -> Record:
    """The env under plain Gymnasium."""
    script = Path(__file__).with_name("foreign_probe.py")
    argv = [str(package.python), "-W", "ignore", str(script), package.module, env.id, json.dumps(env.kwargs)]
    kept = {key: value for key, value in os.environ.items() if key not in ("SDL_VIDEODRIVER", "DISPLAY")}
    kept |= {"OMP_NUM_THREADS": "1"}
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "env": kept}
    with tempfile.TemporaryDirectory(prefix="foreign-") as folder:  # some envs leave files where they are played
        try:
            done = subprocess.run(argv, cwd=folder, timeout=PATIENCE["probe"], check=False, **options)
        except subprocess.TimeoutExpired:
            return {"plays": False, "error": f"not done after {PATIENCE['probe']:.0f} s"}
    found = _last_json(done.stdout)
    if found is None:
        return {"plays": False, "error": f"the process died with exit code {done.returncode}"}
    return found


def fingerprint(run: Path) -> dict[str, str]:
    """What a run came to. Only runs with worker processes count those that were restarted, and a clock may choose workers."""
    kept = [(step, {**json.loads(row), "env/worker_restarts": None}) for step, row in rows(run / "metrics.jsonl")]
    return {**hashes(run), "rows": digest((step, json.dumps(row, sort_keys=True).encode()) for step, row in kept)}


def decoded(path: Path) -> tuple[int, int, bool]:
    """Number of frames, the brightest value in them, and whether any two differ."""
    frames, brightest, moving, first = 0, 0, False, None
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            picture = frame.to_ndarray(format="rgb24")
            first = picture if first is None else first
            frames, brightest = frames + 1, max(brightest, int(picture.max()))
            moving = moving or bool((abs(picture.astype(int) - first) > 16).any())
    return frames, brightest, moving


def _last_json(text: str) -> Any:
    """What a command printed as JSON, on its last line or over all lines; None where it is none."""
    for candidate in (text, text.strip().rpartition("\n")[2], text[text.find("\n{") + 1 :]):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return None


def _session(pid: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # it ended meanwhile
            continue
        if int(session) == pid and state not in "ZX":
            found.append(int(entry.name))
    return found


def _outlive(pid: int) -> int:
    """How many processes of a session are there after a while."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while (left := _session(pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return len(left)


def end_all() -> None:
    """End every command that is under way."""
    for pid in list(_running):
        _end_session(pid)


def _end_session(pid: int) -> None:
    """End all that a command has started."""
    _running.discard(pid)
    for one in _session(pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue

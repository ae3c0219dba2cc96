"""Real `gymnast` commands with faults in them, each a fork of one process that has imported everything once.

Starting Python and importing torch takes seconds; a fork takes milliseconds, and is as good a process to kill.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import itertools
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faults.points import Fault, count_entries, install

TESTS = Path(__file__).resolve().parents[1]
PATIENCE = 120.0


class Child:
    """One command, running or ended."""

    def __init__(self, server: Server, pid: int, output: Path) -> None:
        self.pid = pid
        self.code: int | None = None
        self._server, self._output = server, output

    def signal(self, number: int) -> None:
        """Send it a signal; harmless after its end, because the server has not reaped it."""
        if self.code is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code, negative for a signal. One that does not end is killed, and that is an error."""
        if self.code is None:
            self.code = self._server.ask({"wait": self.pid, "timeout": timeout})["code"]
            if self.code is None:
                os.kill(self.pid, signal.SIGKILL)
                self._server.ask({"wait": self.pid, "timeout": 10})
                raise TimeoutError(f"the command did not end within {timeout:g} s: {self.err[-2000:]}")
        return self.code

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._output.with_suffix(".out").read_text(errors="replace")

    @property
    def err(self) -> str:
        """What it has printed on the error stream."""
        return self._output.with_suffix(".err").read_text(errors="replace")


class Server:
    """Starts commands. A context manager: its end ends the process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        environment.pop("GYMNAST_HOME", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._numbers = itertools.count(1)
        self._asking = threading.Lock()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request, one answer; threads wait for each other."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def start(
        self,
        *arguments: Any,
        cwd: Path,
        faults: Sequence[Fault] = (),
        limits: dict[str, int] | None = None,
        journal: Path | None = None,
        count: Path | None = None,
        environment: Mapping[str, str] | None = None,
        answer: str | None = None,
    ) -> Child:
        """Start `gymnast` with these arguments. `limits` are resource limits by name, e.g. AS or FSIZE.

        `journal` and `count` are files for what happens in the child: see `points`. With an `environment` the command is as a
        shell would start it: it has only these variables, and what is registered for its exit is done. `answer` is its input.
        """
        output = Path(self._folder.name) / str(next(self._numbers))
        request = {"argv": [str(one) for one in arguments], "cwd": str(cwd), "output": str(output)}
        request["environment"] = None if environment is None else dict(environment)
        request["input"] = os.devnull
        if answer is not None:
            given = output.with_suffix(".in")
            given.write_text(answer)
            request["input"] = str(given)
        request |= {"faults": [asdict(fault) for fault in faults], "limits": limits or {}}
        request |= {"journal": journal and str(journal), "count": count and str(count)}
        return Child(self, self.ask(request)["pid"], output)

    def run(self, *arguments: Any, cwd: Path, faults: Sequence[Fault] = (), **options: Any) -> Child:
        """Start a command and wait for its end."""
        child = self.start(*arguments, cwd=cwd, faults=faults, **options)
        child.wait()
        return child

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that forks; commands that still run go on."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._folder.cleanup()


@functools.cache
def the_server() -> Server:
    """The one of this process, started when it is first needed."""
    server = Server()
    atexit.register(server.close)
    return server


def serve() -> None:
    """Fork a child per request, until the input ends."""
    _import_everything()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer: dict[str, Any] = {"code": _wait(request["wait"], request["timeout"])}
        else:
            pid = os.fork()
            if pid == 0:
                answers.close()
                _become(request)
            answer = {"pid": pid}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _import_everything() -> None:
    """What commands import, before there is a fork: torch alone takes longer than most of the commands of tests."""
    import gymnasium  # noqa: F401
    import torch  # noqa: F401

    import gymnast.api
    import gymnast.cli
    import gymnast.evaluation.trace
    import gymnast.evaluation.video
    import gymnast.training.train

    for module in pkgutil.iter_modules(gymnast.cli.__path__):
        importlib.import_module(f"gymnast.cli.{module.name}")
    # What a first training reads and sets up (presets, codecs, torch's kernels) is then there in every fork.
    with tempfile.TemporaryDirectory() as folder:
        gymnast.api.train("CartPole-v1:ppo", env_steps=64, eval__episodes=2, runs_dir=Path(folder))


def _wait(pid: int, timeout: float) -> int | None:
    end = time.monotonic() + timeout
    pause = 0.001
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return None


def _become(request: dict[str, Any]) -> None:
    """Turn this fork into the command; does not return."""
    import resource
    import traceback

    code = 1
    try:
        os.dup2(os.open(request["input"], os.O_RDONLY), 0)
        for descriptor, suffix in ((1, ".out"), (2, ".err")):
            path = request["output"] + suffix
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), descriptor)
        os.chdir(request["cwd"])
        for name, value in request["limits"].items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, resource.RLIM_INFINITY))
        if request["count"]:
            count_entries(Path(request["count"]))
        install((Fault(**fault) for fault in request["faults"]), request["journal"] and Path(request["journal"]))
        sys.argv = ["gymnast", *request["argv"]]
        if request["environment"] is None:
            sys.path.insert(0, "")
        else:
            os.environ.clear()
            os.environ.update(request["environment"])
        from gymnast.cli.entry import main

        main()
        code = 0
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        if request["environment"] is not None:  # what Python itself does before a process ends
            threading._shutdown()
            atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()

"""The process that trains one of several seeds: `python -m gymnast.api.seed_process JOB.json`, started by `seeds`.

It says by files next to the job which folder it trains in (`.run`) and how it ended (`.end`); what it prints goes to `.log`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from gymnast.config.load import Resolved
from gymnast.config.schema import RunConfig
from gymnast.envs.worker_main import register_all
from gymnast.errors import GymnastError
from gymnast.hub.beginning import model_source
from gymnast.runs.files import write_atomic
from gymnast.training.keeping.report import Reporter
from gymnast.training.machine import keep_freed_memory
from gymnast.training.train import train


class _Told(Reporter):
    """Says where the run lies as soon as it is made."""

    def __init__(self, job: Path) -> None:
        super().__init__(quiet=True)
        self._job = job

    def open_log(self, path: Path, max_bytes: int) -> None:
        """The log is the first thing that is opened in the run's folder."""
        super().open_log(path, max_bytes)
        write_atomic(self._job.with_suffix(".run"), str(path.parent))


def main(job: Path) -> int:
    """Train what the job says; the exit code is 0 unless it failed."""
    told: dict[str, Any] = json.loads(job.read_text(encoding="utf-8"))
    sys.path += [place for place in told["path"] if place and place not in sys.path]
    register_all(job.with_suffix(".envs").read_bytes())
    end: dict[str, Any]
    try:
        keep_freed_memory()
        resolved = Resolved(RunConfig.model_validate(told["config"]), told["origins"])
        result = train(resolved, Path(told["root"]), reporter=_Told(job), source=model_source(resolved.config))
        assert result is not None  # nobody is asked
        end = {"state": "interrupted" if result.interrupted else "finished"}
    except GymnastError as error:
        end = {"state": "failed", "error": str(error)}
    write_atomic(job.with_suffix(".end"), json.dumps(end))
    return int(end["state"] == "failed")


if __name__ == "__main__":
    code = main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(code)  # everything is on disk, and tearing torch down takes time

"""An env that waits, fails or hangs as its arguments say; importing this module registers it with Gymnasium."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
from small_envs import Identity, Step


class Gated(Identity):
    """Episodes begin only when the file `gate` exists; `fault` happens in processes that another one started."""

    def __init__(self, gate: str | None = None, fault: str | None = None) -> None:
        super().__init__()
        self.gate, self.fault = gate, fault if multiprocessing.parent_process() is not None else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Wait for the gate."""
        while self.gate is not None and not Path(self.gate).exists():
            time.sleep(0.01)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Step:
        """Fail, or go on."""
        if self.fault == "raise":
            raise ValueError("the emulator is gone")
        if self.fault == "exit":
            os._exit(3)
        while self.fault == "hang":
            time.sleep(0.01)
        return super().step(action)


gym.register("Gated-v0", entry_point=Gated)

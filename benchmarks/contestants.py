"""The command lines of gymnast and its peers, and how to read what each leaves behind."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import ROOT, versions
from process import Process, run_process

from gymnast.metrics.sinks.jsonl import MetricRows

CONFIG = "CartPole-v1:ppo"
PEERS = ROOT / "benchmarks" / "peers"
SOLVED_LINE = r"-?[\d.]+ ± [\d.]+ over 100 episodes, deterministic"

_SAME = [
    "policy.hidden=[64,64]",
    "policy.shared_trunk=false",
    "policy.activation=tanh",
    "policy.normalize_obs=false",
    "algo.normalize_reward=false",
    "algo.normalize_advantage=batch",
    "algo.max_grad_norm=0.5",
    "algo.ent_coef=0",
    "algo.vf_coef=0.5",
    "algo.clip_range_vf=null",
    "algo.target_kl=null",
    "train.stop_when_solved=false",
    # The preset evaluates every 2,500 steps to stop early; here at rl-zoo's default cadence, still 100 episodes each.
    "eval.every=25000",
    "eval.start_fraction=null",
]
OVERRIDES = {
    "zoo": [
        "env.n_envs=8",
        "algo.n_steps=32",
        "algo.batch_size=256",
        "algo.n_epochs=20",
        "algo.gamma=0.98",
        "algo.gae_lambda=0.8",
        "algo.learning_rate=lin_1e-3",
        "algo.clip_range=lin_0.2",
        *_SAME,
    ],
    "large": [
        "env.n_envs=64",
        "algo.n_steps=128",
        "algo.batch_size=2048",
        "algo.n_epochs=4",
        "algo.gamma=0.99",
        "algo.gae_lambda=0.95",
        "algo.learning_rate=3e-4",
        "algo.clip_range=0.2",
        *_SAME,
    ],
}
"""Overrides that give our run the hyperparameters of peers/sb3_ppo.py: the same numbers, the same updates."""


def peer_python(peer: str) -> Path:
    """The interpreter of a peer."""
    path = ROOT / ".peers" / peer / "bin" / "python"
    if not path.exists():
        raise SystemExit(f"The peer '{peer}' is not installed. Run: python benchmarks/peers/setup.py {peer}")
    return path


def run_peer(peer: str, arguments: Sequence[str], *, threads: int | None = None, memory: bool = False) -> Process:
    """Run a peer's script. `threads` sets torch's threads; by default they are what the peer's users have."""
    env = {"OMP_NUM_THREADS": str(threads)} if threads else None
    return run_process([peer_python(peer), PEERS / f"{peer}_ppo.py", *arguments], env=env, memory=memory)


class OurRun:
    """One `gymnast train`: the measured process, and the run folder it left."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        config: str = CONFIG,
        env: Mapping[str, str] | None = None,
        memory: bool = False,
        timeout: float = 900.0,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="gymnast-runs-") as folder:
            command = [*gymnast(), "train", config, *arguments, "--runs-dir", folder]
            self.process = run_process(command, env=env, memory=memory, timeout=timeout)
            if self.process.exit_code:
                raise SystemExit(f"gymnast train failed:\n{self.process.text[-3000:]}")
            run = next(path.parent for path in Path(folder).glob("*/status.json") if not path.parent.is_symlink())
            self.rows = list(MetricRows(run / "metrics.jsonl"))
            self.status = json.loads((run / "status.json").read_text())

    def steady_rate(self) -> tuple[int, float]:
        """Env steps and seconds from the end of the second iteration to the last; evaluation and checkpoints count."""
        warm, last = self.rows[1], self.rows[-1]
        return last["env_steps"] - warm["env_steps"], last["time/seconds"] - warm["time/seconds"]


def gymnast() -> list[str]:
    """Our command as users type it, from the environment that runs this benchmark."""
    script = Path(sys.executable).with_name("gymnast")
    return [str(script)] if script.exists() else [sys.executable, "-m", "gymnast"]


def all_versions(*peers: str) -> dict[str, Any]:
    """Versions of ours and of the named peers."""
    return {"gymnast": versions()} | {peer: versions(peer_python(peer)) for peer in peers}

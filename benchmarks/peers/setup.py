"""Install the peers from PyPI, each in its own environment under `.peers/`: `python benchmarks/peers/setup.py`.

Torch comes first and in the same version as ours, so that what is compared is the code above it. CleanRL 1.2.0 declares
Python < 3.11 and pins pygame 2.1.0, stable-baselines3 1.2.0 and others that no longer install, so its wheel goes in
without dependencies, after the packages its ppo.py imports: gym 0.23.1 (pinned by CleanRL; its CartPole imports
pygame) and TensorBoard. Gymnasium is there for the shared evaluation only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
TORCH = "torch==2.13.0"
STEPS: dict[str, list[list[str]]] = {
    "sb3": [
        [TORCH],
        ["gymnasium[box2d]==1.4.0", "stable-baselines3==2.9.2", "ale-py==0.12.1", "opencv-python-headless==5.0.0.93"],
    ],
    "cleanrl": [
        [TORCH],
        ["numpy==2.4.6", "gym==0.23.1", "pygame-ce==2.5.8", "tensorboard==2.21.0", "gymnasium==1.4.0"],
        ["--no-deps", "--ignore-requires-python", "cleanrl==1.2.0"],
    ],
}
CHECK = {
    "sb3": "import stable_baselines3, gymnasium, torch, ale_py, cv2",
    "cleanrl": "import gym, torch; from torch.utils.tensorboard import SummaryWriter; gym.make('CartPole-v1').reset()",
}


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return PEERS / peer / "bin" / "python"


def install(peer: str) -> None:
    """Create the environment if it is missing, install, and import once (which also writes the bytecode)."""
    if not python_of(peer).exists():
        venv.create(PEERS / peer, with_pip=True, clear=True)
    for step in STEPS[peer]:
        print(f"{peer}: pip install {' '.join(step)}", flush=True)
        subprocess.run([python_of(peer), "-m", "pip", "install", "--quiet", *step], check=True)
    subprocess.run([python_of(peer), "-c", CHECK[peer]], check=True)
    print(f"{peer}: ready in {python_of(peer).parent.parent.relative_to(ROOT)}")


def main() -> int:
    """Install the peers named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"one of {', '.join(STEPS)}; all by default")
    peers = parser.parse_args().peers or list(STEPS)
    if unknown := set(peers) - set(STEPS):
        parser.error(f"unknown peer {', '.join(sorted(unknown))}: choose from {', '.join(STEPS)}")
    for peer in peers:
        install(peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())

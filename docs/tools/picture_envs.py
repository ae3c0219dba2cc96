"""Draw the pictures of docs/envs: `python docs/tools/picture_envs.py [ENV …]` (`pip install pillow`, and the envs' own packages).

Each is one frame of a rollout with seeded random actions, rendered by gymnast itself: docs/images/envs/<file of the preset>.png.
Frames of a cell per pixel are enlarged, others reduced to 240 pixels; 64 colours keep a picture small.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from gymnasium import spaces
from PIL import Image

from gymnast.config.files import known_env_ids
from gymnast.config.load import resolve
from gymnast.envs.actions import parts
from gymnast.envs.make import make_envs
from gymnast.envs.vector import VectorEnv

FOLDER = Path(__file__).resolve().parents[1] / "images" / "envs"
SIZE, COLOURS = 240, 64
STEPS = {
    "FrozenLake-v1": 3,
    "Taxi-v4": 4,
    "CliffWalking-v1": 4,
    "Blackjack-v1": 0,
    "MountainCar-v0": 60,
    "Acrobot-v1": 40,
}
STEPS |= {"LunarLander-v3": 70, "MinAtar/Freeway-v1": 120, "MinAtar/Breakout-v1": 8, "MinAtar/Seaquest-v1": 60}
STEPS |= {"MinAtar/SpaceInvaders-v1": 40, "MinAtar/Asterix-v1": 60, "MiniGrid-FourRooms-v0": 0}
STEPS |= {
    "VizdoomDefendLine-v1": 40,
    "VizdoomDefendCenter-v1": 45,
    "VizdoomTakeCover-v1": 40,
    "VizdoomDeathmatch-v1": 60,
}
SEEDS = {"LunarLander-v3": 7, "MinAtar/Seaquest-v1": 54}  # lucky ones, which live that long
USUAL_STEPS, USUAL_SEED = 15, 3
"""Far enough to see movement, near enough that a random walker has not fallen."""


def main() -> None:
    """One picture per env named, or per env with a shipped preset."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for env_id in sys.argv[1:] or known_env_ids():
        frame = picture(env_id)
        if frame is None:
            print(f"{env_id}: renders nothing")
            continue
        path = FOLDER / f"{env_id.replace('/', '_')}.png"
        image = sized(Image.fromarray(frame)).quantize(
            COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
        image.save(path, optimize=True)
        print(f"{env_id}: {image.width}×{image.height}, {path.stat().st_size / 1000:.1f} kB")


def picture(env_id: str) -> np.ndarray | None:
    """The frame after some random steps of one episode; of the last one before an episode that ended sooner."""
    config = resolve(env_id).config
    envs = make_envs(config.env, 1, render_mode="rgb_array")
    try:
        seed = SEEDS.get(env_id, USUAL_SEED)
        row, rng = envs.new_row(), np.random.default_rng(seed)
        envs.reset([seed], row)
        frame = envs.render(0)
        for _ in range(STEPS.get(env_id, USUAL_STEPS)):
            if envs.step(random_action(envs, rng), row):
                break
            frame = envs.render(0)
        return frame
    finally:
        envs.close()


def random_action(envs: VectorEnv, rng: np.random.Generator) -> np.ndarray:
    """One row of a Discrete or a Box action."""
    (space,) = parts(envs.action_space)
    if isinstance(space, spaces.Box):
        return rng.uniform(space.low, space.high, (1, *space.shape)).astype(space.dtype)
    assert isinstance(space, spaces.Discrete)
    return rng.integers(int(space.n), size=1)


def sized(image: Image.Image) -> Image.Image:
    """A cell per pixel is enlarged without blur, a photograph reduced."""
    if image.width < 50:
        factor = SIZE // image.width
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    image.thumbnail((SIZE, SIZE), Image.Resampling.LANCZOS)
    return image


if __name__ == "__main__":
    main()

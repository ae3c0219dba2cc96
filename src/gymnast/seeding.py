"""One seed per run, spawned into independent streams so that neighbouring run seeds share nothing.

`reset(seed=k)` on a vector env gives env i the seed k+i, so runs 0 and 1 would share all but one env.
Streams come from `numpy.random.SeedSequence` with a fixed key per purpose instead.
"""

from __future__ import annotations

import numpy as np

# The order is part of the checkpoint format: append, never reorder.
_STREAMS = {"policy_init": 0, "actions": 1, "minibatches": 2, "train_envs": 3, "eval_envs": 4, "warmup": 5, "video": 6}


def sequence(seed: int, stream: str) -> np.random.SeedSequence:
    """The seed sequence of one named stream of a run."""
    return np.random.SeedSequence(entropy=seed, spawn_key=(_STREAMS[stream],))


def integer(seed: int, stream: str) -> int:
    """One 63-bit seed for a library that takes an integer (torch)."""
    return int(sequence(seed, stream).generate_state(1, np.uint64)[0] >> np.uint64(1))


def env_seeds(seed: int, stream: str, count: int, *, turn: int = 0) -> list[int]:
    """`count` independent 31-bit seeds, one per env; the first k do not depend on `count`. `turn` gives fresh ones."""
    key = (_STREAMS[stream], turn)
    children = np.random.SeedSequence(entropy=seed, spawn_key=key).spawn(count)
    return [int(child.generate_state(1)[0] >> 1) for child in children]

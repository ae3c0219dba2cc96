"""Whether an env plays the same under every seed, so that several copies of it add nothing of their own (RUN-11)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.make import make_envs
from gymnast.envs.registry import family_of_config
from gymnast.envs.spaces import Observation
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.errors import RAISED_BY_ENVS
from gymnast.redaction import logger

STEPS = 64
"""Actions that are repeated: enough for chances of a few per cent to show, a quarter of a second of the slowest games."""
SEEDS = (1, 2, 3)
log = logger(__name__)


def starts_alike(obs: Observation) -> bool:
    """Whether all slots [N, …] begin with one and the same observation."""
    arrays = obs.values() if isinstance(obs, dict) else [obs]
    return all(bool((array == array[:1]).all()) for array in arrays)


def plays_alike(config: EnvConfig) -> bool:
    """Whether equal actions lead to equal observations, rewards and ends under different seeds.

    One env of its own is played for it: nothing of the run is touched, and no generator that an env may share with it.
    An env that cannot be made or stepped a second time counts as one that differs: what is wrong with it is not said here.
    """
    with _generators_kept():
        try:
            envs = make_envs(config.model_copy(update={"vectorization": "inprocess"}), 1)
        except RAISED_BY_ENVS as error:  # whatever the env raises
            log.debug("the env could not be made for the check of its seeds: %s", error)
            return False
        try:
            return _all_equal(envs)
        except RAISED_BY_ENVS as error:
            log.debug("the env could not be played for the check of its seeds: %s", error)
            return False
        finally:
            envs.close()


def _all_equal(envs: VectorEnv) -> bool:
    first = list(_played(envs, SEEDS[0]))
    # Lazily, so that the first difference ends the check: most envs differ at once.
    return all(now == before for seed in SEEDS[1:] for now, before in zip(_played(envs, seed), first, strict=True))


def _played(envs: VectorEnv, seed: int) -> Iterator[bytes]:
    """What the env shows at its reset and after each of the same random actions."""
    actions = np.random.default_rng(0)
    row = envs.new_row()
    envs.reset([seed], row)
    yield _bytes(row)
    for _ in range(STEPS):
        ended = envs.step(random_actions(envs.action_space, 1, actions, row.mask), row)
        yield _bytes(row) + bytes([len(ended)])


def _bytes(row: StepRow) -> bytes:
    if isinstance(row.obs, dict):
        parts = list(row.obs.values())
    else:
        parts = [row.obs]
    parts += [row.reward, row.terminated, row.truncated]
    return b"".join(part.tobytes() for part in parts)


@contextmanager
def _generators_kept() -> Iterator[None]:
    """Some envs draw from the generators of the whole process: leave those where they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002 - exactly that one
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def randomness(config: EnvConfig) -> str:
    """How this env becomes random, as settings where it has some."""
    family = family_of_config(config)
    if family is None or family.randomness is None:
        settings = None
    else:
        settings = family.randomness(config)
    return settings or "draw its start or its transitions from `self.np_random`"

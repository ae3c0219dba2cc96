"""Every purpose, env and run has random numbers of its own."""

from __future__ import annotations

import numpy as np
import pytest

from gymnast import seeding

STREAMS = ["policy_init", "actions", "minibatches", "train_envs", "eval_envs", "warmup", "video"]


def test_the_same_seed_gives_the_same_numbers():
    for stream in STREAMS:
        assert seeding.integer(7, stream) == seeding.integer(7, stream)
        assert seeding.env_seeds(7, stream, 4, turn=2) == seeding.env_seeds(7, stream, 4, turn=2)


def test_these_numbers_are_part_of_the_checkpoint_format():
    """A run resumed by a later version must get the same streams."""
    assert seeding.integer(0, "policy_init") == 4_334_430_513_956_379_144
    assert seeding.env_seeds(0, "train_envs", 3) == [353_818_658, 175_192_309, 1_062_092_701]


def test_streams_and_runs_share_nothing():
    integers = {seeding.integer(seed, stream) for seed in range(50) for stream in STREAMS}
    assert len(integers) == 50 * len(STREAMS)


def test_neighbouring_runs_share_no_env():
    """`reset(seed=k)` would give run 0 and run 1 all envs but one in common."""
    seeds = [seeding.env_seeds(run, "train_envs", 64) for run in range(20)]
    assert len({seed for run in seeds for seed in run}) == 20 * 64
    evaluation = seeding.env_seeds(0, "eval_envs", 64)
    assert not set(evaluation) & set(seeds[0])


def test_turns_are_fresh():
    turns = [seeding.env_seeds(0, "eval_envs", 32, turn=turn) for turn in range(20)]
    assert len({seed for turn in turns for seed in turn}) == 20 * 32


def test_an_envs_seed_does_not_depend_on_how_many_there_are():
    assert seeding.env_seeds(3, "train_envs", 16)[:5] == seeding.env_seeds(3, "train_envs", 5)


def test_seeds_fit_what_libraries_take():
    for seed in (0, 1, 2**31, 2**63):
        assert 0 <= seeding.integer(seed, "actions") < 2**63
        assert all(0 <= s < 2**31 for s in seeding.env_seeds(seed, "train_envs", 100))


def test_unknown_streams_are_refused():
    with pytest.raises(KeyError):
        seeding.sequence(0, "nothing")
    assert isinstance(seeding.sequence(0, "video"), np.random.SeedSequence)

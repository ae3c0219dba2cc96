"""The envs of a plan: who plays what, equal spaces, and states that come back."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
import small_envs

from gymnast.config.load import validate
from gymnast.config.schema import RunConfig
from gymnast.config.tasks import PlanConfig, slots_of
from gymnast.envs.actions import random_actions
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.mixed import TASK, MixedVector
from gymnast.envs.task_switch import TaskSwitch
from gymnast.envs.tasks import training_envs
from gymnast.envs.vector import EndedEpisode, VectorEnv
from gymnast.errors import CheckpointError, ConfigError
from gymnast.seeding import env_seeds

LIMITS = {"short": 7, "long": 12}


def config(by: str, tasks: dict[str, Any], **env: Any) -> RunConfig:
    return validate(
        {
            "env": {"id": "CartPole-v1", "n_envs": 6, **env},
            "algo": {"id": "ppo"},
            "train": {"env_steps": 1000},
            "plan": {"by": by, "tasks": tasks},
        },
        {},
    )


def limited(by: str, vectorization: str = "auto", **env: Any) -> RunConfig:
    """Tasks that tell themselves apart by the longest episode."""
    tasks = {name: {"env": {"time_limit": limit}} for name, limit in LIMITS.items()}
    return config(by, tasks, vectorization=vectorization, **env)


def play(envs: VectorEnv, steps: int, *, seed: int = 0) -> tuple[list[bytes], list[EndedEpisode]]:
    """What every step showed, and the episodes that ended."""
    random, row = np.random.default_rng(seed), envs.new_row()
    envs.reset(env_seeds(3, "train_envs", envs.n_envs), row)
    shown, episodes = [], []
    for _ in range(steps):
        episodes += envs.step(random_actions(envs.action_space, envs.n_envs, random, row.mask), row)
        shown.append(row.obs.tobytes() + row.reward.tobytes())  # type: ignore[union-attr]
    return shown, episodes


# ---- by slot -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorization", ["auto", "inprocess", "workers"])
def test_every_slot_keeps_its_task(vectorization: str) -> None:
    """Three slots each; the name is in every ended episode, and the task's own time limit holds."""
    envs = training_envs(limited("slot", vectorization), 6)
    _, episodes = play(envs, 120)
    envs.close()
    assert {episode.index for episode in episodes} == set(range(6))
    for episode in episodes:
        assert episode.infos[TASK] == ("short" if episode.index < 3 else "long")
        assert episode.length <= LIMITS[episode.infos[TASK]]
    longest = {name: max(one.length for one in episodes if one.infos[TASK] == name) for name in LIMITS}
    assert longest == LIMITS


def test_slots_are_shared_by_weight() -> None:
    def shares(n_envs: int, **weights: float) -> dict[str, int]:
        tasks = {name: {"weight": weight} for name, weight in weights.items()}
        return slots_of(PlanConfig.model_validate({"by": "slot", "tasks": tasks}), n_envs)

    assert shares(6, a=1, b=1) == {"a": 3, "b": 3}
    assert shares(8, a=1, b=3) == {"a": 2, "b": 6}
    assert shares(5, a=1, b=100, c=1) == {"a": 1, "b": 3, "c": 1}
    assert shares(7, a=1, b=1, c=1) == {"a": 3, "b": 2, "c": 2}
    with pytest.raises(ConfigError, match="has 2 tasks and 'env.n_envs' is 1: each task needs a slot"):
        shares(1, a=1, b=1)


def test_masks_of_one_group_leave_the_others_free() -> None:
    """Taxi masks actions; the same env without its mask lets all be chosen."""
    masked = {"env": {"action_mask": "auto"}}
    envs = training_envs(config("slot", {"masked": masked, "free": {"env": {"action_mask": "off"}}}, id="Taxi-v4"), 4)
    row = envs.new_row()
    envs.reset([1, 2, 3, 4], row)
    assert row.mask is not None
    for _ in range(20):
        assert row.mask[2:].all() and not row.mask[:2].all()
        row.mask[:] = False
        envs.step(np.zeros(4, np.int64), row)
    envs.close()


def test_rewards_of_the_env_itself_stay_known_in_every_group() -> None:
    tasks = {"clipped": {"env": {"wrappers": [{"id": "reward_scale", "factor": 0.5}]}}, "plain": {}}
    envs = training_envs(config("slot", tasks), 4)
    row = envs.new_row()
    envs.reset([1, 2, 3, 4], row)
    envs.step(np.zeros(4, np.int64), row)
    assert row.own_reward is not None
    assert row.reward.tolist() == [0.5, 0.5, 1, 1] and row.own_reward.tolist() == [1, 1, 1, 1]
    envs.close()


def test_a_state_of_other_tasks_is_refused() -> None:
    make = functools.partial(InProcessVector, small_envs.Walk)
    ours, theirs = (MixedVector({name: make(2), "b": make(2)}) for name in ("a", "c"))
    for envs in (ours, theirs):
        envs.reset([1, 2, 3, 4], envs.new_row())
    with pytest.raises(CheckpointError, match="of the tasks c, b, this run has a, b"):
        ours.load_state(theirs.save_state())


# ---- by episode ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorization", ["inprocess", "workers"])
def test_every_episode_draws_its_task(vectorization: str) -> None:
    """By weight, and equal seeds draw the same whatever steps the envs."""
    tasks = {name: {"env": {"time_limit": limit}} for name, limit in LIMITS.items()}
    tasks["long"]["weight"] = 3
    envs = training_envs(config("episode", tasks, vectorization=vectorization), 6)
    shown, episodes = play(envs, 600)
    envs.close()
    drawn = Counter(episode.infos[TASK] for episode in episodes)
    assert 0.65 < drawn["long"] / len(episodes) < 0.85
    for episode in episodes:
        assert episode.length <= LIMITS[episode.infos[TASK]]
    again = training_envs(config("episode", tasks, vectorization="inprocess"), 6)
    assert play(again, 600)[0] == shown
    again.close()


@pytest.mark.parametrize("env", [{"id": "CartPole-v1"}, {"id": "Walk-v0"}], ids=["snapshot", "replay"])
@pytest.mark.parametrize("by", ["slot", "episode"])
def test_a_saved_state_goes_on_to_the_bit(by: str, env: dict[str, Any]) -> None:
    """In the middle of episodes of either task, again and again."""
    first, second = (training_envs(limited(by, "inprocess", **env), 4) for _ in range(2))
    row, other = first.new_row(), second.new_row()
    random = np.random.default_rng(5)
    first.reset(env_seeds(1, "train_envs", 4), row)
    for _ in range(6):
        for _ in range(17):
            first.step(random_actions(first.action_space, 4, random, row.mask), row)
        second.load_state(first.save_state())
        played = []
        for _ in range(17):
            actions = random_actions(first.action_space, 4, random, row.mask)
            ended = first.step(actions, row)
            other_ended = second.step(actions, other)
            played.append([(one.index, one.infos[TASK]) for one in ended])
            assert played[-1] == [(one.index, one.infos[TASK]) for one in other_ended]
            assert row.obs.tobytes() == other.obs.tobytes()  # type: ignore[union-attr]
        assert any(played)
    for envs in (first, second):
        envs.close()


def test_masks_of_one_task_are_there_in_every_episode() -> None:
    taxi = functools.partial(small_envs.gym.make, "Taxi-v4", max_episode_steps=5)

    class Unmasked(small_envs.gym.Wrapper):
        def reset(self, **kwargs: Any) -> Any:
            return self.env.reset(**kwargs)[0], {}

        def step(self, action: Any) -> Any:
            return (*self.env.step(action)[:4], {})

    envs = InProcessVector(lambda: TaskSwitch({"masked": taxi(), "free": Unmasked(taxi())}, [1, 1]), 2)
    assert envs.has_action_mask
    row = envs.new_row()
    envs.reset([1, 2], row)
    seen = Counter()
    assert row.mask is not None
    for _ in range(100):
        seen[bool(row.mask[0].all())] += 1
        envs.step(np.zeros(2, np.int64), row)
    assert seen[True] > 20 and seen[False] > 20
    envs.close()


def test_wrappers_of_the_batch_must_be_the_same() -> None:
    noisy = {"env": {"wrappers": [{"id": "observation_noise", "std": 0.1}]}}
    with pytest.raises(ConfigError, match="'plain' and 'noisy' differ in env.wrappers"):
        training_envs(config("episode", {"plain": {}, "noisy": noisy}), 2)


# ---- spaces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["slot", "episode", "stage"])
def test_spaces_that_differ_are_named(by: str) -> None:
    tasks = {"carts": {"env_steps": 9} if by == "stage" else {}, "cars": {"env": {"id": "MountainCar-v0"}}}
    with pytest.raises(ConfigError) as caught:
        training_envs(config(by, tasks), 4)
    assert "'cars' observes Box([-1.2" in str(caught.value) and "Box([-4.8" in str(caught.value)


def test_actions_that_differ_are_named() -> None:
    tasks = {"four": {}, "six": {"env": {"id": "Acrobot-v1"}}}
    found = config(
        "slot", {**tasks, "six": {"env": {"id": "Walk-v0", "kwargs": {"actions": "switches"}}}}, id="Walk-v0"
    )
    with pytest.raises(ConfigError, match="'six' acts in MultiBinary"):
        training_envs(found, 4)

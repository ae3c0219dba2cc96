"""Rollouts that live on a device, filled on the CPU here: training with them is the ordinary training, to the bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch

from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.envs import make as making
from gymnast.envs.lanes import LanePool
from gymnast.errors import EnvError, NonFiniteError
from gymnast.policies.base import Field
from gymnast.rollout.device import DeviceRollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.on_policy import Iteration, OnPolicyTrainer
from gymnast.training.trainer import policy_tensors

N_ENVS, N_STEPS = 8, 16
IN_LANES = {"vectorization": "workers", "n_workers": 2}
CARTPOLE = {"id": "CartPole-v1", "time_limit": 12, **IN_LANES}
TAXI = {"id": "Taxi-v4", "time_limit": 12, **IN_LANES}
PONG = {"id": "ALE/Pong-v5", "atari": {"obs": "ram", "frame_cap": 80}, "wrappers": ["reward_clip"], **IN_LANES}
ENVS: dict[str, dict[str, Any]] = {
    "CartPole": CARTPOLE,
    "Taxi with masks": TAXI,
    "Pong": PONG,
    "Pendulum": {"id": "Pendulum-v1", "time_limit": 12},
    "Dict observations": {"id": "DictIdentity-v0"},
    "actions with parts": {"id": "PartsIdentity-v0"},
    "stacked frames": {"id": "CartPole-v1", "time_limit": 12, "wrappers": [{"id": "frame_stack", "size": 3}]},
}
POLICIES: dict[str, dict[str, Any]] = {
    "separate": {"hidden": [16]},
    "shared": {"hidden": [16], "shared_trunk": True},
    "normalised": {"hidden": [16], "normalize_obs": True},
}


@pytest.fixture(autouse=True)
def _by_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only games, and on this machine too."""
    monkeypatch.setattr(making, "by_lanes", lambda config, n_envs: config.vectorization == "workers")


@pytest.fixture
def trainers() -> Iterator[list[OnPolicyTrainer]]:
    """Their envs are closed at the end."""
    made: list[OnPolicyTrainer] = []
    yield made
    for trainer in made:
        trainer.close()


def make(env: dict[str, Any], way: str, trainers: list[OnPolicyTrainer], **policy: Any) -> OnPolicyTrainer:
    """A trainer that collects by the `ordinary` way, or on a device, with slots stepped `together` or by `lanes`.

    The ordinary one steps its envs in this process.
    """
    if env["id"].startswith("ALE/"):
        pytest.importorskip("ale_py", reason="ale-py is not installed")
    data = {
        "env": {"n_envs": N_ENVS, **env, **({"vectorization": "inprocess"} if way == "ordinary" else {})},
        "policy": policy or POLICIES["separate"],
        "algo": {"id": "ppo", "n_steps": N_STEPS, "batch_size": 32, "n_epochs": 2, "ent_coef": 0.01},
        "train": {"env_steps": 10_000, "seed": 1, "threads": 1, "device": "cpu"},
    }
    trainer = build(RunConfig.model_validate(data))
    trainers.append(trainer)
    if way != "ordinary":
        trainer.collector = on_device(trainer, N_STEPS, trainer.action_generator, by_lanes=way == "lanes")
    return trainer


def on_device(trainer: OnPolicyTrainer, n_steps: int, generator: torch.Generator, *, by_lanes: bool) -> DeviceCollector:
    """What fills a rollout on a device, for the trainer's policy and envs."""
    policy, envs = trainer.policy, trainer.envs
    rollout = DeviceRollout(n_steps, envs, policy, torch.device("cpu"))
    return DeviceCollector(policy, trainer.flat, envs, rollout, generator, by_lanes=by_lanes)


def train(trainer: OnPolicyTrainer, iterations: int, *, go_on: bool = False) -> Iteration:
    """Some iterations; the last one's outcome."""
    for number in range(iterations):
        if number or go_on:
            trainer.go_on()
        else:
            trainer.start()
        done = trainer.learn_once(StageTimer())
    return done


def told(trainer: OnPolicyTrainer, iteration: Iteration) -> dict[str, Any]:
    """All that an iteration collected and learned."""
    rollout, t = trainer.rollout, N_STEPS
    obs = rollout.host_obs()
    episodes = [(step, e.index, e.ret, e.length, e.terminated) for step, e in iteration.ended]
    arrays = {
        **({f"obs {key}": array for key, array in obs.items()} if isinstance(obs, dict) else {"obs": obs}),
        "reward": rollout.reward,
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "value": rollout.host("value"),
        "value on the device": rollout["value"][: t + 1].numpy(),
        "next_value": rollout.next["value"],
        "log_prob": rollout["log_prob"][:t].numpy(),
        "action": rollout["action"][:t].numpy(),
        "given actions": np.stack(rollout.action_arrays[:t]),
        "mask": np.zeros(0) if rollout.mask is None else rollout.mask[:t].numpy(),
        "weights": trainer.flat.values.numpy(),
        "moments": torch.cat([m.flatten().double() for m in trainer.optimizer.state().values()]).numpy(),
    }
    return {"episodes": episodes, "statistics": iteration.result.statistics} | {
        name: (array.shape, array.tobytes()) for name, array in arrays.items()
    }


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Names of what is not equal to the bit."""
    assert first.keys() == second.keys()
    return [name for name in first if first[name] != second[name]]


# ---- the same training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENVS)
def test_training_is_equal_to_the_bit(name: str, trainers: list[OnPolicyTrainer]) -> None:
    ordinary = make(ENVS[name], "ordinary", trainers)
    expected = told(ordinary, train(ordinary, 3))
    assert expected["episodes"]
    in_lanes = ENVS[name].get("vectorization") == "workers"
    for way in ("together", "lanes") if in_lanes else ("together",):
        trainer = make(ENVS[name], way, trainers)
        assert isinstance(trainer.envs, LanePool) == in_lanes
        assert differing(expected, told(trainer, train(trainer, 3))) == []
    if name == "Taxi with masks":
        assert ordinary.rollout.mask is not None and not ordinary.rollout.mask.all()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(policy: str, trainers: list[OnPolicyTrainer]) -> None:
    results = []
    for way in ("ordinary", "together", "lanes"):
        trainer = make(CARTPOLE, way, trainers, **POLICIES[policy])
        results.append(told(trainer, train(trainer, 2)))
    assert differing(results[0], results[1]) == differing(results[0], results[2]) == []


def test_images_are_collected_once_for_all_that_learn_from_them(trainers: list[OnPolicyTrainer]) -> None:
    env = {"id": "ALE/Pong-v5", "atari": {"frame_cap": 40, "size": [36, 36], "stack": 2}, "n_envs": 2}
    network = {"hidden": [], "cnn": "nature", "cnn_features": 16, "precision": "float32"}
    results = []
    for way in ("ordinary", "together"):
        trainer = make({**env, "vectorization": "inprocess"}, way, trainers, **network)
        results.append(told(trainer, train(trainer, 2)))
        assert trainer.rollout.obs.dtype == torch.uint8
    assert differing(results[0], results[1]) == []


def test_cut_off_episodes_are_bootstrapped_from_their_last_observation(trainers: list[OnPolicyTrainer]) -> None:
    trainer = make(TAXI, "lanes", trainers)
    iteration = train(trainer, 2)
    cut = [(step, episode) for step, episode in iteration.ended if not episode.terminated]
    assert len(cut) >= N_ENVS
    fresh = make(TAXI, "lanes", trainers)  # the policy that collected: one iteration less of learning
    train(fresh, 1)
    finals = torch.stack([torch.as_tensor(episode.final_obs) for _, episode in cut])
    with torch.no_grad():
        values = fresh.policy.values(finals).tolist()
    rollout = trainer.rollout
    for (step, episode), value in zip(cut, values, strict=True):
        assert rollout.truncated[step, episode.index]
        assert rollout.next["value"][step, episode.index] == pytest.approx(value, abs=1e-5)
        assert rollout.next["value"][step, episode.index] != rollout["value"][step + 1, episode.index]


def test_the_last_observations_are_the_next_ones_first(trainers: list[OnPolicyTrainer]) -> None:
    trainer = make(CARTPOLE, "lanes", trainers)
    train(trainer, 1)
    last = trainer.rollout.host_obs()[N_STEPS].copy()
    kept = trainer.rollout.state()["obs"]
    assert np.array_equal(last, kept) and len(np.unique(last, axis=0)) > 1
    train(trainer, 1, go_on=True)
    assert np.array_equal(trainer.rollout.host_obs()[0], last)


@pytest.mark.parametrize("name", ["CartPole", "Taxi with masks", "Dict observations"])
@pytest.mark.parametrize("ways", [("lanes", "lanes"), ("ordinary", "lanes"), ("lanes", "ordinary")], ids=str)
def test_a_saved_trainer_goes_on_on_any_way(name: str, ways: tuple[str, str], trainers: list[OnPolicyTrainer]) -> None:
    whole = make(ENVS[name], "ordinary", trainers)
    expected = told(whole, train(whole, 4))
    first, second = (make(ENVS[name], way, trainers) for way in ways)
    train(first, 2)
    second.load_state(policy_tensors(first.policy), first.state(), asdict(first.counters))
    assert differing(expected, told(second, train(second, 2))) == []


@pytest.mark.parametrize("ahead", [False, True])
def test_fields_of_an_algorithm_lie_in_every_rollout(ahead: bool, trainers: list[OnPolicyTrainer]) -> None:
    """Those on the device, [T, N], and those on the host; where lanes run ahead, each half has its own."""
    trainer = make(CARTPOLE, "ordinary", trainers)
    policy, envs = trainer.policy, making.make_envs(EnvConfig.model_validate({"n_envs": N_ENVS, **CARTPOLE}), N_ENVS)
    fields = [Field("bonus"), Field("count", (2,), torch.int64, side="host", learned=False)]
    with closing(envs):
        rollout = DeviceRollout(N_STEPS, envs, policy, torch.device("cpu"), fields)
        generator = torch.Generator().manual_seed(0)
        collector = DeviceCollector(policy, trainer.flat, envs, rollout, generator, by_lanes=True, ahead=ahead)
        collector.start_episodes(list(range(N_ENVS)))
        seen = []
        for number in range(4):
            collector.collect(StageTimer(), run_on=ahead)
            filled = collector.rollout
            assert filled["bonus"].shape == (N_STEPS, N_ENVS) and filled["count"].shape == (N_STEPS, N_ENVS, 2)
            assert ("bonus" in filled.batch()) and "count" not in filled.batch()
            filled["bonus"].fill_(number)
            filled["count"].fill_(number)
            if filled not in seen:
                seen.append(filled)
        assert [float(one["bonus"].mean()) for one in seen] == ([2, 3] if ahead else [3])
        assert [float(one["count"].double().mean()) for one in seen] == ([2, 3] if ahead else [3])


# ---- looking at it, and bad data -------------------------------------------------------------------------------------


def test_transitions_have_the_same_hashes_on_a_device(trainers: list[OnPolicyTrainer]) -> None:
    found = []
    for way in ("ordinary", "together", "lanes"):
        trainer = make(TAXI, way, trainers)
        trainer.envs.reset([1, 1, 1, 1, 2, 2, 2, 2], trainer.rollout.first_row)  # so that some slots may be alike
        trainer.learn_once(StageTimer())
        rollout = trainer.rollout
        obs, actions = rollout.host_obs(), np.stack(rollout.action_arrays[:N_STEPS])
        ended = rollout.terminated | rollout.truncated
        seen = {
            (
                *obs[t, i].ravel(),
                actions[t, i],
                rollout.reward[t, i],
                *((-1,) if ended[t, i] else obs[t + 1, i].ravel()),
            )
            for t, i in np.ndindex(ended.shape)
        }
        hashes = rollout.transition_hashes()
        assert hashes.shape == ended.shape
        assert len(np.unique(hashes)) == len(seen) < hashes.size
        found.append(hashes)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_progress_is_told_now_and_then(trainers: list[OnPolicyTrainer]) -> None:
    for way in ("together", "lanes"):
        trainer = make(CARTPOLE, way, trainers)
        collector = on_device(trainer, 200, torch.Generator().manual_seed(0), by_lanes=way == "lanes")
        collector.start_episodes(list(range(N_ENVS)))
        heard: list[int] = []
        collector.collect(StageTimer(), heard.append)
        assert heard == [64, 128, 192]


@pytest.mark.parametrize(("how", "what"), [("nan", "observation"), ("inf", "observation"), ("reward", "reward")])
def test_bad_data_is_named_by_env_and_step(how: str, what: str, trainers: list[OnPolicyTrainer]) -> None:
    texts = []
    for way in ("ordinary", "together"):
        trainer = make({"id": "Faulty-v0", "kwargs": {"how": how, "at": 5}}, way, trainers)
        before = trainer.flat.values.clone()
        with pytest.raises(NonFiniteError, match=rf"NaN or infinity \({what}\) in env 0, step 4") as caught:
            train(trainer, 1)
        assert torch.equal(trainer.flat.values, before)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


# ---- a worker is lost ------------------------------------------------------------------------------------------------


def lost(iteration: Iteration) -> list[int]:
    """Slots whose episodes were interrupted."""
    return sorted(e.index for _, e in iteration.ended if e.infos.get("worker_restarted"))


@pytest.mark.parametrize("way", ["together", "lanes"])
def test_training_goes_on_after_a_worker_is_killed(way: str, trainers: list[OnPolicyTrainer]) -> None:
    trainer = make({**TAXI, "time_limit": 200}, way, trainers)
    envs = trainer.envs
    assert isinstance(envs, LanePool)
    train(trainer, 1)
    victim = envs._workers[1]
    os.kill(victim.process.pid, signal.SIGKILL)
    iteration = train(trainer, 1, go_on=True)
    assert lost(iteration) == list(range(victim.envs.start, victim.envs.stop))  # each of its slots, once
    assert envs.counters() == {"env/worker_restarts": 1}
    rollout = trainer.rollout
    for step, episode in iteration.ended:
        if episode.infos.get("worker_restarted"):
            assert rollout.truncated[step, episode.index] and rollout.reward[step, episode.index] == 0
            assert rollout.next["value"][step, episode.index] == 0  # nothing is known to go on from
    assert lost(train(trainer, 1, go_on=True)) == []
    assert np.array_equal(trainer.rollout.host_obs()[-1], trainer.rollout.state()["obs"])


def test_too_many_lost_workers_end_the_training(trainers: list[OnPolicyTrainer]) -> None:
    trainer = make({**CARTPOLE, "max_restarts": 1}, "lanes", trainers)
    train(trainer, 1)
    envs = trainer.envs
    assert isinstance(envs, LanePool)
    with pytest.raises(EnvError, match="Env workers failed more than 1 times"):
        for _ in range(3):
            os.kill(envs._workers[0].process.pid, signal.SIGKILL)
            train(trainer, 1, go_on=True)

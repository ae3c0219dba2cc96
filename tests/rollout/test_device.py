"""Rollouts that live on a device, filled on the CPU here: training with them is the ordinary training, to the bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch

from gymnast.config.schema import RunConfig
from gymnast.envs import make as making
from gymnast.envs.lanes import LanePool
from gymnast.errors import EnvError, NonFiniteError
from gymnast.rollout.device import DeviceRollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.iteration import Iteration, iterate, prepare_next, start
from gymnast.training.session import Session, policy_tensors

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
def sessions() -> Iterator[list[Session]]:
    """Their envs are closed at the end."""
    made: list[Session] = []
    yield made
    for session in made:
        session.envs.close()


def make(env: dict[str, Any], way: str, sessions: list[Session], **policy: Any) -> Session:
    """A session that collects by the `ordinary` way, or on a device, with slots stepped `together` or by `lanes`.

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
    session = build(RunConfig.model_validate(data))
    sessions.append(session)
    if way != "ordinary":
        rollout = DeviceRollout(N_STEPS, session.envs, session.policy, torch.device("cpu"))
        session.rollout = rollout
        session.collector = DeviceCollector(session.policy, session.envs, rollout, by_lanes=way == "lanes")
    return session


def train(session: Session, iterations: int, *, go_on: bool = False) -> Iteration:
    """Some iterations; the last one's outcome."""
    for number in range(iterations):
        if number or go_on:
            prepare_next(session)
        else:
            start(session)
        done = iterate(session, StageTimer())
    return done


def told(session: Session, iteration: Iteration) -> dict[str, Any]:
    """All that an iteration collected and learned."""
    rollout, t = session.rollout, N_STEPS
    obs = rollout.host_obs()
    episodes = [(step, e.index, e.ret, e.length, e.terminated) for step, e in iteration.ended]
    arrays = {
        **({f"obs {key}": array for key, array in obs.items()} if isinstance(obs, dict) else {"obs": obs}),
        "reward": rollout.reward,
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "value": rollout.values(),
        "next_value": rollout.next_value,
        "log_prob": rollout.log_prob[:t].numpy(),
        "action": rollout.action[:t].numpy(),
        "given actions": np.stack(rollout.action_arrays[:t]),
        "mask": np.zeros(0) if rollout.mask is None else rollout.mask[:t].numpy(),
        "weights": session.flat.values.numpy(),
        "moments": torch.cat([m.flatten().double() for m in session.optimizer.state().values()]).numpy(),
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
def test_training_is_equal_to_the_bit(name: str, sessions: list[Session]) -> None:
    ordinary = make(ENVS[name], "ordinary", sessions)
    expected = told(ordinary, train(ordinary, 3))
    assert expected["episodes"]
    in_lanes = ENVS[name].get("vectorization") == "workers"
    for way in ("together", "lanes") if in_lanes else ("together",):
        session = make(ENVS[name], way, sessions)
        assert isinstance(session.envs, LanePool) == in_lanes
        assert differing(expected, told(session, train(session, 3))) == []
    if name == "Taxi with masks":
        assert ordinary.rollout.mask is not None and not ordinary.rollout.mask.all()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(policy: str, sessions: list[Session]) -> None:
    results = []
    for way in ("ordinary", "together", "lanes"):
        session = make(CARTPOLE, way, sessions, **POLICIES[policy])
        results.append(told(session, train(session, 2)))
    assert differing(results[0], results[1]) == differing(results[0], results[2]) == []


def test_images_are_collected_once_for_all_that_learn_from_them(sessions: list[Session]) -> None:
    env = {"id": "ALE/Pong-v5", "atari": {"frame_cap": 40, "size": [36, 36], "stack": 2}, "n_envs": 2}
    network = {"hidden": [], "cnn": "nature", "cnn_features": 16, "precision": "float32"}
    results = []
    for way in ("ordinary", "together"):
        session = make({**env, "vectorization": "inprocess"}, way, sessions, **network)
        results.append(told(session, train(session, 2)))
        assert session.rollout.obs.dtype == torch.uint8
    assert differing(results[0], results[1]) == []


def test_cut_off_episodes_are_bootstrapped_from_their_last_observation(sessions: list[Session]) -> None:
    session = make(TAXI, "lanes", sessions)
    iteration = train(session, 2)
    cut = [(step, episode) for step, episode in iteration.ended if not episode.terminated]
    assert len(cut) >= N_ENVS
    fresh = make(TAXI, "lanes", sessions)  # the policy that collected: one iteration less of learning
    train(fresh, 1)
    finals = torch.stack([torch.as_tensor(episode.final_obs) for _, episode in cut])
    with torch.no_grad():
        values = fresh.policy.values(finals).tolist()
    rollout = session.rollout
    for (step, episode), value in zip(cut, values, strict=True):
        assert rollout.truncated[step, episode.index]
        assert rollout.next_value[step, episode.index] == pytest.approx(value, abs=1e-5)
        assert rollout.next_value[step, episode.index] != rollout.host_value[step + 1, episode.index]


def test_the_last_observations_are_the_next_ones_first(sessions: list[Session]) -> None:
    session = make(CARTPOLE, "lanes", sessions)
    train(session, 1)
    last = session.rollout.host_obs()[N_STEPS].copy()
    kept = session.rollout.state()["obs"]
    assert np.array_equal(last, kept) and len(np.unique(last, axis=0)) > 1
    train(session, 1, go_on=True)
    assert np.array_equal(session.rollout.host_obs()[0], last)


@pytest.mark.parametrize("name", ["CartPole", "Taxi with masks", "Dict observations"])
@pytest.mark.parametrize("ways", [("lanes", "lanes"), ("ordinary", "lanes"), ("lanes", "ordinary")], ids=str)
def test_a_saved_session_goes_on_on_any_way(name: str, ways: tuple[str, str], sessions: list[Session]) -> None:
    whole = make(ENVS[name], "ordinary", sessions)
    expected = told(whole, train(whole, 4))
    first, second = (make(ENVS[name], way, sessions) for way in ways)
    train(first, 2)
    second.load_state(policy_tensors(first.policy), first.state(), asdict(first.counters))
    assert differing(expected, told(second, train(second, 2))) == []


# ---- looking at it, and bad data -------------------------------------------------------------------------------------


def test_slot_keys_tell_transitions_apart(sessions: list[Session]) -> None:
    for way in ("ordinary", "lanes"):
        session = make(TAXI, way, sessions)
        session.envs.reset([1, 1, 1, 1, 2, 2, 2, 2], session.rollout.first_row)  # so that some slots may be alike
        iterate(session, StageTimer())
        rollout = session.rollout
        obs, actions = rollout.host_obs(), rollout.action_arrays[N_STEPS - 1]
        alike = [
            [bool((obs[-2:, i] == obs[-2:, j]).all() and actions[i] == actions[j]) for j in range(N_ENVS)]
            for i in range(N_ENVS)
        ]
        assert not all(map(all, alike))
        keys = rollout.slot_keys()
        assert [[a == b for b in keys] for a in keys] == alike


def test_progress_is_told_now_and_then(sessions: list[Session]) -> None:
    for way in ("together", "lanes"):
        session = make(CARTPOLE, way, sessions)
        rollout = DeviceRollout(200, session.envs, session.policy, torch.device("cpu"))
        collector = DeviceCollector(session.policy, session.envs, rollout, by_lanes=way == "lanes")
        session.envs.reset(list(range(N_ENVS)), rollout.first_row)
        heard: list[int] = []
        timer = StageTimer()
        collector(torch.Generator().manual_seed(0), timer, heard.append)
        assert heard == [64, 128, 192]


@pytest.mark.parametrize(("how", "what"), [("nan", "observation"), ("inf", "observation"), ("reward", "reward")])
def test_bad_data_is_named_by_env_and_step(how: str, what: str, sessions: list[Session]) -> None:
    texts = []
    for way in ("ordinary", "together"):
        session = make({"id": "Faulty-v0", "kwargs": {"how": how, "at": 5}}, way, sessions)
        before = session.flat.values.clone()
        with pytest.raises(NonFiniteError, match=rf"NaN or infinity \({what}\) in env 0, step 4") as caught:
            train(session, 1)
        assert torch.equal(session.flat.values, before)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


# ---- a worker is lost ------------------------------------------------------------------------------------------------


def lost(iteration: Iteration) -> list[int]:
    """Slots whose episodes were interrupted."""
    return sorted(e.index for _, e in iteration.ended if e.infos.get("worker_restarted"))


@pytest.mark.parametrize("way", ["together", "lanes"])
def test_training_goes_on_after_a_worker_is_killed(way: str, sessions: list[Session]) -> None:
    session = make({**TAXI, "time_limit": 200}, way, sessions)
    envs = session.envs
    assert isinstance(envs, LanePool)
    train(session, 1)
    victim = envs._workers[1]
    os.kill(victim.process.pid, signal.SIGKILL)
    iteration = train(session, 1, go_on=True)
    assert lost(iteration) == list(range(victim.envs.start, victim.envs.stop))  # each of its slots, once
    assert envs.counters() == {"env/worker_restarts": 1}
    rollout = session.rollout
    for step, episode in iteration.ended:
        if episode.infos.get("worker_restarted"):
            assert rollout.truncated[step, episode.index] and rollout.reward[step, episode.index] == 0
            assert rollout.next_value[step, episode.index] == 0  # nothing is known to go on from
    assert lost(train(session, 1, go_on=True)) == []
    assert np.array_equal(session.rollout.host_obs()[-1], session.rollout.state()["obs"])


def test_too_many_lost_workers_end_the_training(sessions: list[Session]) -> None:
    session = make({**CARTPOLE, "max_restarts": 1}, "lanes", sessions)
    train(session, 1)
    envs = session.envs
    assert isinstance(envs, LanePool)
    with pytest.raises(EnvError, match="Env workers failed more than 1 times"):
        for _ in range(3):
            os.kill(envs._workers[0].process.pid, signal.SIGKILL)
            train(session, 1, go_on=True)

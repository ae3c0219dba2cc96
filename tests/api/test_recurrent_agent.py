"""An agent that remembers: stepping it, Stable-Baselines3's `predict`, traces, weights for another run, and exported files."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import onnxruntime
import pytest

import gymnast
from gymnast.errors import UsageError

COMPONENTS = [0, 2]
WRAPPERS = [{"id": "select", "components": COMPONENTS}]
SIZES = {"env__n_envs": 4, "algo__n_steps": 16, "algo__batch_size": 32, "eval__episodes": 2, "eval__every": 10**6}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> gymnast.Agent:
    """One that has learned a little."""
    root = tmp_path_factory.mktemp("runs")
    result = gymnast.train(
        "CartPole-v1:ppo",
        env_steps=1024,
        seed=2,
        runs_dir=root,
        env__wrappers=WRAPPERS,
        policy__memory="lstm",
        policy__memory_size=16,
        policy__hidden=[8],
        policy__normalize_obs=False,
        **SIZES,
    )
    return result.run.agent()


def observations(n: int) -> np.ndarray:
    """Of n episodes over seven steps."""
    return np.random.default_rng(0).uniform(-1, 1, size=(7, n, 4)).astype(np.float32)


def test_stepping_an_agent_gives_the_episode_that_it_shows(agent: gymnast.Agent) -> None:
    trace = agent.trace(seed=7)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=7)
    state, ret, over = None, 0.0, False
    while not over:
        action, state = agent.predict(obs[COMPONENTS], state=state)
        obs, reward, terminated, truncated, _ = env.step(action)
        ret, over = ret + float(reward), terminated or truncated
    assert ret == trace.ret


def test_a_start_forgets_and_only_there(agent: gymnast.Agent) -> None:
    seen = observations(2)[:, :, COMPONENTS]
    _, state = agent.predict(seen[0])
    _, both = agent.predict(seen[1], state=state)
    _, one = agent.predict(seen[1], state=state, start=[True, False])
    _, fresh = agent.predict(seen[1])
    np.testing.assert_array_equal(one[0][0], fresh[0][0])
    np.testing.assert_array_equal(one[0][1], both[0][1])
    assert np.abs(one[0][0] - both[0][0]).max() > 1e-3
    theirs = agent.as_sb3().predict(seen[1], state=state, episode_start=np.array([True, False]), deterministic=True)
    np.testing.assert_array_equal(theirs[1][0], one[0])
    with pytest.raises(UsageError, match=r"The state has shape \(2, \d+\); 3 episodes need \(3, \d+\)"):
        agent.predict(np.zeros((3, 2), np.float32), state=state)
    with pytest.raises(UsageError, match=r"`start` has shape \(1,\); 2 episodes need \(2,\)"):
        agent.predict(seen[1], state=state, start=[True])


def test_an_exported_file_carries_the_memory(agent: gymnast.Agent, tmp_path: Path) -> None:
    done = agent.export(tmp_path / "agent.onnx")
    assert done.inputs == ["obs", "state"] and done.outputs == ["action", "logits", "value", "next_state"]
    assert done.check is not None and "next_state" in done.check.differences
    session = onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    memory, state = None, np.zeros((2, session.get_inputs()[1].shape[1]), np.float32)
    for obs in observations(2)[:, :, COMPONENTS]:
        action, memory = agent.predict(obs, state=memory)
        theirs, state = session.run(["action", "next_state"], {"obs": obs, "state": state})
        np.testing.assert_array_equal(theirs, action)
        np.testing.assert_allclose(state, memory[0], atol=1e-5)


def test_its_weights_begin_another_run(agent: gymnast.Agent) -> None:
    assert agent.run is not None
    result = gymnast.train(
        "CartPole-v1:ppo",
        env_steps=64,
        runs_dir=agent.run.root,
        env__wrappers=WRAPPERS,
        policy__memory="lstm",
        policy__memory_size=16,
        policy__hidden=[8],
        policy__normalize_obs=False,
        train__init_from=agent.run.id,
        algo__learning_rate=1e-12,
        **SIZES,
    )
    seen = observations(2)[0][:, COMPONENTS]
    np.testing.assert_allclose(result.run.agent().predict(seen)[1][0], agent.predict(seen)[1][0], atol=1e-5)

"""What an agent does: act in plain Gymnasium, play whole episodes, leave Python, and stand in for a model of SB3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import onnxruntime
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import gymnast
from gymnast.errors import UsageError
from gymnast.metrics.sinks.jsonl import MetricRows


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> gymnast.Agent:
    """One that has learned a little."""
    root = tmp_path_factory.mktemp("runs")
    result = gymnast.train("CartPole-v1", env_steps=4096, seed=2, eval__episodes=5, runs_dir=root)
    return result.run.agent()


def played(act: Any, seeds: range) -> list[tuple[float, int]]:
    """Return and length of episodes in plain Gymnasium."""
    env, found = gym.make("CartPole-v1"), []
    for seed in seeds:
        obs, _ = env.reset(seed=seed)
        ret, length, over = 0.0, 0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(act(obs))
            ret, length, over = ret + float(reward), length + 1, terminated or truncated
        found.append((ret, length))
    return found


def test_traces_films_and_plain_gymnasium_show_the_same_episode(agent: gymnast.Agent, tmp_path: Path) -> None:
    [(ret, length)] = played(agent.predict, range(7, 8))
    trace = agent.trace(seed=7, frames=True)
    assert (trace.ret, len(trace), len(trace.frames)) == (ret, length, length + 1)
    assert trace.advantages is not None
    film = agent.record(tmp_path / "a.mp4", seed=7, episodes=2)
    assert film.returns[0] == ret
    assert film.lengths[0] == length
    with av.open(str(film.path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == film.frames


def test_evaluations_are_repeatable_and_fresh(agent: gymnast.Agent) -> None:
    assert agent.evaluate(8, seed=1).returns == agent.evaluate(8, seed=1).returns
    assert agent.evaluate(8, seed=1).returns != agent.evaluate(8, seed=2).returns
    assert agent.evaluate(4, deterministic=False).deterministic is False
    assert gymnast.evaluate(agent, 6).returns == agent.evaluate(6).returns
    assert "over 6 episodes" in repr(gymnast.evaluate(agent, 6))


def test_sb3_evaluates_the_agent_as_plain_gymnasium_does(agent: gymnast.Agent) -> None:
    model = agent.as_sb3()
    venv = make_vec_env("CartPole-v1", n_envs=3, seed=11)
    returns, lengths = evaluate_policy(model, venv, n_eval_episodes=6, return_episode_rewards=True)
    assert returns == [float(length) for length in lengths]
    env = make_vec_env("CartPole-v1", n_envs=1, seed=5)
    theirs, _ = evaluate_policy(model, env, n_eval_episodes=1, return_episode_rewards=True)
    assert theirs == [played(agent.predict, range(5, 6))[0][0]]
    action, state = model.predict(np.zeros(4))
    assert state is None
    assert env.action_space.contains(action[()])
    assert model.predict(np.zeros((1, 4)), deterministic=True)[0].shape == (1,)
    with pytest.raises(UsageError, match=r"shape \(3,\)"):
        model.predict(np.zeros(3))


def test_a_saved_agent_and_an_exported_one_act_alike(agent: gymnast.Agent, tmp_path: Path) -> None:
    observations = np.random.default_rng(0).uniform(-1, 1, (200, 4)).astype(np.float32)
    file = agent.save(tmp_path / "deep" / "cart")
    assert file.name == "cart.safetensors"
    again = gymnast.load(file)
    np.testing.assert_array_equal(again.predict(observations), agent.predict(observations))
    assert again.evaluate(3, seed=1).returns == agent.evaluate(3, seed=1).returns
    done = agent.export(tmp_path / "cart.onnx")
    session = onnxruntime.InferenceSession(done.path)
    np.testing.assert_array_equal(session.run(["action"], {"obs": observations})[0], agent.predict(observations))
    for wrong, words in ((b"", "is not an agent"), (b"x" * 100, "is not an agent")):
        (tmp_path / "bad.safetensors").write_bytes(wrong)
        with pytest.raises(UsageError, match=words):
            gymnast.load(tmp_path / "bad.safetensors")
    with pytest.raises(UsageError, match="There is no file"):
        gymnast.load(tmp_path / "none.safetensors")


def test_runs_metrics_and_comparisons(agent: gymnast.Agent) -> None:
    import polars

    assert agent.run is not None
    root = agent.run.root
    other = gymnast.train("CartPole-v1", env_steps=1024, gamma=0.5, seed=3, eval__episodes=5, runs_dir=root)
    [newest, oldest] = gymnast.runs(runs_dir=root)
    assert (newest, oldest) == (other.run, agent.run)
    assert gymnast.runs(runs_dir=root, seed=2) == [agent.run]
    metrics = oldest.metrics("env_steps", "rollout/ep_rew_mean")
    assert list(metrics) == ["env_steps", "rollout/ep_rew_mean"]
    assert metrics["env_steps"][-1] == 4096
    rows = len(list(MetricRows(oldest.metrics_path)))
    assert {array.shape for array in oldest.metrics().values()} == {(rows,)}
    frame = oldest.frame(library="polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame["env_steps"].to_list() == metrics["env_steps"].tolist()
    found = gymnast.compare([oldest, newest.id], "train/entropy", runs_dir=root)
    assert found.settings["algo.gamma"] == (0.985, 0.5)
    assert found.results["env steps"] == (4096, 1024)
    assert found.warning is None
    assert "algo.gamma" in str(found)
    with pytest.raises(UsageError, match="at least two different runs"):
        gymnast.compare([oldest, oldest])
    assert newest.details().status.state == "finished"
    with pytest.raises(UsageError, match=r'gymnast.resume\("\S+", env_steps=2048\)'):
        newest.resume()


@pytest.mark.parametrize("form", ["mapping", "sections", "yaml", "json", "object"])
def test_every_form_of_config(folder: Path, tiny: dict[str, Any], form: str) -> None:
    """The same settings, said in five ways."""
    from gymnast.config.schema import RunConfig

    told = gymnast.train("CartPole-v1:ppo", env_steps=64, gamma=0.5, seed=1, **tiny).run
    config: Any = {name.replace("__", "."): value for name, value in tiny.items()} | {"gamma": 0.5, "env_steps": 64}
    env: str | None = "CartPole-v1"
    if form == "sections":
        config = {
            "env": {"id": "CartPole-v1", "n_envs": 4},
            "algo": {"id": "ppo", "n_steps": 16, "batch_size": 32, "n_epochs": 1, "gamma": 0.5},
            "eval": {"episodes": 3},
            "policy": {"hidden": [16]},
            "train": {"env_steps": 64},
        }
        env = None
    elif form == "yaml":
        text = (
            "id: CartPole-v1\nvariants:\n  ppo:\n    env: {n_envs: 4}\n    algo: {n_steps: 16, batch_size: 32, n_epochs: 1, "
            "gamma: 0.5}\n    eval: {episodes: 3}\n    policy: {hidden: [16]}\n    train: {env_steps: 64}\n"
        )
        Path("mine.yaml").write_text(text)
        config, env = "mine.yaml", None
    elif form == "json":
        config, env = told.config_path, None
    elif form == "object":
        config, env = RunConfig.model_validate(told.config()), None
    found = gymnast.train(env, config=config, seed=1).run
    assert found.config() == told.config()
    with pytest.raises(UsageError, match="config has no env"):
        gymnast.train(config={"gamma": 0.5})
    with pytest.raises(UsageError, match="Give only one algorithm"):
        gymnast.train("CartPole-v1", "ppo", algo="a2c")
    assert (
        gymnast.train("CartPole-v1", "a2c", env_steps=32, env__n_envs=4, eval__episodes=2).run.config()["algo"]["id"]
        == "a2c"
    )

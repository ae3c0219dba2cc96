"""The Python API: `gymnast.train(...)` and `gymnast.load(...).predict(obs)` (RUN-13)."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_envs import Counting

import gymnast
from gymnast.envs.make import make_envs
from gymnast.errors import ConfigError, UsageError
from gymnast.evaluation.evaluate import evaluate
from gymnast.runs import checkpoint
from gymnast.training.keeping.loop import TrainResult

TINY: dict[str, Any] = {"env__n_envs": 4, "eval__episodes": 3, "policy__hidden": [16]}
PPO: dict[str, Any] = {**TINY, "algo__n_steps": 16, "algo__batch_size": 32, "algo__n_epochs": 2}


def tiny(reference: str, root: Path, env_steps: int = 128, **settings: Any) -> TrainResult:
    """A run of two iterations."""
    size = PPO if "reinforce" not in reference else TINY
    return gymnast.train(reference, env_steps=env_steps, runs_dir=root, **{**size, **settings})


def test_train_and_load(folder: Path) -> None:
    """The two lines of the README, in the default folder."""
    result = gymnast.train("CartPole-v1:ppo", env_steps=2_000, eval__episodes=5)
    assert result.run.folder == Path("runs") / result.run.id
    assert result.env_steps >= 2_000
    assert result.evaluation is not None
    agent = gymnast.load("@last")
    assert agent.run.id == result.run.id
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    action = agent.predict(obs, deterministic=True)
    assert type(action) is int
    assert env.action_space.contains(action)


def test_predict_refuses_wrong_shapes(tmp_path: Path) -> None:
    """Seven numbers are not seven observations of CartPole, and a mask has one entry per action."""
    tiny("CartPole-v1:ppo", tmp_path)
    agent = gymnast.load("@last", runs_dir=tmp_path)
    with pytest.raises(
        UsageError, match=r"shape \(7,\), .* Give an array of shape \(4,\), or a batch of shape \(n, 4\)"
    ):
        agent.predict(np.zeros(7))
    with pytest.raises(
        UsageError, match=r"The mask has shape \(3,\); 2 actions need \(2,\), a batch of 1 observations"
    ):
        agent.predict(np.zeros(4), mask=np.ones(3, bool))
    assert agent.predict(np.zeros((7, 4))).shape == (7,)
    assert agent.predict(np.zeros(4), mask=np.array([False, True])) == 1


def test_keywords_strings_and_names_of_other_libraries(tmp_path: Path) -> None:
    """All ways to say a setting end in the config that is saved."""
    words = ("gamma=0.5", "algo.gae_lambda=0.25", "ent_coef=0.125")
    result = gymnast.train(
        "CartPole-v1:ppo", *words, vec_steps=32, seed=9, runs_dir=tmp_path, lr=0.5, **(PPO | {"algo__n_epochs": 1})
    )
    config = result.run.config()
    algo = config["algo"]
    assert (algo["gamma"], algo["gae_lambda"], algo["ent_coef"], algo["learning_rate"]) == (0.5, 0.25, 0.125, 0.5)
    assert (config["train"]["vec_steps"], config["train"]["env_steps"], config["train"]["seed"]) == (32, None, 9)
    assert result.vec_steps == 32
    assert result.env_steps == 128


def test_wrong_settings_raise_before_anything_is_written(tmp_path: Path) -> None:
    """The errors of the command line, as exceptions."""
    root = tmp_path / "runs"
    with pytest.raises(UsageError, match="learning_rate"):
        gymnast.train("CartPole-v1:ppo", runs_dir=root, learning_rat=1)
    with pytest.raises(ConfigError, match=r"algo\.gamma"):
        gymnast.train("CartPole-v1:ppo", runs_dir=root, gamma=7)
    with pytest.raises(UsageError, match="CartPole-v1"):
        gymnast.train("CartPoel-v1:ppo", runs_dir=root)
    with pytest.raises(UsageError, match="no runs"):
        gymnast.load("@last", runs_dir=root)
    assert not root.exists()


def test_progress_shows_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Silent by default, the usual output on request."""
    tiny("CartPole-v1:ppo", tmp_path)
    assert capsys.readouterr().out == ""
    tiny("CartPole-v1:ppo", tmp_path, progress=True)
    assert "over 3 episodes" in capsys.readouterr().out


def test_signal_handlers_are_given_back_and_threads_can_train(tmp_path: Path) -> None:
    """A program that trains keeps its own handling of Ctrl-C."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    tiny("CartPole-v1:ppo", tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    results: list[TrainResult] = []
    thread = threading.Thread(target=lambda: results.append(tiny("CartPole-v1:ppo", tmp_path)))
    thread.start()
    thread.join(60)
    assert results[0].env_steps == 128


# ---- counting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
@pytest.mark.parametrize("normalised", [False, True])
def test_env_steps_are_the_steps_the_env_was_given(algorithm: str, normalised: bool, tmp_path: Path) -> None:
    """Counted by the env itself; warm-up and evaluation steps come on top and are not in the budget."""
    # `auto` would try out how dear a step of an unknown env is.
    # Films at the end play episodes of their own, where a run is long enough for them.
    size = TINY | {"env__vectorization": "inprocess", "log__video": False, "log__rollouts": False}
    size |= {} if algorithm == "reinforce" else {"algo__n_steps": 16}
    Counting.steps = 0
    result = gymnast.train(
        f"Counting-v0:{algorithm}",
        env_steps=400,
        runs_dir=tmp_path,
        **(size | {"eval__n_envs": 1, "eval__every": 10**9, "policy__normalize_obs": normalised}),
    )
    assert result.evaluation is not None
    n_steps = 16 if algorithm != "reinforce" else 50
    warm_up = 4 * min(128, n_steps) if normalised else 0
    assert Counting.steps == result.env_steps + sum(result.evaluation.lengths) + warm_up
    assert 400 <= result.env_steps < 400 + 4 * n_steps
    assert result.vec_steps * 4 == result.env_steps
    assert result.run.status().env_steps == result.env_steps


# ---- predictions ---------------------------------------------------------------------------------------------------

CASES: dict[str, dict[str, Any]] = {
    "CartPole-v1:ppo": {"env__time_limit": 60},
    "Pendulum-v1:ppo": {"env__time_limit": 20, "policy__normalize_obs": True},
    "FrozenLake-v1:ppo": {},
    "Blackjack-v1:ppo": {},
    "DictIdentity-v0:ppo": {"policy__normalize_obs": True},
    "MultiIdentity-v0:ppo": {},
    "Walk-v0:ppo": {"env__kwargs": {"actions": "box"}},
    "Identity-v0:reinforce": {},
}


def bare(result: TrainResult) -> gym.Env:
    """The env of a run as a user would make it."""
    env = result.run.config()["env"]
    return gym.make(env["id"], max_episode_steps=env["time_limit"], **env["kwargs"])


def observations(env: gym.Env, count: int) -> list[Any]:
    """What an agent may see, one after the other."""
    env.action_space.seed(1)
    seen = [env.reset(seed=1)[0]]
    while len(seen) < count:
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(env.reset()[0] if terminated or truncated else obs)
    return seen


@pytest.mark.parametrize("reference", CASES)
def test_predictions(reference: str, tmp_path: Path) -> None:
    """Valid actions, the same one by one and in a batch, batched in every way, and repeatable."""
    result = tiny(reference, tmp_path, **CASES[reference])
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    env = bare(result)
    seen = observations(env, 12)
    singles = [agent.predict(obs) for obs in seen]
    for action in singles:
        assert env.action_space.contains(action), action
    as_list = agent.predict(seen) if not isinstance(seen[0], dict) else None
    as_arrays = agent.predict(gym.vector.utils.concatenate(
        env.observation_space, seen, gym.vector.utils.create_empty_array(env.observation_space, len(seen))
    ))  # fmt: skip
    for batch in (as_list, as_arrays):
        if batch is not None:
            assert len(batch) == len(seen)
            np.testing.assert_allclose(batch, singles, rtol=1e-5, atol=1e-6)
    assert [np.asarray(agent.predict(obs)).tolist() for obs in seen] == [np.asarray(a).tolist() for a in singles]


@pytest.mark.parametrize("reference", CASES)
def test_predictions_are_the_evaluations_actions(reference: str, tmp_path: Path) -> None:
    """Episodes played by hand with `predict` have the returns that evaluation finds with the same seeds."""
    result = tiny(reference, tmp_path, **CASES[reference])
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    seeds = [11, 12, 13]
    envs = make_envs(agent.config.env.model_copy(update={"vectorization": "inprocess"}), len(seeds))
    expected = evaluate(agent.policy, envs, len(seeds), seeds)
    env, returns = bare(result), []
    for seed in seeds:
        obs, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(agent.predict(obs, deterministic=True))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    np.testing.assert_allclose(sorted(returns), sorted(expected.returns), rtol=1e-6)


def test_loaded_weights_are_the_trained_ones(tmp_path: Path) -> None:
    """To the bit, with the statistics of the normaliser; the best checkpoint by default, any by name."""
    often = {"train__checkpoint_every": 64, "train__keep_checkpoints": 20, "train__stop_when_solved": False}
    judged = {"eval__every": 64, "eval__start_fraction": None}
    short = {"policy__normalize_obs": True, "env__time_limit": 20}
    result = tiny("Pendulum-v1:ppo", tmp_path, 512, **often, **judged, **short)
    best = checkpoint.read_pointer(result.run.folder, "best")
    assert gymnast.load(runs_dir=tmp_path).checkpoint == best
    for step in checkpoint.steps(result.run.folder)[:2]:
        saved = checkpoint.load(result.run.checkpoints / f"step={step}", with_state=False).policy
        agent = gymnast.load(f"@last/step={step}", runs_dir=tmp_path)
        loaded = agent.policy.state_dict()
        assert saved.keys() == loaded.keys()
        assert all(torch.equal(tensor, loaded[name]) for name, tensor in saved.items())
        norm = agent.policy.encoder.norm
        assert norm is not None
        assert torch.equal(norm.shift, norm.mean.float())
    rewards = [row["eval/return_mean"] for row in _rows(result)]
    assert f"step={64 * (1 + int(np.argmax(rewards)))}" == best


def _rows(result: TrainResult) -> list[dict[str, Any]]:
    from gymnast.metrics.sinks.jsonl import MetricRows

    return list(MetricRows(result.run.metrics_path))


def test_masks(tmp_path: Path) -> None:
    """A forbidden action is never predicted, in single and batched form, greedy and sampled."""
    result = tiny("MaskedIdentity-v0:ppo", tmp_path)
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    states = np.arange(4)
    masks = states != states[:, None]
    for deterministic in (True, False):
        for _ in range(20):
            batch = agent.predict(states, deterministic, mask=masks)
            assert (batch != states).all()
            assert [agent.predict(int(s), deterministic, mask=masks[s]) != s for s in states] == [True] * 4
    only = np.eye(4, dtype=bool)
    assert agent.predict(states, mask=only[::-1]).tolist() == [3, 2, 1, 0]


def test_sampled_predictions_follow_the_policy(tmp_path: Path) -> None:
    """Their frequencies are the policy's probabilities."""
    result = tiny("Identity-v0:ppo", tmp_path, 512, algo__learning_rate=3e-3)
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    count = 4000
    sampled = agent.predict(np.zeros(count, np.int64), deterministic=False)
    with torch.inference_mode():
        params = agent.policy.act(torch.zeros(1, dtype=torch.int64), None)["params"]
        probabilities = torch.softmax(params[0], -1).numpy()
    frequencies = np.bincount(sampled, minlength=4) / count
    errors = np.sqrt(probabilities * (1 - probabilities) / count)
    assert (np.abs(frequencies - probabilities) < 5 * errors + 1e-3).all()
    assert len(set(sampled.tolist())) > 1


def test_continuous_predictions_are_clipped(tmp_path: Path) -> None:
    """What `predict` gives can go straight into `env.step`."""
    result = tiny("Pendulum-v1:ppo", tmp_path, policy__log_std_init=3.0, env__time_limit=20)
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    actions = agent.predict(np.zeros((500, 3), np.float32), deterministic=False)
    assert actions.shape == (500, 1)
    assert actions.min() == -2.0
    assert actions.max() == 2.0


def test_wrapped_observations(tmp_path: Path) -> None:
    """Where a wrapper changes observations, `predict` takes the changed ones and says so by its space."""
    result = tiny("CartPole-v1:ppo", tmp_path, env__wrappers=[{"id": "observation_stack", "size": 3}])
    agent = gymnast.load(result.run.id, runs_dir=tmp_path)
    assert agent.observation_space.shape == (3, 4)
    assert agent.predict(np.zeros((3, 4), np.float32)) in (0, 1)
    assert agent.predict(np.zeros((5, 3, 4), np.float32)).shape == (5,)


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_actions_with_parts_are_ready_for_the_env(kind: str, tmp_path: Path) -> None:
    """One observation gives one action of the space, a vector env's batch a batched one."""
    tiny("PartsIdentity-v0:ppo", tmp_path, env__kwargs={"kind": kind}, policy__squash_actions=True)
    agent = gymnast.load(runs_dir=tmp_path)
    env = gym.make("PartsIdentity-v0", kind=kind)
    obs, _ = env.reset(seed=0)
    for deterministic in (True, False):
        assert env.action_space.contains(agent.predict(obs, deterministic))
    envs = gym.make_vec("PartsIdentity-v0", num_envs=3, vectorization_mode="sync", kind=kind)
    batch, _ = envs.reset(seed=0)
    actions = agent.predict(batch)
    assert envs.action_space.contains(actions)
    envs.step(actions)
    same = agent.predict(obs)  # the first env was reset with seed 0 too
    choice = actions["choice"] if kind == "dict" else actions[0]
    assert choice[0] == (same["choice"] if kind == "dict" else same[0])


@pytest.mark.parametrize("env_id", ["NestedIdentity-v0", "TupleIdentity-v0"])
def test_nested_observations_alone_in_lists_and_in_batches(env_id: str, tmp_path: Path) -> None:
    """The three ways people hold them give the same actions."""
    tiny(f"{env_id}:ppo", tmp_path, env_steps=512)
    agent = gymnast.load(runs_dir=tmp_path)
    envs = gym.make_vec(env_id, num_envs=5, vectorization_mode="sync")
    batch, _ = envs.reset(seed=3)
    singles = [gym.make(env_id).reset(seed=3 + i)[0] for i in range(5)]
    alone = [agent.predict(obs) for obs in singles]
    assert agent.predict(batch).tolist() == agent.predict(singles).tolist() == alone
    assert all(type(action) is int for action in alone)

"""A score is of Gymnasium's own env: a run that EnvPool steps is evaluated without it, unless its config says otherwise."""

from __future__ import annotations

import importlib.metadata
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from optimal import optimal_return
from runs_alike import run, small
from typer.testing import CliRunner

from gymnast.cli.app import app as commands
from gymnast.config.load import resolve
from gymnast.config.schema import RunConfig
from gymnast.envs import choose, parity
from gymnast.envs.envpool import EnvPoolVector
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.evaluation.exact import tabular_model
from gymnast.policies.actor_critic import ActorCritic
from gymnast.training.evaluating.evaluator import Evaluator
from gymnast.training.evaluating.setup import eval_env_config

pytest.importorskip("envpool", reason="EnvPool is not installed")
VERSION = importlib.metadata.version("envpool")


@pytest.fixture(autouse=True)
def _envpool_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests run as if it were missing."""
    monkeypatch.setattr(parity, "installed_version", lambda: VERSION)


def config(env_id: str, way: str = "envpool", **evaluation: Any) -> RunConfig:
    """A small run, stepped by EnvPool, with changes of its evaluation envs."""
    env = {"id": env_id, "vectorization": way, "action_mask": "off"}
    return small("ppo", env, eval={"env": evaluation}).config


def innermost(envs: VectorEnv) -> VectorEnv:
    """The adapter inside its wrappers."""
    while isinstance(envs, VectorWrapper):
        envs = envs.inner
    return envs


@pytest.mark.parametrize("way", ["envpool", "auto"])
@pytest.mark.parametrize(
    ("env_id", "played"),
    [("LunarLander-v3", "inprocess"), ("Taxi-v4", "inprocess"), ("CartPole-v1", "native"), ("CarRacing-v3", "workers")],
)
def test_evaluations_are_gymnasiums_own(env_id: str, played: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stepped the fastest way that gives Gymnasium's own episodes, whatever steps the training envs."""
    monkeypatch.setattr(choose, "cores", lambda: 2)
    evaluation, changed = eval_env_config(config(env_id, way))
    assert (evaluation.vectorization, changed) == (played, {})
    assert eval_env_config(config(env_id, way, vectorization="auto"))[0].vectorization == played
    assert choose.foreign_engine(evaluation) is None


def test_every_preset_is_evaluated_without_envpool() -> None:
    """Also those that `auto` steps by EnvPool in training."""
    stepped = set()
    for name in ("LunarLander-v3:ppo", "FrozenLake-v1:ppo", "Acrobot-v1:a2c", "Pendulum-v1:ppo", "HalfCheetah-v5:ppo"):
        settled = choose.with_vectorization(resolve(name))
        stepped.add(settled.config.env.vectorization)
        assert eval_env_config(settled.config)[0].vectorization != "envpool"
    assert "envpool" in stepped


def test_the_user_may_ask_for_envpool_and_the_score_says_so(tmp_path: Path) -> None:
    """In the sentence, in the record, in the run's status, in `runs show` and in `eval`; without asking, nowhere."""
    asked = small("ppo", {"id": "Acrobot-v1", "vectorization": "envpool", "time_limit": 20})
    stated = small("ppo", {"id": "Acrobot-v1", "time_limit": 20}, eval={"env": {"vectorization": "envpool"}})
    with closing(Evaluator(stated.config)) as evaluator:
        assert isinstance(innermost(evaluator.envs), EnvPoolVector)
    with closing(Evaluator(asked.config)) as evaluator:
        assert not isinstance(innermost(evaluator.envs), EnvPoolVector)
    for resolved, engine in ((stated, f"EnvPool {VERSION}"), (asked, None)):
        result = run(resolved, tmp_path)
        evaluation = result.evaluation
        assert evaluation is not None
        assert evaluation.as_json()["engine"] == evaluation.engine == result.run.status().eval_engine == engine
        assert (f"played by EnvPool {VERSION}" in evaluation.sentence()) == (engine is not None)
        for command in ("eval", "runs show"):
            shown = CliRunner().invoke(commands, [*command.split(), result.run.id, "--runs-dir", str(tmp_path)])
            assert shown.exit_code == 0, shown.output
            assert ("EnvPool" in shown.stdout) == (engine is not None), command
        told = CliRunner().invoke(commands, ["eval", result.run.id, "--json", "-e", "2", "--runs-dir", str(tmp_path)])
        assert json.loads(told.stdout)["engine"] == engine


def test_the_score_is_what_plain_gymnasium_gives() -> None:
    """Taxi stepped by EnvPool, which starts a quarter of its episodes at the destination: the optimum scores 7.93, not 9.35."""
    model = tabular_model(gym.make("Taxi-v4"))
    assert model is not None
    best, actions = optimal_return(model.P, model.initial_distribution, model.horizon)
    table = torch.nn.functional.one_hot(torch.from_numpy(actions[0]), 6).float()
    means = {}
    for engine in ({}, {"vectorization": "envpool"}):
        env = {"id": "Taxi-v4", "vectorization": "envpool", "action_mask": "off"}
        settings = small("ppo", env, policy={"hidden": []}, eval={"env": engine, "episodes": 600}).config
        with closing(Evaluator(settings)) as evaluator:
            envs = evaluator.envs
            policy = ActorCritic(settings.policy, envs.observation_space, envs.action_space)
            tensors = policy.state_dict()
            name = next(name for name, tensor in tensors.items() if tensor.shape == (6, 500))
            policy.load_state_dict({**tensors, name: table.T.contiguous()})
            evaluation = evaluator(policy, 0)
        assert evaluation.exact == pytest.approx(best)
        means[evaluation.engine is None] = evaluation.mean
        error = evaluation.std / 600**0.5
    assert abs(means[True] - best) < 5 * error
    assert means[False] - best > 5 * error

"""Envs, networks and wrappers that Python gives: classes, instances, functions, and what becomes of their runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.envs.classic_control import CartPoleEnv
from launch import environment
from small_envs import Counting
from torch import nn

import gymnast
from gymnast.errors import ConfigError, UsageError
from gymnast.runs.trust import ForeignCodeError

Tiny = dict[str, Any]


def bits(result: gymnast.api.TrainResult, name: str = "last") -> dict[str, Any]:
    """Weights of a checkpoint."""
    return gymnast.load(result.run, checkpoint=name).policy.state_dict()


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def limited(steps: int) -> gym.Env:
    return gym.wrappers.TimeLimit(CartPoleEnv(), steps)


@pytest.mark.parametrize("kind", ["class", "lambda", "instance", "local", "partial"])
def test_every_kind_of_env_gives_the_run_of_its_id(folder: Path, tiny: Tiny, kind: str) -> None:
    """All of them are CartPole with its registered limit: the same weights as under the id, also after a resume."""

    class Mine(CartPoleEnv):
        pass

    import functools

    settings = {**tiny, "env__time_limit": 500, "policy__normalize_obs": True}
    env = {
        "class": CartPoleEnv,
        "lambda": lambda: limited(500),
        "instance": gym.make("CartPole-v1"),
        "local": Mine,
        "partial": functools.partial(limited, 500),
    }[kind]
    known = gymnast.train("CartPole-v1", env_steps=256, seed=4, **settings)
    config = known.run.config()
    found = gymnast.train(env, config={**config, "env": {**config["env"], "vectorization": "inprocess"}})
    assert same(bits(found), bits(known))
    half = gymnast.train(env, config={**config, "env": {**config["env"], "vectorization": "inprocess"}}, env_steps=128)
    assert (
        same(bits(gymnast.resume(half.run, env_steps=256)), bits(known)) or config["algo"]["learning_rate"]["schedule"]
    )
    assert gymnast.load(found.run).evaluate(3, seed=1).returns == gymnast.load(known.run).evaluate(3, seed=1).returns


def test_an_instance_is_copied_and_never_stepped(folder: Path, tiny: Tiny) -> None:
    env = gym.make("CartPole-v1")
    env.unwrapped.gravity = 0.0  # type: ignore[attr-defined]
    result = gymnast.train(env, env_steps=64, **tiny)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    assert result.run.config()["name"] == "CartPole-v1:ppo"  # its preset is used
    trace = gymnast.load(result.run).trace(seed=3)
    plain = gym.make("CartPole-v1")
    plain.unwrapped.gravity = 0.0  # type: ignore[attr-defined]
    obs, _ = plain.reset(seed=3)
    for seen, action in zip(trace.observations, trace.executed, strict=False):
        np.testing.assert_array_equal(seen, obs)
        obs, *_ = plain.step(action)


def test_one_that_cannot_be_copied_is_refused(tiny: Tiny, folder: Path) -> None:
    class Stubborn(CartPoleEnv):
        def __deepcopy__(self, memo: object) -> Stubborn:
            raise TypeError("there is only one of me")

    with pytest.raises(UsageError, match=r"cannot be copied .*only one of me.*gymnast.train\(lambda: MyEnv\(\)\)"):
        gymnast.train(Stubborn(), env_steps=64, **tiny)
    for wrong, words in ((nn.Linear, "not derived from gymnasium.Env"), (3, "env is a int"), (lambda: 3, "gave a int")):
        with pytest.raises(UsageError, match=words):
            gymnast.train(wrong, env_steps=64, **tiny)  # type: ignore[call-overload]
    assert not Path("runs").exists()


def test_objects_of_one_name_are_not_mistaken(folder: Path, tiny: Tiny) -> None:
    short = gymnast.train(lambda: limited(5), env_steps=64, **tiny)
    long = gymnast.train(lambda: limited(9), env_steps=64, **tiny)
    assert set(gymnast.load(short.run).evaluate(3).lengths) == {5}
    assert max(gymnast.load(long.run).evaluate(3).lengths) == 9


ELSEWHERE = """
import gymnasium, gymnast
from gymnasium.envs.classic_control import CartPoleEnv
class Mine(CartPoleEnv):
    pass
try:
    gymnast.load("@last")
except gymnast.errors.GymnastError as error:
    print(error)
def make():
    return gymnasium.wrappers.TimeLimit(Mine(), 9)
print(gymnast.resume("@last", env=make, env_steps=128).env_steps)
print(max(gymnast.load("@last", env=make).evaluate(2).lengths))
"""


def test_a_run_from_an_object_goes_on_where_it_is_given_again(folder: Path, tiny: Tiny) -> None:
    class Mine(CartPoleEnv):
        pass

    gymnast.train(lambda: gym.wrappers.TimeLimit(Mine(), 9), env_steps=64, **tiny)
    shell = [sys.executable, "-m", "gymnast", "resume", "@last", "-n", "128"]
    said = subprocess.run(shell, capture_output=True, text=True, env=environment(), check=False)
    assert said.returncode == 2
    assert re.search(r"env.id is 'lambda\w*', an object of the Python program that started the run", said.stderr)
    assert "gymnast.resume(run, env=…)" in said.stderr
    assert "Traceback" not in said.stderr
    Path("script.py").write_text(ELSEWHERE)  # a class in __main__
    again = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, env=environment(), check=False
    )
    assert "gymnast.load(run, env=…)" in again.stdout, again.stderr
    assert again.stdout.splitlines()[-2:] == ["128", "9"], again.stderr


OWN = """
import gymnasium as gym
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, space, width=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(space.shape[0], width), nn.Tanh())

    def forward(self, obs):
        return self.layers(obs)


class Double(gym.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


class Own(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return self.np_random.random(3, dtype="float32"), {}

    def step(self, action):
        self.left -= 1
        return self.np_random.random(3, dtype="float32"), float(action), self.left == 0, False, {}
"""


@pytest.mark.parametrize("start", ["forkserver", pytest.param("spawn", marks=pytest.mark.full)])
def test_own_code_from_the_current_folder_in_workers(folder: Path, tiny: Tiny, start: str) -> None:
    """By import path: env, wrapper and encoder; trained here and in workers to the same weights, resumed by the shell."""
    Path("own_code_here.py").write_text(OWN)
    asked = {
        **tiny,
        "encoder": "own_code_here:Net",
        "policy__encoder_kwargs": {"width": 5},
        "wrappers": ["own_code_here:Double"],
    }
    here = gymnast.train("own_code_here:Own", env_steps=128, env__vectorization="inprocess", **asked)
    there = gymnast.train(
        "own_code_here:Own",
        env_steps=128,
        env__vectorization="workers",
        env__n_workers=2,
        env__start_method=start,
        **asked,
    )
    assert same(bits(here), bits(there))
    assert bits(here)["encoder.module.layers.0.weight"].shape == (5, 3)
    if start == "spawn":
        return
    words = ["-m", "gymnast", "resume", str(here.run.folder), "-n", "192", "--quiet"]
    said = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment(), check=False)
    assert said.returncode == 0, said.stderr
    assert same(bits(gymnast.resume(there.run, env_steps=192)), bits(here))


def test_classes_of_this_program_go_to_workers_too(folder: Path, tiny: Tiny) -> None:
    class Half(gym.RewardWrapper):
        def reward(self, reward: Any) -> Any:
            return reward / 2

    settings = {**tiny, "env_steps": 128, "wrappers": [Half, "reward_clip"], "encoder": lambda space: nn.Linear(4, 3)}
    here = gymnast.train(lambda: limited(20), **settings, env__vectorization="inprocess")
    there = gymnast.train(lambda: limited(20), **settings, env__vectorization="workers", env__n_workers=2)
    assert there.run.config()["env"]["vectorization"] == "workers"
    assert same(bits(here), bits(there))
    both = gymnast.train(lambda: limited(20), **settings, seeds=2, jobs=2)
    assert not both.failed
    assert both.last is not None


def test_what_workers_cannot_have_stays_here_and_says_so(folder: Path, tiny: Tiny) -> None:
    file = Path("held.txt").open("w")  # noqa: SIM115 - what no other process can have

    def make() -> gym.Env:
        file.write(".")
        return limited(9)

    with pytest.warns(UserWarning, match="'make' is an object that cannot be sent to worker processes"):
        result = gymnast.train(make, env_steps=64, **tiny, env__vectorization="workers")
    assert "4 envs in this process" in result.run.log_path.read_text()
    file.close()


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        ("own_code_there:Net", "cannot be imported: No module named 'own_code_there'"),
        ("collections:Nothing", "there is no 'Nothing' in the module 'collections'"),
        ("collections:OrderedDict", "cannot be made with|an nn.Module is needed"),
        (lambda space: nn.Linear(7, 3), "cannot read observations"),
        (lambda space: nn.Flatten(0), r"must give features \[B, F\] for a batch of B observations"),
        ("no path", "policy.encoder"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(folder: Path, tiny: Tiny, encoder: Any, words: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=words):
        gymnast.train("CartPole-v1", env_steps=64, encoder=encoder, **tiny)
    assert not Path("runs").exists()


def test_own_code_of_a_foreign_run_is_refused(folder: Path, tiny: Tiny) -> None:
    Path("own_code_foreign.py").write_text(OWN + "\nopen('ran.txt', 'a').write('x')\n")
    result = gymnast.train("CartPole-v1", env_steps=64, encoder="own_code_foreign:Net", **tiny)
    saved = gymnast.load(result.run).save("agent")
    (result.run.folder / "trust.json").unlink()  # as one that came from elsewhere
    sys.modules.pop("own_code_foreign")
    Path("ran.txt").unlink()
    for use in (gymnast.load, gymnast.resume, gymnast.evaluate):
        with pytest.raises(ForeignCodeError, match=r"the Python code 'own_code_foreign:Net' \(policy.encoder\)"):
            use(result.run)
    with pytest.raises(ForeignCodeError, match="own_code_foreign:Net"):
        gymnast.load(saved)
    assert not Path("ran.txt").exists()
    from_file, from_run = gymnast.load(saved, trust=True), gymnast.load(result.run, trust=True)
    assert same(from_file.policy.state_dict(), from_run.policy.state_dict())


def test_an_encoder_learns_and_leaves_the_generators_alone(folder: Path, tiny: Tiny) -> None:
    """Same seed, same weights, whatever torch's own generator stands at; and gradients reach it."""
    made: list[nn.Linear] = []

    def encoder(space: gym.Space) -> nn.Module:
        made.append(nn.Linear(4, 6))
        return made[-1]

    torch.manual_seed(1)
    first = gymnast.train("CartPole-v1", env_steps=64, encoder=encoder, **tiny)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    second = gymnast.train("CartPole-v1", env_steps=64, encoder=encoder, **tiny)
    assert torch.equal(before, torch.random.get_rng_state())
    assert same(bits(first), bits(second))
    untouched = gymnast.train("CartPole-v1", env_steps=64, encoder=encoder, algo__learning_rate=1e-30, **tiny)
    assert not same(bits(first), bits(untouched))
    assert not torch.equal(bits(first)["encoder.module.weight"], bits(untouched)["encoder.module.weight"])


def test_a_policy_of_ones_own(folder: Path, tiny: Tiny) -> None:
    from gymnast.policies.actor_critic import ActorCritic

    class Mine(ActorCritic):
        pass

    result = gymnast.train("CartPole-v1", env_steps=64, policy=Mine, **tiny)
    assert result.run.config()["policy"]["id"].startswith("python:Mine")
    assert type(gymnast.load(result.run).policy) is Mine
    with pytest.raises(ConfigError, match="is no policy"):
        gymnast.train("CartPole-v1", env_steps=64, policy=nn.Linear, **tiny)


def test_dict_observations_reach_the_encoder_by_name(folder: Path, tiny: Tiny) -> None:
    class Two(gym.Env):
        observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-9, 9, (3,)), "b": gym.spaces.Discrete(4)})
        action_space = gym.spaces.Box(-1, 1, (2,))

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.left = 5
            return {"a": np.ones(3, np.float32) * 7, "b": 2}, {}

        def step(self, action: Any) -> Any:
            self.left -= 1
            return {"a": np.zeros(3, np.float32), "b": 3}, 0.0, self.left == 0, False, {}

    seen: list[dict[str, torch.Tensor]] = []

    class Net(nn.Module):
        def __init__(self, space: gym.spaces.Dict) -> None:
            super().__init__()
            self.embedding = nn.Embedding(4, 2)

        def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
            seen.append(obs)
            return torch.cat([obs["a"], self.embedding(obs["b"])], -1)

    result = gymnast.train(Two, env_steps=128, encoder=Net, **tiny)
    assert {tensor.shape[1:] for tensor in (seen[-1]["a"],)} == {(3,)}
    assert float(seen[-1]["a"].abs().max()) < 5.0  # normalised: 7 is what the env gives
    assert gymnast.load(result.run).predict({"a": np.ones(3), "b": 1}).shape == (2,)


def test_counting_still_trains(folder: Path, tiny: Tiny) -> None:
    """A class of a module that is importable keeps its import path."""
    result = gymnast.train(Counting, env_steps=64, env__time_limit=8, **tiny)
    assert result.run.config()["env"]["id"] == "small_envs:Counting"

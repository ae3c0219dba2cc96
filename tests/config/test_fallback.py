"""An env with a preset trains with every algorithm: those without one of their own get defaults and the preset's env."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import gymnasium as gym
import pytest
import small_envs  # registers envs that have no file
from gymnasium.envs.registration import EnvSpec

from gymnast.config import files
from gymnast.config.algorithms import CONFIGS
from gymnast.config.load import resolve
from gymnast.envs.defaults import generic_defaults
from gymnast.errors import ConfigError, UsageError

NO_PRESET = (
    "Pendulum-v1 has no preset for a2c: these are a2c's defaults for its spaces, not tuned, with the env section of"
)


def resolved(reference: str, *overrides: str):
    """As `gymnast train` resolves it."""
    return resolve(reference, overrides, generic=generic_defaults)


def is_installed(env_id: str) -> bool:
    """Whether the env's package is there."""
    package = {"ALE/": "ale_py", "MinAtar/": "minatar", "MiniGrid": "minigrid"}
    needed = next((module for start, module in package.items() if env_id.startswith(start)), "gymnasium")
    return importlib.util.find_spec(needed) is not None


@pytest.mark.parametrize(
    "reference", [("Pendulum-v1:a2c",), ("Pendulum-v1", "algo.id=a2c"), ("Pendulum-v1:ppo", "algo.id=a2c")]
)
def test_an_algorithm_without_a_preset(reference: tuple[str, ...]) -> None:
    """Its own defaults, the preset's env, spec, budget and way of scoring; every value says where it comes from."""
    found = resolved(*reference)
    preset, config = resolve("Pendulum-v1:ppo").config, found.config
    assert (config.name, config.algo.id) == ("Pendulum-v1:a2c", "a2c")
    assert (config.env, config.spec) == (preset.env, preset.spec)
    assert (config.algo.gamma, config.algo.n_steps, config.train.env_steps) == (0.99, 5, 1_000_000)
    assert (config.eval.standard_errors, config.eval.every, config.eval.start_fraction) == (2, None, None)
    assert config.policy.normalize_obs
    assert found.notices == [f"{NO_PRESET} Pendulum-v1:ppo."]
    assert found.origins["env.n_envs"].startswith("presets/envs/Pendulum-v1.yaml:")
    assert found.origins["policy.normalize_obs"] == "no preset for a2c: chosen from the env's spaces"


def test_every_env_with_a_file_takes_every_algorithm() -> None:
    """One valid config of each; the env is the preset's, but for slots that would each wait for a whole episode."""
    asked: set[str] = set()
    for env_id, stack in files.known_envs():
        family = str(stack[-1].data["extends"])
        generic = None if family in asked else generic_defaults  # one of each family is made, to look at its spaces
        asked.add(family)
        if not is_installed(env_id):
            continue
        for algorithm in CONFIGS:
            if algorithm in files.variant_names(stack):
                continue
            config, preset = resolve(f"{env_id}:{algorithm}", generic=generic).config, resolve(env_id).config
            assert config.algo.id == algorithm, env_id
            changed = {"n_envs", "time_limit"} if algorithm == "reinforce" else set()
            assert config.env.model_dump(exclude=changed) == preset.env.model_dump(exclude=changed), env_id
            assert config.spec == preset.spec, env_id


def test_whole_episodes_are_played_in_few_slots_and_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """REINFORCE would wait for the longest of 64 hands, of which none has a limit."""
    found = resolved("Blackjack-v1:reinforce")
    assert (found.config.env.n_envs, found.config.env.time_limit) == (8, 1000)
    assert found.origins["env.n_envs"] == "fewer than the preset's: an update waits for whole episodes"
    assert found.notices[1:] == [
        "Blackjack-v1 has no time limit, and reinforce plays whole episodes: they are cut off after 1,000 steps (env.time_limit)."
    ]
    assert len(resolved("Blackjack-v1:reinforce", "env.time_limit=50").notices) == 1
    monkeypatch.setitem(gym.registry, "Fileless-v0", EnvSpec("Fileless-v0", entry_point=small_envs.Identity))
    assert "cut off after 1,000 steps" in resolved("Fileless-v0:reinforce").notices[0]
    assert resolved("CliffWalking-v1:reinforce").config.env.time_limit == 200  # the preset's


def test_a_variant_keeps_its_own_env() -> None:
    """Its name says what is seen; the donor is the variant that is called so with its own algorithm."""
    for reference in (("ALE/Pong-v5:objects_a2c",), ("ALE/Pong-v5:objects_ppo", "algo.id=a2c")):
        config = resolve(reference[0], reference[1:]).config
        assert (config.name, config.env.atari.obs, config.env.atari.sticky) == (
            "ALE/Pong-v5:objects_a2c",
            "objects",
            0.25,
        )
    assert resolve("ALE/Pong-v5:a2c").config.env.atari.obs == "pixels"
    assert resolve("LunarLander-v3:continuous_a2c").config.env.kwargs == {"continuous": True}
    assert resolve("Taxi-v4:a2c_masked").config.env.action_mask == "auto"


def test_a_preset_for_the_algorithm_is_used() -> None:
    """Also where the algorithm is only asked for by `algo.id`, and where the variant has a longer name."""
    tuned = resolve("CartPole-v1:a2c").config
    assert resolve("CartPole-v1", ["algo.id=a2c"]).config == tuned
    asked = resolve("CartPole-v1:ppo", ["algo.id=a2c"])
    assert asked.config == tuned
    assert asked.notices == ["algo.id=a2c: running CartPole-v1:a2c, the preset for it."]
    pong = resolve("ALE/Pong-v5:ppo")
    assert pong.config.name == "ALE/Pong-v5:rgb_ppo"
    assert pong.notices == ["ALE/Pong-v5 has no variant 'ppo': running ALE/Pong-v5:rgb_ppo."]
    assert resolve("CartPole-v1:a2c", ["algo.id=a2c"]).notices == []


def test_an_env_without_a_file_takes_an_algorithm_by_its_id() -> None:
    """No setting of another algorithm is left over."""
    config = resolved("Identity-v0", "algo.id=a2c").config
    assert (config.name, config.algo.n_steps) == ("Identity-v0:a2c", 5)


KNOWN = "Known: ppo, angle_recurrent_ppo. Algorithms: ppo, a2c"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (("Pendulum-v1:a2cc",), rf"Pendulum-v1 has no variant 'a2cc'. Did you mean 'a2c'\? {KNOWN}"),
        (("Pendulum-v1:dqn",), rf"no variant 'dqn'. {KNOWN}, reinforce"),
        (("Pendulum-v1:fast_a2c",), r"no variant 'fast_a2c'. Known: ppo"),
        (("Pendulum-v1", "algo.id=pppo"), r"unknown algorithm 'pppo'. Did you mean 'ppo'\? Known: ppo, a2c, reinforce"),
        (("Identity-v0:a2cc",), r"There is no algorithm 'a2cc', and .* has no presets. Did you mean 'a2c'"),
    ],
)  # fmt: skip
def test_an_unknown_algorithm_is_answered_with_those_there_are(reference: tuple[str, ...], words: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=words):
        resolved(*reference)


def test_own_files_and_their_defaults(folder) -> None:
    """`defaults` hold for every algorithm; what another one does not know of them is left out."""
    (folder / "mine.yaml").write_text(
        "id: Mine-v0\ndefaults: {algo: {gamma: 0.5, clip_range: 0.3}, train: {vec_steps: 77}}\n"
        "variants: {best: {algo: {id: ppo, ent_coef: 0.1}, env: {kwargs: {size: 3}}, policy: {hidden: [5]}}}\n"
    )
    for reference in (("mine.yaml:best", "algo.id=a2c"), ("mine.yaml:best_a2c",), ("mine.yaml:a2c",)):
        config = resolve(reference[0], reference[1:]).config
        assert (config.algo.gamma, config.algo.ent_coef, config.train.vec_steps) == (0.5, 0.0, 77)
        assert (config.env.kwargs, config.policy.hidden) == ({"size": 3}, [64, 64])


def test_it_trains(folder) -> None:
    """The command that was refused, and the sentence above its summary."""
    command = [
        sys.executable,
        "-m",
        "gymnast",
        "train",
        "--algo",
        "a2c",
        "--env",
        "Pendulum-v1",
        "-n",
        "80",
        "eval.episodes=1",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert f"{NO_PRESET} Pendulum-v1:ppo." in done.stdout
    assert "algo  a2c: 8 × 5 steps per iteration" in done.stdout

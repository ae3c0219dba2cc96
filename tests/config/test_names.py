"""Former ids reach the tuned presets of today's envs, and suggestions are words that might have been meant."""

from __future__ import annotations

import gymnasium as gym
import pytest

from gymnast.config.load import resolve
from gymnast.config.names import RENAMED_ENVS, preset_of
from gymnast.config.overrides import find_key
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.registry import env_spec
from gymnast.errors import UsageError

PONG = "ALE/Pong-v5"


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ("Pong-v5", f"{PONG}:rgb_ppo"),
        ("Pong-v5_objects", f"{PONG}:objects_ppo"),
        ("Pong-v5_objects:ppo", f"{PONG}:objects_ppo"),
        ("PongNoFrameskip-v4", f"{PONG}:rgb_deterministic_ppo"),
        ("PongNoFrameskip-v4:ppo", f"{PONG}:rgb_deterministic_ppo"),
        ("PongNoFrameskip-v0", f"{PONG}:rgb_ppo"),
        ("PongDeterministic-v4", f"{PONG}:rgb_deterministic_ppo"),
        ("Pong-ramNoFrameskip-v4", f"{PONG}:ram_deterministic_ppo"),
        ("Pong-ram-v5", f"{PONG}:ram_ppo"),
        ("ALE/Pong-ram-v5", f"{PONG}:ram_ppo"),
        ("BreakoutNoFrameskip-v4", "ALE/Breakout-v5:rgb_deterministic_ppo"),
        ("SpaceInvadersNoFrameskip-v4", "ALE/SpaceInvaders-v5:rgb_deterministic_ppo"),
        ("Pong-v5:objects_deterministic_ppo", f"{PONG}:objects_deterministic_ppo"),
        ("LunarLanderContinuous-v2", "LunarLander-v3:continuous_ppo"),
        ("LunarLanderContinuous-v3", "LunarLander-v3:continuous_ppo"),
        ("FrozenLake8x8-v1", "FrozenLake-v1:ppo_8x8"),
    ],
)
def test_a_former_id_runs_the_preset_of_today(former: str, today: str) -> None:
    found = resolve(former)
    assert found.config == resolve(today).config
    assert found.notices == [f"{former.partition(':')[0]} is {today} here; running that."]


@pytest.mark.parametrize(
    ("former", "nearest"),
    [("Pong-v0", "rgb_ppo"), ("Pong-v4", "rgb_deterministic_ppo"), ("Pong-ram-v0", "ram_ppo")],
)
def test_a_former_id_that_no_preset_plays(former: str, nearest: str) -> None:
    """Those repeated actions 2 to 4 times at random; running another protocol in their name would be a wrong score."""
    assert resolve(f"{PONG}:{nearest}").config.env.atari.skip == 4
    with pytest.raises(
        UsageError, match=rf"{former}'\. It repeats .* at random\. {PONG}:{nearest} is the nearest preset"
    ):
        resolve(former, generic=generic_defaults)


def test_what_the_ids_say_of_the_game() -> None:
    """No sticky actions in v4, objects where the id says so, two throttles in the continuous lander."""
    assert resolve("PongNoFrameskip-v4").config.env.atari.sticky == 0.0
    assert resolve("BreakoutNoFrameskip-v4").config.env.atari.sticky == 0.0
    assert resolve("Pong-v5").config.env.atari.sticky == 0.25
    assert resolve("Pong-v5_objects").config.env.atari.obs == "objects"
    assert resolve("LunarLanderContinuous-v2").config.env.kwargs == {"continuous": True}


def test_a_former_id_with_another_algorithm() -> None:
    """Its defaults, with that very env."""
    found = resolve("PongNoFrameskip-v4:a2c")
    assert found.config.name == f"{PONG}:rgb_deterministic_a2c" and found.config.env.atari.sticky == 0.0
    assert found.notices[0] == f"PongNoFrameskip-v4 is {PONG}:rgb_deterministic_a2c here; running that."
    assert resolve("LunarLanderContinuous-v2", ["algo.id=reinforce"]).config.env.kwargs == {"continuous": True}


def test_a_file_of_ones_own_under_such_an_id_is_used(folder) -> None:
    """As `config import-zoo` writes it."""
    (folder / "configs").mkdir()
    text = "id: LunarLanderContinuous-v3\nvariants: {zoo_ppo: {train: {env_steps: 5}}}\n"
    (folder / "configs" / "LunarLanderContinuous-v3.yaml").write_text(text)
    for reference in ("LunarLanderContinuous-v3:zoo_ppo", "LunarLanderContinuous-v2:zoo_ppo"):
        assert resolve(reference).config.env.id == "LunarLanderContinuous-v3"


def test_no_id_of_gymnasium_is_taken_away() -> None:
    """An id of Gymnasium's own envs is only led elsewhere to the same env with the same arguments."""
    own = [env_id for env_id, spec in gym.registry.items() if str(spec.entry_point).startswith("gymnasium.envs")]
    assert len(own) > 30
    for env_id in own:
        if (preset := preset_of(env_id)) is not None:
            config = resolve(env_id).config
            spec, today = env_spec(env_id), env_spec(preset[0])
            assert spec.entry_point == today.entry_point
            assert {**today.kwargs, **config.env.kwargs} == {**today.kwargs, **spec.kwargs}
    assert not {name for name in [*RENAMED_ENVS, *RENAMED_ENVS.values()] if "mario" in name.lower()}


def test_no_id_of_vizdoom_is_taken_away() -> None:
    """Its own ids of today stay; all others lead to one of them."""
    pytest.importorskip("vizdoom")
    renamed = {old: new for old, new in RENAMED_ENVS.items() if "vizdoom" in old.lower()}
    assert len(renamed) >= 18
    for old, new in renamed.items():
        assert env_spec(new).id == new
        assert old not in gym.registry


def test_a_suggestion_shares_more_than_letters() -> None:
    """`anneal_rate` shares letters with `eval_freq`."""
    assert find_key("eval_freq", "ppo") == ("eval", "every")
    with pytest.raises(UsageError) as caught:
        find_key("anneal_rate", "ppo")
    assert "eval" not in str(caught.value)
    with pytest.raises(UsageError, match=r"Did you mean 'algo\.gae_lambda'"):
        find_key("gae_lamda", "ppo")

"""What is said about games of Doom that cannot be, and how WADs of one's own are played (ENV-4)."""

from __future__ import annotations

import shutil
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs.families.vizdoom import engine, wads
from gymnast.envs.make import make_one
from gymnast.envs.registry import rules_of
from gymnast.errors import EnvError, UsageError

vizdoom = pytest.importorskip("vizdoom")
INSTALLED = Path(vizdoom.install_path)
FREEDOOM = INSTALLED / "freedoom1.wad"
SCENARIOS = Path(vizdoom.scenarios_path)


def game(name: str = "Basic", **kwargs: Any) -> Any:
    return make_one(EnvConfig(id=f"Vizdoom{name}-v1", kwargs=kwargs))


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"doom_skil": 3}, r"no env.kwargs.doom_skil. Did you mean 'doom_skill'\?"),
        ({"max_buttons_pressed": 1}, r"no env.kwargs.max_buttons_pressed. Say most_buttons"),
        ({"doom_skill": 6}, r"env.kwargs.doom_skill: .*less than or equal to 5 \(got 6\)"),
        ({"screen": [0, 80]}, r"env.kwargs.screen: .*greater than 0"),
        ({"screen": [2000, 80]}, r"screen is 2000×80, but ViZDoom's largest picture is 1080×1920"),
        ({"frame_skip": "four"}, r"env.kwargs.frame_skip: .*\(got 'four'\)"),
        ({"variables": ["HELTH"]}, r"'HELTH', which is no game variable. Did you mean 'HEALTH'\?"),
        ({"buttons": ["MOVE_LEF"]}, r"'MOVE_LEF', which is no button of Doom. Did you mean 'MOVE_LEFT'\?"),
        ({"buttons": []}, r"The game has no buttons: name some"),
        ({"buttons": ["ATTACK", "ATTACK"]}, r"names a button twice: ATTACK, ATTACK"),
        ({"actions": []}, r"an empty list"),
        ({"actions": ["MOVE_LEFT+MOVE_RIGHT"]}, r"MOVE_LEFT and MOVE_RIGHT cancel each other"),
        ({"actions": ["TURN_LEFT+TURN_LEFT_RIGHT_DELTA=5"]}, r"cancel each other"),
        ({"actions": ["SELECT_WEAPON1+SELECT_WEAPON2"]}, r"cancel each other"),
        ({"actions": ["ATTACK+USE", "USE+ATTACK"]}, r"'ATTACK\+USE' and 'USE\+ATTACK', which are the same"),
        ({"actions": ["ATTACK=2"]}, r"ATTACK is pressed or not"),
        ({"actions": ["TURN_LEFT_RIGHT_DELTA"]}, r"say by how much, for example TURN_LEFT_RIGHT_DELTA=10"),
        ({"actions": ["SHOOT"]}, r"'SHOOT', which is no button of Doom"),
        ({"actions": "all"}, r"env.kwargs.actions: "),
        ({"config": "basik.cfg"}, r"no scenario 'basik.cfg' .* Did you mean 'basic.cfg'"),
        ({"map": "map07x"}, r"There is no map 'map07x' in basic.wad and freedoom2.wad \(env.kwargs.map\)"),
        ({"wad": "/nowhere/mine.wad"}, r"'/nowhere/mine.wad' is missing .*env.kwargs.wad=/path/to/mine.wad"),
        ({"start": "/nowhere/save"}, r"'/nowhere/save' is missing \(env.kwargs.start\)"),
    ],
)
def test_what_cannot_be_is_one_sentence(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        game(**kwargs)
    assert "\n" not in str(error.value)


def test_too_many_combinations() -> None:
    with pytest.raises(UsageError, match="more than 1000 actions: lower env.kwargs.most_buttons"):
        game("Doom", most_buttons=5, buttons=[name for name in vizdoom.Button.__members__ if "DELTA" not in name])


def test_a_missing_wad_of_the_package_says_what_to_do() -> None:
    """doom.wad is sold, not shipped."""
    with pytest.raises(UsageError, match=r"doom.wad' is missing .*commercial.*env.kwargs.wad=freedoom1.wad"):
        make_one(EnvConfig(id="VizdoomDoomE1M1-S3-v0"))


def test_an_unknown_map_lists_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"no map 'E9M9' in freedoom1.wad .* There are E1M1, E1M2, .*E4M9"):
        game("Doom", map="E9M9")


def test_the_hanging_map_of_a_shipped_cfg() -> None:
    """freedoom1.cfg names map01, which is in Doom 2 only: the engine would wait for ever."""
    with pytest.raises(UsageError, match=r"no map 'map01' in freedoom1.wad \(the map of the cfg; env.kwargs.map names"):
        game("Basic", config="freedoom1.cfg")


def test_an_engine_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same map, past the check: an error in bounded time, and this process goes on."""
    monkeypatch.setattr(wads, "maps_in", lambda path: ["MAP01"])
    monkeypatch.setattr("gymnast.envs.families.vizdoom.scenario.maps_in", lambda path: ["MAP01"])
    monkeypatch.setattr(engine, "START_SECONDS", 3.0)
    env = game("Basic", config="freedoom1.cfg")
    with pytest.raises(
        EnvError, match=r"did not begin an episode within 3 s \(freedoom1.cfg, map map01 of freedoom1.wad\)"
    ):
        env.reset(seed=1)


def test_what_is_no_wad(tmp_path: Path) -> None:
    (tmp_path / "mine.wad").write_bytes(b"PK? not at all")
    with pytest.raises(UsageError, match=r"mine.wad is no WAD: it begins with b'PK\? '"):
        game(wad=str(tmp_path / "mine.wad"))


def test_maps_are_read_from_the_directory(tmp_path: Path) -> None:
    """Both formats of maps; other lumps with such names are none."""
    lumps = [b"E1M1", b"THINGS", b"LINEDEFS", b"MAP31", b"TEXTMAP", b"ENDMAP", b"E1M2", b"DEMO1"]
    entries = b"".join(struct.pack("<ii8s", 0, 0, name) for name in lumps)
    (tmp_path / "two.wad").write_bytes(struct.pack("<4sii", b"PWAD", len(lumps), 12) + entries)
    assert wads.maps_in(tmp_path / "two.wad") == ["E1M1", "MAP31"]
    assert wads.maps_in(FREEDOOM)[:2] == ["E1M1", "E1M2"] and len(wads.maps_in(FREEDOOM)) == 36


def test_a_game_of_ones_own_by_path(tmp_path: Path) -> None:
    """As a user's doom.wad would be: the first map is played, and said with every score."""
    shutil.copy(FREEDOOM, tmp_path / "doom.wad")
    section = EnvConfig(id="VizdoomDoom-v1", kwargs={"wad": str(tmp_path / "doom.wad"), "map": "E1M2"})
    rules = rules_of(section)
    assert rules is not None and (rules.protocol()["wad"], rules.protocol()["map"]) == ("doom.wad", "E1M2")
    assert rules.sentence().startswith("doom.cfg, map E1M2 of doom.wad, skill 3, skip 4, cut off after 126,000 tics")
    with closing(make_one(section)) as env:
        obs, info = env.reset(seed=1)
        assert obs["screen"].std() > 5 and info["health"] == 100


def test_a_cfg_and_a_scenario_of_ones_own_by_path(tmp_path: Path) -> None:
    """The WAD lies beside the cfg that names it."""
    shutil.copy(SCENARIOS / "my_way_home.wad", tmp_path / "maze.wad")
    (tmp_path / "maze.cfg").write_text(
        "doom_scenario_path = maze.wad\nliving_reward = -1\nepisode_timeout = 40\n"
        "available_buttons = { TURN_LEFT MOVE_FORWARD }\navailable_game_variables = { ANGLE }\n"
    )
    with closing(game("Basic", config=str(tmp_path / "maze.cfg"))) as env:
        assert env.unwrapped.get_action_meanings() == ["NOOP", "TURN_LEFT", "MOVE_FORWARD", "TURN_LEFT+MOVE_FORWARD"]
        env.reset(seed=1)
        steps = [env.step(1) for _ in range(10)]
        assert [step[1] for step in steps] == [-4.0] * 10 and [step[3] for step in steps] == [False] * 9 + [True]


def test_names_of_the_packages_ids() -> None:
    """A map and a skill in the id, and all buttons at once."""
    with closing(make_one(EnvConfig(id="VizdoomFreedoom1E1M2-S5-v0"))) as env:
        assert (env.unwrapped.scenario.map, env.unwrapped.scenario.skill) == ("E1M2", 5)
        assert "USE" in env.unwrapped.get_action_meanings()
    with closing(make_one(EnvConfig(id="VizdoomDeadlyCorridor-MultiBinary-v1"))) as env:
        assert env.action_space.nvec.tolist() == [3, 2, 3, 3]

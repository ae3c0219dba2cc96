"""A base that says for which envs it is: they have its defaults and variants, with or without a file of their own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gymnast.config import files
from gymnast.config.load import resolve
from gymnast.errors import ConfigError, UsageError

GAME = "Arcade/Maze-v1"


def write(path: str, text: str) -> str:
    """A config file below the working folder."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


BASE = """
    for: ["Arcade/*-v1", Other-v0]
    defaults:
      train: {env_steps: 1000}
      spec: {horizon: 7}
    variants:
      slow_ppo:
        algo: {gamma: 0.5, clip_range: 0.3}
      fast_ppo:
        extends: slow_ppo
        algo: {gamma: 0.6}
    """


@pytest.fixture(autouse=True)
def presets(tmp_path, monkeypatch):
    """A stand-in for the shipped presets, and a folder without ./configs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "SHIPPED", tmp_path / "package" / "presets")
    write("package/presets/bases/arcade.yaml", BASE)
    write(
        "package/presets/bases/plain.yaml", "defaults: {train: {env_steps: 9}}\nvariants: {ppo: {algo: {gamma: 0.1}}}\n"
    )
    write(
        "package/presets/envs/Arcade_Tuned-v1.yaml",
        """
        id: Arcade/Tuned-v1
        extends: arcade
        spec: {solved_at: 3}
        variants:
          slow_ppo: {algo: {gamma: 0.55}}
          extra_ppo: {extends: fast_ppo, algo: {ent_coef: 0.2}}
        """,
    )


def test_an_env_without_a_file_has_them():
    resolved = resolve(f"{GAME}:fast_ppo")
    config = resolved.config
    assert (config.name, config.env.id, config.algo.id) == (f"{GAME}:fast_ppo", GAME, "ppo")
    assert (config.algo.gamma, config.algo.clip_range, config.train.env_steps, config.spec.horizon) == (
        0.6,
        0.3,
        1000,
        7,
    )
    assert resolved.origins["algo.gamma"] == "presets/bases/arcade.yaml:10"
    assert resolved.origins["algo.clip_range"] == "presets/bases/arcade.yaml:7"
    assert resolve("Other-v0").config.env.id == "Other-v0"


def test_the_first_variant_is_the_default_unless_there_is_a_ppo():
    assert resolve(GAME).config.name == f"{GAME}:slow_ppo"
    write("configs/Arcade_Maze-v1.yaml", f"id: {GAME}\nvariants: {{mine_ppo: {{}}, ppo: {{}}}}\n")
    assert resolve(GAME).config.name == f"{GAME}:ppo"


def test_unknown_variants_and_ids_that_do_not_fit():
    with pytest.raises(
        UsageError, match=r"Arcade/Maze-v1 has no variant 'slow_pp'.*'slow_ppo'.*Known: slow_ppo, fast_ppo\."
    ):
        resolve(f"{GAME}:slow_pp")
    for stranger in ("Arcade/Maze-v2", "XArcade/Maze-v1"):
        with pytest.raises(UsageError, match="No config for"):
            resolve(stranger)
        assert resolve(stranger, generic=lambda *_: {"train": {"env_steps": 1}}).config.algo.gamma == 0.99


def test_a_shipped_file_lies_over_its_base():
    config = resolve("Arcade/Tuned-v1").config
    assert config.name == "Arcade/Tuned-v1:slow_ppo"
    assert (config.algo.gamma, config.algo.clip_range, config.spec.horizon, config.spec.solved_at) == (0.55, 0.3, 7, 3)
    extra = resolve("Arcade/Tuned-v1:extra_ppo")
    # base slow → own slow → base fast → own extra
    assert (extra.config.algo.gamma, extra.config.algo.clip_range, extra.config.algo.ent_coef) == (0.6, 0.3, 0.2)
    assert extra.origins["algo.ent_coef"].startswith("presets/envs/Arcade_Tuned-v1.yaml:")


@pytest.mark.parametrize("path", ["configs/Arcade_Maze-v1.yaml", "elsewhere.yaml"])
def test_a_file_of_ones_own_wins(path):
    write(
        path,
        f"""
        id: {GAME}
        defaults: {{train: {{env_steps: 77}}}}
        variants:
          slow_ppo: {{algo: {{gamma: 0.9}}}}
          mine_ppo: {{extends: fast_ppo, env: {{n_envs: 3}}}}
        """,
    )
    where = GAME if path.startswith("configs") else path
    slow, mine = resolve(f"{where}:slow_ppo"), resolve(f"{where}:mine_ppo").config
    assert (slow.config.name, slow.config.env.id) == (f"{GAME}:slow_ppo", GAME)
    assert (slow.config.algo.gamma, slow.config.algo.clip_range, slow.config.train.env_steps) == (0.9, 0.3, 77)
    assert slow.origins["algo.gamma"] == f"{path}:4"
    assert (mine.algo.gamma, mine.env.n_envs) == (0.6, 3)


def test_a_file_may_extend_another_base():
    write("configs/Arcade_Maze-v1.yaml", f"id: {GAME}\nextends: plain\nvariants: {{ppo: {{}}}}\n")
    config = resolve(GAME).config
    assert (config.algo.gamma, config.train.env_steps, config.spec.horizon) == (0.1, 9, None)
    with pytest.raises(UsageError, match="Known: ppo"):
        resolve(f"{GAME}:slow_ppo")


def test_an_own_base_takes_the_place_of_a_shipped_one():
    write("configs/bases/arcade.yaml", "for: [Arcade/Maze-v1]\nvariants: {my_ppo: {train: {env_steps: 5}}}\n")
    assert resolve(GAME).origins["train.env_steps"] == "configs/bases/arcade.yaml:2"
    with pytest.raises(UsageError, match="No config for"):
        resolve("Other-v0")
    assert [base.label for base in files.general_bases()] == ["configs/bases/arcade.yaml"]


def test_listing_knows_the_variants_of_the_base():
    write("configs/Arcade_Maze-v1.yaml", f"id: {GAME}\nvariants: {{mine_ppo: {{}}}}\n")
    known = {env_id: files.variant_names(stack) for env_id, stack in files.known_envs()}
    assert known == {
        GAME: ["slow_ppo", "fast_ppo", "mine_ppo"],
        "Arcade/Tuned-v1": ["slow_ppo", "fast_ppo", "extra_ppo"],
    }
    write("configs/Broken-v0.yaml", "id: Broken-v0\nextends: nonsense\nvariants: {ppo: {}}\n")
    assert "Broken-v0" in dict(files.known_envs())  # said when it is used
    with pytest.raises(ConfigError, match=r"configs/Broken-v0.yaml:2: unknown base 'nonsense'.*Known: arcade, plain"):
        resolve("Broken-v0")


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("configs/bases/b.yaml", "for: Arcade/*\nvariants: {ppo: {}}\n", r"b.yaml:1: 'for' must be a list of env ids"),
        ("configs/bases/b.yaml", "for: [1]\nvariants: {ppo: {}}\n", r"b.yaml:1: 'for' must be a list of env ids"),
        ("configs/bases/b.yaml", "for: [Arcade/*]\n", r"b.yaml:1: 'for' needs variants"),
        (
            "configs/Arcade_Maze-v1.yaml",
            "id: Arcade/Maze-v1\nfor: [Arcade/*]\nvariants: {ppo: {}}\n",
            "belongs in a shared base",
        ),
    ],
)
def test_a_wrong_for_is_refused_with_its_line(path, text, words):
    write(path, text)
    with pytest.raises(ConfigError, match=words):
        resolve(GAME)

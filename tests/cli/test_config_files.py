"""`gymnast config fmt | diff | schema | save` in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from launch import gymnast

import gymnast as library
from gymnast.config.files import SHIPPED

TINY = ("env.n_envs=2", "algo.n_steps=32", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=4", "eval.every=64")
UNTIDY = "variants:\n  # about mine\n  mine_ppo: {algo: {gamma: 0.9}, extends: ppo}\nid: CartPole-v1\n"
TIDY = "id: CartPole-v1\nvariants:\n  # about mine\n  mine_ppo: {extends: ppo, algo: {gamma: 0.9}}\n"


def said(result: CompletedProcess[str], code: int = 0) -> str:
    """Output without a traceback."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


@pytest.fixture
def own(folder: Path) -> Path:
    """An untidy file in ./configs."""
    path = folder / "configs" / "CartPole-v1.yaml"
    path.parent.mkdir()
    path.write_text(UNTIDY)
    return path


def test_fmt(own: Path, folder: Path) -> None:
    """--check and --diff only look; rights and links stay; a second time there is nothing to do."""
    checked = gymnast("config", "fmt", "--check", cwd=folder)
    assert "0 of 1" in said(checked, 1)
    assert "would change configs/CartPole-v1.yaml" in checked.stderr
    shown = said(gymnast("config", "fmt", "CartPole-v1", "--diff", cwd=folder))
    assert "+id: CartPole-v1" in shown and "-id: CartPole-v1" in shown
    assert own.read_text() == UNTIDY
    own.chmod(0o640)
    (folder / "link.yaml").symlink_to(own)
    assert "formatted link.yaml" in said(gymnast("config", "fmt", "link.yaml", cwd=folder))
    assert own.read_text() == TIDY
    assert own.stat().st_mode & 0o777 == 0o640
    assert (folder / "link.yaml").is_symlink()
    assert "1 of 1 files are in order" in said(gymnast("config", "fmt", "--check", cwd=folder))
    assert sorted(path.name for path in own.parent.iterdir()) == [own.name]


def test_fmt_of_what_is_not_there_or_broken(own: Path, folder: Path) -> None:
    """One sentence each; a broken file keeps the others from being written."""
    broken = folder / "configs" / "Broken-v0.yaml"
    broken.write_text("id: Broken-v0\nvariants: {\n")
    result = gymnast("config", "fmt", cwd=folder)
    said(result, 2)
    assert result.stderr.startswith("error: configs/Broken-v0.yaml:3 is not valid YAML")
    assert own.read_text() == UNTIDY
    for target, words in (("nowhere.yaml", "Cannot read"), ("CartPole-v2", "CartPole-v1"), ("Taxi-v4", "no file in")):
        result = gymnast("config", "fmt", target, cwd=folder)
        said(result, 2)
        assert words in result.stderr
    own.unlink()
    broken.unlink()
    assert "no config files in ./configs" in said(gymnast("config", "fmt", cwd=folder))


def test_schema(folder: Path) -> None:
    """Printed or written; the same as the shipped one."""
    assert said(gymnast("config", "schema", cwd=folder)) == (SHIPPED / "config.schema.json").read_text(encoding="utf-8")
    said(gymnast("config", "schema", "--output", "new/s.json", cwd=folder))
    assert json.loads((folder / "new" / "s.json").read_text())["type"] == "object"


def test_check_of_an_env_is_of_all_its_variants(own: Path, folder: Path) -> None:
    """Shipped ones and the user's."""
    known = said(gymnast("config", "list", cwd=folder)).count("CartPole-v1:")
    assert known > 4
    assert f"{known} of {known} configs are valid" in said(gymnast("config", "check", "CartPole-v1", cwd=folder))


def test_diff_and_save_of_a_run(own: Path, folder: Path) -> None:
    """From a run to a preset that trains, with the differences to what it came from."""
    run = library.train("CartPole-v1:mine_ppo", *TINY, env_steps=128, seed=4, runs_dir=folder / "runs").run
    changes = json.loads(said(gymnast("config", "diff", "CartPole-v1:mine_ppo", "@last", "--json", cwd=folder)))
    assert (changes["a"], changes["b"]) == ("CartPole-v1:mine_ppo", f"run {run.id}")
    steps = next(change for change in changes["differences"] if change["key"] == "train.env_steps")
    assert (steps["old"], steps["new"], steps["new_from"]) == (50000, 128, f"run {run.id}")
    text = said(gymnast("config", "diff", "CartPole-v1:ppo", run.id, cwd=folder, COLUMNS="160"))
    (line,) = (line for line in text.splitlines() if line.startswith("algo.gamma "))
    assert line.split()[1:3] == ["0.985", "0.9"]

    text = said(gymnast("config", "save", run.id, "CartPole-v1:tiny_ppo", cwd=folder))
    assert "Train it: gymnast train CartPole-v1:tiny_ppo" in text
    assert "# about mine" in own.read_text()
    assert f"# Saved from run {run.id} (CartPole-v1:mine_ppo, seed 4, " in own.read_text()
    assert f"best evaluation {run.status().best_return:.5g}" in own.read_text()
    left = json.loads(said(gymnast("config", "diff", "@last", "CartPole-v1:tiny_ppo", "--spec", "--json", cwd=folder)))
    assert [change["key"] for change in left["differences"]] == ["train.seed"]
    said(gymnast("train", "CartPole-v1:tiny_ppo", "--seed", 4, "-q", cwd=folder))
    assert "are equal" in said(gymnast("config", "diff", run.id, "@last", "--spec", cwd=folder))
    again = gymnast("config", "save", run.id, "CartPole-v1:tiny_ppo", cwd=folder)
    said(again, 2)
    assert "--force" in again.stderr


def test_diff_of_what_is_not_there(folder: Path) -> None:
    """Runs, envs and variants that do not exist."""
    for sides, words in (
        (("@last", "CartPole-v1:ppo"), "There are no runs"),
        (("CartPole-v1:ppo", "zzzzz"), "There are no runs"),
        (("CartPole-v1:ppo", "CartPole-v1:pqo"), "Did you mean 'ppo'"),
        (("CartPole-v1:ppo", "nowhere.yaml:ppo"), "Cannot read"),
        (("CartPole-v1", "CartPoll-v1"), "CartPole-v1"),
    ):
        result = gymnast("config", "diff", *sides, cwd=folder)
        said(result, 2)
        assert words in result.stderr, sides

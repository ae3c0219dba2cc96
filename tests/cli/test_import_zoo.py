"""`gymnast config import-zoo`: presets from zoo files, typed as a user does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from launch import gymnast

from gymnast.cli.import_zoo import import_zoo
from gymnast.config.load import resolve
from gymnast.errors import UsageError

ZOO = Path(__file__).parents[1] / "config" / "zoo"
PPO = ZOO / "ppo.yml"


def written(text: str, name: str = "ppo.yml") -> Path:
    """A zoo file in the working folder."""
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(*arguments: Any, **options: Any) -> str:
    """The sentence, and nothing written."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(UsageError) as raised:
        import_zoo(*arguments, **options)
    assert sorted(Path().rglob("*")) == before
    return str(raised.value)


def test_import_and_train(folder: Path) -> None:
    done = gymnast("config", "import-zoo", PPO, "CartPole-v1", "--output", "new/CartPole-v1.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Train it: gymnast train new/CartPole-v1.yaml:zoo_ppo"
    run = ("-n", 512, "eval.episodes=2", "--quiet", "--runs-dir", "runs")
    trained = gymnast("train", "new/CartPole-v1.yaml:zoo_ppo", *run, cwd=folder)
    assert trained.returncode == 0, trained.stderr
    assert "512 env steps" in trained.stdout


def test_the_default_place_is_read_by_the_other_commands(folder: Path) -> None:
    import_zoo(PPO, "Acrobot-v1")
    import_zoo(ZOO / "a2c.yml", "Acrobot-v1")
    listed = gymnast("config", "list", "zoo", cwd=folder).stdout.split()
    assert listed == ["Acrobot-v1:zoo_ppo", "Acrobot-v1:zoo_a2c"]
    assert resolve("Acrobot-v1:zoo_ppo").config.algo.id == "ppo"
    assert resolve("Acrobot-v1:zoo_a2c").config.algo.id == "a2c"
    assert resolve("Acrobot-v1:ppo").config.env.n_envs == 16, "the shipped variants are still there"


def test_a_variant_is_replaced_only_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_zoo(PPO, "Acrobot-v1")
    target = Path("configs/Acrobot-v1.yaml")
    target.write_text(target.read_text().replace("n_envs: 16", "n_envs: 3") + "# mine\n", encoding="utf-8")
    sentence = refusal(PPO, "Acrobot-v1")
    assert sentence.startswith("configs/Acrobot-v1.yaml has a variant 'zoo_ppo' already")
    import_zoo(PPO, "Acrobot-v1", force=True)
    assert "n_envs: 16" in target.read_text()
    assert target.read_text().endswith("# mine\n")
    assert "Train it: gymnast train Acrobot-v1:zoo_ppo" in capsys.readouterr().out


def test_names_of_variants(folder: Path) -> None:
    import_zoo(PPO, "Acrobot-v1", variant="theirs")
    assert resolve("Acrobot-v1:theirs").config.algo.id == "ppo"
    assert "presets/envs/Acrobot-v1.yaml has a variant 'ppo' already" in refusal(PPO, "Acrobot-v1", variant="ppo")
    assert "cannot name a variant" in refusal(PPO, "Acrobot-v1", variant="a:b")


def test_listing(folder: Path) -> None:
    done = gymnast("config", "import-zoo", PPO, cwd=folder)
    lines = done.stdout.splitlines()
    assert lines[-1] == "22 of 44 entries can be imported"
    assert len(lines) == 45
    assert "✓ CartPole-v1" in lines
    assert "✓ HumanoidBulletEnv-v0 (env not installed here)" in lines
    assert "✗ Pendulum-v1: line 33: 'use_sde': gSDE (state-dependent exploration) is not supported." in lines
    assert not list(folder.iterdir())


def test_everything_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_zoo(PPO, everything=True, output=Path("all"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["22 of 44 entries written to all", "Train one: gymnast train all/ENV.yaml:zoo_ppo"]
    paths = sorted(Path("all").iterdir())
    assert len(paths) == 22
    for path in paths:
        assert resolve(f"{path}:zoo_ppo").config.env.id == path.stem
    import_zoo(PPO, everything=True, output=Path("all"))
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 44 entries written to all"


def test_ids_with_a_slash_and_ids_of_old(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = "{n_timesteps: 10, policy: MlpPolicy}"
    path = written("\n".join(f"{name}: {entry}" for name in ("Mine/Walk-v0", "LunarLander-v2", "LunarLander-v3")))
    import_zoo(path, everything=True)
    assert "✗ LunarLander-v3: LunarLander-v3 was imported from entry LunarLander-v2." in capsys.readouterr().out
    assert resolve("Mine/Walk-v0:zoo_ppo").config.train.env_steps == 10
    assert sorted(file.name for file in Path("configs").iterdir()) == ["LunarLander-v3.yaml", "Mine_Walk-v0.yaml"]


def test_dropped_keys_and_missing_envs_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(PPO, "HopperBulletEnv-v0").endswith("To import it without them: --ignore use_sde")
    import_zoo(PPO, "HopperBulletEnv-v0", ignore=["use_sde", "sde_sample_freq"])
    out = capsys.readouterr().out
    assert "use_sde: True" in out
    assert "sde_sample_freq: 4" in out
    assert "HopperBulletEnv-v0 is not registered here" in out
    assert "# Dropped as asked" in Path("configs/HopperBulletEnv-v0.yaml").read_text()


def test_entries_that_are_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = refusal(PPO, "Acrobat-v1")
    assert "has no entry 'Acrobat-v1'. Did you mean 'Acrobot-v1'" in sentence
    assert sentence.endswith("Its default entry is used with --from default.")
    assert "--from default" in refusal(PPO, "default")
    assert "has no entry 'defaul'" in refusal(PPO, "Walk-v0", template="defaul")
    import_zoo(PPO, "Walk-v0", template="default")
    assert resolve("Walk-v0:zoo_ppo").config.train.env_steps == 1_000_000


def test_the_algorithm(folder: Path) -> None:
    text = "CartPole-v1: {n_timesteps: 10}\n"
    assert "add --algo ppo or --algo a2c" in refusal(written(text, "mine.yml"))
    assert "holds settings of sac, which gymnast does not have: import-zoo reads settings of ppo and a2c." in refusal(
        written(text, "sac.yml")
    )
    assert refusal(PPO, algo="pop") == (
        "Unknown algorithm 'pop'. Did you mean 'ppo'? Import-zoo reads settings of ppo and a2c."
    )
    import_zoo(Path("mine.yml"), "CartPole-v1", algo="a2c")
    assert resolve("CartPole-v1:zoo_a2c").config.algo.id == "a2c"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "ppo.yml is empty: expected entries such as `CartPole-v1:` with their hyperparameters."),
        ("- 1\n", "ppo.yml holds no mapping: expected entries such as `CartPole-v1:` with their hyperparameters."),
        ("a: [1\n", "ppo.yml:2 is not valid YAML: expected ',' or ']', but got '<stream end>'."),
        ("E-v0: 3\n", "ppo.yml:1: entry 'E-v0' must be a mapping (got 3)."),
        ("E-v0:\n  n_timesteps: 10\n  n_stepz: 4\n", "ppo.yml:3: unknown key 'n_stepz' for ppo. Did you mean"),
    ],
)
def test_broken_files(folder: Path, text: str, sentence: str) -> None:
    assert refusal(written(text), "E-v0").startswith(sentence)


def test_files_that_cannot_be_read(folder: Path) -> None:
    assert refusal(Path("ppo.yml"), "E-v0") == "Cannot read ppo.yml: No such file or directory."
    Path("ppo.yml").write_bytes(b"\xff\xfe\x00")
    assert refusal(Path("ppo.yml"), "E-v0") == "Cannot read ppo.yml: it is not UTF-8 text."
    assert refusal(folder, "E-v0") == f"Cannot read {folder}: Is a directory."


def test_places_that_cannot_be_written(folder: Path) -> None:
    assert "must end in .yaml" in refusal(PPO, "CartPole-v1", output=Path("x.txt"))
    written("id: Other-v0\n", "other.yaml")
    assert "other.yaml is for Other-v0, not CartPole-v1" in refusal(PPO, "CartPole-v1", output=Path("other.yaml"))
    assert "is a file: with --all" in refusal(PPO, everything=True, output=Path("other.yaml"))
    below = Path("other.yaml/CartPole-v1.yaml")
    assert refusal(PPO, "CartPole-v1", output=below) == f"Cannot write {below}: other.yaml is not a folder."


def test_options_that_do_not_go_together(folder: Path) -> None:
    assert "not both" in refusal(PPO, "CartPole-v1", everything=True)
    assert "Name the entry" in refusal(PPO, output=Path("x.yaml"))
    assert "--ignore use_sd: no entry has such a key. Did you mean 'use_sde'" in refusal(PPO, ignore=["use_sd"])

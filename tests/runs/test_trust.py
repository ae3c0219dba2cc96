"""A run from elsewhere is data: nothing that it names is imported until its user says so. Runs begun here are free."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_runs import finished_run
from typer.testing import CliRunner

import gymnast
from gymnast.cli.app import app
from gymnast.errors import UsageError
from gymnast.runs import trust
from gymnast.runs.archive import export_runs
from gymnast.runs.store import Run
from gymnast.runs.trust import ForeignCodeError, code_in, key_path, usable
from gymnast.runs.unpack import import_runs

EVIL = """\
from pathlib import Path
import gymnasium as gym
Path("HIT").touch()
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
gym.register("Evil-v0", CartPoleEnv, max_episode_steps=20)
"""
SMALL: dict[str, Any] = {"n_envs": 2, "algo__n_steps": 16, "algo__batch_size": 32, "eval__episodes": 2, "seed": 3}
Forgery = Callable[[dict[str, Any]], Any]
FORGERIES: dict[str, Forgery] = {
    "env.module": lambda config: config["env"].update(module="evilmod"),
    "env.id": lambda config: config["env"].update(id="evilmod:Evil-v0"),
    "env.id of a family": lambda config: config["env"].update(id="ALE/evilmod:Evil-v0"),
    "unknown env.id": lambda config: config["env"].update(id="Evil-v0"),
    "eval.env.module": lambda config: config["eval"].update(env={"module": "evilmod"}),
    "eval.env.id": lambda config: config["eval"].update(env={"id": "evilmod:Evil-v0"}),
    "env.wrappers": lambda config: config["env"].update(wrappers=[{"id": "evilwrapper", "args": {}}]),
    "eval.env.wrappers": lambda config: config["eval"].update(env={"wrappers": ["evilwrapper"]}),
    "algo.id": lambda config: config["algo"].update(id="evilalgo"),
    "env.kwargs, a file": lambda config: config["env"].update(kwargs={"level": "/tmp/evil.cfg"}),
    "env.kwargs, a variable": lambda config: config["env"].update(kwargs={"deep": [{"down": "$HOME"}]}),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of CartPole."""
    return gymnast.train("CartPole-v1:ppo", env_steps=64, runs_dir=tmp_path_factory.mktemp("runs"), **SMALL).run


@pytest.fixture
def evil(folder: Path) -> Iterator[Path]:
    """The current folder holds a module that leaves a mark when it is imported."""
    (folder / "evilmod.py").write_text(EVIL)
    yield folder
    import gymnasium as gym

    sys.modules.pop("evilmod", None)
    gym.registry.pop("Evil-v0", None)


def forged(run: Run, forge: Forgery, root: Path = Path("runs")) -> Run:
    """A copy of the run's folder in another store, with another config."""
    root.mkdir(exist_ok=True)
    copy = Run(Path(shutil.copytree(run.folder, root / run.id)))
    config = copy.config()
    forge(config)
    copy.config_path.write_text(json.dumps(config))
    return copy


@pytest.mark.parametrize("name", FORGERIES)
def test_what_a_config_names_is_found(trained: Run, evil: Path, name: str) -> None:
    """Each alone, and none in the config of a run of a known env."""
    assert code_in(trained.config()) == []
    copy = forged(trained, FORGERIES[name])
    assert len(code_in(copy.config())) == 1
    with pytest.raises(ForeignCodeError, match="add --trust"):
        usable(copy)
    with pytest.raises(ForeignCodeError):
        gymnast.load(copy.id)
    assert not Path("HIT").exists()


COMMANDS = (
    ("eval", "-e", "2"),
    ("eval", "-e", "2", "--json"),
    ("video",),
    ("resume", "-n", "128"),
    ("export",),
    ("eject",),
    ("rewind", "--to", "64"),
    ("model",),
    ("config", "save", "CartPole-v1:my_ppo"),
    ("env", "audit", "CartPole-v1", "-p"),
)


@pytest.mark.parametrize("name", ["env.module", "env.id", "eval.env.module", "eval.env.id"])
def test_no_command_imports_it(trained: Run, evil: Path, name: str) -> None:
    """Every command that plays or builds the env of a run is refused with a sentence; those that read it go on."""
    copy = forged(trained, FORGERIES[name])
    for command in COMMANDS:
        at = 2 if command[0] == "config" else len(command)
        done = CliRunner().invoke(app, [*command[:at], copy.id, *command[at:]])
        assert isinstance(done.exception, ForeignCodeError), (command, done.output, done.exception)
        assert "evilmod" in str(done.exception)
        assert done.stdout == ""
    for reading in (["runs", "show", copy.id], ["runs", "list"], ["runs", "compare", copy.id, str(trained.folder)]):
        assert CliRunner().invoke(app, reading).exit_code == 0
    differs = CliRunner().invoke(app, ["diff", copy.id, str(trained.folder)])
    assert differs.exit_code in (0, 1) and "evilmod" in differs.stdout
    if name == "env.module":
        gymnast.train("CartPole-v1:ppo", env_steps=32, init_from=str(copy.folder), **SMALL)  # its weights are data
    assert not Path("HIT").exists() and "evilmod" not in sys.modules


def test_the_algorithm_of_a_plugin(trained: Run, evil: Path) -> None:
    """Even reading such a config would import the plug-in, so the weights are not taken either; a comparison does without."""
    copy = forged(trained, FORGERIES["algo.id"])
    with pytest.raises(ForeignCodeError, match="'evilalgo'"):
        gymnast.train("CartPole-v1:ppo", env_steps=32, init_from=str(copy.folder), **SMALL)
    assert CliRunner().invoke(app, ["diff", copy.id, str(trained.folder)]).exit_code in (0, 1)
    assert CliRunner().invoke(app, ["runs", "compare", copy.id, str(trained.folder)]).exit_code == 0


@pytest.fixture
def own(evil: Path) -> Run:
    """A run that was trained here, with a module of the user's own."""
    return gymnast.train("Evil-v0:ppo", "env.module=evilmod", env_steps=64, **SMALL).run


def test_a_run_begun_here_is_never_asked_about(own: Run, evil: Path) -> None:
    """Not after a resume under other settings, nor when its store was moved; nor is there a word in the archive."""
    assert CliRunner().invoke(app, ["eval", own.id, "-e", "2"]).exit_code == 0
    from gymnast.training.train import Resume, resume_point, train

    train(usable(own, ["algo.gamma=0.9", "env_steps=256"]), own.root, resume=Resume(own, resume_point(own)[0]))
    assert own.config()["algo"]["gamma"] == 0.9
    gymnast.load(own.id)
    usable(own, attempt=1)
    Path("runs").rename("elsewhere")
    agent = gymnast.load(own.id, runs_dir="elsewhere")
    assert agent.run is not None
    export_runs([agent.run], Path("run.zip"))
    assert not any(trust.FILE in name for name in zipfile.ZipFile("run.zip").namelist())


def test_a_copy_for_somebody_else(own: Run, evil: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Folder, index and seals are copied as they are: for another user it is a run from elsewhere, until they trust it."""
    copied = Path(shutil.copytree("runs", "theirs"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "their home"))
    Path("HIT").unlink()
    sys.modules.pop("evilmod")
    for attempt in ("as it was copied", "with an index made anew", "by its path"):
        if attempt == "with an index made anew":
            assert CliRunner().invoke(app, ["runs", "rebuild", "-f", "theirs"]).exit_code == 0
        reference = str(copied / own.id) if attempt == "by its path" else own.id
        with pytest.raises(ForeignCodeError):
            gymnast.load(reference, runs_dir="theirs")
    assert not Path("HIT").exists() and not key_path().exists()
    assert CliRunner().invoke(app, ["eval", own.id, "-f", "theirs", "-e", "2", "--trust"]).exit_code == 0
    assert Path("HIT").exists()
    assert key_path().stat().st_mode & 0o777 == 0o600
    gymnast.load(own.id, runs_dir="theirs")  # it was said once
    config = json.loads((copied / own.id / "config.json").read_text())
    config["env"]["module"] = "evilmod2"
    (copied / own.id / "config.json").write_text(json.dumps(config))
    with pytest.raises(ForeignCodeError, match="evilmod2"):  # and meant what was there
        gymnast.load(own.id, runs_dir="theirs")


def test_a_seal_is_for_one_run(own: Run, evil: Path) -> None:
    """It does not make another run trusted."""
    other = forged(own, lambda config: None, Path("other"))
    assert usable(other)
    renamed = Run(other.folder.rename(other.root / "abcde"))
    with pytest.raises(ForeignCodeError):
        usable(renamed)
    for junk in ("", "[]", '{"seals": 3}', '{"seals": ["", null, "é"]}', "{" * 9999):
        (renamed.folder / trust.FILE).write_text(junk)
        with pytest.raises(ForeignCodeError):
            usable(renamed)


def test_where_no_key_can_be_kept(
    evil: Path, own: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`trust=True` still holds for this process, and it is said that it could not be recorded."""
    Path("file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", "file")
    with pytest.raises(ForeignCodeError):
        gymnast.load(own.id)
    gymnast.load(own.id, trust=True)
    assert "could not be recorded" in caplog.text
    gymnast.load(own.id)


def test_an_import_says_so(folder: Path) -> None:
    """In words and as JSON, with everything that would be imported; `--trust` is recorded there and then."""
    run = finished_run(folder / "made", 9.5, env="evilmod:Evil-v0")
    config = run.config() | {"eval": {"env": {"module": "evilmod"}}}
    run.config_path.write_text(json.dumps(config))
    export_runs([run], Path("run.zip"))
    text = CliRunner().invoke(app, ["runs", "import", "run.zip", "-f", "a"]).stdout
    assert "would import or read whatever brings the env 'evilmod:Evil-v0' (env.id)" in text
    assert "'evilmod' (eval.env.module)" in text and "--trust" in text
    as_json = ["runs", "import", "run.zip", "--json", "-f"]
    (told,) = json.loads(CliRunner().invoke(app, [*as_json, "b"]).stdout)["runs"]
    assert told["needs_trust"] == [
        {"key": "env.id", "value": "evilmod:Evil-v0"},
        {"key": "eval.env.module", "value": "evilmod"},
    ]
    (told,) = json.loads(CliRunner().invoke(app, [*as_json, "b"]).stdout)["runs"]
    assert told["already_here"] and told["needs_trust"]
    (told,) = json.loads(CliRunner().invoke(app, [*as_json, "c", "--trust"]).stdout)["runs"]
    assert told["needs_trust"] == []


def test_an_archive_cannot_bring_a_seal(folder: Path) -> None:
    """Whoever packs one by hand is refused."""
    run = finished_run(folder / "made", 9.5)
    export_runs([run], Path("run.zip"))
    with zipfile.ZipFile("run.zip", "a") as archive:
        archive.writestr(f"{run.id}/{trust.FILE}", "{}")
    with pytest.raises(UsageError, match="not the name of a file of a run"):
        import_runs(Path("run.zip"), folder / "other")


@pytest.mark.parametrize(
    "config",
    [
        {"env": []},
        {"env": {"id": ["x"], "module": 3, "wrappers": [["a"], None, {"id": {}}], "kwargs": "x"}},
        {"algo": {"id": [1]}, "eval": {"env": 3}},
        [],
    ],
)
def test_odd_configs(config: Any) -> None:
    """Whatever the file holds, looking for code in it does not fail; what has a wrong type counts as code."""
    assert isinstance(code_in(config), list)


def test_there_is_one_gate() -> None:
    """From a saved config to one that can be used there is no other way."""
    source = Path(gymnast.__file__).parent
    users = {str(path.relative_to(source)) for path in source.rglob("*.py") if "from_saved(" in path.read_text()}
    assert users == {"config/load.py", "runs/trust.py"}


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_the_current_folder_is_not_imported_by_accident(folder: Path, start_method: str) -> None:
    """Files that are called like modules of Python's or like packages of envs lie where a user works; nobody imports them."""
    for name in ("struct", "selectors", "socket", "random", "ale_py", "minigrid"):
        Path(f"{name}.py").write_text(f"open('HIT', 'a').write('{name}')\nraise RuntimeError('by accident')\n")
    script = (
        "from functools import partial\n"
        "from gymnast.config.schema import EnvConfig\n"
        "from gymnast.envs.make import make_envs\n"
        f"config = EnvConfig(id='CartPole-v1', vectorization='workers', n_workers=1, start_method='{start_method}')\n"
        "if __name__ == '__main__':\n    make_envs(config, 2).close()\n"
    )
    (folder / "work").mkdir()
    (folder / "work" / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "work/script.py"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    if start_method == "spawn":
        command = [sys.executable, "-m", "gymnast", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert not Path("HIT").exists()

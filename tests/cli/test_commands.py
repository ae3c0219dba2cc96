"""All commands but `train`, in processes of their own: text for people, JSON for programs, nothing written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import av
import pytest
import small_envs  # noqa: F401 - registers the envs
from launch import gymnast

import gymnast as library
from gymnast.runs import checkpoint
from gymnast.runs.store import Run

ESCAPE = "\x1b"
TINY = (
    "env.n_envs=2",
    "algo.n_steps=32",
    "algo.batch_size=32",
    "algo.n_epochs=1",
    "eval.episodes=4",
    "eval.every=64",
    "log.video=false",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two short runs: an older one of CartPole, and a newer one of an env that cannot render."""
    folder = tmp_path_factory.mktemp("trained")
    changes: dict[str, Any] = {"eval.env": {"time_limit": 9}, "train.stop_when_solved": False}
    library.train("CartPole-v1:ppo", *TINY, env_steps=192, runs_dir=folder / "runs", **_keywords(changes))
    library.train("Walk-v0:ppo", *TINY, env_steps=128, seed=3, runs_dir=folder / "runs", env__module="small_envs")
    return folder


def _keywords(settings: dict[str, Any]) -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in settings.items()}


@pytest.fixture(scope="module")
def cartpole(trained: Path) -> Run:
    """The CartPole run."""
    runs = [Run(path) for path in (trained / "runs").glob("[a-z]????")]
    return next(run for run in runs if run.config()["env"]["id"] == "CartPole-v1")


def parsed(result: CompletedProcess[str]) -> Any:
    """The JSON on stdout, and nothing else anywhere."""
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""

    def refuse(text: str) -> Any:
        raise AssertionError(f"{text} is not strict JSON")

    return json.loads(result.stdout, parse_constant=refuse)


def plain(result: CompletedProcess[str], code: int = 0) -> str:
    """Text without escape codes and without complaints."""
    assert result.returncode == code, result.stderr
    assert ESCAPE not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything but the index, which a listing may refresh."""
    files = [path for path in folder.rglob("*") if path.is_file() and "index" not in path.name]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


# ---- eval ----------------------------------------------------------------------------------------------------------


def test_eval_sentence_and_differences(trained: Path, cartpole: Run) -> None:
    """The checkpoint, the sentence, and what differs from training."""
    before = tree(trained)
    text = plain(gymnast("eval", cartpole.id, "--episodes", 7, cwd=trained))
    best = checkpoint.read_pointer(cartpole.folder, "best")
    assert f"run {cartpole.id}, {best}" in text
    assert re.search(r"[\d.]+ ± [\d.]+ over 7 episodes, deterministic", text)
    assert "differs from training: time_limit = 9" in text
    assert tree(trained) == before


def test_eval_json(trained: Path, cartpole: Run) -> None:
    """The protocol is in it: sampling is recorded, a checkpoint can be named, the seed is given."""
    step = checkpoint.steps(cartpole.folder)[0]
    named = parsed(gymnast("eval", f"{cartpole.id}/step={step}", "-e", 5, "--seed", 1, "--json", cwd=trained))
    sampled = parsed(gymnast("eval", cartpole.id, "-e", 6, "--stochastic", "--json", cwd=trained))
    assert named["checkpoint"] == f"step={step}"
    assert (named["run"], named["env"], named["episodes"]) == (cartpole.id, "CartPole-v1", 5)
    assert named["deterministic"] is True
    assert named["differences"] == {"time_limit": 9}
    assert named["max"] <= 9
    assert sampled["deterministic"] is False
    assert sampled["episodes"] == 6


def test_eval_of_a_damaged_checkpoint(folder: Path) -> None:
    """Named, exit code 1, and the way out; the whole one beside it still works."""
    run = library.train("CartPole-v1:ppo", *TINY, env_steps=192, runs_dir="runs", train__checkpoint_every=64).run
    assert len(checkpoint.steps(run.folder)) >= 2
    best = checkpoint.read_pointer(run.folder, "best")
    path = run.checkpoints / str(best) / checkpoint.POLICY
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)
    result = gymnast("eval", cwd=folder)
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert str(Path("runs", run.id, "checkpoints", str(best), checkpoint.POLICY)) in result.stderr
    assert "checksum" in result.stderr
    assert "Use another checkpoint" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    whole = next(step for step in checkpoint.steps(run.folder) if f"step={step}" != best)
    assert gymnast("eval", f"@last/step={whole}", "-e", 2, cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("zzzzz", ("zzzzz", "Newest runs")),
        ("@best:Pong-v5", ("Pong-v5", "CartPole-v1")),
        ("@last/step=7", ("step=7", "step=")),
        ("../..", ("../..",)),
    ],
)
def test_references_that_name_nothing(reference: str, words: tuple[str, ...], trained: Path) -> None:
    """What is there instead is told."""
    result = gymnast("eval", reference, cwd=trained)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert all(word in result.stderr for word in words), result.stderr


# ---- video ---------------------------------------------------------------------------------------------------------


def test_video(trained: Path, cartpole: Run) -> None:
    """Two episodes into the run's folder, played as in its evaluations; their steps and returns are printed and in a file."""
    result = gymnast("video", cartpole.id, "--episodes", 2, "--seed", 5, "--stochastic", cwd=trained)
    text = plain(result)
    (path,) = cartpole.videos.glob("*.mp4")
    assert str(path.relative_to(trained)) in text
    about = json.loads(path.with_suffix(".json").read_text())
    assert [episode["seed"] for episode in about["episodes"]] == [5, 6]
    assert [episode["length"] for episode in about["episodes"]] == [9, 9]
    assert (about["differences"], about["deterministic"]) == ({"time_limit": 9}, False)
    assert "(20 frames of 18 steps, return 9, 9)\ndiffers from training: time_limit = 9" in text
    with av.open(str(path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 20
        assert (container.streams.video[0].pix_fmt, container.streams.video[0].average_rate) == ("yuv420p", 50)


def test_video_elsewhere_and_nowhere(trained: Path, cartpole: Run) -> None:
    """`--output` into a new folder, as what its suffix says; a path that cannot be written is one sentence."""
    plain(gymnast("video", cartpole.id, "-o", "new/clip.gif", cwd=trained))
    assert (trained / "new" / "clip.gif").read_bytes().startswith(b"GIF89a")
    (trained / "file").write_text("")
    result = gymnast("video", cartpole.id, "-o", "file/clip.mp4", cwd=trained)
    assert result.returncode == 1
    assert result.stderr.startswith("error: Cannot write the video file/clip.mp4")
    assert len(result.stderr.strip().splitlines()) == 1


def test_video_of_an_env_that_draws_nothing_here(tmp_path: Path) -> None:
    """Black frames are told, with the reason where there is one."""
    library.train("Screen-v0:ppo", *TINY, env_steps=64, runs_dir=tmp_path / "runs", env__module="small_envs")
    result = gymnast("video", "@last", "-o", "black.webm", cwd=tmp_path)
    plain(result)
    assert result.stderr.startswith("warning: all 10 frames are black. SDL_VIDEODRIVER=dummy is set")


def test_video_of_an_env_that_cannot_render(trained: Path) -> None:
    """One clear sentence."""
    result = gymnast("video", "@last", cwd=trained)
    assert result.returncode == 1
    assert result.stderr.startswith("error: Walk-v0 cannot render")
    assert len(result.stderr.strip().splitlines()) == 1
    (run,) = (path for path in (trained / "runs").glob("[a-z]????") if "Walk" in (path / "config.json").read_text())
    assert not list((run / "videos").iterdir())


def test_video_says_nothing_about_displays(trained: Path, cartpole: Run) -> None:
    """Without a display and without SDL's dummy driver (any server) no foreign error is printed."""
    result = gymnast("video", cartpole.id, "-o", "quiet.mp4", cwd=trained, SDL_VIDEODRIVER=None, XDG_RUNTIME_DIR=None)
    plain(result)
    assert result.stderr == ""


# ---- runs ----------------------------------------------------------------------------------------------------------


def test_runs_list(trained: Path, cartpole: Run) -> None:
    """Newest first, as text and as JSON; ids are readable whatever the width."""
    rows = parsed(gymnast("runs", "list", "--json", cwd=trained))
    assert [row["config"] for row in rows] == ["Walk-v0:ppo", "CartPole-v1:ppo"]
    assert [row["seed"] for row in rows] == [3, 0]
    assert rows[1]["id"] == cartpole.id
    assert {row["status"] for row in rows} == {"finished"}
    assert [row["id"] for row in parsed(gymnast("runs", "list", "--last", 1, "--json", cwd=trained))] == [rows[0]["id"]]
    text = plain(gymnast("runs", "list", cwd=trained))
    for row in rows:
        assert row["id"] in text
        assert row["config"] in text
    assert "finished" in text


def test_runs_show(trained: Path, cartpole: Run) -> None:
    """Status, checkpoints and the last value of each metric."""
    shown = parsed(gymnast("runs", "show", cartpole.id, "--json", cwd=trained))
    assert shown["id"] == cartpole.id
    assert shown["status"]["state"] == "finished"
    assert shown["status"]["env_steps"] == shown["metrics"]["env_steps"] == 192
    assert shown["last"] == "step=192"
    assert shown["last"] in shown["checkpoints"]
    text = plain(gymnast("runs", "show", cartpole.id, cwd=trained))
    assert f"{cartpole.id}  CartPole-v1:ppo  finished: budget spent" in text
    assert "step=192" in text
    assert "eval/return_mean" in text


def test_no_runs_yet(folder: Path) -> None:
    """Listing an empty place is no error and writes nothing."""
    assert "gymnast train CartPole-v1:ppo" in plain(gymnast("runs", "list", cwd=folder))
    assert parsed(gymnast("runs", "list", "--json", cwd=folder)) == []
    assert not list(folder.iterdir())


# ---- config --------------------------------------------------------------------------------------------------------

OWN = """\
id: CartPole-v1
variants:
  mine_ppo:
    extends: ppo
    algo:
      gamma: 0.9
"""


def test_config_list(folder: Path) -> None:
    """All presets, filtered by words, with the user's own among them."""
    everything = plain(gymnast("config", "list", cwd=folder)).split()
    assert {"CartPole-v1:ppo", "CartPole-v1:a2c", "CartPole-v1:reinforce"} <= set(everything)
    (folder / "configs").mkdir()
    (folder / "configs" / "CartPole-v1.yaml").write_text(OWN)
    rows = parsed(gymnast("config", "list", "cartpole", "mine", "--json", cwd=folder))
    assert [row["config"] for row in rows] == ["CartPole-v1:mine_ppo"]
    assert "configs/CartPole-v1.yaml" in rows[0]["files"]
    assert "CartPole-v1:ppo" in plain(gymnast("config", "list", "cpppo", cwd=folder)).split()
    nothing = gymnast("config", "list", "xyzzy", cwd=folder)
    assert nothing.returncode == 2
    assert "xyzzy" in nothing.stderr


def test_config_show(folder: Path) -> None:
    """Every value with its origin: shipped file and line, own file and line, command line, derived."""
    (folder / "configs").mkdir()
    (folder / "configs" / "CartPole-v1.yaml").write_text(OWN)
    shown = parsed(gymnast("config", "show", "CartPole-v1:mine_ppo", "algo.vf_coef=0.7", "--json", cwd=folder))
    assert shown["config"]["algo"]["gamma"] == 0.9
    assert shown["config"]["algo"]["vf_coef"] == 0.7
    assert shown["origins"]["algo.gamma"] == "configs/CartPole-v1.yaml:6"
    assert shown["origins"]["algo.vf_coef"] == "command line (algo.vf_coef=0.7)"
    assert re.fullmatch(r"presets/envs/CartPole-v1\.yaml:\d+", shown["origins"]["env.n_envs"])
    assert shown["derived"]
    text = plain(gymnast("config", "show", "CartPole-v1:mine_ppo", cwd=folder, COLUMNS="160"))
    (line,) = (line for line in text.splitlines() if line.startswith("algo.gamma "))
    assert line.split() == ["algo.gamma", "0.9", "configs/CartPole-v1.yaml:6"]


def test_config_show_of_a_run(trained: Path, cartpole: Run) -> None:
    """Its settings, not those of the preset, each with its origin."""
    shown = parsed(gymnast("config", "show", cartpole.id, "--json", cwd=trained))
    assert shown["run"] == cartpole.id
    assert shown["config"] == cartpole.config()
    assert shown["origins"]["env.n_envs"].startswith(f"run {cartpole.id} (preset: ")
    assert re.fullmatch(r"presets/envs/CartPole-v1\.yaml:\d+", shown["origins"]["algo.gamma"])
    text = plain(gymnast("config", "show", "@last", cwd=trained, COLUMNS="160"))  # of an env without a preset
    assert re.search(r"^train\.grace_period +10\.0 +default *$", text, re.M)
    assert re.search(r"^train\.seed +3 +run \w{5} *$", text, re.M)
    assert re.match(r"Walk-v0:ppo, run \w{5} *\n", text)


def test_config_show_of_no_run(folder: Path) -> None:
    """The sentence is about runs where a run was meant."""
    refused = gymnast("config", "show", "@last", cwd=folder)
    assert refused.returncode == 2 and "There are no runs in" in refused.stderr


@pytest.mark.parametrize(("old", "new"), [("Taxi-v3:ppo", "Taxi-v4"), ("CliffWalking-v0:ppo", "CliffWalking-v1")])
def test_renamed_envs_are_found(old: str, new: str, folder: Path) -> None:
    """With a notice, so that nobody believes to have run the old one."""
    text = plain(gymnast("config", "show", old, cwd=folder))
    assert f"{old.removesuffix(':ppo')} is now {new}" in text


def test_config_check(folder: Path) -> None:
    """Everything shipped is valid; a broken file of the user's is named with its line."""
    text = plain(gymnast("config", "check", cwd=folder))
    valid, total = map(int, re.findall(r"(\d+) of (\d+) configs are valid", text)[0])
    assert valid == total >= 3
    (folder / "configs").mkdir()
    own = folder / "configs" / "CartPole-v1.yaml"
    own.write_text(OWN.replace("gamma: 0.9", "gama: 0.9"))
    for arguments in ((), ("CartPole-v1:mine_ppo",), ("configs/CartPole-v1.yaml",)):
        result = gymnast("config", "check", *arguments, cwd=folder)
        assert result.returncode == 1
        assert "configs/CartPole-v1.yaml:6" in result.stderr
        assert "gama" in result.stderr
        assert "Traceback" not in result.stderr
    own.write_text("id: CartPole-v1\nvariants: {\n")
    result = gymnast("config", "check", cwd=folder)
    assert result.returncode in (1, 2)
    assert re.search(r"configs/CartPole-v1\.yaml:\d", result.stderr)
    assert "Traceback" not in result.stderr


# ---- env -----------------------------------------------------------------------------------------------------------


def test_env_list(folder: Path) -> None:
    """Presets, and with --all what is installed besides."""
    rows = parsed(gymnast("env", "list", "--json", cwd=folder))
    cartpole = next(row for row in rows if row["id"] == "CartPole-v1")
    assert cartpole["solved_at"] == 475
    assert "ppo" in cartpole["variants"]
    everything = [row["id"] for row in parsed(gymnast("env", "list", "--all", "frozen", "--json", cwd=folder))]
    assert {"FrozenLake-v1", "FrozenLake8x8-v1"} <= set(everything)
    assert all("frozen" in name.lower() for name in everything)
    assert "CartPole-v1" in plain(gymnast("env", "list", "cart", cwd=folder))


def test_env_show(folder: Path) -> None:
    """The spec card; an env without a preset shows what Gymnasium knows."""
    card = parsed(gymnast("env", "show", "CartPole-v1", "--json", cwd=folder))
    assert card["id"] == "CartPole-v1"
    assert card["action_space"] == "Discrete(2)"
    assert card["solved_at"] == 475
    assert card["observation"][0]["name"] == "cart position"
    text = plain(gymnast("env", "show", "CartPole-v1", cwd=folder))
    for words in ("push left", "pole angle", "475", "time limit", "rl-zoo PPO"):
        assert words in text
    assert "Box" in plain(gymnast("env", "show", "small_envs:Walk-v0", cwd=folder))
    unknown = gymnast("env", "show", "CartPole-v7", cwd=folder)
    assert unknown.returncode == 2
    assert "CartPole-v1" in unknown.stderr


# ---- doctor, help --------------------------------------------------------------------------------------------------


def test_doctor(folder: Path) -> None:
    """What works here, as marks and as JSON; nothing is made."""
    text = plain(gymnast("doctor", cwd=folder))
    for what in ("Python", "torch", "video", "runs folder"):
        assert f"✓ {what}" in text
    for unused in ("TensorBoard", "Weights & Biases", "Trackio"):
        assert unused not in text
    assert "✗" not in text
    assert not list(folder.iterdir())


def test_doctor_finds_what_is_wrong(folder: Path) -> None:
    """A runs folder that cannot be one is marked and makes the exit code 1."""
    (folder / "file").write_text("")
    result = gymnast("doctor", "--runs-dir", "file", "--json", cwd=folder)
    assert result.returncode == 1
    checks = {check["what"]: check for check in json.loads(result.stdout)}
    assert checks["runs folder"]["ok"] is False
    assert checks["Python"]["ok"] is True


@pytest.mark.parametrize("arguments", [("--help",), ("train", "-h"), ("config", "--help"), ("resume", "--help")])
def test_help(arguments: tuple[str, ...], folder: Path) -> None:
    """Every command explains itself."""
    assert "Usage" in plain(gymnast(*arguments, cwd=folder))


def test_version_and_wrong_commands(folder: Path) -> None:
    """Exit code 2 for what does not exist."""
    assert plain(gymnast("--version", cwd=folder)).strip() == f"gymnast {library.__version__}"
    for arguments in (("trian",), ("train", "--sed", "3"), ("config",), ()):
        result = gymnast(*arguments, cwd=folder)
        assert result.returncode == 2, arguments
        assert "Traceback" not in result.stderr

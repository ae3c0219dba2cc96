"""`gymnast runs` in processes of its own: text for people, JSON for programs, questions on a terminal."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from launch import Terminal, gymnast
from made_runs import contents, finished_run, make_run

import gymnast as library
from gymnast.runs import checkpoint
from gymnast.runs.index import list_runs
from gymnast.runs.store import Run, last_run

TINY = ("env.n_envs=2", "algo.n_steps=32", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=4", "eval.every=64")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two short runs of one env: the second has another gamma."""
    folder = tmp_path_factory.mktemp("trained")
    for gamma in (0.9, 0.99):
        settings = {"train__stop_when_solved": False, "algo__gamma": gamma}
        library.train("CartPole-v1:ppo", *TINY, env_steps=192, runs_dir=folder / "runs", **settings)
    return folder


@pytest.fixture
def house(trained: Path, tmp_path: Path) -> Path:
    """A copy of it to do as one likes with."""
    shutil.copytree(trained / "runs", tmp_path / "runs", symlinks=True)
    return tmp_path


def newest(folder: Path) -> list[Run]:
    return [Run(folder / "runs" / row.id) for row in list_runs(folder / "runs", notice=lambda _: None)]


def parsed(result: CompletedProcess[str]) -> Any:
    """The JSON on stdout, and nothing else anywhere."""
    assert (result.returncode, result.stderr) == (0, "")

    def refuse(text: str) -> Any:
        raise AssertionError(f"{text} is not strict JSON")

    return json.loads(result.stdout, parse_constant=refuse)


def refused(result: CompletedProcess[str], words: str) -> None:
    assert result.returncode == 2, result.stdout
    assert re.fullmatch(rf"error: .*{words}.*\n", result.stderr), result.stderr


# --- list, show, compare, best --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", ["60", "80"])
def test_list_in_a_narrow_terminal_keeps_ids_and_numbers_whole(tmp_path: Path, width: str) -> None:
    run = finished_run(tmp_path / "runs", 5.0, env="SomeEnvironmentWithAVeryLongName-v0")
    run.update(env_steps=1_234_567)
    shown = gymnast("runs", "list", cwd=tmp_path, COLUMNS=width).stdout
    assert run.id in shown
    assert "1,234,567" in shown
    assert "finished" in shown
    assert "SomeE" in shown
    assert max(map(len, shown.splitlines())) <= int(width)


def test_list_filters_and_orders(tmp_path: Path) -> None:
    """Each filter alone; the table shows the tags, the JSON also the note."""
    root = tmp_path / "runs"
    low, high = finished_run(root, 5.0), finished_run(root, 9.0, env="Acrobot-v1", algo="a2c")
    failed = finished_run(root, state="failed")
    low.update(solved=True, created="2026-01-05T12:00:00.000000+00:00")
    gymnast("runs", "tag", low.id, "good", cwd=tmp_path)
    gymnast("runs", "note", low.id, "on purpose", cwd=tmp_path)

    def ids(*arguments: str) -> list[str]:
        return [row["id"] for row in parsed(gymnast("runs", "list", *arguments, "--json", cwd=tmp_path))]

    assert ids() == [failed.id, high.id, low.id]
    assert ids("--sort", "return") == [high.id, low.id, failed.id]
    assert ids("--last", "1") == [failed.id]
    assert ids("--env", "cart*") == [failed.id, low.id]
    assert ids("--algo", "a2c") == [high.id]
    assert ids("--status", "failed") == [failed.id]
    assert ids("--tag", "good") == [low.id] == ids("--solved") == ids("--until", "2026-01-05")
    assert ids("--not-solved", "--since", "1h") == [failed.id, high.id] == ids("--since", "2026-01-06")
    assert ids("--until", "2026-01-04") == []
    (row,) = parsed(gymnast("runs", "list", "--tag", "good", "--json", cwd=tmp_path))
    assert (row["tags"], row["note"]) == (["good"], "on purpose")
    text = gymnast("runs", "list", cwd=tmp_path).stdout
    assert re.search(rf"{low.id}.*good", text) and "tags" in text.splitlines()[0]
    assert "No run in runs fits" in gymnast("runs", "list", "--tag", "none", cwd=tmp_path).stdout
    refused(gymnast("runs", "list", "--since", "yesterday", cwd=tmp_path), "--since 'yesterday' is no time")
    refused(gymnast("runs", "list", "--sort", "retrun", cwd=tmp_path), "Did you mean 'return'")


def test_show_tells_what_is_known(house: Path) -> None:
    """Tags, note and lineage in both forms; a damaged lineage is left out."""
    run = newest(house)[0]
    gymnast("runs", "tag", run.id, "b", "a", cwd=house)
    gymnast("runs", "note", run.id, "a [bold] note", cwd=house)
    lineage = {"attempts": [{"attempt": 2, "start": "step=64", "changes": {"algo.gamma": [0.9, 0.5]}}], "parent": None}
    (run.folder / "lineage.json").write_text(json.dumps(lineage))
    text = gymnast("runs", "show", run.id, cwd=house).stdout
    assert "tags: a b\n" in text and "note: a [bold] note\n" in text
    assert "attempt 2: from step=64, algo.gamma 0.9 → 0.5\n" in text
    data = parsed(gymnast("runs", "show", run.id, "--json", cwd=house))
    assert (data["tags"], data["note"]) == (["a", "b"], "a [bold] note")
    assert data["lineage"]["attempts"][0]["changes"] == {"algo.gamma": [0.9, 0.5]}
    for damaged in ("{", '{"attempts": [{"attempt": 2, "start": "x", "changes": {"a": 1}}]}', '{"attempts": 5}'):
        (run.folder / "lineage.json").write_text(damaged)
        shown = gymnast("runs", "show", run.id, cwd=house)
        assert (shown.returncode, shown.stderr) == (0, ""), damaged
    run.metrics_path.unlink()
    assert parsed(gymnast("runs", "show", run.id, "--json", cwd=house))["metrics"] == {}


def test_show_prints_settings_and_schedules_in_words(house: Path) -> None:
    """What is no default, with its origin; in the lineage a schedule is words, too."""
    run = newest(house)[0]
    config, linear = run.config(), {"schedule": "linear", "start": 0.001, "end": 0.0}
    config["algo"]["learning_rate"] = linear
    run.config_path.write_text(json.dumps(config))
    lineage = {"attempts": [{"attempt": 2, "start": "step=64", "changes": {"algo.learning_rate": [0.5, linear]}}]}
    (run.folder / "lineage.json").write_text(json.dumps(lineage))
    text = gymnast("runs", "show", run.id, cwd=house, COLUMNS="140").stdout
    assert "attempt 2: from step=64, algo.learning_rate 0.5 → linear 0.001 → 0\n" in text
    assert re.search(r"^algo\.learning_rate +linear 0\.001 → 0 +resume, attempt 2 *$", text, re.M), text
    assert re.search(r"^algo\.n_steps +32 +run \w{5} \(preset: 16\) *$", text, re.M), text
    assert re.search(r"^algo\.clip_range +\S+ +presets/envs/CartPole-v1\.yaml:\d+ *$", text, re.M), text
    assert "train.grace_period" not in text and f"gymnast config show {run.id}" in text
    assert "'schedule'" not in text
    shown = parsed(gymnast("runs", "show", run.id, "--json", cwd=house))
    assert shown["config"]["algo"]["learning_rate"]["start"] == 0.001
    assert shown["origins"]["algo.learning_rate"] == "resume, attempt 2"
    assert shown["progress"]["share"] == 1.0 and shown["status"]["state"] == "finished"


def test_vec_steps_come_first(house: Path) -> None:
    """In list, best and compare, with env steps next to them."""
    first, second = newest(house)
    listed = gymnast("runs", "list", cwd=house, COLUMNS="140").stdout.splitlines()
    assert re.search(r"status +vec steps +env steps +best", listed[0]) and re.search(r"finished +96 +192 ", listed[1])
    ranked = gymnast("runs", "best", "CartPole-v1", cwd=house, COLUMNS="140").stdout.splitlines()
    assert re.search(r"best +vec steps +env steps", ranked[0]) and re.search(r" 96 +192 ", ranked[1])
    rows = parsed(gymnast("runs", "compare", first.id, second.id, "--json", cwd=house))["results"]
    names = [row["name"] for row in rows]
    assert names.index("vec steps") + 1 == names.index("env steps")
    assert names.index("vec steps to solved") + 1 == names.index("env steps to solved")
    assert next(row["values"] for row in rows if row["name"] == "vec steps") == [96, 96]


def test_compare(house: Path) -> None:
    """The setting that differs and the results side by side, with a mark at the best."""
    second, first = newest(house)
    text = gymnast("runs", "compare", first.id, second.id, "-m", "train/entropy", cwd=house).stdout
    assert re.search(r"algo\.gamma +0\.9 +0\.99 *\n", text)
    assert "algo.n_steps" not in text
    assert re.search(r"best evaluation .*\*", text) and "train/entropy" in text
    data = parsed(gymnast("runs", "compare", first.id, second.id, "--json", cwd=house))
    assert data["settings"] == {"algo.gamma": [0.9, 0.99]} and data["same_env"] is True
    scores = {row["name"]: row for row in data["results"]}["best evaluation"]
    assert scores["values"] == [first.status().best_return, second.status().best_return]
    refused(gymnast("runs", "compare", first.id, "@last", "@last", "-m", "nothing", cwd=house), "Unknown metric")
    refused(gymnast("runs", "compare", "@last", "@last", cwd=house), "at least two different runs")


def test_best(tmp_path: Path) -> None:
    """One line per env, or the ranking of one, with what makes a score another kind of score."""
    root = tmp_path / "runs"
    low, high, other = (
        finished_run(root, 5.0),
        finished_run(root, 9.0, size=3),
        finished_run(root, -80.0, env="Acrobot-v1"),
    )
    finished_run(root)
    found = parsed(gymnast("runs", "best", "--json", cwd=tmp_path))
    assert {row["env"]: row["id"] for row in found} == {"CartPole-v1": high.id, "Acrobot-v1": other.id}
    ranking = parsed(gymnast("runs", "best", "cartpole-v1", "--json", cwd=tmp_path))
    assert [(row["id"], row["measured_differently"]) for row in ranking] == [(high.id, []), (low.id, ["env.kwargs"])]
    assert "other env.kwargs" in re.sub(r"\s+", " ", gymnast("runs", "best", "CartPole-v1", cwd=tmp_path).stdout)
    refused(gymnast("runs", "best", "CartPole-v9", cwd=tmp_path), "Did you mean 'CartPole-v1'")
    assert "No evaluated runs" in gymnast("runs", "best", "-f", "none", cwd=tmp_path).stdout


# --- tag and note ---------------------------------------------------------------------------------------------------


def test_tag_and_note(tmp_path: Path) -> None:
    """Added, removed, shown; a word that is no tag is refused."""
    run = finished_run(tmp_path / "runs")
    assert gymnast("runs", "tag", run.id, "good", "old", cwd=tmp_path).stdout == f"{run.id}: good old\n"
    assert gymnast("runs", "tag", "@last", "new", "--remove", "old", cwd=tmp_path).stdout == f"{run.id}: good new\n"
    assert parsed(gymnast("runs", "tag", run.id, "--json", cwd=tmp_path)) == {"id": run.id, "tags": ["good", "new"]}
    refused(gymnast("runs", "tag", run.id, "two words", cwd=tmp_path), "cannot be a tag")
    assert list_runs(tmp_path / "runs", tag="new")[0].id == run.id
    gymnast("runs", "note", run.id, "ünï\ncode", cwd=tmp_path)
    assert parsed(gymnast("runs", "note", run.id, "--json", cwd=tmp_path)) == {"id": run.id, "note": "ünï\ncode"}
    assert gymnast("runs", "note", run.id, "", cwd=tmp_path).stdout == f"{run.id}: no note\n"


# --- rm and prune ---------------------------------------------------------------------------------------------------


def test_rm(tmp_path: Path) -> None:
    """Needs a yes, refuses a live run by name of its process, moves `@last`, says what it freed."""
    root = tmp_path / "runs"
    first, second, live = finished_run(root), finished_run(root), make_run(root)
    refused(gymnast("runs", "rm", first.id, cwd=tmp_path), "add --yes")
    refused(gymnast("runs", "rm", first.id, live.id, "--yes", cwd=tmp_path), f"process {live.status().pid}")
    refused(gymnast("runs", "rm", str(first.folder), "--yes", cwd=tmp_path), "There is no run")
    assert first.exists() and live.exists()
    second.point_last()
    done = gymnast("runs", "rm", "@last", second.id, "--yes", cwd=tmp_path)
    assert re.search(r"Deleted 1 run, [\d.]+ K?i?B freed", done.stdout), done
    assert not second.folder.exists() and last_run(root) == live
    answer = parsed(gymnast("runs", "rm", first.id, "--yes", "--json", cwd=tmp_path))
    assert answer["removed"] == [first.id] and answer["freed_bytes"] > 100


def test_rm_asks_on_a_terminal(tmp_path: Path) -> None:
    """No is the default."""
    run = finished_run(tmp_path / "runs")
    for key, stays in (("\r", True), ("y\r", False)):
        terminal = Terminal("runs", "rm", run.id, cwd=tmp_path)
        terminal.wait_for("Delete 1 run")
        terminal._child.send(key)
        assert terminal.end() == 0
        assert run.exists() is stays


def test_prune(tmp_path: Path) -> None:
    """A preview changes nothing; then exactly what it named goes."""
    root = tmp_path / "runs"
    scores = (1.0, 3.0, 2.0)
    low, high, middle = (finished_run(root, score) for score in scores)
    failed = finished_run(root, state="failed")
    gymnast("runs", "tag", low.id, "keep", cwd=tmp_path)
    before = contents(root)
    refused(gymnast("runs", "prune", cwd=tmp_path), "Say what to delete")
    refused(gymnast("runs", "prune", "--keep-best", 1, cwd=tmp_path), "add --yes")
    refused(gymnast("runs", "prune", "--older-than", "soon", cwd=tmp_path), "no length of time")
    preview = parsed(gymnast("runs", "prune", "--keep-best", 1, "--dry-run", "--json", cwd=tmp_path))
    assert {one["id"] for one in preview["would_remove"]} == {middle.id, failed.id} and preview["removed"] == []
    assert contents(root) == before
    assert "Nothing in runs matches" in gymnast("runs", "prune", "--older-than", "1d", cwd=tmp_path).stdout
    done = gymnast("runs", "prune", "--status", "failed", "--yes", cwd=tmp_path)
    assert "Deleted 1 run," in done.stdout and not failed.folder.exists()
    done = gymnast("runs", "prune", "--keep-best", 1, "--yes", cwd=tmp_path)
    assert {row.id for row in list_runs(root)} == {low.id, high.id}, done


def test_prune_checkpoints(house: Path) -> None:
    """Best and last stay and load."""
    run = newest(house)[0]
    before = checkpoint.steps(run.folder)
    kept = {checkpoint.read_pointer(run.folder, name) for name in ("best", "last")}
    extra = run.checkpoints / "step=1"
    shutil.copytree(run.checkpoints / f"step={before[-1]}", extra)
    done = gymnast("runs", "prune", "--checkpoints", "--yes", cwd=house)
    assert "Deleted the checkpoints of" in done.stdout
    assert {f"step={step}" for step in checkpoint.steps(run.folder)} == kept
    assert checkpoint.load_latest(run.folder)[1] == []


# --- archives and index ---------------------------------------------------------------------------------------------


def test_export_import_eval_resume(house: Path) -> None:
    """The imported run is the run: the same score of the same episodes, and training goes on from it."""
    run = newest(house)[0]
    done = gymnast("runs", "export", run.id, cwd=house)
    assert f"{run.id}.zip: 1 run ({run.id})" in done.stdout
    refused(gymnast("runs", "export", run.id, cwd=house), "there already")
    done = gymnast("runs", "import", f"{run.id}.zip", "-f", "other", cwd=house)
    assert done.stdout == f"Imported run {run.id}: CartPole-v1:ppo, finished\n" and done.stderr == ""
    again = gymnast("runs", "import", f"{run.id}.zip", "-f", "other", cwd=house)
    assert again.stdout == f"Run {run.id} is already here as {run.id}: nothing to do.\n"
    scores = [
        parsed(gymnast("eval", run.id, "-e", 5, "--seed", 3, "--json", "-f", root, cwd=house))
        for root in ("runs", "other")
    ]
    assert scores[0] == scores[1]
    resumed = gymnast("resume", run.id, "-n", 384, "-q", "-f", "other", cwd=house)
    assert resumed.returncode == 0, resumed.stderr
    there = Run(house / "other" / run.id)
    assert (there.status().env_steps, there.status().attempt) == (384, run.status().attempt + 1)
    assert run.status().env_steps == 192


def test_import_tells_of_a_module_and_of_nonsense(tmp_path: Path) -> None:
    """A module that a config imports is named before anybody runs it."""
    run = finished_run(tmp_path / "runs")
    run.config_path.write_text(json.dumps({**run.config(), "env": {"id": "E-v0", "module": "their_envs"}}))
    gymnast("runs", "export", run.id, "-o", "a.zip", cwd=tmp_path)
    done = gymnast("runs", "import", "a.zip", "-f", "other", cwd=tmp_path)
    assert "import or read the Python module 'their_envs'" in done.stdout
    (tmp_path / "b.zip").write_text("nothing")
    refused(gymnast("runs", "import", "b.zip", "-f", "third", cwd=tmp_path), "not a zip file")
    assert not (tmp_path / "third").exists()


def test_rebuild(tmp_path: Path) -> None:
    """From the folders alone, to the same answer."""
    root = tmp_path / "runs"
    for score in (1.0, 2.0):
        finished_run(root, score)
    before = gymnast("runs", "list", "--json", cwd=tmp_path).stdout
    (root / "index.sqlite").write_bytes(b"")
    assert "rebuilt from 2 run folders" in gymnast("runs", "rebuild", cwd=tmp_path).stdout
    assert gymnast("runs", "list", "--json", cwd=tmp_path).stdout == before
    assert parsed(gymnast("runs", "rebuild", "--json", cwd=tmp_path))["runs"] == 2
    refused(gymnast("runs", "rebuild", "-f", "none", cwd=tmp_path), "no folder 'none'")

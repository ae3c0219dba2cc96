"""Checkpoints that somebody has forged are refused by a sentence, by every command that reads them."""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forged import copy_of, forge_file, forge_manifest, forge_weights
from typer.testing import CliRunner

import gymnast
from gymnast.cli.app import app
from gymnast.errors import CheckpointError, GymnastError, UsageError
from gymnast.hub.eject import eject
from gymnast.runs.checkpoint import MANIFEST, POLICY, STATE
from gymnast.runs.diff import diff_runs
from gymnast.runs.store import Run
from gymnast.runs.trust import usable
from gymnast.training.diagnostics.rewind import rewind
from gymnast.training.train import Resume, resume_point, train

SMALL: dict[str, Any] = {"n_envs": 2, "algo__n_steps": 16, "algo__batch_size": 32, "eval__episodes": 2, "seed": 3}
JUNK: tuple[Any, ...] = (
    None,
    -1,
    10**30,
    1e300,
    "x",
    "",
    [],
    {},
    [[1]],
    {"x": 1},
    True,
    {"$float": "nan"},
    {"$tensor": "x"},
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with two checkpoints and room to go on."""
    root = tmp_path_factory.mktemp("runs")
    return gymnast.train("CartPole-v1:ppo", env_steps=128, runs_dir=root, train__checkpoint_every=64, **SMALL).run


@pytest.fixture
def forged(trained: Run, tmp_path: Path) -> Run:
    """A copy to forge."""
    return copy_of(trained, tmp_path)


def newest(run: Run) -> Path:
    return run.checkpoints / "step=128"


def resume(run: Run) -> None:
    """One more iteration."""
    train(usable(run, ["env_steps=160"]), run.root, resume=Resume(run, resume_point(run)[0]))


def read_everywhere(run: Run, other: Run) -> dict[str, BaseException | None]:
    """What each reader of a checkpoint makes of the newest one."""
    readers: dict[str, Callable[[], Any]] = {
        "load": lambda: gymnast.load(f"{run.folder}/last"),
        "diff": lambda: diff_runs(run, other),
        "eject": lambda: eject(run),
        "rewind": lambda: rewind(run, 128),
        "init_from": lambda: gymnast.train(
            "CartPole-v1:ppo", env_steps=32, init_from=f"{run.folder}/last", runs_dir=run.root / "new", **SMALL
        ),
        "resume": lambda: resume(run),
    }
    found: dict[str, BaseException | None] = {}
    for name, read in readers.items():
        try:
            read()
            found[name] = None
        except GymnastError as error:
            found[name] = error
    return found


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no state": lambda content: content.update(state={}),
    "state is text": lambda content: content.update(state="x"),
    "half a state": lambda content: content["state"]["session"].pop("envs"),
    "a loop of text": lambda content: content["state"].update(loop="x"),
    "counters of text": lambda content: content.update(
        counters={"env_steps": "128", "vec_steps": "64", "iteration": "4"}
    ),
    "no counters": lambda content: content.update(counters={}),
    "metrics of lists": lambda content: content.update(metrics={"eval/return_mean": [1]}),
    "versions of lists": lambda content: content.update(versions=["torch"]),
    "a step of text": lambda content: content.update(step="128"),
    "names of lists": lambda content: content.update(policy=[["a"]]),
    "files of text": lambda content: content.update(files={POLICY: "x", STATE: "y"}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_manifests(forged: Run, trained: Run, name: str) -> None:
    """Either it does not matter for a reader, or that says what is wrong."""
    forge_manifest(newest(forged), FORGERIES[name])
    found = read_everywhere(forged, trained)
    assert any(found.values()) or name in ("half a state",), found


def leaves_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree, as its holder and key."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield tree, key
            yield from leaves_of(value)


def test_any_forged_state(forged: Run) -> None:
    """Junk anywhere in the state: a resume goes on, or refuses; no other error ever comes out."""
    whole = (newest(forged) / MANIFEST).read_bytes()
    draw = random.Random(5)
    for _ in range(25):
        (newest(forged) / MANIFEST).write_bytes(whole)

        def spoil(content: dict[str, Any]) -> None:
            holder, key = draw.choice(list(leaves_of({"state": content["state"], "counters": content["counters"]})))
            holder[key] = copy.deepcopy(draw.choice(JUNK))

        forge_manifest(newest(forged), spoil)
        one = copy_of(forged, forged.root / f"{draw.random()}")
        try:
            resume(one)
        except GymnastError:
            continue


def test_names_of_files_out_of_a_checkpoint(forged: Run, tmp_path: Path) -> None:
    """An open evaluation holds a checkpoint of its own, whose keys become names of files."""
    for blobs in (
        {"../../../../evil": {"$tensor": "x", "kind": "bytes"}},
        {name: {"$tensor": "x", "kind": "bytes"} for name in (POLICY, STATE, MANIFEST)},
        {POLICY: 1, STATE: 2, MANIFEST: 3},
    ):
        from safetensors.torch import load, save

        tensors = load((newest(forged) / STATE).read_bytes())
        import torch

        forge_file(newest(forged), STATE, save(tensors | {"x": torch.zeros(3, dtype=torch.uint8)}))
        job = {"turn": 1, "env_steps": 64, "blobs": blobs}
        forge_manifest(newest(forged), lambda content: content["state"]["loop"].update(jobs=[job]))  # noqa: B023
        with pytest.raises(CheckpointError):
            resume(forged)
    assert not list(tmp_path.rglob("evil"))


# --- weights that are no numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(forged: Run, bad: float) -> None:
    """A policy of NaN picks action 0 and looks like one that plays; every way to it says what is wrong instead."""
    for step in ("step=64", "step=128"):
        forge_weights(forged.checkpoints / step, lambda tensors: tensors["actor.layers.0.weight"].fill_(bad))
    for command in (("eval", "-e", "2"), ("video",), ("export",), ("model",)):
        done = CliRunner().invoke(app, [command[0], str(forged.folder), *command[1:]])
        assert isinstance(done.exception, CheckpointError), (command, done.output)
        assert "hold NaN or infinity ('actor.layers.0.weight')" in str(done.exception)
    with pytest.raises(CheckpointError, match="NaN"):
        resume(forged)


# --- ejected scripts ------------------------------------------------------------------------------------------------

EVIL = '"""\nimport os; os.abort()\n"""'


@pytest.mark.parametrize(
    "change",
    [
        lambda run: forge_manifest(newest(run), lambda content: content["versions"].update(torch=EVIL)),
        lambda run: forge_manifest(newest(run), lambda content: content["versions"].update(gymnast="0.1\\")),
        lambda run: forge_manifest(
            newest(run), lambda content: content["versions"].update(numpy="2\N{COMBINING ACUTE ACCENT}")
        ),
        lambda run: forge_manifest(newest(run), lambda content: content["counters"].update(env_steps=EVIL)),
        lambda run: forge_manifest(newest(run), lambda content: content["counters"].update(iteration=EVIL)),
        lambda run: Run(run.folder.rename(run.root / 'a"""; import os; """')),
        lambda run: Run(run.folder.rename(run.root / "a\nimport os")),
    ],
)
def test_text_of_a_run_does_not_become_code(forged: Run, change: Callable[[Run], Run | None]) -> None:
    """What could end the docstring or a comment is refused."""
    (forged.checkpoints / "step=64" / MANIFEST).unlink()  # eject would take the checkpoint before
    with pytest.raises((UsageError, CheckpointError)):
        pytest.fail(eject(change(forged) or forged).source)


def test_arguments_of_a_run_stay_literals(forged: Run, trained: Run) -> None:
    """Arguments of wrappers stand in the script as numbers; no further function is called."""
    config = forged.config()
    config["env"]["wrappers"] = [
        {"id": "reward_clip", "args": {"low": -1, "high": 10}},
        {"id": "reward_scale", "args": {"factor": 0.5}},
    ]
    config["env"]["kwargs"] = {"sutton_barto_reward": True}
    forged.config_path.write_text(json.dumps(config))
    source = eject(forged).source
    assert "np.clip(rollout.reward[t], -1.0, 10.0, out=rollout.reward[t])" in source
    assert "np.float32(0.5)" in source
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    plain = [
        ast.unparse(node.func) for node in ast.walk(ast.parse(eject(trained).source)) if isinstance(node, ast.Call)
    ]
    assert set(calls) - set(plain) <= {"np.clip"}

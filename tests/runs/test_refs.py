"""Run references, as every command takes them."""

import copy
import shutil

import pytest

from gymnast.config.load import resolve
from gymnast.errors import UsageError
from gymnast.runs.index import upsert
from gymnast.runs.refs import resolve_checkpoint, resolve_run, unfinished_run
from gymnast.runs.store import Run


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def make(root, env="CartPole-v1", score=None, steps=(), best=None, last=None, name=None):
    run = Run.create(root, {"name": f"{env}:ppo", "env": {"id": env}, "algo": {"id": "ppo"}, "train": {"seed": 0}})
    if name:
        renamed = Run(root / name)
        run.folder.rename(renamed.folder)
        run = renamed
        run.point_last()
    if score is not None:
        run.update(best_return=score)
    for step in steps:
        (run.checkpoints / f"step={step}").mkdir()
    for pointer, step in (("best", best), ("last", last)):
        if step is not None:
            (run.checkpoints / pointer).write_text(f"step={step}\n")
    upsert(run)
    return run


def test_last_and_ids(root):
    first, second = make(root, name="k3v9x"), make(root, name="k3w2b")
    assert resolve_run(root, "@last") == second
    assert resolve_run(root, "k3v9x") == first == resolve_run(root, "k3v") == resolve_run(root, " k3v9 ")
    with pytest.raises(UsageError, match="beginning of 2 runs: k3w2b, k3v9x"):
        resolve_run(root, "k3")
    shutil.rmtree(second.folder)
    assert resolve_run(root, "@last") == first, "the link points at a removed run: the newest one left"


def test_best_by_evaluation_ties_to_the_earlier(root):
    make(root, score=100.0)
    early = make(root, score=500.0)
    make(root, score=500.0)
    make(root)
    pong = make(root, env="ALE/Pong-v5", score=-3.0)
    assert resolve_run(root, "@best:CartPole-v1") == early == resolve_run(root, "@best:cartpole-v1")
    assert resolve_run(root, "@best:ALE/Pong-v5") == pong
    assert resolve_run(root, "@best") == pong, "the env of @last"
    early.point_last()
    assert resolve_run(root, "@best") == early


def test_best_errors(root):
    make(root)
    with pytest.raises(UsageError, match="has been evaluated yet"):
        resolve_run(root, "@best")
    with pytest.raises(UsageError, match=r"no run of 'CartPole-v0'.*Did you mean 'CartPole-v1'"):
        resolve_run(root, "@best:CartPole-v0")


def test_checkpoints(root):
    run = make(root, name="k3v9x", score=1.0, steps=(100, 200, 120000), best=200, last=120000)
    for ref in (
        "k3v9x/best",
        "k3v9x/@best",
        "@last/@best",
        "@last/best",
        "@best/@best",
        "@best:CartPole-v1/best",
        "k3v",
    ):
        assert resolve_checkpoint(root, ref) == (run, "step=200"), ref
    for ref in ("@last/@last", "@last/last", "k3v9x/step=120000", "@best:CartPole-v1/step=120000"):
        assert resolve_checkpoint(root, ref) == (run, "step=120000"), ref
    assert resolve_checkpoint(root, "@last", prefer="last") == (run, "step=120000")
    with pytest.raises(UsageError, match=r"has step=100, step=200, step=120000; best is step=200; last is step=120000"):
        resolve_checkpoint(root, "@last/step=300")
    with pytest.raises(UsageError, match=r"names a checkpoint.*use '@last'"):
        resolve_run(root, "@last/@best")


def test_env_ids_with_a_slash(root):
    run = make(root, env="ALE/Pong-v5", score=20.0, steps=(5,), best=5, last=5)
    assert resolve_checkpoint(root, "@best:ALE/Pong-v5/@best") == (run, "step=5")
    assert resolve_checkpoint(root, "@best:ALE/Pong-v5") == (run, "step=5")


def test_without_best_the_last_and_without_pointers_the_newest(root):
    run = make(root, steps=(100, 20), last=20)
    assert resolve_checkpoint(root, "@last") == (run, "step=20")
    with pytest.raises(UsageError, match="no checkpoint '@last/best'"):
        resolve_checkpoint(root, "@last/best")
    (run.checkpoints / "last").write_text("../../elsewhere")
    assert resolve_checkpoint(root, "@last") == (run, "step=100")
    empty = make(root)
    with pytest.raises(UsageError, match=f"{empty.id} has no checkpoint yet"):
        resolve_checkpoint(root, "@last")


def test_paths(root, monkeypatch):
    run = make(root, name="k3v9x", steps=(7,), best=7, last=7)
    downloaded = root.parent / "my model"
    shutil.copytree(run.folder, downloaded)
    assert resolve_run(root, str(downloaded)).folder == downloaded
    assert resolve_checkpoint(root, f"{downloaded}/best")[1] == "step=7"
    assert resolve_checkpoint(root, f"{run.folder}/checkpoints/step=7/") == (run, "step=7")
    monkeypatch.chdir(root.parent)
    assert resolve_run(root, "runs/k3v9x/").folder == run.folder
    assert resolve_run(root, "runs/@last").folder == run.folder
    assert resolve_run(root, "my model").id == "my model"
    for ref in ("runs/k3v9x", "my model", str(run.folder), "../runs/k3v9x", "k3v9x/../k3v9x"):
        with pytest.raises(UsageError):
            resolve_run(root, ref, paths=False)
    assert resolve_run(root, "k3v9x", paths=False) == run


def test_unknown_runs_name_close_and_newest_ones(root):
    make(root, name="k3v9x")
    make(root, name="bbbbb")
    with pytest.raises(UsageError) as error:
        resolve_run(root, "k3v8x")
    text = str(error.value)
    assert "Did you mean 'k3v9x'?" in text and "bbbbb (CartPole-v1:ppo, running), k3v9x" in text and "@last" in text


@pytest.mark.parametrize(
    "ref", ["@last", "@best", "@best:CartPole-v1", "k3v9x", "@last/@best", "", "/", "@", "k3v9x/step=1"]
)
def test_no_runs_yet(root, ref):
    with pytest.raises(UsageError, match=r"no runs in .*gymnast train"):
        resolve_checkpoint(root, ref)
    assert not root.exists()


@pytest.mark.parametrize(
    "ref", ["", "@", "@nothing", "/etc/passwd", "..", ".", "@last/nothing", "k3v9x/step=abc", "\x00", "*", "a" * 5000]
)
def test_nonsense_is_refused_with_a_sentence(root, ref):
    make(root, name="k3v9x", steps=(1,), last=1)
    with pytest.raises(UsageError):
        resolve_checkpoint(root, ref)


def test_an_unfinished_run_of_an_earlier_version_is_found(root):
    """It was saved without keys that came later; they count as what they are by default, and as nothing else."""
    words = ["lr=[[0, 1e-3], [1, 1e-4]]"]
    config = resolve("CartPole-v1:ppo", words).config.model_dump(mode="json")
    saved = copy.deepcopy(config)
    for section, key in (("eval", "steps"), ("policy", "batch_norm"), ("log", "verbose")):
        del saved[section][key]
    del saved["algo"]["learning_rate"]["floor"]
    run = Run.create(root, saved)
    (run.checkpoints / "step=64").mkdir()
    run.finish("interrupted", "SIGTERM")
    upsert(run)
    assert unfinished_run(root, config) == run
    for other in ("policy.batch_norm=true", "lr={schedule: piecewise, points: [[0, 1e-3], [1, 1e-4]], floor: 1e-5}"):
        assert unfinished_run(root, resolve("CartPole-v1:ppo", [*words, other]).config.model_dump(mode="json")) is None

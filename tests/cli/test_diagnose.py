"""`gymnast diagnose` and `gymnast metrics` as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launch import gymnast
from recorded_runs import FAULTS

from gymnast import api
from gymnast.metrics.catalogue import load_catalogue


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A faulty run, and then one that is cured."""
    folder = tmp_path_factory.mktemp("store")
    reference, overrides, env_steps, _ = FAULTS["rate too high"]
    for changes in (overrides, ("algo.learning_rate=lin_0.008",)):
        api.train(reference, *changes, env_steps=env_steps, seed=0, runs_dir=folder / "runs")
    return folder


def runs_of(store: Path) -> tuple[str, str]:
    """Ids of the faulty run and of the cured one."""
    cured = (store / "runs" / "@last").resolve().name
    names = {path.parent.name for path in store.glob("runs/*/config.json")} - {cured, "@last"}
    return names.pop(), cured


def said(done: Any) -> str:
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_a_page_about_a_faulty_run(store: Path) -> None:
    run, _ = runs_of(store)
    page = said(gymnast("diagnose", run, cwd=store, COLUMNS="200"))
    first, verdict, *rest = page.splitlines()
    assert first == f"{run}  CartPole-v1:ppo" and verdict.startswith("STUCK  No better than random play: ")
    assert "1. The learning rate is too high (>99%)" in rest
    assert "   + algo.learning_rate is linear from 0.8; at most 0.01 is usual." in rest
    assert f"gymnast rewind {run} --to " in page and "▁" in page
    assert rest[-1].startswith("gymnast train CartPole-v1:ppo train.env_steps=20000 algo.learning_rate=lin_")


def test_the_page_as_json(store: Path) -> None:
    run, _ = runs_of(store)
    page = json.loads(said(gymnast("diagnose", run, "--json", cwd=store)))
    assert page["run"] == run and page["health"] == "stuck" and page["causes"][0]["id"] == "learning_rate_high"
    assert page["experiment"]["changes"].keys() == {"algo.learning_rate"}


def test_several_runs_are_compared_and_the_best_is_gone_on_from(store: Path) -> None:
    run, cured = runs_of(store)
    page = said(gymnast("diagnose", "--last", 2, cwd=store, COLUMNS="200"))
    assert f"{cured}*" in page and run in page and "algo.learning_rate=linear 0.8 → 0" in page
    found = json.loads(said(gymnast("diagnose", "--last", 2, "--json", cwd=store)))
    assert found["best"] == cured and [one["run"] for one in found["runs"]] == [cured, run]


def test_a_run_that_ended_in_nan_is_explained_by_its_settings(folder: Path) -> None:
    failed = gymnast("train", "CartPole-v1:ppo", "algo.learning_rate=1e20", "algo.max_grad_norm=null", "-q", cwd=folder)
    assert failed.returncode == 1 and "The gradient is NaN" in failed.stderr
    page = json.loads(said(gymnast("diagnose", "--json", cwd=folder)))
    assert page["health"] == "broken" and "NonFiniteError" in page["verdict"]
    assert page["causes"][0]["id"] == "learning_rate_high"
    assert "algo.learning_rate=lin_" in page["experiment"]["command"]
    assert said(gymnast("diagnose", cwd=folder)).splitlines()[1].startswith("BROKEN  Training broke down")


def test_the_page_fits_narrow_terminals_and_commands_can_be_copied(store: Path) -> None:
    run, _ = runs_of(store)
    lines = said(gymnast("diagnose", run, cwd=store, COLUMNS="80")).splitlines()
    assert max(map(len, lines[:-1])) <= 80
    alerts = json.loads(said(gymnast("diagnose", run, "--json", cwd=store)))["alerts"]
    assert len(alerts) > 3
    for alert in alerts:
        assert f"  look at the update: {alert['rewind']}" in map(str.rstrip, lines)


def test_the_rewind_command_of_an_alert_runs_as_printed(store: Path) -> None:
    run, _ = runs_of(store)
    alert = json.loads(said(gymnast("diagnose", run, "--json", cwd=store)))["alerts"][-1]
    assert f"env steps up to {alert['first_step']:,}" in said(gymnast(*alert["rewind"].split()[1:], cwd=store))


def test_mistakes_are_answered(store: Path, folder: Path) -> None:
    assert gymnast("diagnose", cwd=folder).stderr.startswith("error: There are no runs in 'runs'.")
    alone = gymnast("diagnose", "--last", 1, cwd=store)
    assert alone.returncode == 2 and "Invalid value for '--last'" in alone.stderr


def test_diagnosis_needs_no_torch(store: Path) -> None:
    code = (
        "import sys\nsys.argv = ['gymnast', 'diagnose', '@last']\nfrom gymnast.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code\n"
        "print('LOADED', *[name for name in ('torch', 'gymnasium', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=store, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines()[-1] == "LOADED"


# --- metrics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train/entropy", "entropy", "train/entropy_loss", "losses/entropy"])
def test_a_metric_is_found_by_any_of_its_names(name: str, folder: Path) -> None:
    lines = said(gymnast("metrics", name, cwd=folder)).splitlines()
    assert lines[0] == "train/entropy" and lines[1] == "  mean entropy of the policy"
    expected = "  Stable-Baselines3: train/entropy_loss, which is -1 × ours"
    assert expected + (" (what you asked for)" if name == "train/entropy_loss" else "") in lines
    assert any(line.startswith("    entropy_collapse (warning, threshold 0.02): ") for line in lines)


def test_all_metrics_and_those_of_a_namespace(folder: Path) -> None:
    names = [metric.name for metric in load_catalogue().listed]
    everything = json.loads(said(gymnast("metrics", "--json", cwd=folder)))
    assert [one["name"] for one in everything] == names
    training = json.loads(said(gymnast("metrics", "train/", "--json", cwd=folder)))
    assert [one["name"] for one in training] == [name for name in names if name.startswith("train/")]
    assert "kl_high" in next(one for one in training if one["name"] == "train/approx_kl")["alerts"]
    table = said(gymnast("metrics", cwd=folder, COLUMNS="200"))
    assert [name for name in names if name not in table] == []


def test_an_unknown_metric_is_answered_with_a_suggestion(folder: Path) -> None:
    done = gymnast("metrics", "train/entrpy", cwd=folder)
    assert done.returncode == 2 and "Did you mean" in done.stderr and "train/entropy" in done.stderr

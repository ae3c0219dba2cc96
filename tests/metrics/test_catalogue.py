"""The catalogue is complete, unambiguous and quick to read."""

from __future__ import annotations

import math
import time
from collections import Counter

import pytest
from ruamel.yaml import YAML

from gymnast.errors import UsageError
from gymnast.metrics import catalogue as module
from gymnast.metrics.catalogue import VALUE_WIDTH, load_catalogue, parse

CATALOGUE = load_catalogue()
NAMESPACES = ["", "rollout", "eval", "train", "time", "env", "sys"]


@pytest.fixture(scope="module")
def source():
    """The file as a YAML reader sees it; ruamel refuses duplicate keys, json would not."""
    return YAML(typ="safe", pure=True).load(module._FILE.read_text(encoding="utf-8"))


def test_the_file_is_yaml_and_json_at_once(source):
    assert [metric.name for metric in CATALOGUE.listed] == list(source)
    assert source["train/entropy"]["aliases"]["sb3"] == {"name": "train/entropy_loss", "factor": -1}


def test_every_metric_is_fully_described(source):
    fields = {"meaning", "unit", "precision", "highlight", "bounds", "direction", "row", "aliases"}
    for name, entry in source.items():
        assert set(entry) - {"healthy"} == fields and entry.get("healthy", "text"), name
        assert entry["meaning"] and entry["unit"], name
        assert type(entry["precision"]) is int and 0 <= entry["precision"] <= 6, name
        assert entry["direction"] in ("up", "down", "none"), name
        assert entry["row"] in ("always", "late", "headline", "setting", "all") or entry["row"].startswith("if "), name
        bounds = entry["bounds"]
        if bounds != "none":
            low, high = bounds
            assert (low, high) != (None, None), f"{name}: write none"
            assert low is None or high is None or low < high, name


def test_highlights_are_colours(source):
    from rich.color import Color

    colours = {entry["highlight"] for entry in source.values()} - {"none"}
    assert len(colours) >= 3
    for colour in colours:
        Color.parse(colour)


def test_a_family_stands_for_all_its_members():
    metric = CATALOGUE["train/grad_norm/policy"]
    assert metric.name == "train/grad_norm/policy" and metric.bounds == (0, None) and metric.unit == "norm"
    assert "train/dead_relus/value.1" in CATALOGUE and "train/grad_norm/" not in CATALOGUE
    assert CATALOGUE.get("train/nothing/policy") is None and CATALOGUE.get("train/grad_norm/a/b") is None
    assert CATALOGUE.resolve_name("rollout/action_share/push left") == "rollout/action_share/push left"
    assert not [metric.name for metric in CATALOGUE if metric.name.endswith("*")]  # no run logs that name
    assert CATALOGUE.order(["sys/rss_mb", "train/loss", "train/grad_norm/value"])[1] == "train/grad_norm/value"


def test_names_and_order():
    metrics = CATALOGUE.listed
    assert [metric.order for metric in metrics] == list(range(len(metrics)))
    namespaces = list(dict.fromkeys(metric.namespace for metric in metrics))
    assert namespaces == NAMESPACES
    assert CATALOGUE["train/loss"].label == "loss" and CATALOGUE["env_steps"].namespace == ""


def test_spread_is_always_std():
    assert not [m.name for m in CATALOGUE if m.label.endswith(("_var", "_stdev", "_spread", "_sem"))]


def test_aliases_are_unique_and_lead_home():
    owners = Counter(alias.name for metric in CATALOGUE for alias in set(metric.aliases.values()))
    assert max(owners.values()) == 1
    for metric in CATALOGUE:
        for alias in metric.aliases.values():
            assert CATALOGUE.resolve_name(alias.name) == metric.name
            assert alias.name == metric.name or alias.name not in CATALOGUE


@pytest.mark.parametrize(
    ("peer", "ours", "factor"),
    [
        ("rollout/ep_rew_mean", "rollout/return_mean", 1),
        ("eval/mean_reward", "eval/return_mean", 1),
        ("time/total_timesteps", "env_steps", 1),
        ("global_step", "env_steps", 1),
        ("train/entropy_loss", "train/entropy", -1),
        ("losses/entropy", "train/entropy", 1),
        ("losses/clipfrac", "train/clip_fraction", 1),
        ("charts/SPS", "time/fps", 1),
        ("train/std", "train/action_std", 1),
        ("train/loss", "train/loss", 1),
    ],
)
def test_peer_names(peer, ours, factor):
    assert CATALOGUE.resolve_name(peer) == ours
    assert CATALOGUE.alias_factor(peer) == factor


@pytest.mark.parametrize("lookup", [CATALOGUE.__getitem__, CATALOGUE.resolve_name, CATALOGUE.alias_factor])
def test_unknown_names_are_refused_with_a_suggestion(lookup):
    with pytest.raises(UsageError, match=r"Did you mean.*'rollout/return_mean'"):
        lookup("rollout/retrun_mean")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("rollout/return_mean", "ep_rew_mean"),
        ("env_steps", "time/total_timesteps"),
        ("train/entropy", "-entropy_loss"),
        ("train/grad_norm", ""),
        ("not/listed", ""),
    ],
)
def test_alias_labels(name, label):
    assert CATALOGUE.alias_label(name) == label


def test_aliases_are_not_metrics_of_their_own():
    with pytest.raises(UsageError):
        CATALOGUE["rollout/ep_rew_mean"]


def test_order_puts_strangers_behind_their_namespace():
    names = [
        "zoo/x",
        "sys/rss_mb",
        "train/my_loss",
        "eval/return_mean",
        "train/loss",
        "rollout/return_mean",
        "env_steps",
    ]
    expected = ["env_steps", "rollout/return_mean", "eval/return_mean", "train/loss", "train/my_loss", "sys/rss_mb"]
    assert CATALOGUE.order(names) == [*expected, "zoo/x"]
    assert CATALOGUE.order(["env/reward/centring", "time/fps", "sys/rss_mb"])[1] == "env/reward/centring"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("env_steps", 1234567, "1,234,567"),
        ("rollout/return_mean", 487.126, "487.13"),
        ("rollout/return_mean", 0.0, "0.00"),
        ("rollout/return_mean", 0.004, "4.0e-03"),
        ("train/learning_rate", 3e-4, "0.000300"),
        ("train/approx_kl", -0.00001, "-1.0e-05"),
        ("train/loss", None, "-"),
        ("train/loss", math.nan, "nan"),
        ("train/loss", -math.inf, "-inf"),
        ("train/loss", 1.5e12, "1.5000e+12"),
        ("not/listed", 0.123456789, "0.12346"),
    ],
)
def test_format(name, value, text):
    assert CATALOGUE.format(name, value) == text


def test_no_formatted_value_is_too_wide():
    for metric in CATALOGUE:
        for exponent in range(-320, 308, 4):
            assert len(CATALOGUE.format(metric.name, -9.87654321 * 10.0**exponent)) <= VALUE_WIDTH


def test_reading_is_off_the_start_up_budget():
    assert load_catalogue() is load_catalogue()
    text = module._FILE.read_text(encoding="utf-8")
    fastest = math.inf
    for _ in range(5):
        begin = time.perf_counter()
        assert len(list(parse(text))) == len(CATALOGUE.listed)
        fastest = min(fastest, time.perf_counter() - begin)
    assert fastest < 0.015

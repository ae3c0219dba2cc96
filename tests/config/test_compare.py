"""Differences of resolved configs."""

from __future__ import annotations

from pathlib import Path

from gymnast.config.compare import Difference, compare
from gymnast.config.load import from_saved, resolve

HEAD = "id: Mine-v0\nspec: {solved_at: 5, description: first}\ndefaults: {train: {env_steps: 1000}}\n"


def test_only_what_differs_with_both_origins(folder: Path) -> None:
    """Old and new value, file and line of each; schedules are one value, open mappings go key by key."""
    Path("a.yaml").write_text(
        HEAD
        + "variants:\n"
        + "  ppo: {algo: {gamma: 0.9, learning_rate: lin_1e-3, batch_size: 1}, env: {kwargs: {same: 1}}}\n"
        + "  b_ppo:\n"
        + "    env: {kwargs: {same: 1, size: 4}}\n"
        + "    algo: {gamma: 0.95, batch_size: 1.0}\n"
    )
    found = compare(resolve("a.yaml:ppo"), resolve("a.yaml:b_ppo"))
    linear = {"schedule": "linear", "start": 1e-3, "end": 0.0, "decay_start": 0.0, "decay_end": None}
    assert [difference.key for difference in found] == [
        "env.kwargs.size",
        "algo.learning_rate",
        "algo.gamma",
        "algo.batch_size",
    ]
    assert found[0] == Difference("env.kwargs.size", None, 4, None, "a.yaml:7")
    assert found[1].old.items() >= linear.items()
    assert found[1].new_from == "default"
    assert found[2] == Difference("algo.gamma", 0.9, 0.95, "a.yaml:5", "a.yaml:8")
    assert repr((found[3].old, found[3].new)) == "(1, 1.0)"  # one sample, and the whole rollout


def test_equal_configs_and_runs(folder: Path) -> None:
    """The name is no setting, and a saved run equals what it came from."""
    first = resolve("FrozenLake-v1:ppo")
    assert compare(first, resolve("FrozenLake-v1:ppo_deterministic")) != []
    assert compare(first, from_saved(first.config.model_dump(mode="json") | {"name": "other"}), everything=True) == []
    other = from_saved(first.config.model_dump(mode="json"), ["seed=7"])
    assert [(d.key, d.old, d.new, d.old_from) for d in compare(first, other)] == [("train.seed", 0, 7, "default")]


def test_other_algorithms_keys_have_no_origin(folder: Path) -> None:
    """A key one side does not have is told from one that is null."""
    found = {d.key: d for d in compare(resolve("CartPole-v1:ppo"), resolve("CartPole-v1:reinforce"))}
    assert found["algo.target_kl"] == Difference("algo.target_kl", None, None, "default", None)
    assert found["algo.baseline"].old_from is None
    assert found["algo.baseline"].new == "mean"
    sections = [key.partition(".")[0] for key in found]
    assert sections == sorted(sections, key=["env", "policy", "algo", "train", "eval", "log", "spec"].index)


def test_texts_of_the_spec_only_on_demand(folder: Path) -> None:
    """What training reads of the spec always counts."""
    Path("a.yaml").write_text(HEAD + "variants:\n  ppo: {}\n  b_ppo: {spec: {solved_at: 9, description: second}}\n")
    sides = resolve("a.yaml:ppo"), resolve("a.yaml:b_ppo")
    assert [difference.key for difference in compare(*sides)] == ["spec.solved_at"]
    everything = [difference.key for difference in compare(*sides, everything=True)]
    assert everything == ["spec.description", "spec.solved_at"]

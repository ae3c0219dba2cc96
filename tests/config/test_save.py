"""Runs as presets: what is resolved from the saved variant is the run's config."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import small_envs  # noqa: F401 - registers the envs

from gymnast.config.compare import compare
from gymnast.config.format import format_text
from gymnast.config.layout import write_text
from gymnast.config.load import from_saved, resolve
from gymnast.config.save import Saved, save_variant
from gymnast.config.schema import RunConfig
from gymnast.envs.defaults import generic_defaults
from gymnast.errors import ConfigError, UsageError

NOTE = "Saved from run abcde."


def run_of(reference: str, *overrides: str, **settings: Any) -> RunConfig:
    """The config of a run as it is read back from its folder."""
    resolved = resolve(reference, overrides, settings=settings, generic=generic_defaults)
    return from_saved(resolved.config.model_dump(mode="json")).config


def save(run: RunConfig, reference: str, **options: Any) -> Saved:
    saved = save_variant(run, reference, [NOTE], **options)
    write_text(saved.path, saved.text)
    return saved


def same(run: RunConfig, reference: str) -> None:
    """Equal to the last key and type, but for name and seed."""
    back = resolve(reference).config
    first, second = (config.model_dump_json(exclude={"name": True, "train": {"seed"}}) for config in (run, back))
    assert first == second
    assert back.train.seed == 0


RUNS: list[tuple[str, tuple[str, ...]]] = [
    ("CartPole-v1:ppo", ()),
    ("CartPole-v1:a2c", ("seed=5", "algo.optimizer.eps=1e-8", "device=cpu")),
    ("CartPole-v1:reinforce", ("vec_steps=5000", "algo.max_grad_norm=null", "policy.hidden=[8]")),
    ("CartPole-v1:ppo", ("algo.batch_size=1.0", "algo.n_epochs=3", "n_envs=auto", "algo.n_steps=auto")),
    ("CartPole-v1:ppo", ("algo.batch_size=1", "stop=[{metric: rollout/return_mean, at_least: 400}]")),
    ("CartPole-v1:ppo", ("algo.learning_rate=[[0, 1e-3], [0.5, 1e-4]]", "algo.clip_range=lin_0.123456789")),
    ("CartPole-v1:ppo", ("algo.gamma={schedule: cosine, start: 0.9, end: 1.0, decay_end: 5000, axis: env_steps}",)),
    ("CliffWalking-v1:ppo", ("env.wrappers=[one_hot, {id: reward_clip, low: -2, high: 0}]", "eval.env.n_envs=2")),
    ("CliffWalking-v1:ppo", ("eval.env.wrappers=[{id: x, args: {id: 1}}]", "spec.solved_at=-15")),
    ("FrozenLake-v1:ppo_8x8", ("env.kwargs.is_slippery=false", "algo.normalize_advantage=off")),
    ("Taxi-v3:ppo_masked", ("action_mask=off", "eval.start_at=-5")),
    ("Walk-v0:ppo", ("env.module=small_envs", "hidden=[4, 4]")),
    ("CartPole-v1:ppo", ("plan={by: stage, tasks: {short: {env: {time_limit: 9}, solved_at: 9}, long: {}}}",)),
]


@pytest.mark.parametrize(("reference", "overrides"), RUNS)
def test_the_saved_variant_is_the_run(reference: str, overrides: tuple[str, ...], folder: Path) -> None:
    """Overrides, schedules, wrappers, other budgets, an env without a shipped file; also under a name without algorithm."""
    run = run_of(reference, *overrides)
    for name in ("mine", f"mine_{run.algo.id}", f"mine_{'a2c' if run.algo.id != 'a2c' else 'ppo'}"):
        saved = save(run, f"{run.env.id}:{name}")
        assert saved.reference == f"{run.env.id}:{name}"
        same(run, saved.reference)
    assert saved.path.parent == Path("configs")
    assert format_text(saved.text, "f") == saved.text
    assert saved.text.count(NOTE) == 3


def test_it_is_sparse_and_frozen(folder: Path) -> None:
    """Defaults and the env's facts stay away; what a layer below happens to say too is written all the same."""
    text = save(run_of("CliffWalking-v1:ppo", "algo.clip_range=lin_0.1"), "CliffWalking-v1:mine_ppo").text
    assert re.findall(r"^ {4}(\w+):", text, re.M) == ["env", "policy", "algo", "train", "eval"]
    for words in (
        "hidden: []",
        "learning_rate: lin_0.03",
        "clip_range: lin_0.1",
        "{id: reward_clip, low: -2, high: 0}",
    ):
        assert words in text
    for words in ("spec", "vf_coef", "seed", "vec_steps", "id: ppo", "device", "decay_start"):
        assert words not in text
    assert "id: ppo" in save(run_of("CliffWalking-v1:ppo"), "CliffWalking-v1:best", output=Path("o.yaml")).text


def test_it_joins_an_existing_file(folder: Path) -> None:
    """Comments, quotes and the other variants stay; defaults of that file are seen through."""
    own = Path("configs/CartPole-v1.yaml")
    own.parent.mkdir()
    before = (
        "# mine\nid: CartPole-v1  # the pole\ndefaults:\n  log: {window: 7}   # short\n"
        "variants:\n  # about a\n  a_ppo: {extends: ppo, algo: {gamma: 0.9}} # beside\n# the end\n"
    )
    own.write_text(before)
    run = run_of("CartPole-v1:a_ppo", "log.window=100", "seed=3")
    saved = save(run, "CartPole-v1:b_ppo")
    for line in before.splitlines():
        assert line in saved.text.splitlines()
    assert saved.text.endswith("# the end\n")
    same(run, "CartPole-v1:b_ppo")
    assert resolve("CartPole-v1:a_ppo").config.log.window == 40
    assert resolve("CartPole-v1:b_ppo").config.log.window == 100


def test_existing_variants_are_safe(folder: Path) -> None:
    """Own and shipped ones; --force lays the run over them, exactly."""
    run = run_of("CartPole-v1:ppo", "algo.gamma=0.5", "log.window=100", "policy.normalize_obs=false")
    with pytest.raises(UsageError, match=r"presets/envs/CartPole-v1\.yaml has a variant 'ppo' already.*--force"):
        save(run, "CartPole-v1:ppo")
    assert not Path("configs").exists()
    save(run, "CartPole-v1:ppo", force=True)
    same(run, "CartPole-v1:ppo")
    other = run_of("CartPole-v1:a2c")
    save(other, "CartPole-v1:x")
    with pytest.raises(UsageError, match=r"configs/CartPole-v1\.yaml has a variant 'x' already"):
        save(run, "CartPole-v1:x")
    same(other, "CartPole-v1:x")
    saved = save(run, "CartPole-v1:x", force=True)
    same(run, "CartPole-v1:x")
    assert saved.text.count("x:") == 1
    assert saved.text.count(NOTE) == 2


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("Acrobot-v1:ppo", "The run trained Taxi-v4, not Acrobot-v1: save it as Taxi-v4:ppo"),
        ("Taxi-v4", "Name the new variant, for example Taxi-v4:my_ppo"),
        ("Taxi-v4:2fast", "'2fast' cannot name a variant"),
        ("Taxi-v4:a b", "cannot name a variant"),
    ],
)
def test_wrong_names(reference: str, words: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=words):
        save(run_of("Taxi-v4:ppo"), reference)
    assert list(folder.iterdir()) == []


def test_renamed_ids_and_other_files(folder: Path) -> None:
    """A former id means the present one; a file elsewhere is trained by its path."""
    run = run_of("Taxi-v4:ppo", "algo.gamma=0.8")
    assert save(run, "Taxi-v3:old_ppo").reference == "Taxi-v4:old_ppo"
    saved = save(run, "Taxi-v4:far_ppo", output=Path("deep/er/taxi.yaml"))
    assert saved.reference == "deep/er/taxi.yaml:far_ppo"
    same(run, saved.reference)
    with pytest.raises(UsageError, match=r"is for Taxi-v4, not for CartPole-v1"):
        save(run_of("CartPole-v1:ppo"), "CartPole-v1:mine_ppo", output=saved.path)
    with pytest.raises(UsageError, match=r"must end in \.yaml"):
        save(run, "Taxi-v4:x_ppo", output=Path("taxi.txt"))


def test_what_no_variant_can_take_away(folder: Path) -> None:
    """A key of an open mapping in the defaults: said, with file and line, and nothing is written."""
    run = run_of("FrozenLake-v1:ppo")
    own = Path("configs/FrozenLake-v1.yaml")
    own.parent.mkdir()
    own.write_text("id: FrozenLake-v1\ndefaults:\n  env: {kwargs: {map_name: 8x8}}\n")
    with pytest.raises(ConfigError, match=r"configs/FrozenLake-v1\.yaml:3 sets 'env\.kwargs\.map_name' to '8x8'"):
        save(run, "FrozenLake-v1:mine_ppo")
    assert "variants" not in own.read_text()


def test_the_run_itself_is_equal_to_the_preset(folder: Path) -> None:
    """As `config diff` sees it."""
    run = run_of("Pendulum-v1:ppo", "seed=9", "algo.vf_coef=lin_1")
    save(run, "Pendulum-v1:mine_ppo")
    found = compare(from_saved(run.model_dump(mode="json")), resolve("Pendulum-v1:mine_ppo"), everything=True)
    assert [(difference.key, difference.old, difference.new) for difference in found] == [("train.seed", 9, 0)]

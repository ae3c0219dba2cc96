"""The schema for editors against the loader: what it refuses the loader refuses, what is shipped it accepts."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from gymnast.config import files
from gymnast.config.algorithms import CONFIGS
from gymnast.config.files import SHIPPED, parse_yaml
from gymnast.config.jsonschema import config_schema, schema_text
from gymnast.config.load import resolve
from gymnast.errors import GymnastError

SCHEMA = config_schema()
VALIDATOR = Draft7Validator(SCHEMA)
PRESETS = sorted([*SHIPPED.glob("envs/*.yaml"), *SHIPPED.glob("bases/*.yaml")])

VALID = """
id: Mine-v0
aliases: [Old-v0]
spec:
  solved_at: 10
  observation: [{name: x, low: -1, values: [a, b]}]
  reward_range: [null, 1]
  random_score: {score: 1, source: here}
  reference_scores: {someone: {score: 2, source: there}}
defaults:
  env: {kwargs: {anything: {goes: [1, x]}}}
  train: {env_steps: 1e5}
  eval:
  log: {window: 10}
variants:
  ppo:
    env: {n_envs: auto, wrappers: [one_hot, {id: reward_clip, low: -1, high: 1}, {id: x, args: {y: 1}}], time_limit: null}
    policy: {hidden: [], critic_hidden: null, dropout: 0}
    algo:
      learning_rate: lin_2.5e-4
      gamma: {schedule: linear, start: 0.9, end: 1, decay_end: 0.5}
      clip_range: [[0, 0.2], [0.5, 0.1]]
      n_epochs: {schedule: constant, value: 4}
      ent_coef: {schedule: piecewise, points: [[0, 0.1], [0.5, 0]], interpolate: linear, reset_optimizer: true}
      vf_coef: {schedule: cosine, start: 1, floor: 0.1}
      max_grad_norm: null
      target_kl: {schedule: exponential, start: 0.1, end: 0.01}
      batch_size: 0.5
      optimizer: {id: adam, betas: [0.9, 0.99]}
    train: {stop: [{metric: rollout/return_mean, at_least: 5}]}
    eval: {env: {time_limit: 5}}
    spec: {random_score: {score: 3}}
  wide_ppo: {extends: ppo}
  named: {algo: {id: a2c, n_steps: auto}}
  reinforce:
"""


def loaded(text: str) -> Any:
    return parse_yaml(text, "test")[0]


def schema_refuses(data: Any) -> bool:
    return not VALIDATOR.is_valid(data)


def loader_refuses(data: dict[str, Any]) -> bool:
    """Whether any variant of the file cannot be resolved; an error of any other kind is a bug."""
    with Path("mine.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(data, file)
    try:
        for name in files.read(Path("mine.yaml")).variants:
            resolve(f"mine.yaml:{name}")
    except GymnastError:
        return True
    return False


def put(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one value changed; `path` is dotted."""
    changed = copy.deepcopy(data)
    *parents, last = path.split(".")
    node = changed
    for key in parents:
        if not isinstance(node.get(key), dict):
            node[key] = {}
        node = node[key]
    node[last] = value
    return changed


def test_the_schema_is_a_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    text = schema_text()
    assert "gymnast:definition" not in text
    used = {ref for ref in SCHEMA["definitions"] if f'"#/definitions/{ref}"' in text}
    assert used == SCHEMA["definitions"].keys()


def test_the_shipped_copy_is_up_to_date() -> None:
    """Otherwise: gymnast config schema --output src/gymnast/presets/config.schema.json"""
    assert (SHIPPED / "config.schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_shipped_files_are_valid(path: Path) -> None:
    assert list(VALIDATOR.iter_errors(loaded(path.read_text(encoding="utf-8")))) == []


def test_everything_a_file_may_say(folder: Path) -> None:
    data = loaded(VALID)
    assert list(VALIDATOR.iter_errors(data)) == []
    assert not loader_refuses(data)


BROKEN: list[tuple[str, Any]] = [
    ("extnds", "classic"),
    ("id", 5),
    ("aliases", "Old-v0"),
    ("variants", [1]),
    ("variants.ppo", 3),
    ("defaults.extends", "x"),
    ("defaults.name", "x"),
    ("variants.ppo.name", "x"),
    ("variants.wide_ppo.extends", 0),
    ("variants.ppo.polcy", {"hidden": [4]}),
    ("variants.ppo.train", 500000),
    ("variants.ppo.env.n_env", 4),
    ("variants.ppo.env.n_envs", "many"),
    ("variants.ppo.env.n_envs", 0),
    ("variants.ppo.env.vectorization", "threads"),
    ("variants.ppo.env.kwargs", [1]),
    ("variants.ppo.env.wrappers", [{"low": 1}]),
    ("variants.ppo.env.wrappers", "one_hot"),
    ("variants.ppo.policy.hidden", 64),
    ("variants.ppo.policy.hidden", [64, -1]),
    ("variants.ppo.policy.activation", "swish"),
    ("variants.ppo.policy.dropout", 1),
    ("variants.ppo.policy.layer_norm", 3),
    ("variants.ppo.algo.id", "pp0"),
    ("variants.ppo.algo.gama", 0.9),
    ("variants.ppo.algo.gamma", 1.5),
    ("variants.ppo.algo.gamma", True),
    ("variants.ppo.algo.learning_rate", 0),
    ("variants.ppo.algo.learning_rate", "linear_3e-4"),
    ("variants.ppo.algo.learning_rate", "lin_x"),
    ("variants.ppo.algo.learning_rate", "lin_-1"),
    ("variants.ppo.algo.learning_rate", {"schedule": "sine", "start": 1}),
    ("variants.ppo.algo.learning_rate", {"start": 1, "end": 0}),
    ("variants.ppo.algo.learning_rate", {"schedule": "linear", "begin": 1}),
    ("variants.ppo.algo.learning_rate", {"schedule": "linear", "start": 0, "end": 1}),
    ("variants.ppo.algo.learning_rate", {"schedule": "exponential", "start": 1, "end": 0}),
    ("variants.ppo.algo.clip_range", []),
    ("variants.ppo.algo.clip_range", [[0, 0.2, 1]]),
    ("variants.ppo.algo.clip_range", [[0, 0.2], [0.5, -0.1]]),
    ("variants.ppo.algo.n_epochs", 0),
    ("variants.ppo.algo.batch_size", 1.5),
    ("variants.ppo.algo.optimizer", "adam"),
    ("variants.ppo.algo.optimizer.betas", [0.9]),
    ("variants.named.algo.clip_range", 0.2),
    ("variants.ppo.train.env_steps", -5),
    ("variants.ppo.train.env_steps", 1.5),
    ("variants.ppo.train.stop", [{"at_least": 1}]),
    ("variants.ppo.eval.standard_errors", -1),
    ("variants.ppo.log.window", None),
    ("spec.solvd_at", 1),
    ("spec.observation", [{"low": 1}]),
    ("spec.random_score.score", "high"),
    ("spec.reward_range", [1]),
]


@pytest.mark.parametrize(("path", "value"), BROKEN, ids=str)
def test_broken_files_are_refused_by_both(path: str, value: Any, folder: Path) -> None:
    data = put(loaded(VALID), path, value)
    assert schema_refuses(data)
    assert loader_refuses(data)


def test_two_mistakes_are_two_errors() -> None:
    data = put(put(loaded(VALID), "variants.ppo.evl", {}), "variants.named.trian", {})
    assert len(list(VALIDATOR.iter_errors(data))) == 2


def test_algorithms_by_id_and_by_name() -> None:
    """Without an id the keys of all algorithms may stand; with one only its own."""
    for name, model in CONFIGS.items():
        for key in model.model_fields:
            bare = {"variants": {"x": {"algo": {key: name if key == "id" else _some(key)}}}}
            assert not schema_refuses(bare), (name, key)
            assert not schema_refuses(put(bare, "variants.x.algo.id", name)), (name, key)
        foreign = {key for other in CONFIGS.values() for key in other.model_fields} - model.model_fields.keys()
        for key in foreign:
            assert schema_refuses({"variants": {"x": {"algo": {"id": name, key: _some(key)}}}}), (name, key)


def _some(key: str) -> Any:
    """A valid value of an algorithm's key: its default."""
    for name, model in CONFIGS.items():
        if key in model.model_fields:
            return model(id=name).model_dump(mode="json")[key]
    raise AssertionError(key)


def test_descriptions_are_the_texts_in_the_source() -> None:
    """Own ones, inherited ones, those of sections; nested in partial models."""
    properties = SCHEMA["definitions"]["PPOConfig"]["properties"]
    assert properties["gamma"]["description"] == "Discount."
    assert properties["batch_size"]["description"] == "Minibatch size, or a fraction (≤ 1) of the rollout."
    assert SCHEMA["definitions"]["EnvConfig"]["description"].startswith("Which environment")
    assert SCHEMA["definitions"]["EnvConfig"]["properties"]["kwargs"]["description"] == "Arguments of `gymnasium.make`."
    assert "required" not in SCHEMA["definitions"]["EnvConfig"]
    assert "required" not in SCHEMA["definitions"]["Score"]
    assert SCHEMA["definitions"]["StopRule"]["required"] == ["metric"]


def test_training_does_not_pay_for_it() -> None:
    """What only the editing commands need is not imported when a config is resolved."""
    code = "import sys; from gymnast.config.load import resolve; resolve('CartPole-v1:ppo'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "gymnast.config.schema" in modules
    assert modules.isdisjoint(
        f"gymnast.config.{name}" for name in ("jsonschema", "format", "layout", "save", "compare")
    )


# Of every kind but quoted numbers, and numbers and words for switches: pydantic takes them, an editor should not.
VALUES = st.one_of(
    st.none(),
    st.sampled_from([-1, 0, 0.5, 1, 2, 3.5, 1000, "auto", "off", "word", "lin_0.1", "lin_", [], [1], [[0, 0.1]], {}]),
    st.sampled_from([{"schedule": "linear", "start": 0.5}, {"schedule": "constant"}, {"id": "adam"}, {"x": 1}]),
)


def _paths(data: Any, prefix: str = "") -> list[str]:
    found = []
    for key, value in data.items():
        found.append(prefix + key)
        if isinstance(value, dict) and "kwargs" not in key:
            found += _paths(value, f"{prefix}{key}.")
    return [path for path in found if not path.endswith("reset_optimizer")]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_the_schema_refuses_the_loader_refuses(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A random change of the valid file. The other way round need not hold: the loader also sees how layers fit."""
    whole = loaded(VALID)
    changed = put(whole, data.draw(st.sampled_from(_paths(whole))), data.draw(VALUES))
    if not schema_refuses(changed):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cross"))
        assert loader_refuses(changed)

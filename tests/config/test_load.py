"""Layers, names and errors of the config: every value says where it came from, every mistake where it stands."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gymnast.config import files
from gymnast.config.load import from_saved, resolve
from gymnast.config.names import ALIASES, RENAMED_ENVS
from gymnast.config.overrides import find_key, known_keys
from gymnast.config.schedule import Linear
from gymnast.config.variants import infer_algorithm, split_reference
from gymnast.errors import ConfigError, UsageError

MINE = "Mine-v0"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Start in a folder without ./configs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str) -> str:
    """A config file below the working folder."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


def own(text: str, path: str = "mine.yaml", variant: str = "ppo", overrides: tuple[str, ...] = (), **options):
    """Resolve a variant of a file whose first two lines are its id and a budget."""
    head = f"id: {MINE}\ndefaults: {{train: {{env_steps: 1000}}}}\n"
    write(path, head + textwrap.dedent(text).lstrip("\n"))
    return resolve(f"{path}:{variant}", overrides, **options)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A stand-in for the shipped presets: tests of layering must not depend on the numbers in the real ones."""
    monkeypatch.setattr(files, "SHIPPED", tmp_path / "package" / "presets")
    write(
        "package/presets/bases/small.yaml",
        """
        defaults:
          env: {n_envs: 2, kwargs: {from: base}}
          algo: {gamma: 0.5}
          policy: {hidden: [1, 1]}
        variants:
          ppo:
            algo: {gamma: 0.6, clip_range: 0.6}
          a2c:
            algo: {gamma: 0.65}
        """,
    )
    write(
        f"package/presets/envs/{MINE}.yaml",
        f"""
        id: {MINE}
        extends: small
        spec: {{solved_at: 10, description: shipped}}
        defaults:
          algo: {{gae_lambda: 0.7}}
          env: {{kwargs: {{size: 4}}}}
          train: {{env_steps: 1000}}
        variants:
          ppo:
            algo: {{clip_range: 0.7, ent_coef: 0.01}}
          wide_ppo:
            extends: ppo
            policy: {{hidden: [9, 9, 9]}}
          widest_ppo:
            extends: wide_ppo
            algo: {{ent_coef: 0.02}}
          tuned:
            algo: {{id: a2c}}
        """,
    )
    return tmp_path


# ---- layers ----------------------------------------------------------------------------------------------------------


def test_layers_in_their_order(shipped):
    config = resolve(f"{MINE}:ppo").config
    assert config.name == f"{MINE}:ppo" and config.env.id == MINE and config.algo.id == "ppo"
    assert config.env.n_envs == 2  # base defaults
    assert config.algo.gamma == 0.6  # base settings of the algorithm, over the base's defaults
    assert config.algo.gae_lambda == 0.7  # env file defaults
    assert config.algo.clip_range == 0.7  # variant, over the base's settings of the algorithm
    assert config.env.kwargs == {"from": "base", "size": 4}  # mappings merge
    assert config.policy.hidden == [1, 1]
    assert config.algo.vf_coef == 0.5  # the schema's own default
    assert config.spec.solved_at == 10


def test_variants_inherit_over_several_generations(shipped):
    config = resolve(f"{MINE}:widest_ppo").config
    assert config.algo.ent_coef == 0.02  # its own
    assert config.policy.hidden == [9, 9, 9]  # its parent's; lists replace
    assert config.algo.clip_range == 0.7  # its grandparent's
    assert resolve(f"{MINE}:wide_ppo").config.algo.ent_coef == 0.01


def test_the_algorithm_comes_from_the_name_or_from_the_file(shipped):
    assert resolve(f"{MINE}:widest_ppo").config.algo.id == "ppo"
    tuned = resolve(f"{MINE}:tuned").config
    assert tuned.algo.id == "a2c" and tuned.algo.gamma == 0.65  # and with it the base's settings of that algorithm
    assert [infer_algorithm(name) for name in ("ppo", "rgb_ppo", "a2c_v2", "fast")] == ["ppo", "ppo", "a2c", None]


def test_own_configs_override_the_shipped_ones(shipped):
    write(
        f"configs/{MINE}.yaml",
        f"""
        id: {MINE}
        defaults:
          algo: {{gae_lambda: 0.8}}
          env: {{kwargs: {{size: 8}}}}
        variants:
          ppo:
            algo: {{clip_range: 0.8}}
          new_ppo:
            extends: ppo
            algo: {{ent_coef: 0.5}}
        """,
    )
    config = resolve(f"{MINE}:ppo").config
    assert (config.algo.clip_range, config.algo.ent_coef, config.algo.gae_lambda) == (0.8, 0.01, 0.8)
    assert config.env.kwargs == {"from": "base", "size": 8} and config.spec.description == "shipped"
    new = resolve(f"{MINE}:new_ppo").config
    assert (new.algo.clip_range, new.algo.ent_coef) == (0.8, 0.5)
    # A shipped variant inherits what ./configs changed in its parent.
    assert resolve(f"{MINE}:wide_ppo").config.algo.clip_range == 0.8


def test_own_bases_come_first(shipped):
    write("configs/bases/small.yaml", "defaults: {algo: {gamma: 0.1}}\n")
    assert resolve(f"{MINE}:ppo").config.algo.gamma == 0.1


def test_a_file_by_path_lies_on_top(shipped):
    write(f"configs/{MINE}.yaml", f"id: {MINE}\nvariants: {{ppo: {{algo: {{clip_range: 0.8, ent_coef: 0.3}}}}}}\n")
    write("somewhere/else.yaml", f"id: {MINE}\nvariants: {{ppo: {{algo: {{clip_range: 0.9}}}}}}\n")
    config = resolve("somewhere/else.yaml:ppo").config
    assert (config.algo.clip_range, config.algo.ent_coef, config.algo.gae_lambda) == (0.9, 0.3, 0.7)
    # The file of ./configs given by its path is not layered twice, and is found without one.
    assert resolve(f"configs/{MINE}.yaml:ppo").config == resolve(f"{MINE}:ppo").config


def test_a_schedule_replaces_a_number_whole_and_the_other_way_round(shipped):
    text = (
        f"id: {MINE}\nvariants:\n  ppo:\n    algo: {{clip_range: {{schedule: linear, start: 0.4, decay_end: 0.5}}}}\n"
    )
    write("a.yaml", text)
    assert resolve("a.yaml:ppo").config.algo.clip_range == Linear(schedule="linear", start=0.4, decay_end=0.5)
    config = resolve("a.yaml:ppo", ["algo.clip_range=0.3"]).config
    assert config.algo.clip_range == 0.3
    config = resolve("a.yaml:ppo", ["algo.clip_range={schedule: linear, start: 0.1}"]).config
    assert config.algo.clip_range == Linear(schedule="linear", start=0.1)  # nothing of the old one is left
    config = resolve("a.yaml:ppo", ["algo.clip_range.end=0.2"]).config
    assert config.algo.clip_range == Linear(schedule="linear", start=0.4, end=0.2, decay_end=0.5)


def test_command_line_wins_and_settings_win_over_it(shipped):
    config = resolve(f"{MINE}:ppo", ["algo.clip_range=0.9", "algo.clip_range=0.95"]).config
    assert config.algo.clip_range == 0.95  # the last one
    config = resolve(f"{MINE}:ppo", ["train.seed=3"], settings={"train.seed": 4}).config
    assert config.train.seed == 4


def test_one_budget_replaces_the_other(shipped):
    resolved = resolve(f"{MINE}:ppo", ["train.vec_steps=7"])
    assert (resolved.config.train.env_steps, resolved.config.train.vec_steps) == (None, 7)
    assert "train.env_steps" not in resolved.origins
    saved = resolved.config.model_dump(mode="json")
    again = from_saved(saved, settings={"train.env_steps": 99}).config
    assert (again.train.env_steps, again.train.vec_steps) == (99, None)


def test_a_saved_config_comes_back_the_same(shipped):
    config = resolve(f"{MINE}:ppo", ["lr=lin_1e-3", "env.wrappers=[reward_clip]"]).config
    again = from_saved(config.model_dump(mode="json"))
    assert again.config == config and set(again.origins.values()) == {"saved run"}
    changed = from_saved(config.model_dump(mode="json"), ["gamma=0.3"])
    assert changed.config.algo.gamma == 0.3 and changed.origins["algo.gamma"] == "command line (gamma=0.3)"


def test_an_env_without_a_file_gets_generic_settings():
    asked = []

    def generic(env_id, algorithm, section):
        asked.append((env_id, algorithm))
        return {"env": {"n_envs": 3}, "train": {"env_steps": 5}}

    resolved = resolve("Other-v3", generic=generic)
    assert asked == [("Other-v3", "ppo")] and resolved.config.name == "Other-v3:ppo"
    assert resolved.config.env.id == "Other-v3" and resolved.origins["env.n_envs"] == "chosen from the env's spaces"
    resolve("package.module:Other-v3:a2c", generic=generic)
    assert asked[1] == ("package.module:Other-v3", "a2c")
    with pytest.raises(UsageError, match=r"No config for 'CartPol-v1'. Did you mean 'CartPole-v1'"):
        resolve("CartPol-v1:ppo")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("CartPole-v1", ("CartPole-v1", None)),
        ("CartPole-v1:ppo", ("CartPole-v1", "ppo")),
        ("ALE/Pong-v5:rgb_ppo", ("ALE/Pong-v5", "rgb_ppo")),
        ("module:Env-v0", ("module:Env-v0", None)),
        ("module:Env-v0:ppo", ("module:Env-v0", "ppo")),
        ("my/file.yaml:ppo", ("my/file.yaml", "ppo")),
    ],
)
def test_references(reference, expected):
    assert split_reference(reference) == expected


def test_ppo_is_the_variant_nobody_names(shipped):
    assert resolve(MINE).config.name == f"{MINE}:ppo"
    write("b.yaml", "id: Other-v0\ndefaults: {train: {env_steps: 5}}\nvariants: {x_a2c: , y_a2c: }\n")
    with pytest.raises(UsageError, match="Say which variant: Other-v0:x_a2c, Other-v0:y_a2c"):
        resolve("b.yaml")


def test_renamed_envs_are_run_under_their_new_name(shipped, monkeypatch):
    monkeypatch.setitem(RENAMED_ENVS, "Mine-old", MINE)
    resolved = resolve("Mine-old:ppo")
    assert resolved.config.env.id == MINE and resolved.notices == [f"Mine-old is now {MINE}; running that."]
    assert resolve(f"{MINE}:ppo").notices == []
    assert RENAMED_ENVS["Taxi-v3"] == "Taxi-v4" and RENAMED_ENVS["CliffWalking-v0"] == "CliffWalking-v1"


# ---- where each value came from --------------------------------------------------------------------------------------


def test_every_value_knows_its_origin(shipped):
    origins = resolve(f"{MINE}:widest_ppo", ["gamma=0.1"], settings={"train.seed": 1}).origins
    env_file = f"presets/envs/{MINE}.yaml"
    assert origins["env.n_envs"] == "presets/bases/small.yaml:2"
    assert origins["env.kwargs.from"] == "presets/bases/small.yaml:2"
    assert origins["env.kwargs.size"] == f"{env_file}:6"
    assert origins["algo.gae_lambda"] == f"{env_file}:5"
    assert origins["algo.clip_range"] == f"{env_file}:10"
    assert origins["policy.hidden"] == f"{env_file}:13"
    assert origins["algo.ent_coef"] == f"{env_file}:16"
    assert origins["spec.solved_at"] == f"{env_file}:3"
    assert origins["algo.gamma"] == "command line (gamma=0.1)"
    assert origins["train.seed"] == "command line"
    assert origins["env.id"] == "config id" and origins["algo.id"] == "variant name"


def test_a_replaced_schedule_leaves_no_origins_behind():
    resolved = own(
        "variants:\n  ppo:\n    algo:\n      learning_rate: {schedule: linear, start: 1e-3}\n",
        overrides=("algo.learning_rate.end=1e-5", "algo.learning_rate=1e-4"),
    )
    assert [key for key in resolved.origins if key.startswith("algo.learning_rate")] == ["algo.learning_rate"]


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        # Stable-Baselines3 and rl-zoo
        ("n_timesteps=1e5", "train.env_steps", 100_000),
        ("n_envs=4", "env.n_envs", 4),
        ("n_steps=64", "algo.n_steps", 64),
        ("learning_rate=lin_1e-3", "algo.learning_rate", Linear(schedule="linear", start=1e-3, end=0.0)),
        ("net_arch=[32, 32]", "policy.hidden", [32, 32]),
        ("normalize=true", "policy.normalize_obs", True),
        ("n_eval_episodes=7", "eval.episodes", 7),
        ("eval_freq=500", "eval.every", 500),
        ("save_freq=500", "train.checkpoint_every", 500),
        ("env_kwargs={size: 3}", "env.kwargs", {"size": 3}),
        # CleanRL
        ("total_timesteps=500", "train.env_steps", 500),
        ("total-timesteps=500", "train.env_steps", 500),
        ("num_envs=4", "env.n_envs", 4),
        ("num_steps=32", "algo.n_steps", 32),
        ("update_epochs=3", "algo.n_epochs", 3.0),
        ("clip_coef=0.1", "algo.clip_range", 0.1),
        ("num_minibatches=4", "algo.batch_size", 0.25),
        ("num_minibatches=1", "algo.batch_size", 1.0),
        ("norm_adv=false", "algo.normalize_advantage", "off"),
        ("norm_adv=true", "algo.normalize_advantage", "batch"),
        # the last part of a key where it is unique
        ("gae_lambda=0.8", "algo.gae_lambda", 0.8),
        ("weight_decay=0.1", "algo.optimizer.weight_decay", 0.1),
        ("seed=3", "train.seed", 3),
        # values as YAML reads them
        ("algo.learning_rate=1e-4", "algo.learning_rate", 1e-4),
        ("normalize_advantage=off", "algo.normalize_advantage", "off"),
        ("train.stop_when_solved=False", "train.stop_when_solved", False),
        ("algo.target_kl=null", "algo.target_kl", None),
        ("algo.max_grad_norm=~", "algo.max_grad_norm", None),
        ("env.kwargs.map_name=8x8", "env.kwargs", {"map_name": "8x8"}),
        ("env.kwargs.state=Level2-1", "env.kwargs", {"state": "Level2-1"}),
        ("eval.env.time_limit=5", "eval.env", {"time_limit": 5}),
    ],
)
def test_overrides(override, key, value):
    config = own("variants: {ppo: }\n", overrides=(override,)).config
    node = config
    for part in key.split("."):
        node = getattr(node, part)
    assert node == value and type(node) is type(value)


def test_every_alias_leads_to_a_key_that_exists():
    known = known_keys("ppo")
    for alias, key in ALIASES.items():
        assert key in known or key == "env.kwargs", alias
        assert ".".join(find_key(alias, "ppo")) == key


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("algo.clip_rang=0.1", r"Unknown key 'algo.clip_rang' for ppo. Did you mean 'algo.clip_range'"),
        ("gama=0.1", "Did you mean 'algo.gamma'"),
        ("num_env=3", "Did you mean 'num_envs'"),
        ("nothing_like_it=3", "Unknown key 'nothing_like_it' for ppo"),
        ("id=x", "could mean env.id or policy.id or algo.id or algo.optimizer.id: write it in full"),
        ("gamma", "'gamma' is not an override: write key=value"),
        ("=3", "is not an override"),
        ("policy.hidden=[1,", "is not valid YAML"),
        ("num_minibatches=0", "'num_minibatches' must be a whole number of at least 1"),
        ("num_minibatches=many", "'num_minibatches' must be a whole number of at least 1"),
        ("norm_adv=[1]", "command line"),
        ("gamma=fast", r"command line \(gamma=fast\): 'algo.gamma': expected a number or a schedule, not 'fast'\.$"),
        ("lr=lin_fast", "'algo.learning_rate': 'lin_fast' is not a schedule: .* as in lin_2.5e-4\\.$"),
        ("lr=[[0, 1e-3], [1, -2]]", r"'algo.learning_rate': must be at least 0 \(got -2\)\.$"),
        ("policy.dropout=1.5", r"'policy.dropout': input should be less than 1 \(got 1.5\)\.$"),
        ("policy.activation=than", r"input should be 'tanh', .* \(got 'than'\)\.$"),
        ("gamma=2", r"command line \(gamma=2\): 'algo.gamma': must be at most 1 \(got 2\)\.$"),
        ("gamma=NaN", "'algo.gamma': must be a finite number"),
        ("train.seed=-1", "'train.seed': input should be greater than or equal to 0"),
        ("train.env_steps=10.5", "'train.env_steps': input should be a valid integer"),
        ("algo=a2c", r"command line \(algo=a2c\): 'algo' must be a mapping"),
        ("lr=[[0.5, 1], [0.1, 1]]", "'algo.learning_rate': positions of a piecewise schedule must increase"),
        ("lr={schedule: linear}", "'algo.learning_rate.start' is missing"),
    ],
)
def test_wrong_overrides_are_explained(override, words):
    with pytest.raises(UsageError, match=words):
        own("variants: {ppo: }\n", overrides=(override,))


# ---- mistakes in files: each with its line ---------------------------------------------------------------------------

MISTAKES = {
    "unknown key": (
        "algo:\n  gamma: 0.9\n  clip_rang: 0.1\n",
        7,
        "unknown key 'algo.clip_rang'. Did you mean 'clip_range'",
    ),
    "unknown section": ("alg:\n  gamma: 0.9\n", 6, "unknown key 'alg'. Did you mean 'algo'"),
    "unknown key deep inside": (
        "algo:\n  optimizer: {epz: 1}\n",
        6,
        "unknown key 'algo.optimizer.epz'. Did you mean 'eps'",
    ),
    "key of another algorithm": ("algo:\n  baseline: mean\n", 6, "unknown key 'algo.baseline'"),
    "wrong type": ("env:\n  n_envs: many\n", 6, "'env.n_envs': input should be a valid integer"),
    "text for a number": ("algo:\n  gamma: on\n", 6, "'algo.gamma': expected a number or a schedule, not 'on'"),
    "number for a list": ("policy:\n  hidden: 64\n", 6, "'policy.hidden': input should be a valid list"),
    "wrong item of a list": ("policy:\n  hidden: [64, x]\n", 6, "'policy.hidden.1': input should be a valid integer"),
    "wrong choice": ("policy:\n  activation: tan\n", 6, "'policy.activation': input should be 'tanh'"),
    "out of range": ("policy:\n  hidden: [8]\nalgo:\n  gamma: 1.5\n", 8, "'algo.gamma': must be at most 1 (got 1.5)"),
    "zero envs": ("env:\n  n_envs: 0\n", 6, "'env.n_envs': input should be greater than 0"),
    "negative steps": ("algo:\n  n_steps: -5\n", 6, "'algo.n_steps': input should be greater than 0"),
    "zero batch": ("algo:\n  batch_size: 0\n", 6, "'algo.batch_size': input should be greater than 0"),
    "zero budget": ("train:\n  env_steps: 0\n", 6, "'train.env_steps': input should be greater than 0"),
    "negative layer": ("policy:\n  hidden: [-1]\n", 6, "'policy.hidden.0': input should be greater than 0"),
    "zero epochs": ("algo:\n  n_epochs: 0\n", 6, "'algo.n_epochs': must be at least 1"),
    "both budgets": ("train:\n  env_steps: 5\n  vec_steps: 5\n", 7, "'train': give env_steps or vec_steps, not both"),
    "batch larger than the rollout": (
        "env: {n_envs: 2}\nalgo:\n  n_steps: 4\n  batch_size: 9\n",
        8,
        "'algo.batch_size' is 9, larger than the rollout of 2 envs × 4 steps = 8 samples",
    ),
    "unknown algorithm": ("algo:\n  gamma: 0.9\n  id: pppo\n", 7, "unknown algorithm 'pppo'. Did you mean 'ppo'"),
    "wrong kind of schedule": ("algo:\n  gamma: {schedule: liner, start: 1}\n", 6, "a schedule needs 'schedule:'"),
    "half a schedule": ("algo:\n  gamma: {schedule: linear}\n", 6, "'algo.gamma.start' is missing"),
    "extends itself": ("extends: ppo\n", 5, "variant 'ppo' extends itself"),
    "extends nothing": ("extends: ppx\n", 5, "variant 'ppo' extends unknown variant 'ppx'. Did you mean 'ppo'"),
    "scalar section": ("train: 5\n", 5, "'train' must be a mapping"),
    "algorithm by name": ("algo: ppo\n", 5, "'algo' must be a mapping"),
    "half a stop rule": (
        "train:\n  stop: [{metric: train/loss}]\n",
        6,
        "'train.stop.0': a stop rule needs exactly one",
    ),
    "contradiction": (
        "policy:\n  critic_hidden: [3]\n  shared_trunk: true\n",
        7,
        "critic_hidden is for separate trunks",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_file_and_line(mistake):
    body, line, words = MISTAKES[mistake]
    with pytest.raises(ConfigError) as caught:
        own("variants:\n  ppo:\n" + textwrap.indent(body, "    "))
    message = str(caught.value)
    assert message.startswith(f"mine.yaml:{line}: "), message
    assert words in message
    assert "\n" not in message and message.count("mine.yaml") == 1  # one mistake, one sentence


FILES = {
    "duplicate key": (
        "id: A-v0\nvariants:\n  ppo:\n    algo:\n      gamma: 0.9\n      gamma: 0.8\n",
        "x.yaml:6 is not valid YAML: found duplicate key",
    ),
    "broken YAML": ("id: A-v0\nvariants: [1\n", r"x.yaml:3 is not valid YAML"),
    "control character": ("id: A\x01v0\n", "x.yaml is not valid YAML"),
    "unknown top-level key": (
        "id: A-v0\nvariant:\n  ppo:\n",
        "x.yaml:2: unknown key 'variant'. Did you mean 'variants'",
    ),
    "no mapping": ("- 3\n", "x.yaml holds no mapping"),
    "empty": ("", "x.yaml holds no mapping"),
    "no id": ("variants: {ppo: }\n", "x.yaml needs 'id:'"),
    "section of variants": ("id: A-v0\nvariants: [ppo]\n", "x.yaml:2: 'variants' must be a mapping"),
    "scalar variant": ("id: A-v0\nvariants:\n  ppo: 5\n", "x.yaml:3: variant 'ppo' must be a mapping, got 5"),
    "unknown base": (
        "id: A-v0\nextends: clasic\nvariants: {ppo: }\n",
        "x.yaml:2: unknown base 'clasic'. Did you mean 'classic'",
    ),
    "nameless algorithm": ("id: A-v0\nvariants:\n  ppo:\n  best:\n", "x.yaml:4: name the algorithm"),
    "circle": (
        "id: A-v0\nvariants:\n  ppo:\n    extends: b\n  b:\n    extends: ppo\n",
        "x.yaml:6: variant 'ppo' extends itself",
    ),
    "no budget": ("id: A-v0\nvariants: {ppo: }\n", "A-v0:ppo has no budget: set train.env_steps"),
}


@pytest.mark.parametrize("mistake", FILES)
def test_a_file_that_cannot_be_used(mistake):
    text, words = FILES[mistake]
    Path("x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        resolve(f"x.yaml:{'best' if mistake == 'nameless algorithm' else 'ppo'}")
    assert str(caught.value).startswith(words)


def test_files_that_are_not_there_or_not_text():
    with pytest.raises(ConfigError, match=r"Cannot read config file nothing.yaml: No such file"):
        resolve("nothing.yaml:ppo")
    Path("image.yaml").write_bytes(b"id: \x89PNG\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        resolve("image.yaml:ppo")
    Path("folder.yaml").mkdir()
    with pytest.raises(ConfigError, match="Cannot read config file"):
        resolve("folder.yaml:ppo")


def test_an_unknown_variant_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match=r"Mine-v0 has no variant 'pppo'. Did you mean 'ppo'\? Known: ppo, a2c\."):
        own("variants: {ppo: , a2c: }\n", variant="pppo")


def test_yaml_is_read_as_people_mean_it():
    resolved = own(
        """
        variants:
          ppo:
            algo: {learning_rate: 1e-4, normalize_advantage: off, clip_range: .1}
            env: {kwargs: {word: on, answer: yes, none: null, number: 010, list: [1e3, 2]}}
        """
    )
    algo, kwargs = resolved.config.algo, resolved.config.env.kwargs
    assert (algo.learning_rate, algo.normalize_advantage, algo.clip_range) == (1e-4, "off", 0.1)
    assert kwargs == {"word": "on", "answer": "yes", "none": None, "number": 10, "list": [1000.0, 2]}
    assert type(kwargs["number"]) is int and type(kwargs["list"][0]) is float and type(kwargs["list"]) is list


def test_anchors_and_merges():
    resolved = own(
        """
        variants:
          a2c: &shared
            algo: {gamma: 0.3}
            policy: {hidden: [4]}
          ppo:
            <<: *shared
            algo: {gamma: 0.4}
        """
    )
    assert (resolved.config.algo.gamma, resolved.config.policy.hidden) == (0.4, [4])
    assert resolved.origins["algo.gamma"] == "mine.yaml:9"
    assert resolved.origins["policy.hidden"] == "mine.yaml:6"


def test_a_changed_file_is_read_again():
    assert own("variants: {ppo: {algo: {gamma: 0.3}}}\n").config.algo.gamma == 0.3
    assert own("variants: {ppo: {algo: {gamma: 0.4}}}\n").config.algo.gamma == 0.4


def test_all_mistakes_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        own("variants:\n  ppo:\n    algo: {gamma: 2}\n    env: {n_envs: 0}\n    policy: {hiden: [3]}\n")
    lines = str(caught.value).splitlines()
    assert sorted(line.split(": ")[0] for line in lines) == ["mine.yaml:5", "mine.yaml:6", "mine.yaml:7"]


def test_a_saved_config_with_a_retired_key_that_was_not_used_still_opens() -> None:
    """Runs of earlier versions have it as null; one that used it says what is unknown."""
    saved = resolve("ALE/Pong-v5:ram_ppo").config.model_dump(mode="json")
    saved["env"]["atari"]["sticky_ramp"] = None
    assert from_saved(saved).config == resolve("ALE/Pong-v5:ram_ppo").config
    saved["env"]["atari"]["sticky_ramp"] = [0, 100]
    with pytest.raises(ConfigError, match=r"unknown key 'env.atari.sticky_ramp'"):
        from_saved(saved)


@pytest.mark.parametrize(
    ("overrides", "settings"),
    [
        (["n_timesteps=1000"], {"train.env_steps": 20000}),
        (["vec_steps=3"], {"train.env_steps": 20000}),
        (["n_timesteps=1000", "train.vec_steps=10"], None),
        (["total-timesteps=9"], {"train.vec_steps": 3}),
        (["env_steps=1000", "env_steps=2000"], None),
    ],
)
def test_two_budgets_are_refused(overrides, settings):
    with pytest.raises(UsageError, match=r"Two budgets are given, .*=.* and .*=.*: keep one"):
        resolve("CartPole-v1:ppo", overrides, settings=settings)


def test_one_budget_said_twice_is_one():
    assert (
        resolve("CartPole-v1:ppo", ["n_timesteps=1e3"], settings={"train.env_steps": 1000}).config.train.env_steps
        == 1000
    )
    found = resolve("CartPole-v1:ppo", ["train.env_steps=null", "train.vec_steps=7"]).config.train
    assert (found.env_steps, found.vec_steps) == (None, 7)

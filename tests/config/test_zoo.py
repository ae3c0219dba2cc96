"""Entries of rl-baselines3-zoo: all of them import or say why not, and what they become is what SB3 would do."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gymnast.config import files
from gymnast.config.atari import AtariConfig
from gymnast.config.files import ConfigFile, parse_yaml
from gymnast.config.load import resolve
from gymnast.config.pyliterals import read_literal
from gymnast.config.schedule import Linear
from gymnast.config.schema import RunConfig
from gymnast.config.writing import with_variant
from gymnast.config.zoo import ALGORITHMS, Translation, known_keys, translate
from gymnast.errors import ConfigError

ZOO = Path(__file__).parent / "zoo"
DOC = Path(__file__).parents[2] / "docs" / "zoo-import.md"


@functools.cache
def zoo(algorithm: str) -> ConfigFile:
    """The zoo's own file."""
    path = ZOO / f"{algorithm}.yml"
    return ConfigFile(path, *parse_yaml(path.read_text(encoding="utf-8"), path.name))


ATARI = "stable_baselines3.common.atari_wrappers.AtariWrapper"
ENTRIES = [(algorithm, entry) for algorithm in ALGORITHMS for entry in zoo(algorithm).data]


@pytest.fixture(autouse=True)
def _empty_folder(folder: Path) -> None:
    """Without ./configs."""


def config_of(found: Translation, name: str = "zoo_ppo") -> RunConfig:
    """The config of the written file, on top of the shipped file of its env."""
    assert found.variant is not None, found.refusals
    path = Path(found.env_id.replace("/", "_") + ".yaml")
    path.write_text(with_variant("", found.env_id, name, found.variant, found.notes, str(path)), encoding="utf-8")
    return resolve(f"{path}:{name}").config


def one(text: str, algorithm: str = "ppo", ignore: tuple[str, ...] = ()) -> Translation:
    """An entry of some lines, on line 1 of a file."""
    body = "E-v0:\n  n_timesteps: 1000\n" + "".join(f"  {line}\n" for line in text.splitlines())
    return translate(ConfigFile(Path("z.yml"), *parse_yaml(body, "z.yml")), "E-v0", algorithm, ignore=ignore)


def changed(text: str, algorithm: str = "ppo") -> dict[str, Any]:
    """What an entry changes, as dotted keys, against an empty one."""
    found, plain = one(text, algorithm), one("", algorithm)
    assert found.variant is not None, found.refusals
    assert plain.variant is not None
    before = _leaves(plain.variant)
    return {key: value for key, value in _leaves(found.variant).items() if before.get(key, "absent") != value}


def _leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return leaves


# ---- the zoo's files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("algorithm", "entry"), ENTRIES)
def test_every_entry_imports_or_says_why_not(algorithm: str, entry: str) -> None:
    file = zoo(algorithm)
    found = translate(file, entry, algorithm)
    if found.variant is None:
        assert found.refusals
        assert all(re.match(rf".*{algorithm}\.yml:\d+: .+[.?]$", sentence) for sentence in found.refusals)
        return
    config = config_of(found)
    given = file.data[entry]
    assert config.env.id == found.env_id
    assert config.env.n_envs == given.get("n_envs", 1)
    assert config.train.env_steps == int(given["n_timesteps"])
    for key in {"n_steps", "n_epochs", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm"} & given.keys():
        assert getattr(config.algo, key) == given[key]


@pytest.mark.parametrize("entry", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_of_a_shipped_preset_shows_through(algorithm: str, entry: str) -> None:
    config_of(translate(zoo(algorithm), entry, algorithm))
    assert files.env_files(entry), "a shipped file lies below this one"
    origins = resolve(f"{entry}.yaml:zoo_ppo").origins
    learning = ("env.", "policy.", "algo.", "train.")
    foreign = {key: o for key, o in origins.items() if key.startswith(learning) and not o.startswith(f"{entry}.yaml")}
    assert foreign == {"env.id": "config id"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_learning_setting_is_written(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset below that sets every key otherwise changes nothing, whatever keys the schema has by now."""
    found = one("", algorithm)
    expected = config_of(found).model_dump()
    monkeypatch.setattr(files, "SHIPPED", Path("package").resolve())
    below = {"n_envs": 3, "time_limit": 5, "wrappers": ["one_hot"], "action_mask": "auto"}
    switched = {k: not v for section in ("policy", "algo") for k, v in expected[section].items() if isinstance(v, bool)}
    text = f"""
        id: E-v0
        defaults:
          env: {below!r}
          policy: { ({k: v for k, v in switched.items() if k in expected["policy"]})!r}
          algo: { ({k: v for k, v in switched.items() if k in expected["algo"]} | {"gamma": 0.5})!r}
          train: {{vec_steps: 10, stop: [{{metric: a, at_least: 1}}]}}
    """.replace("True", "true").replace("False", "false")
    Path("package/envs").mkdir(parents=True)
    Path("package/envs/E-v0.yaml").write_text(text.replace("\n        ", "\n"), encoding="utf-8")
    assert resolve("E-v0.yaml:zoo_ppo").config.model_dump() == expected
    written = found.variant or {}
    for section in ("policy", "algo"):
        assert list(written[section]) == list(expected[section])


def test_cartpole_ppo_in_full() -> None:
    config = config_of(translate(zoo("ppo"), "CartPole-v1", "ppo"))
    algo = config.algo.model_dump(exclude={"optimizer", "learning_rate", "clip_range"})
    assert algo == {
        "id": "ppo",
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 20,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "clip_range_vf": None,
        "target_kl": None,
        "normalize_advantage": "batch",
        "normalize_reward": False,
        "reward_clip": 10.0,
        "normalize_value": "off",
        "normalize_value_rate": 0.05,
        "rnd": None,
        "value_loss": "mse",
        "huber_delta": 1.0,
    }
    for key, start in (("learning_rate", 0.001), ("clip_range", 0.2)):
        schedule = getattr(config.algo, key)
        assert isinstance(schedule, Linear)
        assert (schedule.start, schedule.end) == (start, 0.0)
    assert (config.algo.optimizer.id, config.algo.optimizer.eps) == ("adam", 1e-5)
    policy = config.policy
    assert (policy.hidden, policy.critic_hidden, policy.shared_trunk) == ([64, 64], None, False)
    assert (policy.activation, policy.init, policy.normalize_obs) == ("tanh", "orthogonal", False)
    assert (config.env.n_envs, config.train.env_steps) == (8, 100_000)
    assert not config.train.stop_when_solved


def test_halfcheetah_ppo_has_its_networks() -> None:
    policy = config_of(translate(zoo("ppo"), "HalfCheetah-v4", "ppo")).policy
    assert (policy.hidden, policy.critic_hidden, policy.activation) == ([256, 256], None, "relu")
    assert (policy.init, policy.log_std_init, policy.normalize_obs) == ("torch", -2.0, True)


def test_merge_keys_and_their_overrides() -> None:
    found = translate(zoo("ppo"), "Walker2DBulletEnv-v0", "ppo", ignore=("use_sde", "sde_sample_freq"))
    algo = (found.variant or {})["algo"]
    assert (algo["clip_range"], algo["n_epochs"], algo["learning_rate"]) == ("lin_0.4", 20, 3e-5)
    assert "Dropped as asked" in found.notes[0]
    assert all(dropped in found.notes[0] for dropped in ("use_sde: True", "sde_sample_freq: 4"))
    assert "gSDE" in found.notes[1]


def test_a2c_defaults_are_sb3s() -> None:
    config = config_of(translate(zoo("a2c"), "Ant-v4", "a2c"))
    algo = config.algo.model_dump()
    expected: dict[str, Any] = {
        "n_steps": 5,
        "learning_rate": 7e-4,
        "gae_lambda": 1.0,
        "gamma": 0.99,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
    }
    expected |= {"max_grad_norm": 0.5, "normalize_advantage": "off", "normalize_reward": True}
    assert {key: algo[key] for key in expected} == expected
    assert (algo["optimizer"]["id"], algo["optimizer"]["eps"], algo["optimizer"]["alpha"]) == (
        "rmsprop_torch",
        1e-5,
        0.99,
    )
    assert (config.env.n_envs, config.policy.normalize_obs) == (1, True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_defaults_are_those_of_the_installed_sb3(algorithm: str) -> None:
    import stable_baselines3

    parameters = inspect.signature(getattr(stable_baselines3, algorithm.upper()).__init__).parameters
    theirs = {name: parameter.default for name, parameter in parameters.items()}
    silent = one("", algorithm).variant
    spelt = "".join(
        f"{key}: {theirs[key]}\n" for key in known_keys(algorithm) if type(theirs.get(key)) in (bool, int, float)
    )
    assert spelt.count("\n") >= 10
    assert one(spelt, algorithm).variant == (silent or {}) | {"log": {"window": 100}}


def test_the_counts_in_the_docs() -> None:
    reasons = {
        "need a wrapper of the zoo (`FrameSkip`)": "FrameSkip",  # and gSDE, for CarRacing
        "need gSDE (`use_sde`)": "gSDE",
        "need a MiniGrid wrapper (`FlatObsWrapper`)": "FlatObsWrapper",
        "no env (`default`, `atari`)": "not an env",
    }
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+ \| \d+) \|$", DOC.read_text(encoding="utf-8"), re.MULTILINE))
    found = {
        algorithm: [translate(zoo(algorithm), e, algorithm) for e in zoo(algorithm).data] for algorithm in ALGORITHMS
    }

    def row(count: Any) -> str:
        return " | ".join(str(count(found[algorithm])) for algorithm in ALGORITHMS)

    expected = {"entries": row(len), "imported": row(lambda all_: sum(f.variant is not None for f in all_))}
    for label, word in reasons.items():
        expected[label] = row(lambda all_, word=word: sum(_first_reason(f, reasons.values()) == word for f in all_))
    assert rows == expected


def _first_reason(found: Translation, words: Iterable[str]) -> str | None:
    return next((word for word in words if any(word in sentence for sentence in found.refusals)), None)


# ---- Atari ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "game"), [("PongNoFrameskip-v4", "Pong"), ("ALE/SpaceInvaders-v5", "SpaceInvaders")])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_atari_games(algorithm: str, asked: str, game: str) -> None:
    """The zoo's protocol: no sticky actions, 4 stacked frames of 84×84, clipped rewards, lost lives end the credit."""
    found = translate(zoo(algorithm), "atari", algorithm, env_id=asked)
    config = config_of(found, f"zoo_{algorithm}")
    assert config.env.id == f"ALE/{game}-v5"
    assert config.env.atari == AtariConfig(sticky=0.0, life_loss="terminal")
    assert [wrapper.id for wrapper in config.env.wrappers] == ["reward_clip"]
    assert (config.policy.cnn, config.policy.cnn_features, config.policy.hidden) == ("nature", 512, [])
    assert config.env.n_envs == (8 if algorithm == "ppo" else 16)
    assert config.algo.optimizer.id == ("adam" if algorithm == "ppo" else "rmsprop")
    assert any("After a lost life" in note for note in found.notes)
    assert (f"{asked} is now {config.env.id}." in found.notes) == (asked != config.env.id)


def test_arguments_of_the_atari_wrapper() -> None:
    text = (
        f"Pong:\n  n_timesteps: 100\n  policy: CnnPolicy\n  env_wrapper:\n    - {ATARI}:\n"
        "        terminal_on_life_loss: false\n        clip_reward: false\n        action_repeat_probability: 0.25\n"
        "        frame_skip: 2\n        noop_max: 0\n        screen_size: 64\n    - gymnasium.wrappers.ClipReward\n"
    )
    file = ConfigFile(Path("z.yml"), *parse_yaml(text, "z.yml"))
    env = config_of(translate(file, "Pong", "ppo", env_id="PongNoFrameskip-v4")).env
    assert env.atari == AtariConfig(sticky=0.25, skip=2, noops=0, size=(64, 64), stack=1)
    assert [wrapper.id for wrapper in env.wrappers] == ["reward_clip"]  # the one that is named


@pytest.mark.parametrize("asked", ["CartPole-v1", "Pong-v4", "PongDeterministic-v4"])
def test_atari_settings_for_other_envs_are_refused(asked: str) -> None:
    found = translate(zoo("ppo"), "atari", "ppo", env_id=asked)
    assert found.variant is None
    assert (
        f"AtariWrapper is for Atari games, ids like PongNoFrameskip-v4 or ALE/Pong-v5 (got {asked})"
        in found.refusals[0]
    )


# ---- single keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("normalize: true", {"policy.normalize_obs": True, "algo.normalize_reward": True}),
        ("normalize: false", {}),
        ("normalize: \"{'norm_obs': False, 'norm_reward': True}\"", {"algo.normalize_reward": True}),
        ('normalize: "dict(norm_obs=True, norm_reward=False)"', {"policy.normalize_obs": True}),
        ("normalize: {norm_reward: false, clip_obs: 5}", {"policy.normalize_obs": True, "policy.obs_clip": 5}),
        (
            'gamma: 0.9\nnormalize: "dict(norm_obs=False, gamma=0.5)"',  # the zoo replaces that gamma
            {"algo.gamma": 0.9, "algo.normalize_reward": True},
        ),
        ("policy_kwargs: 'dict(net_arch=[32])'", {"policy.hidden": [32]}),
        ("policy_kwargs: {net_arch: [32, 16]}", {"policy.hidden": [32, 16]}),
        ("policy_kwargs: 'dict(net_arch=[dict(pi=[8], vf=[9])])'", {"policy.hidden": [8], "policy.critic_hidden": [9]}),
        ("policy_kwargs: 'dict(net_arch=dict(pi=[8]))'", {"policy.hidden": [8], "policy.critic_hidden": []}),
        ("policy_kwargs: 'dict(activation_fn=th.nn.ELU)'", {"policy.activation": "elu"}),
        (
            "policy_kwargs: 'dict(log_std_init=-1.5, ortho_init=False)'",
            {"policy.log_std_init": -1.5, "policy.init": "torch"},
        ),
        ("policy_kwargs: 'dict(optimizer_class=th.optim.Adam)'", {}),
        (
            "policy_kwargs: 'dict(optimizer_kwargs=dict(weight_decay=0.1))'",
            {"algo.optimizer.eps": 1e-8, "algo.optimizer.weight_decay": 0.1},
        ),
        (
            "policy_kwargs: 'dict(optimizer_kwargs=dict(betas=(0.5, 0.9), eps=1e-5))'",
            {"algo.optimizer.betas": [0.5, 0.9]},
        ),
        ("learning_rate: lin_2e-3", {"algo.learning_rate": "lin_2e-3"}),
        ("clip_range_vf: lin_0.3", {"algo.clip_range_vf": "lin_0.3"}),
        ("batch_size: !!float 32", {"algo.batch_size": 32}),
        ("n_steps: 16\nn_envs: 2\nbatch_size: 256", {"algo.n_steps": 16, "env.n_envs": 2, "algo.batch_size": 32}),
        ("normalize_advantage: false", {"algo.normalize_advantage": "off"}),
        ("target_kl: 0.02", {"algo.target_kl": 0.03}),
        ("use_sde: false\nsde_sample_freq: 4", {}),
        ("env_kwargs: {gravity: -1.0}", {"env.kwargs.gravity": -1.0}),
        ("seed: 3\nstats_window_size: 20\nverbose: 1", {"train.seed": 3, "log.window": 20}),
        (
            "frame_stack: 2\n"
            "env_wrapper: [gymnasium.wrappers.ClipAction, {gymnasium.wrappers.TimeLimit: {max_episode_steps: 9}}]",
            {
                "env.wrappers": [
                    "action_clip",
                    {"id": "time_limit", "steps": 9},
                    {"id": "observation_stack", "size": 2},
                ]
            },
        ),
        ("env_wrapper: gymnasium.wrappers.FlattenObservation", {}),
        ("policy: MlpPolicy", {}),
        ("policy: MultiInputPolicy", {"policy.cnn": "auto", "policy.cnn_features": 256}),
        ("policy: CnnPolicy", {"policy.cnn": "nature", "policy.cnn_features": 512, "policy.hidden": []}),
        (
            "policy: CnnPolicy\npolicy_kwargs: 'dict(net_arch=[32])'",
            {"policy.cnn": "nature", "policy.cnn_features": 512, "policy.hidden": [32]},
        ),
    ],
)
def test_ppo_keys(text: str, expected: dict[str, Any]) -> None:
    assert changed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use_rms_prop: false", {"algo.optimizer.id": "adam"}),
        ("rms_prop_eps: 1e-3", {"algo.optimizer.eps": 1e-3}),
        ("use_rms_prop: false\nrms_prop_eps: 1e-3", {"algo.optimizer.id": "adam"}),
        ("normalize_advantage: true", {"algo.normalize_advantage": "batch"}),
        # The flag replaces optimizer_kwargs, as in SB3; a class of its own wins.
        ("policy_kwargs: 'dict(optimizer_kwargs=dict(eps=0.1))'", {}),
        (
            "policy_kwargs: 'dict(optimizer_class=RMSpropTFLike, optimizer_kwargs=dict(eps=1e-5))'",
            {"algo.optimizer.id": "rmsprop"},
        ),
        ("policy_kwargs: 'dict(optimizer_class=th.optim.Adam)'", {"algo.optimizer.id": "adam"}),
    ],
)
def test_a2c_keys(text: str, expected: dict[str, Any]) -> None:
    assert changed(text, "a2c") == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_stepz: 5", "z.yml:3: unknown key 'n_stepz' for ppo. Did you mean 'n_steps'?"),
        ("use_rms_prop: true", "z.yml:3: unknown key 'use_rms_prop' for ppo."),
        ("use_sde: true", "'use_sde': gSDE"),
        (f"env_wrapper: [gymnasium.wrappers.ClipAction, {ATARI}]", "AtariWrapper has no counterpart"),
        (f"env_wrapper: {{{ATARI}: {{terminal_on_life_loss: 1}}}}", "terminal_on_life_loss must be true or false"),
        (f"env_wrapper: {{{ATARI}: {{width: 84}}}}", "cannot have the arguments {'width': 84}"),
        ("policy: my.Policy", "'policy': 'my.Policy' is not supported"),
        ("callback: rl_zoo3.callbacks.X", "'callback': callbacks are"),
        ("env_wrapper: rl_zoo3.wrappers.FrameSkip", "rl_zoo3.wrappers.FrameSkip has no counterpart"),
        ("env_wrapper: {gymnasium.wrappers.ClipReward: {f: 1}}", "cannot have the arguments {'f': 1}"),
        ("env_wrapper: [3]", "3 is not a wrapper"),
        ("frame_stack: 0", "whole number of at least 1"),
        ("clip_range: -1", "z.yml:3: 'algo.clip_range': must be above 0"),
        ("learning_rate: fast", "z.yml:3: 'algo.learning_rate': expected a number or a schedule, not 'fast'"),
        ("n_envs: many", "z.yml:3: 'env.n_envs'"),
        ("normalize: yes", "`yes` is Python code that is not run"),
        ("normalize: 3", "must be a mapping (got 3)"),
        ("normalize: {norm_obs: 1}", "norm_obs must be true or false"),
        ("normalize: {gamma: 0.5}", "gamma is always 0.99 here (got 0.5)"),
        ("normalize: {norm_ob: true}", "Did you mean 'norm_obs'"),
        ("policy_kwargs: 'dict(net_arch=[64, dict(pi=[8])])'", "net_arch must be a list of sizes"),
        ("policy_kwargs: 'dict(net_arch=[-1])'", "z.yml:3: 'policy.hidden"),
        ("policy_kwargs: 'dict(activation_fn=[1])'", "activation_fn [1] is not supported"),
        ("policy_kwargs: 'dict(full_std=False)'", "'full_std' is not supported"),
        ("policy_kwargs: 'dict(optimizer_kwargs=dict(lr=1))'", "optimizer_kwargs: 'lr' is not supported"),
        ("policy_kwargs: {activation_fn: !!python/name:torch.nn.ReLU }", "a YAML tag stands there"),
        ("env_kwargs: 3", "must be a mapping"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(text: str, sentence: str) -> None:
    found = one(text)
    assert found.variant is None
    assert any(sentence in refusal for refusal in found.refusals), found.refusals
    assert all(refusal.startswith("z.yml:3: ") for refusal in found.refusals)


def test_an_entry_needs_a_budget_and_a_mapping() -> None:
    file = ConfigFile(Path("z.yml"), {"A-v0": {}, "B-v0": [1]}, {("A-v0",): 1, ("B-v0",): 2})
    assert translate(file, "A-v0", "ppo").refusals == ["z.yml:1: the entry has no n_timesteps, its budget."]
    assert translate(file, "B-v0", "ppo").refusals == ["z.yml:2: entry 'B-v0' must be a mapping (got [1])."]


def test_ignored_keys_are_named() -> None:
    found = one("use_sde: true\nsde_sample_freq: 4\nn_stepz: 3", ignore=("use_sde", "n_stepz"))
    assert found.variant is not None
    assert found.notes[0] == "Dropped as asked: use_sde: True, n_stepz: 3."
    assert found.notes[1] == "sde_sample_freq 4 means nothing without use_sde."


def test_old_names_of_envs() -> None:
    file = ConfigFile(Path("z.yml"), {"LunarLander-v2": {"n_timesteps": 10}}, {})
    found = translate(file, "LunarLander-v2", "ppo")
    assert (found.env_id, found.notes) == ("LunarLander-v3", ["LunarLander-v2 is now LunarLander-v3."])


def test_a_template_is_for_other_envs() -> None:
    assert "--from default" in translate(zoo("ppo"), "default", "ppo").refusals[0]
    found = translate(zoo("ppo"), "default", "ppo", env_id="MyEnv-v0")
    assert found.env_id == "MyEnv-v0"
    assert config_of(found).train.env_steps == 1_000_000


# ---- Python text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch canary')",
        "dict(a=__import__('os').system('touch canary'))",
        "dict(a=open('canary', 'w'))",
        "(lambda: open('canary', 'w'))()",
        "dict(a=lambda: 1)",
        "dict(**{'a': open('canary', 'w')})",
        "[open('canary', 'w') for _ in range(3)]",
        "{**{'a': 1}}",
        "nn.ReLU()",
        "nn.Hardswish",
        "2 ** 9999999",
        "f'{open(1)}'",
        "(x := 3)",
        "dict([1])",
    ],
)
def test_python_code_never_runs(code: str) -> None:
    for key in ("policy_kwargs", "normalize"):
        found = one(f"{key}: {_quoted(code)}")
        assert found.variant is None
        assert "is Python code that is not run" in found.refusals[0]
    assert not Path("canary").exists()


def test_the_piece_that_cannot_be_read_is_quoted() -> None:
    with pytest.raises(ConfigError, match=r"`lambda x: 1` is Python code that is not run"):
        read_literal("dict(a=1, b=[lambda x: 1])")


@pytest.mark.parametrize("text", ["dict(", "\0", "(" * 5000, "- " * 100_000 + "1", "", "a b", "1; 2"])
def test_what_is_not_python_at_all(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a Python literal|is Python code"):
        read_literal(text)


def test_literals() -> None:
    text = "dict(a=-1, b=[1.5, None], c=(True, 'x'), d={'e': +2}, f=nn.ReLU)"
    expected = {"a": -1, "b": [1.5, None], "c": [True, "x"], "d": {"e": 2}, "f": "nn.ReLU"}
    assert read_literal(text, {"nn.ReLU"}) == expected
    for wrong in ("1e999", "-True", "b'x'", "1j", "...", "{1: 2}"):
        with pytest.raises(ConfigError):
            read_literal(wrong)


def test_yaml_tags_construct_nothing() -> None:
    found = one("env_kwargs: !!python/object/apply:os.system ['touch canary']")
    assert found.variant is None
    assert not Path("canary").exists()


def _quoted(code: str) -> str:
    return '"' + code.replace('"', '\\"') + '"'

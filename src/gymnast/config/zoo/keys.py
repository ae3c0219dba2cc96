"""What each key of a zoo entry does to the variant."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from gymnast.config.algorithms import CONFIGS
from gymnast.config.policy_kwargs import (
    ADAM,
    optimizer_settings,
    policy_settings,
    read_mapping,
    read_policy_kwargs,
    read_switch,
)
from gymnast.config.schema import PolicyConfig
from gymnast.config.zoo import defaults
from gymnast.config.zoo.atari import LOST_LIFE, WRAPPER, atari_settings
from gymnast.config.zoo.wrappers import listed, wrappers_of
from gymnast.errors import ConfigError, did_you_mean


class Draft:
    """A variant in the making; it begins as what an empty entry means."""

    def __init__(self, algorithm: str, given: dict[str, Any], dropped: dict[str, Any]) -> None:
        self.given, self.dropped = given, dropped
        schema = CONFIGS[algorithm].model_validate({"id": algorithm}).model_dump(mode="json")
        sb3 = copy.deepcopy(defaults.ALGO[algorithm])
        self.sections: dict[str, dict[str, Any]] = {
            "env": copy.deepcopy(defaults.ENV),
            "policy": PolicyConfig().model_dump(mode="json") | copy.deepcopy(defaults.POLICY),
            "algo": schema | sb3 | {"optimizer": schema["optimizer"] | sb3["optimizer"]},
            "train": copy.deepcopy(defaults.TRAIN),
        }
        self.rms_prop = algorithm == "a2c"
        """A2C's own optimizer, which replaces optimizer_kwargs."""
        self.notes: list[str] = []
        self.origins: dict[str, str] = {}
        """Which zoo key each of our keys comes from."""
        self.key = ""
        """The zoo key at hand."""

    def set(self, section: str, name: str, value: Any) -> None:
        """One of our keys."""
        self.sections.setdefault(section, {})[name] = value
        self.origins[f"{section}.{name}"] = self.key

    def set_optimizer(self, settings: dict[str, Any]) -> None:
        """The optimizer; what it does not read stays."""
        self.set("algo", "optimizer", self.sections["algo"]["optimizer"] | settings)

    def note(self, sentence: str) -> None:
        """Something the user should know."""
        self.notes.append(sentence)


Handler = Callable[[Draft, Any], None]


def _to(section: str, name: str) -> Handler:
    def handler(draft: Draft, value: Any) -> None:
        whole = isinstance(value, float) and value.is_integer() and abs(value) >= 1  # `!!float 1e3`
        draft.set(section, name, int(value) if whole else value)

    return handler


def _n_timesteps(draft: Draft, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value < float("inf"):
        raise ConfigError(f"must be a number of steps (got {value!r})")
    draft.sections["train"] = {"env_steps": int(value), **draft.sections["train"]}


def _policy(draft: Draft, value: Any) -> None:
    if not isinstance(value, str) or value not in defaults.POLICIES:
        raise ConfigError(f"{value!r} is not supported: {', '.join(defaults.POLICIES)} are")
    for name, setting in defaults.POLICIES[value].items():
        draft.set("policy", name, setting)


def _normalize(draft: Draft, value: Any) -> None:
    on = value if isinstance(value, bool) else True
    settings = {"norm_obs": on, "norm_reward": on}
    if not isinstance(value, bool):
        settings |= read_mapping(value)
    # The zoo puts the entry's gamma in place of one given here; the rest of VecNormalize is as ours is.
    fixed = {"gamma": settings.get("gamma") if "gamma" in draft.given else 0.99, "epsilon": 1e-8, "training": True}
    ours = {
        "norm_obs": ("policy", "normalize_obs"),
        "norm_reward": ("algo", "normalize_reward"),
        "clip_obs": ("policy", "obs_clip"),
        "clip_reward": ("algo", "reward_clip"),
    }
    for key, setting in settings.items():
        if key in ours:
            draft.set(*ours[key], read_switch(setting, key) if key.startswith("norm") else setting)
        elif key not in fixed:
            raise ConfigError(f"'{key}' is not supported.{did_you_mean(key, ours)} Known: {', '.join(ours)}")
        elif setting != fixed[key]:
            raise ConfigError(f"{key} is always {fixed[key]!r} here (got {setting!r})")


def _policy_kwargs(draft: Draft, value: Any) -> None:
    kwargs = read_policy_kwargs(value)
    for name, setting in policy_settings(kwargs).items():
        draft.set("policy", name, setting)
    if "log_std_init" in kwargs and draft.dropped.get("use_sde"):
        draft.note(
            f"log_std_init {kwargs['log_std_init']} was chosen for gSDE; here it is that of an ordinary Gaussian."
        )
    optimizer = optimizer_settings(kwargs, rms_prop=draft.rms_prop)
    if optimizer is not None:
        draft.set_optimizer(optimizer)


def _use_rms_prop(draft: Draft, value: Any) -> None:
    if not read_switch(value, "use_rms_prop"):
        draft.rms_prop = False
        draft.set_optimizer(ADAM)


def _rms_prop_eps(draft: Draft, value: Any) -> None:
    if draft.rms_prop:
        draft.set_optimizer({"eps": value})


def _normalize_advantage(draft: Draft, value: Any) -> None:
    draft.set("algo", "normalize_advantage", "batch" if read_switch(value, "normalize_advantage") else "off")


def _target_kl(draft: Draft, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"must be a number (got {value!r})")
    draft.set("algo", "target_kl", 1.5 * value)
    draft.note(f"target_kl {value}: SB3 stops at 1.5 times that and looks after every minibatch, we after every epoch.")


def _use_sde(draft: Draft, value: Any) -> None:
    if read_switch(value, "use_sde"):
        raise ConfigError("gSDE (state-dependent exploration) is not supported")


def _sde_sample_freq(draft: Draft, value: Any) -> None:
    if not draft.given.get("use_sde"):
        draft.note(f"sde_sample_freq {value} means nothing without use_sde.")


def _wrappers(draft: Draft, value: Any) -> None:
    wrappers = listed(value)
    if wrappers and wrappers[0][0] == WRAPPER:
        section, clips = atari_settings(wrappers.pop(0)[1])
        draft.set("env", "atari", section)
        if clips:
            draft.sections["env"]["wrappers"].append("reward_clip")
        if section["life_loss"] == "terminal":
            draft.note(LOST_LIFE)
    draft.sections["env"]["wrappers"] += wrappers_of(wrappers)


def _frame_stack(draft: Draft, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"must be a whole number of at least 1 (got {value!r})")
    atari = draft.sections["env"].get("atari")
    if atari is not None:
        atari["stack"] = value
        return
    draft.sections["env"]["wrappers"].append({"id": "observation_stack", "size": value})
    draft.note("Stacked observations start as copies of the first one, in SB3 as zeros.")


def _env_kwargs(draft: Draft, value: Any) -> None:
    if not isinstance(value, (dict, type(None))):
        raise ConfigError(f"must be a mapping (got {value!r})")
    if value:
        draft.set("env", "kwargs", value)


def _callback(draft: Draft, value: Any) -> None:
    if value is not None:
        raise ConfigError("callbacks are Python code of the zoo and not supported")


def _custom(draft: Draft, value: Any) -> None:
    if value is not None:
        raise ConfigError("buffers of one's own are not supported")


def _reporting(draft: Draft, value: Any) -> None:
    """What is shown, not what is learnt."""


HANDLERS: dict[str, Handler] = {
    "n_envs": _to("env", "n_envs"),
    "n_timesteps": _n_timesteps,
    "policy": _policy,
    "normalize": _normalize,
    "env_kwargs": _env_kwargs,
    "env_wrapper": _wrappers,
    "vec_env_wrapper": _wrappers,
    "frame_stack": _frame_stack,
    **{
        key: _to("algo", key)
        for key in ("learning_rate", "n_steps", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm")
    },
    "normalize_advantage": _normalize_advantage,
    "use_sde": _use_sde,
    "sde_sample_freq": _sde_sample_freq,
    "seed": _to("train", "seed"),
    "device": _to("train", "device"),
    "stats_window_size": _to("log", "window"),
    "callback": _callback,
    "rollout_buffer_class": _custom,
    "rollout_buffer_kwargs": _custom,
    **dict.fromkeys(("monitor_kwargs", "tensorboard_log", "verbose"), _reporting),
}
ALGO_HANDLERS: dict[str, dict[str, Handler]] = {
    "ppo": {
        **{key: _to("algo", key) for key in ("batch_size", "n_epochs", "clip_range", "clip_range_vf")},
        "target_kl": _target_kl,
        "policy_kwargs": _policy_kwargs,
    },
    "a2c": {"use_rms_prop": _use_rms_prop, "rms_prop_eps": _rms_prop_eps, "policy_kwargs": _policy_kwargs},
}

"""Names of Stable-Baselines3 and CleanRL that set several of our keys, or whose value depends on other keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gymnast.config.algorithms import config_of
from gymnast.config.policy_kwargs import optimizer_settings, policy_settings, read_policy_kwargs
from gymnast.errors import ConfigError, UsageError

Settings = dict[str, Any]
"""Values by dotted key."""
Translation = Callable[[Any, Mapping[str, Any]], Settings]
"""From a value, and the config as far as it is known, to our keys."""


def _policy_kwargs(value: Any, _: Mapping[str, Any]) -> Settings:
    kwargs = read_policy_kwargs(_named(value))
    settings = {f"policy.{key}": setting for key, setting in policy_settings(kwargs).items()}
    optimizer = optimizer_settings(kwargs, rms_prop=False) or {}
    return settings | {f"algo.optimizer.{key}": setting for key, setting in optimizer.items()}


def _one_of_them(name: str) -> Translation:
    """A single entry of `policy_kwargs` as a key of its own."""
    return lambda value, config: _policy_kwargs({name: value}, config)


def _activation_fn(value: Any, config: Mapping[str, Any]) -> Settings:
    """`nn.ReLU`, `ReLU`, the class itself, or our word for it."""
    if isinstance(value, str) and value.islower() and "." not in value:
        return {"policy.activation": value}
    if isinstance(value, str) and "." not in value:
        value = f"nn.{value}"
    return _policy_kwargs({"activation_fn": value}, config)


def _named(value: Any) -> Any:
    """Classes, as a Python caller hands them over, by their names: `nn.ReLU`."""
    if isinstance(value, Mapping):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, type):
        package = "th.optim" if value.__module__.startswith("torch.optim") else "nn"
        if value.__name__ == "RMSpropTFLike":
            return value.__name__
        return f"{package}.{value.__name__}"
    if isinstance(value, tuple):
        return list(value)
    return value


def _anneal_lr(value: Any, config: Mapping[str, Any]) -> Settings:
    """On: a plain number falls to 0 over the budget, and a schedule stays. Off: a schedule stays where it begins."""
    rate = _known(config, "learning_rate")
    if not _switch("anneal_lr", value):
        return {"algo.learning_rate": _beginning(rate)}
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        return {}
    return {"algo.learning_rate": {"schedule": "linear", "start": float(rate), "end": 0.0}}


def _beginning(rate: Any) -> Any:
    """The value a schedule begins with."""
    if isinstance(rate, str):
        return rate.removeprefix("lin_")
    if isinstance(rate, list):
        return rate[0][1]
    if not isinstance(rate, Mapping):
        return rate
    if "points" in rate:
        return rate["points"][0][1]
    return rate.get("start", rate.get("value"))


def _clip_vloss(value: Any, config: Mapping[str, Any]) -> Settings:
    """CleanRL clips the value by the policy's own range."""
    clip = None
    if _switch("clip_vloss", value):
        clip = _known(config, "clip_range")
    return {"algo.clip_range_vf": clip}


def _cuda(value: Any, _: Mapping[str, Any]) -> Settings:
    """CleanRL's `--cuda` means: if there is one."""
    return {"train.device": "auto" if _switch("cuda", value) else "cpu"}


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"'{key}' is on or off: write {key}=true or {key}=false (got {value!r}).")
    return value


def _known(config: Mapping[str, Any], name: str) -> Any:
    """A hyperparameter as the layers below say it, else the algorithm's default."""
    algo = config.get("algo", {})
    if name in algo:
        return algo[name]
    model = config_of(str(algo.get("id", "ppo")))
    field = None
    if model is not None:
        field = model.model_fields.get(name)
    if field is None:
        return None
    return field.default


TRANSLATIONS: dict[str, Translation] = {
    "policy_kwargs": _policy_kwargs,
    "net_arch": _one_of_them("net_arch"),
    "activation_fn": _activation_fn,
    "ortho_init": _one_of_them("ortho_init"),
    "anneal_lr": _anneal_lr,
    "clip_vloss": _clip_vloss,
    "cuda": _cuda,
}
LAST = ("anneal_lr", "clip_vloss")
"""Read after everything else that is given: they depend on it."""
PYTHON_TEXT = ("policy_kwargs",)
"""Their values are Python on the command line, `dict(net_arch=[64, 64])`, which is read as data and never run."""


def translated(key: str, value: Any, config: Mapping[str, Any]) -> Settings:
    """Our keys and values for one of `TRANSLATIONS`."""
    try:
        return TRANSLATIONS[key](value, config)
    except ConfigError as error:
        raise UsageError(f"'{key}': {error}.") from None

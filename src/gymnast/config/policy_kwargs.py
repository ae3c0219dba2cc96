"""`policy_kwargs` of Stable-Baselines3 and of a zoo entry: a mapping, or text with a Python `dict(…)`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gymnast.config.pyliterals import read_literal
from gymnast.errors import ConfigError, did_you_mean

ADAM: dict[str, Any] = {"id": "adam", "eps": 1e-5, "betas": [0.9, 0.999], "weight_decay": 0.0}
RMSPROP: dict[str, Any] = {"id": "rmsprop_torch", "eps": 1e-5, "alpha": 0.99, "weight_decay": 0.0}
_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "ELU": "elu", "SiLU": "silu", "GELU": "gelu", "LeakyReLU": "leaky_relu"}
ACTIVATIONS = {f"{package}.{k}": v for k, v in _ACTIVATIONS.items() for package in ("nn", "th.nn", "torch.nn")}
TORCH_RMSPROP = ("th.optim.RMSprop", "torch.optim.RMSprop")
OPTIMIZERS = {
    **dict.fromkeys(("th.optim.Adam", "torch.optim.Adam"), ADAM),
    **dict.fromkeys(TORCH_RMSPROP, RMSPROP),
    "RMSpropTFLike": RMSPROP | {"id": "rmsprop"},
}
KNOWN = ("net_arch", "activation_fn", "ortho_init", "log_std_init", "optimizer_class", "optimizer_kwargs")


def read_mapping(value: Any, names: Collection[str] = ()) -> dict[str, Any]:
    """A mapping as YAML or as Python text."""
    if isinstance(value, str):
        found = read_literal(value, names)
    else:
        found = value
    if not isinstance(found, dict):
        raise ConfigError(f"must be a mapping (got {value!r})")
    return found


def read_switch(value: Any, key: str) -> bool:
    """True or false, nothing that merely counts as such."""
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false (got {value!r})")
    return value


def read_policy_kwargs(value: Any) -> dict[str, Any]:
    """The arguments, with names of classes as text."""
    kwargs = {} if value is None else read_mapping(value, {*ACTIVATIONS, *OPTIMIZERS})
    for key in kwargs:
        if key not in KNOWN:
            raise ConfigError(f"'{key}' is not supported.{did_you_mean(key, KNOWN)} Known: {', '.join(KNOWN)}")
    return kwargs


def policy_settings(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What they say about the networks."""
    settings: dict[str, Any] = {}
    if kwargs.get("net_arch") is not None:
        settings["hidden"], settings["critic_hidden"] = _layers(kwargs["net_arch"])
    if "activation_fn" in kwargs:
        name = kwargs["activation_fn"]
        if not isinstance(name, str) or name not in ACTIVATIONS:
            raise ConfigError(f"activation_fn {name!r} is not supported. Known: nn.{', nn.'.join(_ACTIVATIONS)}")
        settings["activation"] = ACTIVATIONS[name]
    if "ortho_init" in kwargs:
        settings["init"] = "orthogonal" if read_switch(kwargs["ortho_init"], "ortho_init") else "torch"
    if "log_std_init" in kwargs:
        settings["log_std_init"] = kwargs["log_std_init"]
    return settings


def _layers(arch: Any) -> tuple[list[int], list[int] | None]:
    """`hidden` and `critic_hidden`; layers in common were given up by SB3 1.8."""
    if isinstance(arch, list) and len(arch) == 1 and isinstance(arch[0], dict):
        arch = arch[0]
    if isinstance(arch, list) and all(type(size) is int for size in arch):
        return arch, None
    if isinstance(arch, dict) and set(arch) <= {"pi", "vf"} and all(isinstance(sizes, list) for sizes in arch.values()):
        actor, critic = arch.get("pi", []), arch.get("vf", [])
        return actor, None if actor == critic else critic
    raise ConfigError(f"net_arch must be a list of sizes or dict(pi=[...], vf=[...]) (got {arch!r})")


def optimizer_settings(kwargs: dict[str, Any], *, rms_prop: bool) -> dict[str, Any] | None:
    """The optimizer they ask for, or None for the algorithm's own. `rms_prop` is A2C's flag."""
    arguments = kwargs.get("optimizer_kwargs")
    if "optimizer_class" not in kwargs and (rms_prop or arguments is None):
        return None  # A2C's flag replaces optimizer_kwargs too
    name = kwargs.get("optimizer_class", "th.optim.Adam")
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise ConfigError(
            f"optimizer_class {name!r} is not supported: th.optim.Adam, th.optim.RMSprop and RMSpropTFLike are"
        )
    settings = dict(OPTIMIZERS[name])
    if settings["id"] != "adam" or arguments is not None:
        settings["eps"] = 1e-8  # torch's own default; SB3 sets 1e-5 only for an Adam without arguments
    for key, given in read_mapping(arguments or {}).items():
        if key not in settings:
            known = ", ".join(k for k in settings if k != "id")
            raise ConfigError(f"optimizer_kwargs: '{key}' is not supported. Known: {known}")
        settings[key] = given
    return settings

"""What the wrappers of a config make of its env, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium import spaces

from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.config.wrappers import Settings
from gymnast.envs.closing import close
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_one
from gymnast.envs.spaces import canonical
from gymnast.envs.wrappers import apply, arrange, check, drawing_mode
from gymnast.envs.wrappers.registry import TIME_LIMIT, arguments, kind_of


@dataclass(frozen=True)
class Layer:
    """The env as it is after one wrapper; the first is the env itself."""

    text: str
    about: str
    observation_space: spaces.Space
    action_space: spaces.Space


def layers(config: EnvConfig) -> list[Layer]:
    """From the bare env outwards, in the order in which the wrappers act."""
    check(config.wrappers)
    inner, outer = arrange(config.wrappers)
    env: Any = make_one(config.model_copy(update={"wrappers": []}), drawing_mode(config.wrappers))
    found = [Layer(config.id, "", env.observation_space, env.action_space)]
    try:
        for wrapper in inner:
            if wrapper.id != TIME_LIMIT:
                env = apply(env, wrapper, kind_of(wrapper.id).single)
            found.append(_layer(wrapper, env))
        envs: Any = InProcessVector(lambda: env, 1)
        for wrapper in outer:
            envs = apply(envs, wrapper, kind_of(wrapper.id).batch)
            found.append(_layer(wrapper, envs))
    finally:
        close(env)
    return found


def _layer(wrapper: WrapperConfig, made: Any) -> Layer:
    return Layer(label(wrapper), kind_of(wrapper.id).about, made.observation_space, made.action_space)


def label(wrapper: WrapperConfig) -> str:
    """Name and arguments as they are shown, `resize(84×84)`."""
    given = arguments(wrapper)
    if isinstance(given, Settings):
        text = given.text()
    else:
        text = ", ".join(f"{key}={value}" for key, value in given.items())
    if text:
        return f"{wrapper.id}({text})"
    return wrapper.id


def short(space: spaces.Space) -> str:
    """The space in one line: bounds of a Box only where all are the same."""
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{key}: {short(part)}' for key, part in space.spaces.items())})"
    if isinstance(space, spaces.Box):
        low, high = ({float(bound) for bound in bounds.ravel()} for bounds in (space.low, space.high))
        bounds = "bounds of each"
        if len(low) == len(high) == 1:
            bounds = f"{min(low):g}, {max(high):g}"
        return f"Box({bounds}, {space.shape}, {space.dtype})"
    return str(space)


def lines(found: list[Layer]) -> list[str]:
    """The order in one line with what comes out, then what each wrapper does and makes of the spaces."""
    bare, *wrapped = found
    if not wrapped:
        return ["none"]
    said = [f"{' → '.join(layer.text for layer in wrapped)}: {short(wrapped[-1].observation_space)}"]
    for before, layer in zip([bare, *wrapped], wrapped, strict=False):
        said.append(f"{layer.text}: {layer.about}{_changes(before, layer)}")
    return said


def _changes(before: Layer, layer: Layer) -> str:
    changes = []
    if canonical(layer.observation_space) != canonical(before.observation_space):
        changes.append(f"observation {short(layer.observation_space)}")
    if layer.action_space != before.action_space:
        changes.append(f"action {short(layer.action_space)}")
    if changes:
        return f"; {', '.join(changes)}"
    return ""

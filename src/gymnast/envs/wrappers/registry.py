"""Every wrapper by name: what it is, where it runs, and in which orders it can stand.

The order in a config is the order of application, innermost first. Wrappers that repeat steps, change actions or end
episodes run around each env; the others work on the whole batch at once. So one of the former can come after one of
the latter only where both orders give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import gymnasium as gym

from gymnast import own_code, plugins
from gymnast.config.schema import WrapperConfig
from gymnast.config.wrappers import Settings, settings_of, unknown
from gymnast.envs.wrappers.actions import ActionClip, ActionNoise, StickyActions
from gymnast.envs.wrappers.encoding import ArrayEncoding, OneHot
from gymnast.envs.wrappers.images import Crop, Gray, MaskRegion, Quantise, Resize
from gymnast.envs.wrappers.limits import NoRewardTimeout, TimeLimit
from gymnast.envs.wrappers.noise import ObservationNoise
from gymnast.envs.wrappers.rendering import Pixels
from gymnast.envs.wrappers.rewards import RewardClip, RewardScale
from gymnast.envs.wrappers.selecting import Select
from gymnast.envs.wrappers.skipping import FrameSkip
from gymnast.envs.wrappers.stacking import ActionStack, ObservationStack
from gymnast.envs.wrappers.transforms import Transform, TransformedEnv, TransformedVector
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import ConfigError

TIME_LIMIT, FRAME_SKIP = "time_limit", "frame_skip"
Effect = Literal["observation", "history", "action", "reward", "choices"]
"""What a wrapper of the batch has to do with: observations one by one or over time, actions, rewards, what was chosen."""


@dataclass(frozen=True)
class Kind:
    """A wrapper: how it is made around one env, around the batch, or either."""

    about: str
    single: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    effect: Effect = "observation"
    commutes: frozenset[Effect] = frozenset()
    """Of a wrapper of one env: effects of batch wrappers that it may come after."""
    draws: bool = False
    """Whether the env must be made so that it can draw itself."""
    settings: type[Settings] | None = None
    """The model of a plug-in's arguments; ours are in `config/wrappers.py`."""


def _transform(kind: type[Transform], about: str) -> Kind:
    return Kind(about, partial(TransformedEnv, kind=kind), partial(TransformedVector, kind=kind))


_ACTIONS: frozenset[Effect] = frozenset({"observation", "history", "reward"})
KINDS: dict[str, Kind] = {
    "action_clip": Kind("clips actions to their bounds", batch=ActionClip, effect="action"),
    "action_noise": Kind("disturbs actions", single=ActionNoise, commutes=_ACTIONS),
    "action_stack": Kind("shows the last actions", batch=ActionStack, effect="choices"),
    "array": Kind("numbers scaled to 0..1", batch=ArrayEncoding),
    "crop": _transform(Crop, "cuts margins off"),
    FRAME_SKIP: Kind("repeats actions", single=FrameSkip, commutes=frozenset({"observation"})),
    "frame_stack": Kind("the last observations", batch=ObservationStack, effect="history"),
    "gray": _transform(Gray, "brightness instead of colours"),
    "mask_region": _transform(MaskRegion, "blacks rectangles out"),
    "no_reward_timeout": Kind(
        "cuts off without reward",
        single=NoRewardTimeout,
        commutes=frozenset({"observation", "history", "action", "choices"}),
    ),
    "observation_noise": Kind("disturbs observations", batch=ObservationNoise, effect="history"),
    "observation_stack": Kind("the last observations", batch=ObservationStack, effect="history"),
    "one_hot": Kind("one-hot vectors", batch=OneHot),
    "pixels": Kind("the drawn frame", single=Pixels, draws=True, commutes=frozenset({"action", "reward"})),
    "quantise": _transform(Quantise, "fewer values"),
    "resize": _transform(Resize, "another size"),
    "reward_clip": Kind("clips rewards", batch=RewardClip, effect="reward"),
    "reward_scale": Kind("scales rewards", batch=RewardScale, effect="reward"),
    "select": _transform(Select, "some components"),
    "sticky_actions": Kind("repeats the last action by chance", single=StickyActions, commutes=_ACTIONS),
    TIME_LIMIT: Kind(
        "cuts episodes off",
        single=TimeLimit,
        commutes=frozenset({"observation", "history", "action", "reward", "choices"}),
    ),
}


def kind_of(name: str) -> Kind:
    """The wrapper of that name, ours, a plug-in's or the user's: a `Kind`, a Gymnasium wrapper or a wrapper of the batch."""
    if name in KINDS:
        return KINDS[name]
    if own_code.is_own(name):
        return _own_kind(name)
    plugin = plugins.find(plugins.WRAPPERS, name)
    if plugin is None:
        raise ConfigError(unknown(name, *(other.name for other in plugins.installed(plugins.WRAPPERS))))
    kind = _kind_from(plugins.load(plugin), name)
    if kind is not None:
        return kind
    raise plugins.PluginError(f"The {plugin} is no wrapper: a `Kind`, a `gymnasium.Wrapper` or a `VectorWrapper` is.")


def _own_kind(reference: str) -> Kind:
    """A wrapper of the user's own, by import path or as an object."""
    found = own_code.find(reference, "env.wrappers")
    kind = _kind_from(found, reference)
    if kind is None and callable(found) and not isinstance(found, type):
        kind = Kind((found.__doc__ or reference).splitlines()[0], single=found)  # a function that wraps an env
    if kind is None:
        raise ConfigError(
            f"'{reference}' is no wrapper: a gymnasium.Wrapper, or a function that takes an env and gives one, is needed."
        )
    return kind


def _kind_from(found: Any, name: str) -> Kind | None:
    if isinstance(found, Kind):
        return found
    if isinstance(found, type) and issubclass(found, gym.Wrapper):
        return Kind((found.__doc__ or name).splitlines()[0], single=found)
    if isinstance(found, type) and issubclass(found, VectorWrapper):
        return Kind((found.__doc__ or name).splitlines()[0], batch=found, effect="history")
    return None


def arguments(wrapper: WrapperConfig) -> Any:
    """The checked arguments of a wrapper, by name; a plug-in without a model of them gets what it is given."""
    kind = kind_of(wrapper.id)
    if kind.settings is None and wrapper.id not in KINDS:
        return wrapper.args
    try:
        return settings_of(wrapper.id, wrapper.args, kind.settings)
    except ValueError as error:
        raise ConfigError(str(error)[:1].upper() + str(error)[1:]) from None

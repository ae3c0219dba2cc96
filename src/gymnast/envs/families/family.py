"""The record of an env family: everything that gymnast has to know about it, in one place.

Records are read by commands that must answer at once. So a module with a record imports no heavy package at its top, and a
function of a record imports what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.families.parameters import Parameter
    from gymnast.envs.keyboard import Controls, KeyMap
    from gymnast.envs.vector import VectorEnv

    NativeForm = Callable[[int], VectorEnv]
    """Makes the vector env from the number of its envs."""


@dataclass(frozen=True)
class Package:
    """What must be installed for the envs of a family."""

    module: str
    distribution: str
    extra: str = ""
    """The extra of gymnast that installs it; without one it is installed by its own name."""
    required: bool = False
    """Whether gymnast itself depends on it."""

    @property
    def install(self) -> str:
        """What to give to `pip install`."""
        if self.extra:
            return f"gymnast[{self.extra}]"
        return self.distribution


class Snapshot(NamedTuple):
    """How the state of a bare env becomes a tree of JSON values and arrays, and how it continues there."""

    save: Callable[[gym.Env], dict[str, Any]]
    load: Callable[[gym.Env, dict[str, Any]], None]
    """The env has just been reset."""


class Rules(Protocol):
    """How an env is played, where that has to be told with every score."""

    frames_per_step: int
    images: bool
    """Whether observations are pictures."""

    @property
    def most_steps(self) -> int | None:
        """Steps after which an episode is cut off, whatever the time limit is; None where the rules have no such end."""

    def protocol(self) -> dict[str, Any]:
        """All that two scores must share to be compared; stored with every score."""

    def sentence(self) -> str:
        """The same in one line for people."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """One family of envs. Only `name` is needed; each other field adds something that gymnast then does for its envs."""

    name: str
    """As `gymnast env list` shows it."""
    title: str = ""
    """What `gymnast doctor` calls it; without a title it has no line there."""

    # Which envs belong to it, and what they need.
    prefixes: tuple[str, ...] = ()
    """How the ids of its envs begin. Those of a plug-in begin with the name of its entry point instead."""
    homes: tuple[str, ...] = ()
    """Modules in which its envs are defined; modules below them count too."""
    registers: str = ""
    """The module that registers its envs with Gymnasium when it is imported."""
    package: Package | None = None

    # How its envs are made and stepped.
    prepare: Callable[[EnvSpec, EnvConfig, str | None], EnvSpec] | None = None
    """From Gymnasium's record, the config and the render mode to the record that the env is made from."""
    native: Callable[[EnvConfig], NativeForm | str] | None = None
    """The vector form that steps all envs at once, or why there is none for this config."""
    native_engine: str = ""
    """Who steps the native form, if its random streams are not those of single envs. Such a form is never chosen by itself,
    its number of threads is `env.n_workers`, and it is named with every score."""
    step_milliseconds: float | None = None
    """What a step costs on one core: worker processes are worth it for slow envs only. Without it a step is measured."""
    slower: Mapping[str, float] = field(default_factory=dict)
    """The same for single modules whose envs are slower than the others."""
    by_lanes: bool = False
    """Workers step its envs without waiting for each other, which is worth it where a step costs a core's while."""
    workers_per_core: int = 1
    """Worker processes for each core: more than one where a step waits for another process, so that the core is not idle."""
    preload: tuple[str, ...] = ()
    """Modules that are imported once for all worker processes."""
    rules: Callable[[EnvConfig], Rules | None] | None = None
    """How its envs are played, for families of which scores say it."""

    # How their state is saved; without either, the actions of an episode are repeated.
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the path of the class: attributes that are, with the random generator, the whole state."""
    snapshot: Callable[[gym.Env], Snapshot | None] | None = None
    """How the state of this env is saved; None if it cannot be."""
    former_classes: Mapping[str, str] = field(default_factory=dict)
    """Class paths in older checkpoints, and where those classes are now."""

    # How they are drawn.
    draws_anywhere: bool = False
    """Whether they draw the same under any SDL driver, so that a missing display need not be looked for."""
    choose_renderer: Callable[[], str] | None = None
    """Find a way to draw on this machine before the package is imported, and say which; empty when there is none."""
    rendering_advice: str = ""
    """What to install where drawing needs more than Python packages."""

    # How they are played by hand.
    keyboard: Callable[[Controls], KeyMap | None] | None = None
    """What keys do in an env; None if any action space's own keys will do (`envs/keyboard.py`)."""

    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)
    """By the path of the class, or of a module that has it: what `env.randomise` may draw for every episode."""

    randomness: Callable[[EnvConfig], str | None] | None = None
    """Settings that make an env random which plays the same under every seed."""

    def milliseconds(self, where: str) -> float | None:
        """What a step of an env in this module costs."""
        inside = [module for module in self.slower if within(where, module)]
        if inside:
            return self.slower[max(inside, key=len)]
        return self.step_milliseconds


def within(path: str, module: str) -> bool:
    """Whether a class or module lies in a module or below it."""
    return path == module or path.startswith(f"{module}.")

"""What receives a run's metrics: the contract of all sinks, and those that a config names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path

from gymnast import plugins
from gymnast.config.schema import RunConfig
from gymnast.metrics.histogram import Histogram

Row = Mapping[str, float | None]


def _silent(sentence: str) -> None:
    """There is no listener."""


class Sink(ABC):
    """Only `write` is required. A sink that raises gets no more rows, and the training goes on."""

    wants_histograms = False
    """Whether `histograms` does something; they are only made when some sink of the run wants them."""
    reads_folder = False
    """Whether it takes them from the run's folder, where they are then kept, instead."""
    say: Callable[[str], None] = staticmethod(_silent)
    """Shows a sentence to whoever watches the training."""
    warn: Callable[[str], None] = staticmethod(_silent)
    """The same for a warning."""

    reference = "@last"
    """What a command calls the run, quoted for the shell."""

    def __init__(self, run_folder: Path, config: RunConfig) -> None:
        """Called when training really starts."""
        self.run_folder, self.config = run_folder, config

    @abstractmethod
    def write(self, row: Row) -> None:
        """One row of all metrics, in the order of the steps; None for a missing value."""

    def amend(self, step: int, metrics: Row) -> None:
        """What became known later of the row of env step `step`; an evaluation next to training ends after its row."""
        return

    def histograms(self, step: int, found: Mapping[str, Histogram]) -> None:
        """How values were spread in the iteration that ends at env step `step`; comes before its row."""
        return

    def video(self, step: int, path: Path) -> None:
        """A video of the weights of env step `step`, with a JSON of the same name next to it; it is whole."""
        return

    def close(self) -> None:
        """The run has ended, however it did."""
        return


def find_sinks(config: RunConfig) -> list[type[Sink]]:
    """The sinks that `log.sinks` names, not yet made; an error where one, or the package it needs, is missing."""
    from gymnast.metrics.sinks.tracked import SHIPPED  # these are sinks, so they import this module

    named: list[type[Sink]] = []
    for name in dict.fromkeys(config.log.sinks):
        shipped = SHIPPED.get(name)
        if shipped is not None:
            shipped.check_package()
            named.append(shipped)
        else:
            named.append(_of_a_plugin(name, list(SHIPPED)))
    return named


def _of_a_plugin(name: str, shipped: list[str]) -> type[Sink]:
    plugin = plugins.find(plugins.SINKS, name)
    if plugin is None:
        known = ", ".join([*shipped, *(one.name for one in plugins.installed(plugins.SINKS))])
        raise plugins.PluginError(f"No installed package has the sink '{name}'. Known: {known}.")
    found = getattr(plugins.load(plugin), "Sink", None)
    if not (isinstance(found, type) and issubclass(found, Sink)):
        raise plugins.PluginError(f"The {plugin} has no `Sink`, a subclass of gymnast's Sink.")
    return found

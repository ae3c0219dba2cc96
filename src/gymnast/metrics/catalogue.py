"""The one list of metrics: what each means, how it is shown, and what other libraries call it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gymnast.errors import UsageError, did_you_mean

FAMILY = "/*"
"""How the name of a metric ends of which a run has one per part, layer or action."""
RETURN_BY = "eval/return_by/"
"""How the names of metrics begin that say the mean return by what was drawn for the episodes."""
VALUE_WIDTH = 13
"""No formatted value is longer."""

_FILE = Path(__file__).parent.parent / "presets" / "metrics.yaml"


class Alias(NamedTuple):
    """The name of a metric in another library, whose value is `factor` × ours."""

    name: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the catalogue."""

    name: str
    meaning: str
    unit: str
    precision: int
    """Digits after the decimal point."""
    order: int
    highlight: str | None
    """Colour of its row, or None."""
    bounds: tuple[float | None, float | None] | None
    """Values outside are always wrong; a None inside is an open side, None instead is no bounds at all."""
    direction: Literal["up", "down", "none"]
    row: str
    """When the live table has a row of it: `always`, `if KEY`, `late`, `headline`, `setting` or `all`."""
    aliases: Mapping[str, Alias]
    healthy: str = ""
    """What a run that learns shows, in words; empty if every value is fine."""

    @property
    def namespace(self) -> str:
        """`train` of `train/loss`; empty for step axes."""
        return split_name(self.name)[0]

    @property
    def label(self) -> str:
        """Its name without the namespace: `loss` of `train/loss`."""
        return split_name(self.name)[1]


class Catalogue:
    """Metrics by name, in order."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        found = list(metrics)
        self._metrics = {metric.name: metric for metric in found if not metric.name.endswith(FAMILY)}
        self.families = {metric.name.removesuffix("*"): metric for metric in found if metric.name.endswith(FAMILY)}
        """Metrics of which a run has any number, by the beginning of their names: `train/grad_norm/`."""
        self.listed = found
        """All of them in order, families too."""
        self._aliases = {
            alias.name: (metric.name, alias.factor)
            for metric in self._metrics.values()
            for alias in metric.aliases.values()
        }
        # First appearance decides where a namespace, and with it an uncatalogued metric, is shown.
        self._namespaces: dict[str, int] = {}
        for metric in found:
            self._namespaces.setdefault(metric.namespace, len(self._namespaces))

    def __getitem__(self, name: str) -> Metric:
        """The metric of that name; a UsageError with suggestions otherwise."""
        metric = self.get(name)
        if metric is None:
            raise UsageError(f"Unknown metric '{name}'.{self._suggest(name)}")
        return metric

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def __len__(self) -> int:
        return len(self._metrics)

    def get(self, name: str) -> Metric | None:
        """The metric of that name, or None: plug-ins may log what the catalogue does not list."""
        metric = self._metrics.get(name)
        if metric is not None:
            return metric
        start, slash, member = name.rpartition("/")
        family = self.families.get(start + slash) if member else None
        if family is None:
            return None
        return replace(family, name=name)

    def resolve_name(self, name: str) -> str:
        """Our name of a metric given by ours, Stable-Baselines3's or CleanRL's name."""
        if name in self:
            return name
        if name in self._aliases:
            return self._aliases[name][0]
        raise UsageError(f"Unknown metric '{name}'.{self._suggest(name)}")

    def alias_factor(self, name: str) -> float:
        """A value under `name` is this factor × our value: −1 for `train/entropy_loss`, 1 for our own names."""
        self.resolve_name(name)
        if name in self:
            return 1.0
        return self._aliases[name][1]

    def alias_label(self, name: str, library: str = "sb3") -> str:
        """What another library calls this metric, without the namespace where that is the same; empty if it has none.

        `−entropy_loss` is a name whose values have the other sign.
        """
        metric = self.get(name)
        alias = None
        if metric is not None:
            alias = metric.aliases.get(library)
        if alias is None:
            return ""
        namespace, label = split_name(alias.name)
        if namespace == split_name(name)[0]:
            text = label
        else:
            text = alias.name
        if alias.factor < 0:
            return f"-{text}"
        return text

    def order(self, names: Iterable[str]) -> list[str]:
        """Names in catalogue order; uncatalogued ones follow their namespace, unknown namespaces come last."""
        return sorted(names, key=self._order_key)

    def format(self, name: str, value: float | None) -> str:
        """Value as the table shows it, at most VALUE_WIDTH characters; small and huge values in scientific form."""
        if value is None:
            return "-"
        if not math.isfinite(value):
            return str(float(value))
        metric = self.get(name)
        if metric is None:
            return f"{value:.5g}"
        precision = metric.precision
        if precision and 0 < abs(value) < 10.0**-precision:
            return f"{value:.1e}"
        text = f"{value:,.{precision}f}"
        if len(text) <= VALUE_WIDTH:
            return text
        return f"{value:.4e}"

    def _order_key(self, name: str) -> tuple[int, int, str]:
        metric = self.get(name)
        group = self._namespaces.get(split_name(name)[0], len(self._namespaces))
        return group, metric.order if metric else len(self._metrics), name

    def _suggest(self, name: str) -> str:
        return did_you_mean(name, [*self._metrics, *self._aliases])


def split_name(name: str) -> tuple[str, str]:
    """Namespace and label: `train`, `loss`; step axes have no namespace."""
    namespace, slash, label = name.partition("/")
    if slash:
        return (namespace, label)
    return ("", name)


@cache
def load_catalogue() -> Catalogue:
    """The catalogue that is shipped with the package."""
    return Catalogue(parse(_FILE.read_text(encoding="utf-8")))


def parse(text: str) -> Iterator[Metric]:
    """Metrics of a catalogue file: JSON (which is YAML too) below `#` comment lines."""
    body = "\n".join("" if line.startswith("#") else line for line in text.splitlines())
    for order, (name, entry) in enumerate(json.loads(body).items()):
        yield _metric(name, order, entry)


def _metric(name: str, order: int, entry: dict[str, Any]) -> Metric:
    aliases = {
        library: Alias(**alias) if isinstance(alias, dict) else Alias(alias)
        for library, alias in entry["aliases"].items()
    }
    return Metric(
        name=name,
        meaning=entry["meaning"],
        unit=entry["unit"],
        precision=entry["precision"],
        order=order,
        highlight=None if entry["highlight"] == "none" else entry["highlight"],
        bounds=None if entry["bounds"] == "none" else tuple(entry["bounds"]),
        direction=entry["direction"],
        row=entry["row"],
        aliases=aliases,
        healthy=entry.get("healthy", ""),
    )

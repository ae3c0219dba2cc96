"""Which metrics are meant: by our name, another library's, or a pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gymnast.errors import UsageError, did_you_mean
from gymnast.metrics.catalogue import load_catalogue

EXPRESSION = "re:"
"""How a regular expression begins; `train/*` is a pattern without it."""


@dataclass(frozen=True)
class Wanted:
    """One metric as it was asked for."""

    name: str
    """As asked: `train/entropy_loss`."""
    column: str
    """As logged: `train/entropy`."""
    factor: float = 1.0
    """What a logged value is multiplied by under the name that was asked for."""


class Selection:
    """Names and patterns of metrics; which metrics the patterns mean is known once a file's names are."""

    def __init__(self, asked: Sequence[str]) -> None:
        self._asked = list(asked)
        self._patterns = {text: found for text in asked if (found := _pattern(text)) is not None}
        self._aliases = {text: _ours(text) for text in asked if text not in self._patterns}

    def __contains__(self, name: str) -> bool:
        """Whether a logged metric is wanted."""
        named = any(name in (text, column) for text, (column, _) in self._aliases.items())
        return named or any(matches(name) for matches in self._patterns.values())

    def among(self, logged: Iterable[str]) -> list[Wanted]:
        """What is meant, given what was logged: in the order asked for, each once."""
        names = list(logged)
        found: dict[str, Wanted] = {}
        for text in self._asked:
            if text in self._patterns:
                fitting = [Wanted(name, name) for name in names if self._patterns[text](name)]
            else:
                fitting = [self._by_name(text, names)]
            for one in fitting:
                found.setdefault(one.name, one)
        return list(found.values())

    def _by_name(self, text: str, names: list[str]) -> Wanted:
        catalogue = load_catalogue()
        column, factor = self._aliases[text]
        if text in names or text in catalogue:  # logged later, or never: a series without points
            return Wanted(text, text)
        if column in catalogue:
            return Wanted(text, column, factor)
        known = dict.fromkeys([*names, *(metric.name for metric in catalogue)])
        raise UsageError(f"Unknown metric '{text}'.{did_you_mean(text, known)}")


def _ours(text: str) -> tuple[str, float]:
    """What we call a metric, and the factor to its value under this name; itself where the catalogue does not know it."""
    catalogue = load_catalogue()
    try:
        return catalogue.resolve_name(text), catalogue.alias_factor(text)
    except UsageError:  # a plug-in may log it
        return text, 1.0


def _pattern(text: str) -> Callable[[str], bool] | None:
    """What a pattern accepts; None if the text is a name."""
    if text.startswith(EXPRESSION):
        try:
            expression = re.compile(text.removeprefix(EXPRESSION))
        except re.error as error:
            raise UsageError(f"'{text}' is no regular expression: {error}.") from None
        return lambda name: expression.search(name) is not None
    if any(letter in text for letter in "*?["):
        return lambda name: fnmatch.fnmatchcase(name, text)
    return None

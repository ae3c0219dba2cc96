"""One process for all tests of faults that has imported everything and forks the commands they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults.server import Server


@pytest.fixture(scope="session")
def commands() -> Iterator[Server]:
    """Runs `gymnast`, with faults where asked for."""
    with Server() as server:
        yield server

"""One process for all tests of faults that has imported everything and forks the commands they run."""

from __future__ import annotations

import pytest
from faults.server import Server, the_server


@pytest.fixture(scope="session")
def commands() -> Server:
    """Runs `gymnast`, with faults where asked for."""
    return the_server()


@pytest.fixture(autouse=True)
def _no_films(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of tests are too short to film themselves, however slow the machine is; tests about that say otherwise."""
    monkeypatch.setattr("gymnast.training.showing.ending.allowance", lambda ran: 0.0)

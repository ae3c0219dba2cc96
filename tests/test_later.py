"""Modules that are imported when something of them is first used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gymnast.later import Later


def test_it_is_imported_with_its_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before; and what is replaced in the module is what its users find."""
    (tmp_path / "costly_module.py").write_text("cost = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    costly = Later("costly_module")
    assert "costly_module" not in sys.modules
    assert costly.cost == 3
    monkeypatch.setattr(sys.modules["costly_module"], "cost", 5)
    assert costly.cost == 5
    del sys.modules["costly_module"]


def test_what_is_not_there_is_named_as_by_an_import() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = Later("no_such_module").anything
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = Later("json").no_such_name

"""Which files of tests are begun first.

Two workers take file after file. If the last one takes half a minute, one worker waits that long for the other; so those that
take long come first, and xdist is told to keep this order (it would begin with the files of the most tests).
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONG = (
    "examples/test_examples.py",
    "training/test_trackers.py",
    "studio/test_inspector.py",
    "training/test_async_eval.py",
    "training/test_faults.py",
    "hub/test_export.py",
    "hub/test_eject.py",
    "studio/test_play_page.py",
    "studio/test_pages.py",
    "docs/test_tour.py",
    "docs/test_migration_pages.py",
    "training/test_learning.py",
    "training/test_resume_presets.py",
    "metrics/test_keys.py",
    "api/test_process.py",
    "api/test_seeds.py",
    "api/test_notebook.py",
    "benchmarks/test_soak.py",
    "runs/test_concurrency.py",
    "envs/test_stopped_machine.py",
    "test_family_plugin.py",
)


def long_ones_first(items: list[pytest.Item]) -> None:
    """Sort the tests; all other files stay in their order."""
    places = {TESTS / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))

"""What is set before torch is imported."""

from __future__ import annotations

import os

import pytest

from gymnast.cli.process import let_idle_threads_sleep
from gymnast.config.load import resolve


@pytest.mark.parametrize(
    ("vectorization", "before", "expected"),
    [
        ("workers", {}, "20000"),
        ("inprocess", {}, None),
        ("workers", {"GOMP_SPINCOUNT": "7"}, "7"),
        ("workers", {"OMP_WAIT_POLICY": "active"}, None),
    ],
)
def test_threads_of_torch_leave_the_cores_to_env_workers(
    vectorization: str, before: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that what the call sets is put back
        monkeypatch.delenv(name)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    let_idle_threads_sleep(resolve("CartPole-v1:ppo", [f"env.vectorization={vectorization}"]))
    assert os.environ.get("GOMP_SPINCOUNT") == expected

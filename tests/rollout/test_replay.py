"""The replay: a ring of records with declared fields."""

from __future__ import annotations

import pytest
import torch

from gymnast.policies.base import Field
from gymnast.rollout.replay import Replay

FIELDS = [Field("obs", (2,)), Field("action", dtype=torch.int64), Field("terminated", dtype=torch.bool)]


def records(first: int, count: int) -> dict[str, torch.Tensor]:
    """Records that tell their number in every field."""
    numbers = torch.arange(first, first + count)
    return {"obs": numbers.float().unsqueeze(1).expand(-1, 2), "action": numbers, "terminated": numbers % 2 == 1}


@pytest.mark.parametrize("chunks", [(3,), (4, 4), (3, 9, 2), (25,), (7, 7, 7)])
def test_the_newest_records_stay(chunks: tuple[int, ...]) -> None:
    """However they come in, fields stay together."""
    replay = Replay(8, FIELDS)
    for count in chunks:
        replay.add(**records(replay.total, count))
    total = sum(chunks)
    assert replay.total == total and len(replay) == min(8, total)
    newest = replay.newest(100)
    expected = records(total - len(replay), len(replay))
    assert all(torch.equal(newest[name], expected[name]) for name in expected)


def test_samples_are_uniform_over_what_is_there() -> None:
    """All kept records, and no others; chi-squared with 7 degrees of freedom is below 24.3 in 999 of 1000 cases."""
    replay = Replay(8, FIELDS)
    replay.add(**records(0, 13))
    drawn = replay.sample(8_000, torch.Generator().manual_seed(0))
    numbers, counts = drawn["action"].unique(return_counts=True)
    assert numbers.tolist() == list(range(5, 13))
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 24.3
    assert torch.equal(drawn["obs"][:, 1], drawn["action"].float())


@pytest.mark.parametrize("capacity", [4, 8, 20])
def test_it_is_restored_into_another_size(capacity: int) -> None:
    """A smaller one holds the newest, a larger one has room for more."""
    before = Replay(8, FIELDS)
    before.add(**records(0, 6))
    pieces = [(0, before.records(0))]
    before.add(**records(6, 5))
    pieces.append((6, before.records(6)))
    after = Replay(capacity, FIELDS)
    after.restore(before.total, len(before), pieces)
    kept = min(capacity, 8)
    assert len(after) == kept and after.total == 11
    assert after.newest(kept)["action"].tolist() == list(range(11 - kept, 11))
    after.add(**records(11, 2))
    assert after.newest(2)["action"].tolist() == [11, 12]


def test_records_of_another_size_are_refused() -> None:
    """Those of an env with other observations."""
    replay = Replay(8, FIELDS)
    with pytest.raises(ValueError, match="another size"):
        replay.restore(1, 1, [(0, b"123")])

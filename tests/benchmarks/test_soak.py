"""Nothing grows in a run of many iterations, and its metrics can be read all the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from soak import ITERATION, Follower, Sample, soak, summary


@pytest.mark.parametrize("iterations", [1000, pytest.param(2000, marks=pytest.mark.full)])
def test_many_short_iterations_leak_nothing(iterations: int) -> None:
    """In the longer one, a kilobyte lost per iteration would be seen; one handle per checkpoint or evaluation in both."""
    samples = soak(iterations, every=0.1)
    found = summary(samples, warm_up=0.4)
    late = [one for one in samples if one.iteration >= 0.4 * found["iterations"]]
    assert len(late) >= 5
    assert late[-1].rss_mb - late[0].rss_mb < 0.8
    # The status, the index and a checkpoint are open now and then; 10 evaluations and 20 checkpoints, or more, lie in between.
    assert found["files"]["max"] - found["files"]["min"] <= 6
    assert found["files"]["max"] < 20
    assert found["threads"]["max"] <= 3


def test_the_slope_is_found() -> None:
    samples = [Sample(i, i / 10, 100 + 0.002 * i + (i % 2) / 100, 5, 2) for i in range(0, 10_000, 100)]
    assert summary(samples)["rss_mb_per_10k_iterations"] == pytest.approx(20, rel=0.01)


def test_the_reader_takes_parts_of_lines_and_refuses_gaps(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{{"env_steps": {ITERATION}}}\n{{"env_st')
    follower = Follower(path)
    assert follower.read() == 1
    with path.open("a") as file:
        file.write(f'eps": {2 * ITERATION}}}\n')
    assert follower.read() == 2
    with path.open("a") as file:
        file.write(f'{{"env_steps": {4 * ITERATION}}}\n')
    with pytest.raises(AssertionError, match="32 env steps after 16"):
        follower.read()

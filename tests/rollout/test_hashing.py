"""Hashes tell rows apart exactly as their bytes do, and on any device alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gymnast.rollout.hashing import combined, row_hashes, tensor_hashes

T, N = 30, 20
RANDOM = np.random.default_rng(0)
ROWS: dict[str, np.ndarray] = {
    "numbers": RANDOM.integers(0, 300, (T, N)),
    "one-hot floats": np.eye(60, dtype=np.float32)[RANDOM.integers(0, 60, (T, N))],
    "one-hot doubles": np.eye(60)[RANDOM.integers(0, 60, (T, N))],
    "halves": RANDOM.choice([0.0, 0.5, 1.0, -1.0, 2.0], (T, N, 5)).astype(np.float32),
    "odd images": RANDOM.integers(0, 2, (T, N, 3, 1, 3), np.uint8) * np.uint8(236),
    "flags": RANDOM.integers(0, 2, (T, N, 9)).astype(np.bool_),
}


def one_pixel_on(places: np.ndarray) -> np.ndarray:
    """A black image with one pixel that is not."""
    images = np.zeros((*places.shape, 4 * 84 * 84), np.uint8)
    np.put_along_axis(images, places[..., None], 236, -1)
    return images.reshape(*places.shape, 4, 84, 84)


def partition(keys: Any) -> list[int]:
    """Which rows are equal, whatever the keys are."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


@pytest.mark.parametrize("kind", [*ROWS, "one pixel"])
def test_equal_hashes_are_equal_rows(kind: str) -> None:
    rows = one_pixel_on(RANDOM.integers(0, 4 * 84 * 84, (T, N)) // 16) if kind == "one pixel" else ROWS[kind]
    flat = rows.reshape(T * N, -1)
    expected = partition(row.tobytes() for row in flat)
    assert len(set(expected)) < T * N or kind == "halves"
    hashes = row_hashes(rows)
    assert hashes.shape == (T, N)
    assert partition(hashes.ravel().tolist()) == expected
    assert np.array_equal(tensor_hashes(torch.from_numpy(rows)), hashes)


def test_channels_last_memory_is_read_as_it_lies() -> None:
    """The same images in another layout have other hashes, but as many distinct ones."""
    images = RANDOM.integers(0, 2, (T, N, 2, 2, 3), np.uint8)
    laid_out = np.ascontiguousarray(images.transpose(0, 1, 3, 4, 2)).transpose(0, 1, 4, 2, 3)
    assert np.array_equal(images, laid_out) and not laid_out.flags.c_contiguous
    assert partition(row_hashes(images).ravel().tolist()) == partition(row_hashes(laid_out).ravel().tolist())


def test_combined_hashes_know_their_order() -> None:
    a, b = row_hashes(ROWS["numbers"]), row_hashes(ROWS["flags"])
    assert partition(combined(a, b).ravel().tolist()) == partition(
        zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    )
    assert not np.array_equal(combined(a, b), combined(b, a))

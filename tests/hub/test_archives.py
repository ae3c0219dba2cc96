"""Members that unpack to hundreds of megabytes are refused by the sizes that the archive names, before they are unpacked."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from gymnast.errors import CheckpointError
from gymnast.hub.archives import MAX_MEMBER, Archive

EMPTY = b" " * (MAX_MEMBER + 1)


def packed(**members: bytes) -> bytes:
    """A zip file in memory."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("weights", [False, True])
def test_a_member_made_to_fill_the_memory(weights: bool) -> None:
    with Archive(packed(data=EMPTY), "model.zip") as archive:
        tracemalloc.start()
        with pytest.raises(CheckpointError, match="holds data of 64 MiB in 0.* MiB: it is made to fill the memory"):
            archive.read("data", weights=weights)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 20


def test_large_weights_are_read() -> None:
    """Random numbers cannot be packed."""
    numbers = np.random.default_rng(0).bytes(MAX_MEMBER + 1)
    with Archive(packed(weights=numbers), "model.zip") as archive:
        assert archive.read("weights", weights=True) == numbers
        with pytest.raises(CheckpointError, match="holds weights of 64 MiB"):
            archive.read("weights")

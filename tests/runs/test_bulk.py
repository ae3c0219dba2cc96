"""Bulk data: what a checkpoint writes, what it refers to, and what becomes of files that are damaged or no longer needed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from gymnast.errors import CheckpointError
from gymnast.policies.base import Field
from gymnast.rollout.replay import Replay
from gymnast.runs import bulk, checkpoint
from gymnast.runs.bulk import BulkStore, Series
from gymnast.runs.checkpoint import Packed

CAPACITY = 100


def replay() -> Replay:
    """Records of 8 + 4 bytes."""
    return Replay(CAPACITY, [Field("action", dtype=torch.int64), Field("reward")])


def fill(data: Replay, count: int) -> None:
    """Records that tell their number."""
    numbers = torch.arange(data.total, data.total + count)
    data.add(action=numbers, reward=numbers.float())


def held(data: Replay) -> list[int]:
    """The numbers of the records, oldest first."""
    return data.newest(len(data))["action"].tolist()


def saved(run: Path, store: BulkStore, data: Replay, step: int) -> Packed:
    """A checkpoint as a run writes it."""
    packed = checkpoint.pack(step, {"w": torch.zeros(2)}, {}, {}, {}, store.take({"replay": data}))
    store.sync()
    checkpoint.write(run, packed)
    return packed


def restored(run: Path, step: int) -> Replay:
    """The data of a checkpoint, read by a new process."""
    data = replay()
    found = checkpoint.load(run / "checkpoints" / f"step={step}")
    BulkStore(run).restore(found.manifest.bulk, {"replay": data})
    return data


def names(run: Path) -> list[str]:
    """The files there are."""
    return sorted(path.name for path in (run / bulk.FOLDER).iterdir())


def test_a_checkpoint_writes_only_what_is_new(tmp_path: Path) -> None:
    data, store = replay(), BulkStore(tmp_path)
    fill(data, 60)
    saved(tmp_path, store, data, 1)
    file = tmp_path / "bulk" / "00001.bin"
    assert file.stat().st_size == 60 * 12
    fill(data, 5)
    saved(tmp_path, store, data, 2)
    saved(tmp_path, store, data, 3)  # nothing is new
    assert file.stat().st_size == 65 * 12
    assert [held(restored(tmp_path, step)) for step in (1, 2, 3)] == [
        list(range(60)),
        list(range(65)),
        list(range(65)),
    ]


def test_what_was_forgotten_is_not_given_back(tmp_path: Path) -> None:
    """Also where more came in between than there is room for."""
    data, store = replay(), BulkStore(tmp_path)
    for step, count in enumerate((70, 50, 250), start=1):
        fill(data, count)
        packed = saved(tmp_path, store, data, step)
        again = restored(tmp_path, step)
        assert held(again) == held(data) and again.total == data.total
    assert [(piece.first, piece.count) for piece in packed.bulk["replay"].pieces] == [(270, 100)]
    fill(data, 7), fill(again, 7)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    first, second = (one.sample(64, g)["reward"] for one, g in zip((data, again), generators, strict=True))
    assert torch.equal(first, second)


def test_a_resumed_run_begins_a_file_of_its_own(tmp_path: Path) -> None:
    """It goes on from an earlier checkpoint; those of the attempt before it stay whole."""
    data, store = replay(), BulkStore(tmp_path)
    fill(data, 40)
    saved(tmp_path, store, data, 1)
    fill(data, 40)
    saved(tmp_path, store, data, 2)
    before = (tmp_path / "bulk" / "00001.bin").read_bytes()
    again, other = replay(), BulkStore(tmp_path)
    other.restore(checkpoint.load(tmp_path / "checkpoints" / "step=1").manifest.bulk, {"replay": again})
    again.add(action=-torch.ones(3, dtype=torch.int64), reward=torch.zeros(3))
    saved(tmp_path, other, again, 3)
    assert names(tmp_path) == ["00001.bin", "00002.bin"]
    assert (tmp_path / "bulk" / "00001.bin").read_bytes() == before
    assert (tmp_path / "bulk" / "00002.bin").stat().st_size == 3 * 12
    assert held(restored(tmp_path, 3)) == [*range(40), -1, -1, -1] and held(restored(tmp_path, 2)) == list(range(80))


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_tail_is_found_and_the_checkpoint_before_it_taken(tmp_path: Path, damage: str) -> None:
    data, store = replay(), BulkStore(tmp_path)
    for step in (1, 2):
        fill(data, 30)
        saved(tmp_path, store, data, step)
    file = tmp_path / "bulk" / "00001.bin"
    raw = file.read_bytes()
    if damage == "cut":
        file.write_bytes(raw[:-1])
    elif damage == "flipped":
        file.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    else:
        file.unlink()
    with pytest.raises(CheckpointError, match=r"00001\.bin', which holds data of a checkpoint, is damaged"):
        checkpoint.load(tmp_path / "checkpoints" / "step=2")
    assert checkpoint.load(tmp_path / "checkpoints" / "step=2", with_state=False).manifest.step == 2  # it can still act
    if damage == "gone":
        with pytest.raises(CheckpointError, match="no whole checkpoint"):
            checkpoint.load_latest(tmp_path)
    else:
        found, skipped = checkpoint.load_latest(tmp_path)
        assert found.manifest.step == 1 and len(skipped) == 1


def test_a_tail_that_nobody_refers_to_does_no_harm(tmp_path: Path) -> None:
    """A process killed between data and checkpoint leaves one."""
    data, store = replay(), BulkStore(tmp_path)
    fill(data, 30)
    saved(tmp_path, store, data, 1)
    with (tmp_path / "bulk" / "00001.bin").open("ab") as file:
        file.write(b"torn")
    assert held(restored(tmp_path, 1)) == list(range(30))


def test_files_go_when_no_checkpoint_needs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one on disk nor one in memory."""
    monkeypatch.setattr(bulk, "FILE_BYTES", 40 * 12)
    data, store = replay(), BulkStore(tmp_path)
    packed = {}
    for step in range(1, 9):
        fill(data, 40)
        packed[step] = saved(tmp_path, store, data, step)
    assert names(tmp_path) == [f"{number:05d}.bin" for number in range(1, 9)]
    checkpoint.prune(tmp_path, 1)
    checkpoint.prune_bulk(tmp_path, [packed[3]])
    assert names(tmp_path) == [f"{number:05d}.bin" for number in (1, 2, 3, 6, 7, 8)]
    checkpoint.prune_bulk(tmp_path)
    assert names(tmp_path) == ["00006.bin", "00007.bin", "00008.bin"]
    assert held(restored(tmp_path, 8)) == list(range(220, 320))


def test_nothing_goes_while_a_checkpoint_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what it needs."""
    monkeypatch.setattr(bulk, "FILE_BYTES", 1)
    data, store = replay(), BulkStore(tmp_path)
    for step in (1, 2):
        fill(data, CAPACITY)
        saved(tmp_path, store, data, step)
    manifest = tmp_path / "checkpoints" / "step=1" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-9])
    checkpoint.prune_bulk(tmp_path)
    assert names(tmp_path) == ["00001.bin", "00002.bin"]


class Full:
    """A file on a disk that takes `room` bytes more."""

    def __init__(self, file, room: int) -> None:
        self._file, self.room = file, room

    def write(self, raw) -> int:
        """A part, then an error."""
        part = raw[: self.room]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(part)
        return self._file.write(part)

    def __getattr__(self, name: str):
        return getattr(self._file, name)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """What could not be written waits, and is written with the next checkpoint."""
    data, store = replay(), BulkStore(tmp_path)
    fill(data, 10)
    saved(tmp_path, store, data, 1)
    store._files["00001.bin"] = full = Full(store._files["00001.bin"], 50)
    fill(data, 10)
    series = store.take({"replay": data})  # training goes on
    with pytest.raises(CheckpointError, match="could not be written to .* No space left"):
        store.sync()
    full.room = 10_000
    fill(data, 10)
    saved(tmp_path, store, data, 3)
    assert held(restored(tmp_path, 3)) == list(range(30))
    bulk.verify(tmp_path, series.values())


def test_a_folder_that_vanished_is_written_anew(tmp_path: Path) -> None:
    data, store = replay(), BulkStore(tmp_path)
    fill(data, 10)
    saved(tmp_path, store, data, 1)
    assert store.is_whole()
    (tmp_path / "bulk" / "00001.bin").unlink()
    assert not store.is_whole()
    store.forget()
    fill(data, 10)
    saved(tmp_path, store, data, 2)
    assert held(restored(tmp_path, 2)) == list(range(20)) and names(tmp_path) == ["00002.bin"]


@pytest.mark.parametrize(
    "change",
    [
        {"pieces": [[0, 10, "../../secret", 0, 5, "a"]]},
        {"pieces": [[0, 10, "00001.bin", -1, 5, "a"]]},
        {"pieces": [[0, 4, "00001.bin", 0, 5, "a"], [5, 5, "00001.bin", 5, 5, "a"]]},
        {"pieces": [[3, 7, "00001.bin", 0, 5, "a"]]},
        {"pieces": []},
        {"total": 11},
        {"kept": 2.0},
    ],
)
def test_forged_pieces_are_refused(change: dict) -> None:
    """Names that lead elsewhere, and pieces that do not hold what is needed."""
    right = {"total": 10, "kept": 10, "pieces": [[0, 10, "00001.bin", 0, 5, "a"]]}
    assert Series.from_json(right).as_json() == right
    with pytest.raises(ValueError):
        Series.from_json(right | change)

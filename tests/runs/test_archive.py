"""Archives: what goes in, what comes out, and hostile files that leave nothing behind."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from made_runs import add_checkpoints, contents, finished_run, make_run

from gymnast.errors import UsageError
from gymnast.policies.base import Field
from gymnast.rollout.replay import Replay
from gymnast.runs import bulk, checkpoint, unpack
from gymnast.runs.archive import MANIFEST, export_runs
from gymnast.runs.bulk import BulkStore
from gymnast.runs.index import list_runs, read_row
from gymnast.runs.labels import change_tags, read_note, write_note
from gymnast.runs.store import Run, is_id
from gymnast.runs.unpack import ORIGIN, import_runs


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A finished run with everything a run can have."""
    run = finished_run(tmp_path / "runs", 9.5)
    add_checkpoints(run, 10, 20, 30, best=20)
    change_tags(run, ["good", "paper-1"])
    write_note(run, "the one of Tuesday\nwith two lines")
    (run.folder / "lineage.json").write_text('{"attempts": [], "parent": null}')
    (run.folder / "config-1.json").write_text('{"name": "as it was before"}')
    (run.folder / "trace.jsonl").write_text('{"iteration": 1}\n')
    for suffix in (".mp4", ".webm", ".gif"):
        (run.videos / f"step=30-seed0{suffix}").write_bytes(os.urandom(1000))
    return run


def names(path: Path) -> set[str]:
    return {name.partition("/")[2] for name in zipfile.ZipFile(path).namelist()} - {""}


# --- out and in -----------------------------------------------------------------------------------------------------


def test_everything_comes_back(run: Run, tmp_path: Path) -> None:
    """Another folder gets the same run under the same id: same files, same row, nothing to do a second time."""
    path = tmp_path / "run.zip"
    packed = export_runs([run], path, all_checkpoints=True, videos=True)
    assert packed.size == path.stat().st_size
    (found,) = import_runs(path, tmp_path / "other")
    assert (found.was, found.run.id, found.already_here) == (run.id, run.id, False)
    before, after = contents(run.folder), contents(found.run.folder)
    assert after.pop(ORIGIN)
    for name in (
        "config.json",
        "status.json",
        "tags.json",
        "lineage.json",
        "config-1.json",
    ):  # written anew, with the same content
        assert json.loads(before.pop(name)) == json.loads(after.pop(name))
    before.pop("lock", None)
    assert after == before
    assert read_note(found.run) == "the one of Tuesday\nwith two lines"
    assert list_runs(tmp_path / "other") == [read_row(run)]
    state = contents(tmp_path / "other")
    (again,) = import_runs(path, tmp_path / "other")
    assert again.already_here and again.run == found.run
    (home,) = import_runs(path, run.root)
    assert home.already_here and home.run == run
    assert contents(tmp_path / "other") == state and len(list_runs(run.root)) == 1


def test_best_and_last_by_default(run: Run, tmp_path: Path) -> None:
    """The other checkpoints and the videos stay behind unless asked for."""
    export_runs([run], tmp_path / "a.zip")
    folders = {name.split("/")[1] for name in names(tmp_path / "a.zip") if name.startswith("checkpoints/")}
    assert folders == {"best", "last", "step=20", "step=30"}
    assert not any(name.startswith("videos") for name in names(tmp_path / "a.zip"))
    for pointer in ("best", "last"):
        (run.checkpoints / pointer).unlink()
    export_runs([run], tmp_path / "b.zip")
    folders = {name.split("/")[1] for name in names(tmp_path / "b.zip") if name.startswith("checkpoints/")}
    assert folders == {"step=30"}, "without pointers the newest goes along"


def test_bulk_data_travels_with_the_checkpoints_that_need_it(run: Run, tmp_path: Path) -> None:
    """And no more of it."""
    data, store = Replay(4, [Field("action")]), BulkStore(run.folder)
    for step in (700, 800):
        data.add(action=torch.full((4,), float(step)))
        checkpoint.write(run.folder, checkpoint.pack(step, {}, {}, {}, {}, store.take({"replay": data})))
        store.sync()
        store = BulkStore(run.folder)
    assert len(list((run.folder / "bulk").iterdir())) == 2
    export_runs([run], tmp_path / "run.zip")
    import_runs(tmp_path / "run.zip", tmp_path / "other")
    found = checkpoint.load(tmp_path / "other" / run.id / "checkpoints" / "step=800")
    assert bulk.files_of(found.manifest.bulk.values()) == {"00002.bin"}
    assert [path.name for path in (tmp_path / "other" / run.id / "bulk").iterdir()] == ["00002.bin"]


def test_only_known_files_travel(run: Run, tmp_path: Path) -> None:
    """No lock, no temporary or strange file, nothing through a link."""
    secret = tmp_path / "secret.txt"
    secret.write_text("of this machine")
    run.lock().release()
    (run.folder / ".config.json.123-4").write_text("temporary")
    (run.folder / "id_rsa").write_text("strange")
    (run.videos / "step=30.exe").write_text("strange")
    (run.checkpoints / ".tmp-1-2-3").mkdir()
    (run.checkpoints / ".tmp-1-2-3" / "policy.safetensors").write_text("half")
    run.log_path.unlink()
    run.log_path.symlink_to(secret)
    (run.videos / "link.mp4").symlink_to(secret)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "policy.safetensors").write_text("elsewhere")
    (run.checkpoints / "step=99").symlink_to(outside)
    export_runs([run], tmp_path / "a.zip", all_checkpoints=True, videos=True)
    found = names(tmp_path / "a.zip")
    assert not found & {"lock", ".config.json.123-4", "id_rsa", "log.txt", "videos/link.mp4", "videos/step=30.exe"}
    assert not any("tmp" in name or "step=99" in name for name in found)
    raw = b"".join(
        zipfile.ZipFile(tmp_path / "a.zip").read(name) for name in zipfile.ZipFile(tmp_path / "a.zip").namelist()
    )
    assert b"of this machine" not in raw and b"elsewhere" not in raw


def test_secrets_stay_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a run that was made before configs were checked."""
    monkeypatch.setenv("SOME_API_KEY", "canary-of-the-environment")
    run = finished_run(tmp_path / "runs", token="canary-of-the-config", ref="$NAME")
    run.log_path.write_text("made with canary-of-the-environment and hf_abcdefghijklmnopqrstuvwxyz\n")
    write_note(run, "password: canary-of-the-note")
    export_runs([run], tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        text = b"".join(packed.read(name) for name in packed.namelist()).decode()
    assert "canary" not in text and "hf_abc" not in text
    (found,) = import_runs(tmp_path / "a.zip", tmp_path / "other")
    assert found.run.config()["env"]["kwargs"] == {"token": "***", "ref": "$NAME"}


def test_a_taken_id(run: Run, tmp_path: Path) -> None:
    """Another run under that id stays as it is; the imported one gets a fresh id."""
    export_runs([run], tmp_path / "a.zip")
    other = tmp_path / "other"
    make_run(other).folder.rename(other / run.id)
    there = contents(other / run.id)
    (found,) = import_runs(tmp_path / "a.zip", other)
    assert found.run.id != run.id and is_id(found.run.id) and found.was == run.id
    assert contents(other / run.id) == there
    assert {row.id for row in list_runs(other)} == {run.id, found.run.id}
    assert import_runs(tmp_path / "a.zip", other)[0].run == found.run, "found again under its new id"


def test_several_runs_at_once(run: Run, tmp_path: Path) -> None:
    """One file; one that is there already does not keep the others out."""
    second = finished_run(run.root, 3.0, seed=2)
    export_runs([run, second, run], tmp_path / "a.zip")
    export_runs([second], tmp_path / "b.zip")
    import_runs(tmp_path / "b.zip", tmp_path / "other")
    found = import_runs(tmp_path / "a.zip", tmp_path / "other")
    assert {one.was: one.already_here for one in found} == {run.id: False, second.id: True}
    assert {row.id for row in list_runs(tmp_path / "other")} == {run.id, second.id}


def test_a_run_that_ended_without_a_word(tmp_path: Path) -> None:
    """A crashed run says `running`; elsewhere it is interrupted and can be resumed. A live one is not exported."""
    run = make_run(tmp_path / "runs")
    with pytest.raises(UsageError, match=f"being trained by process {os.getpid()}"):
        export_runs([run], tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()
    run.update(process_start="1")
    export_runs([run], tmp_path / "a.zip")
    (found,) = import_runs(tmp_path / "a.zip", tmp_path / "other")
    status = found.run.status()
    assert (status.state, status.stop_reason) == ("interrupted", "exported while running")
    assert import_runs(tmp_path / "a.zip", tmp_path / "other")[0].already_here


def test_what_a_killed_import_left_is_swept(run: Run, tmp_path: Path) -> None:
    """A half-unpacked run is no run; that of a process that still works stays."""
    export_runs([run], tmp_path / "a.zip")
    root = tmp_path / "other"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for pid in (gone.pid, os.getpid(), os.getppid()):
        (root / f".import-{pid}" / "abcde").mkdir(parents=True)
    import_runs(tmp_path / "a.zip", root)
    assert [path.name for path in root.glob(".import-*")] == [f".import-{os.getppid()}"]
    assert [row.id for row in list_runs(root)] == [run.id]


def test_an_existing_file_is_kept(run: Run, tmp_path: Path) -> None:
    """Unless told otherwise; a failed export leaves no half file."""
    path = tmp_path / "a.zip"
    path.write_text("precious")
    with pytest.raises(UsageError, match="there already"):
        export_runs([run], path)
    run.config_path.write_text("{")
    with pytest.raises(UsageError, match=r"config\.json' is damaged"):
        export_runs([run], path, replace=True)
    assert path.read_text() == "precious"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.zip", "runs"]
    with pytest.raises(UsageError, match="cannot be written"):
        export_runs([finished_run(run.root)], tmp_path / "no" / "folder.zip")


# --- hostile files --------------------------------------------------------------------------------------------------

Members = dict[str, bytes]


def built(
    path: Path, members: Members, change: Callable[[zipfile.ZipFile, dict[str, Any]], None] | None = None
) -> Path:
    """An archive with an honest manifest over `members`, after `change` had its way with both."""
    files = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()}
    manifest: dict[str, Any] = {"format": 1, "gymnast": "0", "created": "", "runs": [{"id": "abcde", "files": files}]}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        if change is not None:
            change(target, manifest)
        for name, data in members.items():
            if f"abcde/{name}" not in target.namelist():
                target.writestr(f"abcde/{name}", data)
        if MANIFEST not in target.namelist():
            target.writestr(MANIFEST, json.dumps(manifest))
    return path


GOOD: Members = {
    "config.json": b'{"name": "E:ppo", "env": {"id": "E"}, "algo": {"id": "ppo"}}',
    "status.json": b'{"state": "finished", "created": "2026-01-01", "started": "2026-01-01", "heartbeat": "2026-01-01"}',
}


def with_member(
    name: str, data: bytes = b"x", attributes: int = 0
) -> Callable[[zipfile.ZipFile, dict[str, Any]], None]:
    def change(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr = attributes << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        target.writestr(info, data)
        files = manifest["runs"][0]["files"]
        files[name.removeprefix("abcde/")] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    return change


def twice(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        for data in (GOOD["config.json"], b"{}"):
            target.writestr("abcde/config.json", data)


def wrong_hash(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    manifest["runs"][0]["files"]["config.json"]["sha256"] = "0" * 64


def wrong_size(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    manifest["runs"][0]["files"]["config.json"]["size"] += 1


def unlisted(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    del manifest["runs"][0]["files"]["config.json"]


def large_manifest(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    filler = os.urandom(unpack.MAX_MANIFEST // 2).hex()
    target.writestr(MANIFEST, json.dumps({**manifest, "filler": filler + filler}))


def other_manifest(**changes: Any) -> Callable[[zipfile.ZipFile, dict[str, Any]], None]:
    return lambda target, manifest: target.writestr(MANIFEST, json.dumps({**manifest, **changes}))


def many(target: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    for number in range(unpack.MAX_MEMBERS + 1):
        target.writestr(f"abcde/videos/{number}.mp4", b"")


LINK, DEVICE, FIFO = stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o666, stat.S_IFIFO | 0o666


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_member("../evil.txt"), "not the name of a file of a run"),
        (with_member("abcde/../../evil.txt"), "not the name of a file of a run"),
        (with_member("abcde/videos/../../../evil.mp4"), "not the name of a file of a run"),
        (with_member("/etc/cron.d/evil"), "not the name of a file of a run"),
        (with_member("C:\\evil.txt"), "not the name of a file of a run"),
        (with_member("abcde\\..\\evil.txt"), "not the name of a file of a run"),
        (with_member("ABCDE/config.json"), "not the name of a file of a run"),
        (with_member("abcde/evil.py"), "not the name of a file of a run"),
        (with_member("abcde/lock"), "not the name of a file of a run"),
        (with_member("abcde/checkpoints/step=1/evil.pkl"), "not the name of a file of a run"),
        (with_member("abcde/checkpoints/step=01/manifest.json"), "not the name of a file of a run"),
        (with_member("abcde/checkpoints/"), "not the name of a file of a run"),
        (with_member("abcde/log.txt", b"/etc/passwd", LINK), "a link or a special file"),
        (with_member("abcde/log.txt", b"", DEVICE), "a link or a special file"),
        (with_member("abcde/log.txt", b"", FIFO), "a link or a special file"),
        (with_member("abcde/metrics.jsonl", bytes(100_000_000)), "would grow from"),
        (twice, "twice"),
        (wrong_hash, "does not match its checksum"),
        (wrong_size, "not the promised number"),
        (unlisted, "no config.json"),
        (large_manifest, r"gymnast-runs.json is larger than 8 MiB"),
        (many, "more than 20,000"),
        (other_manifest(format=2), "update gymnast"),
        (other_manifest(runs=[]), "is damaged"),
        (other_manifest(runs=[{"id": "../..", "files": {}}]), "is damaged"),
        (other_manifest(runs="x"), "is damaged"),
        (lambda target, manifest: target.writestr(MANIFEST, b"{" * 100_000), "is damaged|would grow"),
        (lambda target, manifest: target.writestr(MANIFEST, b"[" * 1000), "is damaged"),
    ],
)
def test_a_hostile_archive_is_refused(
    change: Callable[[zipfile.ZipFile, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    """One sentence that says why, and not a file anywhere."""
    path = built(tmp_path / "evil.zip", GOOD, change)
    with pytest.raises(UsageError, match=words) as caught:
        import_runs(path, tmp_path / "deep" / "runs")
    assert "\n" not in str(caught.value) and "Nothing was written" in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["evil.zip"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": b"not JSON"}, "config.json of run abcde is not JSON"),
        ({"config.json": b"[" * 60_000}, "config.json of run abcde is not JSON"),
        ({"config.json": b"[]"}, "it is no object"),
        ({"config.json": b'{"name": "\x1b[2Jgone"}'.replace(b"\x1b", b"\\u001b")}, "not plain text"),
        ({"status.json": b"{}"}, "names no state"),
        ({"status.json": b'{"state": "failed", "stop_reason": "\\u001b[2J"}'}, "not plain text"),
        ({"tags.json": b'["good", "two words"]'}, r"tags\.json of run abcde is damaged"),
        ({"tags.json": b'{"good": 1}'}, "it is no list"),
    ],
)
def test_content_that_is_no_run(files: Members, words: str, tmp_path: Path) -> None:
    """Honest hashes over nonsense: refused after unpacking, and the half-made folder is gone."""
    stored = {name: data + os.urandom(0) for name, data in (GOOD | files).items()}
    path = built(tmp_path / "evil.zip", stored)
    root = tmp_path / "runs"
    with pytest.raises(UsageError, match=words):
        import_runs(path, root)
    assert not root.exists()
    root.mkdir()
    with pytest.raises(UsageError, match=words):
        import_runs(path, root)
    assert list(root.iterdir()) == []


def test_the_archive_under_the_hostile_ones_is_good(tmp_path: Path) -> None:
    """Otherwise the tests above could pass for another reason."""
    (found,) = import_runs(built(tmp_path / "good.zip", GOOD), tmp_path / "runs")
    assert found.run.id == "abcde"


def test_tar_files_and_pieces_are_no_archives(run: Run, tmp_path: Path) -> None:
    """Hard links and devices only exist in tar files, and those are not read at all; nor are cut files."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as target:
        for name, kind in (("abcde/config.json", tarfile.LNKTYPE), ("abcde/log.txt", tarfile.CHRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            target.addfile(member, io.BytesIO())
    export_runs([run], tmp_path / "whole.zip")
    whole = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.zip").write_bytes(b"")
    for name in ("a.tar.gz", "cut.zip", "empty.zip"):
        with pytest.raises(UsageError, match="not a zip file"):
            import_runs(tmp_path / name, tmp_path / "other")
    with pytest.raises(UsageError, match="There is no file"):
        import_runs(tmp_path / "none.zip", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_flipped_bit_anywhere_is_noticed(run: Run, tmp_path: Path) -> None:
    """Either refused, or in a part of the file that means nothing: never another content."""
    export_runs([run], tmp_path / "whole.zip")
    whole = bytearray((tmp_path / "whole.zip").read_bytes())
    good = contents(import_runs(tmp_path / "whole.zip", tmp_path / "good")[0].run.folder)
    refused = 0
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        whole[place] ^= 0x10
        (tmp_path / "flipped.zip").write_bytes(whole)
        whole[place] ^= 0x10
        other = tmp_path / f"other{place}"
        try:
            (found,) = import_runs(tmp_path / "flipped.zip", other)
        except UsageError:
            refused += 1
            assert not other.exists()
        else:
            same = contents(found.run.folder)
            assert {**same, ORIGIN: b""} == {**good, ORIGIN: b""}
    assert refused > 50


def test_overlapping_files(tmp_path: Path) -> None:
    """Many names for the same bytes: the classic bomb without a high ratio."""
    path = built(tmp_path / "a.zip", GOOD | {"metrics.jsonl": os.urandom(50_000)})
    data = path.read_bytes()
    with zipfile.ZipFile(path) as whole:
        info = whole.getinfo("abcde/metrics.jsonl")
        size, offset = info.compress_size, info.header_offset
    # Every directory entry of another name is pointed at the large member by rewriting the directory.
    patched = bytearray(data)
    for name in (b"abcde/config.json", b"abcde/status.json"):
        entry = data.rindex(name) - 46
        patched[entry + 20 : entry + 28] = size.to_bytes(4, "little") * 2
        patched[entry + 42 : entry + 46] = offset.to_bytes(4, "little")
    path.write_bytes(patched)
    with pytest.raises(UsageError, match="overlap"):
        import_runs(path, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_more_than_anybody_wants(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is unpacked."""
    export_runs([run], tmp_path / "a.zip")
    monkeypatch.setattr(unpack, "MAX_TOTAL", 100)
    with pytest.raises(UsageError, match="would need"):
        import_runs(tmp_path / "a.zip", tmp_path / "other")
    assert not (tmp_path / "other").exists()

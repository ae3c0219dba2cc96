"""Zip files that may be damaged or hostile: read in memory, within limits, never extracted."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

from gymnast.errors import CheckpointError

MAX_MEMBERS = 10_000
MAX_TOTAL = 1 << 30
"""Bytes of all members together, uncompressed."""
MAX_MEMBER = 64 << 20
"""Bytes of one member that is not weights, uncompressed."""
MAX_INFLATION = 20
"""How many times its packed size a larger member may have: weights hardly shrink, and what does is made to fill the memory."""
_FAILURES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, KeyError, OverflowError)


class Archive:
    """A zip file whose promises were checked before anything is unpacked."""

    def __init__(self, source: Path | bytes, where: str) -> None:
        self.where = where
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        except FileNotFoundError:
            raise CheckpointError(f"There is no file {where}.") from None
        except OSError as error:
            raise CheckpointError(f"{where} cannot be read: {error.strerror or error}.") from None
        except Exception:  # zipfile raises many kinds on damaged directories
            raise CheckpointError(f"{where} is not a zip file, or only a part of one.") from None
        members = self._zip.infolist()
        problem = None
        if members and all(member.header_offset > 0 for member in members):
            # A model cut off behind an inner zip looks like that inner zip with something in front of it.
            problem = "is only a part of a zip file"
        elif len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_TOTAL:
            problem = f"is larger than any model: more than {MAX_MEMBERS:,} files or {MAX_TOTAL >> 30} GiB unpacked"
        if problem:
            self._zip.close()
            raise CheckpointError(f"{where} {problem}.")
        self.names = {member.filename for member in members}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str, *, weights: bool = False) -> bytes:
        """One member; its checksum is verified. Only `weights` may be large."""
        try:
            member = self._zip.getinfo(name)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
                raise CheckpointError(f"{self.where} has {name} encrypted or in an unusual compression.")
            if weights:
                most = max(MAX_MEMBER, MAX_INFLATION * member.compress_size)
            else:
                most = MAX_MEMBER
            if member.file_size > most:
                sizes = f"{member.file_size >> 20:,} MiB in {member.compress_size / (1 << 20):,.1f} MiB"
                what = f"{self.where} holds {name} of {sizes}"
                raise CheckpointError(f"{what}: it is made to fill the memory, and is not unpacked.")
            return self._zip.read(member)
        except _FAILURES:
            raise CheckpointError(f"{self.where} is damaged: {name} cannot be unpacked.") from None

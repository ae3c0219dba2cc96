"""WAD files: where they are, and which maps are in them. A map that is not there would let the engine wait for ever."""

from __future__ import annotations

import itertools
import struct
import zipfile
from pathlib import Path

from gymnast.errors import UsageError

HEADER, ENTRY = struct.Struct("<4sii"), struct.Struct("<ii8s")
FIRST_OF_A_MAP = (b"THINGS", b"TEXTMAP")
"""The lump behind the one that bears a map's name, in the two formats of maps."""
GAME, PATCH = b"IWAD", b"PWAD"
MOST_LUMPS = 1_000_000


def is_whole_game(path: Path) -> bool:
    """Whether it is a game by itself (doom.wad), rather than maps on top of one."""
    with path.open("rb") as file:
        return file.read(4) == GAME


def maps_in(path: Path) -> list[str]:
    """The names of the maps in a WAD or pk3, in their order."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            inside = map(Path, archive.namelist())
            return [one.stem.upper() for one in inside if one.parent.name == "maps" and one.suffix.lower() == ".wad"]
    names = _lumps(path)
    following = itertools.pairwise(names)
    return [name.decode("ascii", "replace") for name, after in following if after in FIRST_OF_A_MAP]


def _lumps(path: Path) -> list[bytes]:
    """The names in the directory of a WAD."""
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        magic, count, start = HEADER.unpack(head) if len(head) == HEADER.size else (b"", 0, 0)
        if magic not in (GAME, PATCH) or not 0 <= count <= MOST_LUMPS:
            raise UsageError(f"{path} is no WAD: it begins with {head[:4]!r} instead of IWAD or PWAD.")
        file.seek(start)
        directory = file.read(count * ENTRY.size)
    whole = len(directory) // ENTRY.size * ENTRY.size
    return [name.rstrip(b"\0").upper() for _, _, name in ENTRY.iter_unpack(directory[:whole])]

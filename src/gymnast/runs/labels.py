"""What a user says about a run: tags and a note. Each has its own file, because the training process writes the others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gymnast.errors import UsageError
from gymnast.redaction import redact
from gymnast.runs.files import alone_in, write_atomic
from gymnast.runs.store import Run

KEEP = "keep"
"""A run with this tag is never pruned."""
NOTE = "note.txt"
NOTE_LETTERS = 10_000
_TAG = re.compile(r"\w[\w.:+-]{0,39}")


def is_tag(text: str) -> bool:
    """Whether `text` can be a tag: one word."""
    return _TAG.fullmatch(text) is not None


def change_tags(run: Run, add: Iterable[str] = (), remove: Iterable[str] = ()) -> list[str]:
    """Add and remove tags; several processes may do so at once and no change is lost. The tags afterwards."""
    add = list(add)
    for tag in add:
        if not is_tag(tag):
            raise UsageError(f"'{tag}' cannot be a tag: use up to 40 letters, digits and . _ : + -, without spaces.")
        if redact(tag) != tag:
            raise UsageError(f"'{tag}' looks like a secret, and tags are saved and exported: choose another one.")
    try:
        with alone_in(run.folder):
            before = run.tags()
            after = sorted({*before, *add} - set(remove))
            if after != before:
                run.set_tags(after)
    except OSError as error:
        raise UsageError(f"The tags of run {run.id} cannot be written: {error.strerror or error}.") from error
    return after


def read_note(run: Run) -> str:
    """The note, empty when there is none. Only printable text: a run from elsewhere sends no codes to the terminal."""
    try:
        text = (run.folder / NOTE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t").strip()


def write_note(run: Run, text: str) -> None:
    """Replace the note; empty text removes it. A note is saved and exported, so `***` replaces what looks like a secret."""
    text = redact(text.strip())
    if len(text) > NOTE_LETTERS:
        raise UsageError(f"The note has {len(text):,} letters; a run keeps up to {NOTE_LETTERS:,}.")
    try:
        if text:
            write_atomic(run.folder / NOTE, text + "\n")
        else:
            (run.folder / NOTE).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"The note of run {run.id} cannot be written: {error.strerror or error}.") from error

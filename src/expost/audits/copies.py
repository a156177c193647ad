"""Transcripts that occur more than once in a folder.

Two people who gave the same few responses have equal transcripts, so equal content proves nothing.
A file is a copy if it is another file under a second name, or if its content is equal and its name
is another name with a copy mark, such as ``ann (copy).json``.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from expost.audits.bad_files import BadFile
from expost.transcript import Transcript

__all__ = ["copies", "identical"]

# What file managers and people add to the name of a copy.
_MARK = re.compile(r"^copy of |[ ._-]*\(\d+\)$|[ ._-]+\(?(copy|backup|bak)\)?([ _-]*\d+)?\)?$")


def identical(transcripts: Mapping[str, Transcript]) -> tuple[tuple[str, ...], ...]:
    """Group the subjects whose transcripts are equal; no group has only one."""
    groups: dict[str, list[str]] = {}
    for name, transcript in transcripts.items():
        groups.setdefault(transcript.content_id, []).append(name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


def copies(files: Sequence[Path], transcripts: Mapping[str, Transcript]) -> Iterator[BadFile]:
    """Describe every file that is a copy of another one, as far as that is certain."""
    first: dict[tuple[int, int], Path] = {}
    for file in files:
        stat = file.stat()
        original = first.setdefault((stat.st_dev, stat.st_ino), file)
        if original != file:
            yield _copy(file, original.name, "is the same file as")
    linked = {file.stem for file in files} - {file.stem for file in first.values()}
    paths = {file.stem: file for file in files}
    for group in identical(transcripts):
        originals: dict[str, str] = {}
        for name in sorted(set(group) - linked, key=lambda name: (len(name), name)):
            found = [originals[each] for each in _without_marks(name) if each in originals]
            if found:
                yield _copy(paths[name], paths[found[0]].name, "is a copy of")
            originals.setdefault(_folded(name), name)


def _copy(file: Path, original: str, relation: str) -> BadFile:
    reason = f"{relation} {original}, so one person would count twice. Remove one of them"
    return BadFile(os.fspath(file), reason)


def _without_marks(name: str) -> Iterator[str]:
    """A folded name, and what remains of it as its copy marks are removed one after the other."""
    before, name = "", _folded(name)
    while name != before:
        yield name
        before, name = name, _MARK.sub("", name, count=1)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()

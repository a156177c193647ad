"""Transcripts that occur more than once in a folder.

Two people who answered few questions often have equal transcripts. A file is a copy if

- it is another file under a second name;
- its transcript is equal to another one, and so long that two people would hardly ever agree by
  chance (proof: docs/theory/audits.md);
- its transcript is equal to another one, however short, and its name is the other name with a copy
  mark, such as ``ann (copy).json``.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from expost.audits.bad_files import BadFile
from expost.numbers import Nats
from expost.transcript import Transcript

__all__ = ["copies", "identical"]

# Equal transcripts are copies if their probability is below one in so many.
_RARE = 10**6

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
            yield _copy(file, f"is the same file as {original.name}")
    linked = {file.stem for file in files} - {file.stem for file in first.values()}
    paths = {file.stem: file for file in files}
    for group in identical(transcripts):
        # An original rarely has a longer name than its copy.
        names = sorted(set(group) - linked, key=lambda name: (len(name), name))
        if _beyond_chance(transcripts[group[0]], len(files)):
            reason = (
                f"has the same content as {paths[names[0]].name}; two subjects would agree by "
                f"chance with probability below 1 in {_RARE:,}"
            )
            yield from (_copy(paths[name], reason) for name in names[1:])
        else:
            for name, original_name in _marked(names):
                yield _copy(paths[name], f"is a copy of {paths[original_name].name}")


def _beyond_chance(transcript: Transcript, subjects: int) -> bool:
    """Decide whether it is too unlikely that any two of so many subjects have this transcript.

    The probability is at most the number of pairs times Π_i max_x Pr(y_i | x).
    """
    surprisals = (
        times * Fraction(query.on(transcript.domain).least_surprisal(position))
        for query, position, times in transcript.tally
    )
    pairs = subjects * (subjects - 1) // 2
    return Nats(sum(surprisals, Fraction(0))) > Nats(ratio=Fraction(pairs * _RARE))


def _copy(file: Path, relation: str) -> BadFile:
    reason = f"{relation}, so one person would count twice. Remove one of them"
    return BadFile(os.fspath(file), reason)


def _marked(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair each name that is another one with copy marks, or in other case, with that name."""
    originals: dict[str, str] = {}
    for name in names:
        without = [each for each in _without_marks(name) if each in originals]
        if without:
            yield name, originals[without[0]]
        originals.setdefault(_folded(name), name)


def _without_marks(name: str) -> Iterator[str]:
    """A folded name, and what remains of it as its copy marks are removed one after the other."""
    before, name = "", _folded(name)
    while name != before:
        yield name
        before, name = name, _MARK.sub("", name, count=1)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()

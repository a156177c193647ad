"""A folder of transcripts: a file per subject, as sessions and devices leave them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from expost.answers import Answers, queries_from_json
from expost.audits.bad_files import BadFile, BadFiles, is_hidden, unread
from expost.audits.copies import copies
from expost.errors import InvalidInput, at, expect
from expost.files.regular import read_text
from expost.filters import Filter
from expost.queries import Query
from expost.transcript import Transcript

__all__ = ["Gathered", "load_folder", "transcript_files"]

Path_ = str | os.PathLike[str]

# Of a content id, for people; longer where it would stand for two queries.
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Gathered:
    """The answers of many subjects, and what else their transcripts say."""

    answers: Answers
    """Of all subjects who were asked something. A subject is called as the file, without .json."""
    unasked: int
    """How many were not asked anything so far."""
    filters: tuple[Filter | None, ...]
    """The different filters that the transcripts name; None where one names none."""
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)
    """All transcripts of a folder by the names of their subjects; empty for other sources."""

    @property
    def filter(self) -> Filter | None:
        """The one that all of them name; None if they name different ones, or none."""
        return self.filters[0] if len(self.filters) == 1 else None


def load_folder(
    folder: Path_,
    queries: Path_ | None = None,
    *,
    complete: bool = True,
    progress: Callable[[int, int], None] | None = None,
    strict: bool = False,
) -> Gathered:
    """Read all transcripts of a folder: its files that end in ``.json``, each of one subject.

    All have to be about the same domain. ``queries`` is a file of queries, as for
    :func:`load_answers`, from which queries get their ids; without it, and where it does not have a
    query, the id is the beginning of the query's content id. ``progress`` is called with the number
    of files read and their total.

    Damaged files raise :class:`BadFiles`, which lists all of them. With ``strict``, as in audits,
    so do all other entries that are not hidden, and files that are copies of another one.
    """
    expect(folder, (str, os.PathLike), "the name of a folder")
    files, others = _entries(Path(folder))
    problems = [unread(entry, "transcripts that end in .json") for entry in others if strict]
    told = progress or (lambda done, total: None)
    transcripts: dict[str, Transcript] = {}
    for number, file in enumerate(files, start=1):
        try:
            transcripts[file.stem] = Transcript.from_json(read_text(file))
        except InvalidInput as error:
            problems.append(BadFile(os.fspath(file), str(error)))
        told(number, len(files))
    if strict:
        problems += copies([file for file in files if file.stem in transcripts], transcripts)
    if problems:
        raise BadFiles(sorted(problems, key=lambda problem: problem.file))
    if not files:
        raise InvalidInput("has no transcripts, whose names end in .json", os.fspath(folder))
    named: Mapping[str, Query] = {}
    if queries is not None:
        with at(os.fspath(queries), ": "):
            domain, named = queries_from_json(read_text(queries))
            if domain != transcripts[files[0].stem].domain:
                raise InvalidInput("is not the domain of the transcripts", "domain")
    with at(os.fspath(folder), ": "):
        answers = Answers.of_transcripts(
            transcripts, {**named, **_by_short_id(transcripts, named)}, complete=complete
        )
    filters = dict.fromkeys(each.filter for each in transcripts.values())
    return Gathered(answers, len(transcripts) - len(answers), tuple(filters), transcripts)


def transcript_files(folder: Path) -> list[Path]:
    """List the transcripts of a folder, by name."""
    return _entries(folder)[0]


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """List the transcripts of a folder and its other entries; hidden ones are neither."""
    with at(os.fspath(folder), ": "):
        try:
            entries = sorted(entry for entry in folder.iterdir() if not is_hidden(entry))
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}") from None
    files = [entry for entry in entries if entry.suffix == ".json"]
    return files, [entry for entry in entries if entry.suffix != ".json"]


def _by_short_id(
    transcripts: Mapping[str, Transcript], named: Mapping[str, Query]
) -> dict[str, Query]:
    """The queries that have no name, by beginnings of their ids that tell them apart."""
    known = {query.content_id for query in named.values()}
    others = {
        exchange.query.content_id: exchange.query
        for transcript in transcripts.values()
        for exchange in transcript.exchanges
        if exchange.query.content_id not in known
    }
    digits = _DIGITS
    while len({content[:digits] for content in others}) < len(others):
        digits += 1
    return {content[:digits]: query for content, query in others.items()}

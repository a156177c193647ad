"""Answers in files: tables of many subjects, and folders of transcripts; and tables of losses.

A folder of transcripts has a file per subject, as sessions and devices leave them.

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
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from expost._grouping import group_pairs
from expost._types import PathLike, Progress
from expost.answers import (
    ANSWERED,
    COLUMNS,
    OUTCOME,
    Answers,
    queries_from_json,
    queries_to_json,
)
from expost.audits._errors import BadFile, BadFiles, describe_unread, is_hidden
from expost.audits._losses import AgainstBudget, Losses
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text
from expost.files.durable import save
from expost.files.kinds import QUERIES, read_replaceable
from expost.files.regular import read_file, read_text
from expost.files.tables import read_table, table_errors, write_table
from expost.filters import Filter
from expost.numbers import Nats
from expost.queries import Query
from expost.transcript import Transcript

__all__ = [
    "LoadedTranscripts",
    "find_copies",
    "group_identical",
    "load_answers",
    "load_folder",
    "save_answers",
    "save_losses",
    "save_queries",
    "transcript_files",
]


# Digits of a shortened content id; more if two would coincide.
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class LoadedTranscripts:
    """The answers of many subjects, and what else their transcripts say."""

    #: Of all subjects who were asked something. A subject is called as the file, without .json.
    answers: Answers
    #: How many were not asked anything so far.
    unasked: int
    #: The different filters that the transcripts name; None where one names none.
    filters: tuple[Filter | None, ...]
    #: All transcripts of a folder by the names of their subjects; empty for other sources.
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)

    @property
    def filter(self) -> Filter | None:
        """The one that all of them name; None if they name different ones, or none."""
        return self.filters[0] if len(self.filters) == 1 else None


def load_folder(
    folder: PathLike,
    queries: PathLike | None = None,
    *,
    complete: bool = True,
    progress: Progress | None = None,
    strict: bool = False,
) -> LoadedTranscripts:
    """Read all transcripts of a folder: its files that end in ``.json``, each of one subject.

    All have to be about the same domain. ``queries`` is a file of queries, as for
    :func:`load_answers`, from which queries get their ids; without it, and where it does not have a
    query, the id is the beginning of the query's content id. ``progress`` is called with the number
    of files read and their total.

    Damaged files raise :class:`BadFiles`, which lists all of them. With ``strict``, as in audits,
    so do all other entries that are not hidden, and files that are copies of another one.
    """
    expect(folder, (str, os.PathLike), "the name of a folder")
    files, other_entries = _entries(Path(folder))
    problems = [
        describe_unread(entry, "transcripts that end in .json") for entry in other_entries if strict
    ]
    report_progress = progress or (lambda done, total: None)
    transcripts: dict[str, Transcript] = {}
    for count, file in enumerate(files, start=1):
        try:
            transcripts[file.stem] = Transcript.from_json(read_text(file))
        except InvalidInput as error:
            problems.append(BadFile(os.fspath(file), str(error)))
        report_progress(count, len(files))
    if strict:
        problems += find_copies([file for file in files if file.stem in transcripts], transcripts)
    if problems:
        raise BadFiles(sorted(problems, key=lambda problem: problem.file))
    if not files:
        raise InvalidInput("has no transcripts, whose names end in .json", os.fspath(folder))
    named_queries: Mapping[str, Query] = {}
    if queries is not None:
        with at(os.fspath(queries), ": "):
            domain, named_queries = queries_from_json(read_text(queries))
            if domain != transcripts[files[0].stem].domain:
                raise InvalidInput("differs from the domain of the transcripts", "domain")
    with at(os.fspath(folder), ": "):
        all_queries = {**named_queries, **_by_short_id(transcripts, named_queries)}
        answers = Answers.of_transcripts(transcripts, all_queries, complete=complete)
    filters = dict.fromkeys(transcript.filter for transcript in transcripts.values())
    return LoadedTranscripts(answers, len(transcripts) - len(answers), tuple(filters), transcripts)


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
    transcripts: Mapping[str, Transcript], named_queries: Mapping[str, Query]
) -> dict[str, Query]:
    """Return the queries without a name by shortened content ids, none of which is a name."""
    known_ids = {query.content_id for query in named_queries.values()}
    unnamed_queries = {
        exchange.query.content_id: exchange.query
        for transcript in transcripts.values()
        for exchange in transcript.exchanges
        if exchange.query.content_id not in known_ids
    }
    for digits in range(_DIGITS, 65):
        by_id = {content_id[:digits]: query for content_id, query in unnamed_queries.items()}
        if len(by_id) == len(unnamed_queries) and not by_id.keys() & named_queries.keys():
            return by_id
    raise InvalidInput("a query has the content id of another one as its name", "queries")


# Equal transcripts are copies if their probability is below one in so many.
_RARE = 10**6

# What file managers and people add to the name of a copy.
_MARK = re.compile(r"^copy of |[ ._-]*\(\d+\)$|[ ._-]+\(?(copy|backup|bak)\)?([ _-]*\d+)?\)?$")


def group_identical(transcripts: Mapping[str, Transcript]) -> tuple[tuple[str, ...], ...]:
    """Group the subjects whose transcripts are equal; no group has only one."""
    groups = group_pairs((transcript.content_id, name) for name, transcript in transcripts.items())
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


def find_copies(files: Sequence[Path], transcripts: Mapping[str, Transcript]) -> Iterator[BadFile]:
    """Describe every file that is a copy of another one, as far as that is certain."""
    first: dict[tuple[int, int], Path] = {}
    for file in files:
        stat = file.stat()
        original = first.setdefault((stat.st_dev, stat.st_ino), file)
        if original != file:
            yield _describe_copy(file, f"is the same file as {original.name}")
    linked = {file.stem for file in files} - {file.stem for file in first.values()}
    paths = {file.stem: file for file in files}
    for group in group_identical(transcripts):
        # An original rarely has a longer name than its copy.
        names = sorted(set(group) - linked, key=lambda name: (len(name), name))
        if _beyond_chance(transcripts[group[0]], len(files)):
            reason = (
                f"has the same content as {paths[names[0]].name}; two subjects would agree by "
                f"chance with probability below 1 in {_RARE:,}"
            )
            yield from (_describe_copy(paths[name], reason) for name in names[1:])
        else:
            for name, original_name in _pair_marked_names(names):
                yield _describe_copy(paths[name], f"is a copy of {paths[original_name].name}")


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


def _describe_copy(file: Path, relation: str) -> BadFile:
    reason = f"{relation}, so one person would count twice. Remove one of them"
    return BadFile(os.fspath(file), reason)


def _pair_marked_names(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair the name of each copy, or of a file in other case, with the name of its original."""
    originals: dict[str, str] = {}
    for name in names:
        without = [stem for stem in _without_marks(name) if stem in originals]
        if without:
            yield name, originals[without[0]]
        originals.setdefault(_fold_case(name), name)


def _without_marks(name: str) -> Iterator[str]:
    """Yield a folded name, and what remains of it as its copy marks are removed one by one."""
    before, name = "", _fold_case(name)
    while name != before:
        yield name
        before, name = name, _MARK.sub("", name, count=1)


def _fold_case(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def load_answers(
    data: Any,
    queries: PathLike | None = None,
    *,
    complete: bool = True,
    filter: Filter | None = None,
) -> Answers:
    """Read the answers of many subjects from a table of responses and a file of queries.

    The table has the columns ``subject``, ``query`` and ``response``, and perhaps ``outcome``;
    others are ignored. An error names the row, counted from 1 below the header.

    Args:
        data: A file (CSV, JSON Lines or Parquet) or a table in memory, as for :class:`Answers`; or
            a folder of transcripts, as for :func:`load_folder`.
        queries: A JSON file, ``{"version": 1, "domain": …, "queries": {"id": {…}, …}}``; optional
            for a folder of transcripts.
        complete: Whether these are all the responses, as for :class:`Answers`.
        filter: The filter that decided, as for :class:`Answers`; transcripts have their own.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> queries = '''{"version": 1, "domain": {"values": ["no", "yes"]},
    ...     "queries": {"smokes": {"kind": "randomized_response", "epsilon": "1"}}}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, file = Path(folder) / "data.csv", Path(folder) / "queries.json"
    ...     _ = data.write_text("subject,query,response\\na,smokes,yes\\nb,smokes,no\\n")
    ...     _ = file.write_text(queries)
    ...     xp.load_answers(data, file)
    Answers(2 subjects, 2 responses)
    """
    if isinstance(data, (str, os.PathLike)) and os.path.isdir(data):
        if filter is not None:
            raise InvalidInput("requires a table; transcripts name their own filter", "filter")
        return load_folder(data, queries, complete=complete).answers
    with at("queries"):
        if queries is None:
            raise InvalidInput(
                "expected a file of queries; only a folder of transcripts needs none"
            )
        expect(queries, (str, os.PathLike), "the name of a file of queries")
    domain, by_id = read_file(queries, queries_from_json)
    read_answers = partial(Answers, complete=complete, filter=filter)
    if not isinstance(data, (str, os.PathLike)):
        return read_answers(domain, by_id, data)
    with table_errors(data):
        return read_answers(domain, by_id, read_table(Path(data), COLUMNS, (OUTCOME,)))


def save_queries(
    domain: Domain, queries: Mapping[str, Query], path: PathLike, *, overwrite: bool = False
) -> None:
    """Write the file of queries that :func:`load_answers` reads, durably.

    An existing file of queries is replaced; any other existing file only with ``overwrite``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> queries = {"smokes": xp.randomized_response(epsilon="1")}
    >>> table = {"subject": ["a"], "query": ["smokes"], "response": ["yes"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "queries.json"
    ...     xp.audits.save_queries(xp.FiniteSet(["no", "yes"]), queries, file)
    ...     xp.load_answers(table, file)
    Answers(1 subject, 1 response)
    """
    text = queries_to_json(domain, queries)
    with at(os.fspath(path), ": "):
        if not overwrite:
            read_replaceable(path, QUERIES)
        save(path, lambda: text)


def save_answers(answers: Answers, path: PathLike) -> None:
    """Write a table of answers that :func:`load_answers` and audits read.

    The columns are subject, order (from 1 for each subject), query and response. Queries that are
    known to be unanswered follow at the end, and a column ``outcome`` says why. The suffix of the
    file gives the format, as for :func:`save_losses`.
    """
    counts = answers.exchanges.tolist()
    spelled = [_spell_response(answers, key, position) for key, position in answers.responses]
    columns: dict[str, list[Any]] = {
        "subject": [
            name for name, count in zip(answers.subjects, counts, strict=True) for _ in range(count)
        ],
        "order": [number for count in counts for number in range(1, count + 1)],
        "query": [answers.responses[code][0] for code in answers.codes.tolist()],
        "response": [spelled[code] for code in answers.codes.tolist()],
    }
    unanswered = [
        (subject, None, key, None, outcome)
        for outcome, pairs in (answers.unanswered or {}).items()
        for subject, key in sorted(pairs, key=lambda pair: (str(pair[0]), pair[1]))
    ]
    if unanswered:
        columns[OUTCOME] = [ANSWERED] * len(answers.codes)
        for column, entries in zip(columns.values(), zip(*unanswered, strict=True), strict=True):
            column.extend(entries)
    with at(os.fspath(path), ": "):
        write_table(columns, Path(path), for_people=False)


def _spell_response(answers: Answers, key: str, position: int) -> Any:
    """Spell a response as tables do: several values as a JSON list."""
    response = answers.queries[key].on(answers.domain).responses[position]
    return json_text(list(response)) if isinstance(response, tuple) else response


def save_losses(losses: Losses | AgainstBudget, path: PathLike) -> None:
    """Write a table of losses with a row per subject: subject, lower, upper, exchanges, basic.

    Losses against a budget have one more column, ``over``: yes, no or undecided. The suffix of the
    file gives the format: .csv, .jsonl or .parquet. In CSV, a text that a spreadsheet would take
    for a formula, such as ``=1+1``, gets an apostrophe in front.
    """
    with at(os.fspath(path), ": "):
        write_table(losses.lists() if isinstance(losses, Losses) else losses.columns(), Path(path))

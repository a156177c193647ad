"""The answers of many subjects: a table with a row per response, checked once when it is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at, expect, meant
from expost.files.canonical import json_text, readable
from expost.files.frames import as_array, column_names
from expost.files.reading import NumberText, items, members, number, parse
from expost.filters import Filter
from expost.queries import Likelihood, Query, check_query, query_from_json
from expost.transcript import VERSION, Transcript, check_version, no_such_response

__all__ = [
    "COLUMNS",
    "Answers",
    "Subject",
    "no_such_query",
    "queries_from_json",
    "queries_to_json",
    "response_position",
    "written",
]

Subject = int | str
"""The name of a subject: a text or an integer, as in the table."""

COLUMNS = ("subject", "query", "response")

Codes = NDArray[np.intp]
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Answers:
    """The responses of many subjects to queries on one domain.

    Estimates and :func:`realized_losses` start from these. ``queries`` maps ids to queries.
    ``table`` is a polars or pandas frame, or a mapping of columns, with a row per response:

    - ``subject``: a text or an integer;
    - ``query``: an id;
    - ``response``: a response of that query. A text stands for the label, or if there is no such
      label for the number that it spells.

    Subjects may have answered different queries, and the same query more than once.

    All queries must be about the same value of a subject, which is in ``domain``. If "smokes" and
    "drinks" were asked over one domain of "no" and "yes", the answers "yes" and "no" would cancel
    out and the loss would be too small. Such a domain needs a value for each pair.

    ``filter`` is the filter under which they were given, if there was one, and ``refused`` are
    pairs of a subject and the id of a query that it refused. Estimates that a filter makes wrong
    then warn, and every estimate says how many subjects were refused.

    Say ``complete=False`` if subjects gave responses that are not in the table, for instance to
    other analysts. Estimates then warn that they can be biased, and losses warn that the loss of
    a part need not bound what that part reveals.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> table = {"subject": ["a", "a", "b"], "query": ["q"] * 3, "response": ["no", "yes", "no"]}
    >>> xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
    Answers(2 subjects, 3 responses)
    """

    domain: Domain
    queries: Mapping[str, Query]
    subjects: tuple[Subject, ...]
    """In the order in which they first appear in the table."""
    given: tuple[tuple[str, int], ...]
    """Each pair that occurs: the id of a query and the position of one of its responses.

    Sorted by query, then by the position of the response.
    """
    codes: Codes
    """For each row, its index in ``given``. Rows are sorted by subject, else as in the table."""
    starts: Codes
    """Where the rows of each subject start; the last entry is where the rows end."""
    complete: bool
    """Whether these are all the responses that the subjects gave."""
    filter: Filter | None
    """What decided which queries were answered, as far as is known."""
    refused: frozenset[tuple[Subject, str]] | None
    """Who was refused which query, where that is known; they need not have answered anything."""

    def __init__(
        self,
        domain: Domain,
        queries: Mapping[str, Query],
        table: Any,
        *,
        complete: bool = True,
        filter: Filter | None = None,
        refused: Iterable[tuple[Subject, str]] | None = None,
    ) -> None:
        with at("domain"):
            expect(domain, Domain, "a FiniteSet or a Box")
        with at("complete"):
            expect(complete, bool, "True or False")
        with at("filter"):
            expect(filter, Filter | None, "a filter, such as BayesianFilter(epsilon=1)")
        likelihoods = _likelihoods(domain, queries)
        subject_column, query_column, response_column = _columns(table)
        of_row, subjects = _read(subject_column, _subject, "subject")
        asked, keys = _read(query_column, partial(_key, likelihoods=likelihoods), "query")
        answered, responses = _distinct(response_column, "response")

        def response_of(pair: int) -> tuple[str, int]:
            key, response = keys[pair // len(responses)], responses[pair % len(responses)]
            return key, response_position(likelihoods[key], response)

        codes, given = _read(asked * len(responses) + answered, response_of, "response")
        rank = {key: place for place, key in enumerate(likelihoods)}
        order = sorted(range(len(given)), key=lambda code: (rank[given[code][0]], given[code][1]))
        codes = np.argsort(order)[codes]
        if (np.diff(of_row) < 0).any():
            together = np.argsort(of_row, kind="stable")
            codes, of_row = codes[together], of_row[together]
        starts = np.searchsorted(of_row, np.arange(len(subjects) + 1))
        for array in (codes, starts):
            array.setflags(write=False)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "queries", MappingProxyType(dict(queries)))
        object.__setattr__(self, "subjects", tuple(subjects))
        object.__setattr__(self, "given", tuple(given[code] for code in order))
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "complete", complete)
        object.__setattr__(self, "filter", filter)
        object.__setattr__(self, "refused", _refusals(refused, likelihoods))

    @classmethod
    def of_pairs(cls, domain: Domain, pairs: Any) -> Answers:
        """Answers from pairs of a query and a response, each of which is from another subject."""
        checked = _pairs(pairs)
        with at("domain"):
            expect(domain, Domain, "a FiniteSet or a Box, for pairs do not say")
        # By identity: comparing thousands of queries with seeds of their own would take long.
        queries = {id(query): query for query, _ in checked}
        keys = {identity: str(number) for number, identity in enumerate(queries)}
        table = {
            "subject": range(len(checked)),
            "query": [keys[id(query)] for query, _ in checked],
            "response": [response for _, response in checked],
        }
        return cls(domain, {keys[identity]: query for identity, query in queries.items()}, table)

    def __len__(self) -> int:
        return len(self.subjects)

    def __repr__(self) -> str:
        size = f"{len(self):,} subjects, {len(self.codes):,} responses"
        return f"Answers({size})" if self.complete else f"Answers({size}, incomplete)"

    @property
    def exchanges(self) -> NDArray[np.intp]:
        """How many responses each subject gave, in the order of ``subjects``."""
        return np.diff(self.starts)

    def refused_subjects(self, query: str | None = None) -> int | None:
        """How many subjects were refused a query, by default any; None if that is not known."""
        if self.refused is None:
            return None
        return len({subject for subject, key in self.refused if query in (None, key)})

    def transcript(self, subject: Subject) -> Transcript:
        """The transcript of one subject, with its exchanges in the order of the table."""
        place = self._places.get(subject)
        if place is None:
            raise InvalidInput("nobody in the table is called so", "subject")
        return self.transcript_of(self.codes[self.starts[place] : self.starts[place + 1]])

    def patterns(self, kinds: Codes | None = None) -> tuple[Codes, list[Codes]]:
        """The pattern of each subject, and the distinct patterns.

        A pattern is the sorted codes of a subject, so subjects who gave the same responses share
        it whatever the order. With ``kinds``, which has an entry per element of ``given``,
        patterns are made of kinds instead.
        """
        codes = self.codes if kinds is None else kinds[self.codes]
        counts = self.exchanges
        if (counts == counts[0]).all() and (
            codes.reshape(len(self), -1) == codes[: counts[0]]
        ).all():
            # Everybody gave the same responses, so there is one pattern and nothing to sort.
            return np.zeros(len(self), dtype=np.intp), [np.sort(codes[: counts[0]])]
        subject_of = np.repeat(np.arange(len(self)), counts)
        codes = codes[np.lexsort((codes, subject_of))]
        patterns: dict[bytes, int] = {}
        found: list[Codes] = []
        pattern_of = np.empty(len(self), dtype=np.intp)
        for subject, (start, stop) in enumerate(pairwise(self.starts.tolist())):
            key = codes[start:stop].tobytes()
            place = patterns.setdefault(key, len(found))
            if place == len(found):
                found.append(codes[start:stop])
            pattern_of[subject] = place
        return pattern_of, found

    @cached_property
    def _places(self) -> dict[Subject, int]:
        return {subject: place for place, subject in enumerate(self.subjects)}

    def transcript_of(self, codes: Codes) -> Transcript:
        """The transcript of a subject who gave these responses, by their indices in ``given``."""
        transcript = Transcript(self.domain)
        for code in codes.tolist():
            key, position = self.given[code]
            transcript = transcript.answered(self.queries[key], position)
        return transcript


def queries_from_json(document: str) -> tuple[Domain, dict[str, Query]]:
    """Read a file of queries: a domain, and the queries on it by their ids. Unknown fields fail.

    >>> domain, queries = queries_from_json(
    ...     '{"version": 1, "domain": {"values": ["no", "yes"]},'
    ...     ' "queries": {"smokes": {"kind": "randomized_response", "epsilon": "1"}}}'
    ... )
    >>> domain, list(queries)
    (FiniteSet(2 values), ['smokes'])
    """
    fields = members(parse(document), required=("version", "domain", "queries"))
    check_version(fields["version"])
    with at("domain"):
        domain = domain_from_json(fields["domain"])
    queries = {}
    with at("queries"):
        for key, value in members(fields["queries"], optional=None).items():
            with at(key):
                queries[key] = query_from_json(value)
    _likelihoods(domain, queries)
    return domain, queries


def queries_to_json(domain: Domain, queries: Mapping[str, Query]) -> str:
    """The text of such a file; every query must work on the domain."""
    with at("domain"):
        expect(domain, Domain, "a FiniteSet or a Box")
    _likelihoods(domain, queries)
    trees = {key: {"kind": query.kind, **query.tree()} for key, query in queries.items()}
    whole = {"version": VERSION, "domain": domain.tree(), "queries": trees}
    return json_text(readable(whole), indent=1) + "\n"


def _likelihoods(domain: Domain, queries: Mapping[str, Query]) -> dict[str, Likelihood[Any]]:
    with at("queries"):
        expect(queries, Mapping, "queries by their ids")
        if not queries:
            raise InvalidInput("must not be empty")
        result = {}
        for key, query in queries.items():
            expect(key, str, "known by texts")
            with at(key):
                check_query(query)
                result[key] = query.on(domain)
        return result


def _pairs(given: Any) -> list[tuple[Query, Any]]:
    with at("answers"):
        try:
            pairs = [(query, response) for query, response in items(given)]
            for query, _ in pairs:
                check_query(query)
        except (InvalidInput, TypeError, ValueError):
            message = "must be Answers(domain, queries, table), or pairs of a query and a response"
            raise InvalidInput(message) from None
        if not pairs:
            raise InvalidInput("there are none")
        return pairs


def _columns(table: Any) -> list[Any]:
    """The three columns of a table: integer arrays, or else lists."""
    names = column_names(table)
    columns: list[Any] = []
    for name in COLUMNS:
        if names.count(name) != 1:
            problem = "is there twice" if name in names else "is missing"
            raise InvalidInput(f"column {name!r} {problem}; there are {', '.join(map(str, names))}")
        with at(name):
            columns.append(_column(table[name]))
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("the columns have different lengths")
    if not len(columns[0]):
        raise InvalidInput("there are no rows")
    return columns


def _column(values: Any) -> Any:
    values = as_array(values)
    if not isinstance(values, np.ndarray):
        return items(values)
    if values.ndim != 1:
        raise InvalidInput("must be a column")
    # Unsigned 64-bit integers do not fit into int64; they are rare, and a list will do.
    fits = values.dtype.kind in "iu" and values.dtype != np.uint64
    return values.astype(np.int64) if fits else values.tolist()


def _read(column: Any, read: Callable[[Any], T], place: str) -> tuple[Codes, list[T]]:
    """For each row the index of its entry, and the distinct entries as ``read`` returns them.

    Entries come in the order of their first rows. An error names the first row with the entry.
    """
    codes, distinct = _distinct(column, place)
    seen: dict[T, int] = {}
    merged: list[int] = []
    try:
        for value in distinct:
            merged.append(seen.setdefault(read(value), len(seen)))
    except InvalidInput as error:
        row = int(np.argmax(codes == len(merged)))
        raise InvalidInput(error.reason, _row(row, place)) from None
    # 12 and "12.0" are two spellings of one entry.
    return (np.array(merged)[codes] if len(seen) < len(merged) else codes), list(seen)


def _distinct(column: Any, place: str) -> tuple[Codes, list[Any]]:
    """For each row the index of its entry, and the distinct entries as they are written."""
    if isinstance(column, np.ndarray):
        values, inverse = np.unique(column, return_inverse=True)
        first, rank = np.empty((2, len(values)), dtype=np.intp)
        # Of several writes to one place the last one remains, so rows go backwards.
        first[inverse[::-1]] = np.arange(len(column))[::-1]
        order = np.argsort(first)
        rank[order] = np.arange(len(order))
        return rank[inverse], values[order].tolist()
    if not set(map(type, column)) <= _PLAIN:
        for row, value in enumerate(column):
            column[row] = _hashable(value, row, place)
    index = {value: code for code, value in enumerate(dict.fromkeys(column))}
    return np.fromiter(map(index.__getitem__, column), np.intp, len(column)), list(index)


_PLAIN = {int, float, str, NumberText}


def _hashable(value: Any, row: int, place: str) -> Any:
    """An entry that can be a dictionary key. Booleans are refused: True would be found as 1."""
    entry = tuple(items(value)) if isinstance(value, (list, tuple, np.ndarray)) else value
    parts = entry if isinstance(entry, tuple) else (entry,)
    if any(isinstance(part, (bool, np.bool_)) for part in parts):
        raise InvalidInput("is true or false, not a label or a number", _row(row, place))
    try:
        hash(entry)
    except TypeError:
        raise InvalidInput("must be a label, a number or a list", _row(row, place)) from None
    return entry


def _row(row: int, place: str) -> str:
    return f"row {row + 1}: {place}"


def _subject(name: Any) -> Subject:
    if isinstance(name, str) and name:
        return str(name)
    if isinstance(name, (int, np.integer)) or (isinstance(name, float) and name.is_integer()):
        return int(name)
    raise InvalidInput("must be a text or an integer, and not empty")


def _key(key: Any, likelihoods: Mapping[str, Likelihood[Any]]) -> str:
    # Ids are texts, as in a file; a number in a column stands for the text that spells it.
    name = str(key) if isinstance(key, (str, int, np.integer)) else ""
    if name not in likelihoods:
        raise no_such_query(name, likelihoods)
    return name


def _refusals(
    refused: Iterable[tuple[Subject, str]] | None, likelihoods: Mapping[str, Likelihood[Any]]
) -> frozenset[tuple[Subject, str]] | None:
    if refused is None:
        return None
    with at("refused"):
        try:
            pairs = [(subject, key) for subject, key in refused]
        except (TypeError, ValueError):
            raise InvalidInput("must be pairs of a subject and the id of a query") from None
        return frozenset((_subject(subject), _key(key, likelihoods)) for subject, key in pairs)


def no_such_query(name: str, queries: Mapping[str, Any]) -> InvalidInput:
    """The error about an id that no query has."""
    known = ", ".join(list(queries)[:6]) + (", …" if len(queries) > 6 else "")
    hint = meant(name, queries)
    return InvalidInput(f"there is no query with this id; there are {known}{hint}")


def response_position(likelihood: Likelihood[Any], response: Any) -> int:
    """The position of a response from a table: of the response itself, or of what it spells."""
    tried = [response, written(response)] if isinstance(response, str) else [response]
    found = {place for place in map(likelihood.position, tried) if place is not None}
    if len(found) > 1:
        raise InvalidInput("is a label of this query, and also writes a number of it")
    if not found:
        raise InvalidInput(no_such_response(likelihood))
    return found.pop()


def written(response: str) -> Any:
    """The number, or the tuple of numbers, that a text spells; None if it spells neither.

    >>> written("12"), written("[1, 2]"), written("yes")
    (12, (1, 2), None)
    """
    try:
        value = parse(response)
        if isinstance(value, list):
            return tuple(number(entry) for entry in value)
        return number(value) if isinstance(value, NumberText) else None
    except InvalidInput:
        return None

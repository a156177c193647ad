"""Exchanges and transcripts, their file and their content id."""

from __future__ import annotations

import hashlib
import os
import reprlib
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from expost._format import format_count, shorten
from expost._types import PathLike
from expost.cards import card
from expost.chain import Chain
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import canonical_bytes, readable_tree, value_tree
from expost.files.durable import save
from expost.files.kinds import TRANSCRIPT, explain_wrong_kind, read_replaceable
from expost.files.reading import NumberText, array, members, parse, scalar
from expost.files.regular import read_file
from expost.files.transcript_text import TranscriptText
from expost.filters import Filter, filter_from_json
from expost.queries import Likelihood, Query, check_query
from expost.queries.query_table import (
    REMEMBERED_EXCHANGES,
    QueryTable,
    SetupWork,
    work_error,
    work_limit,
)
from expost.tally import Tally

__all__ = [
    "Exchange",
    "Transcript",
    "append_exchange",
    "check_version",
    "load_transcript",
    "no_such_response",
    "response_from_json",
    "transcript_of",
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Exchange:
    """One query and the response that was released."""

    query: Query
    response: Value
    #: The index of the response among those of the query on the transcript's domain.
    position: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The exchanges with one subject, in order: the only state, from which everything follows.

    It is immutable: :meth:`add` returns a longer one. Domain and filter are set once, because the
    guarantee is void if either changes after a response.

    Args:
        domain: The values that the subject may have.
        filter: The privacy filter that decided which queries were answered, if there was one.

    >>> import expost as xp
    >>> start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    >>> transcript = start.add(xp.randomized_response(epsilon="0.5"), "yes")
    >>> transcript, xp.Transcript.from_json(transcript.to_json()) == transcript
    (Transcript(FiniteSet(2 values), 1 exchange), True)
    """

    domain: Domain
    filter: Filter | None = None
    exchanges: Chain[Exchange] = field(default_factory=Chain, init=False)
    _tally: Tally | None = field(default=None, init=False, repr=False, compare=False)
    #: The work to set up its queries when it is read, in microseconds; None until counted.
    _work: int | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expect(self.domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
        expect(self.filter, Filter | None, "a filter, such as BayesianFilter(epsilon=1)", "filter")
        if self.filter is not None:
            read_at("filter", self.filter.check_domain, self.domain)

    @property
    def required_filter(self) -> Filter:
        """The filter that it names, or an error if it names none."""
        if self.filter is None:
            raise InvalidInput("the transcript names no filter, so there is no budget")
        return self.filter

    def add(self, query: Query, response: Any) -> Transcript:
        """Return the transcript with one more exchange.

        Raises:
            InvalidInput: The query does not work on the domain, or has no such response.
        """
        check_query(query)
        likelihood = query.on(self.domain)
        return self._plus(query, likelihood, _position(likelihood, response))

    def add_position(self, query: Query, position: int) -> Transcript:
        """Return the transcript with one more exchange, by the position of its response."""
        return self._plus(query, query.on(self.domain), position)

    def _plus(self, query: Query, likelihood: Likelihood[Any], position: int) -> Transcript:
        exchange = Exchange(query, likelihood.responses[position], position)
        work = None if self._work is None else self._work_with(query)
        return self._with(self.exchanges.plus(exchange), work)

    def _with(self, exchanges: Chain[Exchange], work: int | None = None) -> Transcript:
        """Replace the exchanges; domain and filter are not checked again."""
        other = object.__new__(Transcript)
        object.__setattr__(other, "domain", self.domain)
        object.__setattr__(other, "filter", self.filter)
        object.__setattr__(other, "exchanges", exchanges)
        object.__setattr__(other, "_work", work)
        object.__setattr__(other, "_tally", None)
        return other

    @property
    def tally(self) -> Tally:
        """The count of each (query, response): all that a loss depends on."""
        if self._tally is None:
            object.__setattr__(self, "_tally", Tally.of(self.exchanges))
        assert self._tally is not None
        return self._tally

    def first(self, count: int) -> Transcript:
        """Return the transcript as it was after the first so many exchanges."""
        return self._with(self.exchanges.first(count))

    def _work_with(self, query: Query) -> int:
        """Return the work after one more query; repeating a recent query adds none."""
        if self._work is None:
            queries = (exchange.query for exchange in self.exchanges)
            object.__setattr__(self, "_work", SetupWork.by_content(self.domain, queries).total)
        assert self._work is not None
        added = query.work(self.domain)
        recent = self.exchanges[-REMEMBERED_EXCHANGES:] if added else ()
        if not added or any(step.query.content_id == query.content_id for step in recent):
            return self._work
        return self._work + added

    def check_work(self, query: Query, length: int) -> None:
        """Refuse a query that would make too much work of reading a file of this length."""
        work, most = self._work_with(query), work_limit(length)
        if work > most:
            raise work_error(query, work, most)

    def __len__(self) -> int:
        return len(self.exchanges)

    def __repr__(self) -> str:
        return f"Transcript({self.domain}, {format_count(len(self), 'exchange')})"

    def _repr_html_(self) -> str:
        filter_ = self.filter
        named = "none" if filter_ is None else f"{filter_.kind}, budget {filter_.limit}"
        return card(
            "Transcript",
            {"domain": self.domain, "filter": named, "exchanges": len(self)},
            columns=("", "query", "response"),
            items=self.exchanges,
            row=lambda index, exchange: (index, exchange.query, exchange.response),
        )

    def tree(self) -> dict[str, Any]:
        """Return the JSON tree, with exact numbers as fractions and doubles as floats."""
        tree = self._fixed_tree()
        tree["exchanges"] = [
            {
                "query": exchange.query.tagged_tree(),
                "response": value_tree(exchange.response),
            }
            for exchange in self.exchanges
        ]
        return tree

    def _fixed_tree(self) -> dict[str, Any]:
        """Return the fields that every continuation of this transcript shares."""
        tree: dict[str, Any] = {"version": VERSION, "domain": self.domain.tree()}
        if self.filter is not None:
            tree["filter"] = {"kind": self.filter.kind, **self.filter.tree()}
        return tree

    @property
    def content_id(self) -> str:
        """SHA-256 of the canonical encoding: equal for equal transcripts, whatever their file."""
        return hashlib.sha256(canonical_bytes(self.tree())).hexdigest()

    def to_json(self) -> str:
        """Return the text of its file; a query that is asked repeatedly is written once."""
        return self.growing().text()

    def growing(self) -> TranscriptText:
        """Return the text of its file in a form that :func:`append_exchange` continues."""
        growing = TranscriptText(readable_tree(self._fixed_tree()))
        for exchange in self.exchanges:
            append_exchange(exchange, growing)
        return growing

    def continues(self, earlier: Transcript) -> bool:
        """Return whether it begins with all of an earlier one, with the same domain and filter."""
        same = (self.domain, self.filter) == (earlier.domain, earlier.filter)
        return same and self.exchanges[: len(earlier)] == earlier.exchanges

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the file durably; a crash leaves the old file or the new one, never half of one.

        An existing file is replaced only if it holds a transcript that this one :meth:`continues`,
        or if you pass ``overwrite``: an earlier transcript would bring back a spent budget. If
        several processes continue one file, use :class:`FileSession`.
        """
        expect(path, (str, os.PathLike), "the name of a file")
        if not overwrite:
            with at(os.fspath(path), ": "):
                self._check_over(read_replaceable(path, TRANSCRIPT))
        save(path, self.to_json)

    def _check_over(self, document: str) -> None:
        existing = Transcript.from_json(document) if document else self
        if not self.continues(existing):
            raise InvalidInput(
                f"has a transcript with {format_count(len(existing), 'exchange')}, which this "
                f"one, with {len(self):,}, does not continue; overwrite=True replaces it"
            )

    @classmethod
    def from_json(cls, document: str) -> Transcript:
        """Read the text of a file, strictly; an error names the place."""
        expect(document, str, "the text of a file")
        with explain_wrong_kind(TRANSCRIPT, document):
            return cls._from_json(document)

    @classmethod
    def _from_json(cls, document: str) -> Transcript:
        fields = members(
            parse(document),
            required=("version", "domain", "exchanges"),
            optional=("filter", "queries"),
        )
        check_version(fields["version"])
        domain = read_at("domain", domain_from_json, fields["domain"])
        filter_ = None
        if "filter" in fields:
            filter_ = read_at("filter", filter_from_json, fields["filter"])
        empty, queries = cls(domain, filter_), QueryTable(fields.get("queries", {}))
        with at("exchanges"):
            exchanges = empty._read(array(fields["exchanges"]), queries, len(document))
        queries.check_all_used()
        return empty._with(Chain(exchanges))

    def _read(self, entries: list[Any], queries: QueryTable, length: int) -> list[Exchange]:
        """Read the exchanges of a file of some length."""
        exchanges: list[Exchange] = []
        domain, work, most = self.domain, SetupWork(self.domain), work_limit(length)
        for index, entry in enumerate(entries):
            with at(f"[{index}]"):
                fields = members(entry, required=("query", "response"))
                with at("query"):
                    query = queries.query(fields["query"])
                    if work.plus(query) > most and not work.closely:
                        # Equal queries may be written in several ways, and then it is less.
                        before = (exchange.query for exchange in exchanges)
                        work = SetupWork.by_content(domain, chain(before, [query]))
                    if work.total > most:
                        raise work_error(query, work.total, most)
                    likelihood = query.on(domain)
                position = _position(likelihood, response_from_json(fields["response"]))
                exchanges.append(Exchange(query, likelihood.responses[position], position))
        return exchanges


def _position(likelihood: Likelihood[Any], response: Any) -> int:
    position = likelihood.position(response)
    if position is None:
        raise InvalidInput(no_such_response(likelihood), "response")
    return position


def append_exchange(exchange: Exchange, growing: TranscriptText) -> None:
    """Add an exchange to the text of a file."""
    query = exchange.query
    growing.add(
        query.content_id,
        lambda: readable_tree(query.labeled_tree()),
        readable_tree(value_tree(exchange.response)),
    )


def no_such_response(likelihood: Likelihood[Any], query: str = "this query") -> str:
    """Return the message about a response that a query does not have."""
    if isinstance(likelihood.responses, range) and len(likelihood.responses) > 6:
        low, high = likelihood.responses[0], likelihood.responses[-1]
        return f"is not a response of {query}; it has the integers from {low} to {high}"
    # There can be more responses than can be counted, and long ones.
    response = [reprlib.repr(response) for response in islice(likelihood.responses, 7)]
    shown = ", ".join([*response[:6], "…"] if len(response) > 6 else response)
    return f"is not a response of {query}; it has {shown}"


def check_version(version: Any) -> None:
    """Refuse a file of an unknown version."""
    if not isinstance(version, NumberText) or version != str(VERSION):
        raise InvalidInput(f"version {shorten(repr(version))} is not supported; expected {VERSION}")


def transcript_of(source: object) -> Transcript:
    """Return the transcript of a session, an odometer or a replay, or the transcript itself."""
    candidate = source
    for name in ("odometer", "transcript"):
        if not isinstance(candidate, Transcript):
            candidate = getattr(candidate, name, candidate)
    expect(candidate, Transcript, "a transcript, a session or an odometer")
    assert isinstance(candidate, Transcript)
    return candidate


def load_transcript(path: PathLike) -> Transcript:
    """Read a transcript file, strictly: unknown fields and duplicate keys are errors.

    Args:
        path: The file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xp.Transcript(xp.FiniteSet(["no", "yes"])).save(Path(folder) / "ann.json")
    ...     xp.load_transcript(Path(folder) / "ann.json")
    Transcript(FiniteSet(2 values), 0 exchanges)
    """
    return read_file(path, Transcript.from_json)


def response_from_json(value: Any) -> Any:
    """Read a response: a scalar, or a list of scalars."""
    with at("response"):
        return list(map(scalar, value)) if isinstance(value, list) else scalar(value)

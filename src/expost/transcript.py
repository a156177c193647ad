"""What was asked and answered: exchanges, transcripts, their file and their content id."""

from __future__ import annotations

import hashlib
import os
import reprlib
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from expost.cards import card
from expost.chain import Chain
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import canonical, map_leaves, value_tree
from expost.files.durable import replace
from expost.files.growing import Growing
from expost.files.reading import NumberText, array, as_written, members, number, parse, scalar
from expost.files.regular import read_text
from expost.filters import Filter, filter_from_json
from expost.numbers import decimal_text
from expost.queries import Likelihood, Query, check_query, query_from_json

__all__ = [
    "Exchange",
    "Summand",
    "Tally",
    "Transcript",
    "canonical",
    "check_version",
    "load_transcript",
    "map_leaves",
    "no_such_response",
    "read_text",
    "readable",
    "write",
]

VERSION = 1

_WORK_PER_MEGABYTE = 1 << 22
_LATELY = 1000
_RECENT = 64
_ID = 64  # characters of a content id


@dataclass(frozen=True, slots=True)
class Exchange:
    """One query and the response that was released."""

    query: Query
    response: Value
    position: int = field(repr=False)
    """Where the response is among those of the query on the domain of the transcript."""


@dataclass(frozen=True, slots=True)
class Summand:
    """A response of a query by its position, and how often it was given."""

    query: Query
    position: int
    times: int = 1


class Tally:
    """How often which response was given to which query, in whatever order. Immutable.

    All that a loss depends on. It is kept by the identity of the queries, which is quick, and read
    by their content: ``counts`` and ``summands`` are equal for equal tallies, however they came
    about.
    """

    __slots__ = ("_recent", "_settled")
    _Entries = dict[tuple[int, int], Summand]

    def __init__(self, recent: _Entries | None = None, settled: _Entries | None = None) -> None:
        # Summands keep their queries alive, so identities are not used twice.
        self._recent = recent or {}
        self._settled = settled or {}

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> Tally:
        """The tally of some exchanges."""
        queries: dict[int, Query] = {}
        keys: list[tuple[int, int]] = []
        for exchange in exchanges:
            queries[id(exchange.query)] = exchange.query
            keys.append((id(exchange.query), exchange.position))
        return cls(
            settled={key: Summand(queries[key[0]], key[1], n) for key, n in Counter(keys).items()}
        )

    def plus(self, query: Query, position: int, times: int = 1) -> Tally:
        """The tally after a response that is given so many times more.

        Only what came lately is copied each time. Else ever new queries would cost n² in all.
        """
        key, recent, settled = (id(query), position), self._recent, self._settled
        before = recent.get(key) or settled.get(key)
        summand = Summand(query, position, times + (before.times if before else 0))
        if len(recent) >= _RECENT:
            recent, settled = {}, {**settled, **recent}
        return Tally({**recent, key: summand}, settled)

    def __iter__(self) -> Iterator[Summand]:
        """The summands in no order; queries that are equal may be apart."""
        yield from self._recent.values()
        yield from (part for key, part in self._settled.items() if key not in self._recent)

    def __len__(self) -> int:
        return len(self._settled.keys() | self._recent.keys())

    @property
    def summands(self) -> list[Summand]:
        """The summands in the order of the content ids of queries and of positions."""
        result: dict[tuple[str, int], Summand] = {}
        for part in self:
            key = (part.query.content_id, part.position)
            if key in result:
                part = Summand(part.query, part.position, part.times + result[key].times)
            result[key] = part
        return [result[key] for key in sorted(result)]

    @property
    def counts(self) -> dict[tuple[str, int], int]:
        """How often, by the content id of the query and the position of the response."""
        return {(part.query.content_id, part.position): part.times for part in self.summands}

    def __repr__(self) -> str:
        return f"Tally({len(self)} different responses)"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The exchanges with one subject, in order. Immutable; the only state there is.

    Domain and filter are set once, for the guarantee is void if either changes after a response.
    """

    domain: Domain
    filter: Filter | None = None
    exchanges: Chain[Exchange] = field(default_factory=Chain, init=False)
    _tally: Tally | None = field(default=None, init=False, repr=False, compare=False)
    _work: int = field(default=0, init=False, repr=False, compare=False)
    """What its queries take to set up whenever it is read, in microseconds, about."""

    def __post_init__(self) -> None:
        with at("domain"):
            expect(self.domain, Domain, "a FiniteSet, Attributes or a Box")
        with at("filter"):
            expect(self.filter, Filter | None, "a filter, such as BayesianFilter(epsilon=1)")

    @property
    def guard(self) -> Filter:
        """The filter under which it goes on, which it has to name."""
        if self.filter is None:
            raise InvalidInput("the transcript names no filter, so there is no budget")
        return self.filter

    def add(self, query: Query, response: Any) -> Transcript:
        """The transcript with one more exchange; the response must be one that the query has."""
        check_query(query)
        likelihood = query.on(self.domain)
        position = likelihood.position(response)
        if position is None:
            raise InvalidInput(no_such_response(likelihood), "response")
        return self.answered(query, position)

    def answered(self, query: Query, position: int) -> Transcript:
        """The same by the position of the response."""
        exchange = Exchange(query, query.on(self.domain).responses[position], position)
        return self._with(self.exchanges.plus(exchange), self._work_with(query))

    def _with(self, exchanges: Chain[Exchange], work: int) -> Transcript:
        """The same with other exchanges; domain and filter have been looked at."""
        other = object.__new__(Transcript)
        object.__setattr__(other, "domain", self.domain)
        object.__setattr__(other, "filter", self.filter)
        object.__setattr__(other, "exchanges", exchanges)
        object.__setattr__(other, "_work", work)
        object.__setattr__(other, "_tally", None)
        return other

    @property
    def tally(self) -> Tally:
        """How often each response was given, whatever the order: all that a loss depends on."""
        if self._tally is None:
            object.__setattr__(self, "_tally", Tally.of(self.exchanges))
        assert self._tally is not None
        return self._tally

    def first(self, count: int) -> Transcript:
        """The transcript as it was after the first so many exchanges."""
        return self._with(self.exchanges.first(count), self._work)

    def _work_with(self, query: Query) -> int:
        """The work after one more query; what was asked lately takes no more."""
        more = query.work(self.domain)
        lately = self.exchanges[-_LATELY:] if more else ()
        if not more or any(step.query.content_id == query.content_id for step in lately):
            return self._work
        return self._work + more

    def check_work(self, query: Query, length: int) -> None:
        """Refuse a query that would make too much work of reading a file of this length."""
        work, most = self._work_with(query), int(_WORK_PER_MEGABYTE * max(1.0, length / 2**20))
        if work > most:
            raise InvalidInput(
                f"its {query.kind} queries take {work:,} steps to set up, and at most {most:,} are "
                "taken for a file of this size; queries that were asked before take no more"
            )

    def __len__(self) -> int:
        return len(self.exchanges)

    def __repr__(self) -> str:
        return f"Transcript({self.domain!r}, {len(self)} exchanges)"

    def _repr_html_(self) -> str:
        guard = self.filter
        named = "none" if guard is None else f"{guard.kind}, budget {guard.limit}"
        return card(
            "Transcript",
            {"domain": self.domain, "filter": named, "exchanges": len(self)},
            columns=("", "query", "response"),
            items=self.exchanges,
            row=lambda number, exchange: (number, exchange.query, exchange.response),
        )

    def tree(self) -> dict[str, Any]:
        """The JSON shape: exact numbers as fractions, doubles as floats, the rest as it is."""
        tree = self._fixed_tree()
        tree["exchanges"] = [
            {
                "query": {"kind": exchange.query.kind, **exchange.query.tree()},
                "response": value_tree(exchange.response),
            }
            for exchange in self.exchanges
        ]
        return tree

    def _fixed_tree(self) -> dict[str, Any]:
        """All that is the same for every transcript that grows from this one."""
        tree: dict[str, Any] = {"version": VERSION, "domain": self.domain.tree()}
        if self.filter is not None:
            tree["filter"] = {"kind": self.filter.kind, **self.filter.tree()}
        return tree

    @property
    def content_id(self) -> str:
        """SHA-256 of the canonical encoding: equal for equal transcripts, whatever their file."""
        return hashlib.sha256(canonical(self.tree())).hexdigest()

    def to_json(self) -> str:
        """The text of its file; a query that is asked again and again is written once."""
        return self.growing().text()

    def growing(self) -> Growing:
        """The same, to be gone on with by :func:`write`."""
        growing = Growing(readable(self._fixed_tree()))
        for exchange in self.exchanges:
            write(exchange, growing)
        return growing

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, durably; a crash leaves the old file or the new one, never half of one.

        For a file that several processes go on with there is :class:`FileSession`.
        """
        target = Path(path)
        replace(target, self.to_json, target.with_name(f".{target.name}.{uuid.uuid4().hex}"))

    @classmethod
    def from_json(cls, document: str) -> Transcript:
        """Read a file's text, strictly; an error names the place."""
        expect(document, str, "the text of a file")
        fields = members(
            parse(document),
            required=("version", "domain", "exchanges"),
            optional=("filter", "queries"),
        )
        check_version(fields["version"])
        with at("domain"):
            domain = domain_from_json(fields["domain"])
        guard = None
        if "filter" in fields:
            with at("filter"):
                guard = filter_from_json(fields["filter"])
        transcript = cls(domain, guard)
        asked = _Asked(fields.get("queries", {}))
        with at("exchanges"):
            for index, entry in enumerate(array(fields["exchanges"])):
                with at(f"[{index}]"):
                    transcript = transcript._add_from_json(entry, asked, len(document))
        asked.check_all_used()
        return transcript

    def _add_from_json(self, entry: Any, asked: _Asked, length: int) -> Transcript:
        fields = members(entry, required=("query", "response"))
        with at("query"):
            query = asked.query(fields["query"])
            self.check_work(query, length)
            query.on(self.domain)
        return self.add(query, _response_from_json(fields["response"]))


class _Asked:
    """The queries of a file: those of its table, by their ids, and those in exchanges.

    One that is written again is read, and its likelihood worked out, once.
    """

    def __init__(self, table: Any) -> None:
        self._known: dict[Hashable, Query] = {}
        self._listed: dict[str, Query] = {}
        with at("queries"):
            for name, entry in members(table, optional=None).items():
                with at(name[:_ID]):
                    query = self._read(entry)
                    if query.content_id != name:
                        raise InvalidInput(
                            f"is not the id of its query, which is {query.content_id}"
                        )
                    self._listed[name] = query
        self._unused = set(self._listed)

    def _read(self, value: Any) -> Query:
        written = as_written(value)
        query = self._known.get(written)
        if query is None:
            query = self._known[written] = query_from_json(value)
        return query

    def query(self, value: Any) -> Query:
        """What an exchange has: a query, or the id of one."""
        if not isinstance(value, str) or isinstance(value, NumberText):
            return self._read(value)
        if value not in self._listed:
            raise InvalidInput(f'no query in "queries" has the id {value[:_ID]}')
        self._unused.discard(value)
        return self._listed[value]

    def check_all_used(self) -> None:
        """Refuse a table with more than was asked: nobody knows what it is there for."""
        for name in sorted(self._unused):
            raise InvalidInput("no exchange names this query", f"queries.{name}")


def write(exchange: Exchange, growing: Growing) -> None:
    """Add an exchange to the text of a file."""
    query = exchange.query
    growing.add(
        query.content_id,
        lambda: readable({"kind": query.kind, **query.tree()}),
        readable(value_tree(exchange.response)),
    )


def no_such_response(likelihood: Likelihood[Any]) -> str:
    """What to say of a response that a query does not have."""
    # There can be more responses than can be counted, and long ones.
    known = [reprlib.repr(known) for known in islice(likelihood.responses, 7)]
    shown = ", ".join([*known[:6], "…"] if len(known) > 6 else known)
    return f"is not a response of this query; it has {shown}"


def check_version(version: Any) -> None:
    """Refuse a file of a version that is not known here."""
    if not isinstance(version, NumberText) or version != str(VERSION):
        raise InvalidInput(f"unknown version; this is version {VERSION}", "version")


def load_transcript(path: str | os.PathLike[str]) -> Transcript:
    """Read a transcript file, strictly."""
    expect(path, (str, os.PathLike), "the name of a file")
    with at(os.fspath(path), ": "):
        return Transcript.from_json(read_text(path))


def _response_from_json(value: Any) -> Any:
    with at("response"):
        if isinstance(value, list):
            return [scalar(entry) for entry in value]
        return scalar(value)


def readable(tree: Any) -> Any:
    """A tree for people: exact numbers as decimals or "p/q", doubles as JSON numbers."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Fraction):
            return decimal_text(value)
        return number(value) if isinstance(value, float) else value

    return map_leaves(tree, leaf)

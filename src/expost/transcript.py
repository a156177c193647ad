"""What was asked and answered: exchanges, transcripts, their file and their content id."""

from __future__ import annotations

import hashlib
import os
import reprlib
import uuid
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from expost.cards import card
from expost.chain import Chain
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import canonical, json_text, map_leaves, value_tree
from expost.files.durable import replace
from expost.files.reading import NumberText, array, as_written, members, number, parse, scalar, text
from expost.files.regular import read_text
from expost.filters.rules import Rule, rule_from_json
from expost.numbers import Nats, decimal_text
from expost.queries import Likelihood, Query, check_query, query_from_json
from expost.queries.query import read_delta

__all__ = [
    "Exchange",
    "FilterSpec",
    "Transcript",
    "canonical",
    "check_version",
    "load",
    "map_leaves",
    "no_such_response",
    "read_text",
    "readable",
]

VERSION = 1

_WORK_PER_MEGABYTE = 1 << 22
_LATELY = 1000
FILTER_KINDS = ("basic", "simplified", "bayesian", "composition", "approximate")

# Filters with a delta have a composition rule, under this name in a file.
_RULE_FIELDS = {"composition": "rule", "approximate": "inner"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One query and the response that was released."""

    query: Query
    response: Value


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """Which filter guards the subject, and its budget: fixed before the first response.

    With a delta there is a composition rule, and all that its theorem needs.
    """

    kind: str
    budget: Nats
    delta: Fraction | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        if not self.budget > Nats() or (self.budget.rational and self.budget.ratio != 1):
            raise InvalidInput("a budget is either an epsilon or a ratio, and positive")
        field = _RULE_FIELDS.get(self.kind)
        if (field is None) != (self.delta is None):
            raise InvalidInput("a budget has a delta if and only if there is a composition rule")
        if field is None or self.delta is None:
            return
        read_delta(self.delta)
        with at(field):
            expect(self.rule, Rule, "a composition rule, such as Renyi(order=8)")
            assert self.rule is not None
            self.rule.check(self.delta)

    @property
    def limit(self) -> str:
        """The budget for people."""
        if self.delta is None:
            return str(self.budget)
        return f"{self.budget} at delta {float(self.delta):.6g}"

    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {"kind": self.kind}
        if self.budget.rational:
            tree["epsilon"] = self.budget.rational
        else:
            tree["ratio"] = self.budget.ratio
        if self.rule is not None:
            tree["delta"] = self.delta
            tree[_RULE_FIELDS[self.kind]] = {"kind": self.rule.kind, **self.rule.tree()}
        return tree


@dataclass(frozen=True, slots=True)
class Transcript:
    """The exchanges with one subject, in order. Immutable; the only state there is.

    Domain and filter are set once, for the guarantee is void if either changes after a response.
    """

    domain: Domain
    filter: FilterSpec | None = None
    exchanges: Chain[Exchange] = field(default_factory=Chain, init=False)
    _work: int = field(default=0, init=False, repr=False, compare=False)
    """What its queries take to set up whenever it is read, in microseconds, about."""

    def __post_init__(self) -> None:
        with at("domain"):
            expect(self.domain, Domain, "a FiniteSet or a Box")
        with at("filter"):
            expect(self.filter, FilterSpec | None, "the spec of a filter: BayesianFilter(1).spec")

    def add(self, query: Query, response: Any) -> Transcript:
        """The transcript with one more exchange; the response must be one that the query has."""
        check_query(query)
        likelihood = query.on(self.domain)
        position = likelihood.position(response)
        if position is None:
            raise InvalidInput(no_such_response(likelihood), "response")
        exchange = Exchange(query, likelihood.responses[position])
        return self._with(self.exchanges.plus(exchange), self._work_with(query))

    def _with(self, exchanges: Chain[Exchange], work: int) -> Transcript:
        """The same with other exchanges; domain and filter have been looked at."""
        other = object.__new__(Transcript)
        object.__setattr__(other, "domain", self.domain)
        object.__setattr__(other, "filter", self.filter)
        object.__setattr__(other, "exchanges", exchanges)
        object.__setattr__(other, "_work", work)
        return other

    def first(self, count: int) -> Transcript:
        """The transcript as it was after the first so many exchanges."""
        return self._with(self.exchanges.first(count), self._work)

    def _work_with(self, query: Query) -> int:
        """The work after one more query; what was asked lately takes no more."""
        more = query.work(self.domain)
        lately = self.exchanges[-_LATELY:] if more else ()
        if not more or any(step.query is query for step in lately):
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
        spec = self.filter
        guard = "none" if spec is None else f"{spec.kind}, budget {spec.limit}"
        return card(
            "Transcript",
            {"domain": self.domain, "filter": guard, "exchanges": len(self)},
            columns=("", "query", "response"),
            items=self.exchanges,
            row=lambda number, exchange: (number, exchange.query, exchange.response),
        )

    def tree(self) -> dict[str, Any]:
        """The JSON shape: exact numbers as fractions, doubles as floats, the rest as it is."""
        tree: dict[str, Any] = {"version": VERSION, "domain": self.domain.tree()}
        if self.filter is not None:
            tree["filter"] = self.filter.tree()
        tree["exchanges"] = [
            {
                "query": {"kind": exchange.query.kind, **exchange.query.tree()},
                "response": value_tree(exchange.response),
            }
            for exchange in self.exchanges
        ]
        return tree

    @property
    def content_id(self) -> str:
        """SHA-256 of the canonical encoding: equal for equal transcripts, whatever their file."""
        return hashlib.sha256(canonical(self.tree())).hexdigest()

    def to_json(self) -> str:
        """The text of its file."""
        return json_text(readable(self.tree()), indent=1) + "\n"

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
            parse(document), required=("version", "domain", "exchanges"), optional=("filter",)
        )
        check_version(fields["version"])
        with at("domain"):
            domain = domain_from_json(fields["domain"])
        spec = _filter_from_json(fields["filter"]) if "filter" in fields else None
        transcript = cls(domain, spec)
        with at("exchanges"):
            # A query that is written again is read, and its likelihood worked out, once.
            known: dict[Hashable, Query] = {}
            for index, entry in enumerate(array(fields["exchanges"])):
                with at(f"[{index}]"):
                    transcript = transcript._add_from_json(entry, known, len(document))
        return transcript

    def _add_from_json(self, entry: Any, known: dict[Hashable, Query], length: int) -> Transcript:
        fields = members(entry, required=("query", "response"))
        with at("query"):
            written = as_written(fields["query"])
            query = known.get(written)
            if query is None:
                query = known[written] = query_from_json(fields["query"])
            self.check_work(query, length)
            query.on(self.domain)
        return self.add(query, _response_from_json(fields["response"]))


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


def load(path: str | os.PathLike[str]) -> Transcript:
    """Read a transcript file, strictly."""
    expect(path, (str, os.PathLike), "the name of a file")
    with at(os.fspath(path), ": "):
        return Transcript.from_json(read_text(path))


def _filter_from_json(value: Any) -> FilterSpec:
    with at("filter"):
        kind = _filter_kind(members(value, required=("kind",), optional=None)["kind"])
        field = _RULE_FIELDS.get(kind)
        required = ("kind",) if field is None else ("kind", "delta", field)
        fields = members(value, required=required, optional=("epsilon", "ratio"))
        for name in ("epsilon", "ratio"):
            if name in fields and fields[name] is None:
                raise InvalidInput("must be a number", name)
        budget = Nats.budget(fields.get("epsilon"), fields.get("ratio"))
        if field is None:
            return FilterSpec(kind, budget)
        delta = read_delta(fields["delta"])
        with at(field):
            rule = rule_from_json(fields[field])
        return FilterSpec(kind, budget, delta, rule)


def _filter_kind(value: Any) -> str:
    with at("kind"):
        kind = text(value)
        if kind not in FILTER_KINDS:
            raise InvalidInput(f"unknown filter; known: {', '.join(FILTER_KINDS)}")
        return kind


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

"""What was asked and answered: exchanges, transcripts, their file and their content id."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from expost.chain import Chain
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at
from expost.queries import Query, query_from_json
from expost.reading import NumberText, array, members, parse, scalar, text
from expost.rounding import Nats, decimal_text

__all__ = ["Exchange", "FilterSpec", "Transcript", "canonical", "load", "readable"]

VERSION = 1
FILTER_KINDS = ("basic", "simplified", "bayesian")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One query and the response that was released."""

    query: Query
    response: Value


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """Which filter guards the subject, and its budget: fixed before the first response."""

    kind: str
    budget: Nats

    def tree(self) -> dict[str, Any]:
        if self.budget.rational:
            return {"kind": self.kind, "epsilon": self.budget.rational}
        return {"kind": self.kind, "ratio": self.budget.ratio}


@dataclass(frozen=True, slots=True)
class Transcript:
    """The exchanges with one subject, in order. Immutable; the only state there is.

    Domain and filter are set once, for the guarantee is void if either changes after a response.
    """

    domain: Domain
    filter: FilterSpec | None = None
    exchanges: Chain[Exchange] = field(default_factory=Chain, kw_only=True)

    def add(self, query: Query, response: Any) -> Transcript:
        """The transcript with one more exchange; the response must be one that the query has."""
        likelihood = query.on(self.domain)
        position = likelihood.position(response)
        if position is None:
            raise InvalidInput("is not a response of this query", "response")
        exchange = Exchange(query, likelihood.responses[position])
        return Transcript(self.domain, self.filter, exchanges=self.exchanges.plus(exchange))

    def __len__(self) -> int:
        return len(self.exchanges)

    def __repr__(self) -> str:
        return f"Transcript({self.domain!r}, {len(self)} exchanges)"

    def tree(self) -> dict[str, Any]:
        """The JSON shape: exact numbers as fractions, doubles as floats, the rest as it is."""
        tree: dict[str, Any] = {"version": VERSION, "domain": self.domain.tree()}
        if self.filter is not None:
            tree["filter"] = self.filter.tree()
        tree["exchanges"] = [
            {
                "query": {"kind": exchange.query.kind, **exchange.query.tree()},
                "response": _response_tree(exchange.response),
            }
            for exchange in self.exchanges
        ]
        return tree

    @property
    def content_id(self) -> str:
        """SHA-256 of the canonical encoding: equal for equal transcripts, whatever their file."""
        return hashlib.sha256(canonical(self.tree())).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; a crash leaves the old file or the new one, never half of one."""
        target = Path(path)
        document = json.dumps(readable(self.tree()), ensure_ascii=False, allow_nan=False, indent=1)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(document + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def from_json(cls, document: str) -> Transcript:
        """Read a file's text, strictly; an error names the place."""
        fields = members(
            parse(document), required=("version", "domain", "exchanges"), optional=("filter",)
        )
        if not isinstance(fields["version"], NumberText) or fields["version"] != str(VERSION):
            raise InvalidInput(f"unknown version; this is version {VERSION}", "version")
        with at("domain"):
            domain = domain_from_json(fields["domain"])
        spec = _filter_from_json(fields["filter"]) if "filter" in fields else None
        with at("exchanges"):
            entries = array(fields["exchanges"])
            return cls(domain, spec, exchanges=Chain(_exchanges(domain, entries)))


def load(path: str | os.PathLike[str]) -> Transcript:
    """Read a transcript file, strictly."""
    with at(Path(path).name, ": "):
        return Transcript.from_json(read_text(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """A file as text; what is not UTF-8 is bad input."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None


def _exchanges(domain: Domain, entries: list[Any]) -> Iterable[Exchange]:
    # Equal queries become one object, so that its likelihood is worked out once.
    known: dict[bytes, Query] = {}
    for index, entry in enumerate(entries):
        with at(f"[{index}]"):
            fields = members(entry, required=("query", "response"))
            with at("query"):
                query = query_from_json(fields["query"])
                query = known.setdefault(canonical(query.tree()) + query.kind.encode(), query)
                query.on(domain)
            added = Transcript(domain).add(query, _response_from_json(fields["response"]))
            yield added.exchanges[0]


def _filter_from_json(value: Any) -> FilterSpec:
    with at("filter"):
        fields = members(value, required=("kind",), optional=("epsilon", "ratio"))
        with at("kind"):
            kind = text(fields["kind"])
            if kind not in FILTER_KINDS:
                raise InvalidInput(f"unknown filter; known: {', '.join(FILTER_KINDS)}")
        return FilterSpec(kind, Nats.budget(fields.get("epsilon"), fields.get("ratio")))


def _response_from_json(value: Any) -> Any:
    with at("response"):
        if isinstance(value, list):
            return [scalar(entry) for entry in value]
        return scalar(value)


def _response_tree(response: Value) -> Any:
    if isinstance(response, tuple):
        return [float(x) for x in response]
    return response if isinstance(response, str) else float(response)


def readable(tree: Any) -> Any:
    """A tree for people: exact numbers as decimals or "p/q", doubles as JSON numbers."""
    if isinstance(tree, dict):
        return {key: readable(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [readable(value) for value in tree]
    if isinstance(tree, Fraction):
        return decimal_text(tree)
    if isinstance(tree, float):
        return int(tree) if tree.is_integer() and abs(tree) <= 2**53 else tree
    return tree


def canonical(tree: Any) -> bytes:
    """A tree as bytes that are equal exactly for equal content."""
    return json.dumps(
        _canonical(tree), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()


def _canonical(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _canonical(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_canonical(value) for value in tree]
    if isinstance(tree, Fraction):
        return str(tree)
    if isinstance(tree, float):
        return (tree + 0.0).hex()  # adding zero makes -0.0 the 0.0 that it equals
    if isinstance(tree, str) and tree.startswith(("0x", "-0x", "'")):
        return "'" + tree  # a label must not pass for the number whose text it has
    return tree

"""What was asked and answered: exchanges, transcripts, their file and their content id."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from expost.chain import Chain
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at, expect
from expost.queries import Query, check_query, query_from_json
from expost.reading import NumberText, array, members, number, parse, scalar, text
from expost.rounding import Nats, decimal_text

__all__ = [
    "Exchange",
    "FilterSpec",
    "Transcript",
    "canonical",
    "load",
    "map_leaves",
    "read_text",
    "readable",
]

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

    def __post_init__(self) -> None:
        if not self.budget > Nats() or (self.budget.rational and self.budget.ratio != 1):
            raise InvalidInput("a budget is either an epsilon or a ratio, and positive")

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
    exchanges: Chain[Exchange] = field(default_factory=Chain, init=False)

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
            known = ", ".join(map(repr, likelihood.responses[:6]))
            more = ", …" if len(likelihood.responses) > 6 else ""
            raise InvalidInput(f"is not a response of this query; it has {known}{more}", "response")
        exchange = Exchange(query, likelihood.responses[position])
        longer = Transcript(self.domain, self.filter)
        object.__setattr__(longer, "exchanges", self.exchanges.plus(exchange))
        return longer

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
        except OSError as error:
            # The user knows the target, not the temporary file.
            raise type(error)(error.errno, error.strerror, str(target)) from None
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def from_json(cls, document: str) -> Transcript:
        """Read a file's text, strictly; an error names the place."""
        expect(document, str, "the text of a file")
        fields = members(
            parse(document), required=("version", "domain", "exchanges"), optional=("filter",)
        )
        if not isinstance(fields["version"], NumberText) or fields["version"] != str(VERSION):
            raise InvalidInput(f"unknown version; this is version {VERSION}", "version")
        with at("domain"):
            domain = domain_from_json(fields["domain"])
        spec = _filter_from_json(fields["filter"]) if "filter" in fields else None
        transcript = cls(domain, spec)
        with at("exchanges"):
            # Equal queries become one object, so that its likelihood is worked out once.
            known: dict[bytes, Query] = {}
            for index, entry in enumerate(array(fields["exchanges"])):
                with at(f"[{index}]"):
                    transcript = transcript._add_from_json(entry, known)
        return transcript

    def _add_from_json(self, entry: Any, known: dict[bytes, Query]) -> Transcript:
        fields = members(entry, required=("query", "response"))
        with at("query"):
            query = query_from_json(fields["query"])
            query = known.setdefault(query.kind.encode() + canonical(query.tree()), query)
            query.on(self.domain)
        return self.add(query, _response_from_json(fields["response"]))


def load(path: str | os.PathLike[str]) -> Transcript:
    """Read a transcript file, strictly."""
    expect(path, (str, os.PathLike), "the name of a file")
    with at(os.fspath(path), ": "):
        return Transcript.from_json(read_text(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """A file as text; what is not UTF-8 is bad input."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput("cannot be read: not a file name") from None


def _filter_from_json(value: Any) -> FilterSpec:
    with at("filter"):
        fields = members(value, required=("kind",), optional=("epsilon", "ratio"))
        with at("kind"):
            kind = text(fields["kind"])
            if kind not in FILTER_KINDS:
                raise InvalidInput(f"unknown filter; known: {', '.join(FILTER_KINDS)}")
        for name in ("epsilon", "ratio"):
            if name in fields and fields[name] is None:
                raise InvalidInput("must be a number", name)
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


def map_leaves(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """A tree of dictionaries and lists with every leaf replaced."""
    if isinstance(tree, dict):
        return {key: map_leaves(value, leaf) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [map_leaves(value, leaf) for value in tree]
    return leaf(tree)


def readable(tree: Any) -> Any:
    """A tree for people: exact numbers as decimals or "p/q", doubles as JSON numbers."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Fraction):
            return decimal_text(value)
        return number(value) if isinstance(value, float) else value

    return map_leaves(tree, leaf)


def canonical(tree: Any) -> bytes:
    """A tree as bytes that are equal exactly for equal content."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Fraction):
            return str(value)
        if isinstance(value, float):
            return (value + 0.0).hex()  # adding zero makes -0.0 the 0.0 that it equals
        if isinstance(value, str) and value.startswith(("0x", "-0x", "'")):
            return "'" + value  # a label must not pass for the number whose text it has
        return value

    shape = map_leaves(tree, leaf)
    return json.dumps(shape, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

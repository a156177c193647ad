"""Numbers, values, domains, queries and responses as text, each on one line."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from expost._format import format_list, format_nats, format_number, format_range, shorten
from expost.domains import (
    Attribute,
    Categories,
    Change,
    Domain,
    Integers,
    Record,
    Scalar,
    Side,
    Value,
    format_coordinates,
)
from expost.errors import make_printable
from expost.filters import Filter
from expost.filters._large_budgets import is_large, sure_text
from expost.numbers import Enclosure, decimal_text
from expost.queries import About, Query, RandomizedResponse
from expost.transcript import Transcript

__all__ = [
    "basic_text",
    "budget_text",
    "domain_in_words",
    "filter_name",
    "format_amount",
    "loss_text",
    "queries_by_question",
    "queries_in_words",
    "query_in_words",
    "query_name",
    "record_in_words",
    "records_text",
    "response_text",
    "value_label",
    "value_text",
    "with_count",
    "with_unit",
]


def format_amount(amount: Enclosure | float) -> str:
    """Format a number; for an enclosure its upper end, or 0 if it is negligible."""
    return amount.shown() if isinstance(amount, Enclosure) else format_nats(amount)


def loss_text(loss: Enclosure | float) -> str:
    """Format a loss, or say that it is unbounded.

    >>> loss_text(0.25), loss_text(float("inf"))
    ('0.25', 'unbounded')
    """
    upper = loss.upper if isinstance(loss, Enclosure) else loss
    return "unbounded" if upper == math.inf else format_amount(loss)


def with_unit(amount: str) -> str:
    """Add the unit to an amount in nats."""
    return f"{amount} {'nat' if amount == '1' else 'nats'}"


def with_count(count: int, singular: str, plural: str) -> str:
    """Put a count before words that agree with it.

    >>> with_count(1, "person is", "people are"), with_count(2000, "person is", "people are")
    ('1 person is', '2,000 people are')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def basic_text(basic: float, transcript: Transcript) -> str:
    """Format the cost by basic composition; if queries have a delta, say that it has none."""
    approximate = any(exchange.query.approximate for exchange in transcript.exchanges)
    return f"{format_amount(basic)}{', without any delta' if approximate else ''}"


def budget_text(filter_: Filter | None) -> str:
    """Describe a filter by its budget and its kind."""
    if filter_ is None:
        return "none: the transcript names no filter"
    large = f", very large: {sure_text(filter_.budget)}" if is_large(filter_.budget) else ""
    return f"{filter_.limit} ({filter_name(filter_)}){large}"


def filter_name(filter_: Filter) -> str:
    """Name a filter in a sentence: ``Bayesian filter``."""
    if len(filter_.members) > 1:
        return f"all of {len(filter_.members)} filters"
    return f"{filter_.kind.replace('bayesian', 'Bayesian')} filter"


def query_in_words(query: Query, domain: Domain) -> str:
    """Describe a query and its epsilon, or where a saturating query was made to end."""
    if query.question is not None and query.cap is not None:
        return f"{query.asks_on(domain)}, to a loss of {decimal_text(query.cap)} at most"
    epsilon = query.charge(domain)
    amount = str(epsilon) if epsilon.ratio == 1 else format_number(epsilon.nearest)
    delta = f" and delta {format_number(query.delta)}" if query.delta else ""
    return f"{query.asks_on(domain)}, at epsilon {amount}{delta}"


def queries_by_question(queries: Mapping[str, Query]) -> dict[str, dict[str, Query]]:
    """Group saturating queries by their question; every other query is alone with its name."""
    groups: dict[str, dict[str, Query]] = {}
    for name, query in queries.items():
        label = query.question or name
        if query.question in queries:
            label = f"saturating: {label}"  # the question is the name of another query
        groups.setdefault(label, {})[name] = query
    return groups


def queries_in_words(queries: Collection[Query], domain: Domain) -> str:
    """Describe a query, or all saturating queries about one question."""
    caps = [query.cap for query in queries if query.cap is not None]
    if len(queries) == 1 or not caps:
        return query_in_words(next(iter(queries)), domain)
    steps = ", ".join(decimal_text(cap) for cap in sorted(set(caps)))
    return f"{len(queries):,} saturating queries, to a loss of {steps} at most"


_LONGEST_NAME = 24
_CONTENT_ID = re.compile(r"[0-9a-f]{64}")


def query_name(name: str) -> str:
    """Return the name of a query, without its middle if it is long; or the start of its id."""
    if _CONTENT_ID.fullmatch(name):
        return name[:12]
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def domain_in_words(domain: Domain) -> str:
    """Describe the possible values."""
    if domain.kinds:
        return record_in_words(domain)
    if domain.sides:
        names = domain.names or [f"[{index}]" for index in range(len(domain.sides))]
        sides = [
            f"{name} {_side_in_words(side)}" for name, side in zip(names, domain.sides, strict=True)
        ]
        return f"a point of a box: {format_list(sides)}"
    if domain.names is not None:
        return f"one of {len(domain.values):,} points, by {format_list(domain.names)}"
    return f"one of {len(domain.values):,}: {format_list(domain.values, 'or')}"


def _side_in_words(side: Side) -> str:
    if isinstance(side, Categories):
        return f"one of {format_list(side.labels, 'or')}"
    kind = "an integer " if isinstance(side, Integers) else ""
    return f"{kind}{format_range(side.lower, side.upper)}"


def value_text(value: Value, domain: Domain) -> str:
    """Format a value on one line, coordinates with their names."""
    if not isinstance(value, tuple):
        return _cut(str(value))
    names = domain.names or [f"[{index}]" for index in range(len(value))]
    return make_printable(format_coordinates(names, value))


def value_label(value: Value) -> str:
    """Format a value as a label, without the names of coordinates."""
    if not isinstance(value, tuple):
        return _cut(str(value))
    return _cut(", ".join(part if isinstance(part, str) else format_number(part) for part in value))


def response_text(response: Value, query: Query, domain: Domain) -> str:
    """Format a response on one line."""
    if isinstance(query, About):
        return response_text(response, query.query, query.part_of(domain))
    if isinstance(query, RandomizedResponse):
        return value_text(response, domain)
    return _cut(", ".join(map(str, response)) if isinstance(response, tuple) else str(response))


def _cut(text: str) -> str:
    return make_printable(shorten(text))


_LISTED = 4
_DIFFERENCES = 6


def record_in_words(domain: Domain) -> str:
    """Describe the attributes of records, their values and how they change."""
    attributes = [
        f"{name} {_attribute_in_words(kind)}"
        for name, kind in zip(domain.called(""), domain.kinds, strict=True)
    ]
    if len(attributes) > _LISTED + 1:
        attributes = [*attributes[:_LISTED], f"and {len(attributes) - _LISTED:,} more attributes"]
    return f"a record: {'; '.join(attributes)}"


def _attribute_in_words(kind: Attribute) -> str:
    values = kind.values.values
    description = (
        f"an integer from {values[0]} to {values[-1]}"
        if kind.integers
        else f"one of {format_list(values, 'or')}"
    )
    changing = "" if kind.change is None else f", changing {_change_in_words(kind.change)}"
    return f"{description}{changing}"


def _change_in_words(change: Change) -> str:
    if change.times is not None:
        often = {0: "never", 1: "at most once", 2: "at most twice"}
        return often.get(change.times, f"at most {change.times:,} times")
    if change.max_step is not None:
        return f"by at most {decimal_text(change.max_step)} a step"
    return "freely from step to step"


def records_text(first: Record, second: Record) -> tuple[str, str]:
    """Describe both records where they differ; add that everything else is alike."""
    pairs = [pair for name in first for pair in _pair(name, first[name], second[name])]
    above, below = [], []
    for (name, a, b), run in groupby(pairs, key=lambda pair: (pair[0], *pair[2:])):
        if a != b:
            when = _format_steps([step for _, step, _, _ in run])
            above.append(format_coordinates([name], [a]) + when)
            below.append(format_coordinates([name], [b]) + when)
    alike = ", everything else alike" if any(a == b for _, _, a, b in pairs) else ""
    return _list_differences(above), _list_differences(below) + alike


def _pair(name: str, first: Any, second: Any) -> Iterator[tuple[str, int | None, Scalar, Scalar]]:
    """Yield the values of an attribute in two records, at each step if it changes."""
    if isinstance(first, dict):
        yield from ((name, step, x, second[step]) for step, x in first.items())
    else:
        yield name, None, first, second


def _format_steps(steps: Sequence[int | None]) -> str:
    if steps[0] is None:
        return ""
    return f" at step {steps[0]}" if len(steps) == 1 else f" at steps {steps[0]} to {steps[-1]}"


def _list_differences(texts: Sequence[str]) -> str:
    shown = [*texts[:_DIFFERENCES]]
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown):,} more")
    return make_printable(", ".join(shown))

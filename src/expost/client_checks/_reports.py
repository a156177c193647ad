"""Reads the reports of a client from a table: how often each response came for each input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from expost.answers import parse_spelling, response_position
from expost.domains import Categories, Domain, Part, join_names, require_attributes
from expost.errors import InvalidInput, at
from expost.files.reading import as_list
from expost.files.tables import as_array, column_names
from expost.queries import About, LazyResponses, Likelihood, Query

__all__ = ["inputs", "read_reports"]

_FURTHER = ("output", "subject")
# Responses that are compared one by one where there are inputs of further attributes.
_MOST = 1 << 10


def inputs(query: Query, domain: Domain, table: Any) -> Domain:
    """Return the domain of the inputs of a table.

    Of records that is what the query is about, and whatever other attributes have a column: a
    response must not depend on these.
    """
    if not isinstance(query, About):
        return domain
    domain = require_attributes(
        domain, "only a domain of attributes can be asked about some of them", "about"
    )
    other_columns = {*column_names(table)} - {*query.names, *_FURTHER}
    part = domain.part((*query.names, *(name for name in domain.names if name in other_columns)))
    responses = query.on(part).responses
    other_names = join_names(part.about[len(query.names) :])
    if other_names and isinstance(responses, LazyResponses) and responses.size > _MOST:
        raise InvalidInput(
            f"{query.kind} has too many responses to check other attributes; leave out "
            f"{other_names}"
        )
    return part


def read_reports(
    domain: Domain, likelihood: Likelihood[Any], table: Any, *, permanent: bool
) -> tuple[dict[Any, Counter[int]], tuple[int, int] | None]:
    """Count reports by input and response; also find a permanent response that changed."""
    names = domain.called("input")
    further = _FURTHER if permanent else _FURTHER[:1]
    for name in further:
        if name in names:
            raise InvalidInput(f"a coordinate of the domain is called {name!r}, as is a column")
    hint = "" if names == ("input",) else f"; inputs are in {join_names(names)}, not in 'input'"
    columns = [_column(table, name, hint) for name in names]
    columns += [_column(table, name) for name in further]
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("the columns have different lengths")
    if not columns[0]:
        raise InvalidInput("there are no rows")
    values = _read_entries(
        zip(*columns[: len(names)], strict=True), "input", lambda row: _locate_row(domain, row)
    )
    outputs = _read_entries(
        columns[len(names)],
        "output",
        lambda entry: response_position(likelihood, entry, "the claim"),
    )
    reports: dict[Any, Counter[int]] = {}
    changed: tuple[int, int] | None = None
    first: dict[tuple[Any, Any], tuple[int, int]] = {}
    entries = zip(columns[-1] if permanent else range(len(outputs)), values, outputs, strict=True)
    for row, (subject, value, output) in enumerate(entries, start=1):
        earlier = first.setdefault((subject, value), (row, output)) if permanent else (row, output)
        if earlier[0] == row:
            reports.setdefault(value, Counter())[output] += 1
        elif earlier[1] != output and changed is None:
            changed = earlier[0], row
    return reports, changed


def _column(table: Any, name: str, hint: str = "") -> list[Any]:
    if column_names(table).count(name) != 1:
        raise InvalidInput(f"column {name!r} is missing{hint}")
    column = as_array(table[name])
    with at(name):
        return as_list(column.tolist() if isinstance(column, np.ndarray) else column)


def _read_entries(entries: Iterable[Any], column: str, read: Callable[[Any], Any]) -> list[Any]:
    """Read every entry, equal ones once. An error names the row, never what is in it."""
    results_by_key: dict[Any, Any] = {}
    result = []
    for row, entry in enumerate(entries, start=1):
        plain = tuple(entry) if isinstance(entry, list) else entry
        key = type(plain), plain  # without its type, True would be found as 1
        try:
            if key not in results_by_key:
                results_by_key[key] = read(plain)
        except TypeError:
            reason = "must be a label, a number or a list"
            raise InvalidInput(reason, f"row {row}: {column}") from None
        except InvalidInput as error:
            raise InvalidInput(error.reason, f"row {row}: {column}") from None
        result.append(results_by_key[key])
    return result


def _locate_row(domain: Domain, row: Sequence[Any]) -> Any:
    if isinstance(domain, Part) and len(domain.sets) > 1:
        pairs = zip(domain.sets, row, strict=True)
        return domain.position_of([_locate_row(values, [entry]) for values, entry in pairs])
    options = [
        [entry, parse_spelling(entry)]
        if isinstance(entry, str) and not isinstance(side, Categories)
        else [entry]
        for entry, side in zip(row, domain.sides or (None,) * len(row), strict=True)
    ]
    # A text is a label first of all. So either all texts are labels, or all spell numbers.
    tried = [[option[0] for option in options], [option[-1] for option in options]]
    single = domain.names is None and not domain.sides
    positions = {domain.locate(entry[0] if single else entry) for entry in tried} - {None}
    if len(positions) > 1:
        raise InvalidInput("is a label of the domain, and also spells one of its numbers")
    if not positions:
        raise InvalidInput("is not in the domain")
    return positions.pop()

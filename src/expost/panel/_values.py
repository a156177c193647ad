"""The values of many subjects, held for the draw of their responses and nothing else.

No error, repr or frame shows a value; errors name a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attributes, Box, Domain, FiniteSet, freeze_columns
from expost.errors import ExpostError, InvalidInput, OutsideDomain
from expost.files.reading import as_list
from expost.files.tables import as_array, column_names, is_frame
from expost.queries import Query
from expost.session._history import locate_record
from expost.session._secret import NotCopyable, Secret, scrub_traceback
from expost.tally import distinct_integers

__all__ = ["Values", "values_of"]


_OUTSIDE = "the value is outside the domain (and is not shown here)"


class Values(NotCopyable):
    """The values of some subjects as a query sees them: indices into its likelihood."""

    __slots__ = ("_value_indices",)

    def __init__(self, value_indices: Any) -> None:
        self._value_indices = value_indices

    def indices_of(self, rows: NDArray[np.intp]) -> Any:
        """Return the value indices of some of the subjects, for the draw of their responses."""
        value_indices = self._value_indices
        array = isinstance(value_indices, np.ndarray)
        return value_indices[rows] if array else [value_indices[row] for row in rows]

    def __len__(self) -> int:
        return len(self._value_indices)


@scrub_traceback
def values_of(domain: Domain, secret: Secret, count: int, queries: Sequence[Query]) -> list[Values]:
    """Read the values of so many subjects, as each of these queries sees them."""
    try:
        locate = _value_locator(domain, secret, count)
        return [Values(locate(query)) for query in queries]
    except ExpostError:
        raise
    except Exception:  # whatever is wrong with values, an error could show them
        raise InvalidInput("cannot be read (not shown)", "values") from None


def _value_locator(domain: Domain, secret: Secret, count: int) -> Callable[[Query], Any]:
    """Return what locates the values as a query sees them."""
    match domain:
        case FiniteSet():
            indices = _locate_values(domain, _rows(secret.take(), domain.names), count)
            return lambda query: indices
        case Attributes():
            return _seen_records(domain, secret, count)
        case Box():
            points = [domain.locate(row) for row in _rows(secret.take(), domain.names)]
            _check_count(len(points), count)
            _check_inside(np.array([point is None for point in points]))
            return lambda query: points
        case _:
            assert_never(domain)


def _seen_records(
    domain: Attributes, secret: Secret, count: int
) -> Callable[[Query], NDArray[np.intp]]:
    table, index_by_value = secret.take(), dict[tuple[str, int], NDArray[np.intp]]()
    columns = is_frame(table) or isinstance(table, Mapping)
    reader = _Columns(domain, table, count) if columns else _Records(domain, table, count)

    def locate(query: Query) -> NDArray[np.intp]:
        likelihood, step = query.on(domain), query.step or 1
        for name, _ in likelihood.variables:
            if (name, step) not in index_by_value:
                value_indices = reader.steps(name, step if domain[name].change else 1)
                index_by_value[name, step] = freeze_columns(domain[name], value_indices)[-1]
        indices_by_attribute = [index_by_value[name, step] for name, _ in likelihood.variables]
        return np.ravel_multi_index(indices_by_attribute, likelihood.part.sizes).astype(np.intp)

    return locate


@dataclass(frozen=True, slots=True, repr=False)
class _Columns:
    """Records by columns: of an attribute that changes, with a row for each subject."""

    domain: Attributes
    table: Any
    count: int

    def steps(self, name: str, last: int) -> NDArray[np.intp]:
        """Return the value indices of an attribute at each step up to one: a row for each step."""
        if name not in column_names(self.table):
            raise InvalidInput(f"column {name!r} is missing; a query is about it", "values")
        attribute = self.domain[name]
        if attribute.change is None:
            return _locate_values(attribute.values, _column(self.table[name]), self.count)[None]
        rows = [as_list(row) for row in _column(self.table[name])]
        _check_count(len(rows), self.count)
        _check_steps(rows, last)
        columns = [[row[step] for row in rows] for step in range(last)]
        return np.array(
            [_locate_values(attribute.values, column, self.count) for column in columns]
        )


class _Records:
    """Records one by one; where attributes change, a list of them for each subject."""

    __slots__ = ("_domain", "_value_indices")

    def __init__(self, domain: Attributes, table: Any, count: int) -> None:
        rows = as_list(table)
        _check_count(len(rows), count)
        self._domain = domain
        self._value_indices: list[list[tuple[int, ...]]] = []
        for row, value in enumerate(rows):
            try:
                records = as_list(value) if domain.changes else [value]
                self._value_indices.append([locate_record(domain, record) for record in records])
            except ExpostError as error:
                raise type(error)(f"row {row + 1}: {error}") from None

    def steps(self, name: str, last: int) -> NDArray[np.intp]:
        _check_steps(self._value_indices, last)
        (position,) = self._domain.indices([name])
        columns = [[row[step][position] for row in self._value_indices] for step in range(last)]
        return np.array(columns, dtype=np.intp).reshape(last, -1)


def _rows(table: Any, names: Sequence[str] | None) -> Any:
    """Read a column of values; vectors may be a frame or columns by their names."""
    if names and (is_frame(table) or isinstance(table, Mapping)):
        columns = [_column(table[name]) for name in names]
        return list(zip(*(map(_plain, column) for column in columns), strict=True))
    return _column(table)


def _column(table: Any) -> Any:
    values = as_array(table)
    return values if isinstance(values, np.ndarray) else as_list(values)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _locate_values(domain: FiniteSet, column: Any, count: int) -> NDArray[np.intp]:
    """Locate values in a finite set; equal ones are looked up once."""
    _check_count(len(column), count)
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iu":
        values, place_of = distinct_integers(column)
        value_indices = np.array(
            [_value_index(domain, value) for value in values.tolist()], dtype=np.intp
        )
        indices = value_indices[place_of]
    else:
        entries = column.tolist() if isinstance(column, np.ndarray) else column
        index_by_value: dict[Any, int] = {}
        listed = []
        for entry in entries:
            key = tuple(entry) if isinstance(entry, list) else entry
            try:
                # Equal values of different types may be different values: True is not 1.
                value_index = index_by_value.get((type(key), key), -2)
                if value_index == -2:
                    value_index = index_by_value[type(key), key] = _value_index(domain, key)
            except TypeError:  # what cannot be a key, such as a mapping
                value_index = _value_index(domain, entry)
            listed.append(value_index)
        indices = np.array(listed, dtype=np.intp)
    _check_inside(indices < 0)
    return indices


def _value_index(domain: FiniteSet, value: Any) -> int:
    value_index = domain.locate(value)
    return -1 if value_index is None else value_index


def _check_inside(outside: NDArray[np.bool_]) -> None:
    if outside.any():
        raise OutsideDomain(f"row {int(np.argmax(outside)) + 1}: {_OUTSIDE}")


def _check_count(table: int, count: int) -> None:
    if table != count:
        raise InvalidInput(f"got {table:,} for {count:,} subjects", "values")


def _check_steps(rows: Sequence[Sequence[Any]], last: int) -> None:
    for row, steps in enumerate(rows):
        if len(steps) < last:
            raise InvalidInput(
                f"got {len(steps)} steps; a query is about step {last}", f"values: row {row + 1}"
            )

"""What many subjects are, on the way to the draw of their responses. Nothing else looks at it.

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

__all__ = ["Values", "values_of"]


# Integers as close together as this are counted rather than sorted.
_SMALL = 1 << 16

_OUTSIDE = "the value is outside the domain (and is not shown here)"


class Values(NotCopyable):
    """Where the values of some subjects are, as a query sees them: places of its likelihood."""

    __slots__ = ("_places",)

    def __init__(self, places: Any) -> None:
        self._places = places

    def some(self, numbers: NDArray[np.intp]) -> Values:
        """Those of some of the subjects."""
        places = self._places
        array = isinstance(places, np.ndarray)
        return Values(places[numbers] if array else [places[n] for n in numbers])

    @staticmethod
    def joined(parts: Sequence[Values]) -> Any:
        """The places of all, for the draw of their responses."""
        every = [each._places for each in parts]
        if len(every) == 1:
            return every[0]
        array = isinstance(every[0], np.ndarray)
        return np.concatenate(every) if array else [place for own in every for place in own]

    def __len__(self) -> int:
        return len(self._places)


@scrub_traceback
def values_of(domain: Domain, secret: Secret, count: int, queries: Sequence[Query]) -> list[Values]:
    """The values of so many subjects, as each of these queries sees them."""
    try:
        seen = _seen(domain, secret, count)
        return [Values(seen(query)) for query in queries]
    except ExpostError:
        raise
    except Exception:  # whatever is wrong with values, an error could show them
        raise InvalidInput("cannot be read (they are not shown here)", "values") from None


def _seen(domain: Domain, secret: Secret, count: int) -> Callable[[Query], Any]:
    """Return what locates the values as a query sees them."""
    match domain:
        case FiniteSet():
            indices = _located(domain, _rows(secret.taken(), domain.names), count)
            return lambda query: indices
        case Attributes():
            return _seen_records(domain, secret, count)
        case Box():
            points = [domain.locate(row) for row in _rows(secret.taken(), domain.names)]
            _check_count(len(points), count)
            _check_inside(np.array([point is None for point in points]))
            return lambda query: points
        case _:
            assert_never(domain)


def _seen_records(
    domain: Attributes, secret: Secret, count: int
) -> Callable[[Query], NDArray[np.intp]]:
    given, known = secret.taken(), dict[tuple[str, int], NDArray[np.intp]]()
    columns = is_frame(given) or isinstance(given, Mapping)
    read = _Columns(domain, given, count) if columns else _Records(domain, given, count)

    def seen(query: Query) -> NDArray[np.intp]:
        likelihood, step = query.on(domain), query.step or 1
        for name, _ in likelihood.variables:
            if (name, step) not in known:
                places = read.steps(name, step if domain[name].change else 1)
                known[name, step] = freeze_columns(domain[name], places)[-1]
        own = [known[name, step] for name, _ in likelihood.variables]
        return np.ravel_multi_index(own, likelihood.part.sizes).astype(np.intp)

    return seen


@dataclass(frozen=True, slots=True, repr=False)
class _Columns:
    """Records by columns: of an attribute that changes, with a row for each subject."""

    domain: Attributes
    given: Any
    count: int

    def steps(self, name: str, last: int) -> NDArray[np.intp]:
        """Where an attribute is at each step up to one: a row for each step."""
        if name not in column_names(self.given):
            raise InvalidInput(f"there is no column {name!r}, which is asked about", "values")
        attribute = self.domain[name]
        if attribute.change is None:
            return _located(attribute.values, _column(self.given[name]), self.count)[None]
        rows = [as_list(row) for row in _column(self.given[name])]
        _check_count(len(rows), self.count)
        _check_steps(rows, last)
        each = [[row[step] for row in rows] for step in range(last)]
        return np.array([_located(attribute.values, column, self.count) for column in each])


class _Records:
    """Records one by one; where attributes change, a list of them for each subject."""

    __slots__ = ("_domain", "_places")

    def __init__(self, domain: Attributes, given: Any, count: int) -> None:
        rows = as_list(given)
        _check_count(len(rows), count)
        self._domain = domain
        self._places: list[list[tuple[int, ...]]] = []
        for row, value in enumerate(rows):
            try:
                records = as_list(value) if domain.changes else [value]
                self._places.append([locate_record(domain, record) for record in records])
            except ExpostError as error:
                raise type(error)(f"row {row + 1}: {error}") from None

    def steps(self, name: str, last: int) -> NDArray[np.intp]:
        _check_steps(self._places, last)
        (at,) = self._domain.indices([name])
        each = [[row[step][at] for row in self._places] for step in range(last)]
        return np.array(each, dtype=np.intp).reshape(last, -1)


def _rows(given: Any, names: Sequence[str] | None) -> Any:
    """A column of values; of vectors also a frame or columns by their names."""
    if names and (is_frame(given) or isinstance(given, Mapping)):
        columns = [_column(given[name]) for name in names]
        return list(zip(*(map(_plain, column) for column in columns), strict=True))
    return _column(given)


def _column(given: Any) -> Any:
    values = as_array(given)
    return values if isinstance(values, np.ndarray) else as_list(values)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _located(domain: FiniteSet, column: Any, count: int) -> NDArray[np.intp]:
    """Where values are in a finite set; equal ones are looked up once."""
    _check_count(len(column), count)
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iu":
        values, place_of = _distinct(column)
        places = np.array([_place(domain, value) for value in values.tolist()], dtype=np.intp)
        found = places[place_of]
    else:
        entries = column.tolist() if isinstance(column, np.ndarray) else column
        known: dict[Any, int] = {}
        listed = []
        for entry in entries:
            key = tuple(entry) if isinstance(entry, list) else entry
            try:
                # Equal values of different types may be different values: True is not 1.
                place = known.get((type(key), key), -2)
                if place == -2:
                    place = known[type(key), key] = _place(domain, key)
            except TypeError:  # what cannot be a key, such as a mapping
                place = _place(domain, entry)
            listed.append(place)
        found = np.array(listed, dtype=np.intp)
    _check_inside(found < 0)
    return found


def _distinct(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The different integers of a column, and which is where; small ones need no sorting."""
    first, last = int(column.min(initial=0)), int(column.max(initial=0))
    if last - first >= _SMALL:
        return np.unique(column, return_inverse=True)
    above = np.subtract(column, first, dtype=np.intp)
    values = np.flatnonzero(np.bincount(above))
    numbers = np.zeros(last - first + 1, dtype=np.intp)
    numbers[values] = np.arange(len(values))
    return values + first, numbers.take(above)


def _place(domain: FiniteSet, value: Any) -> int:
    place = domain.locate(value)
    return -1 if place is None else place


def _check_inside(outside: NDArray[np.bool_]) -> None:
    if outside.any():
        raise OutsideDomain(f"row {int(np.argmax(outside)) + 1}: {_OUTSIDE}")


def _check_count(given: int, count: int) -> None:
    if given != count:
        raise InvalidInput(f"there are {given:,} of them for {count:,} subjects", "values")


def _check_steps(rows: Sequence[Sequence[Any]], last: int) -> None:
    for row, steps in enumerate(rows):
        if len(steps) < last:
            raise InvalidInput(
                f"step {last} is asked about, and there are {len(steps)}", f"values: row {row + 1}"
            )

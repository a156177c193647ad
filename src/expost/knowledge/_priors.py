"""Reads a prior from a table in a file: how likely each value is before any response."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_never

from expost._types import PathLike
from expost.domains import Attributes, Box, Categories, Domain, FiniteSet, Part, join_names
from expost.errors import InvalidInput, at, expect
from expost.files.reading import NumberText, number
from expost.files.tables import read_csv, table_errors
from expost.knowledge._belief import MISS, Belief, read_amount
from expost.knowledge._grammar import coordinate_names
from expost.knowledge._record_belief import RecordBelief
from expost.knowledge._samples import Samples

__all__ = ["load_prior"]

_WEIGHTS = ("probability", "count")

Columns = Mapping[str, Sequence[str]]
Row = Mapping[str, str]


def load_prior(path: PathLike, domain: Domain) -> Belief | RecordBelief | Samples:
    """Read a prior from a CSV file: a belief on a finite domain, :class:`Samples` on a box.

    The file has a column for each coordinate of the domain, called ``value`` on a set without
    names and ``x0``, ``x1``, … on a plain box. Other columns are ignored. On a finite set a row is
    a value with its ``probability`` or ``count``, and values without a row have probability 0. Of
    :class:`Attributes` there are columns for some of them, and a row is a combination of these; all
    others are uniform. On a box a row is a sample. An error names the row, counted from 1 below the
    header.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "prior.csv"
    ...     _ = file.write_text("value,count\\nno,3\\nyes,1\\n")
    ...     prior = load_prior(file, xp.FiniteSet(["no", "yes"]))
    >>> prior.probability("yes")
    Fraction(1, 4)
    """
    expect(path, (str, os.PathLike), "the name of a file")
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    with table_errors(path):
        names = (*coordinate_names(domain), *_WEIGHTS)
        table = read_csv(Path(path), names)
        columns = {name: column for name, column in table.items() if name in names}
        match domain:
            case FiniteSet():
                return _belief(domain, columns)
            case Attributes():
                return _record_belief(domain, columns)
            case Box():
                return _samples(domain, columns)
            case _:
                assert_never(domain)


def _record_belief(domain: Attributes, columns: Columns) -> RecordBelief:
    names = tuple(name for name in columns if name in domain.names)
    if not names:
        raise InvalidInput(f"has no column for any of {join_names(domain.names)}")
    belief = _belief(domain.part(names), columns)
    shares = [Fraction(weight, belief.total) for weight in belief.weights]
    return RecordBelief(domain, {names: shares})


def _rows(columns: Columns, names: Sequence[str]) -> list[Row]:
    """Return the rows of a table; refuse one that lacks one of these columns."""
    for name in names:
        if name not in columns:
            raise InvalidInput(f"column {name!r} is missing")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _samples(box: Box, columns: Columns) -> Samples:
    names = coordinate_names(box)
    points: list[list[Any]] = []
    for index, row in enumerate(_rows(columns, names), start=1):
        with at(f"row {index}", ": "):
            point = [
                row[name] if isinstance(side, Categories) else _read_number(row[name], name)
                for name, side in zip(names, box.sides, strict=True)
            ]
            if box.locate(point) is None:
                raise InvalidInput("is not a point of the box")
        points.append(point)
    return Samples(box, points)


def _belief(domain: FiniteSet, columns: Columns) -> Belief:
    names = coordinate_names(domain)
    rows = _rows(columns, names)
    weight_columns = [name for name in _WEIGHTS if name in columns and name not in names]
    if len(weight_columns) != 1:
        raise InvalidInput("must have one of the columns probability, count")
    (column,) = weight_columns
    weights = [Fraction(0)] * len(domain)
    row_of_position: dict[int, int] = {}
    for index, row in enumerate(rows, start=1):
        with at(f"row {index}", ": "):
            position = _position(domain, row)
            if position in row_of_position:
                raise InvalidInput(f"repeats the value of row {row_of_position[position]}")
            row_of_position[position] = index
            with at(column, ": "):
                weights[position] = read_amount(row[column].strip())
    # Probabilities that a program wrote are rounded, so they may miss one a little.
    sums_to_one = abs(sum(weights, start=Fraction(-1))) <= MISS
    if column == "count" or sums_to_one:
        return Belief.from_counts(domain, weights)
    return Belief(domain, weights)


def _position(domain: FiniteSet, row: Row) -> int:
    if isinstance(domain, Part):
        columns = zip(domain.sets, domain.about, strict=True)
        position = domain.position_of([_locate(values, row[name]) for values, name in columns])
    elif domain.names is not None:
        position = domain.locate([_read_number(row[name], name) for name in domain.names])
    else:
        position = _locate(domain, row["value"])
    if position is None:
        raise InvalidInput("is not a value of the domain")
    return position


def _locate(values: FiniteSet, cell: str) -> int | None:
    """Locate a cell: its text as a label, or else the number that it spells."""
    position = values.locate(cell)
    return values.locate(_strip_cell(cell)) if position is None else position


def _read_number(cell: str, name: str) -> int | float:
    with at(name, ": "):
        return number(_strip_cell(cell))


def _strip_cell(cell: str) -> NumberText:
    return NumberText(cell.strip())

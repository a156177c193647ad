"""Tables in files, by columns. The suffix says the format.

CSV and JSON Lines need nothing else; Parquet needs polars, which comes with the extra ``frames``.
"""

from __future__ import annotations

import csv
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost._types import PathLike
from expost.cards import View
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text, plain_tree
from expost.files.reading import NumberText, double, members, parse
from expost.files.regular import LARGEST_TABLE, open_for_reading

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "ResultTable",
    "as_array",
    "as_lists",
    "column_names",
    "is_frame",
    "parquet_columns",
    "read_csv",
    "read_table",
    "separator_hint",
    "table_errors",
    "table_format",
    "write_csv",
    "write_table",
]

# About as many as the smallest rows of CSV in the largest table.
_MOST_ROWS = 100_000_000

# What a spreadsheet takes for the beginning of a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")

Columns = dict[str, list[Any]]


def read_table(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> Any:
    """Read the columns of these names. In JSON Lines all have to be there but the optional ones.

    JSON has no empty cells: an optional column has an entry in every row, or in none.
    """
    return _READERS[table_format(path)](path, names, optional)


def write_table(
    columns: Mapping[str, Sequence[Any]], path: Path, *, for_people: bool = True
) -> None:
    """Write columns of numbers and texts.

    In CSV a text that a spreadsheet would take for a formula, ``=1+1``, has an apostrophe in front,
    unless only programs read the table.
    """
    if table_format(path) == ".csv":
        write_csv(columns, path, for_people=for_people)
    else:
        _WRITERS[table_format(path)](columns, path)


def table_format(path: PathLike) -> str:
    """Return the format of a table by the suffix of its file."""
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise InvalidInput(f"the name of a table must end in {', '.join(_READERS)}")
    return suffix


@contextmanager
def table_errors(path: PathLike) -> Iterator[None]:
    """Put the name of a table in front of errors; say from where the rows of CSV are counted."""
    try:
        yield
    except InvalidInput as error:
        location = error.location
        if Path(path).suffix.lower() == ".csv":  # an editor counts the header too
            location = re.sub(r"^row \d+", r"\g<0> below the header", location)
        raise type(error)(error.reason, location).within(os.fspath(path), ": ") from None


@contextmanager
def _open_text(path: Path) -> Iterator[Any]:
    try:
        with (
            open_for_reading(path, LARGEST_TABLE) as file,
            TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
        ):
            yield text
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text") from None


def read_csv(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> Columns:
    """Read the columns of a CSV file that have these names, as strings."""
    with _open_text(path) as file:
        rows = csv.reader(file, strict=True)
        try:
            header = next(rows, [])
            columns: list[list[str]] = [[] for _ in header]
            wanted = [index for index, name in enumerate(header) if name in (*names, *optional)]
            done = 0
            for row in rows:
                if not row:
                    continue  # an empty line
                done += 1
                if len(row) != len(header):
                    size = f"the header {len(header)}{separator_hint(header)}"
                    raise InvalidInput(f"has {len(row)} cells, {size}", f"row {done}")
                for index in wanted:
                    columns[index].append(row[index])
        except csv.Error as error:
            raise InvalidInput(f"not CSV: {error}", f"line {rows.line_num}") from None
    if not header:
        raise InvalidInput("is empty")
    for name in names:
        if header.count(name) > 1:
            raise InvalidInput(f"column {name!r} appears twice")
    return dict(zip(header, columns, strict=True))


def separator_hint(header: Sequence[Any]) -> str:
    """Return a hint for a header whose names are separated by other marks than commas."""
    name = str(header[0]) if len(header) == 1 else ""
    for mark, marks in ((";", "semicolons"), ("\t", "tabs")):
        if mark in name:
            needed = "Commas are needed, and points in numbers: 1.5"
            return f"; is it separated by {marks}? {needed}; expost import converts it"
    return ""


def _read_json_lines(path: Path, names: Sequence[str], optional: Sequence[str]) -> Columns:
    columns: Columns = {name: [] for name in (*names, *optional)}
    with _open_text(path) as file:
        done = 0
        for line in file:
            if line.isspace():
                continue
            done += 1
            with at(f"row {done}", ": "):
                fields = members(parse(line), required=names, optional=None)
                for name in fields.keys() & columns.keys():
                    with at(name):
                        columns[name].append(_value(fields[name]))
    return {name: column for name, column in columns.items() if column or name in names}


def _value(value: Any) -> Any:
    """Convert a value of JSON; integers may have any length, because they may name subjects."""
    if isinstance(value, list):
        return [_value(entry) for entry in value]
    if not isinstance(value, NumberText):
        return value
    digits = value.removeprefix("-")
    return int(value) if digits.isdecimal() and len(digits) < 100 else double(value)


def _read_parquet(path: Path, names: Sequence[str], optional: Sequence[str]) -> Any:
    polars = _polars()
    try:
        with open_for_reading(path, LARGEST_TABLE) as file:
            # Equal rows take no room in such a file, so its size says nothing of theirs.
            rows = polars.scan_parquet(file).select(polars.len()).collect().item()
            if rows > _MOST_ROWS:
                raise InvalidInput(f"has {rows:,} rows, and at most {_MOST_ROWS:,} are read")
            file.seek(0)
            return polars.read_parquet(file)
    except polars.exceptions.PolarsError:
        raise InvalidInput("is not a Parquet file") from None


def parquet_columns(path: PathLike) -> set[str]:
    """Return the names of the columns of a Parquet file."""
    polars = _polars()
    try:
        with open_for_reading(path, LARGEST_TABLE) as file:
            return set(polars.read_parquet_schema(file))
    except (OSError, polars.exceptions.PolarsError):
        raise InvalidInput("is not a Parquet file") from None


def write_csv(columns: Mapping[str, Sequence[Any]], path: Path, *, for_people: bool = True) -> None:
    """Write columns as CSV; for people without anything that a spreadsheet takes for a formula."""
    # Up to Python 3.12 a carriage return is not quoted where lines end in another way.
    texts = (entry for column in columns.values() for entry in column if isinstance(entry, str))
    returns = any("\r" in entry for entry in texts)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(
            file,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )
        writer.writerow(columns)
        writer.writerows(
            [_cell(entry) if for_people else entry for entry in row]
            for row in zip(*columns.values(), strict=True)
        )


def _cell(entry: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; truth is TRUE in R too."""
    if isinstance(entry, bool):
        return str(entry).upper()
    is_formula = isinstance(entry, str) and entry.startswith(_FORMULAS)
    return f"'{entry}" if is_formula and not _PLAIN_NUMBER.fullmatch(entry) else entry


def _write_json_lines(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in zip(*columns.values(), strict=True):
            file.write(json_text(plain_tree(dict(zip(columns, row, strict=True)))) + "\n")


def _write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    frame = {name: _of_one_kind(column) for name, column in columns.items()}
    _polars().DataFrame(frame).write_parquet(path)


def _of_one_kind(column: Sequence[Any]) -> list[Any]:
    """Return a column, as texts if its entries are of several kinds; None is no entry."""
    if len({type(entry) for entry in column if entry is not None}) <= 1:
        return list(column)
    return [None if entry is None else str(entry) for entry in column]


def _polars() -> ModuleType:
    try:
        import polars
    except ModuleNotFoundError:
        raise InvalidInput("Parquet needs an extra: pip install 'expost[frames]'") from None
    return polars


_READERS: dict[str, Callable[[Path, Sequence[str], Sequence[str]], Any]] = {
    ".csv": read_csv,
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
}
_WRITERS: dict[str, Callable[[Mapping[str, Sequence[Any]], Path], None]] = {
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}


def is_frame(table: Any) -> bool:
    """Return whether something is a frame of pandas or polars."""
    # In this order: the columns of a lazy frame, which is none yet, would have to be worked out.
    return hasattr(table, "to_numpy") and hasattr(table, "columns")


def column_names(table: Any) -> list[Any]:
    """Return the names of the columns of a frame, or of a mapping of columns."""
    if is_frame(table):
        return list(table.columns)
    expect(table, Mapping, "a frame or a mapping of columns")
    return list(table)


def as_array(values: Any) -> Any:
    """Return a frame, or a column of one, as an array of numpy; anything else unchanged."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def as_lists(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Convert columns to plain numbers and strings for JSON; undoes :func:`as_array`."""
    return {
        name: column if isinstance(column, list) else column.tolist()
        for name, column in columns.items()
    }


class ResultTable:
    """A result that is a table: it goes into frames, and its repr and its HTML show numbers.

    ``polars.DataFrame(result)``, ``pyarrow.table(result)`` and whatever else knows the Arrow
    PyCapsule interface take it as it is.
    """

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """Return the columns by their names: arrays, or lists."""

    @abstractmethod
    def _view(self) -> View:
        """Return the text and figures to show."""

    def __repr__(self) -> str:
        return str(self._view())

    def _repr_html_(self) -> str:
        return self._view().html()

    def to_polars(self) -> Any:
        """Return the table as a frame of polars."""
        return _import_package("polars", "a frame of polars", "expost[frames]").DataFrame(
            self._plain()
        )

    def to_pandas(self) -> Any:
        """Return the table as a frame of pandas."""
        return _import_package("pandas", "a frame of pandas", "pandas").DataFrame(self._plain())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table for readers of Arrow, by polars or pyarrow."""
        try:
            table = import_module("pyarrow").table(self._plain())
        except ModuleNotFoundError:
            table = _import_package("polars", "a table of Arrow", "expost[frames]").DataFrame(
                self._plain()
            )
        return table.__arrow_c_stream__(requested_schema)

    def _plain(self) -> dict[str, Any]:
        return {name: _unify_types(column) for name, column in self.columns().items()}


def _unify_types(column: Any) -> Any:
    """Give the entries of a column one type: numbers next to labels become strings."""
    if not isinstance(column, list):
        return column
    if any(isinstance(entry, tuple) for entry in column):
        return [list(map(float, entry)) for entry in column]
    types = set(map(type, column))
    if len(types) == 1:
        return column
    return list(map(float if types <= {int, float} else str, column))


def _import_package(name: str, purpose: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise InvalidInput(f"{purpose} needs {name}: pip install {extra!r}") from None

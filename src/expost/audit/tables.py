"""Tables in files: the answers of many subjects, and their losses. The suffix gives the format.

CSV and JSON Lines need no other package; Parquet needs polars, which the extra ``frames`` installs.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.answers import COLUMNS, Answers, queries_from_json
from expost.audit.losses import Losses
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text
from expost.files.reading import NumberText, double, members, parse
from expost.files.regular import LARGEST_TABLE, opened, read_text

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load_answers", "read_csv", "save_losses", "table_format"]

# About as many of the shortest possible CSV rows fit into the largest table.
_MOST_ROWS = 100_000_000

# A spreadsheet takes a text that starts with one of these for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

Path_ = str | os.PathLike[str]
Columns = dict[str, list[Any]]


def load_answers(data: Path_, queries: Path_, *, complete: bool = True) -> Answers:
    """Read the answers of many subjects from a table of responses and a file of queries.

    ``data`` is CSV, JSON Lines or Parquet with the columns ``subject``, ``query`` and
    ``response``; other columns are ignored. ``queries`` is JSON: ``{"version": 1, "domain": …,
    "queries": {"id": {…}, …}}``. An error names the row, counted from 1 below the header.
    ``complete`` says whether these are all the answers of their subjects, as for
    :class:`Answers`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> queries = '''{"version": 1, "domain": {"values": ["no", "yes"]},
    ...     "queries": {"smokes": {"kind": "randomized_response", "epsilon": "1"}}}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, file = Path(folder) / "data.csv", Path(folder) / "queries.json"
    ...     _ = data.write_text("subject,query,response\\na,smokes,yes\\nb,smokes,no\\n")
    ...     _ = file.write_text(queries)
    ...     xp.load_answers(data, file)
    Answers(2 subjects, 2 responses)
    """
    for path in (data, queries):
        expect(path, (str, os.PathLike), "the name of a file")
    with at(os.fspath(queries), ": "):
        domain, by_id = queries_from_json(read_text(queries))
    with at(os.fspath(data), ": "):
        read = _READERS[table_format(data)]
        return Answers(domain, by_id, read(Path(data)), complete=complete)


def save_losses(losses: Losses, path: Path_) -> None:
    """Write a table of losses with a row per subject: subject, lower, upper, exchanges, basic.

    In CSV, a text that a spreadsheet would take for a formula, such as ``=1+1``, gets an
    apostrophe in front.
    """
    with at(os.fspath(path), ": "):
        _WRITERS[table_format(path)](losses, Path(path))


def table_format(path: Path_) -> str:
    """The format of a table, by the suffix of its file name.

    >>> table_format("losses.CSV")
    '.csv'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise InvalidInput(f"the name of a table ends in {', '.join(_READERS)}")
    return suffix


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with (
            opened(path, LARGEST_TABLE) as file,
            TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
        ):
            yield text
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None


def read_csv(path: Path, names: Sequence[str]) -> Columns:
    """The columns of a CSV file by name. Only those named in ``names`` are filled, with texts."""
    with _opened(path) as file:
        rows = csv.reader(file, strict=True)
        try:
            header = next(rows, [])
            columns: list[list[str]] = [[] for _ in header]
            wanted = [place for place, name in enumerate(header) if name in names]
            done = 0
            for row in rows:
                if not row:
                    continue  # an empty line
                done += 1
                if len(row) != len(header):
                    raise InvalidInput(
                        f"has {len(row)} cells, the header {len(header)}", f"row {done}"
                    )
                for place in wanted:
                    columns[place].append(row[place])
        except csv.Error as error:
            raise InvalidInput(f"not CSV: {error}", f"line {rows.line_num}") from None
    if not header:
        raise InvalidInput("is empty")
    for name in names:
        if header.count(name) > 1:
            raise InvalidInput(f"column {name!r} is there twice")
    return dict(zip(header, columns, strict=True))


def _read_json_lines(path: Path) -> Columns:
    columns: Columns = {name: [] for name in COLUMNS}
    with _opened(path) as file:
        done = 0
        for line in file:
            if line.isspace():
                continue
            done += 1
            with at(f"row {done}", ": "):
                fields = members(parse(line), required=COLUMNS, optional=None)
                for name in COLUMNS:
                    with at(name):
                        columns[name].append(_plain(fields[name]))
    return columns


def _plain(value: Any) -> Any:
    """A JSON value in Python. Long integers stay integers, because they may number subjects."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, NumberText):
        return value
    digits = value.removeprefix("-")
    return int(value) if digits.isdecimal() and len(digits) < 100 else double(value)


def _read_parquet(path: Path) -> Any:
    polars = _polars()
    try:
        with opened(path, LARGEST_TABLE) as file:
            # Equal rows take hardly any room in such a file, so its size says little about theirs.
            rows = polars.scan_parquet(file).select(polars.len()).collect().item()
            if rows > _MOST_ROWS:
                raise InvalidInput(f"has {rows:,} rows, and at most {_MOST_ROWS:,} are read")
            file.seek(0)
            return polars.read_parquet(file)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    except polars.exceptions.PolarsError:
        raise InvalidInput("is not a Parquet file") from None


def _write_csv(losses: Losses, path: Path) -> None:
    # Up to Python 3.12 a carriage return is not quoted if lines end in another way.
    returns = any("\r" in subject for subject in losses.subjects if isinstance(subject, str))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file,
            list(losses.columns()),
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )
        writer.writeheader()
        for row in losses.rows():
            writer.writerow({name: _cell(entry) for name, entry in row.items()})


def _cell(entry: Any) -> Any:
    """A cell as a spreadsheet should read it: a text never becomes a formula."""
    return f"'{entry}" if isinstance(entry, str) and entry.startswith(_FORMULAS) else entry


def _write_json_lines(losses: Losses, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in losses.rows():
            # JSON has no infinity, so it is written as a text, as in all results.
            plain = {name: "inf" if entry == math.inf else entry for name, entry in row.items()}
            file.write(json_text(plain) + "\n")


def _write_parquet(losses: Losses, path: Path) -> None:
    columns = losses.columns()
    if len({type(subject) for subject in losses.subjects}) > 1:
        columns["subject"] = [str(subject) for subject in losses.subjects]
    _polars().DataFrame(columns).write_parquet(path)


def _polars() -> ModuleType:
    try:
        import polars
    except ModuleNotFoundError:
        raise InvalidInput("Parquet needs an extra: pip install 'expost[frames]'") from None
    return polars


_READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": partial(read_csv, names=COLUMNS),
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
}
_WRITERS: dict[str, Callable[[Losses, Path], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}

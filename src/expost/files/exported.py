"""Tables as other programs export them: CSV with any separator, and spreadsheets, as strings."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from expost.errors import InvalidInput, did_you_mean
from expost.files.regular import LARGEST_TABLE, open_for_reading

__all__ = ["ExportedTable", "column_index", "read_exported"]

SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_TEXTS = (".csv", ".tsv", ".txt")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class ExportedTable(NamedTuple):
    """The cells of a table, without spaces around them, and how the file was read."""

    header: list[str]
    #: As long as the header; a row without any text is left empty.
    rows: list[list[str]]
    #: Sentences about what was assumed.
    remarks: list[str]
    #: Whether 1,5 can be a number: commas are no separators.
    decimal_commas: bool


def read_exported(path: Path, names: Sequence[str], sheet: str | None = None) -> ExportedTable:
    """Read a table that has columns with these names.

    Args:
        path: A CSV file, whose separator is the one with which these columns are there, or a
            spreadsheet.
        names: The columns that are needed, by which the separator is recognized.
        sheet: The sheet of a spreadsheet; the first one by default.

    Raises:
        InvalidInput: It is no such table, or a column is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_TEXTS, *SPREADSHEETS):
        expected = ", ".join((*_TEXTS, *SPREADSHEETS))
        raise InvalidInput(f"got a name that ends in {suffix!r}; expected one of {expected}")
    if suffix in SPREADSHEETS:
        rows, remarks = _read_spreadsheet(path, sheet)
        separator = ""
    elif sheet is not None:
        raise InvalidInput("only a spreadsheet has sheets", "sheet")
    else:
        rows, separator, remarks = _read_text(path, names)
    header, *body = rows or [[]]
    if not any(header):
        raise InvalidInput("is empty")
    for name in names:
        column_index(header, name)
    for number, row in enumerate(body, start=1):
        extra = [cell for cell in row[len(header) :] if cell]
        if extra:
            reason = f"has {len(row)} cells, the header {len(header)}; the first extra one is"
            raise InvalidInput(f"{reason} {extra[0]!r}", f"row {number} below the header")
        row += [""] * (len(header) - len(row))
        del row[len(header) :]
        if not any(row):
            row.clear()
    while body and not body[-1]:
        body.pop()
    return ExportedTable(header, body, remarks, decimal_commas=separator != ",")


def column_index(header: Sequence[str], name: str) -> int:
    """Return the index of a column by its name, in any case and without spaces around it."""
    for candidates in (
        [index for index, title in enumerate(header) if title == name],
        [index for index, title in enumerate(header) if _fold_case(title) == _fold_case(name)],
    ):
        if len(candidates) > 1:
            raise InvalidInput(f"column {name!r} appears {len(candidates)} times")
        if candidates:
            return candidates[0]
    present = ", ".join(repr(title) for title in header if title)
    raise InvalidInput(f"no column {name!r}; there are {present}{did_you_mean(name, header)}")


def _fold_case(name: str) -> str:
    return " ".join(name.split()).casefold()


def _read_text(path: Path, names: Sequence[str]) -> tuple[list[list[str]], str, list[str]]:
    with open_for_reading(path, LARGEST_TABLE) as file:
        content = file.read()
    text, remarks = _decode(content)
    best: tuple[int, str] = (-1, ",")
    first_line = next(filter(str.strip, text.splitlines()), "")
    for separator in _SEPARATORS:
        header = [
            _fold_case(cell) for cell in next(csv.reader([first_line], delimiter=separator), [])
        ]
        matches = sum(_fold_case(name) in header for name in names)
        if matches > best[0]:
            best = matches, separator
    separator = best[1]
    if separator != ",":
        remarks.append(f"cells are separated by {_SEPARATORS[separator]}")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise InvalidInput(f"not CSV: {error}", f"line {reader.line_num}") from None
    while rows and not any(rows[0]):
        rows.pop(0)
    return rows, separator, remarks


def _decode(content: bytes) -> tuple[str, list[str]]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding, remarks = "utf-16", ["the text is UTF-16"]
    else:
        encoding, remarks = "utf-8-sig", []
    try:
        return content.decode(encoding), remarks
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252"), ["the text is not UTF-8; read as Windows-1252"]
    except UnicodeDecodeError:
        raise InvalidInput("is not text; save it as CSV in UTF-8") from None


def _read_spreadsheet(path: Path, sheet: str | None) -> tuple[list[list[str]], list[str]]:
    try:
        import python_calamine as calamine
    except ModuleNotFoundError:
        reason = "a spreadsheet needs an extra: pip install 'expost[excel]'; or save it as CSV"
        raise InvalidInput(reason) from None
    try:
        with open_for_reading(path, LARGEST_TABLE) as file:
            book = calamine.CalamineWorkbook.from_filelike(file)
            names = book.sheet_names
            if sheet is not None and sheet not in names:
                there_are = ", ".join(map(repr, names))
                hint = did_you_mean(sheet, names)
                raise InvalidInput(f"no sheet {sheet!r}; there are {there_are}{hint}", "sheet")
            chosen = names[0] if sheet is None else sheet
            cells = book.get_sheet_by_name(chosen).to_python(skip_empty_area=True)
    except (calamine.CalamineError, IndexError):
        raise InvalidInput("is not a spreadsheet") from None
    remarks = []
    if len(names) > 1 and sheet is None:
        remarks.append(f"only the first of {len(names)} sheets was read, {chosen!r}")
    return [[_cell_text(cell) for cell in row] for row in cells], remarks


def _cell_text(cell: Any) -> str:
    """Return the text that a spreadsheet shows: 3.0 is 3, and a date is 2026-03-04."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime):
        return (cell.date() if cell.time() == time() else cell).isoformat()
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    return str(cell).strip()

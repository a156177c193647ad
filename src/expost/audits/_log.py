"""A log in files: a row per response, in tables of one format."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.answers import DECLINED, OUTCOME, REFUSED
from expost.audits._errors import BadFile, BadFiles, UnusableRows, describe_unread
from expost.errors import InvalidInput, at
from expost.files.tables import table_format

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = [
    "COLUMNS",
    "LogFiles",
    "check_names",
    "json_problems",
    "missing_column",
    "normalize_log",
    "read",
    "require_polars",
    "select_exchanges",
]


COLUMNS = ("subject", "order", "query", "response")
_SUFFIXES = (".csv", ".jsonl", ".parquet")

# The first bytes of gzip, zstd and zlib.
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")

# Approximate bytes per row, to guess the number of rows.
_ROW_BYTES = {".csv": 20, ".jsonl": 60}


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Files with a row per response, all of one format."""

    files: tuple[Path, ...]
    suffix: str

    @classmethod
    def at(cls, path: Path) -> LogFiles:
        """List one file, or all files of a folder that are tables."""
        with at(os.fspath(path), ": "):
            if not path.is_dir():
                return cls((path,), table_format(path))
            files, others = _entries(path)
            if others:
                raise BadFiles([describe_unread(entry, "tables of a log") for entry in others])
            if not files:
                raise InvalidInput("has no tables, whose names end in .csv, .jsonl or .parquet")
            suffixes = sorted({file.suffix.lower() for file in files})
            if len(suffixes) > 1:
                raise InvalidInput(f"has tables of several formats: {', '.join(suffixes)}")
        return cls(tuple(files), suffixes[0])

    def frame(self) -> LazyFrame:
        """Scan all rows, with the columns of a log."""
        import polars

        return polars.concat([self.part(file) for file in self.files])

    def part(self, file: Path) -> LazyFrame:
        """Scan the exchanges in one file."""
        return select_exchanges(self.rows(file))

    def rows(self, file: Path) -> LazyFrame:
        """Scan all rows of one file."""
        try:
            return normalize_log(_scan_file(file, self.suffix))
        except InvalidInput as error:
            raise BadFiles([BadFile(os.fspath(file), str(error))]) from None

    def check(self) -> None:
        """Refuse rows that could be read in more than one way.

        Raises:
            UnusableRows: There are such rows.
        """
        if self.suffix == ".jsonl" and any(any(json_problems(file)) for file in self.files):
            raise UnusableRows

    @property
    def size(self) -> int:
        """About how many rows there are."""
        import polars

        if self.suffix == ".parquet":
            counts = [polars.scan_parquet(file).select(polars.len()) for file in self.files]
            return sum(read(count).item() for count in counts)
        return sum(file.stat().st_size for file in self.files) // _ROW_BYTES[self.suffix]

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the names and contents of all files."""
        digest_of_all = hashlib.sha256()
        for file in self.files:
            with file.open("rb") as opened:
                digest_of_all.update(
                    f"{file.name}\0{hashlib.file_digest(opened, 'sha256').hexdigest()}\0".encode()
                )
        return digest_of_all.hexdigest()


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """List the tables of a folder and its sub-folders, and everything else that is not hidden."""
    files, others = [], []
    for entry in sorted(folder.rglob("*")):
        parts = entry.relative_to(folder).parts
        is_folder = entry.is_dir()
        is_table = entry.suffix.lower() in _SUFFIXES and not is_folder
        marker = any(part.startswith("_") for part in parts)  # such as _SUCCESS, of Spark
        if any(part.startswith(".") for part in parts) or (marker and not is_table):
            continue
        if is_table and not marker:
            files.append(entry)
        elif not is_folder or entry.is_symlink():  # the search does not follow links to folders
            others.append(entry)
    return files, others


def _scan_file(file: Path, suffix: str) -> LazyFrame:
    """Scan a file without inferring the types of its columns."""
    import polars

    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise InvalidInput("cannot be read: not a regular file")
        if suffix == ".parquet":
            return polars.scan_parquet(file)
        if suffix == ".csv":
            _check_header(file)
            return polars.scan_csv(file, infer_schema=False)
        return polars.scan_ndjson(file, schema=dict.fromkeys((*COLUMNS, OUTCOME), polars.String()))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None


def _check_header(file: Path) -> None:
    """Refuse a second column of the same name, which polars would rename."""
    with file.open("rb") as content:
        if content.read(4).startswith(_COMPRESSED):  # polars reads the names in it, and we do not
            raise InvalidInput("is compressed; expected plain text. Decompress it first")
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        try:
            check_names(next(filter(None, csv.reader(lines)), []))
        except csv.Error:
            raise InvalidInput("cannot be read: not a table of its format") from None


def check_names(names: list[Any]) -> None:
    """Refuse a column of a log that appears twice."""
    for name in COLUMNS:
        if names.count(name) > 1:
            raise InvalidInput(f"column {name!r} appears twice")


def select_exchanges(rows: LazyFrame) -> LazyFrame:
    """Leave out the rows of queries that a filter refused or a subject declined."""
    import polars

    if OUTCOME not in rows.collect_schema():
        return rows
    # A missing response is an exchange that cannot be audited.
    no_exchange = polars.col(OUTCOME).is_in([REFUSED, DECLINED]).fill_null(value=False)
    return rows.filter(~no_exchange).drop(OUTCOME)


def missing_column(name: str, present: Sequence[str]) -> str:
    """Say that a log has no column of this name."""
    advice = "; number the exchanges of each subject from 1" if name == "order" else ""
    return f"column {name!r} is missing; there are {', '.join(present[:10])}{advice}"


def normalize_log(table: LazyFrame) -> LazyFrame:
    """Select the columns of a log and cast them; entries that cannot be cast become null.

    Subjects become strings or integers, the order integers, queries and responses strings, and
    outcomes too if there are any.
    """
    import polars

    try:
        kinds = table.collect_schema()
    except polars.exceptions.NoDataError:
        raise InvalidInput("is empty") from None
    except polars.exceptions.PolarsError:
        raise InvalidInput("cannot be read: not a table of its format") from None
    for name in COLUMNS:
        if name not in kinds:
            raise InvalidInput(missing_column(name, kinds.names()))
    subject, order, query, response = (polars.col(name) for name in COLUMNS)
    for name in COLUMNS:
        if kinds[name] == polars.Boolean:
            raise InvalidInput("must be a label or a number, not true or false", name)
    if not (kinds["order"].is_numeric() or kinds["order"] in (polars.String, polars.Null)):
        raise InvalidInput(f"must be the number of the exchange, not {kinds['order']}", "order")
    return table.select(
        _name(subject, kinds["subject"]),
        _whole_number(order, kinds["order"]),
        _text(query),
        _encode_list(response)
        if isinstance(kinds["response"], (polars.List, polars.Array))
        else _text(response),
        *([_text(polars.col(OUTCOME))] if OUTCOME in kinds else []),
    )


def _name(column: Expr, kind: Any) -> Expr:
    """Read names of subjects; null where an entry is neither a text nor a whole number."""
    import polars

    if kind.is_integer() or kind.is_float():
        return _whole_number(column, kind)
    if kind not in (polars.String, polars.Categorical, polars.Enum, polars.Null):
        raise InvalidInput(f"must be strings or integers, not {kind}", "subject")
    return _text(column)


def _text(column: Expr) -> Expr:
    import polars

    return column.cast(polars.String, strict=False)


def _whole_number(column: Expr, kind: Any) -> Expr:
    import polars

    integers = column.cast(polars.Int64, strict=False)
    if kind.is_integer() or kind == polars.String:
        return integers
    return polars.when(column == integers).then(integers)  # 1.0 counts as 1, and 1.5 as nothing


def _encode_list(column: Expr) -> Expr:
    """Write a list as the text of a JSON list."""
    import polars

    encoded = polars.struct(r=column).struct.json_encode()
    return polars.when(column.is_not_null()).then(encoded.str.slice(5).str.strip_suffix("}"))


def require_polars() -> Any:
    """Import polars, or say how to install it."""
    try:
        import polars
    except ModuleNotFoundError:
        raise InvalidInput("an audit needs polars: pip install 'expost[frames]'") from None
    return polars


def read(frame: LazyFrame) -> DataFrame:
    """Collect a frame; report an error of polars in one line."""
    import polars

    try:
        return frame.collect()
    except polars.exceptions.PolarsError:
        raise InvalidInput("cannot be read: not a table of its format") from None


_SUBJECT = "subject: must be a non-empty string or an integer"
_NO_TABLE = "cannot be read: not a table of its format"

# A row without any of this, and with each column once, can be read in one way only: escapes, words
# such as true and NaN, and subjects that are fractions, lists, objects or empty.
_UNUSUAL = r'\\|[\[{:,]\s*-?[a-zA-Z]|"subject"\s*:\s*(?:-?\d+[.eE]|[\[{]|"")'

# Objects become tuples of their members, so that equal keys stay apart.
_decode = json.JSONDecoder(object_pairs_hook=tuple).decode


def json_problems(file: Path) -> Iterator[tuple[int, str]]:
    """Describe each row that is ambiguous or of the wrong type, with its number from 1.

    Raises:
        BadFiles: A line is not JSON.
    """
    import polars

    line, row_index = polars.col("line"), 0
    rows = polars.scan_lines(file, name="line").filter(line.str.strip_chars() != "")
    plain = ~line.str.contains(_UNUSUAL)
    for name in COLUMNS:
        plain &= line.str.count_matches(rf'"{name}"\s*:') == 1
    unusual = rows.with_row_index("row", offset=1).filter(~plain)
    try:
        for batch in unusual.collect_batches():
            for row_index, row in batch.iter_rows():
                reason = _problem(row)
                if reason:
                    yield row_index, reason
    except (ValueError, RecursionError):
        reason = f"{_NO_TABLE}; row {row_index} is not JSON"
        raise BadFiles([BadFile(str(file), reason)]) from None
    except polars.exceptions.PolarsError:
        raise BadFiles([BadFile(str(file), _NO_TABLE)]) from None


def _problem(row: str) -> str:
    members = _decode(row)
    if not isinstance(members, tuple):
        return "must be an object"
    fields = dict(members)
    if len(fields) < len(members):
        counts = Counter(key for key, _ in members)
        for name in COLUMNS:
            if counts[name] > 1:
                return f"{name}: appears twice in one row"
    if not _is_name(fields.get("subject")):
        return _SUBJECT
    for name in ("query", "response"):
        value = fields.get(name)
        if bool in map(type, value if isinstance(value, list) else [value]):
            return f"{name}: must be a label or a number, not true or false"
    return ""


def _is_name(value: Any) -> bool:
    if type(value) is int:
        return True
    if type(value) is not str:
        return False
    # Half of a surrogate pair is no text: polars reads all of them as one character.
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)

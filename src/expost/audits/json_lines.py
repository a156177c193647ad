"""Strict checks of a log in JSON Lines, before polars reads it.

Polars takes the first of two equal keys and turns numbers and booleans into strings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from expost.audits.bad_files import BadFile, BadFiles
from expost.audits.rows import COLUMNS

__all__ = ["json_problems"]

_SUBJECT = "subject: must be a text or an integer, and not empty"
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

    line, number = polars.col("line"), 0
    rows = polars.scan_lines(file, name="line").filter(line.str.strip_chars() != "")
    plain = ~line.str.contains(_UNUSUAL)
    for name in COLUMNS:
        plain &= line.str.count_matches(rf'"{name}"\s*:') == 1
    unusual = rows.with_row_index("row", offset=1).filter(~plain)
    try:
        for batch in unusual.collect_batches():
            for number, row in batch.iter_rows():
                reason = _problem(row)
                if reason:
                    yield number, reason
    except (ValueError, RecursionError):
        reason = f"{_NO_TABLE}; row {number} is not JSON"
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
        if isinstance(value, bool) or (isinstance(value, list) and any(map(_is_bool, value))):
            return f"{name}: is true or false, not a label or a number"
    return ""


def _is_name(value: Any) -> bool:
    if type(value) is int:
        return True
    if type(value) is not str:
        return False
    # Half of a surrogate pair is no text: polars reads all of them as one character.
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)

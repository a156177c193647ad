"""The kinds of files, recognized by their content.

An error about a wrong file then says which kind it is, and not what it lacks.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from expost._types import PathLike
from expost.errors import InvalidInput
from expost.files.regular import LARGEST, open_regular, read_text
from expost.files.tables import parquet_columns

__all__ = [
    "ANSWERS",
    "AUDIT_SUMMARY",
    "AUDIT_TABLE",
    "CHECKPOINT",
    "ESTIMATES",
    "FILTER_FILE",
    "LOSSES",
    "PAGE",
    "PICTURE",
    "PROOF",
    "QUERIES",
    "QUERY",
    "RECEIPTS",
    "RESULTS",
    "RUNS",
    "STUDY",
    "SYNC_ANSWERS",
    "TRANSCRIPT",
    "check_kind",
    "check_replaceable",
    "explain_wrong_kind",
    "read_replaceable",
]

TRANSCRIPT = "a transcript"
QUERIES = "a file of queries"
PROOF = "a proof"
FILTER_FILE = "a filter file"
QUERY = "a query"
STUDY = "a study"
PAGE = "a page of expost"
PICTURE = "a picture"
ANSWERS = "a table of answers"
LOSSES = "a table of losses"
ESTIMATES = "a table of estimates"
SYNC_ANSWERS = "a file of sync answers"
RECEIPTS = "a file of receipts"
CHECKPOINT = "a checkpoint"
AUDIT_SUMMARY = "an audit summary"
AUDIT_TABLE = "an audit table"
RESULTS = "a file of experiment results"
RUNS = "a table of experiment runs"

_EMPTY = "empty"
#: The kinds of filters; a file with one of them alone is a filter file.
_FILTERS = ("basic", "simplified", "bayesian", "composition", "approximate", "all")
#: Fields that identify each kind, in the order in which the kinds are tried.
_FIELDS = {
    TRANSCRIPT: {"domain", "exchanges"},
    QUERIES: {"domain", "queries"},
    PROOF: {"version", "responses", "loss"},
    SYNC_ANSWERS: {"ledger", "subject", "nonce", "confirmed", "receipts", "reservation"},
    RECEIPTS: {"outcome"},
    CHECKPOINT: {"commit", "root", "events"},
    AUDIT_SUMMARY: {"subjects", "exchanges", "histogram", "worst"},
    RESULTS: {"seed", "runs", "gap", "versions"},
    FILTER_FILE: {"version", "filter"},
    STUDY: {"domain", "goals"},
    QUERY: {"kind"},
}

_COLUMNS = {
    ANSWERS: {"subject", "order", "query", "response"},
    LOSSES: {"subject", "lower", "upper", "exchanges", "basic"},
    ESTIMATES: {"group", "of", "estimate", "lower", "upper", "identified"},
    RUNS: {"experiment", "run", "account"},
    AUDIT_TABLE: {"subject", "respected", "loss now", "answers"},
}
#: The kinds that are written as JSON Lines or as tables, by the names on the first line.
_LINES = {kind: _FIELDS[kind] for kind in (SYNC_ANSWERS, RECEIPTS, CHECKPOINT)} | _COLUMNS

_PAGE_START, _PAGE_MARK = b"<!DOCTYPE html>", b"content=\"default-src 'none'; style-src 'sha256-"
#: Bytes within which a page or an SVG picture shows what it is.
_HEAD = 1024


def _kind(document: str) -> str:
    """Guess the kind of a text; empty if it looks like no known kind."""
    if not document.strip():
        return _EMPTY
    try:
        tree = json.loads(document)
    except (ValueError, RecursionError):
        return _by_lines(document)
    names = set(tree) if isinstance(tree, dict) else set()
    if isinstance(tree, dict) and tree.get("kind") in _FILTERS:
        return FILTER_FILE
    kind = _with_names(names, {**_FIELDS, **_COLUMNS})
    # With other fields it is perhaps a transcript with a typo, about which the reader reports more.
    return "" if kind == FILTER_FILE and names != _FIELDS[FILTER_FILE] else kind


def _with_names(names: set[str], kinds: dict[str, set[str]]) -> str:
    """Return the first kind whose names are all there; nothing if there is none."""
    return next((kind for kind, needed in kinds.items() if needed <= names), "")


def _by_lines(document: str) -> str:
    first = document.strip().split("\n", 1)[0]
    if first.startswith("{"):
        try:
            # A line of a checkpoint has a digest after its JSON.
            return _with_names(set(json.JSONDecoder().raw_decode(first)[0]), _LINES)
        except (ValueError, RecursionError):
            return ""  # JSON with a typo, about which the reader reports more
    kind = _with_names(_header(first), _COLUMNS)
    if kind or first.startswith(("[", '"')):
        return kind
    return "a table" if any(mark in first for mark in ",;\t") else ""


def _header(line: str) -> set[str]:
    try:
        return set(next(csv.reader([line])))
    except csv.Error:  # a cell that is longer than any name
        return set()


def _kind_of_file(path: PathLike) -> str:
    """Guess the kind of a file from its content alone; empty if unknown."""
    with open(open_regular(path), "rb") as file:
        content = file.read(LARGEST)
    head = content[:_HEAD]
    if head.startswith((b"\x89PNG\r\n", b"%PDF-")):
        return PICTURE
    if head.startswith((b"<?xml", b"<svg")) and b"<svg" in head:
        return PICTURE
    if head.startswith(_PAGE_START) and _PAGE_MARK in head:
        return PAGE
    if head.startswith(b"PAR1"):
        return _with_names(parquet_columns(path), _COLUMNS) or "a table"
    return _kind(content.decode("utf-8-sig", errors="replace"))


def check_kind(document: str, expected: str) -> None:
    """Refuse a text that looks like another kind of file than what is needed.

    >>> check_kind('{"kind": "randomized_response", "epsilon": "1"}', TRANSCRIPT)
    Traceback (most recent call last):
      ...
    expost.errors.InvalidInput: is a query; expected a transcript
    """
    kind = _kind(document)
    if kind not in ("", expected):
        raise InvalidInput(f"is {kind}; expected {expected}")


@contextmanager
def explain_wrong_kind(expected: str, document: str) -> Iterator[None]:
    """Say which kind of file a text is if reading fails because of its kind."""
    try:
        yield
    except InvalidInput:
        check_kind(document, expected)
        raise


def check_replaceable(
    path: PathLike, kind: str, *, remedy: str = "choose another name, or remove the file first"
) -> None:
    """Refuse to replace a file that has content of any other kind.

    A pipe or a device has no content that could be lost; the writer decides about those.
    """
    if not os.path.isfile(path):
        return
    try:
        existing = _kind_of_file(path)
    except InvalidInput:  # unreadable, or a table that needs an extra
        existing = ""
    if existing not in (_EMPTY, kind):
        other = f"is {existing}, not {kind}" if existing else f"is not {kind}"
        raise InvalidInput(f"already exists and {other}; {remedy}")


def read_replaceable(path: PathLike, kind: str) -> str:
    """Read a file that is to be replaced by one of its kind; refuse any other kind.

    The text is empty if nothing would be lost. The writer refuses files that are not regular.
    """
    check_replaceable(path, kind, remedy="overwrite=True replaces it")
    document = read_text(path) if os.path.isfile(path) else ""
    return document if document.strip() else ""

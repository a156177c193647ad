"""What a file is, as far as it looks like something that is known here.

So whoever gives the wrong one of their files learns which one it is, and not what it lacks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from expost.errors import InvalidInput
from expost.files.regular import read_text

__all__ = [
    "POLICY",
    "PROOF",
    "QUERIES",
    "QUERY",
    "STUDY",
    "TRANSCRIPT",
    "check_kind",
    "needed",
    "replaced",
]

TRANSCRIPT = "a transcript"
QUERIES = "a file of queries"
PROOF = "a proof"
POLICY = "a policy"
QUERY = "a query"
STUDY = "a study"

_EMPTY = "empty"
_FIELDS = {
    TRANSCRIPT: {"domain", "exchanges"},
    QUERIES: {"domain", "queries"},
    PROOF: {"responses", "loss"},
    POLICY: {"version", "filter"},
    STUDY: {"domain", "goals"},
    QUERY: {"kind"},
}
"""What tells them apart, in the order in which they are looked for."""


def _kind(document: str) -> str:
    """What a text looks like; nothing if like none of these."""
    if not document.strip():
        return _EMPTY
    try:
        tree = json.loads(document)
    except (ValueError, RecursionError):
        return _by_lines(document)
    names = tree.keys() if isinstance(tree, dict) else set()
    return next((kind for kind, fields in _FIELDS.items() if fields <= names), "")


def _by_lines(document: str) -> str:
    first = document.strip().split("\n", 1)[0]
    if first.startswith(("{", "[", '"')):
        return ""  # JSON with a slip in it, of which there is more to say
    return "a table" if any(mark in first for mark in ",;\t") else ""


def check_kind(document: str, what: str) -> None:
    """Refuse a text that looks like another kind of file than what is needed.

    >>> check_kind('{"kind": "randomized_response", "epsilon": "1"}', TRANSCRIPT)
    Traceback (most recent call last):
      ...
    expost.errors.InvalidInput: is a query; a transcript is needed here
    """
    found = _kind(document)
    if found not in ("", what):
        raise InvalidInput(f"is {found}; {what} is needed here")


@contextmanager
def needed(what: str, document: str) -> Iterator[None]:
    """Where a text cannot be read because it is another kind of file, say which."""
    try:
        yield
    except InvalidInput:
        check_kind(document, what)
        raise


def replaced(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file that is to be replaced by one of its kind; any other one is refused.

    There is none where nothing is lost. What is no regular file is left to who writes it.
    """
    if not os.path.isfile(path):
        return ""
    try:
        document = read_text(path)
        found = _kind(document)
    except InvalidInput:  # too large, or no text
        found = ""
    if found not in (_EMPTY, what):
        other = f"is {found}" if found else "is there already"
        raise InvalidInput(f"{other}, and not {what}; overwrite=True replaces it")
    return "" if found == _EMPTY else document

"""Filter files: the privacy filter that the subjects of a study were promised, as JSON."""

from __future__ import annotations

import os
from typing import Any

from expost.errors import at
from expost.files.canonical import json_text, readable_tree
from expost.files.durable import save
from expost.files.kinds import FILTER_FILE, explain_wrong_kind, read_replaceable
from expost.files.reading import members, parse
from expost.files.regular import read_text
from expost.filters import FILTERS, Filter, filter_from_json
from expost.transcript import VERSION, check_version

__all__ = [
    "filter_file_from_json",
    "filter_file_to_json",
    "filter_to_json",
    "load_filter",
    "save_filter",
]

Path_ = str | os.PathLike[str]


def filter_file_from_json(document: str) -> Filter:
    """Read a filter file strictly: a versioned document, or the bare filter of a transcript.

    >>> filter_file_from_json('{"version": 1, "filter": {"kind": "bayesian", "epsilon": "1"}}')
    BayesianFilter(epsilon=1)
    >>> filter_file_from_json('{"kind": "bayesian", "epsilon": "1"}')
    BayesianFilter(epsilon=1)
    """
    with explain_wrong_kind(FILTER_FILE, document):
        tree = parse(document)
    if isinstance(tree, dict) and "version" not in tree and tree.get("kind") in FILTERS:
        return filter_from_json(tree)
    with explain_wrong_kind(FILTER_FILE, document):
        fields = members(tree, required=("version", "filter"))
    check_version(fields["version"])
    with at("filter"):
        return filter_from_json(fields["filter"])


def filter_file_to_json(guard: Filter) -> str:
    """Return the versioned document of a filter."""
    whole = {"version": VERSION, "filter": filter_to_json(guard)}
    return json_text(whole, indent=1) + "\n"


def filter_to_json(guard: Filter) -> Any:
    """Return the filter as a tree, as in a transcript file."""
    return readable_tree({"kind": guard.kind, **guard.tree()})


def load_filter(path: Path_) -> Filter:
    """Read a filter file.

    It has ``{"version": 1, "filter": {…}}``, with the filter as in a transcript, or that filter
    alone.
    """
    with at(os.fspath(path), ": "):
        return filter_file_from_json(read_text(path))


def save_filter(guard: Filter, path: Path_, *, overwrite: bool = False) -> None:
    """Write the file that :func:`load_filter` reads, durably.

    Unless ``overwrite``, an existing file is replaced only if it is a filter file.
    """
    text = filter_file_to_json(guard)
    with at(os.fspath(path), ": "):
        if not overwrite:
            read_replaceable(path, FILTER_FILE)
        save(path, lambda: text)

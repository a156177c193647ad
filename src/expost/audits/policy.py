"""The policy of a study in a file: the filter that everybody was promised."""

from __future__ import annotations

import os
from typing import Any

from expost.errors import at
from expost.files.canonical import json_text, readable
from expost.files.durable import save
from expost.files.kinds import POLICY, needed, replaced
from expost.files.reading import members, parse
from expost.files.regular import read_text
from expost.filters import Filter, filter_from_json
from expost.transcript import VERSION, check_version

__all__ = ["filter_to_json", "load_policy", "policy_from_json", "policy_to_json", "save_policy"]

Path_ = str | os.PathLike[str]


def policy_from_json(document: str) -> Filter:
    """Read the filter of a policy, strictly.

    >>> policy_from_json('{"version": 1, "filter": {"kind": "bayesian", "epsilon": "1"}}')
    BayesianFilter(epsilon=1)
    """
    with needed(POLICY, document):
        fields = members(parse(document), required=("version", "filter"))
    check_version(fields["version"])
    with at("filter"):
        return filter_from_json(fields["filter"])


def policy_to_json(guard: Filter) -> str:
    """The text of such a file."""
    whole = {"version": VERSION, "filter": filter_to_json(guard)}
    return json_text(whole, indent=1) + "\n"


def filter_to_json(guard: Filter) -> Any:
    """The filter as a transcript file has it."""
    return readable({"kind": guard.kind, **guard.tree()})


def load_policy(path: Path_) -> Filter:
    """Read a policy file: ``{"version": 1, "filter": {…}}``, the filter as in a transcript."""
    with at(os.fspath(path), ": "):
        return policy_from_json(read_text(path))


def save_policy(guard: Filter, path: Path_, *, overwrite: bool = False) -> None:
    """Write the file that :func:`load_policy` reads, durably.

    Of files that are there already, only another policy is replaced, unless ``overwrite``.
    """
    text = policy_to_json(guard)
    with at(os.fspath(path), ": "):
        if not overwrite:
            replaced(path, POLICY)
        save(path, lambda: text)

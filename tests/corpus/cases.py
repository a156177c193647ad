"""Cases and their outcomes, and the files that keep them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Case", "Command", "Outcome", "Record", "load", "read_record", "record_tree", "save"]

_HERE = Path(__file__).parent

Command = tuple[str, ...]
"""A command line: ``expost`` or ``verify.py``, and its arguments."""


@dataclass(frozen=True, slots=True)
class Case:
    """Files in a directory, and commands that are run there one after the other."""

    name: str
    files: Mapping[str, str]
    commands: tuple[Command, ...]
    on_box: bool = False
    gap: float = 0.01
    within: Mapping[str, str] = field(default_factory=dict)
    """Files of these names with points of the box instead of it: their loss is not larger."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of a command, its output and the files that it wrote."""

    code: int
    out: str
    err: str
    wrote: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """A case and the outcome of each of its commands."""

    case: Case
    outcomes: tuple[Outcome, ...]
    at_least: float | None = None
    """On a box: the loss at some of its points, rounded down. No bound may be below."""


def save(name: str, content: Any) -> int:
    """Write a part of the corpus, equal bytes for equal content; return how many."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (_HERE / name).write_bytes(packed)
    return len(packed)


def load(name: str) -> Any:
    """Read a part of the corpus."""
    return json.loads(gzip.decompress((_HERE / name).read_bytes()))


def record_tree(record: Record) -> dict[str, Any]:
    """Write a record as a tree."""
    return asdict(record)


def read_record(tree: dict[str, Any]) -> Record:
    """Read a record from its tree."""
    case = {**tree["case"], "commands": tuple(map(tuple, tree["case"]["commands"]))}
    outcomes = tuple(Outcome(**outcome) for outcome in tree["outcomes"])
    return Record(Case(**case), outcomes, tree["at_least"])

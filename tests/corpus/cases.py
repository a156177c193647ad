"""What a case is, and how the corpus is kept in a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Case", "Command", "Found", "Kept", "kept_from", "kept_tree", "load", "save"]

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
    """Files of the same names that have points of the box in its place: a loss that is not less."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a command."""

    code: int
    out: str
    err: str
    wrote: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """A case and what came of each of its commands."""

    case: Case
    found: tuple[Found, ...]
    at_least: float | None = None
    """On a box: what the loss is at some of its points, rounded down. No bound may be below."""


def save(name: str, content: Any) -> int:
    """Write a part of the corpus, the same bytes for the same content; how many there are."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (_HERE / name).write_bytes(packed)
    return len(packed)


def load(name: str) -> Any:
    """A part of the corpus."""
    return json.loads(gzip.decompress((_HERE / name).read_bytes()))


def kept_tree(kept: Kept) -> dict[str, Any]:
    return asdict(kept)


def kept_from(tree: dict[str, Any]) -> Kept:
    case = {**tree["case"], "commands": tuple(map(tuple, tree["case"]["commands"]))}
    found = tuple(Found(**each) for each in tree["found"])
    return Kept(Case(**case), found, tree["at_least"])

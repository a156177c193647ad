"""Paths to all entries of a JSON document, where a test may write something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["paths"]


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all entries, that of the document first."""
    yield path
    entries = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for name, entry in entries:
        yield from paths(entry, (*path, name))

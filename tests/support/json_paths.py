"""Every place in a JSON document, where a forger may write something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["places"]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all entries, that of the whole first."""
    yield path
    entries = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for name, entry in entries:
        yield from places(entry, (*path, name))

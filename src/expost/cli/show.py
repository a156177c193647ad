"""Results as JSON for programs, or as aligned lines for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import typer

from expost.rounding import Enclosure

__all__ = ["show_json", "show_lines", "shown"]


def show_json(tree: Any) -> None:
    """Print a result; infinity becomes ``"inf"``, which JSON can hold."""
    typer.echo(json.dumps(_plain(tree), ensure_ascii=False, allow_nan=False, indent=2))


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_plain(value) for value in tree]
    if isinstance(tree, Enclosure):
        return {"lower": _plain(tree.lower), "upper": _plain(tree.upper)}
    return "inf" if tree == math.inf else tree


def show_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    rows = list(lines)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        typer.echo(f"{name:<{width}}  {value}")


def shown(number: Enclosure | float) -> str:
    """A number for people; of an enclosure its upper end, which is the one to act on."""
    value = number.upper if isinstance(number, Enclosure) else number
    return f"{value:.6g}"

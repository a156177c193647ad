"""Results as JSON for programs, or as aligned lines for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import typer

from expost.rounding import Enclosure
from expost.transcript import map_leaves

__all__ = ["show_json", "show_lines", "shown"]


def show_json(tree: Any) -> None:
    """Print a result; infinity becomes ``"inf"``, which JSON can hold."""
    plain = map_leaves(tree, _leaf)
    typer.echo(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2))


def _leaf(value: Any) -> Any:
    if isinstance(value, Enclosure):
        return {"lower": _leaf(value.lower), "upper": _leaf(value.upper)}
    return "inf" if value == math.inf else value


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

"""Results as JSON for programs, or as aligned lines for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import click

from expost.errors import printable
from expost.files.canonical import json_text, map_leaves
from expost.numbers import Enclosure

__all__ = ["show_json", "show_lines"]


def show_json(tree: Any) -> None:
    """Print a result; infinity becomes ``"inf"`` or ``"-inf"``, which JSON can hold."""
    click.echo(json_text(map_leaves(tree, _leaf), indent=2))


def _leaf(value: Any) -> Any:
    if isinstance(value, Enclosure):
        return {"lower": _leaf(value.lower), "upper": _leaf(value.upper)}
    return str(value) if value in (math.inf, -math.inf) else value


def show_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, and nothing that steers a terminal."""
    rows = list(lines)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(printable(f"{name:<{width}}  {value}"))

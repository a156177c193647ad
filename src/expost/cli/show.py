"""Results as JSON for programs, or as aligned lines for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from expost.errors import printable
from expost.files.canonical import json_text

__all__ = ["show_json", "show_lines", "warn"]


def warn(message: str) -> None:
    """Print a warning on standard error, and continue."""
    click.echo(printable(f"expost: warning: {message}"), err=True)


def show_json(tree: Any) -> None:
    """Print the tree of a result."""
    click.echo(json_text(tree, indent=2))


def show_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, without control characters."""
    rows = list(lines)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(printable(f"{name:<{width}}  {value}"))

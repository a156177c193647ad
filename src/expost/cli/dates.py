"""The date of a page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

__all__ = ["page_date", "today", "written"]

page_date = click.option(
    "--date", metavar="DATE", help="Of the page, any text; by default, when FILE was last written."
)


def written(file: Path) -> str:
    """When a file was last written: the same file has the same page, whenever that is made."""
    time = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC)
    return f"{time:%Y-%m-%d}, when the file was last written"


def today() -> str:
    return f"{datetime.now(tz=UTC):%Y-%m-%d}"

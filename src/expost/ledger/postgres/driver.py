"""The driver, which is an extra, and what it says."""

from __future__ import annotations

import logging
from typing import Any

from expost.errors import InvalidInput

__all__ = ["driver", "first_line"]

# A lost connection is told by errors of ours; the driver would also print a line about it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


def driver() -> Any:
    """The driver, or what to do to have it."""
    try:
        import psycopg
    except ImportError:
        message = "a ledger on PostgreSQL needs the extra: pip install 'expost[postgres]'"
        raise InvalidInput(message) from None
    return psycopg


def first_line(error: Exception) -> str:
    """What a driver says, without the lines that quote statements and values."""
    return str(error).strip().split("\n")[0]

"""Ledgers on a PostgreSQL server."""

from __future__ import annotations

from expost.ledger.postgres.backend import Postgres
from expost.ledger.postgres.urls import checkpoint_of, on_server, shown_url

__all__ = ["Postgres", "checkpoint_of", "on_server", "shown_url"]

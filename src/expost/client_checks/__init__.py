"""Is a client what it claims to be? Exact tests of its responses against a query."""

from __future__ import annotations

from expost.client_checks._check import ClientCheck, Contradiction, Shown, check_client

__all__ = ["ClientCheck", "Contradiction", "Shown", "check_client"]

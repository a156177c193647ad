"""A study over HTTP: one server on top of a ledger. Devices, analysts, auditors have tokens.

(opening page to be written)
"""

from __future__ import annotations

from expost.collector._server import check_address, serve
from expost.collector._service import Settings

__all__ = ["Settings", "check_address", "serve"]

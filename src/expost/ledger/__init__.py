"""Many subjects, durably: budgets that outlive crashes, retries, two workers and a full disk."""

from __future__ import annotations

from expost.ledger.auditing import KeptMessage, StudyAudit
from expost.ledger.backend import Backend
from expost.ledger.checkpoint import CheckpointFile, Place
from expost.ledger.devices import Receipt, Reservation
from expost.ledger.errors import Behind, Broken, Damaged, LedgerStopped
from expost.ledger.ledger import Ledger
from expost.ledger.policy import StudyPolicy
from expost.ledger.records import Tip
from expost.ledger.rounds import Round
from expost.ledger.status import Status
from expost.ledger.verifying import Verification

__all__ = [
    "Backend",
    "Behind",
    "Broken",
    "CheckpointFile",
    "Damaged",
    "KeptMessage",
    "Ledger",
    "LedgerStopped",
    "Place",
    "Receipt",
    "Reservation",
    "Round",
    "Status",
    "StudyAudit",
    "StudyPolicy",
    "Tip",
    "Verification",
]

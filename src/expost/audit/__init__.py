"""The losses of many subjects at once, and the tables that they are read from and written to."""

from __future__ import annotations

from expost.audit.budget import AgainstBudget, against_budget
from expost.audit.folder import Study, load_folder
from expost.audit.losses import Losses, realized_losses
from expost.audit.tables import load_answers, save_losses, save_queries

__all__ = [
    "AgainstBudget",
    "Losses",
    "Study",
    "against_budget",
    "load_answers",
    "load_folder",
    "realized_losses",
    "save_losses",
    "save_queries",
]

"""Many subjects at once: their losses, whether their budgets were respected, and tables of both."""

from __future__ import annotations

from expost.audits._answer_files import (
    LoadedTranscripts,
    load_answers,
    load_folder,
    save_answers,
    save_losses,
    save_queries,
)
from expost.audits._audit import Audit, FilesRead, audit, audit_spark
from expost.audits._errors import BadFile, BadFiles, BadRow, BadRows
from expost.audits._losses import AgainstBudget, Losses, against_budget, realized_losses
from expost.audits._plan import load_filter, save_filter

__all__ = [
    "AgainstBudget",
    "Audit",
    "BadFile",
    "BadFiles",
    "BadRow",
    "BadRows",
    "FilesRead",
    "LoadedTranscripts",
    "Losses",
    "against_budget",
    "audit",
    "audit_spark",
    "load_answers",
    "load_filter",
    "load_folder",
    "realized_losses",
    "save_answers",
    "save_filter",
    "save_losses",
    "save_queries",
]

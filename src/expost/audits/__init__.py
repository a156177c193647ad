"""Many subjects at once: their losses, whether their budgets were respected, and tables of both."""

from __future__ import annotations

from expost.audits.auditing import audit, audit_spark
from expost.audits.bad_files import BadFile, BadFiles
from expost.audits.bad_rows import BadRow, BadRows
from expost.audits.budget import AgainstBudget, against_budget
from expost.audits.filter_file import load_filter, save_filter
from expost.audits.folder import Gathered, load_folder
from expost.audits.losses import Losses, realized_losses
from expost.audits.result import Audit, FilesRead
from expost.audits.tables import load_answers, save_answers, save_losses, save_queries

__all__ = [
    "AgainstBudget",
    "Audit",
    "BadFile",
    "BadFiles",
    "BadRow",
    "BadRows",
    "FilesRead",
    "Gathered",
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

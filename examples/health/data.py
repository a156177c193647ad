"""Real columns from CSV files, checked: one file for all four regressions, or one for each."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import expost as xp
from examples.health.patients import Columns
from examples.health.regressions import PRINTED, Regression

__all__ = ["load"]

YES_OR_NO = {"sex", *(regression.outcome for regression in PRINTED if regression.logistic)}


def load(paths: Iterable[Path]) -> dict[str, Columns]:
    """The columns for each regression whose outcome is in a file, by outcome."""
    found: dict[str, Columns] = {}
    for path in paths:
        table = _read(path)
        regressions = [one for one in PRINTED if one.outcome in table]
        if not regressions:
            outcomes = ", ".join(one.outcome for one in PRINTED)
            raise xp.InvalidInput(f"has none of the columns {outcomes}", str(path))
        for regression in regressions:
            if regression.outcome in found:
                reason = f"{regression.outcome} is in another file already"
                raise xp.InvalidInput(reason, str(path))
            found[regression.outcome] = _columns(regression, table, path)
    return found


def _read(path: Path) -> dict[str, list[str]]:
    """The columns of a file as text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except OSError as error:
        raise xp.InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None
    except (UnicodeDecodeError, csv.Error):
        raise xp.InvalidInput("is not a CSV file in UTF-8", str(path)) from None
    header, *rows = [row for row in rows if row] or [[]]
    names = [name.strip() for name in header]
    if len(set(names)) < len(names):
        raise xp.InvalidInput("has two columns of one name", str(path))
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            reason = f"has {len(row)} fields, and the header has {len(names)}"
            raise xp.InvalidInput(reason, f"{path}: row {number}")
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


def _columns(regression: Regression, table: dict[str, list[str]], path: Path) -> Columns:
    columns: Columns = {}
    for name in [*regression.features, regression.outcome]:
        if name not in table:
            raise xp.InvalidInput(f"{regression.outcome} needs a column {name}", str(path))
        columns[name] = np.array(
            [
                _number(name, text, f"{path}: row {number}: {name}")
                for number, text in enumerate(table[name], start=1)
            ]
        )
    outcome = columns[regression.outcome]
    if len(outcome) <= len(columns):
        raise xp.InvalidInput(f"has too few rows for {regression.outcome}", str(path))
    if regression.logistic and outcome.min() == outcome.max():
        raise xp.InvalidInput(f"{regression.outcome} is the same in all rows", str(path))
    return columns


def _number(name: str, text: str, place: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if name in YES_OR_NO and number not in (0, 1):
        raise xp.InvalidInput("must be 0 or 1", place)
    if not math.isfinite(number):
        raise xp.InvalidInput("must be a number", place)
    return number

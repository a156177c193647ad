"""What ways of asking are worth, from surveys that were carried out: lists and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.earlier import KNOWN, UNKNOWN, apart

__all__ = ["LIMIT", "Measured", "compact", "listed", "ratio"]

LIMIT = 0.10
"""How far what comes out may be from what was predicted, but for two standard errors."""

_FEWEST = 5
"""Surveys: the spread of fewer says nothing."""

Pairs = Sequence[Sequence[float]]
"""Mean squared errors of surveys: as they came out, and as predicted."""


@dataclass(frozen=True)
class Measured:
    """What came of one way of asking so many questions about so many values."""

    size: int
    budget: str
    questions: int
    way: str
    pairs: Pairs

    @property
    def came(self) -> tuple[float, float]:
        """The root of the mean squared error × 100 as it came out, and its standard error."""
        squares = [came for came, _ in self.pairs]
        mean, count = float(np.mean(squares)), len(squares)
        error = float(np.std(squares, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        return 100 * math.sqrt(mean), 100 * error / (2 * math.sqrt(mean))

    @property
    def told(self) -> float:
        """The same as it was predicted; infinite if not all is determined."""
        return 100 * math.sqrt(float(np.mean([told for _, told in self.pairs])))

    @property
    def before(self) -> float | None:
        """What an earlier study had."""
        key = self.way, self.size, self.questions
        return (UNKNOWN | KNOWN).get(key, {}).get(self.budget)


def ratio(pairs: Pairs) -> tuple[float, float] | None:
    """What came out over what was predicted, survey by survey, and its standard error.

    Like this it does not matter how hard a survey is.
    """
    ratios = [came / told for came, told in pairs if math.isfinite(told)]
    if len(ratios) < _FEWEST:
        return None
    mean = math.sqrt(float(np.mean(ratios)))
    return mean, float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios)) / (2 * mean)


def within(found: tuple[float, float] | None) -> bool:
    return found is None or abs(found[0] - 1) <= LIMIT + 2 * found[1]


def listed(found: Iterable[Measured]) -> bool:
    """Print a line for each, and whether predictions are within their limit."""
    by_way: dict[str, list[Sequence[float]]] = {}
    fine = True
    for each in found:
        (rmse, error), times = each.came, ratio(each.pairs)
        line = f"k = {each.size:<5} budget {each.budget:<4} {each.questions:2} questions "
        line += f"{each.way:<34} {rmse:6.2f} ± {error:.2f} ({len(each.pairs)})"
        if times:
            line += f"   of what was predicted {times[0]:.2f} ± {times[1]:.2f}"
            line += "" if within(times) else " MISSED"
            fine &= within(times)
        if each.before is not None:
            line += f"   earlier {each.before:.1f} ({apart(rmse, error, each.before):+.1f} σ)"
        print(line, flush=True)
        by_way.setdefault(each.way, []).extend(each.pairs)
    print("came out / predicted, over all of them:")
    for way, pairs in by_way.items():
        times = ratio(pairs)
        if times:
            print(f"  {way:<36} {times[0]:.3f} ± {times[1]:.3f} ({len(pairs)} surveys)")
            fine &= within(times)
    return fine


def compact(found: Iterable[Measured]) -> None:
    """Print tables of Markdown: a row for each way of asking, a column for each budget."""
    tables: dict[tuple[int, int], dict[str, dict[str, Measured]]] = {}
    for each in found:
        table = tables.setdefault((each.size, each.questions), {})
        table.setdefault(each.way, {})[each.budget] = each
    for (size, questions), rows in sorted(tables.items()):
        budgets = sorted({budget for row in rows.values() for budget in row}, key=_value)
        print(f"\n| {size:,} values, {questions} questions | {' | '.join(budgets)} |")
        print(f"|---|{'---|' * len(budgets)}")
        for way, row in rows.items():
            cells = [_cell(row[budget]) if budget in row else "" for budget in budgets]
            print(f"| {way} | {' | '.join(cells)} |")


def _value(budget: str) -> float:
    above, _, below = budget.partition("/")
    return float(above) / float(below or 1)


def _cell(each: Measured) -> str:
    """What came out, its error, of how many surveys, and how many times the prediction."""
    (rmse, error), times = each.came, ratio(each.pairs)
    predicted = f"; {times[0]:.2f} ± {times[1]:.2f}" if times else ""
    told = predicted if math.isfinite(each.told) else "; not determined"
    return f"{rmse:.1f} ± {error:.1f} ({len(each.pairs)}){told}"

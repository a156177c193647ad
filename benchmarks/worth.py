"""What strategies are worth, from surveys that were carried out: lists and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from benchmarks.earlier import KNOWN, UNKNOWN, apart

__all__ = ["LIMIT", "Measured", "compact", "listed", "ratio"]

K = TypeVar("K", bound=Hashable)

LIMIT = 0.10
"""How far what comes out may be from what was predicted, but for some standard errors."""

_ALONE, _OF_MANY = 2, 3
"""So many, of one figure, and of one out of hundreds: there a few are beyond two by chance."""

_FEWEST, _MANY = 5, 20
"""Surveys: the spread of fewer says nothing, or too little to judge by."""

Pairs = Sequence[Sequence[float]]
"""Mean squared errors of surveys: as they came out, and as predicted."""


@dataclass(frozen=True)
class Measured:
    """What came of one strategy for so many questions about so many values."""

    size: int
    budget: str
    questions: int
    design: str
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
        key = self.design, self.size, self.questions
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


def within(pairs: Pairs, errors: int = _ALONE) -> bool:
    """Whether predictions are within their limit, as far as so many surveys can tell."""
    found = ratio(pairs)
    return found is None or len(pairs) < _MANY or abs(found[0] - 1) <= LIMIT + errors * found[1]


def listed(found: Iterable[Measured]) -> bool:
    """Print a line for each, and whether predictions are within their limit."""
    by_design: dict[str, list[Sequence[float]]] = {}
    fine = True
    for each in found:
        (rmse, error), times = each.came, ratio(each.pairs)
        line = f"k = {each.size:<5} budget {each.budget:<4} {each.questions:2} questions "
        line += f"{each.design:<34} {rmse:6.2f} ± {error:.2f} ({len(each.pairs)})"
        if times:
            line += f"   of what was predicted {times[0]:.2f} ± {times[1]:.2f}"
            line += "" if within(each.pairs, _OF_MANY) else " MISSED"
            fine &= within(each.pairs, _OF_MANY)
        if each.before is not None:
            line += f"   earlier {each.before:.1f} ({apart(rmse, error, each.before):+.1f} σ)"
        print(line, flush=True)
        by_design.setdefault(each.design, []).extend(each.pairs)
    print("came out / predicted, over all of them:")
    for design, pairs in by_design.items():
        times = ratio(pairs)
        if times:
            print(f"  {design:<36} {times[0]:.3f} ± {times[1]:.3f} ({len(pairs)} surveys)")
            fine &= within(pairs)
    return fine


def compact(found: Sequence[Measured]) -> None:
    """Print tables of Markdown: errors of six questions, of an unknown number, and ratios."""
    six = [each for each in found if each.questions == 6]
    columns = sorted({(each.size, each.budget) for each in six}, key=_place)
    by_design = _grouped(six, lambda each: each.design)
    _head("six questions", [f"{size:,}: {_decimal(budget)}" for size, budget in columns])
    for design, row in by_design.items():
        cells = {(each.size, each.budget): each for each in row}
        _row(design, [_error(cells.get(column)) for column in columns])

    others = [each for each in found if each.questions in _NUMBERS and each.design in _OPEN]
    _head("3 / 6 / 12 questions", _OPEN)
    for (size, budget), row in sorted(
        _grouped(others, lambda each: (each.size, each.budget)).items(),
        key=lambda pair: _place(pair[0]),
    ):
        cells_of = {(each.design, each.questions): each for each in row}
        shown = [
            " / ".join(_error(cells_of.get((design, number))) or "–" for number in _NUMBERS)
            for design in _OPEN
        ]
        _row(f"{size:,} values, {_decimal(budget)}", shown)

    _head("came out / predicted", ["all surveys", "cells", "lowest cell", "highest cell"])
    for design, row in _grouped(found, lambda each: each.design).items():
        together = ratio([pair for each in row for pair in each.pairs])
        if together:
            cells_ = sorted(times for each in row if (times := ratio(each.pairs)))
            count = sum(math.isfinite(told) for each in row for _, told in each.pairs)
            shown = [f"{_times(together)} ({count})", str(len(cells_))]
            _row(design, shown + [_times(cells_[place]) for place in (0, -1) if cells_])


_NUMBERS = (3, 6, 12)
_OPEN = (
    "saturating, a third of the remainder",
    "full-value report, subset selection",
    "full-value report, Hadamard response",
    "one sampled question",
)


def _grouped(found: Iterable[Measured], key: Callable[[Measured], K]) -> dict[K, list[Measured]]:
    groups: dict[K, list[Measured]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return groups


def _place(column: tuple[int, str]) -> tuple[int, Fraction]:
    return column[0], Fraction(column[1])


def _decimal(budget: str) -> str:
    return f"{float(Fraction(budget)):g}"


def _error(each: Measured | None) -> str:
    return f"{each.came[0]:.1f}" if each else ""


def _times(found: tuple[float, float]) -> str:
    return f"{found[0]:.2f} ± {found[1]:.2f}"


def _head(name: str, columns: Sequence[str]) -> None:
    print(f"\n| {name} | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")


def _row(name: str, cells: Iterable[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")

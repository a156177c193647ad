"""Lists and tables of the errors of strategies, from simulated surveys."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from benchmarks.earlier_study import KNOWN_COUNT, UNKNOWN_COUNT, difference_in_errors

__all__ = ["LIMIT", "Measured", "print_lines", "print_tables", "ratio"]

K = TypeVar("K", bound=Hashable)

LIMIT = 0.10
"""The largest relative error of a prediction, beyond some standard errors of the simulation."""

_ALONE, _OF_MANY = 2, 3
"""So many, of one figure, and of one out of hundreds: there a few are beyond two by chance."""

_FEWEST, _ENOUGH = 5, 20
"""Surveys: the spread of fewer says nothing, or too little to judge by."""

Pairs = Sequence[Sequence[float]]
"""Mean squared errors of surveys: as they came out, and as predicted."""


@dataclass(frozen=True)
class Measured:
    """The errors of one strategy for a count of questions and of values."""

    size: int
    budget: str
    questions: int
    design: str
    pairs: Pairs

    @property
    def measured(self) -> tuple[float, float]:
        """The root of the mean squared error × 100, and its standard error."""
        squares = [came for came, _ in self.pairs]
        mean, count = float(np.mean(squares)), len(squares)
        error = float(np.std(squares, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        return 100 * math.sqrt(mean), 100 * error / (2 * math.sqrt(mean))

    @property
    def predicted(self) -> float:
        """The predicted root of the mean squared error × 100; infinite if not all is determined."""
        return 100 * math.sqrt(float(np.mean([predicted for _, predicted in self.pairs])))

    @property
    def earlier(self) -> float | None:
        """The error in an earlier study."""
        key = self.design, self.size, self.questions
        return (UNKNOWN_COUNT | KNOWN_COUNT).get(key, {}).get(self.budget)


def ratio(pairs: Pairs) -> tuple[float, float] | None:
    """Divide measured by predicted errors, survey by survey; return the ratio and its error.

    So it does not matter how hard a survey is.
    """
    ratios = [measured / predicted for measured, predicted in pairs if math.isfinite(predicted)]
    if len(ratios) < _FEWEST:
        return None
    mean = math.sqrt(float(np.mean(ratios)))
    return mean, float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios)) / (2 * mean)


def within(pairs: Pairs, errors: int = _ALONE) -> bool:
    """Return whether predictions are within their limit, as far as so many surveys can show."""
    measured_ratio = ratio(pairs)
    return (
        measured_ratio is None
        or len(pairs) < _ENOUGH
        or abs(measured_ratio[0] - 1) <= LIMIT + errors * measured_ratio[1]
    )


def print_lines(measurements: Iterable[Measured]) -> bool:
    """Print a line for each cell; return whether predictions are within their limit."""
    by_design: dict[str, list[Sequence[float]]] = {}
    fine = True
    for cell in measurements:
        (rmse, error), times = cell.measured, ratio(cell.pairs)
        line = f"k = {cell.size:<5} budget {cell.budget:<4} {cell.questions:2} questions "
        line += f"{cell.design:<34} {rmse:6.2f} ± {error:.2f} ({len(cell.pairs)})"
        if times:
            line += f"   of what was predicted {times[0]:.2f} ± {times[1]:.2f}"
            line += "" if within(cell.pairs, _OF_MANY) else " MISSED"
            fine &= within(cell.pairs, _OF_MANY)
        if cell.earlier is not None:
            difference = difference_in_errors(rmse, error, cell.earlier)
            line += f"   earlier {cell.earlier:.1f} ({difference:+.1f} σ)"
        print(line, flush=True)
        by_design.setdefault(cell.design, []).extend(cell.pairs)
    print("came out / predicted, over all of them:")
    for design, pairs in by_design.items():
        times = ratio(pairs)
        if times:
            print(f"  {design:<36} {times[0]:.3f} ± {times[1]:.3f} ({len(pairs)} surveys)")
            fine &= within(pairs)
    return fine


def print_tables(measurements: Sequence[Measured]) -> None:
    """Print tables of Markdown: errors of six questions, of an unknown number, and ratios."""
    six = [measurement for measurement in measurements if measurement.questions == 6]
    columns = sorted(
        {(measurement.size, measurement.budget) for measurement in six}, key=_column_order
    )
    by_design = _grouped(six, lambda measurement: measurement.design)
    _head("six questions", [f"{size:,}: {_decimal(budget)}" for size, budget in columns])
    for design, row in by_design.items():
        cells = {(measurement.size, measurement.budget): measurement for measurement in row}
        _row(design, [_error(cells.get(column)) for column in columns])

    open_ended = [
        measurement
        for measurement in measurements
        if measurement.questions in _QUESTION_COUNTS and measurement.design in _OPEN
    ]
    _head("3 / 6 / 12 questions", _OPEN)
    for (size, budget), row in sorted(
        _grouped(open_ended, lambda measurement: (measurement.size, measurement.budget)).items(),
        key=lambda pair: _column_order(pair[0]),
    ):
        cells_of = {(measurement.design, measurement.questions): measurement for measurement in row}
        shown = [
            " / ".join(
                _error(cells_of.get((design, questions))) or "–" for questions in _QUESTION_COUNTS
            )
            for design in _OPEN
        ]
        _row(f"{size:,} values, {_decimal(budget)}", shown)

    _head("came out / predicted", ["all surveys", "cells", "lowest cell", "highest cell"])
    for design, row in _grouped(measurements, lambda measurement: measurement.design).items():
        together = ratio([pair for measurement in row for pair in measurement.pairs])
        if together:
            cells_ = sorted(times for measurement in row if (times := ratio(measurement.pairs)))
            count = sum(
                math.isfinite(predicted)
                for measurement in row
                for _, predicted in measurement.pairs
            )
            shown = [f"{_times(together)} ({count})", str(len(cells_))]
            _row(design, shown + [_times(cells_[end]) for end in (0, -1) if cells_])


_QUESTION_COUNTS = (3, 6, 12)
_OPEN = (
    "saturating, a third of the remainder",
    "full-value report, subset selection",
    "full-value report, Hadamard response",
    "one sampled question",
)


def _grouped(
    measurements: Iterable[Measured], key: Callable[[Measured], K]
) -> dict[K, list[Measured]]:
    groups: dict[K, list[Measured]] = {}
    for measurement in measurements:
        groups.setdefault(key(measurement), []).append(measurement)
    return groups


def _column_order(column: tuple[int, str]) -> tuple[int, Fraction]:
    return column[0], Fraction(column[1])


def _decimal(budget: str) -> str:
    return f"{float(Fraction(budget)):g}"


def _error(measurement: Measured | None) -> str:
    return f"{measurement.measured[0]:.1f}" if measurement else ""


def _times(ratio_and_error: tuple[float, float]) -> str:
    return f"{ratio_and_error[0]:.2f} ± {ratio_and_error[1]:.2f}"


def _head(name: str, columns: Sequence[str]) -> None:
    print(f"\n| {name} | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")


def _row(name: str, cells: Iterable[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")

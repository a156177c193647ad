"""The errors in an earlier study, for comparison: root mean squared errors × 100 of a share.

2,000 subjects, yes-or-no questions; 27 values were three attributes of three values there.
"""

from __future__ import annotations

import math

__all__ = ["KNOWN_COUNT", "UNKNOWN_COUNT", "difference_in_errors"]

Errors = dict[tuple[str, int, int], dict[str, float]]
"""By strategy, number of values and number of questions; then by the budget."""

_BUDGETS = ("1", "2", "4")
# The errors of that study are 3 to 6 % where the number of questions is known, and 5 to 9 % else.
_OFF = 0.06


def _six(design: str, *sizes: tuple[float, ...]) -> Errors:
    return {
        (design, size, 6): dict(zip(_BUDGETS, errors, strict=True))
        for size, errors in zip((10, 27, 64), sizes, strict=False)
    }


def _after(design: str, size: int, *by_budget: tuple[float, float, float]) -> Errors:
    return {
        (design, size, questions): {
            budget: errors[index] for budget, errors in zip(_BUDGETS, by_budget, strict=True)
        }
        for index, questions in enumerate((3, 6, 12))
    }


KNOWN_COUNT = (
    _six("basic composition, all", (11.3, 6.1, 2.9), (12.1, 6.5, 3.2), (12.6, 6.6, 3.4))
    | _six("one sampled question", (5.6, 3.3, 2.5), (5.2, 3.2, 2.6), (5.9, 3.4, 2.7))
    | _six("filter, 1/20 of the budget each", (6.4, 3.5, 1.9))
    | _six("filter, largest epsilon, in steps", (8.7, 4.5, 2.2), (10.0, 5.4, 2.6), (11.9, 6.1, 3.4))
    | _six("saturating, equal steps", (4.9, 2.4, 1.3), (5.2, 2.7, 1.5), (6.6, 3.7, 1.8))
    | _six("saturating, 3 sampled questions", (5.4, 2.5, 1.6), (4.7, 2.5, 1.4), (6.2, 3.1, 1.8))
    | _six(
        "full-value report, subset selection", (5.4, 2.6, 1.2), (7.6, 4.0, 1.7), (10.7, 5.8, 2.4)
    )
)

_GEOMETRIC, _FULL_VALUE = (
    "saturating, a third of the remainder",
    "full-value report, subset selection",
)
_SAMPLED = "one sampled question"
UNKNOWN_COUNT = (
    _after(_GEOMETRIC, 10, (5.8, 6.3, 7.2), (3.3, 3.1, 3.4), (1.3, 1.4, 1.5))
    | _after(_GEOMETRIC, 27, (5.3, 7.2, 8.7), (3.5, 3.9, 4.4), (1.6, 1.7, 2.2))
    | _after(_GEOMETRIC, 64, (7.2, 8.6, 10.9), (2.9, 4.7, 7.5), (1.7, 2.1, 3.3))
    | _after(_FULL_VALUE, 10, (5.9, 6.2, 6.2), (2.1, 2.5, 2.7), (1.2, 1.2, 1.2))
    | _after(_FULL_VALUE, 27, (7.7, 7.7, 8.0), (3.9, 3.7, 3.9), (1.6, 1.4, 1.4))
    | _after(_FULL_VALUE, 64, (8.0, 8.9, 9.3), (5.4, 5.3, 5.2), (2.1, 2.2, 2.3))
    | _after(_SAMPLED, 10, (4.2, 5.3, 5.4), (2.6, 3.5, 3.6), (1.9, 2.7, 2.8))
    | _after(_SAMPLED, 27, (4.1, 5.0, 6.2), (2.4, 3.2, 3.6), (1.9, 2.5, 2.9))
    | _after(_SAMPLED, 64, (4.5, 5.8, 8.3), (2.7, 3.3, 5.0), (2.1, 2.6, 4.0))
)


def difference_in_errors(rmse: float, error: float, before: float) -> float:
    """Divide the difference of two errors by its standard error."""
    return (rmse - before) / math.hypot(error, _OFF * before)

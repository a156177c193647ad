"""Numbers with a guarantee: exact numbers, and doubles that are rounded outward.

:class:`Nats` are exact amounts of privacy, such as budgets and losses on finite sets. An
:class:`Enclosure` is a pair of doubles with the exact number between them. :func:`exact` reads a
number as a person meant it.

>>> from expost.numbers import Nats, exact
>>> loss = Nats(ratio=exact("9/4"))
>>> loss, round(loss.enclosure.upper, 6)
(Nats(ln(9/4)), 0.81093)
"""

from expost.numbers._decimals import DECIMAL_ERROR, enclose_decimal, fifty_digits
from expost.numbers._doubles import double_above, double_below, scaled_exp
from expost.numbers._enclosure import NEGLIGIBLE, UNIT, Enclosure, down, up
from expost.numbers._exact_sum import ExactSum, above, below, decimal_context, over_one
from expost.numbers._loops import bisect, blocks, read_only
from expost.numbers._nats import INFINITE, LARGEST_BUDGET, Nats, RunningSum
from expost.numbers._parsing import (
    ExactLike,
    decimal_text,
    exact,
    positive,
    quotient,
    read_confidence,
)

__all__ = [
    "DECIMAL_ERROR",
    "INFINITE",
    "LARGEST_BUDGET",
    "NEGLIGIBLE",
    "UNIT",
    "Enclosure",
    "ExactLike",
    "ExactSum",
    "Nats",
    "RunningSum",
    "above",
    "below",
    "bisect",
    "blocks",
    "decimal_context",
    "decimal_text",
    "double_above",
    "double_below",
    "down",
    "enclose_decimal",
    "exact",
    "fifty_digits",
    "over_one",
    "positive",
    "quotient",
    "read_confidence",
    "read_only",
    "scaled_exp",
    "up",
]

"""Warnings about budgets and epsilons that are so large that they are probably mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

from expost._format import format_percent
from expost.errors import LargeBudgetWarning, warn_caller
from expost.numbers import Nats

__all__ = ["is_large", "large_text", "sure_text", "warn_if_large"]

#: In nats. From there on someone undecided may become more than 99.995 % sure.
_LARGE = 10


def is_large(epsilon: Nats) -> bool:
    """Return whether an epsilon is above 10 nats."""
    return epsilon > Nats(Fraction(_LARGE))


def sure_text(epsilon: Nats) -> str:
    r"""Describe how sure someone undecided may become: :math:`e^\varepsilon / (1 + e^\varepsilon)`.

    >>> sure_text(Nats(Fraction(11)))
    'someone undecided (50 %) may become 99.9983 % sure'
    """
    sure = 1 / (1 + math.exp(-epsilon.enclosure.upper))
    return f"someone undecided (50 %) may become {format_percent(sure)} sure"


def large_text(label: str, epsilon: Nats) -> str:
    """Explain a large epsilon to people; empty if it is not large.

    >>> large_text("a budget of", Nats(Fraction(100)))
    'a budget of 100 is very large: someone undecided (50 %) may become 100 % sure'
    >>> large_text("a budget of", Nats(Fraction(10)))
    ''
    """
    return f"{label} {epsilon} is very large: {sure_text(epsilon)}" if is_large(epsilon) else ""


def warn_if_large(budget: Nats) -> None:
    """Warn about a large budget at the line of the program that makes the filter."""
    text = large_text("a budget of", budget)
    if text:
        warn_caller(text, LargeBudgetWarning)

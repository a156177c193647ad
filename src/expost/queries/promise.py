"""Whether a query keeps the epsilon that it names.

The families of this package are proved to (docs/theory/weights.md). One of another package is
checked when it is asked on a domain, because filters that add up epsilons take its word for it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from expost.errors import InvalidInput
from expost.numbers import Enclosure, Nats, decimal_text
from expost.queries.likelihood import BoxLikelihood, FiniteLikelihood, Likelihood

__all__ = ["check_promise"]


def check_promise(kind: str, epsilon: Fraction, likelihood: Likelihood[Any]) -> None:
    """Refuse a likelihood whose largest log-ratio is more than this epsilon.

    That is exact on a finite set. On a box what is certainly more is refused.
    """
    named = Nats(epsilon)
    if isinstance(likelihood, FiniteLikelihood):
        reached, kept = likelihood.epsilon.enclosure, likelihood.epsilon <= named
    elif isinstance(likelihood, BoxLikelihood):
        reached = likelihood.epsilon
        kept = reached.lower <= named.enclosure.upper
    else:
        return  # of a part of a record, whose own likelihood was checked
    if reached.lower == math.inf:
        raise InvalidInput(
            f"{kind} names {decimal_text(epsilon)}, but some value never gives a response that "
            "another value can give, so the loss is infinite; make every weight positive, or name "
            "no epsilon",
            "epsilon",
        )
    if not kept:
        raise InvalidInput(
            f"{kind} names {decimal_text(epsilon)}, but its weights here have a loss of up to "
            f"{_shown(reached, epsilon)}; round them so that no two of a response differ by more "
            "than a factor of e^epsilon",
            "epsilon",
        )


def _shown(reached: Enclosure, epsilon: Fraction) -> str:
    """As many digits as tell it from the epsilon."""
    short = f"{reached.upper:.6g}"
    return repr(reached.upper) if Fraction(short) <= epsilon else short

"""Terms: what one response adds to the log-likelihood.

A :class:`Term` is the likelihood over a finite domain, with exact weights and their logarithms. A
:class:`ScoreTerm` is the log-weight over a box, as a function of an affine form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.numbers import INFINITE, UNIT, Enclosure, ExactSum, Nats

__all__ = [
    "BLUR",
    "EVERYWHERE",
    "Link",
    "Powers",
    "ScoreTerm",
    "Term",
    "Weights",
    "as_integers",
    "as_weights",
    "logs_of",
    "multiply",
]


#: Integer weights, one per value: int64, or Python integers (object) where they do not fit.
Weights = NDArray[Any]

#: A weight as a product of powers (base, exponent), up to a factor that all values share.
Powers = tuple[tuple[int, int], ...]

_FITS = 2**62

# Three roundings in w/ref, the condition of the logarithm, and a logarithm that may be
# off by four units in the last place stay below 16 units of roundoff relative to the result; 32
# leaves a factor of two. Proof: docs/theory/realized_loss.md.
_LOG_ERROR = 32 * UNIT

# How far off a quotient can be if it is too small for a normal double.
_UNDERFLOW = 2.0**-1070


def as_weights(weights: Sequence[Any] | NDArray[Any], total: int) -> Weights:
    """Make an array of integers up to ``total``: int64 if that is exact, else Python integers."""
    return np.array(weights, dtype=np.int64 if total < _FITS else object)


def as_integers(doubles: NDArray[np.float64], total: int) -> Weights:
    """Convert doubles with integer values, in an array of any shape, as :func:`as_weights` does."""
    if total < _FITS:
        return doubles.astype(np.int64)
    return np.array([int(x) for x in doubles.ravel()], dtype=object).reshape(doubles.shape)


def multiply(product: Counter[int], powers: Powers, times: int) -> None:
    """Multiply a product of powers, in place, by other powers that often."""
    for base, power in powers:
        product[base] += power * times


def logs_of(weights: Weights) -> NDArray[np.float64]:
    """Return the approximate logarithms of positive weights of any size.

    >>> logs_of(as_weights([1, 10**400], total=10**400)).round(3).tolist()
    [0.0, 921.034]
    """
    if weights.dtype == object:
        return np.array([math.log(weight) for weight in weights.tolist()], dtype=np.float64)
    return np.asarray(np.log(weights), dtype=np.float64)


class Term:
    """The likelihood of one response at every value of a finite domain, up to a constant factor.

    ``logs`` are the logarithms of the exact weights as doubles, up to one common constant. Each is
    within ``error`` of the real number, and minus infinity where the weight is zero.

    >>> term = Term.of(as_weights([3, 1], total=4))
    >>> term.loss
    Nats(ln(3))
    """

    __slots__ = ("_widest", "error", "logs")

    def __init__(self, logs: NDArray[np.float64], error: float, widest: Powers | None) -> None:
        """Make a term; ``widest`` is the largest over the smallest weight, None if that is 0."""
        logs.setflags(write=False)
        self.logs = logs
        self.error = error
        self._widest = widest

    @classmethod
    def of(cls, weights: Weights) -> Term:
        """Return the term of weights that are written out."""
        weights.setflags(write=False)
        least, largest = int(np.minimum.reduce(weights)), int(np.maximum.reduce(weights))
        smallest = least or int(weights[weights > 0].min())
        # Centered at zero, so that sums stay small, and with them their errors.
        reference = math.isqrt(smallest * largest)
        excess = _quotients(weights - reference, reference)
        if (least - reference) / reference > -0.5 and (largest - reference) / reference < 0.5:
            logs = np.log1p(excess)
        else:
            near = np.abs(excess) < 0.5
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.where(near, np.log1p(excess), np.log(_quotients(weights, reference)))
        finite = logs if least else logs[np.isfinite(logs)]
        span = float(max(-np.minimum.reduce(finite), np.maximum.reduce(finite)))
        error = 0.0 if smallest == largest else _LOG_ERROR * span + _UNDERFLOW
        return cls(logs, error, ((largest, 1), (least, -1)) if least else None)

    @classmethod
    def geometric(cls, distances: NDArray[np.int64], heavy: int, light: int) -> Term:
        """Return the term of the weights (light/heavy)^distance, which are never written out.

        Each logarithm is a product of two doubles: half an integer, and the double next to
        log(heavy/light).
        """
        nearest, farthest = int(distances.min()), int(distances.max())
        rate, span = _rate(heavy, light), farthest - nearest
        steps = np.asarray((farthest - nearest) / 2 - (distances - nearest), dtype=np.float64)
        # A rate too small for a normal double has a relative error of more than a unit.
        error = span * (_LOG_ERROR * rate.upper + rate.width)
        widest = (heavy, span), (light, -span)
        return cls(steps * rate.upper, error + _UNDERFLOW if span else 0.0, widest)

    def for_classes(self, heavier: NDArray[np.bool_]) -> Term:
        """Return the term of values with the heavier or the lighter of two weights.

        ``self`` is the term of these two weights, lighter first, so no logarithm is taken again.
        """
        if 0 < np.count_nonzero(heavier) < len(heavier):
            return self.take(heavier.astype(np.intp))
        return Term(np.zeros(len(heavier)), 0.0, ())

    def take(self, indices: NDArray[np.intp]) -> Term:
        """Return the term of values that have the weights at these indices, which cover all."""
        return Term(self.logs[indices], self.error, self._widest)

    @property
    def loss(self) -> Nats:
        """The loss that this response realizes on its own: log of largest over smallest weight."""
        if self._widest is None:
            return INFINITE
        powers: Counter[int] = Counter()
        for base, exponent in self._widest:
            powers[base] += exponent
        return Nats.of(ExactSum.product(powers))


@lru_cache(maxsize=1024)
def _rate(heavy: int, light: int) -> Enclosure:
    """Enclose log(heavy/light), cached because many queries share it."""
    return Nats.of(ExactSum.product(Counter({heavy: 1, light: -1}))).enclosure


def _quotients(numerators: Weights, denominator: int) -> NDArray[np.float64]:
    if numerators.dtype == object:
        # True division of Python integers is correctly rounded at any size.
        return np.array([n / denominator for n in numerators.tolist()], dtype=np.float64)
    return np.asarray(numerators / denominator, dtype=np.float64)


# Within this distance of an end of a window, a form may count as inside or outside.
BLUR = 2.0**-24
EVERYWHERE = (-math.inf, math.inf)


class Link(IntEnum):
    r"""The function that turns an affine form z into a log-weight.

    .. math:: \text{LOGISTIC:} \quad & 2 \operatorname{artanh}(\tanh(\varepsilon/4) \tanh(z/2)) \\
              \text{CLIPPED:} \quad & \log(1 + \tanh(\varepsilon/2)
                  \operatorname{clip}(z, -1, 1)) \\
              \text{PROBIT:} \quad & \log(1 + (e^\varepsilon - 1) \Phi(z)) \\
              \text{TENT:} \quad & -|z| \\
              \text{WINDOW:} \quad & \varepsilon/2 \text{ if } z \in \text{window},
                  \text{ else } -\varepsilon/2 \\
              \text{HILL:} \quad & -z^2/2
    """

    LOGISTIC = 0
    CLIPPED = 1
    PROBIT = 2
    TENT = 3
    WINDOW = 4
    HILL = 5

    __hash__ = int.__hash__  # that of an Enum is Python code, and every term is looked up


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """The log-weight of one response on a box, as the solver needs it.

    At every point x of the box, with z = Σ weights_j·x_j + offset in real numbers,

        log(the integer weight that is sampled) = constant + link(z) ± error.

    The constant is the same at all points. The error covers the rounding of the score, of the
    coefficients and of the share to doubles, the grid of integer weights, and epsilon. It is at
    most about half of epsilon. A form closer than ``BLUR`` to an end of the window may count as
    inside or as outside. Proof: docs/theory/score_terms.md.
    """

    link: Link
    epsilon: float
    #: One per column of the box.
    weights: tuple[float, ...]
    offset: float
    error: float
    #: The ends of the window; for ``Link.HILL``, the range of z on the whole box.
    window: tuple[float, float] = EVERYWHERE
    #: Terms with equal keys round scores identically.
    #:
    #: Equal forms do not imply that. A form is itself rounded, and next to an end of a window one
    #: query may round a score up that another rounds down.
    rounding_key: tuple[object, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once, because every loss looks for equal terms.
        parts = self.link, self.epsilon, self.weights, self.offset, self.error
        object.__setattr__(self, "_hash", hash((*parts, self.window, self.rounding_key)))

    def __hash__(self) -> int:
        return self._hash

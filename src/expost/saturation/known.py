"""What the answers of one subject say: the likelihood P of each class of values.

Values are in one class if the answers do not tell them apart. All that a saturating query needs of
a transcript is P up to a common factor: exactly where that is short, otherwise to 150 bits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attributes, Box, Domain, FiniteSet, Variable, some
from expost.domains.attributes import MOST_COMBINATIONS
from expost.errors import InvalidInput
from expost.queries import FiniteLikelihood
from expost.queries.lifted import Lifted
from expost.transcript import Summand

__all__ = ["Known", "Places", "known_of", "one_step", "ordered"]

_MOST_PATTERNS = 1 << 13
# A product of more bits is rounded to this many after each step.
_SHORT = 1 << 14
_KEPT = 192

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Known:
    """The classes of what was asked about so far, numbered by their first values."""

    variables: tuple[Variable, ...]
    """What was asked about, of records; otherwise empty."""
    of: Places
    """The class of each value, or of each combination of the variables."""
    likelihoods: tuple[Fraction, ...]
    """In units of that of the first value."""
    exact: bool
    """Otherwise each is within 2^-150 of itself."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what is the same, however it came about."""
        return self.variables, self.of.tobytes(), self.likelihoods, self.exact


def known_of(domain: Domain, summands: Sequence[Summand]) -> Known | None:
    """What some responses say; None if they rule a value out, so that the loss has no bound."""
    known: Known | None = domain.asked(_Knowing(summands))
    return known


@dataclass(frozen=True)
class _Knowing:
    summands: Sequence[Summand]

    def on_set(self, domain: FiniteSet) -> Known | None:
        return _known(domain, (), self.summands)

    def on_attributes(self, domain: Attributes) -> Known | None:
        found = (summand.query.on(domain).variables for summand in self.summands)
        variables = ordered(domain, [each for own in found for each in own])
        one_step(variables)
        if not variables:
            return Known((), np.zeros(1, dtype=np.intp), (Fraction(1),), True)
        part = domain.part(tuple(name for name, _ in variables))
        return _known(part, variables, self.summands)

    def on_box(self, domain: Box) -> Known:
        raise InvalidInput("on a box a saturating query gains nothing; it needs a finite set")


def ordered(domain: Attributes, variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Each of some variables once, in the order of the domain, if they can be listed."""
    place = {name: number for number, name in enumerate(domain.names)}
    found = sorted(set(variables), key=lambda each: (place[each[0]], each[1] or 0))
    size = math.prod(len(domain[name].values) for name, _ in found)
    if size > MOST_COMBINATIONS:
        raise InvalidInput(
            f"{some([name for name, _ in found])} have {size:,} combinations; a saturating query "
            f"takes all that was asked about into account, and at most {MOST_COMBINATIONS:,}"
        )
    return tuple(found)


def one_step(variables: Iterable[Variable]) -> int | None:
    """The step that some variables are about, if one of them changes."""
    steps = {step for _, step in variables if step is not None}
    if len(steps) > 1:
        raise InvalidInput(
            "the answers so far and the question are about several steps, and a query is about one"
        )
    return next(iter(steps), None)


def _known(
    domain: FiniteSet, variables: tuple[Variable, ...], summands: Sequence[Summand]
) -> Known | None:
    """What is known of each value of a set.

    Values are grouped by what each response says about them, which is quick; then classes with
    equal products are joined.
    """
    code = np.zeros(len(domain), dtype=np.intp)
    for summand in summands:
        more = _alike(summand.query.on(domain), summand.position)
        code = np.unique(code * (int(more.max()) + 1) + more, return_inverse=True)[1]
        if int(code.max()) >= _MOST_PATTERNS:
            raise InvalidInput(
                f"the answers so far tell more than {_MOST_PATTERNS:,} classes of values apart, "
                "which is too many for a saturating query"
            )
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    # By their first values, so that the same classes are always numbered alike.
    order = np.argsort(first)
    factors = _factors(domain, summands, first[order].tolist())
    if any(0 in product for product in factors):
        return None
    exact = all(_bits(product) <= _SHORT for product in factors)
    products = map(_multiplied if exact else _rounded, factors)
    numbers: dict[Fraction, int] = {}
    joined = np.empty(len(order), dtype=np.intp)
    joined[order] = [numbers.setdefault(product, len(numbers)) for product in products]
    classes = joined[of]
    classes.setflags(write=False)
    return Known(variables, classes, tuple(numbers), exact)


def _alike(likelihood: FiniteLikelihood, position: int) -> Places:
    """Numbers from 0 that are equal exactly for values with equal weights."""
    if isinstance(likelihood, Lifted):
        return _alike(likelihood.seen, position)[likelihood.where]
    _, code = np.unique(likelihood.alike(position), return_inverse=True)
    return code.astype(np.intp)


def _factors(
    domain: FiniteSet, summands: Iterable[Summand], places: Sequence[int]
) -> list[Counter[int]]:
    """P at some values relative to the first of them: exponents by base."""
    factors: list[Counter[int]] = [Counter() for _ in places]
    for summand in summands:
        powers = summand.query.on(domain).powers(summand.position, places)
        for product, own in zip(factors, powers, strict=True):
            for base, power in own:
                product[base] += power * summand.times
    for product in factors[1:]:
        product.subtract(factors[0])
    if 0 not in factors[0]:
        factors[0].clear()
    return factors


def _bits(product: Counter[int]) -> int:
    return sum(abs(power) * base.bit_length() for base, power in product.items())


def _multiplied(product: Counter[int]) -> Fraction:
    above = below = 1
    for base, power in product.items():
        if power > 0:
            above *= base**power
        else:
            below *= base**-power
    return Fraction(above, below)


def _rounded(product: Counter[int]) -> Fraction:
    """The same with a mantissa of few bits: every step is off by less than 2^-190 of itself."""
    above, below = _Rounded(), _Rounded()
    for base, power in sorted(product.items()):  # the same steps for equal products
        if power > 0:
            above = above.times(_Rounded(base).power(power))
        elif power < 0:
            below = below.times(_Rounded(base).power(-power))
    shift = above.exponent - below.exponent
    quotient = (above.mantissa << 2 * _KEPT) // below.mantissa
    short = _Rounded(quotient, shift - 2 * _KEPT)
    return Fraction(short.mantissa) * Fraction(2) ** short.exponent


class _Rounded:
    """mantissa · 2^exponent, rounded down to so many bits."""

    def __init__(self, mantissa: int = 1, exponent: int = 0) -> None:
        drop = max(0, mantissa.bit_length() - _KEPT)
        self.mantissa, self.exponent = mantissa >> drop, exponent + drop

    def times(self, other: _Rounded) -> _Rounded:
        return _Rounded(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def power(self, times: int) -> _Rounded:
        result, square = _Rounded(), self
        while times:
            if times & 1:
                result = result.times(square)
            square, times = square.times(square), times >> 1
        return result

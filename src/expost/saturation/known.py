"""What the answers of one subject say: the likelihood P of each class of values.

Values are in one class if the answers do not tell them apart. All that a saturating query needs of
a transcript is P up to a common factor. Of records it is listed while that is possible; otherwise
the extremes of P are worked out for what a question is about.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.domains import MOST_COMBINATIONS, Attributes, Box, Domain, FiniteSet, Part, Variable
from expost.errors import InvalidInput
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.queries import FiniteLikelihood
from expost.queries.lifted import Lifted
from expost.saturation.products import written_out
from expost.transcript import Exchange, Summand

__all__ = [
    "Extremes",
    "Known",
    "Listed",
    "known_of",
    "known_set",
    "ordered",
    "steps_of",
]

_MOST_PATTERNS = 1 << 13


@dataclass(frozen=True, eq=False)
class Listed:
    """The likelihood of each value, or of each combination of what was asked about."""

    of: Indices
    """The class of each, numbered by the first of its values."""
    likelihoods: tuple[Fraction, ...]
    """Of each class, in units of the first."""
    exact: bool
    """Otherwise each is within 2^-150 of itself."""


@dataclass(frozen=True, eq=False)
class Extremes:
    """The largest and the smallest likelihood of all records with each combination of a part."""

    lows: list[Fraction]
    highs: list[Fraction]
    """Both in units of the first of ``lows``."""
    exact: bool


@dataclass(frozen=True, eq=False)
class Known:
    """What was answered about one subject."""

    variables: tuple[Variable, ...]
    """What was asked about, of records; otherwise empty."""
    summands: Sequence[Summand]
    listed: Listed | None
    """None for records that are too many to list, or known at several steps."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what is the same, however it came about."""
        if self.listed is None:
            return (id(self),)
        listed = self.listed
        return self.variables, listed.of.tobytes(), listed.likelihoods, listed.exact

    def extremes(self, domain: Attributes, variables: tuple[Variable, ...], part: Part) -> Extremes:
        """The extremes of the likelihood for each combination of some variables."""
        exchanges = []
        for summand in self.summands:
            responses = summand.query.on(domain).responses
            exchange = Exchange(summand.query, responses[summand.position], summand.position)
            exchanges += [exchange] * summand.times
        total = AttributesLogLikelihood.of(domain, exchanges)
        highs, lows = total.marginal_powers(variables, part)
        exact, found = written_out([*lows.different, *highs.different])
        low, high = found[: len(lows.different)], found[len(lows.different) :]
        return Extremes(
            [low[number] for number in lows.which.tolist()],
            [high[number] for number in highs.which.tolist()],
            exact,
        )


def known_of(domain: Domain, summands: Sequence[Summand]) -> Known | None:
    """What some responses say; None if they rule a value out, so that the loss has no bound."""
    match domain:
        case FiniteSet():
            return _known_of_set(domain, summands)
        case Attributes():
            return _known_of_record(domain, summands)
        case Box():
            raise InvalidInput("on a box a saturating query gains nothing; it needs a finite set")
        case _:
            assert_never(domain)


def known_set(inside: NDArray[np.bool_], ratio: Fraction) -> Known:
    """What a saturating answer leaves of a finite set, whatever was answered before it.

    Values inside of a set are ``ratio`` times as likely as those outside.
    """
    first = bool(inside[0])
    of = (inside != first).astype(np.intp)
    of.setflags(write=False)
    likelihoods = (Fraction(1), 1 / ratio if first else ratio)[: int(of.max()) + 1]
    return Known((), (), Listed(of, likelihoods, True))


def _known_of_set(domain: FiniteSet, summands: Sequence[Summand]) -> Known | None:
    if any(_rules_out(summand.query.on(domain), summand.position) for summand in summands):
        return None
    listed = _listed(domain, summands)
    if listed is None:
        raise InvalidInput(
            f"the answers so far tell more than {_MOST_PATTERNS:,} classes of values apart, "
            "which is too many for a saturating query"
        )
    return Known((), summands, listed)


def _known_of_record(domain: Attributes, summands: Sequence[Summand]) -> Known | None:
    found = list[Variable]()
    for summand in summands:
        likelihood = summand.query.on(domain)
        if _rules_out(likelihood.on_part, summand.position):
            return None
        found += likelihood.variables
    variables = ordered(domain, found)
    listed: Listed | None = Listed(np.zeros(1, dtype=np.intp), (Fraction(1),), True)
    if variables:
        few = len(steps_of(variables)) <= 1 and _size(domain, variables) <= MOST_COMBINATIONS
        part = domain.part(tuple(name for name, _ in variables)) if few else None
        listed = None if part is None else _listed(part, summands)
    return Known(variables, summands, listed)


def ordered(domain: Attributes, variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Each of some variables once, in the order of the domain."""
    place = {name: number for number, name in enumerate(domain.names)}
    return tuple(sorted(set(variables), key=lambda each: (place[each[0]], each[1] or 0)))


def steps_of(variables: Iterable[Variable]) -> set[int]:
    """The steps that some variables are about."""
    return {step for _, step in variables if step is not None}


def _size(domain: Attributes, variables: Iterable[Variable]) -> int:
    return math.prod(len(domain[name].values) for name, _ in variables)


def _rules_out(likelihood: FiniteLikelihood, position: int) -> bool:
    """Whether some value cannot give a response."""
    return bool(np.isneginf(likelihood.term(position).logs.min()))


def _listed(domain: FiniteSet, summands: Sequence[Summand]) -> Listed | None:
    """What is known of each value of a set; None if that tells too many apart.

    Values are grouped by what each response says about them, which is quick; then classes with
    equal products are joined.
    """
    code = np.zeros(len(domain), dtype=np.intp)
    for summand in summands:
        more = _alike(summand.query.on(domain), summand.position)
        code = np.unique(code * (int(more.max()) + 1) + more, return_inverse=True)[1]
        if int(code.max()) >= _MOST_PATTERNS:
            return None
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    # By their first values, so that the same classes are always numbered alike.
    order = np.argsort(first)
    exact, products = written_out(_powers(domain, summands, first[order].tolist()))
    numbers: dict[Fraction, int] = {}
    joined = np.empty(len(order), dtype=np.intp)
    joined[order] = [numbers.setdefault(product, len(numbers)) for product in products]
    classes = joined[of]
    classes.setflags(write=False)
    return Listed(classes, tuple(numbers), exact)


def _alike(likelihood: FiniteLikelihood, position: int) -> Indices:
    """Numbers from 0 that are equal exactly for values with equal weights."""
    if isinstance(likelihood, Lifted):
        return _alike(likelihood.seen, position)[likelihood.where]
    _, code = np.unique(likelihood.alike(position), return_inverse=True)
    return code.astype(np.intp)


def _powers(
    domain: FiniteSet, summands: Iterable[Summand], places: Sequence[int]
) -> list[Counter[int]]:
    """P at some values: exponents by base."""
    found: list[Counter[int]] = [Counter() for _ in places]
    for summand in summands:
        powers = summand.query.on(domain).powers(summand.position, places)
        for product, own in zip(found, powers, strict=True):
            for base, power in own:
                product[base] += power * summand.times
    return found

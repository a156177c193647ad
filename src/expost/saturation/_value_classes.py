"""Classes of values with their likelihoods, given what a subject has answered.

Values are in one class if neither the question nor the answers so far separate them. All that a
saturating query needs of a transcript is the likelihood P up to a common factor. On records it is
listed where possible; otherwise its extremes are computed for the variables of a question. Products
of powers are exact if they are short, and otherwise have 150 correct bits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import chain
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from expost._grouping import group_pairs
from expost._types import Indices
from expost.domains import MOST_COMBINATIONS, Attributes, Box, Domain, FiniteSet, Part, Variable
from expost.errors import InvalidInput
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.numbers import decimal_context, read_only
from expost.queries import FiniteLikelihood, LiftedLikelihood, Query
from expost.saturation._question import AnswerPartition
from expost.tally import Summand
from expost.terms import multiply
from expost.transcript import Exchange

__all__ = [
    "MOST_CLASSES",
    "ClassKinds",
    "ListedLikelihoods",
    "ValueClasses",
    "ValueLikelihoods",
    "exchanges_of",
    "likelihoods_after",
    "likelihoods_of_set",
    "multiply_out",
    "rules_out_a_record",
    "sorted_variables",
    "steps_of",
    "value_classes",
]


# A product of more bits is rounded to 60 digits after each step.
_MOST_EXACT_BITS = 1 << 14
_CONTEXT = decimal_context(60, ROUND_HALF_EVEN)


def multiply_out(products: Sequence[Counter[int]]) -> tuple[bool, list[Fraction]]:
    """Multiply out products of powers, relative to the first; return whether they are exact.

    Exponents are by base. Inexact fractions have a relative error below 2^-150. Equal products
    always give equal fractions.
    """
    quotients = [Counter(product) for product in products]
    for quotient in quotients:
        quotient.subtract(products[0])
    exact = all(_bit_length(quotient) <= _MOST_EXACT_BITS for quotient in quotients)
    multiply = _multiply_exactly if exact else _multiply_rounded
    return exact, [multiply(quotient) for quotient in quotients]


def _bit_length(product: Counter[int]) -> int:
    return sum(abs(power) * base.bit_length() for base, power in product.items())


def _multiply_exactly(product: Counter[int]) -> Fraction:
    numerator = denominator = 1
    for base, power in product.items():
        if power > 0:
            numerator *= base**power
        else:
            denominator *= base**-power
    return Fraction(numerator, denominator)


def _multiply_rounded(product: Counter[int]) -> Fraction:
    """Multiply in decimals: every step has a relative error below 2^-190."""
    result = Decimal(1)
    for base, power in sorted(product.items()):  # the same steps for equal products
        step = _CONTEXT.multiply if power > 0 else _CONTEXT.divide
        result = step(result, _rounded_power(base, abs(power)))
    return Fraction(result)


def _rounded_power(base: int, exponent: int) -> Decimal:
    # Context.power may differ in the last digit from machine to machine; products do not.
    result, square = Decimal(1), Decimal(base)
    while exponent:
        if exponent & 1:
            result = _CONTEXT.multiply(result, square)
        square, exponent = _CONTEXT.multiply(square, square), exponent >> 1
    return result


_MOST_PATTERNS = 1 << 13


@dataclass(frozen=True, eq=False)
class ListedLikelihoods:
    """The likelihood of each value, or of each combination of the variables of the queries."""

    #: The class of each value; classes are numbered by their first values.
    class_of: Indices
    #: The likelihood of each class, relative to the first.
    likelihoods: tuple[Fraction, ...]
    #: Whether likelihoods are exact; otherwise their relative error is below 2^-150.
    exact: bool


@dataclass(frozen=True, eq=False)
class ValueLikelihoods:
    """The likelihoods of values, given the answers of one subject."""

    #: The variables of records that queries were about; empty on a set.
    variables: tuple[Variable, ...]
    summands: Sequence[Summand]
    #: None for records that are too many to list, or were asked about several steps.
    listed: ListedLikelihoods | None

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal likelihoods, however they came about."""
        if self.listed is None:
            return (id(self),)
        listed = self.listed
        return self.variables, listed.class_of.tobytes(), listed.likelihoods, listed.exact

    def extremes(
        self, domain: Attributes, variables: tuple[Variable, ...], part: Part
    ) -> tuple[list[Fraction], list[Fraction], bool]:
        """Compute the extremes of the likelihood for each combination of some variables.

        Returns:
            The smallest and the largest likelihoods, relative to the first of the smallest, and
            whether they are exact.
        """
        exchanges = exchanges_of(domain, self.summands)
        highs, lows = AttributesLogLikelihood.of(domain, exchanges).marginal_powers(variables, part)
        exact, fractions = multiply_out([*lows.likelihoods, *highs.likelihoods])
        low, high = fractions[: len(lows.likelihoods)], fractions[len(lows.likelihoods) :]
        smallest = [low[index] for index in lows.indices.tolist()]
        return smallest, [high[index] for index in highs.indices.tolist()], exact


def exchanges_of(domain: Attributes, summands: Iterable[Summand]) -> list[Exchange]:
    """Return the exchanges that some summands count."""
    exchanges = []
    for summand in summands:
        responses = summand.query.on(domain).responses
        exchange = Exchange(summand.query, responses[summand.position], summand.position)
        exchanges += [exchange] * summand.times
    return exchanges


def likelihoods_after(domain: Domain, summands: Sequence[Summand]) -> ValueLikelihoods | None:
    """Compute the likelihoods after some responses; None if they rule a value out.

    In that case the loss has no bound.
    """
    match domain:
        case FiniteSet():
            return _likelihoods_on_set(domain, summands)
        case Attributes():
            return _likelihoods_on_record(domain, summands)
        case Box():
            raise InvalidInput("on a box a saturating query gains nothing; it needs a finite set")
        case _:
            assert_never(domain)


def likelihoods_of_set(members: NDArray[np.bool_], ratio: Fraction) -> ValueLikelihoods:
    """Return the likelihoods after a saturating answer, which do not depend on earlier answers.

    Values inside a set are ``ratio`` times as likely as those outside.
    """
    first = bool(members[0])
    class_of = read_only((members != first).astype(np.intp))
    likelihoods = (Fraction(1), 1 / ratio if first else ratio)[: int(class_of.max()) + 1]
    return ValueLikelihoods((), (), ListedLikelihoods(class_of, likelihoods, True))


def _likelihoods_on_set(domain: FiniteSet, summands: Sequence[Summand]) -> ValueLikelihoods | None:
    if any(_rules_out(summand.query.on(domain), summand.position) for summand in summands):
        return None
    listed = _list_likelihoods(domain, summands)
    if listed is None:
        raise InvalidInput(
            f"got responses that distinguish more than {_MOST_PATTERNS:,} classes of values; a "
            "saturating query supports at most that many"
        )
    return ValueLikelihoods((), summands, listed)


def _likelihoods_on_record(
    domain: Attributes, summands: Sequence[Summand]
) -> ValueLikelihoods | None:
    if rules_out_a_record(domain, summands):
        return None
    asked = (summand.query.on(domain).variables for summand in summands)
    queried = sorted_variables(domain, chain.from_iterable(asked))
    listed: ListedLikelihoods | None = None
    if not queried:
        listed = ListedLikelihoods(np.zeros(1, dtype=np.intp), (Fraction(1),), True)
    elif len(steps_of(queried)) <= 1 and _combination_count(domain, queried) <= MOST_COMBINATIONS:
        listed = _list_likelihoods(domain.part(_names(queried)), summands)
    return ValueLikelihoods(queried, summands, listed)


def sorted_variables(domain: Attributes, variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Sort variables in the order of the domain, without repeats."""
    position = {name: index for index, name in enumerate(domain.names)}
    return tuple(sorted(set(variables), key=lambda pair: (position[pair[0]], pair[1] or 0)))


def steps_of(variables: Iterable[Variable]) -> set[int]:
    """Return the steps of some variables."""
    return {step for _, step in variables if step is not None}


def _combination_count(domain: Attributes, variables: Iterable[Variable]) -> int:
    return math.prod(len(domain[name].values) for name, _ in variables)


def rules_out_a_record(domain: Attributes, summands: Iterable[Summand]) -> bool:
    """Return whether some record cannot give one of the responses."""
    return any(
        _rules_out(summand.query.on(domain).on_part, summand.position) for summand in summands
    )


def _rules_out(likelihood: FiniteLikelihood, position: int) -> bool:
    """Return whether some value cannot give a response."""
    return bool(np.isneginf(likelihood.term(position).logs.min()))


def _list_likelihoods(domain: FiniteSet, summands: Sequence[Summand]) -> ListedLikelihoods | None:
    """List the likelihood of each value of a set; None if there are too many classes.

    Values are grouped by what each response says about them, which is quick; then classes with
    equal products are joined.
    """
    code = np.zeros(len(domain), dtype=np.intp)
    for summand in summands:
        weight_codes = _equal_weight_codes(summand.query.on(domain), summand.position)
        pairs = code * (int(weight_codes.max()) + 1) + weight_codes
        code = np.unique(pairs, return_inverse=True)[1]
        if int(code.max()) >= _MOST_PATTERNS:
            return None
    first, class_of = _number_classes(code)
    exact, products = multiply_out(_powers(domain, summands, first.tolist()))
    class_ids: dict[Fraction, int] = {}
    merged = np.array([class_ids.setdefault(product, len(class_ids)) for product in products])
    return ListedLikelihoods(read_only(merged[class_of]), tuple(class_ids), exact)


def _number_classes(code: Indices) -> tuple[Indices, Indices]:
    """Number classes of equal codes by their first values, so that equal classes agree.

    Returns:
        The first value of each class, and the class of each value.
    """
    _, first, class_of = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], read_only(np.argsort(order)[class_of].astype(np.intp))


def _equal_weight_codes(likelihood: FiniteLikelihood, position: int) -> Indices:
    """Number the values so that exactly those with equal weights have equal numbers."""
    if isinstance(likelihood, LiftedLikelihood):
        return _equal_weight_codes(likelihood.original, position)[likelihood.indices]
    _, code = np.unique(likelihood.weight_labels(position), return_inverse=True)
    return code.astype(np.intp)


def _powers(
    domain: FiniteSet, summands: Iterable[Summand], indices: Sequence[int]
) -> list[Counter[int]]:
    """Compute P at some values, as exponents by base."""
    products: list[Counter[int]] = [Counter() for _ in indices]
    for summand in summands:
        powers = summand.query.on(domain).powers(summand.position, indices)
        for product, factors in zip(products, powers, strict=True):
            multiply(product, factors, summand.times)
    return products


#: The answer, the smallest and the largest likelihood, and the size of each class.
ClassKinds = tuple[tuple[int, Fraction, Fraction, int], ...]

#: A query has a row for each class, and about as many responses.
MOST_CLASSES = 256


@dataclass(frozen=True, eq=False)
class ValueClasses:
    """Classes of values, numbered by their first values."""

    #: The variables of records that a query on the classes is about; empty on a set.
    variables: tuple[Variable, ...]
    #: The class of each value, or of each combination of the variables.
    class_of: Indices
    #: The answer of the values of each class.
    answers: tuple[int, ...]
    sizes: tuple[int, ...]
    #: The smallest likelihood of records in each class, up to a common factor.
    lows: tuple[Fraction, ...]
    #: The largest likelihood, up to that factor; equal to ``lows`` if the variables are all.
    highs: tuple[Fraction, ...]
    #: Whether likelihoods are exact; otherwise their relative error is below 2^-150.
    exact: bool

    @property
    def sorted_kinds(self) -> tuple[ClassKinds, list[int]]:
        """Sort what matters of each class; return it, and the position of each class.

        Among more than two answers, less likely ones come first; the public order breaks ties. So
        queries with different public orders have tables that differ in the order of rows only.
        """
        class_kinds = list(zip(self.lows, self.highs, self.sizes, strict=True))
        answers = self.answers
        if max(answers) > 1:
            kinds_by_answer = group_pairs(zip(answers, class_kinds, strict=True))
            ranked = sorted(
                sorted(kinds_by_answer), key=lambda answer: sorted(kinds_by_answer[answer])
            )
            rank = {answer: position for position, answer in enumerate(ranked)}
            answers = tuple(rank[answer] for answer in answers)
        kinds = [(answer, *kind) for answer, kind in zip(answers, class_kinds, strict=True)]
        order = sorted(range(len(kinds)), key=kinds.__getitem__)
        return tuple(kinds[index] for index in order), np.argsort(order).tolist()

    @property
    def all_distinct(self) -> bool:
        """Whether every class has a single value."""
        return len(self.sizes) == len(self.class_of)

    def lift(self, query: Query) -> Query:
        """Extend a query on the classes to the domain."""
        if not self.variables:
            return query
        return query.about(*_names(self.variables), at=next(iter(steps_of(self.variables)), None))


def value_classes(
    domain: Domain, likelihoods: ValueLikelihoods, partition: AnswerPartition
) -> ValueClasses:
    """Group values with equal answers and equal likelihoods."""
    match domain:
        case FiniteSet():
            assert likelihoods.listed is not None, "a finite set is listed"
            listed = likelihoods.listed
            return _listed_classes((), partition.answers, listed.class_of, listed)
        case Attributes():
            return _record_classes(domain, likelihoods, partition)
        case Box():
            raise AssertionError("no question on a box is read")
        case _:
            assert_never(domain)


def _record_classes(
    domain: Attributes, likelihoods: ValueLikelihoods, partition: AnswerPartition
) -> ValueClasses:
    question_variables, answered_variables = partition.variables, likelihoods.variables
    if len(steps_of(question_variables)) > 1:
        raise InvalidInput("is about several steps, and a query is about one", "question")
    variables = sorted_variables(domain, (*question_variables, *answered_variables))
    listed, size = likelihoods.listed, _combination_count(domain, variables)
    if listed is not None and len(steps_of(variables)) <= 1 and size <= MOST_COMBINATIONS:
        part = domain.part(_names(variables))
        answers = partition.answers[part.indices_about(_names(question_variables))]
        class_of = part.indices_about(_names(answered_variables))
        try:
            return _listed_classes(variables, answers, listed.class_of[class_of], listed)
        except _TooMany:
            if question_variables == answered_variables:
                raise
    return _by_extremes(domain, likelihoods, partition)


def _by_extremes(
    domain: Attributes, likelihoods: ValueLikelihoods, partition: AnswerPartition
) -> ValueClasses:
    """Group the combinations of the question's variables, with all other variables at the worst."""
    variables = sorted_variables(domain, partition.variables)
    part = domain.part(_names(variables))
    answers = partition.answers[part.indices_about(_names(partition.variables))]
    smallest, largest, exact = likelihoods.extremes(domain, variables, part)
    kinds: dict[tuple[int, Fraction, Fraction], int] = {}
    rows = zip(answers.tolist(), smallest, largest, strict=True)
    class_of = np.array([kinds.setdefault(row, len(kinds)) for row in rows], dtype=np.intp)
    if len(kinds) > MOST_CLASSES:
        raise _TooMany(len(kinds))
    class_answers, lows, highs = zip(*kinds, strict=True)
    sizes = tuple(np.bincount(class_of).tolist())
    return ValueClasses(variables, read_only(class_of), class_answers, sizes, lows, highs, exact)


class _TooMany(InvalidInput):
    """An error: there are more classes than a saturating query takes."""

    def __init__(self, class_count: int) -> None:
        super().__init__(
            f"the question and the answers so far tell {class_count:,} classes of values apart; "
            f"a saturating query takes at most {MOST_CLASSES}"
        )


def _listed_classes(
    variables: tuple[Variable, ...],
    answers: Indices,
    likelihood_class: Indices,
    listed: ListedLikelihoods,
) -> ValueClasses:
    """Group values by their answers and likelihood classes."""
    first, classes = _number_classes(answers * len(listed.likelihoods) + likelihood_class)
    if len(first) > MOST_CLASSES:
        raise _TooMany(len(first))
    class_answers = tuple(answers[first].tolist())
    sizes = tuple(np.bincount(classes).tolist())
    lows = tuple(listed.likelihoods[index] for index in likelihood_class[first].tolist())
    return ValueClasses(variables, classes, class_answers, sizes, lows, lows, listed.exact)


def _names(variables: Iterable[Variable]) -> tuple[str, ...]:
    return tuple(name for name, _ in variables)

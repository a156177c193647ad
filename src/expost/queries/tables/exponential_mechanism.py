"""The exponential mechanism: the more useful a response, the likelier it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

from expost._format import format_list, format_number
from expost.domains import FiniteSet, Scalar
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import array, array_at, as_list, members, read_list
from expost.numbers import ExactLike, decimal_text, exact, positive, scaled_exp
from expost.queries._identity_cache import IdentityCache
from expost.queries._likelihood import FiniteLikelihood
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.queries.tables._table import TableLikelihood, read_labels
from expost.terms import as_weights

__all__ = ["ExponentialMechanism", "exponential_mechanism"]

_LARGEST_SENSITIVITY = 10**300

_MOST_SPREAD = 20

# Weights then stay below some eight hundred bits.
_MOST_EXPONENT = 500
_MOST_RESPONSES = 1000
_MOST_UTILITIES = 4000
_MOST_BITS = 128

Utility = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialMechanism(QueryWithEpsilon):
    r"""A response y with odds that grow with its utility (McSherry and Talwar 2007).

    .. math:: P[y \mid x] \propto e^{\varepsilon u(x, y) / 2\Delta}

    The sensitivity Δ bounds how much the utility of a response differs between values. A larger
    epsilon may tell some values apart less.
    """

    kind: ClassVar[str] = "exponential_mechanism"
    responses: tuple[Scalar, ...]
    #: A row per value, a column per response.
    utility: Utility
    sensitivity: Fraction
    epsilon: Fraction

    def __repr__(self) -> str:
        shown = f"{len(self.utility)} values, {len(self.responses)} responses"
        sensitivity, epsilon = decimal_text(self.sensitivity), decimal_text(self.epsilon)
        return f"ExponentialMechanism({shown}, sensitivity={sensitivity}, epsilon={epsilon})"

    @property
    def steepness(self) -> Fraction:
        return 1 + max(max(row) - min(row) for row in self.utility) / self.sensitivity / 2

    @property
    def asks(self) -> str:
        return f"which is best of {format_list(self.responses, 'or')}"

    def tree(self) -> dict[str, Any]:
        return {
            "responses": [r if isinstance(r, str) else float(r) for r in self.responses],
            "utility": [list(row) for row in self.utility],
            "sensitivity": self.sensitivity,
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> ExponentialMechanism:
        fields = members(fields, required=("responses", "utility", "sensitivity", "epsilon"))
        array_at(fields, "responses")
        with at("utility"):
            read_list(array(fields["utility"]), array)
        return exponential_mechanism(**fields)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) != len(self.utility):
            reason = f"{len(self.utility)} rows for a domain of {len(domain)} values"
            raise InvalidInput(reason, "utility")
        make_levels = partial(UtilityLevels.of, self.utility)
        levels = _levels_by_utility.get(self.utility, self.sensitivity, make_levels)
        most = _MOST_EXPONENT * 2 * self.sensitivity
        if self.epsilon * levels.reach > most:
            raise InvalidInput(
                f"got {format_number(self.epsilon)}; expected at most "
                f"{format_number(most / levels.reach)}, because the utilities of a value differ "
                f"by up to {format_number(levels.reach / self.sensitivity)} sensitivities",
                "epsilon",
            )
        factor = self.epsilon / (2 * self.sensitivity)
        weights, total = exponential_weights(levels, factor, self.epsilon)
        columns = [as_weights(column, total) for column in zip(*weights, strict=True)]
        return TableLikelihood(domain, self.responses, columns)


@dataclass(frozen=True)
class UtilityLevels:
    """The distinct distances of utilities below the largest utility of their value."""

    below: tuple[Fraction, ...]
    #: The index of the distance, for each response of each value.
    rows: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, utility: Utility) -> UtilityLevels:
        level_of: dict[Fraction, int] = {}
        rows = tuple(
            tuple(level_of.setdefault(largest - entry, len(level_of)) for entry in row)
            for row, largest in ((row, max(row)) for row in utility)
        )
        return cls(tuple(level_of), rows)

    @cached_property
    def reach(self) -> Fraction:
        """The largest distance."""
        return max(self.below)


# Shared by queries with different epsilons.
_levels_by_utility = IdentityCache[UtilityLevels](
    lambda levels: len(levels.rows) * len(levels.rows[0]), max_size=1 << 18
)


def exponential_weights(
    levels: UtilityLevels, factor: Fraction, epsilon: Fraction
) -> tuple[list[list[int]], int]:
    """Return integer weights near e^(factor · utility) in every row, and the sum of each row.

    No ratio of two weights in a column exceeds e^epsilon if none does before rounding: a small
    weight that is added to all of them compensates for the rounding. Proof: docs/theory/weights.md.
    """
    width = len(levels.rows[0])
    error = width + 2
    mixed = error * (1 + math.ceil(2 / epsilon))
    # The smallest probability is at least e^-spread/width; 2^bits times that must dwarf mixed.
    spread = factor * levels.reach
    bits = 40 + (mixed * width).bit_length() + math.ceil(spread * Fraction(3, 2))
    finer = bits + (width + 1).bit_length()
    exponentials = [scaled_exp(-factor * below, finer) for below in levels.below]
    largest = levels.below.index(Fraction(0))
    rows = []
    for row in levels.rows:
        scaled = [exponentials[level] for level in row]
        row_total = sum(scaled)
        weights = [(weight << bits) // row_total for weight in scaled]
        weights[row.index(largest)] += (1 << bits) - sum(weights)
        rows.append([weight + mixed for weight in weights])
    return rows, (1 << bits) + width * mixed


def exponential_mechanism(
    utility: Any,
    *,
    responses: Sequence[Any] | None = None,
    sensitivity: ExactLike,
    epsilon: ExactLike,
) -> ExponentialMechanism:
    """Ask for a response by its utility: a row per value of the domain, a column per response.

    Args:
        utility: Rows of numbers; they are exact, so ``0.1`` is 1/10.
        responses: The responses; by default 0, 1, ….
        sensitivity: How much the utility of a response may differ between two values.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> exponential_mechanism([[1, 0], [0, 1]], sensitivity=1, epsilon="1")
    ExponentialMechanism(2 values, 2 responses, sensitivity=1, epsilon=1)
    """
    bound = read_at("sensitivity", positive, sensitivity, at_most=_LARGEST_SENSITIVITY)
    rows = read_at("utility", _read_utility, utility, bound)
    width = len(rows[0])
    labels = read_labels(range(width) if responses is None else responses, width)
    return ExponentialMechanism(labels, rows, bound, read_epsilon(epsilon))


def _utility(entry: Any) -> Fraction:
    value = exact(entry)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise InvalidInput("has too many digits: a utility may have some thirty")
    return value


def _read_utility(utility: Any, sensitivity: Fraction) -> Utility:
    entries = read_list(utility, as_list)
    if not entries or not entries[0]:
        raise InvalidInput("must be rows of numbers, one row per value")
    count = sum(map(len, entries))
    if count > _MOST_UTILITIES or len(entries[0]) > _MOST_RESPONSES:
        raise InvalidInput(
            f"got {len(entries[0]):,} responses and {count:,} utilities; expected at most "
            f"{_MOST_RESPONSES:,} and {_MOST_UTILITIES:,}"
        )
    rows = [tuple(read_list(row, _utility, f"[{i}]")) for i, row in enumerate(entries)]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidInput(f"has {len(row)} entries, the first row {len(rows[0])}", f"[{i}]")
        if max(row) - min(row) > _MOST_SPREAD * sensitivity:
            raise InvalidInput(
                f"got utilities that differ by more than {_MOST_SPREAD} sensitivities; expected "
                "at most that many",
                f"[{i}]",
            )
    for j, column in enumerate(zip(*rows, strict=True)):
        excess = max(column) - min(column) - sensitivity
        if excess > 0:
            by = f"{format_number(excess)} more than the sensitivity"
            raise InvalidInput(f"column {j} differs between values by {by}")
    return tuple(rows)

"""Losses that doubles cannot tell from a budget: compared in words, and what is left exactly.

Proof: docs/theory/audits.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Floats, Indices
from expost.numbers import ExactSum, Nats, blocks
from expost.panel._compiled_query import CompiledFiniteQuery
from expost.panel._differences import FIXED_BITS, NEAR, ratio, wrapped
from expost.panel._log import ResponseLog

__all__ = ["PairGaps", "TieComparison", "compare"]


Words = NDArray[np.int64]

# Pairs of values that are compared at once stay in the second-level cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class PairGaps:
    """Amounts added to the difference of ℓ for every pair of values: doubles, and words."""

    doubles: Floats
    words: Words
    #: The exact amount of one pair.
    exact: Callable[[int, int], Nats]


@dataclass(frozen=True, slots=True)
class TieComparison:
    """Whether the largest sum over pairs of values is within a budget, or above it."""

    within: Bools
    above: Bools


def compare(
    values: Floats, slack: Floats, indices: Indices, log: ResponseLog, gaps: PairGaps, budget: Nats
) -> TieComparison:
    """Compare max ℓ(x) - ℓ(x') + D(x, x') with a budget, for subjects who are close to it.

    ``values`` has a column of doubles for each subject, and ``slack`` is what a difference of two
    of them plus D may be off. Pairs that doubles put on one side are left at that. Of all others
    the distance from the budget is worked out in words; it is exact to a few units of 2^-80. Where
    that is not enough, products of exact weights decide.
    """
    count, goal = len(indices), wrapped(budget.scaled(FIXED_BITS))
    within = np.ones(count, dtype=np.bool_)
    size = max(1, _BLOCK // len(values))
    for members in blocks(count, size):
        tallies = _tallies(log, indices[members])
        close_pairs = _close_pairs(values[:, members], slack[members], gaps, budget.enclosure.upper)
        words, exchanges = _words(len(values), tallies, len(indices[members]))
        # Every word is less than two below, for a response, for D and for the budget.
        blur = (4 * exchanges + 8).take(close_pairs.subject_of)
        distance = _cells(words, close_pairs.first, close_pairs.subject_of)
        distance -= _cells(words, close_pairs.second, close_pairs.subject_of)
        distance += _cells(gaps.words - goal, close_pairs.first, close_pairs.second)
        over = close_pairs.surely_above | (distance > blur)
        undecided = np.flatnonzero(~over & (distance > -blur))
        over[undecided] = ~_decide_exactly(tallies, close_pairs, undecided, gaps, budget)
        within[members][close_pairs.subject_of[over]] = False
    too_uncertain = slack >= NEAR
    return TieComparison(within & ~too_uncertain, ~within & ~too_uncertain)


def _cells(table: Words, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Words:
    """Return cells of a table by rows and columns; faster than an index of both."""
    return np.asarray(table.ravel().take(rows * table.shape[1] + columns))


@dataclass(frozen=True, slots=True)
class _ClosePairs:
    """Pairs of values that are not surely within the budget, and whose they are."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    subject_of: NDArray[np.intp]
    #: Whether the pair is surely above the budget.
    surely_above: Bools


def _close_pairs(values: Floats, slack: Floats, gaps: PairGaps, limit: float) -> _ClosePairs:
    count = len(slack)
    # Most values are too far below all others, whatever is added to their difference.
    reach = values - values.min(axis=0)
    reach += (gaps.doubles.max(axis=1) - limit)[:, None]
    first, subject_of = np.divmod(np.flatnonzero(reach >= -2 * slack), count)
    over = values.ravel().take(first * count + subject_of) - values.take(subject_of, axis=1)
    over += (gaps.doubles.T - limit).take(first, axis=1)
    near_rows = np.flatnonzero(over >= -slack.take(subject_of))
    second, pair = np.divmod(near_rows, max(1, len(subject_of)))
    first, subject_of = first.take(pair), subject_of.take(pair)
    return _ClosePairs(
        first, second, subject_of, over.ravel().take(near_rows) > slack.take(subject_of)
    )


def _decide_exactly(
    tallies: _Tallies,
    close_pairs: _ClosePairs,
    pairs: NDArray[np.intp],
    gaps: PairGaps,
    budget: Nats,
) -> Bools:
    """Compare pairs with a budget by products of weights; equal products are compared once.

    Nearly all that gets here are ties in earnest, and those have few different products.
    """
    within = np.empty(len(pairs), dtype=np.bool_)
    values = close_pairs.first[pairs] * len(gaps.doubles) + close_pairs.second[pairs]
    for pair in np.unique(values).tolist():
        members = np.flatnonzero(values == pair)
        first, second = divmod(pair, len(gaps.doubles))
        powers = _powers(tallies, first, second, close_pairs.subject_of[pairs[members]])
        bases = list(powers)
        rows = np.array([powers[base] for base in bases]).reshape(len(bases), len(members))
        distinct, index_of = np.unique(rows, axis=1, return_inverse=True)
        gap = gaps.exact(first, second)
        fits = []
        for exponent_column in distinct.T.tolist():
            product = Counter(dict(zip(bases, exponent_column, strict=True)))
            fits.append(Nats.of(ExactSum.product(product)) + gap <= budget)
        within[members] = np.array(fits, dtype=np.bool_)[index_of.ravel()]
    return within


def _powers(
    tallies: _Tallies, first: int, second: int, subject_of: NDArray[np.intp]
) -> dict[int, NDArray[np.int64]]:
    """Divide the likelihood of one value by that of another: exponents by base."""
    powers: dict[int, NDArray[np.int64]] = {}
    for compiled, (codes, response_counts) in tallies.items():
        for code, counts in zip(codes.tolist(), response_counts[:, subject_of], strict=True):
            position = compiled.positions[code]
            net = ratio(*compiled.likelihood.powers(position, [first, second]))
            for base, power in net.items():
                if power:
                    powers[base] = powers.get(base, 0) + power * counts
    return powers


#: For each query the codes that occur, and how often each subject gave each of them.
_Tallies = dict[CompiledFiniteQuery, tuple[NDArray[np.intp], NDArray[np.int64]]]


def _tallies(log: ResponseLog, indices: Indices) -> _Tallies:
    """Count the responses of some subjects."""
    result: _Tallies = {}
    for compiled, response_counts in log.tallies(indices).items():
        assert isinstance(compiled, CompiledFiniteQuery)
        occurring = np.flatnonzero(response_counts.any(axis=1))
        if len(occurring):
            result[compiled] = occurring, response_counts[occurring]
    return result


def _words(size: int, tallies: _Tallies, count: int) -> tuple[Words, NDArray[np.int64]]:
    """Compute ℓ of some subjects in words, modulo 2^64, and count the responses of each.

    That is their tallies times the words of responses.
    """
    words = np.zeros((size, count), dtype=np.int64)
    exchanges = np.zeros(count, dtype=np.int64)
    for compiled, (codes, response_counts) in tallies.items():
        exchanges += response_counts.sum(axis=0)
        for exponent_column, members in zip(compiled.fixed(codes).T, response_counts, strict=True):
            words += exponent_column[:, None] * members
    return words, exchanges

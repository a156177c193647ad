"""Losses that doubles cannot tell from a budget: compared in words, and what is left exactly.

Proof: docs/theory/panels.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Floats, Indices
from expost.numbers import ExactSum, Nats
from expost.panel._compiled_query import FiniteQuestion
from expost.panel._differences import FIXED_BITS, NEAR, ratio, wrapped
from expost.panel._log import Log

__all__ = ["Apart", "Compared", "compare"]


Words = NDArray[np.int64]

# Pairs of values that are compared at once stay in the second-level cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Apart:
    """What is added to the difference of ℓ for every pair of values: doubles, and words."""

    doubles: Floats
    words: Words
    exact: Callable[[int, int], Nats]
    """The same exactly, for one pair."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Where the largest sum over pairs of values is within a budget, and where it is above."""

    within: Bools
    above: Bools


def compare(
    values: Floats, slack: Floats, places: Indices, log: Log, apart: Apart, budget: Nats
) -> Compared:
    """Compare max ℓ(x) - ℓ(x') + D(x, x') with a budget, for subjects who are close to it.

    ``values`` has a column of doubles for each subject, and ``slack`` is what a difference of two
    of them plus D may be off. Pairs that doubles put on one side are left at that. Of all others
    the distance from the budget is worked out in words; it is exact to a few units of 2^-80. Where
    that is not enough, products of exact weights decide.
    """
    count, goal = len(places), wrapped(budget.scaled(FIXED_BITS))
    within = np.ones(count, dtype=np.bool_)
    size = max(1, _BLOCK // len(values))
    for start in range(0, count, size):
        own = slice(start, start + size)
        tallies = _tallies(log, places[own])
        close = _close(values[:, own], slack[own], apart, budget.enclosure.upper)
        words, exchanges = _words(len(values), tallies, len(places[own]))
        # Every word is less than two below, for a response, for D and for the budget.
        blur = (4 * exchanges + 8).take(close.whose)
        distance = _cells(words, close.first, close.whose)
        distance -= _cells(words, close.other, close.whose)
        distance += _cells(apart.words - goal, close.first, close.other)
        over = close.surely | (distance > blur)
        open_ = np.flatnonzero(~over & (distance > -blur))
        over[open_] = ~_exactly(tallies, close, open_, apart, budget)
        within[own][close.whose[over]] = False
    far = slack >= NEAR
    return Compared(within & ~far, ~within & ~far)


def _cells(table: Words, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Words:
    """Some cells of a table, each by its row and its column; faster than by an index of both."""
    return np.asarray(table.ravel().take(rows * table.shape[1] + columns))


@dataclass(frozen=True, slots=True)
class _Close:
    """Pairs of values that are not surely within the budget, and whose they are."""

    first: NDArray[np.intp]
    other: NDArray[np.intp]
    whose: NDArray[np.intp]
    surely: Bools
    """Where the pair is surely above it."""


def _close(values: Floats, slack: Floats, apart: Apart, limit: float) -> _Close:
    count = len(slack)
    # Most values are too far below all others, whatever is added to their difference.
    reach = values - values.min(axis=0)
    reach += (apart.doubles.max(axis=1) - limit)[:, None]
    first, whose = np.divmod(np.flatnonzero(reach >= -2 * slack), count)
    over = values.ravel().take(first * count + whose) - values.take(whose, axis=1)
    over += (apart.doubles.T - limit).take(first, axis=1)
    near = np.flatnonzero(over >= -slack.take(whose))
    other, pair = np.divmod(near, max(1, len(whose)))
    first, whose = first.take(pair), whose.take(pair)
    return _Close(first, other, whose, over.ravel().take(near) > slack.take(whose))


def _exactly(
    tallies: _Tallies, close: _Close, pairs: NDArray[np.intp], apart: Apart, budget: Nats
) -> Bools:
    """Whether pairs are within a budget, by products of weights; equal products are compared once.

    Nearly all that gets here are ties in earnest, and those have few different products.
    """
    within = np.empty(len(pairs), dtype=np.bool_)
    values = close.first[pairs] * len(apart.doubles) + close.other[pairs]
    for pair in np.unique(values).tolist():
        own = np.flatnonzero(values == pair)
        first, other = divmod(pair, len(apart.doubles))
        powers = _powers(tallies, first, other, close.whose[pairs[own]])
        bases = list(powers)
        rows = np.array([powers[base] for base in bases]).reshape(len(bases), len(own))
        different, which = np.unique(rows, axis=1, return_inverse=True)
        added = apart.exact(first, other)
        fits = []
        for column in different.T.tolist():
            product = Counter(dict(zip(bases, column, strict=True)))
            fits.append(Nats.of(ExactSum.product(product)) + added <= budget)
        within[own] = np.array(fits, dtype=np.bool_)[which.ravel()]
    return within


def _powers(
    tallies: _Tallies, first: int, other: int, whose: NDArray[np.intp]
) -> dict[int, NDArray[np.int64]]:
    """By how much the likelihood of one value exceeds that of another: exponents by base."""
    powers: dict[int, NDArray[np.int64]] = {}
    for question, (codes, tally) in tallies.items():
        for code, counts in zip(codes.tolist(), tally[:, whose], strict=True):
            position = question.positions[code]
            net = ratio(*question.likelihood.powers(position, [first, other]))
            for base, power in net.items():
                if power:
                    powers[base] = powers.get(base, 0) + power * counts
    return powers


_Tallies = dict[FiniteQuestion, tuple[NDArray[np.intp], NDArray[np.int64]]]
"""For each question the codes that occur, and how often each subject gave each of them."""


def _tallies(log: Log, places: Indices) -> _Tallies:
    """How often some subjects gave which response."""
    result: _Tallies = {}
    for question, tally in log.tallies(places).items():
        assert isinstance(question, FiniteQuestion)
        known = np.flatnonzero(tally.any(axis=1))
        if len(known):
            result[question] = known, tally[known]
    return result


def _words(size: int, tallies: _Tallies, count: int) -> tuple[Words, NDArray[np.int64]]:
    """ℓ of some subjects in words, modulo 2^64, and how many responses each gave.

    That is their tallies times the words of responses.
    """
    words = np.zeros((size, count), dtype=np.int64)
    exchanges = np.zeros(count, dtype=np.int64)
    for question, (codes, tally) in tallies.items():
        exchanges += tally.sum(axis=0)
        for column, own in zip(question.fixed(codes).T, tally, strict=True):
            words += column[:, None] * own
    return words, exchanges

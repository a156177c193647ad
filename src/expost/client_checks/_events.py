"""The tested events of a client's responses, and their claimed probabilities.

If a query has few responses, the events are each of them, and for numbers also "at most" each of
them. Texts of bits and subsets are astronomically many: there the events are each bit, and for two
inputs the bit of one without that of the other, which tells the two apart best. The claimed
probability of an event is summed from the query's own probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, permutations
from typing import Any, TypeVar

import numpy as np

from expost.errors import InvalidInput
from expost.queries import BitProbabilities, LazyResponses, Likelihood, Pairwise

__all__ = ["Event", "Reports", "events"]

Reports = Mapping[Any, Counter[int]]
"""For each input, by its place, how often each response was given, by its position."""

_MOST_CELLS = 1_000_000
_MANY = 32
_FEW = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: for some inputs, how often it occurred and how likely it is claimed to be."""

    name: str
    inputs: tuple[int, ...]
    """Indices of inputs in the order of the reports; the fields below have an entry for each."""
    hits: tuple[int, ...]
    trials: tuple[int, ...]
    claimed: tuple[Fraction, ...]
    pooled: bool = False
    """True if it only makes sense for all inputs together, as a different set for each."""


def events(likelihood: Likelihood[Any], reports: Reports) -> Iterator[Event]:
    """Yield the events to test; they depend on the query and on the inputs only."""
    claim = likelihood.bits(next(iter(reports))) if isinstance(likelihood, Pairwise) else None
    if isinstance(likelihood, Pairwise) and claim is not None:
        yield from _events_of_bits(likelihood, claim, reports)
        responses = likelihood.responses
        if isinstance(responses, LazyResponses) and responses.size > _FEW:
            return
    yield from _events_of_responses(likelihood, reports)


def _events_of_responses(likelihood: Likelihood[Any], reports: Reports) -> Iterator[Event]:
    responses = likelihood.responses
    if len(responses) * len(reports) > _MOST_CELLS:
        raise InvalidInput(
            f"{len(reports):,} inputs and {len(responses):,} responses are too many to compare; "
            f"their product can be at most {_MOST_CELLS:,}"
        )
    inputs = tuple(range(len(reports)))
    trials = tuple(counts.total() for counts in reports.values())
    pmfs = [likelihood.pmf(place) for place in reports]
    claimed = [[_claimed(pmf.weight(y), pmf.total) for y in range(len(responses))] for pmf in pmfs]
    hits = [[counts[y] for y in range(len(responses))] for counts in reports.values()]
    for y, response in enumerate(responses):
        name = f"output {_shown(response)}"
        yield Event(name, inputs, _at(y, hits), trials, _at(y, claimed))
    if isinstance(likelihood, Pairwise):
        if not isinstance(responses, LazyResponses):  # otherwise this is the bit of the input
            yield _own(likelihood, reports, claimed)
    elif isinstance(responses, range) and len(responses) > _MANY:
        sums = [list(accumulate(row)) for row in hits]
        totals = [list(accumulate(row)) for row in claimed]
        for y in range(len(responses) - 1):
            name = f"output at most {responses[y]}"
            yield Event(name, inputs, _at(y, sums), trials, _at(y, totals))


# Most inputs share a few probabilities.
@lru_cache(maxsize=1 << 12)
def _claimed(weight: int, total: int) -> Fraction:
    """Return a probability, rounded up to a multiple of 2⁻²⁵⁶ if it has too many digits.

    Bounds on tails allow for more than that.
    """
    if total.bit_length() <= 2048:
        return Fraction(weight, total)
    return Fraction(-((-weight << 256) // total), 1 << 256)


def _at(position: int, table: Sequence[Sequence[T]]) -> tuple[T, ...]:
    return tuple(row[position] for row in table)


def _own(likelihood: Pairwise, reports: Reports, claimed: Sequence[Sequence[Fraction]]) -> Event:
    """Return the event that the response speaks for the input, pooled over inputs."""
    speakers = {
        position: likelihood.supported_values(position)
        for position in range(len(likelihood.responses))
    }
    hits, shares = [], []
    for (place, counts), row in zip(reports.items(), claimed, strict=True):
        own = [position for position, values in speakers.items() if values[place]]
        hits.append(sum(counts[position] for position in own))
        shares.append(sum((row[position] for position in own), start=Fraction(0)))
    trials = tuple(counts.total() for counts in reports.values())
    name = "output that speaks for the input"
    return Event(name, tuple(range(len(reports))), tuple(hits), trials, tuple(shares), pooled=True)


def _events_of_bits(
    likelihood: Pairwise, claim: BitProbabilities, reports: Reports
) -> Iterator[Event]:
    size, places = len(likelihood.domain), list(reports)
    cells = len(places) * (size + 2 * len(places))
    if cells > _MOST_CELLS:
        raise InvalidInput(
            f"{len(places):,} inputs and {size:,} bits are too many to compare; "
            f"there can be at most {_MOST_CELLS:,} comparisons"
        )
    ones = np.zeros((len(places), size), dtype=np.int64)
    with_own = np.zeros_like(ones)
    for index, (place, counts) in enumerate(reports.items()):
        for position, times in counts.items():
            bits = likelihood.supported_values(position)
            ones[index] += times * bits
            if bits[place]:
                with_own[index] += times * bits
    trials = [counts.total() for counts in reports.values()]
    names = [_shown(value) for value in likelihood.domain.values]
    everyone = tuple(range(len(places)))
    for bit in range(size):
        shares = tuple(claim.true_bit if place == bit else claim.other_bit for place in places)
        yield Event(
            f"bit of {names[bit]}", everyone, tuple(ones[:, bit].tolist()), tuple(trials), shares
        )
    for first, second in permutations(range(len(places)), 2):
        one, other = places[first], places[second]
        yield Event(
            f"bit of {names[one]} without that of {names[other]}",
            (first, second),
            (
                int(ones[first, one] - with_own[first, other]),
                int(ones[second, one] - with_own[second, one]),
            ),
            (trials[first], trials[second]),
            (claim.only_true, claim.only_other),
        )
    own = [int(ones[index, place]) for index, place in enumerate(places)]
    yield _pool("bit of the input", own, trials, claim.true_bit)
    if claim.independent and size > 1:
        others = (ones.sum(axis=1) - own).tolist()
        yield _pool("other bits", others, [n * (size - 1) for n in trials], claim.other_bit)


def _pool(name: str, hits: Sequence[int], trials: Sequence[int], share: Fraction) -> Event:
    inputs = tuple(range(len(hits)))
    return Event(name, inputs, tuple(hits), tuple(trials), (share,) * len(hits), pooled=True)


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"

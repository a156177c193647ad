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
from typing import Any

import numpy as np

from expost._format import shorten
from expost.errors import InvalidInput
from expost.queries import BitProbabilities, LazyResponses, Likelihood, Pairwise

__all__ = ["Event", "Reports", "events"]

#: For each input, by its position, how often each response was given, by its position.
Reports = Mapping[Any, Counter[int]]

_MOST_CELLS = 1_000_000
_MOST_SINGLE_RESPONSES = 32
_MOST_RESPONSES_BESIDE_BITS = 64


@dataclass(frozen=True, slots=True)
class Event:
    """One event: for some inputs, how often it occurred and how likely it is claimed to be."""

    name: str
    #: Indices of inputs in the order of the reports; the fields below have an entry for each.
    inputs: tuple[int, ...]
    hits: tuple[int, ...]
    trials: tuple[int, ...]
    claimed: tuple[Fraction, ...]
    #: True if it only makes sense for all inputs together, as a different set for each.
    pooled: bool = False


def events(likelihood: Likelihood[Any], reports: Reports) -> Iterator[Event]:
    """Yield the events to test; they depend on the query and on the inputs only."""
    claim = likelihood.bits if isinstance(likelihood, Pairwise) else None
    if isinstance(likelihood, Pairwise) and claim is not None:
        yield from _events_of_bits(likelihood, claim, reports)
        responses = likelihood.responses
        if isinstance(responses, LazyResponses) and responses.size > _MOST_RESPONSES_BESIDE_BITS:
            return
    yield from _events_of_responses(likelihood, reports)


def _events_of_responses(likelihood: Likelihood[Any], reports: Reports) -> Iterator[Event]:
    responses = likelihood.responses
    if len(responses) * len(reports) > _MOST_CELLS:
        raise InvalidInput(
            f"got {len(reports):,} inputs and {len(responses):,} responses, too many to compare; "
            f"expected a product of at most {_MOST_CELLS:,}"
        )
    inputs = tuple(range(len(reports)))
    trials = tuple(counts.total() for counts in reports.values())
    pmfs = [likelihood.pmf(value) for value in reports]
    claimed = [
        [_round_claim(pmf.weight(y), pmf.total) for y in range(len(responses))] for pmf in pmfs
    ]
    hits = [[counts[y] for y in range(len(responses))] for counts in reports.values()]
    columns = zip(responses, zip(*hits, strict=True), zip(*claimed, strict=True), strict=True)
    for response, response_hits, shares in columns:
        yield Event(f"output {_shown(response)}", inputs, response_hits, trials, shares)
    if isinstance(likelihood, Pairwise):
        if not isinstance(responses, LazyResponses):  # otherwise this is the bit of the input
            yield _support_event(likelihood, reports, claimed)
    elif isinstance(responses, range) and len(responses) > _MOST_SINGLE_RESPONSES:
        hits_up_to = zip(*map(accumulate, hits), strict=True)
        claimed_up_to = zip(*map(accumulate, claimed), strict=True)
        columns = zip(responses[:-1], hits_up_to, claimed_up_to, strict=False)
        for response, response_hits, shares in columns:
            yield Event(f"output at most {response}", inputs, response_hits, trials, shares)


# Most inputs share a few probabilities.
@lru_cache(maxsize=1 << 12)
def _round_claim(weight: int, total: int) -> Fraction:
    """Return a probability, rounded up to a multiple of 2⁻²⁵⁶ if it has too many digits.

    Bounds on tails allow for more than that.
    """
    if total.bit_length() <= 2048:
        return Fraction(weight, total)
    return Fraction(-((-weight << 256) // total), 1 << 256)


def _support_event(
    likelihood: Pairwise, reports: Reports, claimed: Sequence[Sequence[Fraction]]
) -> Event:
    """Return the event that the response speaks for the input, pooled over inputs."""
    speakers = {
        position: likelihood.supported_values(position)
        for position in range(len(likelihood.responses))
    }
    hits, shares = [], []
    for (value, counts), row in zip(reports.items(), claimed, strict=True):
        supporting = [position for position, values in speakers.items() if values[value]]
        hits.append(sum(counts[position] for position in supporting))
        shares.append(sum((row[position] for position in supporting), start=Fraction(0)))
    trials = tuple(counts.total() for counts in reports.values())
    name = "output that speaks for the input"
    return Event(name, tuple(range(len(reports))), tuple(hits), trials, tuple(shares), pooled=True)


def _events_of_bits(
    likelihood: Pairwise, claim: BitProbabilities, reports: Reports
) -> Iterator[Event]:
    size, values = len(likelihood.domain), list(reports)
    cells = len(values) * (size + 2 * len(values))
    if cells > _MOST_CELLS:
        raise InvalidInput(
            f"got {len(values):,} inputs and {size:,} bits, which take {cells:,} comparisons; "
            f"expected at most {_MOST_CELLS:,}"
        )
    ones = np.zeros((len(values), size), dtype=np.int64)
    ones_with_own_bit = np.zeros_like(ones)
    for index, (place, counts) in enumerate(reports.items()):
        for position, times in counts.items():
            bits = likelihood.supported_values(position)
            ones[index] += times * bits
            if bits[place]:
                ones_with_own_bit[index] += times * bits
    trials = [counts.total() for counts in reports.values()]
    names = [_shown(value) for value in likelihood.domain.values]
    all_inputs = tuple(range(len(values)))
    for bit in range(size):
        shares = tuple(claim.true_bit if place == bit else claim.other_bit for place in values)
        yield Event(
            f"bit of {names[bit]}", all_inputs, tuple(ones[:, bit].tolist()), tuple(trials), shares
        )
    for first, second in permutations(range(len(values)), 2):
        first_value, second_value = values[first], values[second]
        yield Event(
            f"bit of {names[first_value]} without that of {names[second_value]}",
            (first, second),
            (
                int(ones[first, first_value] - ones_with_own_bit[first, second_value]),
                int(ones[second, first_value] - ones_with_own_bit[second, first_value]),
            ),
            (trials[first], trials[second]),
            (claim.only_true, claim.only_other),
        )
    own_bit_hits = [int(ones[index, place]) for index, place in enumerate(values)]
    yield _pool("bit of the input", own_bit_hits, trials, claim.true_bit)
    if claim.independent and size > 1:
        other_bit_hits = (ones.sum(axis=1) - own_bit_hits).tolist()
        yield _pool("other bits", other_bit_hits, [n * (size - 1) for n in trials], claim.other_bit)


def _pool(name: str, hits: Sequence[int], trials: Sequence[int], share: Fraction) -> Event:
    inputs = tuple(range(len(hits)))
    return Event(name, inputs, tuple(hits), tuple(trials), (share,) * len(hits), pooled=True)


def _shown(value: Any) -> str:
    return shorten(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))

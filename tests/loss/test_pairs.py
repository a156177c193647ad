"""Values that can be told apart: compared exactly, class by class."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.loss._on_set import ExactSums
from expost.loss._query_marginal import enclose, exact_worst_spread, widest_pair
from expost.numbers import Nats
from support import oracles
from support.random_cases import finite, nearly_tied, vectors


def test_values_told_apart_by_classes_are_compared_exactly_among_near_ties() -> None:
    factor = 1 + Fraction(1, 2**53)  # as small as what rounding does
    within_one_class = 0
    for seed in range(300):
        transcript = nearly_tied(seed)
        likelihoods = oracles.product(vectors(transcript), 6)
        total = finite(xp.Odometer(transcript))
        classes = np.array(random.Random(seed).choices(range(1 + seed % 4), k=6))

        def told_from(value: int, classes: NDArray[np.intp] = classes) -> NDArray[np.bool_]:
            return np.asarray(classes != classes[value])

        pairs = list(itertools.product(range(6), repeat=2))
        ratios = {(x, y): likelihoods[x] / likelihoods[y] for x, y in pairs}
        told = [(x, y) for x, y in pairs if classes[x] != classes[y]]
        widest = max((ratios[pair] for pair in told), default=None)
        expected = max(ratios.values())
        if widest is not None:
            expected = max(expected, widest * factor)
            exact = Nats(ratio=widest).enclosure
            pair = widest_pair(total.values, total.values, told_from)
            assert pair in told
            high, low = (float(total.values[place]) for place in pair)
            enclosure = enclose(high, low, total.error)
            assert enclosure.lower <= exact.lower
            assert exact.upper <= enclosure.upper
            within_one_class += widest < max(ratios.values())
        sums = ExactSums(total.domain, total.values, total.error, list(total.tally))
        found = exact_worst_spread(sums, told_from, Nats(ratio=factor) if told else Nats())
        assert found.ratio == expected
    assert within_one_class > 10  # else the classes would not matter

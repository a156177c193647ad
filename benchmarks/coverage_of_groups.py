"""The coverage of differences between groups, and of weighted estimates, by simulation.

Every subject answers one query about a yes-or-no value, at epsilon 1. The strata of a weighted
estimate have equal samples, and shares of 70 % and 30 % of the population; or weights are drawn
from a log-normal distribution, whatever the value is. What is printed is the share of 95 %
intervals with the truth, and their mean width. ``run`` says whether all of them are 93 % or more,
but for the error of the simulation.
"""

from __future__ import annotations

import math
import sys
import zlib
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.estimation import estimate_difference, estimate_distribution, estimate_mean

REPETITIONS = 500
LEAST = 0.93
SIZES = ((60, 300), (1_000, 1_000))
SHARES = ((0.5, 0.5), (0.1, 0.4), (0.0, 0.05))
DOMAIN = xp.FiniteSet(["no", "yes"])
RESPONSE = xp.randomized_response(epsilon=1)
BIT = xp.perturbation([0, 1], epsilon=1)
TRUE_RESPONSE = math.e / (math.e + 1)
Interval = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


def _answers(generator: Any, values: NDArray[np.bool_], by_likelihood: bool) -> xp.Answers:
    said = values ^ (generator.random(len(values)) >= TRUE_RESPONSE)
    query, labels = (RESPONSE, ("no", "yes")) if by_likelihood else (BIT, (0, 1))
    table = {
        "subject": np.arange(len(values)),
        "query": ["q"] * len(values),
        "response": [labels[yes] for yes in said.tolist()],
    }
    return xp.Answers(DOMAIN, {"q": query}, table)


def _likeliest_share(answers: xp.Answers, weights: Any = None) -> Interval:
    ends = estimate_distribution(answers, weights=weights).intervals([0, 1])
    return float(ends.estimate[0]), float(ends.lower[0]), float(ends.upper[0])


def _unbiased_share(answers: xp.Answers) -> Interval:
    found = estimate_mean(answers, "q")
    return found.mean, found.lower, found.upper


def difference(
    generator: Any, sizes: tuple[int, int], shares: tuple[float, float], by_likelihood: bool
) -> tuple[Interval, float]:
    """Return the difference between two drawn groups, and the true one."""
    share_of = _likeliest_share if by_likelihood else _unbiased_share
    intervals = [
        share_of(_answers(generator, generator.random(size) < share, by_likelihood))
        for size, share in zip(sizes, shares, strict=True)
    ]
    return estimate_difference(intervals[0], intervals[1], range=(0, 1)), shares[0] - shares[1]


def weighted(
    generator: Any, sizes: tuple[int, int], shares: tuple[float, float], by_stratum: bool
) -> tuple[Interval, float]:
    """Return the weighted share in a sample of both strata, and that in the population."""
    size = sum(sizes)
    is_first = np.arange(size) < size // 2
    truth = 0.7 * shares[0] + 0.3 * shares[1]
    if by_stratum:
        values = generator.random(size) < np.where(is_first, *shares)
        weights = np.where(is_first, 0.7, 0.3)
    else:
        values = generator.random(size) < truth
        weights = generator.lognormal(0.0, 0.7, size)
    answers = _answers(generator, values, by_likelihood=True)
    return _likeliest_share(answers, dict(enumerate(weights.tolist()))), truth


ROWS: dict[str, Any] = {
    "difference of shares, by likelihood": partial(difference, by_likelihood=True),
    "difference of means, unbiased": partial(difference, by_likelihood=False),
    "weighted strata, by likelihood": partial(weighted, by_stratum=True),
    "weights unrelated to values, by likelihood": partial(weighted, by_stratum=False),
}


def run(repetitions: int = REPETITIONS, wanted: tuple[str, ...] = ()) -> bool:
    """Measure all rows, or those with one of some words in their names."""
    holds = True
    cases = [(sizes, shares) for sizes in SIZES for shares in SHARES]
    heads = [
        f"{shares[0]:g} and {shares[1]:g}, n = {sizes[0]:,} and {sizes[1]:,}"
        for sizes, shares in cases
    ]
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}", flush=True)
    for name, estimate in ROWS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        cells = []
        for sizes, shares in cases:
            generator = np.random.default_rng(zlib.crc32(f"{name} {sizes} {shares}".encode()))
            hits, widths = [], []
            for _ in range(repetitions):
                (_, lower, upper), truth = estimate(generator, sizes, shares)
                hits.append(lower - 1e-5 <= truth <= upper + 1e-5)
                widths.append(upper - lower)
            error = math.sqrt(LEAST * (1 - LEAST) / repetitions)
            holds &= bool(np.mean(hits) >= LEAST - 2 * error)
            cells.append(f"{100 * np.mean(hits):.1f} ({np.mean(widths):.3f})")
            print(f"  {name}, {sizes}, {shares}: {cells[-1]}", file=sys.stderr, flush=True)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return holds


if __name__ == "__main__":
    sys.exit(0 if run(wanted=tuple(sys.argv[1:])) else 1)

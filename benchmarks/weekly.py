"""The share of a population in every week, at one guarantee: the errors of three designs.

Two thousand subjects who smoke or not, and who change that twice at most in a quarter. Everybody
has a budget of 2. All shares are estimated week by week from that week's responses:

    python -m benchmarks.weekly
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import expost as xp

SUBJECTS, POPULATIONS, WEEKS, CHANGES, START = 2_000, 5, 12, 2, 0.1
BUDGET = 2
EPSILONS = ("1/4", "1/3", "1/2")
"""What the filter is tried with, in each week."""

Bits = NDArray[np.int64]
"""What everybody's value is, or their response: a row for each week."""
NONE = -1
"""No response."""


@dataclass(frozen=True)
class Outcome:
    """What came of one way to ask."""

    way: str
    epsilon: str
    answers: float
    """Responses of a subject, on average."""
    fewest: int
    """Responses of a whole population in the week with the fewest."""
    error: float
    """The root of the mean squared error of a week's share, in percentage points."""

    def __str__(self) -> str:
        return f"{self.way:<34} {' '.join(f'{figure:>7}' for figure in self.figures)}"

    @property
    def figures(self) -> list[str]:
        """As they are shown."""
        return [self.epsilon, f"{self.answers:.1f}", f"{self.fewest:,}", f"{self.error:.1f}"]


def populations(generator: np.random.Generator) -> Bits:
    """Values by week, populations side by side; everybody changes 0 to CHANGES times."""
    everybody = SUBJECTS * POPULATIONS
    start = generator.random(everybody) < START
    weeks = generator.permuted(np.tile(np.arange(1, WEEKS), (everybody, 1)), axis=1)[:, :CHANGES]
    happens = np.arange(CHANGES) < generator.integers(0, CHANGES + 1, everybody)[:, None]
    changed = [((weeks <= week) & happens).sum(axis=1) for week in range(WEEKS)]
    return np.array([(start + count) % 2 for count in changed])


def chance(epsilon: str) -> float:
    """That a response is the truth, as it is drawn."""
    values = xp.FiniteSet([0, 1])
    pmf = xp.randomized_response(epsilon=epsilon).on(values).pmf(1)
    return float(pmf.probability(1))


def randomize(values: Bits, epsilon: str, generator: np.random.Generator) -> Bits:
    lies = generator.random(values.shape) >= chance(epsilon)
    return np.where(lies, 1 - values, values)


def one_week(values: Bits, generator: np.random.Generator) -> Bits:
    """Ask every subject about one random week, at the whole budget."""
    is_asked = generator.integers(0, WEEKS, values.shape[1]) == np.arange(WEEKS)[:, None]
    return np.where(is_asked, randomize(values, str(BUDGET), generator), NONE)


def filtered(values: Bits, epsilon: str, generator: np.random.Generator) -> Bits:
    """Ask every subject every week, as long as the filter accepts.

    A decision is a function of the transcript, so equal transcripts are decided about once.
    """
    filter_, query = xp.BayesianFilter(epsilon=BUDGET), xp.randomized_response(epsilon=epsilon)
    domain = xp.Attributes(smokes=xp.changing([0, 1], times=CHANGES))
    responses = randomize(values, epsilon, generator)
    odometers = [xp.Odometer(xp.Transcript(domain))]
    where = np.zeros(values.shape[1], dtype=np.intp)
    for week in range(WEEKS):
        about = query.about("smokes", at=week + 1)
        accepts = np.array([bool(filter_.decide(odometer, about)) for odometer in odometers])
        responses[week][~accepts[where]] = NONE
        # Equal transcripts with equal responses stay equal.
        keys, where = np.unique(3 * where + responses[week], return_inverse=True)
        steps = [divmod(key + 1, 3) for key in keys.tolist()]
        odometers = [
            odometers[before] if response == 0 else odometers[before].add(about, response - 1)
            for before, response in steps
        ]
    return responses


def error(responses: Bits, values: Bits, epsilon: str) -> float:
    """Compute the error over all weeks of all populations; a guess is one half."""
    truth, squares = chance(epsilon), []
    for population_responses, population_values in zip(
        _split_populations(responses), _split_populations(values), strict=True
    ):
        for week, value in zip(population_responses, population_values, strict=True):
            answered = week[week != NONE]
            ones = float(answered.mean()) if len(answered) else 0.5
            estimate = (ones - (1 - truth)) / (2 * truth - 1)
            squares.append((min(1.0, max(0.0, estimate)) - float(value.mean())) ** 2)
    return 100 * math.sqrt(np.mean(squares))


def _split_populations(rows: Bits) -> Iterator[Bits]:
    return iter(np.split(rows, POPULATIONS, axis=1))


def outcomes() -> list[Outcome]:
    """Measure the errors of all designs."""
    generator = np.random.default_rng(17)
    values, share = populations(generator), f"{BUDGET}/{WEEKS}"
    designs = [
        ("one random week", one_week(values, generator), str(BUDGET)),
        ("every week, by basic composition", randomize(values, share, generator), share),
    ]
    for epsilon in EPSILONS:
        designs.append(
            ("every week, as the filter accepts", filtered(values, epsilon, generator), epsilon)
        )
    return [_outcome(design, responses, values, epsilon) for design, responses, epsilon in designs]


def _outcome(design: str, responses: Bits, values: Bits, epsilon: str) -> Outcome:
    counts = [(population != NONE).sum(axis=1) for population in _split_populations(responses)]
    answers = float(np.sum(counts)) / responses.shape[1]
    return Outcome(design, epsilon, answers, int(np.min(counts)), error(responses, values, epsilon))


def run() -> bool:
    print(
        f"weekly shares of {SUBJECTS:,} subjects, {WEEKS} weeks, at most {CHANGES} changes, "
        f"budget {BUDGET}:\n  epsilon, answers of a subject, in the poorest week, error in points"
    )
    one_week_outcome, basic, *with_filter = outcomes()
    for outcome in (one_week_outcome, basic, *with_filter):
        print(f"  {outcome}")
    # What docs/how-to/changing.md says.
    return (
        one_week_outcome.error
        < min(outcome_of_filter.error for outcome_of_filter in with_filter)
        < basic.error
    )


if __name__ == "__main__":
    run()

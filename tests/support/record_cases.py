"""Random records and histories, small enough to list, and what is wrong with what is said of them.

The oracle lists every record and every sequence that its attributes allow, over all steps and not
only those that were asked about, and multiplies exact probabilities.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import Any

import expost as xp
from expost.loss import log_likelihood
from expost.numbers import Enclosure, Nats
from expost.queries import About, Query

__all__ = [
    "Records",
    "find_contradictions",
    "likelihoods",
    "list_records",
    "matching_indices",
    "random_record_case",
]

TINY = Fraction(1, 10**25)
MOST_LISTED = 300
RecordValues = dict[Any, Any]
"""A record: the value of each attribute, or its values by step where it changes."""


@dataclass(frozen=True)
class Records:
    """Attributes, what was asked of them and answered, and what is asked next."""

    domain: xp.Attributes
    steps: tuple[int, ...]
    transcript: xp.Transcript
    following: About


def sequences(values: Sequence[Any], change: Any, steps: Sequence[int]) -> Iterator[RecordValues]:
    """All sequences of values over steps that follow each other, as far as they are allowed."""
    for sequence in product(values, repeat=len(steps)):
        pairs = list(pairwise(sequence))
        if change.times is not None and sum(a != b for a, b in pairs) > change.times:
            continue
        if change.max_step is not None and any(abs(a - b) > change.max_step for a, b in pairs):
            continue
        yield dict(zip(steps, sequence, strict=True))


def list_records(
    domain: xp.Attributes, steps: Sequence[int], most: int | None = None
) -> list[RecordValues]:
    """All records; if there are more than so many, only a few more than these."""
    choices: list[list[Any]] = []
    for name in domain.names:
        values, change = domain[name].values.values, domain[name].change
        choices.append(list(values) if change is None else list(sequences(values, change, steps)))
    records = product(*choices) if most is None else islice(product(*choices), most + 1)
    return [dict(zip(domain.names, record, strict=True)) for record in records]


class RecordPositions:
    """Where every record is among the combinations that a query sees."""

    def __init__(self, query: About, domain: xp.Attributes, records: list[RecordValues]) -> None:
        part = domain.part(query.names)
        self._likelihood = query.query.on(part)
        self._pmfs = [self._likelihood.pmf(position) for position in range(len(part))]
        self._positions: list[int] = []
        for record in records:
            values = [record[name] for name in query.names]
            values_at_step = [
                value[query.step] if isinstance(value, dict) else value for value in values
            ]
            position = part.locate(values_at_step if len(values_at_step) > 1 else values_at_step[0])
            assert position is not None
            self._positions.append(position)

    def times(self, weights: list[int], position: int) -> list[int]:
        """These weights times those of one response; all probabilities have one denominator."""
        weight_at = [pmf.weight(position) for pmf in self._pmfs]
        return [w * weight_at[index] for w, index in zip(weights, self._positions, strict=True)]

    def largest(self) -> Fraction:
        """e^epsilon of the query, over all its responses and all combinations."""
        positions = range(len(self._likelihood.responses))
        rows = [[pmf.weight(position) for pmf in self._pmfs] for position in positions]
        return max(Fraction(max(row), min(row)) for row in rows)


def random_query(generator: random.Random, size: int, numeric: bool) -> Query:
    """A query of some family, for a part with so many combinations."""
    epsilon = generator.choice(["0.5", "1", "0.25", "1/3", "0.7"])
    kind = generator.randrange(10)
    if kind == 1:
        return xp.unary_encoding(epsilon=epsilon)
    if kind == 2 and size > 2:
        return xp.subset_selection(size=generator.randint(1, size - 1), epsilon=epsilon)
    if kind == 3:
        seed = f"{generator.randrange(2**32):08x}"
        return xp.local_hashing(seed=seed, buckets=generator.randint(2, 3), epsilon=epsilon)
    if kind == 4:
        weights = [[generator.randint(1, 4) for _ in range(3)] for _ in range(size)]
        return xp.channel([[Fraction(w, sum(row)) for w in row] for row in weights])
    if kind == 5:
        scores = [generator.randint(0, 4) / 4 for _ in range(size)]
        return xp.perturbation(scores, range=(0, 1), epsilon=epsilon)
    if kind == 6:
        order = 1 << size.bit_length()
        return xp.hadamard_response(order=order, epsilon=epsilon)
    if kind == 7:
        utility = [[generator.randint(0, 2) for _ in range(3)] for _ in range(size)]
        return xp.exponential_mechanism(utility, sensitivity=2, epsilon=epsilon)
    if kind == 8 and numeric:
        return xp.geometric(range=(0, 3), sensitivity=3, epsilon=epsilon)
    if kind == 9:  # what doubles cannot tell apart, and exact numbers can
        shares = [generator.randint(1, 2) + generator.randint(-1, 1) * TINY for _ in range(size)]
        return xp.channel([[share / 4, 1 - share / 4] for share in shares])
    return xp.randomized_response(epsilon=epsilon)


def random_record_case(generator: random.Random) -> Records:
    """A few attributes of a few values, some of which change, and a few exchanges about them."""
    while True:
        steps = tuple(range(1, 1 + generator.randint(2, 6)))
        domain = xp.Attributes(
            {f"a{i}": random_attribute(generator) for i in range(_random_count(generator))}
        )
        if len(list_records(domain, steps, MOST_LISTED)) <= MOST_LISTED:
            break
    transcript = xp.Transcript(domain)
    pool = [random_query_about(generator, domain, steps) for _ in range(generator.randint(1, 5))]
    for _ in range(generator.randint(0, 10)):
        query = generator.choice(pool)
        responses = query.on(domain).responses
        transcript = transcript.add_position(query, generator.randrange(min(64, len(responses))))
    following = generator.choice([*pool, random_query_about(generator, domain, steps)])
    return Records(domain, steps, transcript, following)


def _random_count(generator: random.Random) -> int:
    return generator.choice([1, 2, 2, 3, 3, 4])


def random_attribute(generator: random.Random) -> Any:
    """An attribute of two or three values, which may change."""
    size = generator.randint(2, 3)
    integers, labels = list(range(size)), [f"v{i}" for i in range(size)]
    kind = generator.random()
    if kind < 0.25:
        return integers
    if kind < 0.5:
        return labels
    if kind < 0.6:
        return xp.changing(integers)
    if kind < 0.9:
        values = generator.choice([integers, labels])
        return xp.changing(values, times=generator.randint(0, 3))
    return xp.changing(xp.integers(0, size - 1), max_step=generator.choice([0, 1, 2]))


def random_query_about(
    generator: random.Random, domain: xp.Attributes, steps: Sequence[int]
) -> About:
    """A query about one attribute or several, at a step where one of them changes."""
    count = generator.randint(1, min(3, len(domain.names)))
    names = generator.sample(domain.names, count)
    part = domain.part(tuple(names))
    numeric = count == 1 and not isinstance(part.values[0], str)
    changing = any(domain[name].change is not None for name in names)
    query = random_query(generator, len(part), numeric)
    return query.about(*names, at=generator.choice(steps) if changing else None)


def likelihoods(transcript: xp.Transcript, records: list[RecordValues]) -> list[int]:
    """How likely the responses are for each record, up to a common factor."""
    domain, weights = transcript.domain, [1] * len(records)
    assert isinstance(domain, xp.Attributes)
    for exchange in transcript.exchanges:
        assert isinstance(exchange.query, About)
        weights = RecordPositions(exchange.query, domain, records).times(weights, exchange.position)
    return weights


def matching_indices(wanted: RecordValues, records: list[RecordValues]) -> list[int]:
    """Which records have these values, of some of their attributes and at some steps."""

    def has(record: RecordValues) -> bool:
        return all(
            value.items() <= record[name].items()
            if isinstance(value, dict)
            else record[name] == value
            for name, value in wanted.items()
        )

    return [index for index, record in enumerate(records) if has(record)]


def find_contradictions(case: Records) -> list[str]:
    """What exact arithmetic over all records contradicts: losses, worst cases and decisions."""
    domain, query = case.domain, case.following
    records = list_records(domain, case.steps)
    weights = likelihoods(case.transcript, records)
    odometer = xp.Odometer(case.transcript)
    loss = Fraction(max(weights), min(weights))
    contradictions = _loss_contradictions("loss", odometer.exact_loss, odometer.loss, loss)
    at_once = log_likelihood(domain, case.transcript.exchanges)
    contradictions += _loss_contradictions(
        "loss at once", at_once.exact_loss, at_once.loss(xp.solver.Effort()), loss
    )
    responses = len(query.on(domain).responses)
    if responses > 70:
        return contradictions
    positions = RecordPositions(query, domain, records)
    after = [positions.times(weights, position) for position in range(responses)]
    worst = max(
        Fraction(max(likelihoods_after), min(likelihoods_after)) for likelihoods_after in after
    )
    worst_case = odometer.worst_after(query, 1, Nats(ratio=Fraction(2)))
    assert worst_case.exact is not None
    contradictions += _loss_contradictions("worst case", worst_case.exact(), worst_case.loss, worst)
    for name, guard, limit in (
        ("bayesian", xp.BayesianFilter, worst),
        ("simplified", xp.SimplifiedFilter, loss * positions.largest()),
    ):
        for ratio, expected in (
            (limit, True),
            (limit * (1 - TINY), False),
            (limit * (1 + TINY), True),
        ):
            if ratio > 1 and guard(ratio=ratio).decide(odometer, query).accepted != expected:
                contradictions.append(f"{name} at {ratio}: not {expected}")
    return contradictions


def _loss_contradictions(
    name: str, exact: Nats, enclosure: Enclosure, ratio: Fraction
) -> list[str]:
    expected = Nats(ratio=ratio)
    around = expected.enclosure
    contradictions = [] if exact == expected else [f"{name} {exact} is not {expected}"]
    if not enclosure.lower <= around.lower or not around.upper <= enclosure.upper:
        contradictions.append(f"{name} {around} is not within {enclosure}")
    return contradictions

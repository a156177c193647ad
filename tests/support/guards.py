"""Filters and replays on boxes of integers, beside the same on the finite set of their points.

On the set every decision and every loss is exact, so whatever is certain on the box has to agree.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import expost as xp
from expost.filters.filter import Filter
from expost.queries import Query

NAMES = "abc"
EPSILONS = ["0.1", "0.5", "1/3", "1", "2"]
KINDS: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]


@dataclass(frozen=True)
class Guarded:
    """A transcript with a filter and one query more, on a box of integers."""

    ranges: tuple[tuple[int, int], ...]
    asked: tuple[tuple[Query, Any], ...]
    query: Query
    guard: Filter
    nodes: int

    @cached_property
    def box(self) -> xp.Box:
        sides = (xp.integers(low, high) for low, high in self.ranges)
        return xp.Box(**dict(zip(NAMES, sides, strict=False)))

    @cached_property
    def points(self) -> xp.FiniteSet:
        names = NAMES[: len(self.ranges)]
        rows = itertools.product(*(range(low, high + 1) for low, high in self.ranges))
        return xp.FiniteSet([dict(zip(names, row, strict=True)) for row in rows])

    def transcript(self, domain: xp.Box | xp.FiniteSet) -> xp.Transcript:
        transcript = xp.Transcript(domain, self.guard)
        for query, response in self.asked:
            transcript = transcript.add(query, response)
        return transcript


def some_query(generator: random.Random, ranges: tuple[tuple[int, int], ...]) -> Query:
    """Any family that boxes have, with small weights so that many scores are equal."""
    weights: dict[str, float] = {name: generator.randint(-2, 2) for name in NAMES[: len(ranges)]}
    if not any(weights.values()):
        weights[NAMES[0]] = 1
    ends = [
        sum(
            weight * pair[weight * sign < 0]
            for weight, pair in zip(weights.values(), ranges, strict=True)
        )
        for sign in (-1, 1)
    ]
    low, high = min(ends), max(max(ends), min(ends) + 1)
    epsilon = generator.choice(EPSILONS)
    kind = generator.choice(["linear", "clipped", "logistic", "probit", "laplace", "piecewise"])
    if kind == "linear":
        return xp.linear(weights, range=(low, high), epsilon=epsilon)
    if kind == "clipped":
        middle = (low + high) / 2
        return xp.linear(weights, range=(middle - 1, middle + 1), clip=True, epsilon=epsilon)
    if kind in ("logistic", "probit"):
        slope = generator.choice([0.1, 1, 3])
        steep = {name: slope * weight for name, weight in weights.items()}
        return (xp.logistic if kind == "logistic" else xp.probit)(steep, epsilon=epsilon)
    if kind == "laplace":
        return xp.laplace(weights, range=(low, high), grid=1, epsilon=epsilon)
    first = generator.randint(int(low), int(high) - 1)
    ends_of_part = first, generator.randint(first + 1, int(high))
    window = generator.randint(1, 3)
    return xp.piecewise(weights, range=ends_of_part, grid=1, window=window, epsilon=epsilon)


def some_guarded(generator: random.Random) -> Guarded:
    """A transcript whose budget is often just about what it takes, or a little less."""
    ranges = tuple(
        (low, low + generator.randint(1, 3))
        for low in generator.choices(range(-2, 2), k=generator.randint(1, 3))
    )
    menu = [some_query(generator, ranges) for _ in range(generator.randint(1, 4))]
    start = Guarded(ranges, (), menu[0], xp.BayesianFilter(1), 1)
    place = generator.randrange(len(start.points))
    asked = []
    for query in generator.choices(menu, k=generator.randint(1, 8)):
        likelihood = query.on(start.points)
        pmf = likelihood.pmf(place)
        asked.append((query, likelihood.responses[pmf.pick(generator.randrange(pmf.total))]))
    query = generator.choice([*menu, some_query(generator, ranges)])
    free = Guarded(ranges, tuple(asked), query, xp.BayesianFilter(1000), 1)
    odometer = xp.Odometer(free.transcript(free.points))
    worst = xp.BayesianFilter(1000).decide(odometer, query).loss_at_worst.upper
    about = generator.choice([worst, odometer.peak.upper, odometer.loss.upper, worst / 2])
    budget = max(1e-3, about + generator.choice([0, 1e-13, 1e-9, 1e-3, -1e-3, 0.2, -0.2]))
    guard: Filter = generator.choice(KINDS)(repr(budget))
    if generator.random() < 0.2:
        guard = xp.ApproximateFilter(repr(budget), "1e-6")
    nodes = generator.choice([1, 20, 2000])
    return Guarded(ranges, tuple(asked), query, guard, nodes)


def complaints(case: Guarded) -> Iterator[str]:
    """What the box says for certain and the set contradicts."""
    effort = xp.Effort(nodes=case.nodes, gap=0.01)
    box = xp.Odometer(case.transcript(case.box), effort=effort)
    points = xp.Odometer(case.transcript(case.points))
    said, true = case.guard.decide(box, case.query), case.guard.decide(points, case.query)
    if said.accepted and not true.accepted:
        yield "accepted what is over the budget"
    if not said.accepted and not said.undecided and true.accepted:
        yield "refused for certain what is within the budget"
    if not isinstance(case.guard, xp.ApproximateFilter):
        yield from _outside("the worst case", said.loss_at_worst, true.loss_at_worst)
        if said.largest_epsilon is not None:
            fits = case.query.with_epsilon(Fraction(said.largest_epsilon))
            assert fits is not None
            if not case.guard.decide(points, fits).accepted:
                yield f"said that {said.largest_epsilon} fits"
    yield from _outside("the loss", case.guard.realized(box), points.loss)
    yield from _outside("the peak", box.peak, points.peak)
    once = xp.replay(box.transcript, nodes=case.nodes)
    truth = xp.replay(points.transcript)
    if once.kept is not None and once.kept is not truth.kept:
        yield f"replayed as kept: {once.kept}"
    if once.first_refused is not None and (truth.first_refused or math.inf) > once.first_refused:
        yield f"replayed as refused at {once.first_refused}"
    yield from _outside("the loss of the replay", once.loss, truth.loss)
    yield from _outside("the peak of the replay", once.peak, truth.peak)
    if once.kept and case.guard.pure and once.peak.upper > case.guard.budget.enclosure.upper:
        yield "an honest peak is above its budget"


def kept_exactly(transcript: xp.Transcript) -> tuple[bool, int | None]:
    """Whether the condition holds on every prefix, by the filter alone, exchange by exchange."""
    assert transcript.filter is not None
    guard = transcript.filter
    for count, exchange in enumerate(transcript.exchanges):
        prefix = xp.Odometer(transcript.first(count))
        if guard.pure and exchange.query.approximate:
            return False, count + 1
        if not guard.decide(prefix, exchange.query).accepted:
            return False, count + 1
    return True, None


def _outside(
    what: str, enclosure: xp.numbers.Enclosure, truth: xp.numbers.Enclosure
) -> Iterator[str]:
    if truth.upper < enclosure.lower or enclosure.upper < truth.lower:
        yield f"{what} {truth} is outside of {enclosure}"

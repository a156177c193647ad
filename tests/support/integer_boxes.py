"""Filters and replays on boxes of integers, beside the same on the finite set of their points.

On the set every decision and every loss is exact, so whatever is certain on the box has to agree.
Some boxes have a coordinate with categories, too, which finite queries are about; the set has a
column of zeros and ones for each of these.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import expost as xp
from expost.domains import FiniteSet
from expost.files.canonical import readable_tree
from expost.filters._filter import Filter
from expost.queries import About, FiniteLikelihood, Query, TableLikelihood, query_from_json
from expost.terms import as_weights

NAMES = "abc"
EPSILONS = ["0.1", "0.5", "1/3", "1", "2"]
LABELS = "xyz"
KINDS: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]


@dataclass(frozen=True)
class DecisionCase:
    """A transcript with a filter and one query more, on a box of integers and perhaps categories.

    Responses are given by their positions.
    """

    ranges: tuple[tuple[int, int], ...]
    asked: tuple[tuple[Query, int], ...]
    query: Query
    filter: Filter
    nodes: int
    labels: str = ""

    @cached_property
    def box(self) -> xp.Box:
        sides: dict[str, Any] = dict(
            zip(NAMES, itertools.starmap(xp.integers, self.ranges), strict=False)
        )
        return xp.Box(**sides, **({"d": xp.categories(*self.labels)} if self.labels else {}))

    @cached_property
    def points(self) -> xp.FiniteSet:
        names = [*NAMES[: len(self.ranges)], *(f"d={label}" for label in self.labels)]
        sides = [range(low, high + 1) for low, high in self.ranges]
        ones = [
            [int(k == label) for k in range(len(self.labels))] for label in range(len(self.labels))
        ]
        rows = itertools.product(itertools.product(*sides), ones or [[]])
        return xp.FiniteSet([dict(zip(names, [*row, *one], strict=True)) for row, one in rows])

    def flat(self, query: Query) -> Query:
        """The same query on the set of points."""
        if isinstance(query, About):
            return OfLabel(query.query, self.labels)
        tree = {"kind": query.kind, **query.tree()}
        weights = dict(tree["weights"])
        for label, weight in weights.pop("d", {}).items():
            weights[f"d={label}"] = weight
        return query_from_json(readable_tree({**tree, "weights": weights}))

    def on(self, query: Query, domain: xp.Box | xp.FiniteSet) -> Query:
        return query if isinstance(domain, xp.Box) else self.flat(query)

    def transcript(self, domain: xp.Box | xp.FiniteSet) -> xp.Transcript:
        transcript = xp.Transcript(domain, self.filter)
        for query, position in self.asked:
            transcript = transcript.add_position(self.on(query, domain), position)
        return transcript


@dataclass(frozen=True, eq=False)
class OfLabel(Query):
    """A query about the label of a point, each of whose responses is written out."""

    kind = "of_label"
    query: Query
    labels: str

    @property
    def epsilon(self) -> Fraction | None:  # type: ignore[override]
        return self.query.epsilon

    def tree(self) -> dict[str, Any]:
        return {"query": {"kind": self.query.kind, **self.query.tree()}, "labels": self.labels}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Query:
        raise NotImplementedError

    def with_epsilon(self, epsilon: Fraction) -> Query | None:
        query = self.query.with_epsilon(epsilon)
        return query and replace(self, query=query)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        likelihood = self.query.on(xp.FiniteSet(list(self.labels)))
        rows: Any = domain.values
        own = [row[-len(self.labels) :].index(1) for row in rows]
        pmfs = [likelihood.pmf(place) for place in range(len(self.labels))]
        columns = []
        for position in range(len(likelihood.responses)):
            weights = [pmf.weight(position) for pmf in pmfs]
            columns.append(as_weights([weights[place] for place in own], max(weights)))
        return TableLikelihood(domain, list(range(len(columns))), columns)


def some_about(generator: random.Random, labels: str) -> Query:
    """A query about the label, of any family that labels have."""
    epsilon, size = generator.choice(EPSILONS), len(labels)
    kind = generator.randrange(6)
    if kind == 0:
        query: Query = xp.unary_encoding(
            variant=generator.choice(["symmetric", "optimized"]), epsilon=epsilon
        )
    elif kind == 1:
        query = xp.subset_selection(size=generator.randint(1, size - 1), epsilon=epsilon)
    elif kind == 2:
        seed = f"{generator.randrange(2**32):08x}"
        query = xp.local_hashing(seed=seed, buckets=2, epsilon=epsilon)
    elif kind == 3:
        weights = [[generator.randint(1, 4) for _ in range(3)] for _ in labels]
        query = xp.channel([[Fraction(w, sum(row)) for w in row] for row in weights])
    elif kind == 4:
        scores = [generator.randint(0, 4) / 4 for _ in labels]
        query = xp.perturbation(scores, range=(0, 1), epsilon=epsilon)
    else:
        query = xp.randomized_response(epsilon=epsilon)
    return query.about("d")


def some_query(
    generator: random.Random, ranges: tuple[tuple[int, int], ...], labels: str = ""
) -> Query:
    """Any family that boxes have, with small weights so that many scores are equal."""
    if labels and generator.random() < 0.5:
        return some_about(generator, labels)
    weights: dict[str, Any] = {name: generator.randint(-2, 2) for name in NAMES[: len(ranges)]}
    if not any(weights.values()):
        weights[NAMES[0]] = 1
    by_label = {label: generator.randint(-1, 1) for label in labels} or {"": 0}
    ends = [
        sum(
            weight * pair[weight * sign < 0]
            for weight, pair in zip(weights.values(), ranges, strict=True)
        )
        + (max if sign < 0 else min)(by_label.values())
        for sign in (-1, 1)
    ]
    if labels:
        weights["d"] = by_label
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
        steep = {name: _times(slope, weight) for name, weight in weights.items()}
        return (xp.logistic if kind == "logistic" else xp.probit)(steep, epsilon=epsilon)
    if kind == "laplace":
        return xp.laplace(weights, range=(low, high), grid=1, epsilon=epsilon)
    first = generator.randint(int(low), int(high) - 1)
    ends_of_part = first, generator.randint(first + 1, int(high))
    window = generator.randint(1, 3)
    return xp.piecewise(weights, range=ends_of_part, grid=1, window=window, epsilon=epsilon)


def _times(slope: float, weight: Any) -> Any:
    if isinstance(weight, dict):
        return {label: slope * each for label, each in weight.items()}
    return slope * weight


def random_decision_case(generator: random.Random) -> DecisionCase:
    """A transcript whose budget is often just about what it takes, or a little less."""
    ranges = tuple(
        (low, low + generator.randint(1, 3))
        for low in generator.choices(range(-2, 2), k=generator.randint(1, 3))
    )
    labels = generator.choice(["", LABELS[: generator.randint(2, 3)]])
    menu = [some_query(generator, ranges, labels) for _ in range(generator.randint(1, 4))]
    start = DecisionCase(ranges, (), menu[0], xp.BayesianFilter(1), 1, labels)
    place = generator.randrange(len(start.points))
    asked = []
    for query in generator.choices(menu, k=generator.randint(1, 8)):
        pmf = start.flat(query).on(start.points).pmf(place)
        asked.append((query, pmf.pick(generator.randrange(pmf.total))))
    query = generator.choice([*menu, some_query(generator, ranges, labels)])
    free = DecisionCase(ranges, tuple(asked), query, xp.BayesianFilter(1000), 1, labels)
    odometer = xp.Odometer(free.transcript(free.points))
    worst = xp.BayesianFilter(1000).decide(odometer, free.flat(query)).loss_at_worst.upper
    about = generator.choice([worst, odometer.peak.upper, odometer.loss.upper, worst / 2])
    budget = max(1e-3, about + generator.choice([0, 1e-13, 1e-9, 1e-3, -1e-3, 0.2, -0.2]))
    filter_: Filter = generator.choice(KINDS)(repr(budget))
    if generator.random() < 0.2:
        filter_ = xp.ApproximateFilter(repr(budget), "1e-6")
    nodes = generator.choice([1, 20, 2000])
    return DecisionCase(ranges, tuple(asked), query, filter_, nodes, labels)


def complaints(case: DecisionCase) -> Iterator[str]:
    """What the box says for certain and the set contradicts."""
    effort = xp.solver.Effort(nodes=case.nodes, gap=0.01)
    box = xp.Odometer(case.transcript(case.box), effort=effort)
    points = xp.Odometer(case.transcript(case.points))
    said = case.filter.decide(box, case.query)
    true = case.filter.decide(points, case.flat(case.query))
    if said.accepted and not true.accepted:
        yield "accepted what is over the budget"
    if not said.accepted and not said.undecided and true.accepted:
        yield "refused for certain what is within the budget"
    if not isinstance(case.filter, xp.ApproximateFilter):
        yield from _outside("the worst case", said.loss_at_worst, true.loss_at_worst)
        if said.largest_epsilon is not None:
            fits = case.query.with_epsilon(Fraction(said.largest_epsilon))
            assert fits is not None
            if not case.filter.decide(points, case.flat(fits)).accepted:
                yield f"said that {said.largest_epsilon} fits"
    yield from _outside("the loss", case.filter.realized(box), points.loss)
    yield from _outside("the peak", box.peak, points.peak)
    once = xp.replay(box.transcript, nodes=case.nodes)
    truth = xp.replay(points.transcript)
    if once.respected is not None and once.respected is not truth.respected:
        yield f"replayed as respected: {once.respected}"
    if once.first_refused is not None and (truth.first_refused or math.inf) > once.first_refused:
        yield f"replayed as refused at {once.first_refused}"
    yield from _outside("the loss of the replay", once.loss, truth.loss)
    yield from _outside("the peak of the replay", once.peak, truth.peak)
    if once.respected and case.filter.pure and once.peak.upper > case.filter.budget.enclosure.upper:
        yield "an honest peak is above its budget"


def respected_exactly(transcript: xp.Transcript) -> tuple[bool, int | None]:
    """Whether the condition holds on every prefix, by the filter alone, exchange by exchange."""
    assert transcript.filter is not None
    filter_ = transcript.filter
    for count, exchange in enumerate(transcript.exchanges):
        prefix = xp.Odometer(transcript.first(count))
        if filter_.pure and exchange.query.approximate:
            return False, count + 1
        if not filter_.decide(prefix, exchange.query).accepted:
            return False, count + 1
    return True, None


def _outside(
    what: str, enclosure: xp.numbers.Enclosure, truth: xp.numbers.Enclosure
) -> Iterator[str]:
    if truth.upper < enclosure.lower or enclosure.upper < truth.lower:
        yield f"{what} {truth} is outside of {enclosure}"

"""Random channels, domains, menus and transcripts."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from hypothesis import strategies as st

import expost as xp
from expost.files.canonical import readable_tree
from expost.files.reading import parse
from expost.loss import Odometer
from expost.loss._on_set import SetLogLikelihood
from expost.numbers import Nats
from expost.queries import Query, query_from_json

EPSILONS = [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(5, 2)]


def exact_rows(size: int, *, zeros: bool = False) -> st.SearchStrategy[list[list[Fraction]]]:
    """Rows of exact probabilities, asymmetric in general."""

    def normalized(weights: list[list[int]]) -> list[list[Fraction]]:
        return [[Fraction(w, sum(row)) for w in row] for row in weights]

    def rows(width: int) -> st.SearchStrategy[list[list[int]]]:
        row = st.lists(st.integers(0 if zeros else 1, 9), min_size=width, max_size=width)
        return st.lists(row.filter(any), min_size=size, max_size=size)

    return st.integers(2, 3).flatmap(rows).map(normalized)


@cache
def queries(size: int, responses: int = 32) -> st.SearchStrategy[Query]:
    """A query of any family on 0, 1, …, size - 1, with so many responses at most."""
    scores = st.lists(st.floats(-1, 2, width=32), min_size=size, max_size=size)
    epsilons = st.sampled_from(EPSILONS)
    families: list[st.SearchStrategy[Query]] = [
        exact_rows(size).map(xp.channel),
        of_classes(size),
        st.builds(lambda s, e: xp.perturbation(s, range=(-1, 2), epsilon=e), scores, epsilons),
        noisy_integers(size, min(5, responses), epsilons),
        useful(size, epsilons),
        hashed(min(4, responses), epsilons),
        windows(min(8, responses), epsilons),
    ]
    if size <= responses:
        families.append(st.builds(lambda e: xp.randomized_response(epsilon=e), epsilons))
    if 2**size <= responses:
        variants = st.sampled_from(["symmetric", "optimized"])
        families.append(
            st.builds(lambda v, e: xp.unary_encoding(variant=v, epsilon=e), variants, epsilons)
        )
    if orders := [order for order in (2, 4, 8, 16) if size < order <= responses]:
        order = st.sampled_from(orders)
        families.append(
            st.builds(lambda k, e: xp.hadamard_response(order=k, epsilon=e), order, epsilons)
        )
    if sizes := [d for d in range(1, size) if math.comb(size, d) <= responses]:
        families.append(
            st.builds(
                lambda d, e: xp.subset_selection(size=d, epsilon=e),
                st.sampled_from(sizes),
                epsilons,
            )
        )
    return st.one_of(families)


def of_classes(size: int) -> st.SearchStrategy[Query]:
    """A channel over two classes of values."""
    others = st.lists(st.integers(0, 1), min_size=max(0, size - 2), max_size=max(0, size - 2))
    return st.builds(
        lambda rows, more: xp.channel(rows, of=[*range(min(size, 2)), *more]),
        exact_rows(min(size, 2)),
        others,
    )


Epsilons = st.SearchStrategy[Fraction]


def hashed(most: int, epsilons: Epsilons) -> st.SearchStrategy[Query]:
    """Local hashing into few buckets, so that values collide."""
    seeds = st.integers(0, 255).map("{:02x}".format)
    return st.builds(
        lambda s, g, e: xp.local_hashing(seed=s, buckets=g, epsilon=e),
        seeds,
        st.integers(2, most),
        epsilons,
    )


def windows(most: int, epsilons: Epsilons) -> st.SearchStrategy[Query]:
    """The piecewise mechanism with so few steps that values share them, and some are clipped."""
    return st.builds(
        lambda cells, window, shift, e: xp.piecewise(
            {"value": 1},
            intercept=shift,
            range=(0, 1.5 * cells),
            grid="1.5",
            window=min(window, most - cells),
            epsilon=e,
        ),
        st.integers(1, most - 1),
        st.integers(1, 4),
        st.sampled_from([0, -1, 0.5]),
        epsilons,
    )


def noisy_integers(size: int, most: int, epsilons: Epsilons) -> st.SearchStrategy[Query]:
    """Geometric noise on 0, 1, …, with ranges that leave some of them outside."""
    return st.builds(
        lambda low, width, more, e: xp.geometric(
            range=(low, low + width), sensitivity=max(1, size - 1) + more, epsilon=e
        ),
        st.integers(-2, size),
        st.integers(1, most - 1),
        st.integers(0, 2),
        epsilons,
    )


def useful(size: int, epsilons: Epsilons) -> st.SearchStrategy[Query]:
    """The exponential mechanism with two or three responses."""

    def mechanism(rows: list[list[int]], epsilon: Fraction) -> Query:
        ranges = [max(column) - min(column) for column in zip(*rows, strict=True)]
        return xp.exponential_mechanism(rows, sensitivity=max(1, *ranges), epsilon=epsilon)

    rows = st.integers(2, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-4, 4), min_size=width, max_size=width),
            min_size=size,
            max_size=size,
        )
    )
    return st.builds(mechanism, rows, epsilons)


def is_asymmetric(query: Query, domain: xp.FiniteSet) -> bool:
    """Whether its responses differ in what they tell."""
    return len({max(column) / min(column) for column in columns(query, domain)}) > 1


def columns(query: Query, domain: xp.FiniteSet) -> list[list[Fraction]]:
    """Pr(response | value) as fractions, read from the public pmf: one list per response."""
    likelihood = query.on(domain)
    pmfs = [likelihood.pmf(x) for x in range(len(domain))]
    return [[pmf.probability(y) for pmf in pmfs] for y in range(len(likelihood.responses))]


def table(query: Query, domain: xp.FiniteSet) -> dict[Any, list[Fraction]]:
    """The same by response."""
    responses = query.on(domain).responses
    return dict(zip(responses, columns(query, domain), strict=True))


def read_back(query: Query) -> Query:
    """A query after it was written to a file and read again."""
    return query_from_json(parse(json.dumps(readable_tree({"kind": query.kind, **query.tree()}))))


@dataclass(frozen=True)
class Menu:
    """What an analyst may ask on a domain, and the budget of the subject."""

    domain: xp.FiniteSet
    queries: tuple[Query, ...]
    budget: Nats

    @cached_property
    def _tables(self) -> dict[int, list[list[Fraction]]]:
        return {id(query): columns(query, self.domain) for query in self.queries}

    def columns(self, query: Query) -> list[list[Fraction]]:
        """Pr(response | value) of a query of this menu, worked out once."""
        return self._tables[id(query)]

    @property
    def limits(self) -> dict[str, Fraction | None]:
        """The budget as the oracles take it."""
        if self.budget.rational:
            return {"epsilon": self.budget.rational, "limit": None}
        return {"epsilon": None, "limit": self.budget.ratio}


@st.composite
def menus(
    draw: st.DrawFn, *, length: int = 3, asymmetric: bool = False, responses: int = 4
) -> Menu:
    """At least three values, a budget that some sequences meet, and not too many responses."""
    size = draw(st.integers(3, 4))
    domain = xp.FiniteSet(range(size))
    choices = queries(size, responses)
    if asymmetric:
        choices = choices.filter(lambda query: is_asymmetric(query, domain))
    asked = tuple(draw(st.lists(choices, min_size=length, max_size=length)))
    single = [columns(query, domain) for query in asked]
    ratios = sorted(max(column) / min(column) for table in single for column in table)
    kind = draw(st.sampled_from(["tie", "ratio", "epsilon"]))
    if kind == "tie":
        # A product of ratios that responses really reach, so that exact ties happen.
        factor = draw(st.sampled_from(ratios)) * draw(st.sampled_from(ratios))
        budget = Nats(ratio=max(factor, Fraction(11, 10)))
    elif kind == "ratio":
        budget = Nats(ratio=Fraction(draw(st.integers(12, 60)), 10))
    else:
        budget = Nats(Fraction(draw(st.integers(2, 30)), 10))
    return Menu(domain, asked, budget)


@st.composite
def transcripts(draw: st.DrawFn, *, most: int = 8) -> xp.Transcript:
    """A transcript of a few exchanges on a small domain, with possible responses only."""
    size = draw(st.integers(1, 5))
    domain = xp.FiniteSet(range(size))
    transcript = xp.Transcript(domain)
    for query in draw(st.lists(queries(size), max_size=most)):
        transcript = transcript.add(query, draw(st.sampled_from(list(query.on(domain).responses))))
    return transcript


def finite(odometer: Odometer) -> SetLogLikelihood:
    """The sums of an odometer over a finite domain."""
    assert isinstance(odometer.log_likelihood, SetLogLikelihood)
    return odometer.log_likelihood


def nearly_tied(seed: int) -> xp.Transcript:
    """Six values whose likelihoods are the same factors in other orders, give or take 2^-54."""
    generator = random.Random(seed)
    unit = 2**54
    factors = [generator.randrange(unit // 8, unit // 2) for _ in range(4)]
    orders = [generator.sample(factors, len(factors)) for _ in range(6)]
    rows = [[w + generator.choice([-1, 0, 0, 1]) for w in order] for order in orders]
    transcript = xp.Transcript(xp.FiniteSet(range(6)))
    for column in zip(*rows, strict=True):
        query = xp.channel([[Fraction(w, unit), 1 - Fraction(w, unit)] for w in column])
        transcript = transcript.add(query, 0)
    return transcript


def vectors(transcript: xp.Transcript) -> list[list[Fraction]]:
    """How likely each response that was given is, for every value."""
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    result = []
    for exchange in transcript.exchanges:
        position = exchange.query.on(domain).position(exchange.response)
        assert position is not None
        result.append(columns(exchange.query, domain)[position])
    return result

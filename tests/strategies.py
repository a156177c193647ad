"""Random channels, domains, menus and transcripts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hypothesis import strategies as st

import expost as xp
from expost.accounting import Odometer
from expost.likelihood import LogLikelihood
from expost.queries import Query
from expost.rounding import Nats

EPSILONS = [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(5, 2)]


def exact_rows(size: int, *, zeros: bool = False) -> st.SearchStrategy[list[list[Fraction]]]:
    """Rows of exact probabilities, asymmetric in general."""

    def normalized(weights: list[list[int]]) -> list[list[Fraction]]:
        return [[Fraction(w, sum(row)) for w in row] for row in weights]

    def rows(width: int) -> st.SearchStrategy[list[list[int]]]:
        row = st.lists(st.integers(0 if zeros else 1, 9), min_size=width, max_size=width)
        return st.lists(row.filter(any), min_size=size, max_size=size)

    return st.integers(2, 3).flatmap(rows).map(normalized)


def queries(size: int) -> st.SearchStrategy[Query]:
    """A query of any family on a finite domain with this many values."""
    scores = st.lists(st.floats(-1, 2, width=32), min_size=size, max_size=size)
    epsilons = st.sampled_from(EPSILONS)
    return st.one_of(
        exact_rows(size).map(xp.channel),
        st.builds(lambda e: xp.randomized_response(epsilon=e), epsilons),
        st.builds(lambda s, e: xp.perturbation(s, range=(-1, 2), epsilon=e), scores, epsilons),
    )


def is_asymmetric(query: Query, domain: xp.FiniteSet) -> bool:
    """Whether its responses differ in what they tell."""
    return len({max(column) / min(column) for column in columns(query, domain)}) > 1


def columns(query: Query, domain: xp.FiniteSet) -> list[list[Fraction]]:
    """Pr(response | value) as fractions, read from the public pmf: one list per response."""
    likelihood = query.on(domain)
    pmfs = [likelihood.pmf(x) for x in range(len(domain))]
    return [[pmf.probability(y) for pmf in pmfs] for y in range(len(likelihood.responses))]


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
def menus(draw: st.DrawFn, *, length: int = 3, asymmetric: bool = False) -> Menu:
    """At least three values, and a budget that some sequences meet."""
    size = draw(st.integers(3, 4))
    domain = xp.FiniteSet(range(size))
    choices = queries(size)
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


def finite(odometer: Odometer) -> LogLikelihood:
    """The sums of an odometer over a finite domain."""
    assert isinstance(odometer.log_likelihood, LogLikelihood)
    return odometer.log_likelihood

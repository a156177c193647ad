"""Studies that are really carried out, each strategy by the means that a user has.

Nothing of the room ``designs`` is used: subjects are asked on panels and sessions, and shares are
estimated by :func:`expost.estimation.estimate_distribution`. So errors that come out can be held
against those that were predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.saturation import equal_caps, geometric_caps

__all__ = ["DELTA", "SURVEYED", "Survey"]

Floats = NDArray[np.float64]
_GAP = 1e-3
DELTA = Fraction(1, 10**6)
_GRID = 10**4


@dataclass(frozen=True)
class Survey:
    """Yes-or-no questions about values that are drawn from a population."""

    chances: Floats
    questions: NDArray[np.intp]
    """A row for each: 1 where the answer is yes."""
    epsilon: Fraction
    subjects: int

    @classmethod
    def random(
        cls, size: int, questions: int, epsilon: Fraction, subjects: int, seed: int
    ) -> Survey:
        """A random population, and questions about random halves of the values."""
        generator = np.random.default_rng([seed, size, questions, *epsilon.as_integer_ratio()])
        rows: list[NDArray[np.intp]] = []
        while len(rows) < questions:
            row = (generator.random(size) < 0.5).astype(np.intp)
            if 0 < row.sum() < size:
                rows.append(row)
        return cls(generator.dirichlet(np.ones(size)), np.array(rows), epsilon, subjects)

    @classmethod
    def about_attributes(
        cls, sizes: Sequence[int], questions: int, epsilon: Fraction, subjects: int, seed: int
    ) -> Survey:
        """The same of records: each question is about one attribute.

        Nothing is asked twice, not its opposite either, before all was asked.
        """
        size = math.prod(sizes)
        generator = np.random.default_rng([seed, *sizes, questions, *epsilon.as_integer_ratio()])
        places = np.indices(sizes).reshape(len(sizes), size)
        asked = [
            (attribute, some)
            for attribute, values in enumerate(sizes)
            for count in range(1, values)
            for some in combinations(range(values - 1), count)
        ]
        order = np.resize(generator.permutation(len(asked)), questions)
        rows = [np.isin(places[asked[place][0]], asked[place][1]) for place in order]
        turned = generator.random(questions) < 0.5
        table = (np.array(rows) ^ turned[:, None]).astype(np.intp)
        return cls(generator.dirichlet(np.ones(size)), table, epsilon, subjects)

    @cached_property
    def joined(self) -> Survey:
        """The same about combinations of answers, where only the questions are asked.

        What questions do not tell apart is as likely after every answer, for a filter and for an
        estimate. On very many values this takes much less.
        """
        rows = np.unique(self.questions.T, axis=0)
        chances = np.bincount(self.combination, self.chances).astype(np.float64)
        return Survey(chances, rows.T, self.epsilon, self.subjects)

    @cached_property
    def combination(self) -> NDArray[np.intp]:
        """Where each value is among those."""
        _, of = np.unique(self.questions.T, axis=0, return_inverse=True)
        return of.reshape(-1).astype(np.intp)

    @property
    def domain(self) -> xp.FiniteSet:
        return xp.FiniteSet(range(len(self.chances)))

    def query(self, number: int, epsilon: Fraction) -> xp.queries.Query:
        return xp.perturbation(self.questions[number].tolist(), range=(0, 1), epsilon=epsilon)

    def mean_square(self, design: str, seed: int) -> float:
        """How far off the shares are, after all of it was done once."""
        sizes = *self.questions.shape, *self.epsilon.as_integer_ratio()
        generator = np.random.default_rng([seed, *sizes, *design.encode()])
        values = generator.choice(len(self.chances), size=self.subjects, p=self.chances)
        return SURVEYED[design](self, values, generator)

    def panel(self, guard: xp.filters.Filter, seed: int) -> xp.Panel:
        return xp.Panel(
            self.domain,
            filter=guard,
            subjects=range(self.subjects),
            source=xp.sampling.InsecureSource(seed),
        )

    def off(self, panel: xp.Panel) -> float:
        found = xp.estimation.estimate_distribution(panel.answers(), gap=_GAP)
        off = self.questions @ (found.probabilities - self.chances)
        return float((off**2).mean())


Surveyed = Callable[[Survey, NDArray[np.intp], np.random.Generator], float]


def joined(design: Surveyed) -> Surveyed:
    """The same on combinations of answers."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        return design(survey.joined, survey.combination[values], generator)

    return done


def basic(asked: int | None) -> Surveyed:
    """So many sampled questions for each subject, at equal parts of the budget."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        often = len(survey.questions) if asked is None else asked
        guard = xp.BasicFilter(epsilon=survey.epsilon)
        return planned(survey, values, generator, guard, often, survey.epsilon / often)

    return done


def declared(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
    """All questions under a budget with a delta, at the largest epsilon of which a plan has all."""
    count = len(survey.questions)
    low, high = int(survey.epsilon / count * _GRID), int(survey.epsilon * _GRID)
    while high - low > 1:
        middle = (low + high) // 2
        most = xp.filters.Declared.most(survey.epsilon, DELTA, Fraction(middle, _GRID))
        low, high = (middle, high) if most.plan[0][1] >= count else (low, middle)
    each = Fraction(low, _GRID)
    guard = xp.ApproximateFilter(survey.epsilon, DELTA, xp.filters.Declared({each: count}))
    return planned(survey, values, generator, guard, count, each)


def planned(
    survey: Survey,
    values: NDArray[np.intp],
    generator: np.random.Generator,
    guard: xp.filters.Filter,
    often: int,
    each: Fraction,
) -> float:
    """So many sampled questions for each subject, each at this epsilon; nobody is refused."""
    panel = survey.panel(guard, int(generator.integers(1 << 30)))
    count = len(survey.questions)
    whom = generator.random((survey.subjects, count)).argsort(axis=1) < often
    for number in range(count):
        own = np.flatnonzero(whom[:, number])
        replies = panel.ask(survey.query(number, each), values[own], own.tolist())
        assert replies.answered.all(), "a plan has room for what is in it"
    return survey.off(panel)


def once(hadamard: bool) -> Surveyed:
    """A full-value report, as basic composition accepts it: there is nothing else."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        size, epsilon = len(survey.chances), survey.epsilon
        chosen = max(1, round(size / (float(np.exp(float(epsilon))) + 1)))
        query: xp.queries.Query = xp.randomized_response(epsilon=epsilon)
        if hadamard:
            query = xp.hadamard_response(order=1 << size.bit_length(), epsilon=epsilon)
        elif chosen > 1:
            query = xp.subset_selection(size=min(chosen, size - 1), epsilon=epsilon)
        panel = survey.panel(xp.BasicFilter(epsilon=epsilon), int(generator.integers(1 << 30)))
        panel.ask(query, values)
        return survey.off(panel)

    return done


def filtered(part: Fraction, rounds: int) -> Surveyed:
    """Every question in turn, in several rounds, as long as the Bayesian filter accepts."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        guard = xp.BayesianFilter(epsilon=survey.epsilon)
        panel = survey.panel(guard, int(generator.integers(1 << 30)))
        for _ in range(rounds):
            before = int(panel.exchanges.sum())
            for number in range(len(survey.questions)):
                panel.ask(survey.query(number, survey.epsilon * part), values)
            if int(panel.exchanges.sum()) == before:
                break
        return survey.off(panel)

    return done


def staged(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
    """Each question at the largest epsilon that the filter accepts at a rising budget."""
    guard = xp.BayesianFilter(epsilon=survey.epsilon)
    panel = survey.panel(guard, int(generator.integers(1 << 30)))
    said = np.zeros(survey.subjects, dtype=np.intp)
    for number, cap in enumerate(equal_caps(survey.epsilon, questions=len(survey.questions))):
        before = said.copy()
        for state in np.unique(before).tolist():
            own = np.flatnonzero(before == state)
            odometer = xp.Odometer(panel.transcript(int(own[0])))
            step = xp.BayesianFilter(epsilon=cap)
            decision = step.decide(odometer, survey.query(number, cap))
            largest = cap if decision.accepted else decision.largest_epsilon
            if largest:
                query = survey.query(number, Fraction(largest))
                replies = panel.ask(query, values[own], own.tolist())
                said[own] = 3 * said[own] + np.array([int(bool(y)) for y in replies.responses])
            else:
                said[own] = 3 * said[own] + 2
    return survey.off(panel)


def saturating(asked: int | None, *, known: bool = True) -> Surveyed:
    """Saturating queries about some random ones of the questions, in their order."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        count = len(survey.questions)
        often = count if asked is None else asked
        caps = (
            equal_caps(survey.epsilon, questions=often)
            if known
            else tuple(islice(geometric_caps(survey.epsilon), often))
        )
        guard = xp.BayesianFilter(epsilon=survey.epsilon)
        panel = survey.panel(guard, int(generator.integers(1 << 30)))
        whom = generator.random((survey.subjects, count)).argsort(axis=1) < often
        turns = np.zeros(survey.subjects, dtype=np.intp)
        for number, row in enumerate(survey.questions):
            for turn in np.unique(turns[whom[:, number]]).tolist():
                own = np.flatnonzero(whom[:, number] & (turns == turn))
                yes = np.flatnonzero(row).tolist()
                ids = panel.saturating(yes, cap=caps[turn], subjects=own.tolist())
                panel.ask(ids, values[own], own.tolist())
            turns += whom[:, number]
        return survey.off(panel)

    return done


SURVEYED: dict[str, Surveyed] = {
    "basic composition, all": joined(basic(None)),
    "basic composition, 2 sampled questions": joined(basic(2)),
    "one sampled question": joined(basic(1)),
    "declared plan with a delta, all": joined(declared),
    "joint report": joined(once(hadamard=False)),
    "full-value report, subset selection": once(hadamard=False),
    "full-value report, Hadamard response": once(hadamard=True),
    "filter, 1/20 of the budget each": joined(filtered(Fraction(1, 20), 40)),
    "filter, 1/8 of the budget each": joined(filtered(Fraction(1, 8), 1)),
    "filter, 1/4 of the budget each": joined(filtered(Fraction(1, 4), 1)),
    "filter, twice an equal share": joined(filtered(Fraction(1, 3), 1)),
    "filter, largest epsilon, in steps": joined(staged),
    "saturating, equal steps": saturating(None),
    "saturating, 3 sampled questions": saturating(3),
    "saturating, a third of the remainder": saturating(None, known=False),
}

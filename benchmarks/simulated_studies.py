"""Simulated studies: each strategy is carried out through the public API.

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
        """Draw a survey of records, in which each question is about one attribute.

        Neither a question nor its opposite is repeated before all were asked.
        """
        size = math.prod(sizes)
        generator = np.random.default_rng([seed, *sizes, questions, *epsilon.as_integer_ratio()])
        value_indices = np.indices(sizes).reshape(len(sizes), size)
        candidates = [
            (attribute, accepted_values)
            for attribute, values in enumerate(sizes)
            for count in range(1, values)
            for accepted_values in combinations(range(values - 1), count)
        ]
        order = np.resize(generator.permutation(len(candidates)), questions)
        rows = [
            np.isin(value_indices[candidates[index][0]], candidates[index][1]) for index in order
        ]
        turned = generator.random(questions) < 0.5
        table = (np.array(rows) ^ turned[:, None]).astype(np.intp)
        return cls(generator.dirichlet(np.ones(size)), table, epsilon, subjects)

    @cached_property
    def joined(self) -> Survey:
        """The survey over combinations of answers, where only the questions are asked.

        Values that all questions treat alike stay equally likely, for a filter and for an estimate.
        On very many values this takes much less time.
        """
        rows = np.unique(self.questions.T, axis=0)
        chances = np.bincount(self.combination, self.chances).astype(np.float64)
        return Survey(chances, rows.T, self.epsilon, self.subjects)

    @cached_property
    def combination(self) -> NDArray[np.intp]:
        """The index of each value in these combinations."""
        _, of = np.unique(self.questions.T, axis=0, return_inverse=True)
        return of.reshape(-1).astype(np.intp)

    @property
    def domain(self) -> xp.FiniteSet:
        return xp.FiniteSet(range(len(self.chances)))

    def query(self, index: int, epsilon: Fraction) -> xp.queries.Query:
        return xp.perturbation(self.questions[index].tolist(), range=(0, 1), epsilon=epsilon)

    def mean_square(self, design: str, seed: int) -> float:
        """Carry a design out once; return the mean squared error of the shares."""
        sizes = *self.questions.shape, *self.epsilon.as_integer_ratio()
        generator = np.random.default_rng([seed, *sizes, *design.encode()])
        values = generator.choice(len(self.chances), size=self.subjects, p=self.chances)
        return SURVEYED[design](self, values, generator)

    def panel(self, filter_: xp.filters.Filter, seed: int) -> xp.Panel:
        return xp.Panel(
            self.domain,
            filter=filter_,
            subjects=range(self.subjects),
            source=xp.sampling.InsecureSource(seed),
        )

    def mean_square_error(self, panel: xp.Panel) -> float:
        distribution = xp.estimation.estimate_distribution(panel.answers(), gap=_GAP)
        errors = self.questions @ (distribution.probabilities - self.chances)
        return float((errors**2).mean())


Surveyed = Callable[[Survey, NDArray[np.intp], np.random.Generator], float]


def joined(design: Surveyed) -> Surveyed:
    """Carry a design out on combinations of answers."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        return design(survey.joined, survey.combination[values], generator)

    return done


def basic(sampled: int | None) -> Surveyed:
    """Ask each subject so many sampled questions, at equal parts of the budget."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        often = len(survey.questions) if sampled is None else sampled
        filter_ = xp.BasicFilter(epsilon=survey.epsilon)
        return planned(survey, values, generator, filter_, often, survey.epsilon / often)

    return done


def declared(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
    """Ask all questions under a budget with a delta, at the largest epsilon that a plan allows."""
    count = len(survey.questions)
    low, high = int(survey.epsilon / count * _GRID), int(survey.epsilon * _GRID)
    while high - low > 1:
        middle = (low + high) // 2
        most = xp.filters.Declared.most(survey.epsilon, DELTA, Fraction(middle, _GRID))
        low, high = (middle, high) if most.plan[0][1] >= count else (low, middle)
    epsilon = Fraction(low, _GRID)
    filter_ = xp.ApproximateFilter(survey.epsilon, DELTA, xp.filters.Declared({epsilon: count}))
    return planned(survey, values, generator, filter_, count, epsilon)


def planned(
    survey: Survey,
    values: NDArray[np.intp],
    generator: np.random.Generator,
    filter_: xp.filters.Filter,
    often: int,
    epsilon: Fraction,
) -> float:
    """Ask each subject so many sampled questions at this epsilon; none is refused."""
    panel = survey.panel(filter_, int(generator.integers(1 << 30)))
    count = len(survey.questions)
    is_asked = generator.random((survey.subjects, count)).argsort(axis=1) < often
    for question in range(count):
        subjects = np.flatnonzero(is_asked[:, question])
        replies = panel.ask(survey.query(question, epsilon), values[subjects], subjects.tolist())
        assert replies.answered.all(), "a plan has room for what is in it"
    return survey.mean_square_error(panel)


def once(hadamard: bool) -> Surveyed:
    """Ask for a full-value report at the whole budget."""

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
        return survey.mean_square_error(panel)

    return done


def filtered(part: Fraction, rounds: int) -> Surveyed:
    """Ask every question in turn, in several rounds, as long as the Bayesian filter accepts."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        filter_ = xp.BayesianFilter(epsilon=survey.epsilon)
        panel = survey.panel(filter_, int(generator.integers(1 << 30)))
        for _ in range(rounds):
            before = int(panel.exchanges.sum())
            for question in range(len(survey.questions)):
                panel.ask(survey.query(question, survey.epsilon * part), values)
            if int(panel.exchanges.sum()) == before:
                break
        return survey.mean_square_error(panel)

    return done


def staged(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
    """Ask each question at the largest epsilon that the filter accepts at a rising budget."""
    filter_ = xp.BayesianFilter(epsilon=survey.epsilon)
    panel = survey.panel(filter_, int(generator.integers(1 << 30)))
    outcomes = np.zeros(survey.subjects, dtype=np.intp)
    for question, cap in enumerate(equal_caps(survey.epsilon, questions=len(survey.questions))):
        before = outcomes.copy()
        for state in np.unique(before).tolist():
            subjects = np.flatnonzero(before == state)
            odometer = xp.Odometer(panel.transcript(int(subjects[0])))
            step = xp.BayesianFilter(epsilon=cap)
            decision = step.decide(odometer, survey.query(question, cap))
            largest = cap if decision.accepted else decision.largest_epsilon
            if largest:
                query = survey.query(question, Fraction(largest))
                replies = panel.ask(query, values[subjects], subjects.tolist())
                outcomes[subjects] = 3 * outcomes[subjects] + np.array(
                    [int(bool(y)) for y in replies.responses]
                )
            else:
                outcomes[subjects] = 3 * outcomes[subjects] + 2
    return survey.mean_square_error(panel)


def saturating(sampled: int | None, *, known_count: bool = True) -> Surveyed:
    """Ask saturating queries about sampled questions, in their order."""

    def done(survey: Survey, values: NDArray[np.intp], generator: np.random.Generator) -> float:
        count = len(survey.questions)
        often = count if sampled is None else sampled
        caps = (
            equal_caps(survey.epsilon, questions=often)
            if known_count
            else tuple(islice(geometric_caps(survey.epsilon), often))
        )
        filter_ = xp.BayesianFilter(epsilon=survey.epsilon)
        panel = survey.panel(filter_, int(generator.integers(1 << 30)))
        is_asked = generator.random((survey.subjects, count)).argsort(axis=1) < often
        turns = np.zeros(survey.subjects, dtype=np.intp)
        for question, row in enumerate(survey.questions):
            for turn in np.unique(turns[is_asked[:, question]]).tolist():
                subjects = np.flatnonzero(is_asked[:, question] & (turns == turn))
                yes = np.flatnonzero(row).tolist()
                ids = panel.saturating(yes, cap=caps[turn], subjects=subjects.tolist())
                panel.ask(ids, values[subjects], subjects.tolist())
            turns += is_asked[:, question]
        return survey.mean_square_error(panel)

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
    "saturating, a third of the remainder": saturating(None, known_count=False),
}

"""Forecasts: how many subjects will accept a query now, and in later rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._types import Floats, Indices
from expost.answers import Answers
from expost.cards import View
from expost.designs._model_support import ModelSupport, model_support, read_population
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at, expect
from expost.estimation._mle import fit_mixture
from expost.files.reading import read_integer
from expost.files.tables import ResultTable
from expost.filters import Filter
from expost.panel import Panel
from expost.queries import Query, check_query
from expost.sampling import InsecureSource

__all__ = ["Forecast", "forecast"]


_MOST_ROUNDS = 1_000
_GAP = 1e-2
_STEPS = 300


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(ResultTable):
    """A forecast of how many subjects answer a query in each of several rounds."""

    subjects: int
    now: int
    """How many would answer it now. This is certain: it depends on the recorded answers only."""
    answering: tuple[float, ...]
    """The number who answer in each round, averaged over simulations; the first round is now."""
    errors: tuple[float, ...]
    """The standard deviation of each number between simulations."""

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "round": list(range(1, len(self.answering) + 1)),
            "answering": list(self.answering),
            "error": list(self.errors),
        }

    def tree(self) -> dict[str, Any]:
        """Return the forecast as JSON."""
        return {
            "subjects": self.subjects,
            "now": self.now,
            "answering": list(self.answering),
            "errors": list(self.errors),
        }

    def _view(self) -> View:
        return View(
            f"Forecast({self.now:,} of {self.subjects:,} subjects answer now)",
            {},
            ("round", "answering", "error"),
            len(self.answering),
            lambda index: (
                index + 1,
                f"{self.answering[index]:,.0f}",
                f"{self.errors[index]:,.0f}",
            ),
        )


def forecast(
    answers: Answers,
    query: Query,
    *,
    filter: Filter | None = None,
    rounds: int = 1,
    population: Any = None,
    repetitions: int = 8,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Forecast how many subjects accept a query now, and in later rounds.

    Who accepts it now follows from their answers. Later rounds depend on the answers in between.
    Those are simulated, with values that are drawn from the posterior of each subject, given its
    answers and the maximum-likelihood distribution of all.

    Args:
        answers: All answers of the subjects.
        query: The query to ask.
        filter: The filter of every subject; by default the one that the answers name.
        rounds: How often the query is asked.
        population: The possible values on a box, as for a :class:`Study`.
        repetitions: The number of simulations, if there are several rounds.
        seed: The seed of the simulations.
        progress: A function that is called with the rounds simulated so far, and their total.

    Returns:
        The number of subjects who answer in each round.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> table = {"subject": ["a", "b"], "query": ["q"] * 2, "response": ["no", "yes"]}
    >>> answers = xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
    >>> xp.designs.forecast(answers, query, filter=xp.BayesianFilter(epsilon=2), rounds=2).now
    2
    """
    with at("answers"):
        expect(answers, Answers, "Answers")
    filter_ = answers.filter if filter is None else filter
    if filter_ is None:
        raise InvalidInput("the answers name none; give one", "filter")
    check_query(query)
    with at("rounds"):
        if (round_count := read_integer(rounds, at_least=1)) > _MOST_ROUNDS:
            raise InvalidInput(f"must be at most {_MOST_ROUNDS:,}")
    with at("repetitions"):
        repetition_count = read_integer(repetitions, at_least=1) if round_count > 1 else 1
    with at("seed"):
        seed = read_integer(seed, at_least=0)
    recorded = _RecordedAnswers(answers, filter_)
    accepting = int(recorded.panel(seed).decide(query).accepted.sum())
    if round_count == 1:
        return Forecast(len(answers), accepting, (float(accepting),), (0.0,))
    draw_values = _ValueSampler(answers, query, population, seed).sampler()
    counts = np.zeros((repetition_count, round_count))
    for repetition in range(repetition_count):
        panel, generator = (
            recorded.panel(seed + repetition),
            np.random.default_rng([seed, repetition]),
        )
        values = draw_values(generator)
        for round_index in range(round_count):
            counts[repetition, round_index] = panel.ask(query, values).answered.sum()
            if progress is not None:
                progress(repetition * round_count + round_index + 1, repetition_count * round_count)
    deviations = counts.std(axis=0, ddof=1) if repetition_count > 1 else np.zeros(round_count)
    return Forecast(
        len(answers), accepting, tuple(counts.mean(axis=0).tolist()), tuple(deviations.tolist())
    )


class _RecordedAnswers:
    """The recorded answers, to start panels from."""

    def __init__(self, answers: Answers, filter_: Filter) -> None:
        self._answers, self._guard = answers, filter_
        likelihoods = {key: query.on(answers.domain) for key, query in answers.queries.items()}
        responses = [(key, likelihoods[key].responses[y]) for key, y in answers.responses]
        codes = answers.codes.tolist()
        self._queries = [responses[code][0] for code in codes]
        self._responses = [responses[code][1] for code in codes]
        subject_rows = np.repeat(np.arange(len(answers)), answers.exchanges).tolist()
        self._subjects = [answers.subjects[row] for row in subject_rows]

    def panel(self, seed: int) -> Panel:
        panel = Panel(
            self._answers.domain,
            filter=self._guard,
            subjects=self._answers.subjects,
            queries=self._answers.queries,
            source=InsecureSource(seed),
        )
        panel.record(self._queries, self._responses, self._subjects)
        return panel


@dataclass(frozen=True)
class _ValueSampler:
    """A sampler of values for all subjects, as a panel takes them."""

    answers: Answers
    query: Query
    population: Any
    seed: int

    def sampler(self) -> Callable[[np.random.Generator], Any]:
        """Return a function that draws a value for every subject."""
        domain = self.answers.domain
        match domain:
            case FiniteSet():
                return self._on_set(domain)
            case Attributes():
                return self._on_attributes(domain)
            case Box():
                return self._on_box(domain)
            case _:
                assert_never(domain)

    def _on_set(self, domain: FiniteSet) -> Callable[[np.random.Generator], Any]:
        def logs(query: Query, position: int) -> Floats:
            return query.on(domain).term(position).logs

        draw_indices = self._index_sampler(self._support(domain, ()), logs)
        return lambda generator: [domain.values[i] for i in draw_indices(generator).tolist()]

    def _on_box(self, domain: Box) -> Callable[[np.random.Generator], Any]:
        support = self._support(domain, ())
        points = [domain.locate(value) for value in support.values]
        columns = list(np.array(points, dtype=np.float64).T)

        def logs(query: Query, position: int) -> Floats:
            return query.on(domain).logs(position, columns)

        draw_indices = self._index_sampler(support, logs)
        return lambda generator: [support.values[i] for i in draw_indices(generator).tolist()]

    def _on_attributes(self, domain: Attributes) -> Callable[[np.random.Generator], Any]:
        if domain.changes:
            raise InvalidInput("a forecast of further rounds needs values that do not change")
        queries = [*self.answers.queries.values(), self.query]
        variables = {pair: None for query in queries for pair in query.on(domain).variables}
        support = self._support(domain, tuple(variables))

        def logs(query: Query, position: int) -> Floats:
            likelihood = query.on(domain)
            names = [name for name, _ in likelihood.variables]
            part_values = [[row[name] for name in names] for row in support.rows]
            draw_indices = [
                likelihood.part.locate(values if len(names) > 1 else values[0])
                for values in part_values
            ]
            part_indices = np.array(draw_indices, dtype=np.intp)
            return np.asarray(likelihood.on_part.term(position).logs[part_indices])

        draw_indices = self._index_sampler(support, logs)

        def columns(generator: np.random.Generator) -> dict[str, list[Any]]:
            indices = draw_indices(generator).tolist()
            return {name: [support.rows[i][name] for i in indices] for name, _ in variables}

        return columns

    def _support(self, domain: Domain, variables: tuple[Variable, ...]) -> ModelSupport:
        with at("population"):
            return model_support(domain, read_population(self.population), variables, self.seed)

    def _index_sampler(
        self, support: ModelSupport, logs: Callable[[Query, int], Floats]
    ) -> Callable[[np.random.Generator], Indices]:
        """Return a function that draws the index of each subject's value from its posterior."""
        answers = self.answers
        tallies = answers.tallies()
        # Every subject answered, so no subject has tally 0, the empty one.
        row_of_subject = tallies.of_subject - 1
        response_logs = np.array([logs(answers.queries[key], y) for key, y in answers.responses])
        tally_logs = np.array(
            [
                response_logs[tallies.responses(tally)].sum(axis=0)
                for tally in range(1, len(tallies))
            ]
        )
        table = np.exp(tally_logs - tally_logs.max(axis=1, keepdims=True))
        counts = np.bincount(row_of_subject).astype(np.float64)
        fit = fit_mixture(table, counts, gap=_GAP, steps=_STEPS)
        cumulative = np.cumsum(table * fit.weights, axis=1)

        def draw(generator: np.random.Generator) -> Indices:
            rows = cumulative[row_of_subject]
            points = generator.random(len(rows)) * rows[:, -1]
            return np.asarray(np.minimum((rows <= points[:, None]).sum(axis=1), rows.shape[1] - 1))

        return draw

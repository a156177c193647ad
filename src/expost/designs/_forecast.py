"""Forecasts: how many subjects will accept a query now, and in later rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._format import format_fixed
from expost._types import Floats, Indices
from expost.answers import Answers
from expost.cards import View
from expost.designs._model_support import model_support, read_population
from expost.designs.study import MOST_ROUNDS, read_count
from expost.domains import Attributes, Box, FiniteSet, Variable
from expost.errors import InvalidInput, at, expect, read_at
from expost.estimation._mle import fit_mixture
from expost.estimation._support import record_support
from expost.files.reading import read_integer
from expost.files.tables import ResultTable
from expost.filters import Filter
from expost.panel import Panel
from expost.queries import Query, check_query
from expost.sampling import InsecureSource

__all__ = ["Forecast", "forecast"]


_GAP = 1e-2
_STEPS = 300


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(ResultTable):
    """A forecast of how many subjects answer a query in each of several rounds."""

    subjects: int
    #: How many would answer it now. This is certain: it depends on the recorded answers only.
    now: int
    #: The number who answer in each round, averaged over simulations; the first round is now.
    answering: tuple[float, ...]
    #: The standard deviation of each number between simulations.
    errors: tuple[float, ...]

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
                format_fixed(self.answering[index], 0),
                format_fixed(self.errors[index], 0),
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
    expect(answers, Answers, "Answers", "answers")
    filter_ = answers.filter if filter is None else filter
    if filter_ is None:
        raise InvalidInput("the answers name none; give one", "filter")
    check_query(query)
    round_count = read_at("rounds", read_count, rounds, 1, MOST_ROUNDS)
    with at("repetitions"):
        repetition_count = read_integer(repetitions, at_least=1) if round_count > 1 else 1
    seed = read_at("seed", read_integer, seed, at_least=0)
    start_panel = _panel_starter(answers, filter_)
    accepting = int(start_panel(seed).decide(query).accepted.sum())
    if round_count == 1:
        return Forecast(len(answers), accepting, (float(accepting),), (0.0,))
    draw_values = _value_sampler(answers, query, population, seed)
    counts = np.zeros((repetition_count, round_count))
    for repetition in range(repetition_count):
        panel = start_panel(seed + repetition)
        values = draw_values(np.random.default_rng([seed, repetition]))
        for round_index in range(round_count):
            counts[repetition, round_index] = panel.ask(query, values).answered.sum()
            if progress is not None:
                progress(repetition * round_count + round_index + 1, repetition_count * round_count)
    deviations = counts.std(axis=0, ddof=1) if repetition_count > 1 else np.zeros(round_count)
    means = tuple(counts.mean(axis=0).tolist())
    return Forecast(len(answers), accepting, means, tuple(deviations.tolist()))


def _panel_starter(answers: Answers, filter_: Filter) -> Callable[[int], Panel]:
    """Return a function that starts a panel with the recorded answers, by a seed."""
    likelihoods = {key: query.on(answers.domain) for key, query in answers.queries.items()}
    exchanges = [(key, likelihoods[key].responses[y]) for key, y in answers.responses]
    queries = [exchanges[code][0] for code in answers.codes]
    responses = [exchanges[code][1] for code in answers.codes]
    subject_rows = np.repeat(np.arange(len(answers)), answers.exchanges)
    subjects = [answers.subjects[row] for row in subject_rows]

    def start_panel(seed: int) -> Panel:
        panel = Panel(
            answers.domain,
            filter=filter_,
            subjects=answers.subjects,
            queries=answers.queries,
            source=InsecureSource(seed),
        )
        panel.record(queries, responses, subjects)
        return panel

    return start_panel


def _value_sampler(
    answers: Answers, query: Query, population: Any, seed: int
) -> Callable[[np.random.Generator], Any]:
    """Return a function that draws a value for every subject, as a panel takes them."""
    domain = answers.domain
    variables: tuple[Variable, ...] = ()
    if isinstance(domain, Attributes):
        if domain.changes:
            raise InvalidInput("only 1 round can be forecast if values change", "rounds")
        queries = [*answers.queries.values(), query]
        variables = tuple(dict.fromkeys(v for query in queries for v in query.on(domain).variables))
    with at("population"):
        support = model_support(domain, read_population(population), variables, seed)
    values = support.values
    responses = [(answers.queries[key], position) for key, position in answers.responses]
    match domain:
        case FiniteSet():
            values = domain.values
            logs = [query.on(domain).term(position).logs for query, position in responses]
        case Attributes():
            records = record_support(domain, variables)
            logs = [records.likelihoods(query).logs(position) for query, position in responses]
        case Box():
            columns = list(np.array([domain.locate(value) for value in values], dtype=np.float64).T)
            logs = [query.on(domain).logs(position, columns) for query, position in responses]
        case _:
            assert_never(domain)
    draw_indices = _index_sampler(answers, np.array(logs))

    def draw_values(generator: np.random.Generator) -> Any:
        indices = draw_indices(generator).tolist()
        if isinstance(domain, Attributes):
            return {name: [support.rows[i][name] for i in indices] for name, _ in variables}
        return [values[i] for i in indices]

    return draw_values


def _index_sampler(
    answers: Answers, response_logs: Floats
) -> Callable[[np.random.Generator], Indices]:
    """Return a function that draws the index of each subject's value from its posterior."""
    tallies = answers.tallies()
    # Every subject answered, so no subject has tally 0, the empty one.
    row_of_subject = tallies.of_subject - 1
    tally_responses = [tallies.responses(tally) for tally in range(1, len(tallies))]
    tally_logs = np.array([response_logs[codes].sum(axis=0) for codes in tally_responses])
    table = np.exp(tally_logs - tally_logs.max(axis=1, keepdims=True))
    fit = fit_mixture(table, np.bincount(row_of_subject).astype(np.float64), gap=_GAP, steps=_STEPS)
    cumulative = np.cumsum(table * fit.weights, axis=1)

    def draw(generator: np.random.Generator) -> Indices:
        rows = cumulative[row_of_subject]
        points = generator.random(len(rows)) * rows[:, -1]
        return np.asarray(np.minimum((rows <= points[:, None]).sum(axis=1), rows.shape[1] - 1))

    return draw

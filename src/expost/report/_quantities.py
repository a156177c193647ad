"""Quantities that a distribution has: the mean of a query, the mean of a number, a share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.answers import Answers
from expost.domains import Domain, FiniteSet, join_names, require_no_box
from expost.errors import InvalidInput, at, did_you_mean, unknown_name
from expost.estimation._support import query_scores
from expost.estimation._validity import ChosenAttributes
from expost.knowledge import Statement
from expost.queries import About
from expost.report._formatting import query_in_words

__all__ = ["Quantity", "find_attributes", "find_mean", "mean_of_query", "share_of_statement"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """The mean of a score: a number for each value of what a distribution is about."""

    #: The quantity, as in "the mean of hours".
    name: str
    #: The quantity in the line with its estimate.
    of: str
    #: Mean or share.
    noun: str
    scores: Callable[[FiniteSet], Sequence[float]]
    range: tuple[float, float]
    #: The attributes that decide it, if the quantity names them.
    about: ChosenAttributes | None = None
    #: The id of the query whose score this is.
    query: str | None = None


def share_of_statement(domain: Domain, text: str) -> Quantity:
    """Return the share of subjects for which a statement holds.

    Raises:
        InvalidInput: The domain is a box, or the statement is about several steps.
    """
    with at("--share", ": "):
        reason = (
            "got a box, whose values cannot be listed; expected a finite domain. Use --mean ID for "
            "the mean of a score, or --about NAME for the shares of categories"
        )
        statement = Statement(require_no_box(domain, reason), text)
        probabilities = [float(probability) for probability in statement.probabilities]
        names = tuple(name for name, _ in statement.variables)
        steps = sorted({step for _, step in statement.variables if step is not None})
        if len(steps) > 1:
            reason = f"got the steps {join_names(list(map(str, steps)))}; expected one step"
            raise InvalidInput(reason)
    about = (names, steps[0] if steps else None) if names else None
    return Quantity(
        f"share with {text}", text, "share", lambda _values: probabilities, (0.0, 1.0), about
    )


def find_mean(answers: Answers, name: str, step: int | None, hint: str = "") -> Quantity:
    """Return the mean of the query with this id, or of the numbers with this name.

    A query with a score comes before an attribute of the same name. ``hint`` ends the error about
    an unknown name.
    """
    numeric = {other: found for other in answers.domain.called("value")
               if (found := _numbers_named(answers.domain, other))}  # fmt: skip
    with at("--mean"):
        no_score = None
        if name in answers.queries:
            try:
                return mean_of_query(answers, name)
            except InvalidInput as error:
                if error.location:
                    raise
                no_score = error.reason
        if name in numeric:
            numbers = numeric[name]
            about = ((name,), step) if answers.domain.kinds else None
            ends = min(numbers), max(numbers)
            return Quantity(f"mean of {name}", name, "mean", lambda _values: numbers, ends, about)
        if no_score is None:
            raise InvalidInput(unknown_name("query", name, {**answers.queries, **numeric}) + hint)
        query = answers.queries[name]
        asked = query.names if isinstance(query, About) else answers.domain.called("value")
        first = next((other for other in asked if other in numeric), None)
        instead = "" if first is None else f"--mean {first}, or "
        raise InvalidInput(f"{no_score}; {instead}leave out --mean for the shares of its values")


def mean_of_query(answers: Answers, key: str) -> Quantity:
    """Return the mean of the score that a query is about."""
    query, domain = answers.queries[key], answers.domain
    low, high = map(float, query.meaning(domain).range)

    def scores(values: FiniteSet) -> Sequence[float]:
        with at("query"):
            return [float(score) for score in query_scores(query, values)]

    of = f"{key}: {query_in_words(query, domain)}"
    return Quantity(f"mean of {key}", of, "mean", scores, (low, high), query=key)


def _numbers_named(domain: Domain, name: str) -> list[float]:
    """Return the numbers that a name stands for, one per value; none if they are no numbers."""
    index = domain.called("value").index(name)
    values: Sequence[Any] = [row[index] if isinstance(row, tuple) else row for row in domain.values]
    if domain.kinds:
        values = domain.kinds[index].values.values
    are_numbers = all(isinstance(value, (int, float, np.number)) for value in values)
    return [float(value) for value in values] if are_numbers else []


def find_attributes(
    answers: Answers, names: tuple[str, ...] | None, step: int | None, *, key: str | None
) -> tuple[tuple[str, ...], int | None] | None:
    """Return the attributes that an estimate is about, and the step; None on a set or a whole box.

    By default it is the only attribute that was asked about, or what the query ``key`` is about,
    and the only step.
    """
    if names is None and step is None and not answers.domain.kinds:
        return None
    answered = dict.fromkeys(name for name, _ in answers.responses)
    queries_about = {
        name: query for name in answered if isinstance(query := answers.queries[name], About)
    }
    if not queries_about:
        option = "--at" if names is None else "--about"
        raise InvalidInput("no query is about attributes; leave it out", option)
    names = _find_names(queries_about, names, key)
    return names, _find_step(queries_about, names, key) if step is None else step


def _find_names(
    queries_about: Mapping[str, About], names: tuple[str, ...] | None, key: str | None
) -> tuple[str, ...]:
    attributes = tuple(
        dict.fromkeys(name for query in queries_about.values() for name in query.names)
    )
    choices = join_names(attributes)
    if names is not None:
        for name in names:
            if name not in attributes:
                reason = f"no query is about {name!r}; the queries are about {choices}"
                raise InvalidInput(reason + did_you_mean(name, attributes), "--about")
        return names
    if key is not None and key in queries_about:
        return queries_about[key].names
    if len(attributes) > 1:
        raise InvalidInput(
            f"expected one attribute of {choices}, or several together, such as "
            f"{','.join(attributes[:2])}",
            "--about",
        )
    return attributes


def _find_step(
    queries_about: Mapping[str, About], names: tuple[str, ...], key: str | None
) -> int | None:
    if key is not None and key in queries_about:
        return queries_about[key].step
    steps = {query.step for query in queries_about.values() if {*names} & {*query.names}}
    steps.discard(None)
    if len(steps) > 1:
        steps_text = join_names([str(step) for step in sorted(filter(None, steps))])
        raise InvalidInput(
            f"name a step; {join_names(names)} was asked about at {steps_text}", "--at"
        )
    return next(iter(steps), None)

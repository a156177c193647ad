"""Advice: queries to ask where answers do not determine an estimate."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from expost._format import format_list
from expost.answers import Answers
from expost.domains import Part
from expost.estimation import Distribution
from expost.estimation._validity import ChosenAttributes
from expost.queries import About
from expost.report._formatting import value_text

__all__ = ["advise"]

_MOST_VALUES = 4
_DEFAULT_EPSILON = "1"


def advise(
    answers: Answers, chosen: ChosenAttributes | None, likeliest: Distribution
) -> Iterator[str]:
    """Yield why the answers do not determine all values, and the query that determines them."""
    names, step = chosen or (
        answers.domain.about if isinstance(answers.domain, Part) else (),
        None,
    )
    steps = {query.step for query in answers.queries.values() if isinstance(query, About)} - {None}
    if step is None and len(steps) == 1:
        step = steps.pop()
    pair = _find_unrelated(answers, names)
    groups, counts = np.unique(likeliest.alike, return_counts=True)
    if pair is not None:
        yield f"No subject answered about both {format_list(pair)}. Ask one query about both:"
    elif counts.max() > 1:
        group = np.flatnonzero(likeliest.alike == groups[counts > 1][0]).tolist()
        values = [value_text(likeliest.domain.values[i], likeliest.domain) for i in group]
        more = [f"{len(values) - _MOST_VALUES:,} more"] if len(values) > _MOST_VALUES else []
        listed = format_list([*values[:_MOST_VALUES], *more])
        yield f"All queries treat {listed} alike. Ask one that distinguishes them:"
    else:
        yield "The queries do not distinguish all values. Ask one that does:"
    epsilons = (query.charge(answers.domain) for query in answers.queries.values())
    exact = (str(epsilon) for epsilon in epsilons if epsilon.ratio == 1)
    command = ["expost", "query", "randomized_response"]
    command += ["--epsilon", next(exact, _DEFAULT_EPSILON)]
    command += ["--about", ",".join(names)] if names else []
    command += ["--at", str(step)] if step is not None else []
    yield shlex.join(command)


def _find_unrelated(answers: Answers, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Return two of the attributes about both of which no subject answered."""
    asked = {
        name: np.array(
            [
                isinstance(query := answers.queries[key], About) and name in query.names
                for key, _ in answers.responses
            ]
        )
        for name in names
    }
    answered = {
        name: np.logical_or.reduceat(is_about[answers.codes], answers.starts[:-1])
        for name, is_about in asked.items()
    }
    for pair in combinations(names, 2):
        if not (answered[pair[0]] & answered[pair[1]]).any():
            return pair
    return None

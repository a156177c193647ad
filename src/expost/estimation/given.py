"""The input of estimates: the answers of many subjects, or pairs of a query and a response."""

from __future__ import annotations

import warnings
from typing import Any

from expost.answers import Answers
from expost.domains import Domain, FiniteSet
from expost.errors import InvalidInput, at, expect
from expost.files.reading import items
from expost.queries import Query, check_query

__all__ = ["as_answers", "finite"]


def as_answers(given: Any, domain: Domain | None) -> Answers:
    """Answers as they are, or made from pairs, each from a different subject.

    Only functions that users call should call this: the warning points at the user's line.
    """
    if isinstance(given, Answers):
        if domain is not None and domain != given.domain:
            raise InvalidInput("is not that of the answers, which have one", "domain")
        if not given.complete:
            message = "the answers are incomplete: who was asked may depend on what is missing"
            warnings.warn(f"{message}, and estimates can be biased", UserWarning, stacklevel=3)
        return given
    pairs = _pairs(given)
    with at("domain"):
        expect(domain, Domain, "a FiniteSet or a Box, for pairs do not say")
    assert domain is not None
    # By identity, because it takes long to compare thousands of queries that differ in seeds.
    queries = {id(query): query for query, _ in pairs}
    keys = {identity: str(number) for number, identity in enumerate(queries)}
    table = {
        "subject": range(len(pairs)),
        "query": [keys[id(query)] for query, _ in pairs],
        "response": [response for _, response in pairs],
    }
    return Answers(domain, {keys[identity]: query for identity, query in queries.items()}, table)


def _pairs(given: Any) -> list[tuple[Query, Any]]:
    with at("answers"):
        try:
            pairs = [(query, response) for query, response in items(given)]
            for query, _ in pairs:
                check_query(query)
        except (InvalidInput, TypeError, ValueError):
            message = "must be Answers(domain, queries, table), or pairs of a query and a response"
            raise InvalidInput(message) from None
        if not pairs:
            raise InvalidInput("there are none")
        return pairs


def finite(answers: Answers) -> FiniteSet:
    """The domain of answers; an error if it is a box."""
    if not isinstance(answers.domain, FiniteSet):
        raise InvalidInput("must be a finite set: the values of a box cannot be listed", "domain")
    return answers.domain

"""What estimates are made from: answers of many subjects, or pairs of a query and a response."""

from __future__ import annotations

import warnings
from typing import Any

from expost.answers import Answers
from expost.domains import Domain, FiniteSet
from expost.domains import finite as listed
from expost.errors import InvalidInput, at, expect
from expost.files.reading import items
from expost.queries import Query, check_query

__all__ = ["as_answers", "finite"]


def as_answers(given: Any, domain: Domain | None) -> Answers:
    """Answers as they are, or made of pairs, each of which is from another subject.

    Whoever calls it is called by the user, who gets the warning.
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
    # By identity: comparing thousands of queries with seeds of their own would take long.
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
    """The domain of answers, where it has to be finite."""
    reason = "must be a finite set: the values of a box cannot be listed"
    return listed(answers.domain, reason, "domain")

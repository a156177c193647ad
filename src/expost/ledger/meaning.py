"""Which subjects, queries and responses are meant by what a caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import Subject, response_position
from expost.answers.columns import distinct, listed, read_each
from expost.domains import Domain
from expost.errors import InvalidInput, at
from expost.ledger.core import Core
from expost.panel.kernel import groups
from expost.panel.naming import subjects_of
from expost.queries import Query

__all__ = ["asked_in", "familiar", "names_of", "positions_of", "whom"]

Ints = NDArray[np.int64]


def names_of(subjects: Any) -> tuple[Subject, ...] | None:
    """The names that are given; None if nobody is named, for then all are meant."""
    return None if subjects is None else subjects_of(subjects)


def whom(
    core: Core, names: tuple[Subject, ...] | None, *, repeated: bool = False
) -> tuple[tuple[Subject, ...], Ints]:
    """The names and the numbers of who is meant."""
    if names is None:
        everybody = tuple(core.people.names(core.backend))
        return everybody, np.arange(1, len(everybody) + 1)
    numbers = core.people.numbers(core.backend, names)
    core.people.check(numbers)
    if not repeated and len(set(names)) < len(names):
        raise InvalidInput("somebody is there twice", "subjects")
    return names, numbers


def familiar(core: Core, query: Any, names: tuple[Subject, ...] | None) -> bool:
    """Whether all of it was met before, so that nothing has to be read to know what is meant."""
    if names is None or not isinstance(query, Query) or not core.words.known(query):
        return False
    return core.people.known(names)


def asked_in(core: Core, query: Any, count: int) -> tuple[list[Query], Ints]:
    """The different queries that are meant, and for each row which of them; -1 for none."""
    if not isinstance(query, Query):
        core.learn()
    with at("query"):
        if isinstance(query, (Query, str)):
            one = query if isinstance(query, Query) else core.words.named(query)
            core.check_query(one)
            return [one], np.zeros(count, dtype=np.int64)
        try:
            column = listed(query)
        except InvalidInput:
            raise InvalidInput("must be a query, the name of one, or a column of names") from None
        if len(column) != count:
            raise InvalidInput(f"{len(column):,} names for {count:,} subjects")
    which, found = read_each(
        column, lambda name: None if name is None else core.words.named(name), "query"
    )
    asked = [each for each in found if each is not None]
    for each in asked:
        core.check_query(each)
    numbers = iter(range(len(asked)))
    places = [-1 if each is None else next(numbers) for each in found]
    return asked, np.array(places, dtype=np.int64)[which]


def positions_of(domain: Domain, asked: list[Query], which: Ints, responses: Any) -> NDArray[Any]:
    """The positions of responses among those of their queries."""
    column = listed(responses)
    if len(column) != len(which):
        message = f"{len(column):,} responses for {len(which):,} subjects"
        raise InvalidInput(message, "responses")
    if (which < 0).any():
        raise InvalidInput("nothing was asked here", f"query: row {int(np.argmin(which)) + 1}")
    found = np.empty(len(which), dtype=object)
    for number, rows in groups(which):
        likelihood = asked[number].on(domain)
        codes, known = distinct([column[row] for row in rows.tolist()], "response")
        positions = []
        for code, response in enumerate(known):
            row = int(rows[np.argmax(codes == code)])
            with at(f"row {row + 1}: response"):
                positions.append(response_position(likelihood, response, asked[number].kind))
        found[rows] = np.array(positions, dtype=object)[codes]
    return found

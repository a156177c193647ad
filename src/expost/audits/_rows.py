"""Rows of a log as arrays: whole subjects, their responses in order.

A row has a subject, the number of the exchange in the subject's transcript, the id of a query and a
response. Rows come in any order. Nothing is sorted: where a response belongs follows from its
subject and its number, and if every place is taken once, no row is missing and none is there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes
from expost.answers import Answers, response_position
from expost.audits._plan import Plan
from expost.errors import InvalidInput
from expost.queries import Query

if TYPE_CHECKING:
    from polars import DataFrame, Series

__all__ = ["COLUMNS", "Unusable", "Whole", "arranged", "whole_of"]


COLUMNS = ("subject", "order", "query", "response")


# Of queries and responses, that may be looked up in a table.
_LARGEST_TABLE = 1 << 22


class Unusable(Exception):
    """Some row cannot be used; which ones, and why, is for :mod:`expost.audits._bad_rows`."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All responses of some subjects, in the order in which they were given."""

    subjects: Series
    """In ascending order."""
    given: tuple[tuple[Query, int], ...]
    """Each response that occurs: a query, and the position among its responses."""
    codes: Codes
    """For each exchange, its index in ``given``; subject by subject."""
    starts: NDArray[np.intp]
    """Where the exchanges of each subject start; the last entry is where all end."""

    def __len__(self) -> int:
        return len(self.subjects)


def arranged(frame: DataFrame, plan: Plan) -> Whole:
    """The subjects of a frame with the columns of a log; rows may be in any order."""
    places, subjects = _ranks(frame["subject"])
    number = _numbers(frame["order"])
    counts = np.bincount(places, minlength=len(subjects))
    if (number > counts[places]).any():
        raise Unusable
    starts = np.append(0, np.cumsum(counts))
    codes, given = _coded(frame, plan)
    target = starts[places]
    target += number
    target -= 1
    taken = np.zeros(len(frame), dtype=np.bool_)
    taken[target] = True
    if not taken.all():
        raise Unusable
    together = np.empty_like(codes)
    together[target] = codes
    return Whole(subjects, given, together, starts)


def whole_of(answers: Answers) -> Whole:
    """The subjects of a table that is in memory already, each with its rows in their order."""
    import polars

    named = list(answers.subjects)
    if len(set(map(type, named))) > 1:
        named = list(map(str, named))
        if len(set(named)) < len(named):
            raise InvalidInput("a text and an integer name two subjects alike")
    subjects = polars.Series("subject", named)
    order = subjects.arg_sort().to_numpy().astype(np.intp)
    counts = answers.exchanges[order]
    starts = np.append(0, np.cumsum(counts))
    rows = np.arange(starts[-1]) + np.repeat(answers.starts[:-1][order] - starts[:-1], counts)
    given = tuple((answers.queries[key], position) for key, position in answers.responses)
    return Whole(subjects.gather(order), given, answers.codes[rows], starts)


def _ranks(column: Series) -> tuple[NDArray[Any], Series]:
    """For each row the rank of its entry, and the entries in ascending order."""
    import polars

    if column.null_count():
        raise Unusable
    entries = column.unique().sort()
    if column.dtype == polars.String:
        if len(entries) and entries[0] == "":
            raise Unusable
        ranks = column.cast(polars.Enum(entries)).to_physical().to_numpy()
        return ranks, entries
    values, least = column.to_numpy(), int(entries[0]) if len(entries) else 0
    if len(entries) and int(entries[-1]) - least < 4 * len(column):
        table = np.zeros(int(entries[-1]) - least + 1, dtype=np.intp)
        table[entries.to_numpy() - least] = np.arange(len(entries))
        return table[values - least], entries
    return np.searchsorted(entries.to_numpy(), values), entries


def _numbers(column: Series) -> NDArray[np.int64]:
    if column.null_count():
        raise Unusable
    number = column.to_numpy()
    if len(number) and number.min() < 1:
        raise Unusable
    return number


def _coded(frame: DataFrame, plan: Plan) -> tuple[Codes, tuple[tuple[Query, int], ...]]:
    """For each row the index of its response among all that occur, and those."""
    import polars

    ids = list(plan.queries)
    asked = frame["query"].cast(polars.Enum(ids), strict=False)
    if asked.null_count() or frame["response"].null_count():
        raise Unusable
    answered, responses = _ranks_of_labels(frame["response"])
    pair = asked.to_physical().to_numpy().astype(np.int64)
    pair *= len(responses)
    pair += answered
    if len(ids) * len(responses) <= max(_LARGEST_TABLE, len(frame)):
        seen = np.flatnonzero(np.bincount(pair, minlength=len(ids) * len(responses)))
        index = np.zeros(len(ids) * len(responses), dtype=np.intp)
        index[seen] = np.arange(len(seen))
        rows = index[pair]
    else:
        seen, rows = np.unique(pair, return_inverse=True)
    return _merged(rows, [(ids[each // len(responses)], responses[each % len(responses)])
                          for each in seen.tolist()], plan)  # fmt: skip


def _ranks_of_labels(column: Series) -> tuple[NDArray[Any], list[str]]:
    import polars

    entries = column.unique().sort()
    ranks = column.cast(polars.Enum(entries)).to_physical().to_numpy()
    return ranks, entries.to_list()


def _merged(
    rows: NDArray[np.intp], pairs: list[tuple[str, str]], plan: Plan
) -> tuple[Codes, tuple[tuple[Query, int], ...]]:
    """Responses that are spelled in several ways are one, and come in the order of the queries."""
    try:
        positions = [
            response_position(plan.queries[key].on(plan.domain), response, key)
            for key, response in pairs
        ]
    except InvalidInput:
        raise Unusable from None
    rank = {key: place for place, key in enumerate(plan.queries)}
    read = [(rank[key], position) for (key, _), position in zip(pairs, positions, strict=True)]
    given = sorted(set(read))
    place = {each: code for code, each in enumerate(given)}
    small = np.min_scalar_type(max(len(given) - 1, 0))
    table = np.array([place[each] for each in read], dtype=small)
    queries = list(plan.queries.values())
    return table[rows], tuple((queries[number], position) for number, position in given)

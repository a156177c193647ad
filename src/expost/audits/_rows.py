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

__all__ = ["COLUMNS", "SubjectRows", "Unusable", "arrange_rows", "rows_of_answers"]


COLUMNS = ("subject", "order", "query", "response")


# Of queries and responses, that may be looked up in a table.
_LARGEST_TABLE = 1 << 22


class Unusable(Exception):
    """Some row cannot be used; which ones, and why, is for :mod:`expost.audits._bad_rows`."""


@dataclass(frozen=True, slots=True)
class SubjectRows:
    """All responses of some subjects, in the order in which they were given."""

    subjects: Series
    """In ascending order."""
    responses: tuple[tuple[Query, int], ...]
    """Each response that occurs: a query, and the position among its responses."""
    codes: Codes
    """For each exchange, its index in ``responses``; subject by subject."""
    starts: NDArray[np.intp]
    """Where the exchanges of each subject start; the last entry is where all end."""

    def __len__(self) -> int:
        return len(self.subjects)


def arrange_rows(frame: DataFrame, plan: Plan) -> SubjectRows:
    """Arrange the rows of a log by subject and exchange; they may be in any order."""
    subject_indices, subjects = _ranks(frame["subject"])
    order = _read_order(frame["order"])
    counts = np.bincount(subject_indices, minlength=len(subjects))
    if (order > counts[subject_indices]).any():
        raise Unusable
    starts = np.append(0, np.cumsum(counts))
    codes, responses = _code_responses(frame, plan)
    target = starts[subject_indices]
    target += order
    target -= 1
    filled = np.zeros(len(frame), dtype=np.bool_)
    filled[target] = True
    if not filled.all():
        raise Unusable
    ordered_codes = np.empty_like(codes)
    ordered_codes[target] = codes
    return SubjectRows(subjects, responses, ordered_codes, starts)


def rows_of_answers(answers: Answers) -> SubjectRows:
    """Return the rows of answers by subject, in their order."""
    import polars

    names = list(answers.subjects)
    if len(set(map(type, names))) > 1:
        names = list(map(str, names))
        if len(set(names)) < len(names):
            raise InvalidInput("a text and an integer name two subjects alike")
    subjects = polars.Series("subject", names)
    order = subjects.arg_sort().to_numpy().astype(np.intp)
    counts = answers.exchanges[order]
    starts = np.append(0, np.cumsum(counts))
    rows = np.arange(starts[-1]) + np.repeat(answers.starts[:-1][order] - starts[:-1], counts)
    responses = tuple((answers.queries[key], position) for key, position in answers.responses)
    return SubjectRows(subjects.gather(order), responses, answers.codes[rows], starts)


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
    values, smallest = column.to_numpy(), int(entries[0]) if len(entries) else 0
    if len(entries) and int(entries[-1]) - smallest < 4 * len(column):
        table = np.zeros(int(entries[-1]) - smallest + 1, dtype=np.intp)
        table[entries.to_numpy() - smallest] = np.arange(len(entries))
        return table[values - smallest], entries
    return np.searchsorted(entries.to_numpy(), values), entries


def _read_order(column: Series) -> NDArray[np.int64]:
    if column.null_count():
        raise Unusable
    order = column.to_numpy()
    if len(order) and order.min() < 1:
        raise Unusable
    return order


def _code_responses(frame: DataFrame, plan: Plan) -> tuple[Codes, tuple[tuple[Query, int], ...]]:
    """For each row the index of its response among all that occur, and those."""
    import polars

    ids = list(plan.queries)
    query_column = frame["query"].cast(polars.Enum(ids), strict=False)
    if query_column.null_count() or frame["response"].null_count():
        raise Unusable
    response_indices, responses = _ranks_of_labels(frame["response"])
    pair = query_column.to_physical().to_numpy().astype(np.int64)
    pair *= len(responses)
    pair += response_indices
    if len(ids) * len(responses) <= max(_LARGEST_TABLE, len(frame)):
        occurring = np.flatnonzero(np.bincount(pair, minlength=len(ids) * len(responses)))
        index = np.zeros(len(ids) * len(responses), dtype=np.intp)
        index[occurring] = np.arange(len(occurring))
        rows = index[pair]
    else:
        occurring, rows = np.unique(pair, return_inverse=True)
    pairs = [divmod(pair_index, len(responses)) for pair_index in occurring.tolist()]
    spellings = [(ids[query], responses[response]) for query, response in pairs]
    return _merge_spellings(rows, spellings, plan)


def _ranks_of_labels(column: Series) -> tuple[NDArray[Any], list[str]]:
    import polars

    entries = column.unique().sort()
    ranks = column.cast(polars.Enum(entries)).to_physical().to_numpy()
    return ranks, entries.to_list()


def _merge_spellings(
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
    query_rank = {key: code_of for code_of, key in enumerate(plan.queries)}
    positions_by_query = [
        (query_rank[key], position) for (key, _), position in zip(pairs, positions, strict=True)
    ]
    responses = sorted(set(positions_by_query))
    code_of = {pair_index: code for code, pair_index in enumerate(responses)}
    small = np.min_scalar_type(max(len(responses) - 1, 0))
    table = np.array([code_of[pair_index] for pair_index in positions_by_query], dtype=small)
    queries = list(plan.queries.values())
    return table[rows], tuple((queries[order], position) for order, position in responses)

"""Rows of a log as arrays: whole subjects, their responses in order; or which rows are bad.

A row has a subject, the number of the exchange in the subject's transcript, the id of a query and a
response. Rows come in any order. Nothing is sorted: the position of a response follows from its
subject and its number. If every position is taken once, no row is missing and none is repeated.
Wrong rows are listed only if there are some, and then file by file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes
from expost.answers import Answers, no_such_query, response_position
from expost.audits._errors import BadFile, BadFiles, BadRow, BadRows, UnusableRows
from expost.audits._log import json_problems, read, select_exchanges
from expost.audits._plan import Plan
from expost.errors import InvalidInput
from expost.queries import Query

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame, Series

__all__ = [
    "MOST_LISTED",
    "SubjectRows",
    "arrange_rows",
    "bad_exchanges",
    "bad_rows",
    "rows_of_answers",
]


#: How many bad rows an error lists.
MOST_LISTED = 20

# A table of this size may enumerate all pairs of a query and a response; else pairs are sorted.
_MOST_PAIRS = 1 << 22


@dataclass(frozen=True, slots=True)
class SubjectRows:
    """All responses of some subjects, in the order in which they were given."""

    #: In ascending order.
    subjects: Series
    #: Each response that occurs: a query, and the position among its responses.
    responses: tuple[tuple[Query, int], ...]
    #: For each exchange, its index in ``responses``; subject by subject.
    codes: Codes
    #: Where the exchanges of each subject start; the last entry is where all end.
    starts: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.subjects)


def arrange_rows(frame: DataFrame, plan: Plan) -> SubjectRows:
    """Arrange the rows of a log by subject and exchange; they may be in any order."""
    subject_indices, subjects = _rank_entries(frame["subject"])
    order = _read_order(frame["order"])
    counts = np.bincount(subject_indices, minlength=len(subjects))
    if (order > counts[subject_indices]).any():
        raise UnusableRows
    starts = np.append(0, np.cumsum(counts))
    codes, responses = _encode_responses(frame, plan)
    target = starts[subject_indices]
    target += order
    target -= 1
    filled = np.zeros(len(frame), dtype=np.bool_)
    filled[target] = True
    if not filled.all():
        raise UnusableRows
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
            raise InvalidInput("a string and an integer spell the same subject")
    subjects = polars.Series("subject", names)
    order = subjects.arg_sort().to_numpy().astype(np.intp)
    counts = answers.exchanges[order]
    starts = np.append(0, np.cumsum(counts))
    rows = np.arange(starts[-1]) + np.repeat(answers.starts[:-1][order] - starts[:-1], counts)
    responses = tuple((answers.queries[key], position) for key, position in answers.responses)
    return SubjectRows(subjects.gather(order), responses, answers.codes[rows], starts)


def _rank_entries(column: Series) -> tuple[NDArray[Any], Series]:
    """Return for each row the rank of its entry, and the entries in ascending order."""
    import polars

    if column.null_count():
        raise UnusableRows
    entries = column.unique().sort()
    if column.dtype == polars.String:
        if len(entries) and entries[0] == "":
            raise UnusableRows
        return _rank_strings(column, entries), entries
    values, smallest = column.to_numpy(), int(entries[0]) if len(entries) else 0
    if len(entries) and int(entries[-1]) - smallest < 4 * len(column):
        table = np.zeros(int(entries[-1]) - smallest + 1, dtype=np.intp)
        table[entries.to_numpy() - smallest] = np.arange(len(entries))
        return table[values - smallest], entries
    return np.searchsorted(entries.to_numpy(), values), entries


def _read_order(column: Series) -> NDArray[np.int64]:
    if column.null_count():
        raise UnusableRows
    order = column.to_numpy()
    if len(order) and order.min() < 1:
        raise UnusableRows
    return order


def _encode_responses(frame: DataFrame, plan: Plan) -> tuple[Codes, tuple[tuple[Query, int], ...]]:
    """Return for each row the index of its response among those that occur, and these."""
    import polars

    ids = list(plan.queries)
    query_column = frame["query"].cast(polars.Enum(ids), strict=False)
    if query_column.null_count() or frame["response"].null_count():
        raise UnusableRows
    response_strings = frame["response"].unique().sort()
    response_indices = _rank_strings(frame["response"], response_strings)
    responses = response_strings.to_list()
    pair = query_column.to_physical().to_numpy().astype(np.int64)
    pair *= len(responses)
    pair += response_indices
    if len(ids) * len(responses) <= max(_MOST_PAIRS, len(frame)):
        occurring = np.flatnonzero(np.bincount(pair, minlength=len(ids) * len(responses)))
        index = np.zeros(len(ids) * len(responses), dtype=np.intp)
        index[occurring] = np.arange(len(occurring))
        rows = index[pair]
    else:
        occurring, rows = np.unique(pair, return_inverse=True)
    pairs = [divmod(pair_index, len(responses)) for pair_index in occurring.tolist()]
    spellings = [(ids[query], responses[response]) for query, response in pairs]
    return _merge_spellings(rows, spellings, plan)


def _rank_strings(column: Series, entries: Series) -> NDArray[Any]:
    """Return for each row the index of its string among the sorted, distinct ones."""
    import polars

    return column.cast(polars.Enum(entries)).to_physical().to_numpy()


def _merge_spellings(
    rows: NDArray[np.intp], pairs: list[tuple[str, str]], plan: Plan
) -> tuple[Codes, tuple[tuple[Query, int], ...]]:
    """Merge the spellings of each response; return responses in the order of the queries."""
    try:
        positions = [
            response_position(plan.queries[key].on(plan.domain), response, key)
            for key, response in pairs
        ]
    except InvalidInput:
        raise UnusableRows from None
    query_indices = {key: index for index, key in enumerate(plan.queries)}
    response_of_pair = [
        (query_indices[key], position) for (key, _), position in zip(pairs, positions, strict=True)
    ]
    responses = sorted(set(response_of_pair))
    code_of = {response: code for code, response in enumerate(responses)}
    small = np.min_scalar_type(max(len(responses) - 1, 0))
    code_of_pair = np.array([code_of[response] for response in response_of_pair], dtype=small)
    queries = list(plan.queries.values())
    return code_of_pair[rows], tuple((queries[index], position) for index, position in responses)


def bad_rows(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> BadRows:
    """Find the wrong rows of a log, file by file.

    Rows that could be read in more than one way come first, then other errors within a row. If
    there are none, missing and repeated numbers of exchanges are reported.

    Raises:
        BadFiles: A file was copied.
    """
    for find_problems in (_find_ambiguous, _find_invalid, _find_misnumbered):
        count, problems = find_problems(parts, plan)
        if count:
            listed_rows = [
                BadRow("" if file is None else os.fspath(file), row, reason)
                for file, row, reason in problems[:MOST_LISTED]
            ]
            return BadRows(tuple(listed_rows), count)
    raise AssertionError("some row is bad, and none was found")


def bad_exchanges(rows: DataFrame, plan: Plan) -> BadRows:
    """Describe bad rows of a cluster, where rows have no numbers."""
    by_row = bad_rows([(None, rows.lazy())], plan)
    by_exchange = []
    for bad in by_row.rows:
        assert bad.row is not None
        row = rows.row(bad.row - 1, named=True)
        by_exchange.append(
            BadRow(f"subject {row['subject']!r}, exchange {row['order']}", None, bad.reason)
        )
    return BadRows(tuple(by_exchange), by_row.count)


#: How many rows cannot be used; and the first ones, each with its file, its number and a reason.
_Problems = tuple[int, list[tuple[Path | None, int, str]]]


def _find_ambiguous(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    count = 0
    problems: list[tuple[Path | None, int, str]] = []
    for file, _ in parts:
        if file is not None and file.suffix.lower() == ".jsonl":
            for row, reason in json_problems(file):
                count += 1
                if len(problems) < MOST_LISTED:
                    problems.append((file, row, reason))
    return count, problems


def _find_invalid(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    import polars

    count = 0
    problems: list[tuple[Path | None, int, str]] = []
    reasons: dict[tuple[str, str], str] = {}
    for file, part in parts:
        known_queries = polars.col("query").is_in(list(plan.queries))
        pairs = read(part.select("query", "response").filter(known_queries).unique().drop_nulls())
        for key, response in pairs.iter_rows():
            try:
                response_position(plan.queries[key].on(plan.domain), response, key)
            except InvalidInput as error:
                reasons[key, response] = error.reason
        wrong = polars.DataFrame(
            list(reasons), schema={"query": polars.String, "response": polars.String}, orient="row"
        ).with_columns(wrong=True)
        numbered = select_exchanges(part.with_row_index("row", offset=1))
        numbered = numbered.join(wrong.lazy(), on=["query", "response"], how="left")
        usable = (
            polars.col("subject").is_not_null()
            & (polars.col("subject").cast(polars.String) != "")
            & (polars.col("order") >= 1).fill_null(value=False)
            & known_queries.fill_null(value=False)
            & polars.col("response").is_not_null()
            & polars.col("wrong").is_null()
        )
        bad = numbered.filter(~usable)
        count += read(bad.select(polars.len())).item()
        for row in read(bad.sort("row").head(MOST_LISTED - len(problems))).iter_rows(named=True):
            problems.append((file, row["row"], _describe_problem(row, reasons, plan)))
    return count, problems


def _describe_problem(row: dict[str, Any], reasons: dict[tuple[str, str], str], plan: Plan) -> str:
    if row["subject"] in (None, ""):
        return "subject: must be a non-empty string or an integer"
    if row["order"] is None or row["order"] < 1:
        return "order: must be the number of the exchange, 1, 2, 3 and so on"
    if row["query"] is None or row["query"] not in plan.queries:
        return f"query: {no_such_query(row['query'] or '', plan.queries).reason}"
    if row["response"] is None:
        return "response: is missing"
    return f"response: {reasons[row['query'], row['response']]}"


def _find_misnumbered(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    import polars

    _check_copies(parts)
    order = polars.col("order")
    columns = [select_exchanges(part).select("subject", "order") for _, part in parts]
    repeats = polars.len() - order.n_unique()
    gaps = (order.unique().sort().diff() > 1).sum() + (order.min() > 1)
    counts = polars.concat(columns).group_by("subject").agg(count=repeats + gaps)
    bad = read(counts.filter(polars.col("count") > 0))
    suspects = bad.select("subject").sort("subject").head(MOST_LISTED)
    numbered = [
        select_exchanges(part.with_row_index("row", offset=1)).with_columns(part=polars.lit(index))
        for index, (_, part) in enumerate(parts)
    ]
    rows = read(polars.concat(numbered).join(suspects.lazy(), on="subject", how="semi"))
    problems = [(parts[part][0], row, reason) for part, row, reason in _list_misnumbered(rows)]
    return int(bad["count"].sum()), problems


def _check_copies(parts: list[tuple[Path | None, LazyFrame]]) -> None:
    """Refuse a file with the content of another one: all of its rows are repeated."""
    originals: dict[bytes, Path] = {}
    copies = []
    for file, part in parts:
        if file is not None and not read(part.head(1)).is_empty():
            with file.open("rb") as opened:
                original = originals.setdefault(file_digest(opened, "sha256").digest(), file)
            if original != file:
                reason = f"has the same content as {original}. Remove one of them"
                copies.append(BadFile(os.fspath(file), reason))
    if copies:
        raise BadFiles(copies)


def _list_misnumbered(rows: DataFrame) -> Iterator[tuple[int, int, str]]:
    """Yield the part and row of each repeated number, and of each that follows a gap, with why."""
    ordered = rows.sort("subject", "order", "part", "row")
    previous: tuple[Any, int] | None = None
    problems = []
    for row in ordered.iter_rows(named=True):
        subject, order = row["subject"], row["order"]
        last = previous[1] if previous is not None and previous[0] == subject else 0
        if order == last:
            reason = f"order: exchange {order:,} of this subject appears twice"
            problems.append((row["part"], row["row"], reason))
        elif order > last + 1:
            reason = f"order: is {order:,}, and exchange {last + 1:,} of this subject is missing"
            problems.append((row["part"], row["row"], reason))
        previous = subject, order
    yield from sorted(problems)

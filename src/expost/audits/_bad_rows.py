"""Rows of a log that cannot be used: where they are, and why.

It is looked for only after something was found to be wrong, and then file by file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from expost.answers import no_such_query, response_position
from expost.audits._log import json_problems, read
from expost.audits._plan import Plan
from expost.errors import InvalidInput, make_printable

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

__all__ = ["MOST", "BadRow", "BadRows", "bad_exchanges", "bad_rows"]


MOST = 20
"""How many are listed."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of a log, counted from 1 below the header, and what is wrong with it.

    On a cluster rows have no numbers: there it is known by its subject and its exchange.
    """

    file: str
    row: int | None
    reason: str

    def __str__(self) -> str:
        locations = [make_printable(self.file)] if self.file else []
        locations += [] if self.row is None else [f"row {self.row}"]
        return ": ".join([*locations, self.reason])


class BadRows(InvalidInput):
    """Some rows of a log cannot be used, so nothing is said about anybody.

    ``rows`` are the first ones, ``count`` is how many were found.
    """

    def __init__(self, rows: tuple[BadRow, ...], count: int) -> None:
        self.rows = rows
        self.count = count
        what = "row cannot be used" if count == 1 else "rows cannot be used"
        super().__init__(f"{count:,} {what}, so nobody was audited: {rows[0]}")

    def within(self, location: str, joint: str = ".") -> Self:
        """Return this error unchanged: every row already names its file."""
        return self


def bad_rows(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> BadRows:
    """What is wrong with the rows of a log, given file by file.

    Rows that could be read in more than one way come first, then whatever else is wrong with a row
    by itself. Numbers of exchanges that are missing or there twice are looked for if nothing else
    is wrong.
    """
    for problems in (_find_ambiguous, _find_invalid, _find_misnumbered):
        count, listed_problems = problems(parts, plan)
        if count:
            listed_rows = [
                BadRow("" if file is None else os.fspath(file), row, reason)
                for file, row, reason in listed_problems[:MOST]
            ]
            return BadRows(tuple(listed_rows), count)
    raise AssertionError("some row is bad, and none was found")


def bad_exchanges(rows: DataFrame, plan: Plan) -> BadRows:
    """Describe bad rows of a cluster, where rows have no numbers."""
    listed_problems = bad_rows([(None, rows.lazy())], plan)
    listed_rows = []
    for bad in listed_problems.rows:
        assert bad.row is not None
        row = rows.row(bad.row - 1, named=True)
        listed_rows.append(
            BadRow(f"subject {row['subject']!r}, exchange {row['order']}", None, bad.reason)
        )
    return BadRows(tuple(listed_rows), listed_problems.count)


_Problems = tuple[int, list[tuple[Path | None, int, str]]]
"""How many rows cannot be used, and the first of them."""


def _find_ambiguous(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    count = 0
    listed_problems: list[tuple[Path | None, int, str]] = []
    for file, _ in parts:
        if file is not None and file.suffix.lower() == ".jsonl":
            for row, reason in json_problems(file):
                count += 1
                if len(listed_problems) < MOST:
                    listed_problems.append((file, row, reason))
    return count, listed_problems


def _find_invalid(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    import polars

    count = 0
    listed_problems: list[tuple[Path | None, int, str]] = []
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
        numbered = part.with_row_index("row", offset=1)
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
        for row in read(bad.sort("row").head(MOST - len(listed_problems))).iter_rows(named=True):
            listed_problems.append((file, row["row"], _reason(row, reasons, plan)))
    return count, listed_problems


def _reason(row: dict[str, Any], reasons: dict[tuple[str, str], str], plan: Plan) -> str:
    if row["subject"] in (None, ""):
        return "subject: must be a text or an integer, and not empty"
    if row["order"] is None or row["order"] < 1:
        return "order: must be the number of the exchange, 1, 2, 3 and so on"
    if row["query"] is None or row["query"] not in plan.queries:
        return f"query: {no_such_query(row['query'] or '', plan.queries).reason}"
    if row["response"] is None:
        return "response: is missing"
    return f"response: {reasons[row['query'], row['response']]}"


def _find_misnumbered(parts: list[tuple[Path | None, LazyFrame]], plan: Plan) -> _Problems:
    import polars

    order = polars.col("order")
    columns = [part.select("subject", "order") for _, part in parts]
    repeats = polars.len() - order.n_unique()
    gaps = (order.unique().sort().diff() > 1).sum() + (order.min() > 1)
    counts = polars.concat(columns).group_by("subject").agg(count=repeats + gaps)
    bad = read(counts.filter(polars.col("count") > 0))
    suspects = bad.select("subject").sort("subject").head(MOST)
    numbered = [
        part.with_row_index("row", offset=1).with_columns(part=polars.lit(location))
        for location, (_, part) in enumerate(parts)
    ]
    rows = read(polars.concat(numbered).join(suspects.lazy(), on="subject", how="semi"))
    listed_problems = [(parts[part][0], row, reason) for part, row, reason in _gaps(rows)]
    return int(bad["count"].sum()), listed_problems


def _gaps(rows: DataFrame) -> Iterator[tuple[int, int, str]]:
    """Where a number is there again, or follows one that is not the one before."""
    ordered = rows.sort("subject", "order", "part", "row")
    before: tuple[Any, int] | None = None
    listed_problems = []
    for row in ordered.iter_rows(named=True):
        subject, order = row["subject"], row["order"]
        last = before[1] if before is not None and before[0] == subject else 0
        if order == last:
            reason = f"order: exchange {order:,} of this subject is there already"
            listed_problems.append((row["part"], row["row"], reason))
        elif order > last + 1:
            reason = f"order: is {order:,}, and exchange {last + 1:,} of this subject is missing"
            listed_problems.append((row["part"], row["row"], reason))
        before = subject, order
    yield from sorted(listed_problems)

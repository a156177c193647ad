"""An audit on Spark: rows go to where their subject is, and are sorted there.

``groupBy().applyInArrow`` would call Python once for every subject. Here rows are spread by a hash
of their subject, sorted within each partition, and handed over in batches of Arrow by
``mapInArrow``, in which a subject may go on in the next batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from expost.audits.bad_rows import MOST, BadRow, BadRows, bad_rows
from expost.audits.kernel import COLUMNS, ENOUGH, audited_batches, schema
from expost.audits.log import Log
from expost.audits.plan import Plan
from expost.audits.rows import COLUMNS as NEEDED
from expost.errors import InvalidInput

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["audited_log_on_spark", "audited_on_spark"]

_TYPES = ("bigint", "double", "double", "double", "double", "boolean", "bigint", "double")
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def audited_on_spark(dataframe: Any, plan: Plan) -> DataFrame:
    """A row for each subject of a data frame of Spark with the columns of a log."""
    import polars

    for name in NEEDED:
        if name not in dataframe.columns:
            there = ", ".join(dataframe.columns[:10])
            raise InvalidInput(f"column {name!r} is missing; there are {there}")
    kinds = dict(dataframe.dtypes)
    subject = "bigint" if kinds["subject"] in _WHOLE else "string"
    # As numbers: texts are sorted by their letters, and 10 would come before 2.
    order = "try_cast(`order` as bigint) as `order`" if kinds["order"] == "string" else "`order`"
    rows = dataframe.selectExpr(
        f"cast(subject as {subject}) as subject", order, "query", "response"
    )
    rows = rows.repartition("subject").sortWithinPartitions("subject", "order")
    columns = zip(COLUMNS, (subject, *_TYPES), strict=True)
    written = ", ".join([*(f"`{name}` {kind}" for name, kind in columns), "bad string"])
    names = polars.Int64() if subject == "bigint" else polars.String()
    found = rows.mapInArrow(_work(plan, {**schema(names), "bad": polars.String()}), written)
    table = polars.DataFrame(found.toArrow())
    bad = table["bad"].drop_nulls().sort().to_list()
    if bad:
        raise BadRows(tuple(BadRow("", None, reason) for reason in bad[:MOST]), len(bad))
    if not len(table):
        raise InvalidInput("there are no rows")
    return table.drop("bad").sort("subject")


def audited_log_on_spark(log: Log, plan: Plan) -> DataFrame:
    """The same for files, which every worker has to be able to read."""
    try:
        return audited_on_spark(_read(log), plan)
    except BadRows:
        # In files, rows have numbers.
        raise bad_rows([(file, log.part(file)) for file in log.files], plan) from None


def _read(log: Log) -> Any:
    """The rows of the files of a log, read by Spark."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise InvalidInput("an audit on Spark needs pyspark: pip install pyspark") from None
    reader = SparkSession.builder.getOrCreate().read
    files = [os.fspath(file.resolve()) for file in log.files]
    if log.suffix == ".parquet":
        return reader.parquet(*files)
    if log.suffix == ".csv":
        return reader.option("header", True).option("escape", '"').csv(files)
    return reader.json(files)


def _work(plan: Plan, kinds: dict[str, Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker does with its batches; the plan goes there as text."""
    texts = plan.texts()

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        import polars

        plan = Plan.from_texts(*texts)
        try:
            for rows in audited_batches(_sorted(batches), plan):
                nothing = polars.lit(None, dtype=polars.String)
                yield from _arrow(rows.with_columns(bad=nothing))
        except BadRows as error:
            # As rows, for what a worker raises is lost in the errors of Spark.
            bad = [{"bad": str(row)} for row in error.rows]
            yield from _arrow(polars.DataFrame(bad, schema=kinds))

    return work


def _sorted(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a partition in order, whether or not the order that was asked for was kept.

    A server may leave out a sort for which it sees no use. Then a partition is sorted here as a
    whole. One that starts in order is trusted to go on so, and checked.
    """
    import polars

    coming, first = iter(batches), []
    for batch in coming:
        first.append(polars.DataFrame(batch))
        if sum(map(len, first)) >= ENOUGH:
            break
    if not first:
        return
    start = polars.concat(first)
    if _ascends(start):
        yield start
        yield from coming
    else:
        rest = [polars.DataFrame(batch) for batch in coming]
        yield polars.concat([start, *rest]).sort("subject", "order")


def _ascends(rows: DataFrame) -> bool:
    """Whether rows are sorted by subject and order; what is null is for others to find."""
    earlier, later = rows.head(len(rows) - 1), rows.tail(len(rows) - 1)
    same = later["subject"] == earlier["subject"]
    ordered = same & (later["order"] >= earlier["order"])
    return bool(((later["subject"] > earlier["subject"]) | ordered).all())


def _arrow(rows: DataFrame) -> Iterator[Any]:
    """Batches of Arrow with plain texts, which every version of Spark knows."""
    import polars

    yield from rows.to_arrow(compat_level=polars.CompatLevel.oldest()).to_batches()

"""An audit on Spark: rows go to where their subject is, and are put in order there.

``groupBy().applyInArrow`` would call Python once for every subject, and a sort by Spark would take
longer than the audit. Here rows are spread by a hash of their subject and handed over in batches of
Arrow by ``mapInArrow``; what is done with a partition is what one process does with a log.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.answers import DECLINED, OUTCOME, REFUSED
from expost.audits._decisions import audit_subjects, schema
from expost.audits._errors import BadRow, BadRows, UnusableRows
from expost.audits._log import COLUMNS, LogFiles, check_names, missing_column, normalize_log
from expost.audits._plan import Plan
from expost.audits._polars_engine import Buckets
from expost.audits._rows import MOST_LISTED, arrange_rows, bad_exchanges, bad_rows
from expost.errors import InvalidInput

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["HELD", "audit_batches", "audit_log_on_spark", "audit_on_spark"]

#: Rows of a stream that are held in memory.
HELD = 1 << 22

# Into which a stream that is longer is split; its end is not known then.
_BUCKETS = 32


_TYPES = ("bigint", "double", "double", "double", "double", "boolean", "bigint", "double")
# Rows that cannot be used come back in place of results: a line about each, and their number.
_BAD = ("bad", "bad_number")
# Rows of a file that are handed over at once.
_TOGETHER = 1 << 17
_INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")


def audit_on_spark(dataframe: Any, plan: Plan) -> DataFrame:
    """Audit a Spark data frame with the columns of a log: a row for each subject."""
    import polars

    for name in COLUMNS:
        if name not in dataframe.columns:
            raise InvalidInput(missing_column(name, dataframe.columns))
    check_names(dataframe.columns)
    types_by_column = dict(dataframe.dtypes)
    for name in COLUMNS:
        if types_by_column[name] == "boolean":
            raise InvalidInput("must be a label or a number, not true or false", name)
    if OUTCOME in dataframe.columns:
        dataframe = dataframe.where(f"{OUTCOME} is null or {OUTCOME} not in {(REFUSED, DECLINED)}")
    subject, named = _name(types_by_column["subject"])
    rows = dataframe.selectExpr(named, "`order`", "query", "response").repartition("subject")
    names = polars.Int64() if subject == "bigint" else polars.String()
    types = {
        **schema(names, plan.filter),
        **dict(zip(_BAD, (polars.String(), polars.Int64()), strict=True)),
    }
    at_level = ["double"] if plan.filter.is_at_level else []
    columns = zip(types, (subject, *_TYPES, *at_level, "string", "bigint"), strict=True)
    written = ", ".join(f"`{name}` {type_name}" for name, type_name in columns)
    table = polars.DataFrame(rows.mapInArrow(_audit_partition(plan, types), written).toArrow())
    bad = table["bad"].drop_nulls().sort().to_list()
    if bad:
        listed_rows = tuple(BadRow("", None, reason) for reason in bad[:MOST_LISTED])
        raise BadRows(listed_rows, int(table["bad_number"].sum()))
    if not len(table):
        raise InvalidInput("there are no rows")
    table_by_subject = table.drop(_BAD).sort("subject")
    assert table_by_subject["subject"].is_unique().all(), (
        "the rows of a subject were not in one partition"
    )
    return table_by_subject


def _name(type_name: str) -> tuple[str, str]:
    """Return the type of subjects, and the expression that makes them: null for other floats."""
    if type_name in _INTEGER_TYPES:
        return "bigint", "cast(subject as bigint) as subject"
    if type_name in ("float", "double"):
        # For Spark NaN equals itself, and is larger than any number.
        is_whole = "subject = rint(subject) and abs(subject) < 9e18"
        return "bigint", f"case when {is_whole} then cast(subject as bigint) end as subject"
    if type_name == "string" or type_name.startswith(("char", "varchar")):
        return "string", "cast(subject as string) as subject"
    raise InvalidInput(f"must be strings or integers, not {type_name}", "subject")


def audit_log_on_spark(log: LogFiles, plan: Plan) -> DataFrame:
    """Audit files, which every worker must be able to read."""
    try:
        return audit_on_spark(_read(log), plan)
    except BadRows:
        # In files, rows have numbers.
        raise bad_rows([(file, log.rows(file)) for file in log.files], plan) from None


def _read(log: LogFiles) -> Any:
    """Read the rows of all files of a log.

    Spark reads Parquet. Workers read text files, one file each, as one process reads them, because
    readers of CSV and JSON differ in the rows that they find.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise InvalidInput("an audit on Spark needs pyspark: pip install pyspark") from None
    session = SparkSession.builder.getOrCreate()
    files = [os.fspath(file.resolve()) for file in log.files]
    if log.suffix == ".parquet":
        return session.read.parquet(*files)
    for file in log.files:
        log.part(file)  # or what is wrong with its columns
    names = session.createDataFrame([(file,) for file in files], "file string")
    written = "subject string, `order` bigint, query string, response string"
    return names.repartition(len(files)).mapInArrow(_read_texts(log.suffix), written)


def _read_texts(suffix: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what a worker does with the names of its files."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        import polars

        for file in (Path(name) for batch in batches for name in polars.DataFrame(batch)["file"]):
            log = LogFiles((file,), suffix)
            rows = log.part(file)
            try:
                log.check()
                for part in rows.collect_batches(chunk_size=_TOGETHER):
                    yield from _arrow(part)
            except (polars.exceptions.PolarsError, InvalidInput, UnusableRows):
                # A row that cannot be used, so that the file is looked at where errors are told.
                yield from _arrow(rows.clear().collect().clear(1))

    return read


def _audit_partition(
    plan: Plan, types_by_column: dict[str, Any]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what a worker does with its batches; the plan travels as text."""
    texts = plan.texts()

    def audit_partition(batches: Iterable[Any]) -> Iterator[Any]:
        import polars

        plan = Plan.from_texts(*texts)
        try:
            for rows in audit_batches(batches, plan):
                empty_cells = [
                    polars.lit(None, dtype=types_by_column[name]).alias(name) for name in _BAD
                ]
                yield from _arrow(rows.with_columns(empty_cells))
        except BadRows as error:
            # As rows, for what a worker raises is lost in the errors of Spark.
            bad = [{"bad": str(row), "bad_number": 0} for row in error.rows]
            bad[0]["bad_number"] = error.count
            yield from _arrow(polars.DataFrame(bad, schema=types_by_column))

    return audit_partition


def audit_batches(batches: Iterable[Any], plan: Plan, held: int = HELD) -> Iterator[DataFrame]:
    """Audit batches of Arrow that have all rows of their subjects, in any order.

    More rows than are ``held`` in memory go by way of the disk.
    """
    import polars

    frames = (polars.DataFrame(batch) for batch in batches)
    for frame in whole_subjects(
        (normalize_log(batch_frame.lazy()).collect() for batch_frame in frames), held
    ):
        try:
            subject_rows = arrange_rows(frame, plan)
        except UnusableRows:
            raise bad_exchanges(frame, plan) from None
        yield audit_subjects(subject_rows, plan)


def whole_subjects(frames: Iterable[DataFrame], row_limit: int = HELD) -> Iterator[DataFrame]:
    """Regroup rows so that all rows of a subject are in one frame."""
    import polars

    pending: list[DataFrame] = []
    index = 0
    with tempfile.TemporaryDirectory(prefix="expost-") as folder:
        buckets = None
        all_buckets = list(range(_BUCKETS))
        for frame in frames:
            pending.append(frame)
            index += len(frame)
            if index > row_limit:
                buckets = buckets or Buckets(Path(folder), _BUCKETS)
                buckets.store(polars.concat(pending).lazy(), all_buckets)
                pending, index = [], 0
        if buckets is None:
            if index:
                yield polars.concat(pending)
            return
        if index:
            buckets.store(polars.concat(pending).lazy(), all_buckets)
        del pending
        for bucket_index in all_buckets:
            rows = buckets.load(bucket_index)
            if rows is not None:
                yield rows


def _arrow(rows: DataFrame) -> Iterator[Any]:
    """Yield batches of Arrow with plain texts, which every version of Spark knows."""
    import polars

    yield from rows.to_arrow(compat_level=polars.CompatLevel.oldest()).to_batches()

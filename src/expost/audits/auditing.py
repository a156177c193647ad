"""An audit: was everybody's budget respected at every exchange?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from expost.answers import Answers, queries_from_json
from expost.audits.bad_files import is_hidden
from expost.audits.copies import identical
from expost.audits.engines.polars import MEMORY, audited_frame, audited_log
from expost.audits.engines.spark import audited_log_on_spark, audited_on_spark
from expost.audits.folder import Gathered, load_folder
from expost.audits.kernel import audited
from expost.audits.log import Log, check_names, logged, needs_polars
from expost.audits.plan import Plan
from expost.audits.result import Audit, FilesRead
from expost.audits.rows import COLUMNS, whole_of
from expost.errors import InvalidInput, at, expect
from expost.files.regular import read_text
from expost.files.tables import is_frame
from expost.filters import Filter
from expost.solver import GAP, Effort

__all__ = ["audit", "audit_files_on_spark", "audit_spark", "of_transcripts"]

Path_ = str | os.PathLike[str]
Tell = Callable[[int, int], None]


def audit(
    answers: Any,
    queries: Path_ | None = None,
    *,
    filter: Filter,
    gap: float = GAP,
    nodes: int | None = None,
    memory: int = MEMORY,
    resume: Path_ | None = None,
    progress: Tell | None = None,
) -> Audit:
    """Decide every exchange of every subject of a log again, on what came before it.

    ``answers`` is a log: a file (CSV, JSON Lines or Parquet), a folder of such files, or a frame or
    a mapping of columns, with a row per response and the columns ``subject``, ``order`` (the number
    of the exchange in the subject's transcript, from 1), ``query`` (an id) and ``response``. Rows
    may be in any order. ``queries`` is the file of queries, as for :func:`load_answers`. It may
    also be a folder of transcripts, or :class:`Answers`, whose rows are in the order of the
    exchanges; both bring their queries along.

    ``filter`` is what was promised. On a box, ``gap`` and ``nodes`` are as for :func:`replay`.
    A log that would take more than ``memory`` bytes is worked on in parts. With a folder to
    ``resume`` from, parts that are done are kept there, and an audit that was interrupted goes on
    where it was; if the log has changed since, it starts again. ``progress`` is called with how
    much is done, and how much there is.

    If any row cannot be used, it is an error that lists such rows, and nobody is audited. The same
    holds for entries of a folder that are not read, except hidden ones, and for copies of a
    transcript. Proof: docs/theory/audits.md.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> table = {"subject": ["a", "b", "b"], "query": ["q"] * 3, "response": ["no", "no", "yes"]}
    >>> answers = xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
    >>> xp.audit(answers, filter=xp.BayesianFilter(epsilon="1.5"))
    Audit(2 subjects, 1 over the budget of 1.5)
    subject  exchanges  loss  peak  respected            remaining
    a        1          1     1     yes                  0.5
    b        2          0     1     no, from exchange 2  1.5
    """
    needs_polars()
    effort, told = Effort(gap, nodes), progress or (lambda done, total: None)
    files: FilesRead | None = None
    if isinstance(answers, (str, os.PathLike)) and of_transcripts(Path(answers)):
        gathered = load_folder(answers, queries, strict=True)
        answers, files = gathered.answers, _files_read(gathered, filter)
    if isinstance(answers, Answers):
        plan = Plan(answers.domain, answers.queries, filter, effort)
        whole = whole_of(answers)
        return Audit(audited(whole, plan, lambda done: told(done, len(whole))), filter, files)
    plan = _plan(queries, filter, effort)
    if not isinstance(answers, (str, os.PathLike)):
        return Audit(audited_frame(logged(_lazy(answers)), plan, told), filter)
    log = Log.at(Path(answers))
    files = FilesRead(len(log.files))
    with at(os.fspath(answers), ": "):
        if resume is not None:
            return Audit(audited_log(log, plan, Path(resume), memory, told), filter, files)
        with tempfile.TemporaryDirectory(prefix="expost-") as folder:
            return Audit(audited_log(log, plan, Path(folder), memory, told), filter, files)


def audit_spark(
    dataframe: Any,
    queries: Path_,
    *,
    filter: Filter,
    gap: float = GAP,
    nodes: int | None = None,
) -> Audit:
    """The same as :func:`audit` on Spark, for a log that one machine does not hold.

    ``dataframe`` is one of Spark, with the columns ``subject``, ``order``, ``query`` and
    ``response``. Rows are brought together by subject, and decided where they are: workers need
    expost with its extra ``frames``. The result has a row per subject and is collected here. It is
    that of :func:`audit`, to the bit.
    """
    needs_polars()
    plan = _plan(queries, filter, Effort(gap, nodes))
    return Audit(audited_on_spark(dataframe, plan), filter)


def audit_files_on_spark(
    answers: Path, queries: Path | None, *, filter: Filter, effort: Effort
) -> Audit:
    """The same for the files of a log, which all workers have to be able to read."""
    needs_polars()
    if of_transcripts(answers):
        raise InvalidInput("transcripts are not audited on Spark, but in one process", str(answers))
    plan, log = _plan(queries, filter, effort), Log.at(answers)
    with at(os.fspath(answers), ": "):
        return Audit(audited_log_on_spark(log, plan), filter, FilesRead(len(log.files)))


def _plan(queries: Path_ | None, guard: Filter, effort: Effort) -> Plan:
    """What a log is audited against, with the queries of a file."""
    expect(queries, (str, os.PathLike), "the name of a file of queries")
    assert queries is not None
    with at(os.fspath(queries), ": "):
        domain, by_id = queries_from_json(read_text(queries))
    return Plan(domain, by_id, guard, effort)


def of_transcripts(path: Path) -> bool:
    """Whether a path is that of a folder of transcripts."""
    # Including .JSON: such a file is not read, and the error has to say so.
    return path.is_dir() and any(
        entry.suffix.lower() == ".json" and not is_hidden(entry) for entry in path.iterdir()
    )


def _files_read(gathered: Gathered, guard: Filter) -> FilesRead:
    """Collect what an auditor should know about the transcripts of a folder."""
    transcripts = gathered.transcripts
    asked = {name: each for name, each in transcripts.items() if len(each)}
    return FilesRead(
        len(transcripts),
        unasked=gathered.unasked,
        identical=identical(asked),
        other_filters=tuple(
            (name, each.filter) for name, each in transcripts.items() if each.filter != guard
        ),
    )


def _lazy(table: Any) -> Any:
    """A frame or a mapping of columns, as polars has it."""
    import polars

    if isinstance(table, polars.LazyFrame):
        return table
    if isinstance(table, polars.DataFrame):
        return table.lazy()
    if not is_frame(table) and not isinstance(table, Mapping):
        raise InvalidInput("must be a file, a folder, Answers, a frame or a mapping of columns")
    check_names(list(table.columns) if is_frame(table) else list(table))
    columns = {}
    for name in (name for name in COLUMNS if name in table):
        column = table[name]
        entries = column.to_list() if is_frame(table) else column
        if any(isinstance(entry, bool | np.bool_) for entry in entries):
            raise InvalidInput("is true or false, not a label or a number", name)
        try:
            columns[name] = polars.Series(name, entries)
        except (TypeError, ValueError, polars.exceptions.PolarsError):
            reason = "must be a column of texts or of numbers, without missing entries"
            raise InvalidInput(reason, name) from None
    try:
        return polars.LazyFrame(columns)
    except polars.exceptions.PolarsError:
        raise InvalidInput("the columns have different lengths") from None

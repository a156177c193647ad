"""Audits: whether the budget of every subject was respected at every exchange."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_nats, format_remaining
from expost._types import PathLike, Progress
from expost.answers import Answers, queries_from_json
from expost.audits._answer_files import LoadedTranscripts, group_identical, load_folder
from expost.audits._decisions import AT_LEVEL, audit_subjects
from expost.audits._errors import is_hidden
from expost.audits._log import (
    COLUMNS,
    LogFiles,
    check_names,
    normalize_log,
    require_polars,
)
from expost.audits._plan import Plan, filter_to_json
from expost.audits._polars_engine import MEMORY, audit_frame, audit_log
from expost.audits._rows import rows_of_answers
from expost.audits._spark_engine import audit_log_on_spark, audit_on_spark
from expost.cards import View
from expost.errors import InvalidInput, at
from expost.files.canonical import plain_tree
from expost.files.regular import read_file
from expost.files.tables import ResultTable, is_frame
from expost.filters import Filter, Level
from expost.filters._outcomes import respected_cell
from expost.numbers import Enclosure
from expost.solver import GAP, Effort

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = [
    "Audit",
    "FilesRead",
    "Histogram",
    "audit",
    "audit_files_on_spark",
    "audit_spark",
    "is_transcript_folder",
    "is_used_up",
]


def audit(
    answers: Any,
    queries: PathLike | None = None,
    *,
    filter: Filter,
    gap: float = GAP,
    nodes: int | None = None,
    memory: int | None = None,
    resume: PathLike | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Decide every exchange of every subject of a log again, on what came before it.

    A log has a row per response and the columns ``subject``, ``order`` (the number of the exchange
    in the subject's transcript, from 1), ``query`` (an id) and ``response``. Rows may be in any
    order. Only logs in files take ``memory`` and ``resume``; all others are audited in memory.

    If a row cannot be used, the error lists such rows, and no subject is audited. The same holds
    for entries of a folder that are not read, except hidden ones, and for copies of a transcript.
    Proof: docs/theory/audits.md.

    Args:
        answers: The log: a file (CSV, JSON Lines or Parquet), a folder of such files, a frame, or a
            mapping of columns; a folder of transcripts; or :class:`Answers`, in the order of the
            exchanges.
        queries: The file of queries, as for :func:`load_answers`. Folders of transcripts and
            :class:`Answers` have their own.
        filter: The filter that was promised.
        gap: The largest width of a loss on a box, in nats.
        nodes: The most nodes of all decisions about a subject, as for :func:`replay`.
        memory: The most bytes for the rows of a log in files, by default 2 GiB; a larger log is
            processed in parts.
        resume: A folder for finished parts of a log in files. An interrupted audit continues from
            there, and starts again if the log has changed.
        progress: A function that is called with the finished and the total amount of work.

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
    require_polars()
    effort, report_progress = Effort(gap, nodes), progress or (lambda done, total: None)
    files: FilesRead | None = None
    in_files = isinstance(answers, (str, os.PathLike))
    is_folder = in_files and is_transcript_folder(Path(answers))
    for name, argument in (("memory", memory), ("resume", resume)):
        if argument is not None and (is_folder or not in_files):
            raise InvalidInput("requires a log in files; other input is audited in memory", name)
    if is_folder:
        # Loading is the first half of the work.
        loaded = load_folder(
            answers, queries, strict=True, progress=lambda done, n: report_progress(done, 2 * n)
        )
        answers, files = loaded.answers, _files_read(loaded, filter)
    if isinstance(answers, Answers):
        plan = Plan(answers.domain, answers.queries, filter, effort)
        subject_rows = rows_of_answers(answers)
        before, total = (len(subject_rows) if is_folder else 0), len(subject_rows)
        frame = audit_subjects(
            subject_rows, plan, lambda done: report_progress(before + done, before + total)
        )
        return Audit(frame, plan, files)
    plan = _plan(queries, filter, effort)
    if not in_files:
        return Audit(audit_frame(normalize_log(_read_frame(answers)), plan, report_progress), plan)
    log = LogFiles.at(Path(answers))
    files = FilesRead(len(log.files))
    limit = MEMORY if memory is None else memory
    with at(os.fspath(answers), ": "), tempfile.TemporaryDirectory(prefix="expost-") as temporary:
        parts = Path(temporary if resume is None else resume)
        return Audit(audit_log(log, plan, parts, limit, report_progress), plan, files)


def audit_spark(
    dataframe: Any, queries: PathLike, *, filter: Filter, gap: float = GAP, nodes: int | None = None
) -> Audit:
    """Audit a log on Spark, as :func:`audit` does, if one machine does not hold it.

    Rows are grouped by subject, and the workers decide: they need expost with its extra ``frames``.
    The result has a row per subject and is collected here. It is that of :func:`audit`, to the bit.

    Args:
        dataframe: The log, as a frame of Spark with the columns of :func:`audit`.
        queries: The file of queries.
        filter: The filter that was promised.
        gap: The largest width of a loss on a box, in nats.
        nodes: The most nodes of all decisions about a subject, as for :func:`replay`.
    """
    require_polars()
    plan = _plan(queries, filter, Effort(gap, nodes))
    return Audit(audit_on_spark(dataframe, plan), plan)


def audit_files_on_spark(
    answers: Path, queries: Path | None, *, filter: Filter, effort: Effort
) -> Audit:
    """Audit files on Spark. All workers must be able to read them."""
    require_polars()
    if is_transcript_folder(answers):
        raise InvalidInput("transcripts are not audited on Spark, but in one process", str(answers))
    plan, log = _plan(queries, filter, effort), LogFiles.at(answers)
    with at(os.fspath(answers), ": "):
        return Audit(audit_log_on_spark(log, plan), plan, FilesRead(len(log.files)))


def _plan(queries: PathLike | None, filter_: Filter, effort: Effort) -> Plan:
    """Return the plan of an audit, with the queries of a file."""
    domain, by_id = read_file(queries, queries_from_json, "the name of a file of queries")
    return Plan(domain, by_id, filter_, effort)


def is_transcript_folder(path: Path) -> bool:
    """Return whether a path is that of a folder of transcripts."""
    # Including .JSON: such a file is not read, and the error has to say so.
    return path.is_dir() and any(
        entry.suffix.lower() == ".json" and not is_hidden(entry) for entry in path.iterdir()
    )


def _files_read(loaded: LoadedTranscripts, filter_: Filter) -> FilesRead:
    """Collect what an auditor should know about the transcripts of a folder."""
    transcripts = loaded.transcripts
    with_exchanges = {
        name: transcript for name, transcript in transcripts.items() if len(transcript)
    }
    return FilesRead(
        len(transcripts),
        unasked=loaded.unasked,
        identical=group_identical(with_exchanges),
        other_filters=tuple(
            (name, transcript.filter)
            for name, transcript in transcripts.items()
            if transcript.filter != filter_
        ),
    )


def _read_frame(table: Any) -> Any:
    """Read a frame or a mapping of columns into a lazy frame of polars."""
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
            raise InvalidInput("must be a label or a number, not true or false", name)
        try:
            columns[name] = polars.Series(name, entries)
        except (TypeError, ValueError, polars.exceptions.PolarsError):
            reason = "must be a column of texts or of numbers, without missing entries"
            raise InvalidInput(reason, name) from None
    try:
        return polars.LazyFrame(columns)
    except polars.exceptions.PolarsError:
        raise InvalidInput("the columns have different lengths") from None


#: The longest list of subjects in a summary.
_MOST_LISTED = 100

_WORST = 10
_BINS = 20
#: How many times as many bins there may be, so that the budget is an edge.
_MOST_PER_BIN = 5
_EDGE_TOLERANCE = 1e-9

# A weight that is rounded leaves so little of a budget that is spent.


def is_used_up(remaining: Any, filter_: Filter) -> Any:
    """Return for each amount of a column whether less than a thousandth of the budget remains."""
    return remaining < filter_.budget.nearest / 1000


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of subjects between each edge and the next."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    #: The number of subjects with an unbounded loss.
    infinite: int


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The files that an audit read, and remarks on transcripts beyond their exchanges."""

    count: int
    #: How many transcripts have no exchanges. Their subjects are not in the table.
    unasked: int = 0
    #: Groups of subjects with equal transcripts: by chance, or because one is a copy.
    identical: tuple[tuple[str, ...], ...] = ()
    #: Subjects whose transcript names another filter than the audit's, and that filter.
    other_filters: tuple[tuple[str, Filter | None], ...] = ()

    def tree(self) -> dict[str, Any]:
        """Return all of it as JSON, with the first hundred groups and subjects."""
        return {
            "files": self.count,
            "unasked": self.unasked,
            "identical": self.identical[:_MOST_LISTED],
            "identical_number": sum(map(len, self.identical)),
            "other_filters": [
                {
                    "subject": name,
                    "filter": None if named_filter is None else filter_to_json(named_filter),
                }
                for name, named_filter in self.other_filters[:_MOST_LISTED]
            ],
            "other_filters_number": len(self.other_filters),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(ResultTable):
    """The result of an audit: for each subject its loss, and whether its budget was respected.

    :func:`audit` returns it. Subjects are in ascending order. Losses are in nats.

    ``lower``, ``upper``
        the loss now is between these; act on ``upper``.
    ``peak``
        the largest loss at any point, at most.
    ``basic``
        what basic composition says: the sum of the epsilons, rounded up.
    ``budget_respected``
        whether the filter accepts every exchange, given those before; null where a search on a box
        could not tell.
    ``first_refused``
        the number of the first exchange that it certainly refuses, or null.
    ``remaining``
        what is left of the budget, at least.
    """

    frame: DataFrame
    #: The domain, the queries and the filter that every exchange was decided by.
    plan: Plan
    #: The files that were read; None for a table in memory.
    files: FilesRead | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def filter(self) -> Filter:
        """The filter that every exchange was decided by."""
        return self.plan.filter

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table, as lists."""
        return self.frame.to_dict(as_series=False)

    def to_polars(self) -> DataFrame:
        return self.frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    @cached_property
    def respected(self) -> int:
        """How many subjects' budgets were respected at every exchange."""
        return int(self.frame["budget_respected"].sum() or 0)

    @cached_property
    def undecided(self) -> int:
        """The number of subjects whose verdict is undecided."""
        return self.frame["budget_respected"].null_count()

    @property
    def broken(self) -> int:
        """The number of subjects whose budget was exceeded."""
        return len(self) - self.respected - self.undecided

    @cached_property
    def used_up(self) -> int:
        """The number of respected budgets of which less than a thousandth remains."""
        used_up = is_used_up(self.frame["remaining"], self.filter)
        return int((used_up & self.frame["budget_respected"].fill_null(False)).sum())

    def broken_subjects(self, most: int = _MOST_LISTED) -> list[Any]:
        """Return the first subjects whose budget was exceeded."""
        return self.frame.filter(~self.frame["budget_respected"])["subject"].head(most).to_list()

    def worst(self, most: int = _WORST) -> list[dict[str, Any]]:
        """Return the rows with the largest peaks, the largest first."""
        order = ["peak", "upper", "subject"]
        worst = self.frame.sort(order, descending=[True, True, False], maintain_order=True)
        return worst.head(most).to_dicts()

    def histogram(self, column: str = "upper", *beside: str, bins: int = _BINS) -> Histogram:
        """Count the losses now, or the peaks, in bins from 0 to the largest finite one.

        The budget is an edge, unless the largest amount is many times the budget. Histograms of
        columns that are shown ``beside`` each other have the same edges.
        """
        amounts = self.frame[column].to_numpy()
        finite = amounts[np.isfinite(amounts)]
        budget = self.filter.budget.nearest
        most = max(budget, *map(self._largest_finite, (column, *beside)))
        # If the largest amount is many times the budget, each bar spans several budgets.
        budgets_per_bar = math.ceil(most / (_MOST_PER_BIN * bins * budget))
        width = budgets_per_bar * budget / math.ceil(bins * budget / most)
        edges: NDArray[np.floating[Any]] = width * np.arange(
            math.ceil(most / width * (1 - _EDGE_TOLERANCE)) + 1
        )
        # A loss at an edge, such as a budget that is used up, is not above it.
        counts, _ = np.histogram(finite, bins=edges * (1 + _EDGE_TOLERANCE))
        return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), len(amounts) - len(finite))

    def _largest_finite(self, column: str) -> float:
        amounts = self.frame[column].to_numpy()
        return float(amounts[np.isfinite(amounts)].max(initial=0.0))

    def refusals(self) -> list[tuple[int, int]]:
        """Count subjects by the number of the first exchange that the filter refuses."""
        numbers = self.frame["first_refused"].drop_nulls().value_counts(name="subjects")
        return numbers.sort("first_refused").rows()

    def summary(self) -> dict[str, Any]:
        """Summarize all subjects together, as JSON."""
        frame, spread = self.frame, self.histogram()
        read = {} if self.files is None else self.files.tree()
        tree = {
            **read,
            "subjects": len(self),
            "exchanges": int(frame["exchanges"].sum()),
            "filter": self.filter.kind,
            "budget": self.filter.budget.nearest,
            "respected": self.respected,
            "undecided": self.undecided,
            "broken": self.broken,
            "broken_subjects": self.broken_subjects(),
            "used_up": self.used_up,
            "loss": {
                "mean": _plain_number(frame["upper"].mean()),
                "median": _plain_number(frame["upper"].median()),
                "largest": _plain_number(frame["upper"].max()),
            },
            **self._levels_tree(),
            "peak": {"largest": _plain_number(frame["peak"].max())},
            "basic": {
                "mean": _plain_number(frame["basic"].mean()),
                "largest": _plain_number(frame["basic"].max()),
            },
            "histogram": {
                "edges": list(spread.edges),
                "counts": list(spread.counts),
                "infinite": spread.infinite,
            },
            "worst": self.worst(),
        }
        return plain_tree(tree)

    @property
    def levels(self) -> list[Level]:
        """The levels of protection that the budgets are about, without the person as a whole."""
        return list(dict.fromkeys(one.level for one in self.filter.members if one.is_at_level))

    def _levels_tree(self) -> dict[str, Any]:
        if not self.levels:
            return {}
        column = self.frame[AT_LEVEL]
        return {
            AT_LEVEL: {
                "protects": [level.tree() for level in self.levels],
                "mean": _plain_number(column.mean()),
                "largest": _plain_number(column.max()),
            }
        }

    def tree(self) -> dict[str, Any]:
        """Return the summary and the rows of all subjects, as JSON."""
        return {
            **self.summary(),
            "audit": [plain_tree(row) for row in self.frame.iter_rows(named=True)],
        }

    def _view(self) -> View:
        def row(index: int) -> tuple[object, ...]:
            record = self.frame.row(index, named=True)
            return (
                record["subject"],
                record["exchanges"],
                Enclosure(record["lower"], record["upper"]).shown(),
                format_nats(record["peak"]),
                respected_cell(record["budget_respected"], record["first_refused"]),
                format_remaining(record["remaining"], self.filter.budget.nearest),
            )

        title = (
            f"Audit({format_count(len(self), 'subject')}, {self.broken:,} over the budget of "
            f"{self.filter.limit}"
        )
        title += f", {self.undecided:,} undecided)" if self.undecided else ")"
        names = ("subject", "exchanges", "loss", "peak", "respected", "remaining")
        return View(title, {}, names, len(self), row)


def _plain_number(value: Any) -> float:
    return float(value)

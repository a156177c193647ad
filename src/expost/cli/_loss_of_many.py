"""``expost loss --many``: the realized losses of many subjects next to basic composition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from expost._format import format_count
from expost.answers import Answers
from expost.audits._answer_files import save_losses
from expost.audits._losses import AgainstBudget, Losses, against_budget, losses_within
from expost.cli._inputs import option_names, read_answers
from expost.cli._outputs import Result, check_output, check_picture, progress_line
from expost.errors import InvalidInput, at
from expost.files.kinds import LOSSES
from expost.files.tables import table_format
from expost.filters import BayesianFilter, Filter
from expost.report._formatting import budget_text, loss_text
from expost.solver import Effort

__all__ = ["loss_of_many"]

# Likelihoods evaluated for each megabyte of input; a few seconds of work.
_MOST_EVALUATIONS_PER_MB = 400_000_000


def loss_of_many(
    data: Path,
    queries: Path | None,
    budget: str | None,
    out: Path | None,
    picture: Path | None,
    effort: Effort,
) -> Result:
    """Compute, save and draw the losses of all subjects.

    Args:
        data: A table of answers, or a folder of transcripts.
        queries: The file of queries; a folder needs none.
        budget: A budget to compare with; by default, that of all transcripts of a folder.
        out: The table of losses to write, or None.
        picture: The histogram to write, or None.
        effort: The effort of searches on a box.
    """
    filter_: Filter | None = None
    if budget is not None:
        with option_names({"epsilon": "--budget"}):
            filter_ = BayesianFilter(epsilon=budget)
    check_picture(picture, data, queries)
    check_output(out, LOSSES, data, queries)
    if out is not None:
        with at(str(out), ": "):
            table_format(out)  # before the work, not after it
    with progress_line() as line:
        study = read_answers(data, queries, line)
        answers = study.answers
        megabytes = _measure_files(data, queries)
        _check_work(answers, data, megabytes)
        if answers.domain.sides:
            effort = effort.with_work_limit(megabytes)
        losses = losses_within(answers, effort, line.counts("subjects"))
        filter_ = filter_ or study.filter
        against = None
        if filter_ is not None:
            against = against_budget(answers, losses, filter_, effort=effort)
    result = losses if against is None else against
    if out is not None:
        save_losses(result, out)
    if picture is not None:
        _draw_picture(losses, picture)
    unasked = f", and {study.unasked:,} who were asked nothing" if study.unasked else ""
    exchanges = int(losses.exchanges.sum())
    lines: list[str | tuple[str, str]] = [
        ("subjects", f"{len(losses):,}{unasked}"),
        ("exchanges", f"{exchanges:,}"),
        ("mean loss", loss_text(losses.upper.mean())),
        ("median loss", loss_text(np.median(losses.upper))),
        ("largest loss", loss_text(losses.upper.max())),
        ("basic composition", _format_range(losses.basic)),
    ]
    infinite = int(np.isinf(losses.upper).sum())
    if infinite:
        lines.append(("unbounded", f"{infinite:,} subjects"))
    wide = int((losses.upper > losses.lower + effort.gap).sum())
    if wide:
        lines.append(("wider than the gap", f"{wide:,} subjects; more nodes may narrow that"))
    if against is not None:
        lines += _compare_with_budget(against)
    elif any(study.filters):
        lines.append(("budget", "the transcripts name different ones; --budget gives one for all"))
    if picture is not None:
        lines.append(f"The picture is in {picture}.")
    return Result(result.tree if out is None else result.summary, lines)


def _measure_files(data: Path, queries: Path | None) -> float:
    """Return the size of the files, at least one: larger files may ask for more work."""
    files = list(data.iterdir()) if data.is_dir() else [data]
    files += [] if queries is None else [queries]
    return max(1.0, sum(file.stat().st_size for file in files) / 1e6)


def _check_work(answers: Answers, data: Path, megabytes: float) -> None:
    """Refuse what small files must not ask for: a pass over all values for each response."""
    values, responses = len(answers.domain.values or ()), len(answers.codes)
    if values * responses > _MOST_EVALUATIONS_PER_MB * megabytes:
        most = int(_MOST_EVALUATIONS_PER_MB * megabytes)
        reason = f"{responses:,} responses over {values:,} values are too much work"
        reason += f"; files of this size may ask for {most:,} in all, xp.realized_losses for more"
        raise InvalidInput(reason, str(data))


def _compare_with_budget(against: AgainstBudget) -> Iterator[tuple[str, str]]:
    """Yield the verdict about the end, which says nothing about the exchanges before."""
    yield "budget", budget_text(against.filter)
    yield "over it at the end", format_count(against.over_budget, "subject")
    if against.undecided:
        yield "undecided", f"{against.undecided:,} subjects; raise --nodes to decide them"
    yield "budget respected", "not looked at here; for each transcript, expost loss FILE says it"


def _format_range(losses: Any) -> str:
    least, most = loss_text(losses.min()), loss_text(losses.max())
    return least if least == most else f"{least} to {most}"


def _draw_picture(losses: Losses, picture: Path) -> None:
    from expost.report._figures import losses_chart
    from expost.report._plot import save_chart

    save_chart(losses_chart(losses), picture, alt=f"The losses of {len(losses):,} subjects.")

"""What ``expost estimate`` prints, and the tables and pictures that it writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from expost._format import format_confidence, format_count, format_fixed, format_number
from expost.cli._outputs import check_output, check_picture
from expost.errors import InvalidInput, at
from expost.files.kinds import ESTIMATES
from expost.files.tables import write_table
from expost.report._estimates import EstimateReport, EstimateRow, largest_rows

__all__ = ["check_estimates_file", "describe_estimates", "write_estimates"]

_MOST_ROWS = 40
# Estimates below this share of their range are zeros that a search has not quite reached.
_NEGLIGIBLE = 1e-5
_TABLES = (".csv", ".jsonl", ".parquet")
_PICTURES = (".png", ".svg", ".pdf")

Lines = Iterator[str | tuple[str, ...]]


def check_estimates_file(out: Path | None, *inputs: Path | None, plain: bool) -> None:
    """Refuse an output that is neither a table nor a picture, or that must not be replaced."""
    suffix = "" if out is None else out.suffix.lower()
    if plain and suffix not in _PICTURES:
        raise InvalidInput("requires -o PICTURE (.png, .svg or .pdf)", "--plain")
    if suffix in _TABLES:
        assert out is not None
        check_output(out, ESTIMATES, *inputs)
        if not out.parent.is_dir():
            reason = f"the table cannot be saved: there is no folder {out.parent}"
            raise InvalidInput(reason, str(out))
    elif out is None or suffix in _PICTURES:
        check_picture(out, *inputs)
    else:
        expected = f"a table ({', '.join(_TABLES)}) or a picture ({', '.join(_PICTURES)})"
        raise InvalidInput(f"got a name that ends in {suffix!r}; expected {expected}", str(out))


def write_estimates(result: EstimateReport, out: Path, *, plain: bool) -> str:
    """Write the estimates into a table or a picture; return a line that says where they are."""
    if out.suffix.lower() in _TABLES:
        with at(str(out), ": "):
            try:
                write_table(result.table(), out)
            except OSError as error:
                raise InvalidInput(f"cannot be saved: {error.strerror}") from None
        return f"The table is in {out}."
    _draw_picture(result, out, plain=plain)
    return f"The picture is in {out}."


def describe_estimates(result: EstimateReport) -> Lines:
    """Yield the estimates in columns, and below them the data, the assumptions and the advice."""
    if result.warning is not None:  # before the numbers that it is about
        yield from (("warning", result.warning), "")
    yield from _format_rows(result, [row for row in result.estimates if not row.minus])
    differences = [row for row in result.estimates if row.minus]
    if differences:
        yield ""
        yield from _format_rows(result, differences)
    yield ""
    if result.advice:
        yield from (*result.advice, "")
    yield from _describe_data(result)


def _format_rows(result: EstimateReport, rows: Sequence[EstimateRow]) -> Lines:
    """Yield estimates, or differences of groups, in columns; at most the largest ones."""
    shown = largest_rows(rows, _MOST_ROWS)
    level = f"{format_confidence(result.confidence)} interval"
    in_groups = bool(result.groups)
    differences = bool(shown[0].minus)
    head = ["difference" if differences else "group"] if in_groups else []
    yield (*head, "", "estimate", level, "standard error")
    for row in shown:
        names = [f"{row.group} − {row.minus}" if row.minus else row.group] if in_groups else []
        estimate, lower, upper = (
            _format_estimate(bound, result.ends) for bound in (row.estimate, row.lower, row.upper)
        )
        if not row.identified:
            is_narrower = row.upper - row.lower < 0.9999 * (result.ends[1] - result.ends[0])
            limits = f"{lower} to {upper}" if is_narrower else ""
            yield (*names, row.of, "not determined", limits, "")
            continue
        lower += " (uncertified)" if "lower" in row.uncertified else ""
        upper += " (uncertified)" if "upper" in row.uncertified else ""
        error = "—" if math.isnan(row.standard_error) else format_number(row.standard_error, 4)
        yield (*names, row.of, estimate, f"{lower} to {upper}", error)
    if len(shown) < len(rows):
        yield f"… and {len(rows) - len(shown):,} smaller ones (--json has all)"


def _format_estimate(estimate: float, ends: tuple[float, float]) -> str:
    """Format an estimate with four digits; a negligible one is zero."""
    return "0" if abs(estimate) < _NEGLIGIBLE * (ends[1] - ends[0]) else format_number(estimate, 4)


def _describe_data(result: EstimateReport) -> Iterator[tuple[str, str]]:
    yield "what", result.description
    subjects = f"{result.subjects:,}"
    if result.left_out:
        subjects += f", and {result.left_out:,} who did not answer it"
    if result.refused is not None and result.left_out:
        subjects += f" (to {result.refused:,} the filter refuses it now)"
    yield "subjects", subjects + _format_effective(result.effective)
    for index, group in enumerate(result.groups):
        size = f"{group.name}: {group.subjects:,}{_format_effective(group.effective)}"
        yield "" if index else "groups", size
    left_out = {"without covariates": result.unmatched, "with an empty cell": result.ungrouped}
    if any(left_out.values()):
        counts = [f"{count:,} {where}" for where, count in left_out.items() if count]
        yield "left out", ", ".join(counts)
    unused = f", and {result.unused:,} to other queries" if result.unused else ""
    yield "answers", f"{result.answers:,}{unused}"
    for outcome, count in (result.unanswered or {}).items():
        yield outcome, format_count(count, "subject")
    for index, assumption in enumerate(result.assumes):
        yield "" if index else "assumes", assumption
    if result.other_method:
        yield "instead", result.other_method


def _format_effective(size: float | None) -> str:
    return "" if size is None else f" (effective sample size {format_fixed(size, 0)})"


def _draw_picture(result: EstimateReport, out: Path, *, plain: bool) -> None:
    from expost.report._figures import estimates_chart
    from expost.report._plot import save_chart

    responses = format_count(result.answers, "response")
    notes = [f"{responses} of {format_count(result.subjects, 'subject')}"]
    notes += ["can be biased"] if result.may_be_biased else []
    chart = estimates_chart(
        [row for row in result.estimates if not row.minus],
        result.confidence,
        [] if plain else notes,
        title="" if plain else result.description,
        most=_MOST_ROWS,
        plain=plain,
    )
    save_chart(chart, out, alt=f"Intervals of {result.description}.", plain=plain)

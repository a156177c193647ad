"""``expost audit``: check that every subject's budget was respected at every exchange."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from expost._format import format_count
from expost.audits._answer_files import transcript_files
from expost.audits._audit import Audit, FilesRead, audit, audit_files_on_spark, is_transcript_folder
from expost.audits._decisions import AT_LEVEL
from expost.audits._log import LogFiles
from expost.audits._plan import filter_file_to_json, load_filter
from expost.audits._polars_engine import Parts
from expost.cli._inputs import is_ledger
from expost.cli._options import (
    file_option,
    out_option,
    page_date,
    path,
    queries_file,
    search_options,
    value_option,
)
from expost.cli._outputs import (
    Result,
    check_output,
    modification_date,
    prints_result,
    progress_line,
)
from expost.errors import InvalidInput, make_printable
from expost.files.canonical import json_text
from expost.files.durable import save
from expost.files.kinds import AUDIT_SUMMARY, AUDIT_TABLE, LOSSES, PAGE
from expost.files.tables import write_csv
from expost.filters._outcomes import verdict_text
from expost.numbers import Enclosure
from expost.report._audit_page import (
    MISSING_ANSWERS,
    audit_columns,
    audit_page,
    other_filter,
)
from expost.report._formatting import budget_text, format_amount, loss_text
from expost.solver import Effort

__all__ = ["audit_lines", "command"]

_BAR = 40
_BINS = 10
_NAMED = 5
_TABLE, _SUMMARY, _PAGE = "losses.parquet", "summary.json", "audit.html"
_PARTS = ".parts"
_UNIT = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@click.command("audit")
@click.argument("answers", type=path, metavar="ANSWERS")
@queries_file
@file_option(
    "--filter",
    "FILTER",
    "Privacy filter that was promised (JSON), or a ledger's policy.",
    required=True,
)
@out_option("OUT", "Folder for losses.parquet, summary.json and audit.html. Default: no files.")
@file_option("--csv", "CSV", "Table for spreadsheets, with a row per subject (.csv).")
@click.option(
    "--engine",
    type=click.Choice(["polars", "spark"]),
    default="polars",
    help="Engine: this process, or the Spark installation.",
)
@value_option(
    "--expect",
    "N",
    "Expected number of subjects; any other number is an error.",
    type=click.IntRange(min=1),
)
@value_option(
    "--memory",
    "SIZE",
    "Memory for the rows of a log; a larger log is processed in parts. Default: 2G.",
    show_default=False,
)
@page_date
@search_options(threads=False)
@prints_result
def command(
    answers: Path,
    queries: Path | None,
    filter: Path,
    out: Path | None,
    csv: Path | None,
    engine: str,
    expect: int | None,
    memory: str | None,
    date: str | None,
    effort: Effort,
) -> Result:
    """Check that every subject's budget was respected at every exchange.

    ANSWERS is a log (CSV, JSONL or Parquet, or a folder of these) with the columns subject, order,
    query and response, or a folder of transcripts. Exits with 1 if a budget was not respected. To
    continue an interrupted audit, repeat it with the same OUT.
    """
    if not answers.exists():
        raise InvalidInput("cannot be read: No such file or directory", os.fspath(answers))
    if is_ledger(answers):
        raise InvalidInput("is a ledger; run expost ledger audit", os.fspath(answers))
    is_log = not is_transcript_folder(answers)
    if answers.is_file() and answers.suffix.lower() == ".json":
        reason = "not a log (CSV, JSONL or Parquet); for one transcript, run expost loss"
        raise InvalidInput(reason, os.fspath(answers))
    if queries is None and is_log:
        raise InvalidInput("a log requires --queries QUERIES")
    if memory is not None and (engine == "spark" or not is_log):
        raise InvalidInput("only for a log with the engine polars; leave it out", "--memory")
    filter_, limit = load_filter(filter), None if memory is None else _parse_size(memory)
    if csv is not None:
        check_output(csv, AUDIT_TABLE, answers, queries, filter)
        _check_apart(csv, answers)
    if out is not None:
        _check_out(out, answers)
    if engine == "spark":
        result = audit_files_on_spark(answers, queries, filter=filter_, effort=effort)
    else:
        with progress_line() as line:
            result = audit(
                answers,
                queries,
                filter=filter_,
                gap=effort.gap,
                nodes=effort.nodes,
                memory=limit,
                resume=out / _PARTS if out is not None and is_log else None,
                progress=lambda done, total: line.count(100 * done // total, 100, "%"),
            )
    if expect is not None:
        _check_subject_count(result, expect, answers)
    if csv is not None:
        write_csv(audit_columns(result), csv)
    digest = _compute_files_digest(result, answers, queries)
    summary = {**result.summary(), "files_digest": digest}
    if out is not None:
        text = audit_page(
            result,
            name=answers.name,
            date=date or modification_date(answers),
            files_digest=digest,
            expected=expect,
        )
        _write_results(result, out, summary, text)
    lines = *audit_lines(result), ("not covered", MISSING_ANSWERS), ("files digest", digest)
    return Result(summary, lines, exit_code=result.broken > 0)


def _parse_size(text: str) -> int:
    digits, unit = text.strip().upper().removesuffix("B"), 1
    if digits[-1:] in _UNIT:
        digits, unit = digits[:-1], _UNIT[digits[-1:]]
    try:
        size = int(float(digits) * unit)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is not a size; write 500M or 2G", "--memory") from None
    if size < 1:
        raise InvalidInput(f"{text!r} is not a size; write 500M or 2G", "--memory")
    return size


def _check_apart(output: Path, answers: Path) -> None:
    """Refuse an output that would become part of the log."""
    log, target = answers.resolve(), output.resolve()
    if log == target or (answers.is_dir() and log in target.parents):
        reason = "is in the folder that is audited; choose another one"
        raise InvalidInput(reason, os.fspath(output))


def _check_out(out: Path, answers: Path) -> None:
    """Refuse a folder whose log or other files the results would change."""
    if out.exists() and not out.is_dir():
        raise InvalidInput("is not a folder", os.fspath(out))
    _check_apart(out, answers)
    for name, kind in ((_TABLE, LOSSES), (_SUMMARY, AUDIT_SUMMARY), (_PAGE, PAGE)):
        check_output(out / name, kind)
    out.mkdir(parents=True, exist_ok=True)


def _check_subject_count(result: Audit, expected: int, answers: Path) -> None:
    count = len(result) + (result.files.unasked if result.files else 0)
    if count != expected:
        reason = f"has {_count_subjects(count)}; expected {expected:,} (--expect)"
        raise InvalidInput(reason, os.fspath(answers))


def _write_results(result: Audit, out: Path, summary: dict[str, Any], page: str) -> None:
    temporary = out / ".losses.parquet"
    result.frame.write_parquet(temporary)
    os.replace(temporary, out / _TABLE)
    summary_text = json_text(summary, indent=2) + "\n"
    save(out / _SUMMARY, lambda: summary_text)
    save(out / _PAGE, lambda: page)
    Parts(out / _PARTS).remove()


def _compute_files_digest(result: Audit, answers: Path, queries: Path | None) -> str:
    """Return a digest of names and bytes of the log, bytes of the queries, and the filter."""
    digest = hashlib.sha256()
    if is_transcript_folder(answers):
        for file in transcript_files(answers):
            digest.update(
                f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode()
            )
    else:
        digest.update(LogFiles.at(answers).digest.encode())
    digest.update(b"" if queries is None else queries.read_bytes())
    digest.update(filter_file_to_json(result.filter).encode())
    return digest.hexdigest()


def audit_lines(result: Audit) -> Iterator[tuple[str, str]]:
    """Yield the labels and results of an audit."""
    summary = result.summary()
    if result.files is not None:
        yield from _describe_files(result.files)
    yield "subjects", f"{len(result):,}"
    yield "exchanges", f"{summary['exchanges']:,}"
    yield "budget", budget_text(result.filter)
    yield "compared", f"{result.filter.compares}, at every exchange"
    yield "respected", f"{_count_subjects(result.respected)}, at every exchange"
    yield "not respected", _count_subjects(result.broken)
    if result.undecided:
        yield (
            "undecided",
            f"{_count_subjects(result.undecided)}; raise --nodes to decide them",
        )
    used = f"{_count_subjects(result.used_up)}, with less than a thousandth of it remaining"
    if result.levels:
        used += " where most was used"
    yield "used up", used if result.used_up else "none"
    lower, upper = result.frame["lower"], result.frame["upper"]
    mean, median, largest = (
        loss_text(Enclosure(getattr(lower, statistic)(), getattr(upper, statistic)()))
        for statistic in ("mean", "median", "max")
    )
    basic = {key: loss_text(float(n)) for key, n in summary["basic"].items()}
    yield "loss", f"{mean} on average, {median} median, {largest} largest"
    if result.levels:
        about = " or ".join(level.about for level in result.levels)
        at_level = {key: loss_text(float(summary[AT_LEVEL][key])) for key in ("mean", "largest")}
        yield f"about {about}", f"{at_level['mean']} on average, {at_level['largest']} largest"
        yield "not covered", " ".join(level.gap for level in result.levels)
    yield "at its peak", f"{loss_text(float(summary['peak']['largest']))} largest"
    yield "basic composition", f"{basic['mean']} on average, {basic['largest']} largest"
    yield from _draw_histogram(result)
    for rank, row in enumerate(result.worst(5)):
        verdict = verdict_text(row["budget_respected"], row["first_refused"])
        now = loss_text(Enclosure(row["lower"], row["upper"]))
        subject = make_printable(str(row["subject"]))
        text = f"{subject}: {loss_text(row['peak'])}, now {now}, {verdict}"
        yield "" if rank else "largest peaks", text


def _describe_files(read: FilesRead) -> Iterator[tuple[str, str]]:
    unasked = f", {read.unasked:,} of them without any exchange" if read.unasked else ""
    yield "files read", f"{read.count:,}{unasked}"
    if read.identical:
        names = [name for group in read.identical for name in group]
        text = f"{_name_subjects(names)}; copies, or people who gave the same responses"
        yield "equal transcripts", text
    if read.other_filters:
        filter_texts = list(map(other_filter, read.other_filters))
        yield (
            "other filter",
            f"{_name_subjects(filter_texts)}; all were audited by the filter of this audit",
        )


def _name_subjects(names: list[str]) -> str:
    """Return how many subjects there are, and the first names."""
    ellipsis = ", …" if len(names) > _NAMED else ""
    first = ", ".join(names[:_NAMED])
    return f"{_count_subjects(len(names))}: {make_printable(first)}{ellipsis}"


def _count_subjects(count: int) -> str:
    return format_count(count, "subject") if count else "none"


def _draw_histogram(result: Audit) -> Iterator[tuple[str, str]]:
    spread = result.histogram(bins=_BINS)
    edges, largest = spread.edges, max(1, *spread.counts)
    for index, count in enumerate(spread.counts):
        bar = "#" * -(-_BAR * count // largest)
        name = "" if index else "losses now"
        yield name, f"up to {format_amount(edges[index + 1]):<8} {bar:<{_BAR}} {count:,}"
    if spread.infinite:
        yield "", f"{'unbounded':<14} {'':<{_BAR}} {spread.infinite:,}"

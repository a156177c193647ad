"""``expost estimate``: means, frequencies and distributions of a group, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from expost.cli.many import read_many
from expost.cli.options import as_json, path
from expost.cli.progress import Line, progress_line
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput, printable
from expost.files.regular import check_apart
from expost.report.estimates import (
    Estimated,
    distribution,
    frequencies,
    mean,
    mean_by_likelihood,
)

__all__ = ["command"]

_MOST = 40
_DUST = 1e-5


@click.command("estimate")
@click.argument("data", type=path, metavar="DATA")
@click.option(
    "--queries",
    type=path,
    metavar="QUERIES",
    help="All queries about their value (JSON); a folder of transcripts needs none.",
)
@click.option("--mean", "key", metavar="ID", help="The mean of the score that a query is about.")
@click.option("--frequencies", "naive", is_flag=True, help="How frequent each value is, unbiased.")
@click.option("--likelihood", is_flag=True, help="With --mean: valid under a filter too.")
@click.option("--confidence", default="0.95", help="Of the intervals, each by itself.")
@click.option(
    "--repetitions", type=int, default=1000, help="By likelihood: how often to resample subjects."
)
@click.option("--seed", type=int, default=0, help="By likelihood: which subjects are drawn.")
@click.option("--out", "-o", type=path, metavar="PICTURE", help="Where to draw it; .png or .svg.")
@as_json
def command(
    data: Path,
    queries: Path | None,
    key: str | None,
    naive: bool,
    likelihood: bool,
    confidence: str,
    repetitions: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """What the answers of many say about a group: means, frequencies, distributions.

    By default it is how the values are distributed. DATA has the answers (CSV, JSONL, Parquet), or
    is a folder of transcripts.
    """
    if (key is not None and naive) or (likelihood and key is None):
        raise InvalidInput("give --mean ID, perhaps with --likelihood, or --frequencies, or none")
    if out is not None:
        check_apart(out, data, *([] if queries is None else [queries]))
    with progress_line() as line:
        study = read_many(data, queries, line)
        told = _told(line)
        if key is not None and not likelihood:
            found = mean(study.answers, key, confidence=confidence, guard=study.filter)
        elif key is not None:
            found = mean_by_likelihood(
                study.answers, key, confidence=confidence, repetitions=repetitions, seed=seed,
                progress=told,
            )  # fmt: skip
        elif naive:
            found = frequencies(study.answers, confidence=confidence, guard=study.filter)
        else:
            found = distribution(
                study.answers, confidence=confidence, repetitions=repetitions, seed=seed,
                progress=told,
            )  # fmt: skip
    if out is not None:
        _draw(found, out)
    if as_json:
        show_json(found.tree())
        return
    _show_table(found)
    show_lines(_lines(found))


def _told(line: Line) -> Callable[[int, int], None]:
    return lambda done, total: line.count(done, total, "repetitions")


def _show_table(found: Estimated) -> None:
    """The estimates in columns; the largest, where there are very many."""
    rows = found.estimates
    if len(rows) > _MOST:
        least = sorted((row.estimate for row in rows), reverse=True)[_MOST - 1]
        rows = tuple(row for row in rows if row.estimate >= least)[:_MOST]
    level = f"{100 * found.confidence:g} % interval"
    cells = [("", "estimate", level, "standard error")]
    for row in rows:
        name = row.of if row.identified else f"{row.of} (not determined)"
        estimate, lower, upper = (
            _short(each, found.ends) for each in (row.estimate, row.lower, row.upper)
        )
        cells.append((name, estimate, f"{lower} to {upper}", f"{row.standard_error:.4g}"))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for each in cells:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(each, widths, strict=True))
        click.echo(printable(line.rstrip()))
    if len(rows) < len(found.estimates):
        click.echo(f"… and {len(found.estimates) - len(rows):,} smaller ones (--json has all)")
    click.echo()


def _short(number: float, ends: tuple[float, float]) -> str:
    """Four digits; what a search leaves where the likeliest is zero is zero."""
    return "0" if abs(number) < _DUST * (ends[1] - ends[0]) else f"{number:.4g}"


def _lines(found: Estimated) -> Iterator[tuple[str, str]]:
    yield "what", found.what
    subjects = f"{found.subjects:,}"
    if found.left_out:
        subjects += f", and {found.left_out:,} who did not answer it"
    if found.refused is not None and found.left_out:
        subjects += f" (to {found.refused:,} the filter refuses it now)"
    yield "subjects", subjects
    unused = f", and {found.unused:,} to other queries" if found.unused else ""
    yield "answers", f"{found.answers:,}{unused}"
    for number, assumption in enumerate(found.assumes):
        yield "" if number else "assumes", assumption
    if found.warning is not None:
        yield "warning", found.warning


def _draw(found: Estimated, out: Path) -> None:
    try:
        from expost.report.estimate_figure import estimate_figure
        from expost.report.figures import save

        save(estimate_figure(found), out)
    except ModuleNotFoundError:
        raise InvalidInput("a picture needs an extra: pip install 'expost[plot]'") from None

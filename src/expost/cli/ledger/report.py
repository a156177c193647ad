"""``expost ledger report``: a page about a study."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.dates import today
from expost.cli.ledger.options import checkpoint_file, subject_called
from expost.cli.options import as_json, path
from expost.cli.outputs import check_output
from expost.cli.progress import Line, progress_line
from expost.cli.show import show_json
from expost.errors import InvalidInput, printable
from expost.files.durable import save
from expost.files.kinds import PAGE
from expost.ledger import Ledger
from expost.ledger.postgres import on_server, shown_url
from expost.report.explanation import explain
from expost.report.ledger_page import OneSubject, ledger_page
from expost.report.study_summary import summary_of

__all__ = ["command"]


@click.command("report")
@click.argument("place", metavar="LEDGER")
@checkpoint_file
@click.option("--out", "-o", type=path, required=True, metavar="PAGE", help="Such as study.html.")
@click.option(
    "--subject", metavar="NAME", help="Whose odometer is on it; without it nobody is named."
)
@click.option("--date", metavar="DATE", help="Of the page, any text; by default today.")
@as_json
def command(
    place: str,
    checkpoint: Path | None,
    out: Path,
    subject: str | None,
    date: str | None,
    as_json: bool,
) -> None:
    """Write a page about a study.

    For the people who run it and the officer who watches: what is left of budgets, rounds with
    answers and refusals, losses beside basic composition, what did not fit, and the audit. It needs
    nothing from anywhere else. Exits with 1 if a budget was not kept.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput("the name of a page ends in .html", str(out))
    check_output(out, PAGE)
    with Ledger(place, checkpoint=checkpoint) as study, progress_line() as line:
        line.stage("deciding about every answer again")
        told = summary_of(study)
        one = None if subject is None else _one(study, subject, line)
    content = ledger_page(told, name=_shown(place), date=date or today(), subject=one)
    save(out, lambda: content)
    broken = told.found is not None and bool(told.found.broken)
    if as_json:
        show_json({"page": str(out), "root": told.root, "budgets_kept": not broken})
    else:
        click.echo(printable(f"The page is in {out}."))
    if broken:
        click.get_current_context().exit(1)


def _shown(place: str) -> str:
    """What the ledger is called: a file, or host and name of a database."""
    return shown_url(place).partition("://")[2] if on_server(place) else Path(place).name


def _one(study: Ledger, text: str, line: Line) -> OneSubject:
    name = subject_called(study, text)
    found = explain(study.transcript(name))
    odometer, losses = found.replay.odometer, []
    for count in range(len(odometer) + 1):
        line.stage(f"response {count:,} of {len(odometer):,}")
        losses.append(odometer.loss_after(count))
    return OneSubject(str(name), found, losses)

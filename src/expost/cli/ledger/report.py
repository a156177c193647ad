"""``expost ledger report``: a page about a study."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import out_option, value_option
from expost.cli._outputs import (
    Line,
    Result,
    check_output,
    prints_result,
    progress_line,
    todays_date,
)
from expost.cli.ledger._options import checkpoint_file, find_subject, ledger_location
from expost.errors import InvalidInput
from expost.files.durable import save
from expost.files.kinds import PAGE
from expost.ledger import Ledger
from expost.ledger.database_url import is_database_url, shown_url
from expost.report._explanation import explain
from expost.report._ledger_page import OneSubject, ledger_page
from expost.report._study import summary_of

__all__ = ["command"]


@click.command("report")
@ledger_location
@checkpoint_file
@out_option("PAGE", "Page, such as study.html.", required=True)
@value_option("--subject", "NAME", "Subject whose odometer to add. Default: no subject is named.")
@value_option("--date", "DATE", "Date shown on the page (any text). Default: today.")
@prints_result
def command(
    location: str,
    checkpoint: Path | None,
    out: Path,
    subject: str | None,
    date: str | None,
) -> Result:
    """Write a page about a study.

    The page is for operators and data-protection officers. It shows remaining budgets, rounds,
    losses next to basic composition, quarantined messages, and the audit, and works offline. Exits
    with 1 if a budget was not respected, or if imported answers are lost. Install the extra
    'frames'. Only reads the ledger.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput("the name of a page must end in .html", str(out))
    check_output(out, PAGE)
    with Ledger(location, checkpoint=checkpoint) as study, progress_line() as line:
        line.stage("deciding about every answer again")
        summary = summary_of(study)
        subject_page = None if subject is None else _explain_subject(study, subject, line)
    name = _name_ledger(location)
    content = ledger_page(summary, name=name, date=date or todays_date(), subject=subject_page)
    save(out, lambda: content)
    audit = summary.audit.audit
    tree = {
        "page": str(out),
        "root": summary.root,
        "budgets_respected": audit is None or not audit.broken,
        "lost_imports": summary.audit.lost_imports,
    }
    return Result(tree, [f"The page is in {out}."], exit_code=not summary.audit.good)


def _name_ledger(location: str) -> str:
    """Return the name of a file, or host and name of a database."""
    if is_database_url(location):
        return shown_url(location).partition("://")[2]
    return Path(location).name


def _explain_subject(study: Ledger, text: str, line: Line) -> OneSubject:
    name = find_subject(study, text)
    explanation = explain(study.transcript(name))
    return OneSubject(str(name), explanation, line.losses_along(explanation.replay.odometer))
